"""Go beyond the paper: compare the cost of estimators to reach the same error."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from dsage.datasets import PAPER_GRAPHS
from dsage.estimate import AnyOf, Estimate, NOrderings, Tolerance
from experiments.beyond_figures import PLAIN, TABLE, describe, draw
from experiments.part import Part
from experiments.problem import FULL_DATA, MODELS, QUICK_DATA, Data, problem, run_quietly
from experiments.store import Line, Store, seed_of

_SAMPLED = {"first_level": "none", "exact": "never"}
_SAMPLED_SAGE = {"oracle": None, **_SAMPLED}

WAYS: dict[str, dict[str, Any]] = {
    PLAIN: {**_SAMPLED_SAGE, "orderings": "uniform"},
    "SAGE, orthogonal": {**_SAMPLED_SAGE, "orderings": "orthogonal"},
    "SAGE, herding": {**_SAMPLED_SAGE, "orderings": "herding"},
    "SAGE, levels": {"oracle": None},
    "SAGE, corrected": {"estimand": "sage"},
    "d-SAGE, skip": {**_SAMPLED, "semantics": "skip", "orderings": "uniform"},
    "d-SAGE, boundary": {**_SAMPLED, "orderings": "uniform"},
    "d-SAGE, levels": {},
    "d-SAGE, orthogonal": {"orderings": "orthogonal"},
    "d-SAGE, herding": {"orderings": "herding"},
}
"""Options of each way. Options that are not given have the library's defaults: antithetic
orderings, boundaries, a first level, and all orderings if they need few coalitions."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    graphs : sequence of str
        The graphs.
    data : Data
        Numbers of rows and trees.
    lm_tolerance, rf_tolerance : float
        Target for the largest standard error, as a share of the range of the values.
    lm_seconds, rf_seconds : float
        Time after which a run ends even if its error is larger.
    min_units : int
        Minimum number of units of a run; with fewer its error is too uncertain.
    rf_rows, rf_rows_per_ordering : int
        Test rows for the forest, and how many of them a unit is evaluated on. The linear model
        uses all rows, and the library's default per unit.
    """

    graphs: Sequence[str] = PAPER_GRAPHS
    data: Data = FULL_DATA
    lm_tolerance: float = 0.01
    rf_tolerance: float = 0.02
    lm_seconds: float = 3.0
    rf_seconds: float = 4.0
    min_units: int = 16
    rf_rows: int = 512
    rf_rows_per_ordering: int = 32


class PatientBudget:
    """Stop when the time is used up, but not before a minimum number of units.

    Parameters
    ----------
    seconds : float
        Time from now, including that of the first level.
    min_units : int
        Minimum number of units.
    """

    def __init__(self, seconds: float, min_units: int) -> None:
        self._end = time.perf_counter() + seconds
        self._min_units = min_units

    def reason(self, progress: Estimate) -> str | None:
        """Return why to stop, or None to continue."""
        is_ready = progress.n_units >= self._min_units and bool(np.isfinite(progress.se).all())
        return "the time is used up" if is_ready and time.perf_counter() >= self._end else None


def run(store: Store, sizes: Sizes) -> None:
    """Compute the table."""
    _warm_up()
    for name in sizes.graphs:
        for model in MODELS:
            for way in WAYS:
                # Ways with the same kind of orderings share the orderings.
                seed = seed_of(TABLE, name, model)
                key = {"graph": name, "model": model, "way": way}
                work = partial(_line, name, model, way, sizes, seed)
                store.unit(TABLE, key, work, seed=seed)


@cache
def _warm_up() -> None:
    """Run each way with each model on a few rows, untimed, once, so that code is loaded."""
    at = problem("dag_s(2)", Data(n_train=100, n_test=20, n_trees=2))
    for options, model in product(WAYS.values(), MODELS):
        game = at.game(model, n_rows=20, seed=0)
        everything = {"oracle": at.oracle, "audit": False} | options
        run_quietly(game, stopping=NOrderings(4), random_state=0, **everything)


def _line(name: str, model: str, way: str, sizes: Sizes, seed: int) -> list[Line]:
    at = problem(name, sizes.data)
    is_lm = model == "lm"
    game = at.game(model, n_rows=sizes.data.n_test if is_lm else sizes.rf_rows, seed=seed)
    before = game.n_predicted
    start = time.perf_counter()
    limit = PatientBudget(sizes.lm_seconds if is_lm else sizes.rf_seconds, sizes.min_units)
    tolerance = sizes.lm_tolerance if is_lm else sizes.rf_tolerance
    goal = Tolerance(tolerance, min_units=sizes.min_units)
    options = {"oracle": at.oracle, "audit": False} | WAYS[way]
    estimate = run_quietly(
        game,
        rows_per_ordering=None if is_lm else sizes.rf_rows_per_ordering,
        stopping=AnyOf([goal, limit]),
        random_state=seed,
        **options,
    )
    took = time.perf_counter() - start
    error = float(estimate.se.max() / np.ptp(estimate.values))
    is_reached = goal.reason(estimate) is not None
    # Errors fall with the square root of the number of evaluations.
    times = 1.0 if is_reached else max((error / goal.relative) ** 2, 1.0)
    line = {
        "tolerance": goal.relative,
        "n_rows": game.n_rows,
        "n_orderings": float(estimate.n_orderings),
        "n_units": estimate.n_units,
        "is_exact": estimate.is_exact,
        "n_evaluated": estimate.n_evaluated,
        "n_predictions": game.n_predicted - before,
        "seconds": took,
        "error": error,
        "is_reached": is_reached,
        "evaluations_needed": estimate.n_evaluated * times,
        "predictions_needed": (game.n_predicted - before) * times,
        "seconds_needed": took * times,
    }
    return [line]


BEYOND = Part(
    name="beyond",
    title="Beyond the paper: boundaries, levels, corrected SAGE, better orderings",
    run=run,
    quick=Sizes(
        # These two take as long as all other graphs.
        graphs=[name for name in PAPER_GRAPHS if name not in ("dag_l(2)", "dag_l(4)")],
        data=QUICK_DATA,
        lm_tolerance=0.05,
        rf_tolerance=0.1,
        lm_seconds=0.1,
        rf_seconds=0.3,
        min_units=8,
        rf_rows=64,
        rf_rows_per_ordering=16,
    ),
    full=Sizes(),
    draw=draw,
    describe=describe,
)
