"""Reproduce the paper's Figure 4 and appendix D: SAGE and d-SAGE along the same orderings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np

from dsage.datasets import PAPER_GRAPHS
from dsage.estimate import Estimate, NOrderings
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
    uniform_orderings,
)
from experiments.store import Line, Store, seed_of
from experiments.values_figures import FEATURES, QUANTILES, SUMMARY, TOP, describe, draw


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    graphs : sequence of str
        The graphs.
    data : Data
        Numbers of rows and trees.
    n_runs : int
        Number of runs, each with new orderings and draws but the same models and rows.
    lm_orderings : int
        Orderings per run for the linear model, which uses all test rows and no draws.
    rf_orderings : mapping of int to int
        Orderings per run for the forest, by the number of nodes.
    rf_rows : int
        Test rows for the forest.
    n_draws : int
        Draws per row and coalition for the forest.
    n_jobs : int
        Threads of the forest.
    """

    graphs: Sequence[str] = PAPER_GRAPHS
    data: Data = FULL_DATA
    n_runs: int = 5
    lm_orderings: int = 200
    rf_orderings: Mapping[int, int] = field(
        default_factory=lambda: {10: 60, 20: 30, 50: 12, 100: 6}
    )
    rf_rows: int = 128
    n_draws: int = 10
    n_jobs: int = 2


def run(store: Store, sizes: Sizes) -> None:
    """Compute the tables."""
    for name in sizes.graphs:
        for model in MODELS:
            for number in range(sizes.n_runs):
                seed = seed_of("values", name, model, number)
                key = {"graph": name, "model": model, "run": number}
                # Both tables share one estimate, which is repeated if interrupted in between.
                estimate = partial(_estimate_once, name, model, sizes, seed, {})
                first = partial(_rank_features, name, model, sizes.data)
                store.unit(FEATURES, key, partial(_features, estimate, first), seed=seed)
                store.unit(SUMMARY, key, partial(_summary, estimate), seed=seed)


def _estimate_once(
    name: str, model: str, sizes: Sizes, seed: int, memory: dict[str, Estimate]
) -> Estimate:
    """Return d-SAGE by Algorithm 1 with its audit along the same orderings, computed once."""
    if "estimate" not in memory:
        at = problem(name, sizes.data)
        n_features = at.X.shape[1]
        is_lm = model == "lm"
        n_orderings = sizes.lm_orderings if is_lm else sizes.rf_orderings[n_features + 1]
        game = at.game(
            model,
            n_rows=sizes.data.n_test if is_lm else sizes.rf_rows,
            seed=seed,
            draws=None if is_lm else sizes.n_draws,
            n_jobs=sizes.n_jobs,
        )
        memory["estimate"] = run_quietly(
            game,
            oracle=at.oracle,
            orderings=uniform_orderings(n_features, n_orderings, seed),
            random_state=seed,
            **ALGORITHM_1,
        )
    return memory["estimate"]


def _split(estimate: Estimate) -> tuple[np.ndarray, np.ndarray]:
    """Return the SAGE values, and d-SAGE minus SAGE, along the same orderings."""
    if estimate.audit is None:
        raise RuntimeError("the estimate has no audit")
    return estimate.values + estimate.audit.values, -estimate.audit.values


@lru_cache(maxsize=1)
def _rank_features(name: str, model: str, data: Data) -> np.ndarray:
    """Return the most important features by a cheap game, which is the same for all runs."""
    game = problem(name, data).game(model, n_rows=data.n_test, seed=0)
    cheap = game.first_level()
    if cheap is None:
        raise RuntimeError("a regression model has a linear game")
    result = run_quietly(cheap, stopping=NOrderings(200), audit=False, random_state=0)
    return np.argsort(-result.values, kind="stable")[:TOP]


def _features(run_once: partial[Estimate], first: partial[np.ndarray]) -> list[Line]:
    """Return the values of the most important features, and their skipped surpluses."""
    estimate = run_once()
    sage, difference = _split(estimate)
    surpluses = estimate.skipped_surpluses.groupby("feature")["surplus"]
    lines: list[Line] = []
    for rank, at in enumerate(first(), start=1):
        feature = estimate.feature_names[at]
        line: dict[str, object] = {
            "feature": feature,
            "rank": rank,
            "sage": round_digits(sage[at]),
            "difference": round_digits(difference[at], 4),
            "n_skipped": 0,
        }
        if feature in surpluses.groups:
            skipped = surpluses.get_group(feature).to_numpy()
            quantiles = np.quantile(skipped, list(QUANTILES.values()))
            line |= {"n_skipped": len(skipped)}
            line |= {
                name: round_digits(value, 4)
                for name, value in zip(QUANTILES, quantiles, strict=True)
            }
        lines.append(line)
    return lines


def _summary(run_once: partial[Estimate]) -> list[Line]:
    """Return one line that summarizes all features."""
    estimate = run_once()
    sage, difference = _split(estimate)
    surpluses = estimate.skipped_surpluses["surplus"].to_numpy()
    top = np.argsort(-sage, kind="stable")[:5]
    line = {
        "n_features": len(sage),
        "n_orderings": estimate.n_orderings,
        "n_rows": int(estimate.skipped_surpluses["n_rows"].max()) if len(surpluses) else 0,
        "share_skipped": float(estimate.share_skipped.mean()),
        "largest_value": float(sage.max()),
        "sum_of_values": float(sage.sum()),
        "largest_difference": float(np.abs(difference).max()),
        "sum_of_differences": float(difference.sum()),
        # Change of the five largest values, relative to their sum.
        "change_top": float(np.abs(difference[top]).sum() / sage[top].sum()),
        "largest_surplus": float(np.abs(surpluses).max()) if len(surpluses) else 0.0,
        "median_surplus": float(np.median(np.abs(surpluses))) if len(surpluses) else 0.0,
    }
    return [line]


VALUES = Part(
    name="values",
    title="SAGE values, and d-SAGE along the same orderings (Figure 4, appendix D)",
    run=run,
    quick=Sizes(
        data=QUICK_DATA,
        lm_orderings=30,
        rf_orderings={10: 10, 20: 6, 50: 4, 100: 3},
        rf_rows=48,
    ),
    full=Sizes(),
    draw=draw,
    describe=describe,
)
