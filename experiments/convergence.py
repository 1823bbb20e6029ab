"""Reproduce the paper's appendix E: convergence of the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from dsage.datasets import PAPER_GRAPHS
from dsage.estimate import Estimate, NOrderings
from experiments.convergence_figures import CURVES, ERRORS, GROUPS, TOP, describe, draw
from experiments.part import Part
from experiments.problem import (
    ALGORITHM_1,
    FULL_DATA,
    MODELS,
    QUICK_DATA,
    Data,
    problem,
    round_digits,
    run_quietly,
)
from experiments.store import Line, Store, seed_of

# Number of looks per curve.
_N_LOOKS = 12


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    graphs : sequence of str
        The graphs.
    curves : sequence of str
        Graphs for which the values of each feature are stored.
    data : Data
        Numbers of rows and trees.
    lm_orderings, rf_orderings : mappings of int to int
        Orderings of each model, by the number of nodes.
    lm_rows, rf_rows : int
        Test rows for each model.
    n_draws : int
        Draws per row and coalition, also for the linear model, as in the paper.
    n_jobs : int
        Threads of the forest.
    """

    graphs: Sequence[str] = PAPER_GRAPHS
    curves: Sequence[str] = ("dag_m(2)", "dag_m(4)")
    data: Data = FULL_DATA
    lm_orderings: Mapping[int, int] = field(
        default_factory=lambda: {10: 400, 20: 400, 50: 300, 100: 120}
    )
    rf_orderings: Mapping[int, int] = field(
        default_factory=lambda: {10: 300, 20: 300, 50: 150, 100: 60}
    )
    lm_rows: int = 128
    rf_rows: int = 64
    n_draws: int = 10
    n_jobs: int = 2


def run(store: Store, sizes: Sizes) -> None:
    """Compute the tables."""
    for model in MODELS:
        for name in sizes.graphs:
            seed = seed_of("convergence", name, model)
            key = {"graph": name, "model": model}
            runs = partial(_runs, name, model, sizes, seed, {})
            store.unit(ERRORS, key, partial(_errors, runs), seed=seed)
            if name in sizes.curves:
                store.unit(CURVES, key, partial(_curves, runs), seed=seed)


def _runs(
    name: str, model: str, sizes: Sizes, seed: int, memory: dict[str, Estimate]
) -> dict[str, Estimate]:
    """Return SAGE and d-SAGE along the same orderings with their histories, computed once."""
    if not memory:
        at = problem(name, sizes.data)
        by_size = sizes.lm_orderings if model == "lm" else sizes.rf_orderings
        n_rows = sizes.lm_rows if model == "lm" else sizes.rf_rows
        for values, oracle in (("SAGE", None), ("d-SAGE", at.oracle)):
            game = at.game(
                model, n_rows=n_rows, seed=seed, draws=sizes.n_draws, n_jobs=sizes.n_jobs
            )
            memory[values] = run_quietly(
                game,
                oracle=oracle,
                orderings="uniform",
                rows_per_ordering=n_rows,
                audit=False,
                stopping=NOrderings(by_size[at.X.shape[1] + 1]),
                random_state=seed,
                **ALGORITHM_1,
            )
    return memory


def _groups(runs: dict[str, Estimate]) -> dict[str, np.ndarray]:
    """Return the features with the largest and the smallest final SAGE values."""
    order = np.argsort(-runs["SAGE"].values, kind="stable")
    n_each = min(TOP, len(order) // 2)
    return dict(zip(GROUPS, (order[:n_each], order[-n_each:]), strict=True))


def _looks(estimate: Estimate) -> list[int]:
    """Choose the last look and others whose numbers of orderings have about equal ratios."""
    counts = estimate.history.n_units
    wanted = np.geomspace(min(8, counts[-1]), counts[-1], _N_LOOKS)
    return sorted({int(np.abs(counts - n).argmin()) for n in wanted})


def _errors(runs: partial[dict[str, Estimate]]) -> list[Line]:
    """Return the mean standard error of each group at each look."""
    both = runs()
    groups = _groups(both)
    scale = float(np.ptp(both["SAGE"].values))
    lines: list[Line] = []
    for values, estimate in both.items():
        for look in _looks(estimate):
            for group, features in groups.items():
                se = estimate.history.se[look, features]
                # A feature that is always skipped has no error from the start.
                settled = (se <= 0.01 * scale).mean()
                lines.append(
                    {
                        "values": values,
                        "group": group,
                        "n_features": len(features),
                        "n_orderings": int(estimate.history.n_units[look]),
                        "mean_se": round_digits(float(se.mean())),
                        "share_settled": round_digits(float(settled), 4),
                        "share_zero": round_digits(
                            float((estimate.history.values[look, features] == 0).mean()), 4
                        ),
                        "range": round_digits(scale),
                        "seconds": round_digits(float(estimate.history.seconds[look]), 4),
                    }
                )
    return lines


def _curves(runs: partial[dict[str, Estimate]]) -> list[Line]:
    """Return the values of the features of both groups at each look."""
    both = runs()
    names = both["SAGE"].feature_names
    return [
        {
            "values": values,
            "group": group,
            "feature": names[at],
            "n_orderings": int(estimate.history.n_units[look]),
            "value": round_digits(estimate.history.values[look, at], 4),
            "se": round_digits(estimate.history.se[look, at], 3),
        }
        for group, features in _groups(both).items()
        for values, estimate in both.items()
        for at in features
        for look in _looks(estimate)
    ]


CONVERGENCE = Part(
    name="convergence",
    title="Convergence of values (appendix E)",
    run=run,
    quick=Sizes(
        data=QUICK_DATA,
        lm_orderings={10: 100, 20: 100, 50: 100, 100: 40},
        rf_orderings={10: 40, 20: 40, 50: 40, 100: 40},
        lm_rows=32,
        rf_rows=32,
    ),
    full=Sizes(),
    draw=draw,
    describe=describe,
)
