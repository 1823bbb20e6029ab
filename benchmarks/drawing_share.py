"""Measure where the processor time of `explain` goes: drawing should take at most 30 % of it.

Run: python -m benchmarks.drawing_share [--seconds N] [--only NAME]
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import dsage
from benchmarks.table import markdown, publish
from dsage.data.layout import Layout
from dsage.games import expected
from dsage.games.prefixes import draw_prefixes
from dsage.models import Model
from dsage.models.pipelines import EncodedPipeline
from dsage.result.events import Event, Phase, PhaseStarted
from dsage.samplers import BaseSampler, Sampler
from dsage.samplers.noise import Noise

TOLERANCE, SECONDS, MOST = 0.05, 120.0, 30.0
PARTS = {
    "predict": "predicting",
    "draw": "drawing",
    "frames": "frames for the model",
    "sampler": "choosing the sampler",
    "graph": "the graph",
    "rest": "the rest",
}
"""The parts of a run, and their heads in the table."""


class Stopwatch:
    """Processor time by part; a part that is inside of another does not count twice."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._part, self._since = "rest", time.process_time()

    def switch(self, part: str) -> str:
        """Charge the time until now to the present part, begin another, and return the former."""
        now = time.process_time()
        self.seconds[self._part] += now - self._since
        former, self._part, self._since = self._part, part, now
        return former

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Charge a block to a part, unless it serves the graph or the choice of the sampler."""
        former = self.switch(self._part if self._part in ("graph", "sampler") else part)
        try:
            yield
        finally:
            self.switch(former)

    def listen(self, event: Event) -> None:
        """Follow the phases of a run."""
        if isinstance(event, PhaseStarted):
            own = event.phase in (Phase.GRAPH, Phase.SAMPLER)
            self.switch(str(event.phase) if own else "rest")

    def of(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose calls are charged to a part."""

        @functools.wraps(function)
        def measured(*args: Any, **options: Any) -> Any:  # noqa: ANN401
            with self.measure(part):
                return function(*args, **options)

        return measured

    def of_steps(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a generator function whose steps are charged to a part."""

        @functools.wraps(function)
        def measured(*args: Any, **options: Any) -> Iterator[Any]:  # noqa: ANN401
            steps = function(*args, **options)
            while True:
                with self.measure(part):
                    found = next(steps, None)
                if found is None:
                    return
                yield found

        return measured


@contextmanager
def measured_calls(watch: Stopwatch) -> Iterator[None]:
    """Measure predictions, draws and frames of all runs within a block."""
    parts = [
        (Model, "predict", watch.of("predict", Model.predict)),
        (EncodedPipeline, "predict", watch.of("predict", EncodedPipeline.predict)),
        (Layout, "decode", watch.of("frames", Layout.decode)),
        (BaseSampler, "draw", watch.of("draw", BaseSampler.draw)),
        (BaseSampler, "draw_rows", watch.of("draw", BaseSampler.draw_rows)),
        (Sampler, "prepare", watch.of("draw", Sampler.prepare)),
        (Noise, "__call__", watch.of("draw", Noise.__call__)),
        (expected, "draw_prefixes", watch.of_steps("draw", draw_prefixes)),
    ]
    patches = [mock.patch.object(*each) for each in parts]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def mixed_rows(n_rows: int = 2_000) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return eight numbers and six classes that depend on each other, and a class."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(n_rows, 2))
    numbers = common @ rng.normal(size=(2, 8)) + rng.normal(size=(n_rows, 8))
    numbers[:, 4:] = numbers[:, 4:] ** 2
    scores = common @ rng.normal(size=(2, 6)) + rng.normal(size=(n_rows, 6))
    classes = np.array(["low", "middle", "high", "top"])[
        np.stack([np.digitize(each, [-1.0, 0.0, 1.5]) for each in scores.T], axis=1)
    ]
    frame = pd.DataFrame(numbers, columns=[f"number {at + 1}" for at in range(8)])
    for at in range(6):
        frame[f"class {at + 1}"] = pd.Categorical(classes[:, at])
    score = numbers[:, 0] + numbers[:, 1] * (classes[:, 0] == "high") + scores[:, 1]
    return frame, pd.Series(score + rng.normal(size=n_rows) > 0, name="y").map(
        {True: "yes", False: "no"}
    )


def one_hot_forest() -> Any:  # noqa: ANN401
    """Return a pipeline that encodes classes for a forest."""
    classes = (OneHotEncoder(), make_column_selector(dtype_include="category"))
    return make_pipeline(make_column_transformer(classes, remainder="passthrough"), forest())


def forest() -> RandomForestClassifier:
    """Return a forest of 100 trees."""
    return RandomForestClassifier(100, min_samples_leaf=5, random_state=0)


PROBLEMS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "breast cancer": (lambda: load_breast_cancer(return_X_y=True, as_frame=True), forest),
    "one-hot pipeline": (mixed_rows, one_hot_forest),
    "digits": (lambda: load_digits(return_X_y=True, as_frame=True), forest),
}
"""How to load the rows and how to make the model, by name."""


def measure(name: str, graph: str | None, seconds: float) -> list[str]:
    """Return the line of a problem."""
    load, make = PROBLEMS[name]
    X, y = load()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    model = make().fit(X_train, y_train)
    watch = Stopwatch()
    with measured_calls(watch), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = dsage.explain(
            model,
            X_train,
            y_train,
            X_test,
            y_test,
            graph=graph,
            tolerance=TOLERANCE,
            n_jobs=1,
            seconds=seconds,
            random_state=0,
            progress=watch.listen,
        )
    watch.switch("rest")
    total = sum(watch.seconds.values())
    shares = {part: 100 * spent / total for part, spent in watch.seconds.items()}
    worst = float(found.se.max() / np.ptp(found.values))
    return [
        f"{name}, {X.shape[1]} features, {len(X_train):,} + {len(X_test):,} rows",
        "auto" if graph else "none",
        found.choices.sampler.name,
        f"{total:.1f}",
        f"{100 * worst:.1f}",
        *[f"{shares[part]:.0f}" for part in PARTS],
        "yes" if shares["draw"] <= MOST else "NO",
    ]


def main(seconds: float, only: str | None) -> None:
    """Measure and publish the table."""
    lines = []
    for name in PROBLEMS if only is None else [only]:
        for graph in ("auto", None):
            lines.append(measure(name, graph, seconds))
            print(lines[-1], flush=True)
    head = [
        "rows",
        "graph",
        "sampler",
        "seconds",
        "largest error",
        *PARTS.values(),
        "drawing at most 30 %",
    ]
    text = (
        f"`explain(tolerance={TOLERANCE}, seconds={seconds:.0f})` of forests of 100 trees, with "
        "the default graph and without one. Processor time in seconds, and its parts in %; the "
        "largest error is in % of the range of the values, above 5 if the time limit was reached. "
        "Predictions and draws for the check of the sampler count as such; those for its choice "
        "belong to the choice, which is made once and reused for the line without a graph."
    )
    if only is None:
        packages = ["dsage", "numpy", "scikit-learn"]
        publish("drawing_share", "Where the time goes", [(text, markdown(head, lines))], packages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--only", choices=PROBLEMS)
    given = parser.parse_args()
    main(given.seconds, given.only)
