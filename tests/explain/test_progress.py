"""What a run reports while it runs."""

from importlib import import_module

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import dsage
from dsage.estimate.rivals import check_sampler_of_run
from dsage.result.events import (
    CostExpected,
    EstimateProgressed,
    Phase,
    PhaseFinished,
    PhaseStarted,
)
from explain_case import CHECKED


def listen(model, rows, **options):
    seen = []
    found = dsage.explain(
        model,
        *rows,
        graph=None,
        sampler="gaussian",
        sampler_check=False,
        random_state=0,
        progress=seen.append,
        **options,
    )
    return found, seen


@pytest.fixture(scope="module")
def forest(rows):
    return RandomForestRegressor(5, min_samples_leaf=5, random_state=0).fit(*rows[:2])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_events_tell_the_cost_and_then_the_error_the_goal_and_the_seconds(forest, rows, n_jobs):
    with joblib.parallel_config(backend="threading"):
        found, seen = listen(forest, rows, tolerance=0.05, exact="never", n_jobs=n_jobs)
    looks = [each for each in seen if isinstance(each, EstimateProgressed)]
    costs = [each for each in seen if isinstance(each, CostExpected)]
    assert len(costs) == 1
    assert seen.index(costs[0]) < seen.index(looks[-1])
    assert costs[0].outlook.n_evaluated < costs[0].outlook.n_expected
    last = looks[-1].outlook
    assert last.goal == pytest.approx(0.05)
    assert last.error == pytest.approx(found.se.max() / np.ptp(found.values))
    assert last.error <= last.goal
    assert last.n_evaluated == found.estimate.n_evaluated
    evaluated = [each.outlook.n_evaluated for each in looks]
    assert evaluated == sorted(evaluated)


def test_phases_frame_the_looks_of_the_estimate(forest, rows):
    _, seen = listen(forest, rows, n_orderings=32, exact="never")
    at = [type(each) for each in seen]
    start, end = seen.index(PhaseStarted(Phase.ESTIMATE)), at.index(EstimateProgressed)
    finished = next(
        number
        for number, each in enumerate(seen)
        if isinstance(each, PhaseFinished) and each.phase is Phase.ESTIMATE
    )
    assert start < end < finished


def test_a_time_limit_is_the_goal_where_there_is_no_other(forest, rows):
    _, seen = listen(forest, rows, seconds=0.5, exact="never")
    outlooks = [each.outlook for each in seen if isinstance(each, EstimateProgressed)]
    assert all(each.goal is None for each in outlooks)
    for each in outlooks:
        assert each.seconds_left == pytest.approx(max(0.5 - each.seconds, 0.0))


def test_samplers_are_compared_on_some_of_very_many_rows(forest, rows, monkeypatch):
    """Both games of the comparison hold and predict their rows."""
    monkeypatch.setattr("dsage.estimate.rivals._MOST_ROWS", 60)
    made = []

    def watched(found, estimate, game, make_game, *others, **options):
        def make(*args, **given):
            made.append(make_game(*args, **given))
            return made[-1]

        return check_sampler_of_run(found, estimate, game, make, *others, **options)

    # `dsage.explain` is the function.
    monkeypatch.setattr(import_module("dsage.explain"), "check_sampler_of_run", watched)
    weights = np.linspace(1.0, 2.0, len(rows[3]))
    found = dsage.explain(
        forest,
        *rows,
        graph=None,
        n_orderings=64,
        exact="never",
        sample_weight=weights,
        **CHECKED,
    )
    assert [game.n_rows for game in made] == [60] * len(made)
    assert len(made) == 1 + len(found.sampler_check.others) >= 2
    assert np.isfinite(found.se_sampler).all()
