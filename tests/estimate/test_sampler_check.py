"""How much values would change with another sampler: differences, their errors, the budget."""

import functools
import warnings
from dataclasses import replace
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from dsage._check import warn
from dsage.estimate import (
    PlanOptions,
    SamplerCheck,
    StopKind,
    StopReason,
    as_stopping,
    run,
    sampler_check,
)
from dsage.estimate.sampler_check import Other, _Costs, _Enough, _plan_options, check_by_others
from dsage.games import LossGame
from dsage.orderings import Order
from dsage.samplers import Gaussian, Marginal

NAMES = ["a", "b", "c", "d"]


def curved(rows):
    X = np.asarray(rows)
    return np.abs(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]


@pytest.fixture(scope="module")
def case():
    """A curved function of correlated features, its exact sampler, and one that is off."""
    generator = np.random.default_rng(0)
    covariance = 0.6 * np.ones((4, 4)) + 0.4 * np.eye(4)
    X = pd.DataFrame(
        generator.multivariate_normal(np.zeros(4), covariance, 300, method="cholesky"),
        columns=NAMES,
    )
    y = curved(X) + generator.normal(size=300)
    truth = Gaussian.from_moments(np.zeros(4), covariance, names=NAMES)
    wrong = Gaussian.from_moments(np.zeros(4), np.eye(4), names=NAMES)

    def make_game(sampler):
        options = {"loss": "squared_error", "random_state": 0, "draw_control": "none"}
        return LossGame(curved, sampler, X, y, **options)

    @functools.cache
    def estimated(n_orderings, **options):
        """The game of the exact sampler, and its run."""
        game = make_game(truth)
        return game, run(game, stopping=as_stopping(n_orderings=n_orderings), **options)

    return make_game, truth, wrong, estimated


def check(case, *others, n_orderings=600, exact="never", **options):
    make_game, truth, _, estimated = case
    plan = PlanOptions(exact=exact, random_state=0, **options)
    game, estimate = estimated(n_orderings, **vars(plan))
    n_before = game.n_predicted
    made = []

    def counted(other):
        made.append(make_game(other))
        return made[-1]

    found = check_by_others(
        game,
        counted,
        [
            Other(f"other {at}", other, lambda other=other: other, 300)
            for at, other in enumerate(others)
        ],
        estimate,
        sampler=truth,
        oracle=None,
        n_draws=8,
        options=plan,
        seed=1,
    )
    n_drawn = game.n_predicted - n_before + sum(each.n_predicted - 300 for each in made)
    return found, estimate, n_drawn


def exact_differences(case, n_orderings=600):
    make_game, truth, wrong, _ = case
    rule = as_stopping(n_orderings=n_orderings)
    a, b = (run(make_game(each), stopping=rule, random_state=5) for each in (wrong, truth))
    return a.values - b.values, np.hypot(a.se, b.se)


def test_differences_are_those_of_two_runs_and_errors_are_of_their_size(case, monkeypatch):
    # All that may be evaluated is.
    monkeypatch.setattr(sampler_check, "_PRECISE", 0.0)
    found, _, _ = check(case, case[2])
    exact, se = exact_differences(case)
    assert (np.abs(found.differences[0] - exact) < 4 * np.hypot(found.se[0], se)).all()
    assert np.abs(exact).max() > 5 * found.se.max()
    np.testing.assert_allclose(found.errors, np.abs(exact), atol=4 * found.se.max())


def test_the_same_sampler_changes_nothing(case):
    found, estimate, _ = check(case, case[1])
    np.testing.assert_array_equal(found.differences, 0.0)
    np.testing.assert_array_equal(found.errors, 0.0)
    assert found.exceeds(estimate) == []


@pytest.mark.parametrize("exact", ["never", "always"])
@pytest.mark.parametrize("n_others", [1, 2])
def test_at_most_a_quarter_of_the_evaluations_are_used(case, exact, n_others):
    found, estimate, n_drawn = check(
        case, *[case[2]] * n_others, n_orderings=300, exact=exact, audit=False
    )
    assert len(found.others) == n_others
    assert 2 * found.n_evaluated <= 0.25 * estimate.n_evaluated
    assert n_drawn <= 0.25 * 8 * estimate.n_evaluated


def test_no_more_than_two_others_are_compared(case):
    found, *_ = check(case, *[case[2]] * 3)
    assert found.others == ("other 0", "other 1")


