"""Features whose errors are ahead of those of others are not evaluated further."""

import math

import numpy as np
import pytest

from dsage.estimate import Checkpoint, as_stopping, run
from dsage.estimate.loop import Estimation
from dsage.estimate.narrowing import find_lagging
from dsage.estimate.running.run import refine
from dsage.games.base import Game

N_FEATURES, N_ROWS = 8, 60
_SHIFTS = 1 << np.arange(N_FEATURES)


class Votes(Game):
    """Rows are settled once enough weight is known; two features have most of it.

    The weight of the others is small, and so is what their surpluses vary.
    """

    feature_names = tuple("abcdefgh")
    n_rows = N_ROWS
    n_replicates = 2

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        known = (np.arange(1 << N_FEATURES)[:, None] >> np.arange(N_FEATURES)) & 1
        size = np.array([1.0, 0.9, *[0.15] * (N_FEATURES - 2)])
        weights = rng.random((N_ROWS, N_FEATURES)) * size
        level = rng.uniform(0.3, 0.8, N_ROWS) * weights.sum(axis=1)
        self.losses = np.exp(rng.normal(size=N_ROWS)) / (
            1.0 + np.exp(10.0 * (known @ weights.T - level))
        )
        self.seed = seed

    def risks(self, known, rows, epoch=0):
        number = known @ _SHIFTS
        places = number[:, None, None] * 12.9898 + rows[:, None] * 78.233 + np.arange(2) * 37.7
        noise = np.sin(43758.5453 * (places + 4.1 * epoch + self.seed))
        return self.losses[number][:, rows, None] * (1.0 + 0.05 * noise)

    def exact(self):
        means, found = self.losses.mean(axis=1), np.zeros(N_FEATURES)
        sizes = np.array([bin(each).count("1") for each in range(1 << N_FEATURES)])
        for feature in range(N_FEATURES):
            without = np.flatnonzero((np.arange(1 << N_FEATURES) >> feature) & 1 == 0)
            weight = [1.0 / (N_FEATURES * math.comb(N_FEATURES - 1, k)) for k in sizes[without]]
            found[feature] = weight @ (means[without] - means[without | (1 << feature)])
        return found


OPTIONS = {"rows_per_ordering": 15, "exact": "never", "random_state": 3}


def to_tolerance(relative, **options):
    return run(Votes(), stopping=as_stopping(tolerance=relative), **OPTIONS, **options)


def test_a_run_to_a_tolerance_evaluates_less_than_one_of_all_features():
    found = to_tolerance(0.01)
    assert (found.se <= 0.01 * np.ptp(found.values)).all()
    every = run(Votes(), stopping=as_stopping(n_orderings=found.n_orderings), **OPTIONS)
    assert found.n_evaluated < 0.7 * every.n_evaluated
    # What lags is as precise as if all had been evaluated.
    worst = int(np.argmax(found.se))
    assert found.se[worst] == pytest.approx(every.se[worst], rel=0.25)


def test_values_are_unbiased_and_their_errors_honest():
    ratios = []
    for seed in range(60):
        game = Votes(seed % 3)
        rule = as_stopping(tolerance=0.03)
        found = run(game, stopping=rule, **OPTIONS | {"random_state": seed})
        ratios.append((found.values - game.exact()) / found.se)
    mean, square = np.mean(ratios, axis=0), np.mean(np.square(ratios))
    assert (np.abs(mean) < 4.5 / np.sqrt(60)).all()
    assert 0.6 < square < 1.35


class Quiet(Votes):
    """The same without noise of draws: the total of the rows is known exactly."""

    def risks(self, known, rows, epoch=0):
        losses = self.losses[known @ _SHIFTS][:, rows, None]
        return np.repeat(losses, 2, axis=2)


@pytest.mark.parametrize("seed", range(6))
def test_values_add_up_exactly_although_features_have_different_numbers_of_orderings(seed):
    game = Quiet(seed)
    options = OPTIONS | {"random_state": seed}
    found = run(game, stopping=as_stopping(tolerance=0.02), **options)
    every = found.n_orderings * (N_FEATURES + 1) * 15
    assert found.n_evaluated + found.n_shared < every
    total = game.losses[0].mean() - game.losses[-1].mean()
    assert found.values.sum() == pytest.approx(total, abs=1e-12)
    assert sum(term.values for term in found.terms) == pytest.approx(found.values, abs=1e-12)


