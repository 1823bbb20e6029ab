"""What a race plans: the seconds of every candidate on every block, by count."""

import numpy as np
import pandas as pd
import pytest

from dsage._random import Streams
from dsage.data.layout import Layout
from dsage.samplers import costs, race
from dsage.samplers.comparing import Table
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.marginal import Marginal
from dsage.samplers.race import Budget, Contender, Race
from dsage.samplers.splits import make_blocks


@pytest.fixture
def simple_costs(monkeypatch):
    """A second a call, a fit, and a thousand draws; a half for a thousand predictions."""
    monkeypatch.setattr(
        costs, "draw_seconds", lambda _, calls, drawn, features: calls + drawn / 1e3
    )
    monkeypatch.setattr(costs, "fit_seconds", lambda *_: 1.0)
    monkeypatch.setattr(costs, "predict_seconds", lambda n_drawn: n_drawn / 2e3)


def race_of(n_rows, contenders, seconds, predict=None):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=list("abc")) + rng.normal(
        size=(n_rows, 1)
    )
    table = Table.of(X, Layout.of(X), streams=Streams(0))
    blocks = list(make_blocks(table.parts, table.players, 8, table.streams))
    found = Race(contenders, table.scorer(predict, 8), table.parts, blocks, Budget(seconds))
    found.run()
    return found, blocks


def cost_of(block, *, is_predicted=False):
    drawn = 8 * block.n_pairs
    return block.n_coalitions + drawn / 1e3 + is_predicted * drawn / 2e3


def two():
    # They differ too little to be told apart, and are not the same.
    return [Contender("a", Gaussian()), Contender("b", Gaussian(covariance="oas"))]


@pytest.mark.parametrize("is_predicted", [False, True])
def test_the_plan_has_fits_calls_draws_and_predictions(simple_costs, is_predicted):
    predict = (lambda rows: rows["a"].to_numpy() ** 3) if is_predicted else None
    found, blocks = race_of(100, two(), 1e4, predict)
    n_scored = len(found.sheet._at)
    assert n_scored >= 1
    done = blocks[:n_scored]
    fits = 2 * len({block.part for block in done})
    expected = fits + 2 * sum(cost_of(block, is_predicted=is_predicted) for block in done)
    assert found.planned == pytest.approx(expected)


def test_a_fitted_sampler_costs_no_fit(simple_costs):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=list("abc"))
    ready = Gaussian().fit(rows)
    found, blocks = race_of(500, [Contender("a", Gaussian(), fitted=ready)], 1e4)
    assert found.planned == pytest.approx(cost_of(blocks[0]))
    assert found.contenders[0].fits == {0: ready}


@pytest.mark.parametrize(("factor", "is_tried"), [(0.99, False), (1.01, True)])
def test_a_candidate_is_tried_if_four_fifths_of_the_plan_are_enough(simple_costs, factor, is_tried):
    block = race_of(500, two(), 1e4)[1][0]
    # The plan is 0.7 of the budget: 0.8 of it for the first candidate, and for this one.
    needed = (2 * (cost_of(block) + 1.0)) / (0.7 * 0.8)
    found, _ = race_of(500, two(), factor * needed)
    assert bool(found.contenders[1].fits) == is_tried
    verdict = f"not tried: it would take about {cost_of(block) + 1.0:.2g} s"
    assert found.contenders[1].verdict == ("" if is_tried else verdict)
    assert not found.is_cut


def test_in_folds_all_fits_of_a_candidate_are_planned_for(simple_costs):
    found, blocks = race_of(100, two(), 1e4)
    assert len(found._parts) == 4
    first, whole = cost_of(blocks[0]) + 1.0, cost_of(blocks[0]) + 4.0
    for factor, is_tried in ((0.99, False), (1.01, True)):
        found, _ = race_of(100, two(), factor * (first + whole) / (0.7 * 0.8))
        assert bool(found.contenders[1].fits) == is_tried


@pytest.mark.parametrize(("factor", "n_blocks"), [(0.99, 1), (1.01, 2)])
def test_rows_are_added_up_to_half_of_the_plan(simple_costs, factor, n_blocks, monkeypatch):
    monkeypatch.setattr(race, "is_settled", lambda *_: False)
    monkeypatch.setattr(race, "give_up", lambda *_: [])
    blocks = race_of(500, two(), 1.0)[1]
    needed = 2 * (1.0 + cost_of(blocks[0]) + cost_of(blocks[1])) / (0.7 * 0.5)
    found, _ = race_of(500, two(), factor * needed)
    assert len(found.sheet._at) == n_blocks


def test_reference_and_staying_samplers_are_tried_however_long_they_take(simple_costs):
    contenders = [
        Contender("a", Gaussian()),
        Contender("b", Gaussian(), stays=True),
        Contender("c", Marginal(), is_reference=True),
        Contender("d", Gaussian()),
    ]
    found, _ = race_of(500, contenders, 0.1)
    assert [bool(each.fits) for each in contenders] == [True, True, True, False]
    assert [each.name for each in found.running] == ["a", "b"]


@pytest.mark.parametrize(("used", "passed", "seconds"), [(3.0, 4.0, 3.0), (0.1, 4.0, 0.8)])
def test_time_that_the_processor_is_idle_counts_a_fifth(monkeypatch, used, passed, seconds):
    times = {"thread_time": iter([10.0, 10.0 + used]), "perf_counter": iter([5.0, 5.0 + passed])}
    for clock, values in times.items():
        monkeypatch.setattr(race.time, clock, values.__next__)
    assert race._Watch().seconds() == pytest.approx(seconds)
