"""Measure `explain` with its defaults, from a tiny table to a thousand features.

Run: python -m benchmarks.defaults [--only NAME ...] [--profile]

Every case runs in its own process. With `--only`, the other published lines stay. `--profile`
prints how a case spends its time.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import pstats
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.linear_model import LinearRegression

from benchmarks import workloads
from benchmarks.drawing_share import PARTS, Stopwatch, measured_calls
from benchmarks.measured import answer, ask, measured
from benchmarks.structure_problems import additive, choose_target
from benchmarks.table import cells, markdown, publish, published
from benchmarks.workloads import Workload
from dsage.explain import explain
from dsage.graphs import random_dag, random_linear_gaussian

GB = 1e9
# How long a case may take: so many times its limit, at least and at most so many seconds.
_TIMES, _LEAST, _MOST = 2.0, 90.0, 660.0


@dataclass(frozen=True)
class Case:
    """What to explain, and the seconds and bytes that it may take; None for no limit."""

    make: Callable[[], Workload]
    seconds: float
    n_bytes: float | None = None


def tiny() -> Workload:
    """Return 30 rows of four features."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
    y = X @ [1.0, 2.0, 0.0, 0.5] + 0.1 * rng.normal(size=60)
    model = LinearRegression().fit(X[:30], y[:30])
    return Workload("tiny", model, X[:30], y[:30], X[30:], y[30:])


def wide(n_features: int, kind: str, n_rows: int = 5_000) -> Workload:
    """Return many features: linear with a linear model, or non-linear with LightGBM."""
    graph = random_dag(n_features + 1, 3, random_state=n_features)
    if kind == "linear":
        target = choose_target(graph, n_features)
        data = random_linear_gaussian(graph, random_state=0).sample(n_rows, random_state=0)
        model = LinearRegression()
    else:
        target = choose_target(graph, n_features)
        data = additive(graph, n_rows, n_features)
        model = LGBMRegressor(n_estimators=100, verbose=-1, n_jobs=1, random_state=0)
    X, y = data.drop(columns=target), data[target]
    half = n_rows // 2
    model.fit(X[:half], y[:half])
    return Workload(f"{n_features}", model, X[:half], y[:half], X[half:], y[half:])


def long(kind: str, n_rows: int = 1_000_000) -> Workload:
    """Return very many evaluation rows of ten features."""
    graph = random_dag(11, 3, random_state=0)
    data = random_linear_gaussian(graph, random_state=0).sample(n_rows + 5_000, random_state=0)
    target = choose_target(graph, 0)
    X, y = data.drop(columns=target), data[target]
    light = LGBMRegressor(n_estimators=100, verbose=-1, n_jobs=1, random_state=0)
    model = LinearRegression() if kind == "linear" else light
    model.fit(X[:5_000], y[:5_000])
    return Workload("long", model, X[:5_000], y[:5_000], X[5_000:], y[5_000:])


def _of(name: str) -> Callable[[], Workload]:
    return functools.partial(workloads.make, name)


CASES: dict[str, Case] = {
    "tiny, linear": Case(tiny, 1.0),
    "diabetes, forest": Case(_of("diabetes, forest"), 3.0),
    "breast cancer, forest": Case(_of("breast cancer, forest"), 15.0),
    "breast cancer, boosting": Case(_of("breast cancer, boosting"), 15.0),
    "wine, network": Case(_of("wine, network"), 5.0),
    "wine, boosting": Case(_of("wine, boosting"), 5.0),
    "digits, logistic": Case(_of("digits, logistic"), 60.0),
    "50 features, LightGBM": Case(_of("non-linear 50, LightGBM"), 30.0),
    "300 features, linear": Case(functools.partial(wide, 300, "linear"), 30.0),
    "300 features, LightGBM": Case(functools.partial(wide, 300, "LightGBM"), 120.0),
    "1,000 features, linear": Case(functools.partial(wide, 1_000, "linear"), 600.0, 4 * GB),
    "1,000 features, LightGBM": Case(functools.partial(wide, 1_000, "LightGBM"), 600.0, 4 * GB),
    "1,000,000 rows, linear": Case(functools.partial(long, "linear"), 30.0, GB),
    "1,000,000 rows, LightGBM": Case(functools.partial(long, "LightGBM"), 30.0, GB),
}
"""The cases by name: table and model."""