def test_the_comparison_ends_when_it_is_precise(case, monkeypatch):
    short, estimate, _ = check(case, case[2], n_orderings=900)
    limits = np.hypot(estimate.se, estimate.se_rows)
    assert (short.se <= 0.33 * np.maximum(limits, 0.01 * np.ptp(estimate.values))).all()
    monkeypatch.setattr(sampler_check, "_PRECISE", 0.0)
    long, *_ = check(case, case[2], n_orderings=900)
    assert short.n_evaluated < long.n_evaluated


def test_the_error_is_the_root_mean_square_without_the_noise():
    differences = np.array([[3.0, 1.0, 0.0], [5.0, 0.0, 1.0]])
    se = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    found = SamplerCheck(("a", "b", "c"), ("x", "y"), (False, True), differences, se, se + 20, 10)
    # The means of 8 and 24, of 0 and -1, and of -1 and -3.
    np.testing.assert_allclose(found.errors, [4.0, 0.0, 0.0])
    frame = found.to_frame()
    assert frame["sampler"].tolist() == ["x"] * 3 + ["y"] * 3
    assert frame["difference"].tolist() == differences.ravel().tolist()
    assert (frame["lower"] < frame["difference"]).all()


def test_a_check_that_was_not_made_says_why():
    nothing = SamplerCheck.none(["a", "b"], "there was no time")
    assert nothing.errors is None
    assert nothing.reason == "there was no time"
    assert len(nothing.to_frame()) == 0
    assert list(nothing.to_frame().columns)[:3] == ["sampler", "feature", "difference"]


def test_features_exceed_only_if_that_is_sure_and_more_than_all_other_errors(case):
    _, estimate, _ = check(case, case[1], n_orderings=100)
    scale = np.ptp(estimate.values)
    estimate = replace(
        estimate,
        se_orderings=np.full(4, 0.03 * scale),
        se_draws=np.zeros(4),
        se_rows=np.full(4, 0.04 * scale),
    )

    def exceeding(differences, se):
        arrays = np.array([differences]) * scale, np.full((1, 4), se * scale), np.full((1, 4), 50.0)
        return SamplerCheck(tuple(NAMES), ("x",), (False,), *arrays, 10).exceeds(estimate)

    # Together the other errors are 5 % of the range.
    assert exceeding([0.049, -0.049, 0.051, -0.051], 1e-6) == ["c", "d"]
    assert exceeding([0.2, -0.2, 0.06, 0.0], 0.02) == ["a", "b"]
    exact = replace(estimate, se_orderings=np.zeros(4), se_rows=np.zeros(4))
    small = np.array([[0.009, 0.011, -0.011, 0.0]]) * scale
    found = SamplerCheck(
        tuple(NAMES), ("x",), (False,), small, np.zeros((1, 4)), np.ones((1, 4)), 10
    )
    assert found.exceeds(exact) == ["b", "c"]
    # Of a single row nobody knows the error.
    assert found.exceeds(replace(exact, se_rows=np.full(4, np.nan))) == []


@pytest.mark.parametrize(
    ("kind", "words"),
    [(StopKind.INTERRUPTED, "was interrupted"), (StopKind.TIME, "the time was up")],
)
def test_there_is_no_check_after_an_interrupt_or_without_time(case, kind, words):
    make_game, truth, wrong, _ = case
    game = make_game(truth)
    plan = PlanOptions(random_state=0)
    estimate = run(game, stopping=as_stopping(n_orderings=20), random_state=0)
    numbers = {"seconds": 1.0} if kind is StopKind.TIME else {}
    found = check_by_others(
        game,
        make_game,
        [Other("other", wrong, lambda: wrong, 300)],
        replace(estimate, reason=StopReason(kind, numbers)),
        sampler=truth,
        oracle=None,
        n_draws=8,
        options=plan,
        seed=0,
    )
    assert found.errors is None
    assert words in found.reason


def test_a_run_of_few_evaluations_is_not_compared(case):
    found, *_ = check(case, case[2], n_orderings=2, rows_per_ordering=10)
    assert found.errors is None
    assert "too few evaluations" in found.reason


def test_a_sampler_whose_fit_takes_too_long_is_left_out(case):
    make_game, truth, *_ = case
    game = make_game(truth)
    estimate = run(game, stopping=as_stopping(n_orderings=200), random_state=0)
    found = check_by_others(
        game,
        make_game,
        [Other("huge", Marginal(), lambda: 1 / 0, 10**9)],
        estimate,
        sampler=truth,
        oracle=None,
        n_draws=8,
        options=PlanOptions(random_state=0),
        seed=0,
    )
    assert "fitting huge would take too long" in found.reason


