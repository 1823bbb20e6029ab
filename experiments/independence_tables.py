"""Decide along orderings which features are independent of the target, by graphs and tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import networkx as nx
import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from dsage.datasets import PAPER_GRAPHS, PaperGraph, paper_graph
from dsage.graphs import Graph, Oracle
from dsage.structure import Moments, search_graph
from experiments.partial_correlation import (
    has_pingouin,
    has_zero_bound,
    p_values,
    partial_correlations,
    pingouin_p_values,
)
from experiments.simulate import Questions, simulate_moments, warm_up
from experiments.store import Line, Store, seed_of
from experiments.structure_tables import METHODS

TABLE = "independence"
PINGOUIN = "independence_pingouin"
PUBLISHED = "independence_published"

LEVELS = (0.05, 0.01, 0.001)
"""Significance levels; the paper uses the first."""

PUBLISHED_ROWS = 1_000_000

Bools = npt.NDArray[np.bool_]
T = TypeVar("T")


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    graphs : sequence of str
        The graphs.
    n_rows : int
        Number of rows of a data set.
    n_runs : int
        Number of data sets.
    n_orderings : int
        Number of orderings.
    n_networkx : int
        Number of orderings for networkx, which is slower.
    n_pingouin : int
        Number of tests with pingouin, which is slower still. They are rounded down to whole
        orderings of the first run, but to at least one.
    published : sequence of str
        Graphs for which the rule of the paper's script is applied to a million rows.
    """

    graphs: Sequence[str] = PAPER_GRAPHS
    n_rows: int = 10_000
    n_runs: int = 5
    n_orderings: int = 100
    n_networkx: int = 100
    n_pingouin: int = 2_500
    published: Sequence[str] = PAPER_GRAPHS


def run(store: Store, sizes: Sizes) -> None:
    """Compute the tables; that of pingouin only if it is installed."""
    warm_up()
    for name in sizes.graphs:
        for number in range(sizes.n_runs):
            seed = seed_of(TABLE, name, sizes.n_rows, number)
            key = {"graph": name, "run": number}
            store.unit(TABLE, key, partial(_lines, name, sizes, seed), seed=seed)
    if has_pingouin():
        for name in sizes.graphs:
            seed = seed_of(TABLE, name, sizes.n_rows, 0)
            key = {"graph": name, "run": 0}
            store.unit(PINGOUIN, key, partial(_pingouin_lines, name, sizes, seed), seed=seed)
    for name in sizes.published:
        seed = seed_of(TABLE, name, PUBLISHED_ROWS, 0)
        key = {"graph": name, "run": 0}
        store.unit(PUBLISHED, key, partial(_published_lines, name, sizes, seed), seed=seed)


def _lines(name: str, sizes: Sizes, seed: int) -> list[Line]:
    """Query two learned graphs, and test at three levels."""
    model = paper_graph(name)
    moments, took = simulate_moments(model, sizes.n_rows, seed)
    questions, truth = _draw_questions(model, sizes, seed)
    lines: list[Line] = []
    for method in ("tabu", "default"):
        graph, learning = _time(partial(_learn, moments, method))
        oracle, preparing = _time(partial(_prepare_oracle, graph, model.target))
        answers, asking = _time(partial(questions.answers, oracle))
        line = _count(answers, truth) | {"way": f"graph: {method}", "n_rows": sizes.n_rows}
        before = took + learning + preparing
        lines.append(line | {"seconds": asking, "seconds_before": before})
        if method == "tabu":
            lines.append(_networkx_line(model, graph, questions.first(sizes.n_networkx), truth))
    covariance = _covariance(model, moments)

    def run_tests(some: Questions) -> npt.NDArray[np.float64]:
        return p_values(partial_correlations(covariance, some), sizes.n_rows)

    # The first call loads code.
    run_tests(questions.first(1))
    tests, testing = _time(partial(run_tests, questions))
    for level in LEVELS:
        line = _count(tests > level, truth) | {"way": f"test: {level}", "n_rows": sizes.n_rows}
        lines.append(line | {"seconds": testing, "seconds_before": took})
    return lines


def _learn(moments: Moments, method: str) -> Graph:
    return search_graph(moments, **METHODS[method]).graph


