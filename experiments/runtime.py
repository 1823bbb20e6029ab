"""Reproduce the paper's Figure 3: time of SAGE and d-SAGE along the same orderings."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from dsage.datasets import PAPER_GRAPHS
from experiments.part import Part
from experiments.problem import (
    ALGORITHM_1,
    FULL_DATA,
    MODELS,
    QUICK_DATA,
    Data,
    problem,
    run_quietly,
    uniform_orderings,
)
from experiments.runtime_figures import ALONE, TABLE, describe, draw
from experiments.simulate import Questions
from experiments.store import Line, Store, seed_of


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    graphs : sequence of str
        The graphs.
    data : Data
        Numbers of rows and trees.
    n_rows : int
        Test rows that each ordering is evaluated on.
    n_draws : int
        Draws per row and coalition.
    n_orderings : mapping of int to int
        Number of orderings, by the number of nodes.
    n_times : int
        Number of repetitions, of which the shortest counts.
    """

    graphs: Sequence[str] = PAPER_GRAPHS
    data: Data = FULL_DATA
    n_rows: int = 256
    n_draws: int = 10
    n_orderings: Mapping[int, int] = field(default_factory=lambda: {10: 12, 20: 8, 50: 4, 100: 3})
    n_times: int = 2


def run(store: Store, sizes: Sizes) -> None:
    """Compute the tables."""
    for name in sizes.graphs:
        for model in MODELS:
            seed = seed_of(TABLE, name, sizes.n_rows)
            key = {"graph": name, "model": model}
            store.unit(TABLE, key, partial(_lines, name, model, sizes, seed), seed=seed)
            store.unit(ALONE, key, partial(_alone_lines, name, model, sizes, seed), seed=seed)


def _lines(name: str, model: str, sizes: Sizes, seed: int) -> list[Line]:
    at = problem(name, sizes.data)
    n_features = at.X.shape[1]
    orderings = uniform_orderings(n_features, sizes.n_orderings[n_features + 1], seed)
    ways = {"SAGE": None, "d-SAGE": at.oracle}
    times: dict[str, list[float]] = {values: [] for values in ways}
    lines: dict[str, Line] = {}
    # The first call loads code and is not timed.
    for values, first in [("SAGE", 1), *[(way, None) for way in ways] * sizes.n_times]:
        game = at.game(model, n_rows=sizes.n_rows, seed=seed, draws=sizes.n_draws)
        start = time.perf_counter()
        result = run_quietly(
            game,
            oracle=ways[values],
            orderings=orderings[:first],
            audit=False,
            random_state=seed,
            **ALGORITHM_1,
        )
        took = time.perf_counter() - start
        if first is None:
            times[values].append(took)
            lines[values] = {
                "values": values,
                "n_orderings": len(orderings),
                "n_rows": sizes.n_rows,
                "n_draws": sizes.n_draws,
                "seconds": min(times[values]),
                "seconds_graph": at.search.seconds if values == "d-SAGE" else 0.0,
                "n_predictions": game.n_predicted - sizes.n_rows,
                "share_skipped": float(result.share_skipped.mean()),
            }
    return list(lines.values())


def _alone_lines(name: str, model: str, sizes: Sizes, seed: int) -> list[Line]:
    """Time each surplus separately, with both of its risks, and those that a graph would skip."""
    at = problem(name, sizes.data)
    n_features = at.X.shape[1]
    orderings = uniform_orderings(n_features, sizes.n_orderings[n_features + 1], seed)
    known, feature = _questions(orderings)
    game = at.game(model, n_rows=sizes.n_rows, seed=seed, draws=sizes.n_draws)
    rows = np.arange(sizes.n_rows)
    both = np.stack([known, known], axis=1)
    both[np.arange(len(known)), 1, feature] = True
    times = np.empty((sizes.n_times, len(known)))
    with threadpool_limits(1):
        game.risks(known[:1], rows)
        for each in times:
            for number, pair in enumerate(both):
                start = time.perf_counter()
                game.risks(pair, rows, epoch=number // n_features)
                each[number] = time.perf_counter() - start
    took = times[times.sum(axis=1).argmin()]
    line = {
        "n_orderings": len(orderings),
        "n_rows": sizes.n_rows,
        "n_draws": sizes.n_draws,
        "seconds": took.sum(),
    }
    for oracle, suffix in ((at.oracle, ""), (at.true_oracle, "_true")):
        start = time.perf_counter()
        is_skipped = oracle.separated(known)[np.arange(len(known)), feature]
        line[f"seconds_asked{suffix}"] = time.perf_counter() - start
        line[f"seconds_skipped{suffix}"] = took[is_skipped].sum()
        line[f"share_skipped{suffix}"] = is_skipped.mean()
    return [line]


def _questions(orderings: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the coalition before each position of each ordering, and the feature there."""
    questions = Questions(np.array(orderings))
    return questions.known(), questions.orderings.ravel()


RUNTIME = Part(
    name="runtime",
    title="Runtime of SAGE and d-SAGE (Figure 3)",
    run=run,
    quick=Sizes(data=QUICK_DATA, n_rows=64, n_orderings={10: 10, 20: 10, 50: 5, 100: 3}),
    full=Sizes(),
    draw=draw,
    describe=describe,
)