def run_case(name: str, *, is_profiled: bool) -> None:
    """Explain a case in this process, and answer what it took."""
    work = CASES[name].make()
    watch, profiler = Stopwatch(), cProfile.Profile()
    rows = work.X_train, work.y_train, work.X_test, work.y_test
    warnings.simplefilter("ignore")
    with measured_calls(watch), measured() as found:
        watch.switch("rest")
        watch.seconds.update(dict.fromkeys(PARTS, 0.0))
        if is_profiled:
            profiler.enable()
        result = explain(work.model, *rows, random_state=0, progress=watch.listen)
        profiler.disable()
        watch.switch("rest")
    if is_profiled:
        for order in ("tottime", "cumulative"):
            pstats.Stats(profiler).sort_stats(order).print_stats(45)
    used = result.choices
    answer(
        {
            "wall": found.wall,
            "cpu": found.cpu,
            "more": found.more,
            "parts": watch.seconds,
            "sampler": used.sampler.name,
            "graph": "used" if used.graph.is_used else "not used",
            "stopped": str(result.estimate.reason),
            "phases": dict(vars(used.seconds)),
        }
    )


def line_of(name: str) -> list[str]:
    """Return the line of a case."""
    case = CASES[name]
    limit = f"{case.seconds:g} s" + ("" if case.n_bytes is None else f", {case.n_bytes / GB:g} GB")
    # The rows and the model are made in the same process.
    patience = min(max(_TIMES * case.seconds, _LEAST), _MOST)
    try:
        found = ask("benchmarks.defaults", "--case", name, timeout=patience)
    except subprocess.TimeoutExpired:
        return [name, "", "", f"> {patience:g}", *[""] * (2 + len(PARTS)), limit, "NO"]
    total = max(sum(found["parts"].values()), 1e-9)
    shares = {part: 100 * spent / total for part, spent in found["parts"].items()}
    is_kept = found["wall"] <= case.seconds
    if case.n_bytes is not None:
        is_kept &= found["more"] <= case.n_bytes
    return [
        name,
        found["sampler"],
        found["graph"],
        f"{found['wall']:.1f}",
        f"{found['cpu']:.1f}",
        f"{found['more'] / 1e6:,.0f}",
        *[f"{shares[part]:.0f}" for part in PARTS],
        limit,
        "yes" if is_kept else "NO",
    ]


def main() -> None:
    """Measure and publish the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    if given.case is not None:
        run_case(given.case, is_profiled=False)
        return
    if given.profile:
        for name in given.only:
            run_case(name, is_profiled=True)
        return
    found = {line[0]: line for line in cells(published("defaults")[0][1])}
    for name in given.only:
        found[name] = line_of(name)
        print(" | ".join(found[name]), flush=True)
    lines = [found[name] for name in CASES if name in found]
    left_out = [name for name in CASES if name not in found]
    head = ["rows and model", "sampler", "graph", "seconds", "processor", "MB"]
    head += [*PARTS.values(), "limit", "kept"]
    text = (
        "`explain(model, X_train, y_train, X_test, y_test)` with no other option but a seed, each "
        "in its own process, without the time of imports: seconds, processor time, peak memory "
        "beyond what was in use before the call, and the parts of the processor time in %. In "
        "long cases a helper process uses the other processor; its time and memory, including its "
        "libraries, are counted, but the parts are those of the main process. Cases that take far "
        "longer than their limit are stopped."
    )
    if len(given.only) < len(CASES):
        text += " The lines were not all measured in one run."
    if left_out:
        text += f" Not measured here: {'; '.join(left_out)}."
    packages = ["dsage", "numpy", "scikit-learn", "lightgbm"]
    publish("defaults", "The defaults", [(text, markdown(head, lines))], packages)


if __name__ == "__main__":
    main()
