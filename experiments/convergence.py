"""The paper's appendix E: how values settle as orderings are added."""

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

# Looks that are kept: enough for a curve.
_N_LOOKS = 12


@dataclass(frozen=True)
class Sizes:
    """How much is estimated.

    graphs : sequence of str
        The graphs.
    curves : sequence of str
        Those of them whose values are kept, feature by feature.
    data : Data
        Rows and trees.
    lm_orderings, rf_orderings : mappings of int to int
        Orderings of each model, by the number of nodes.
    lm_rows, rf_rows : int
        Test rows for each model.
    n_draws : int
        Draws for each row and coalition; for the linear model, too, as in the paper.
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
    """Make the tables."""
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
    """Return SAGE and d-SAGE along the same orderings, with their histories; made once."""
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
    """Return the features with the largest and with the smallest values, by SAGE at the end."""
    order = np.argsort(-runs["SAGE"].values, kind="stable")
    n_each = min(TOP, len(order) // 2)
    return dict(zip(GROUPS, (order[:n_each], order[-n_each:]), strict=True))


def _looks(known: Estimate) -> list[int]:
    """Return which looks are kept: the last, and others at about equal ratios of orderings."""
    counts = known.history.n_units
    wanted = np.geomspace(min(8, counts[-1]), counts[-1], _N_LOOKS)
    return sorted({int(np.abs(counts - n).argmin()) for n in wanted})


def _errors(runs: partial[dict[str, Estimate]]) -> list[Line]:
    """Return the mean standard error of each group at each look."""
    both = runs()
    groups = _groups(both)
    scale = float(np.ptp(both["SAGE"].values))
    lines: list[Line] = []
    for values, known in both.items():
        for look in _looks(known):
            for group, features in groups.items():
                se = known.history.se[look, features]
                # The mean over orderings of a surplus that is always skipped is known at once.
                settled = (se <= 0.01 * scale).mean()
                lines.append(
                    {
                        "values": values,
                        "group": group,
                        "n_features": len(features),
                        "n_orderings": int(known.history.n_units[look]),
                        "mean_se": round_digits(float(se.mean())),
                        "share_settled": round_digits(float(settled), 4),
                        "share_zero": round_digits(
                            float((known.history.values[look, features] == 0).mean()), 4
                        ),
                        "range": round_digits(scale),
                        "seconds": round_digits(float(known.history.seconds[look]), 4),
                    }
                )
    return lines


def _curves(runs: partial[dict[str, Estimate]]) -> list[Line]:
    """Return the values of each feature of the groups at each look."""
    both = runs()
    names = both["SAGE"].feature_names
    return [
        {
            "values": values,
            "group": group,
            "feature": names[at],
            "n_orderings": int(known.history.n_units[look]),
            "value": round_digits(known.history.values[look, at], 4),
            "se": round_digits(known.history.se[look, at], 3),
        }
        for group, features in _groups(both).items()
        for values, known in both.items()
        for at in features
        for look in _looks(known)
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