def test_several_jobs_give_the_same_numbers():
    one, two = (to_tolerance(0.02, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.se, two.se)


def test_a_run_that_is_refined_equals_one_to_the_tighter_tolerance():
    estimation = Estimation(Votes(), **OPTIONS)
    refine(estimation, stopping=as_stopping(tolerance=0.04))
    refined = refine(estimation, stopping=as_stopping(tolerance=0.01))
    whole = to_tolerance(0.01)
    np.testing.assert_array_equal(refined.values, whole.values)
    np.testing.assert_array_equal(refined.se, whole.se)
    assert refined.n_evaluated == whole.n_evaluated


def test_a_resumed_run_equals_one_without_a_break(tmp_path):
    path = tmp_path / "run.dsage"
    to_tolerance(0.03, checkpoint=Checkpoint(path))
    resumed = to_tolerance(0.01, checkpoint=Checkpoint(path))
    whole = to_tolerance(0.01)
    np.testing.assert_array_equal(resumed.values, whole.values)
    np.testing.assert_array_equal(resumed.se_rows, whole.se_rows)


def test_a_broken_step_goes_on_with_the_same_features():
    whole = to_tolerance(0.01)
    stopped = Estimation(Votes(), **OPTIONS)
    states = []
    stopped.on_pause = lambda: states.append(stopped.state())
    stopped.goal = lambda estimate: np.ones(N_FEATURES)
    for estimate in stopped.steps():
        if estimate.n_units > 40:
            break
    again = Estimation(Votes(), **OPTIONS)
    again.restore(states[-1])
    found = refine(again, stopping=as_stopping(tolerance=0.01))
    np.testing.assert_array_equal(found.values, whole.values)


@pytest.mark.parametrize("limit", [{"n_orderings": 100}, {"top_k": 1}])
def test_other_rules_evaluate_all_features(limit):
    found = run(Votes(), stopping=as_stopping(**limit), **OPTIONS)
    n_asked = found.n_evaluated + found.n_shared
    assert n_asked == found.n_orderings * (N_FEATURES + 1) * 15


# Which features lag


def test_errors_count_as_multiples_of_what_they_may_be():
    lagging = find_lagging(
        np.array([1.0, 1.0, 3.0]), np.array([1.0, 5.0, 3.1]), np.full(3, 50), 60, 64
    )
    assert lagging.tolist() == [True, False, True]


def test_how_far_all_have_to_go_does_not_matter():
    rng = np.random.default_rng(0)
    se, allowed, freedoms = rng.random(20), rng.random(20), np.full(20, 30)
    one, other = (find_lagging(se, factor * allowed, freedoms, 40, 64) for factor in (1.0, 0.125))
    np.testing.assert_array_equal(one, other)
    assert 0 < one.sum() < 20


def test_an_error_from_few_units_counts_as_larger():
    se = np.array([1.0, 0.8])
    assert find_lagging(se, 1.0, np.array([500, 500]), 600, 64).tolist() == [True, False]
    assert find_lagging(se, 1.0, np.array([500, 12]), 600, 64).tolist() == [True, True]


@pytest.mark.parametrize("se", [[0.0, 0.0], [1.0, np.inf], [np.nan, 1.0]])
def test_without_errors_nothing_is_left_out(se):
    assert find_lagging(np.array(se), 1.0, np.array([30, 30]), 40, 64).all()


def test_an_exact_value_needs_no_more_units():
    assert find_lagging(np.array([0.0, 1.0]), 0.5, np.array([30, 30]), 40, 64).tolist() == [
        False,
        True,
    ]


def test_few_units_or_few_rows_leave_nothing_out():
    se, freedoms = np.array([1.0, 0.1]), np.array([30, 30])
    assert find_lagging(se, 1.0, freedoms, 40, 64).tolist() == [True, False]
    assert find_lagging(se, 1.0, freedoms, 20, 64).all()
    assert find_lagging(se, 1.0, freedoms, 40, 1).all()


def test_features_lag_whose_careful_errors_are_near_the_worst():
    rng, n_lagging = np.random.default_rng(0), set()
    for n_features in (1, 2, 9):
        for _ in range(50):
            se = rng.uniform(0.6, 1.0, size=n_features) * (rng.random(n_features) < 0.9)
            allowed = rng.uniform(0.5, 0.6, size=n_features)
            freedoms = rng.integers(2, 80, size=n_features)
            # Two of its own standard errors, which is a share of 1 / sqrt(2 n), are added.
            ratios = [
                s * (1 + 2 / math.sqrt(2 * n)) / a
                for s, n, a in zip(se, freedoms, allowed, strict=True)
            ]
            expected = [r > 0.9 * max(ratios) or not any(ratios) for r in ratios]
            assert find_lagging(se, allowed, freedoms, 32, 32).tolist() == expected
            n_lagging.add(sum(expected))
    assert len(n_lagging) > 5


@pytest.mark.parametrize(
    ("n_units", "n_rows", "is_narrow"),
    [(31, 1000, False), (32, 32, True), (32, 31, False), (1024, 1, True), (1023, 1, False)],
)
def test_all_features_have_32_units_and_1024_rows(n_units, n_rows, is_narrow):
    lagging = find_lagging(np.array([1.0, 0.1]), 1.0, np.array([30, 30]), n_units, n_rows)
    assert lagging.all() == (not is_narrow)


def test_goals_that_cannot_be_met_leave_nothing_out():
    freedoms = np.array([30, 30])
    assert find_lagging(np.array([1.0, 0.1]), 0.0, freedoms, 40, 64).all()
    assert find_lagging(np.array([1.0, 0.1]), np.array([1.0, 0.0]), freedoms, 40, 64).all()
    assert find_lagging(np.array([1.0, 0.0]), np.array([1.0, 0.0]), freedoms, 40, 64).tolist() == [
        True, False,
    ]  # fmt: skip