def _prepare_oracle(graph: Graph, target: str) -> Oracle:
    """Return an oracle after a first query, which prepares the sweeps of the graph."""
    oracle = graph.oracle(target)
    oracle.separated(np.zeros((1, len(graph) - 1), dtype=np.bool_))
    return oracle


def _networkx_line(model: PaperGraph, graph: Graph, questions: Questions, truth: Bools) -> Line:
    """Query the graph as in the paper, one question at a time with networkx."""
    features = [name for name in model.graph.names if name != model.target]
    network = graph.to_networkx()

    def ask() -> Bools:
        return np.array(
            [
                [
                    nx.is_d_separator(
                        network,
                        {features[feature]},
                        {model.target},
                        {features[other] for other in ordering[:k]},
                    )
                    for k, feature in enumerate(ordering)
                ]
                for ordering in questions.orderings
            ]
        )

    answers, seconds = _time(ask)
    line = _count(answers, truth[: len(answers)])
    return line | {"way": "networkx: tabu", "seconds": seconds, "seconds_before": np.nan}


def _pingouin_lines(name: str, sizes: Sizes, seed: int) -> list[Line]:
    """Test with pingouin, and count disagreements with our own test."""
    model = paper_graph(name)
    data = model.sample(sizes.n_rows, random_state=seed)
    questions, truth = _draw_questions(model, sizes, seed)
    n_orderings = max(sizes.n_pingouin // questions.orderings.shape[1], 1)
    questions, truth = questions.first(n_orderings), truth[:n_orderings]
    # The first call loads code.
    pingouin_p_values(data, model.target, Questions(questions.orderings[:1, :2]))
    theirs, seconds = _time(lambda: pingouin_p_values(data, model.target, questions))
    covariance = _covariance(model, Moments.from_frame(data))
    ours = p_values(partial_correlations(covariance, questions), sizes.n_rows)
    return [
        _count(theirs > LEVELS[0], truth)
        | {
            "way": f"pingouin: {LEVELS[0]}",
            "n_rows": sizes.n_rows,
            "seconds": seconds,
            "n_other": int(((theirs > LEVELS[0]) != (ours > LEVELS[0])).sum()),
        }
    ]


def _published_lines(name: str, sizes: Sizes, seed: int) -> list[Line]:
    """Apply the rule of the paper's script and a proper test to a million rows."""
    model = paper_graph(name)
    moments, _ = simulate_moments(model, PUBLISHED_ROWS, seed)
    questions, truth = _draw_questions(model, sizes, seed)
    correlations = partial_correlations(_covariance(model, moments), questions)
    few = simulate_moments(model, sizes.n_rows, seed)[0]
    with_few = partial_correlations(_covariance(model, few), questions)
    ways = {
        ("rule", PUBLISHED_ROWS): has_zero_bound(correlations, PUBLISHED_ROWS),
        ("rule", sizes.n_rows): has_zero_bound(with_few, sizes.n_rows),
        ("test: 0.05", PUBLISHED_ROWS): p_values(correlations, PUBLISHED_ROWS) > LEVELS[0],
    }
    return [
        _count(answers, truth) | {"way": way, "n_rows": n_rows}
        for (way, n_rows), answers in ways.items()
    ]


def _draw_questions(model: PaperGraph, sizes: Sizes, seed: int) -> tuple[Questions, Bools]:
    """Return the questions along random orderings, and the true answers."""
    questions = Questions.draw(len(model.graph) - 1, sizes.n_orderings, seed)
    return questions, questions.answers(model.graph.oracle(model.target))


def _covariance(model: PaperGraph, moments: Moments) -> npt.NDArray[np.float64]:
    """Return the covariance matrix of the features in the graph's order and, last, the target."""
    features = [name for name in model.graph.names if name != model.target]
    return moments.select([*features, model.target]).covariance


def _count(answers: Bools, truth: Bools) -> dict[str, Any]:
    return {
        "n_tests": answers.size,
        "tp": int((answers & truth).sum()),
        "tn": int((~answers & ~truth).sum()),
        "fp": int((answers & ~truth).sum()),
        "fn": int((~answers & truth).sum()),
        "accuracy": float((answers == truth).mean()),
    }


def _time(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result of a call on one thread, and its seconds."""
    with threadpool_limits(1):
        began = time.perf_counter()
        result = work()
        return result, time.perf_counter() - began