def test_results_do_not_depend_on_the_number_of_jobs(case):
    with joblib.parallel_config(backend="threading"):
        one, two = (check(case, case[2], n_orderings=200, n_jobs=n_jobs)[0] for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.differences, two.differences)
    np.testing.assert_array_equal(one.se, two.se)


def test_a_run_without_draws_has_a_check_with_draws():
    class Drawn(Marginal):
        has_mean = False

    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.normal(size=(300, 3)), columns=["a", "b", "c"])
    y = X.sum(axis=1) + generator.normal(size=300)
    model = LinearRegression().fit(X, y)

    def make_game(sampler):
        return LossGame(model, sampler, X, y, random_state=0)

    own, other = Gaussian().fit(X), Drawn().fit(X)
    game = make_game(own)
    assert not game.is_drawn
    found = check_by_others(
        game,
        make_game,
        [Other("drawn", other, lambda: other, 300)],
        run(game, random_state=0),
        sampler=own,
        oracle=None,
        n_draws=8,
        options=PlanOptions(random_state=0),
        seed=0,
    )
    assert 1000 < found.n_evaluated <= 4096
    assert (found.se > 0).all()


def test_a_comparison_has_small_batches_unless_orderings_are_given():
    given = Order(list("abce"), [("a", "b")])
    for orderings, expected in (("balanced", "antithetic"), (given, given)):
        found = _plan_options(PlanOptions(orderings=orderings, exact="always"), 3)
        assert found.orderings == expected
        assert (found.exact, found.first_level, found.audit) == ("never", "none", False)
        assert found.random_state == 3


def test_warnings_of_games_with_other_samplers_are_not_shown(case):
    make_game, truth, wrong, estimated = case
    game, estimate = estimated(600, exact="never", random_state=0)

    def warns(sampler):
        warn("draws of the other sampler are odd")
        return make_game(sampler)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = check_by_others(
            game,
            warns,
            [Other("other", wrong, lambda: wrong, 300)],
            estimate,
            sampler=truth,
            oracle=None,
            n_draws=8,
            options=PlanOptions(exact="never", random_state=0),
            seed=1,
        )
    assert found.others == ("other",)


@pytest.mark.parametrize(("kind", "expected"), [("always", "always"), ("never", "never")])
def test_all_orderings_are_compared_if_the_run_has_averaged_over_them(
    case, kind, expected, monkeypatch
):
    seen = []

    def listening(*arguments, **options):
        seen.append(options)
        return run(*arguments, **options)

    monkeypatch.setattr(sampler_check, "run", listening)
    found, estimate, _ = check(case, case[2], n_orderings=300, exact=kind)
    (options,) = seen
    assert options["exact"] == expected
    # 16 coalitions of 4 features, or an ordering and its reverse; 32 units use what is allowed.
    n_pairs, n_each = int(0.25 * estimate.n_evaluated / 2), 16 if kind == "always" else 2 * 5
    assert options["rows_per_ordering"] == max(1, min(n_pairs // (32 * n_each), 64))
    assert (options["audit"], options["first_level"]) == (False, "none")
    assert found.n_evaluated <= n_pairs


def test_an_interrupted_comparison_is_none(case, monkeypatch):
    def interrupted(*arguments, **options):
        return replace(run(*arguments, **options), reason=StopReason(StopKind.INTERRUPTED, {}))

    monkeypatch.setattr(sampler_check, "run", interrupted)
    found, *_ = check(case, case[2], n_orderings=300)
    assert found.errors is None
    assert "was interrupted" in found.reason


@pytest.mark.parametrize(
    ("looks", "n_units", "is_over"),
    [
        # The next step takes as many as the last: 50 of 100 are left, or fewer than it needs.
        ([50], 16, False),
        ([51], 16, True),
        ([30, 65], 16, False),
        ([30, 66], 16, True),
        ([20, 30, 65], 16, False),
        # Steps of a long comparison grow.
        ([30, 65], 63, False),
        ([30, 65], 64, True),
        ([30, 61], 64, False),
    ],
)
def test_a_comparison_ends_before_it_would_take_more_than_it_may(looks, n_units, is_over):
    history = SimpleNamespace(n_evaluated=np.array(looks))
    now = SimpleNamespace(history=history, n_units=n_units, se=np.ones(2), n_orderings=20)
    assert (_Enough(100, np.zeros(2)).reason(now) is not None) == is_over


def test_a_comparison_ends_once_all_errors_are_small_enough_and_trusted():
    history = SimpleNamespace(n_evaluated=np.array([10]))
    now = SimpleNamespace(history=history, n_units=16, se=np.array([1.0, 2.0]), n_orderings=20)
    rule = _Enough(100, np.array([1.0, 2.0]))
    found = rule.reason(now)
    assert (found.kind, found.numbers) == (StopKind.ORDERINGS, {"n": 20, "is_all": False})
    now.n_units = 15
    assert rule.reason(now) is None
    now.n_units, now.se = 16, np.array([1.0, 2.1])
    assert rule.reason(now) is None


@pytest.fixture
def costs(monkeypatch):
    """Samplers are the microseconds of 16 rows per draw and feature; a prediction takes one."""
    module = sampler_check.costs

    def draw_seconds(sampler, n_coalitions, n_drawn, n_features):
        return 1e-6 * sampler * n_coalitions * n_drawn * n_features

    monkeypatch.setattr(module, "draw_seconds", draw_seconds)
    monkeypatch.setattr(module, "predict_seconds", lambda n_rows: 1e-6 * n_rows)
    monkeypatch.setattr(
        module, "fit_seconds", lambda sampler, n_rows, n: None if sampler == 0 else sampler * n_rows
    )


def costs_of(n_evaluated, sampler=9, n_draws=8, n_features=5, *, is_drawn=True):
    estimate = SimpleNamespace(feature_names=("a", "b", "c"), n_evaluated=n_evaluated)
    return _Costs(estimate, sampler, n_draws, n_features, is_drawn=is_drawn)


def other_of(sampler, n_rows=1):
    return Other("other", sampler, lambda: None, n_rows)


@pytest.mark.parametrize(
    ("n_evaluated", "sampler", "n_others", "n_pairs"),
    [
        # A pair of the run takes 8 * (5 * 9 + 1) = 368 microseconds, of the other 8 * (5 s + 1).
        (200_001, 9, 1, 25_000),
        (200_001, 9, 2, 12_500),
        (200_000, 99, 1, 50_000 * 368 // (368 + 3968)),
        (200_000, 99, 2, 50_000 * 368 // (368 + 3968) // 2),
        # One second, if that is more than a quarter of the time: 2,717 pairs.
        (10_000, 99, 1, 1_000_000 // (368 + 3968)),
        (10_000, 9, 1, 1_250),
        (10_000, 9, 3, 416),
    ],
)
def test_a_check_has_a_quarter_of_the_evaluations_and_of_the_time(
    costs, n_evaluated, sampler, n_others, n_pairs
):
    assert costs_of(n_evaluated).n_pairs(other_of(sampler), n_others) == n_pairs


@pytest.mark.parametrize(
    ("n_evaluated", "n_features", "n_pairs"),
    [
        (0, 5, 4096),
        # A pair takes 0.02 microseconds for each feature, but at most 0.4.
        (80_000_000, 5, int(0.1 * 20_000_000 / (0.1 + 8 * (5 * 9 + 1)))),
        (40_000_000, 20, int(0.4 * 10_000_000 / (0.4 + 8 * (20 * 9 + 1)))),
        (80_000_000, 40, int(0.4 * 20_000_000 / (0.4 + 8 * (40 * 9 + 1)))),
    ],
)
def test_without_draws_a_check_has_as_much_time_but_draws_take_longer(
    costs, n_evaluated, n_features, n_pairs
):
    found = costs_of(n_evaluated, n_features=n_features, is_drawn=False)
    assert found.n_pairs(other_of(9), 1) == max(n_pairs, 4096)
    half = found.n_pairs(other_of(9), 2)
    assert half == max(n_pairs // 2, 4096)


def test_without_draws_a_check_of_many_features_has_the_units_it_needs(costs):
    found = _Costs(
        SimpleNamespace(feature_names=tuple(map(str, range(99))), n_evaluated=0), 9, 8, 5,
        is_drawn=False,
    )  # fmt: skip
    assert found.n_pairs(other_of(9), 1) == 4 * 16 * 100


def test_a_fit_may_take_a_second_or_as_long_as_the_check(costs):
    quick, long = costs_of(0), costs_of(100_000)
    # A quarter of 100,000 pairs of 368 microseconds are 9.2 seconds.
    assert [quick.can_fit(other_of(0.25, n_rows)) for n_rows in (4, 5)] == [True, False]
    assert [long.can_fit(other_of(0.25, n_rows)) for n_rows in (36, 37)] == [True, False]
    assert quick.can_fit(other_of(0, 10**9))
