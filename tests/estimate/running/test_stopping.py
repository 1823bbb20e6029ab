from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from dsage.estimate.reasons import StopKind, StopReason
from dsage.estimate.running.outlook import share_done
from dsage.estimate.running.stopping import (
    MIN_UNITS,
    AbsoluteTolerance,
    AnyOf,
    DataTolerance,
    NOrderings,
    Stopping,
    TimeBudget,
    Tolerance,
    TopK,
    as_stopping,
)


@dataclass
class Progress:
    values: np.ndarray = field(default_factory=lambda: np.array([0.0, 1.0]))
    se: np.ndarray = field(default_factory=lambda: np.array([0.1, 0.2]))
    se_rows: np.ndarray = field(default_factory=lambda: np.array([0.3, 0.3]))
    n_orderings: int = 100
    n_units: int = 100
    seconds: float = 5.0
    is_exact: bool = False
    n_evaluated: int = 300
    n_shared: int = 100
    share_skipped: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.5]))


def at(values, se, **options):
    values = np.asarray(values, dtype=float)
    return Progress(values, np.broadcast_to(np.asarray(se, dtype=float), values.shape), **options)


def beside_rows(values, se, se_rows, **options):
    return at(values, se, se_rows=np.asarray(se_rows, dtype=float), **options)


def test_tolerance_compares_the_largest_error_with_the_range():
    progress = at([-1.0, 0.5, 3.0], [0.01, 0.04, 0.02])
    reason = Tolerance(0.0101).reason(progress)
    assert reason.kind is StopKind.TOLERANCE
    assert (reason.numbers["se"], reason.numbers["spread"]) == (0.04, 4.0)
    assert "0.04, is 1 % of the range of the values (tolerance 1.01 %)" in str(reason)
    assert Tolerance(0.0099).reason(progress) is None


def test_tolerance_does_not_change_with_the_unit_of_the_loss():
    for factor in (1e-9, 1.0, 1e9):
        assert Tolerance(0.02).reason(at(factor * np.array([1.0, 2.0]), factor * 0.019))
        assert Tolerance(0.02).reason(at(factor * np.array([1.0, 2.0]), factor * 0.021)) is None


def test_tolerance_ends_for_values_that_are_all_equal():
    """Twins have range 0 up to noise: the size of the values takes over, at the square."""
    assert Tolerance(0.1).reason(at([5.0, 5.0], 0.051)) is None
    assert "the values hardly differ" in str(Tolerance(0.1).reason(at([5.0, 5.0], 0.049)))


def test_tolerance_of_a_single_feature_is_relative_to_its_value():
    assert Tolerance(0.01).reason(at([-2.0], 0.021)) is None
    assert "is 0.95 % of the value (" in str(Tolerance(0.01).reason(at([-2.0], 0.019)))


def test_values_that_are_all_zero_end_only_if_they_are_exact():
    assert Tolerance(0.5).reason(at([0.0, 0.0], 1e-9)) is None
    for progress in (at([0.0, 0.0], 0.0), at([], [])):
        assert str(Tolerance(0.01).reason(progress)) == "the standard errors are zero"


def test_the_error_from_the_rows_decides_for_each_feature():
    rule = DataTolerance(share=0.25)
    # The allowed errors are 0.25 and 0.5.
    assert rule.reason(beside_rows([0.0, 4.0], [0.24, 0.49], [1.0, 2.0]))
    assert rule.reason(beside_rows([0.0, 4.0], [0.26, 0.49], [1.0, 2.0])) is None
    assert rule.reason(beside_rows([0.0, 4.0], [0.24, 0.51], [1.0, 2.0])) is None


def test_an_error_of_a_hundredth_of_the_range_is_small_enough_whatever_the_rows():
    rule = DataTolerance()
    reason = rule.reason(beside_rows([0.0, 4.0], [0.039, 0.9], [0.0, 3.0]))
    assert reason == StopReason(StopKind.DATA, {"share": 1 / 3, "relative": 0.01})
    assert "33.3 % of those from the choice of the rows, or 1 % of the range" in str(reason)
    assert rule.reason(beside_rows([0.0, 4.0], [0.041, 0.9], [0.0, 3.0])) is None


def test_where_all_errors_are_that_small_the_reason_is_the_tolerance():
    reason = DataTolerance().reason(beside_rows([0.0, 4.0], 0.04, [3.0, 3.0]))
    assert reason == Tolerance().reason(at([0.0, 4.0], 0.04))
    zero = DataTolerance().reason(beside_rows([0.0, 4.0], 0.0, [3.0, 3.0]))
    assert str(zero) == "the standard errors are zero"


def test_by_default_intervals_are_at_most_a_twentieth_wider_than_after_endless_computing():
    rule = DataTolerance()
    assert np.hypot(1.0, rule.share) <= 1.0541
    assert rule.reason(beside_rows([0.0, 1.0], 0.33, [1.0, 1.0]))
    assert rule.reason(beside_rows([0.0, 1.0], 0.34, [1.0, 1.0])) is None


def test_unknown_errors_from_the_rows_leave_the_range():
    rule = DataTolerance(0.1)
    assert rule.reason(beside_rows([0.0, 1.0], 0.09, [np.nan, np.nan]))
    assert rule.reason(beside_rows([0.0, 1.0], 0.11, [np.nan, np.nan])) is None


def test_few_units_do_not_end_a_run_however_small_their_errors_beside_the_rows():
    few = beside_rows([0.0, 1.0], 1e-9, [1.0, 1.0], n_units=MIN_UNITS - 1)
    assert DataTolerance().reason(few) is None
    assert DataTolerance(min_units=2).reason(few)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"share": 0.0}, "share must be"),
        ({"share": 1.1}, "share must be"),
        ({"relative": 0.0}, "relative must be"),
        ({"min_units": 1}, "min_units must be"),
    ],
)
def test_limits_of_the_rule_of_the_rows_are_checked(options, text):
    with pytest.raises(ValueError, match=text):
        DataTolerance(**options)


def test_the_share_that_is_done_is_that_of_the_feature_that_is_farthest_off():
    rule = DataTolerance(share=0.5)
    # Allowed are 0.5 and 1: the first feature needs four times the work, the second 2.25 times.
    assert share_done(rule, beside_rows([0.0, 1.0], [1.0, 1.5], [1.0, 2.0])) == pytest.approx(0.25)
    assert share_done(rule, beside_rows([0.0, 1.0], [0.4, 1.5], [1.0, 2.0])) == pytest.approx(4 / 9)
    assert share_done(rule, beside_rows([0.0, 1.0], [0.5, 1.0], [1.0, 2.0])) == 1.0
    assert share_done(rule, beside_rows([0.0, 1.0], [0.0, 0.0], [0.0, 0.0])) == 1.0
    assert share_done(rule, beside_rows([0.0, 1.0], 0.1, [1.0, 1.0], n_units=3)) is None


def test_absolute_tolerance_compares_the_largest_error_with_a_number():
    reason = AbsoluteTolerance(0.2).reason(Progress())
    assert reason == StopReason(StopKind.ABSOLUTE, {"se": 0.2, "allowed": 0.2})
    assert "within 0.2" in str(reason)
    assert AbsoluteTolerance(0.19).reason(Progress()) is None


def test_top_k_waits_until_the_intervals_part():
    values = [3.0, 0.0, 2.0, 0.5]
    reason = TopK(2).reason(at(values, 0.2))
    assert reason.kind is StopKind.TOP_K
    assert str(reason) == "the 2 largest values are settled with confidence 95 %"
    assert TopK(2).reason(at(values, 0.5)) is None
    assert "the largest value is settled" in str(TopK(1).reason(at(values, 0.1)))
    assert TopK(1).reason(at(values, 0.3)) is None


def test_top_k_needs_only_the_border_to_be_settled():
    """The leader's own error is large, but nobody else comes near it."""
    assert TopK(1).reason(at([100.0, 1.0, 1.0], [5.0, 0.5, 0.5]))
    assert TopK(2).reason(at([100.0, 1.0, 1.0], [0.1, 0.1, 0.1])) is None


def test_top_k_is_stricter_at_a_higher_confidence_and_with_fewer_units():
    def is_settled(confidence, n_units):
        rule = TopK(1, confidence=confidence, min_units=2)
        return rule.reason(at([1.0, 0.0], 0.23, n_units=n_units)) is not None

    # The intervals part where Student's quantile is at most 1 / (2 * 0.23) = 2.17.
    assert is_settled(0.9, n_units=100)
    assert not is_settled(0.99, n_units=100)
    assert not is_settled(0.9, n_units=10)


def test_top_k_is_wrong_no_more_often_than_its_level_at_one_look():
    """Two values that tie for second place: any answer is wrong, and must be rare."""
    rng = np.random.default_rng(0)
    n_runs, n_units = 4000, 20
    stopped = 0
    for _ in range(n_runs):
        units = np.array([3.0, 1.0, 1.0]) + rng.standard_normal((n_units, 3))
        se = units.std(axis=0, ddof=1) / np.sqrt(n_units)
        progress = at(units.mean(axis=0), se, n_units=n_units)
        stopped += TopK(2).reason(progress) is not None
    assert stopped / n_runs < 0.05


def test_exact_ties_do_not_go_on_for_ever():
    assert TopK(1).reason(at([1.0, 1.0], 0.0))


def test_more_places_than_features_are_settled():
    assert "no more than 3 features" in str(TopK(3).reason(at([1.0, 0.0], 5.0)))


@pytest.mark.parametrize("rule", [Tolerance(1.0), AbsoluteTolerance(9.0), TopK(1), TopK(9)])
def test_errors_from_few_units_are_not_trusted(rule):
    tiny = at([1.0, 0.0], 1e-9, n_units=MIN_UNITS)
    assert rule.reason(tiny) is not None
    assert rule.reason(at([1.0, 0.0], 1e-9, n_units=MIN_UNITS - 1)) is None
    assert rule.reason(at([1.0, 0.0], [np.nan, 0.0])) is None


def test_time_and_orderings_end_whatever_the_errors():
    nothing = at([0.0, 0.0], np.nan, n_units=1, n_orderings=1, seconds=2.0)
    assert TimeBudget(2).reason(nothing) == StopReason(StopKind.TIME, {"seconds": 2})
    assert TimeBudget(2.1).reason(nothing) is None
    assert NOrderings(1).reason(nothing).kind is StopKind.ORDERINGS
    assert NOrderings(2).reason(nothing) is None


def test_any_of_gives_the_first_reason():
    rules = AnyOf([NOrderings(1000), TimeBudget(1), AbsoluteTolerance(9)])
    assert rules.reason(Progress()) == StopReason(StopKind.TIME, {"seconds": 1})
    assert AnyOf([NOrderings(1000)]).reason(Progress()) is None
    assert isinstance(rules, Stopping)


def test_options_become_rules():
    assert as_stopping(tolerance=0.05) == Tolerance(0.05)
    rule = as_stopping(
        tolerance=0.1,
        absolute=2.0,
        top_k=3,
        seconds=60,
        n_orderings=50,
        confidence=0.9,
        min_units=5,
    )
    assert rule == AnyOf(
        [
            Tolerance(0.1, 5),
            AbsoluteTolerance(2.0, 5),
            TopK(3, 0.9, 5),
            NOrderings(50),
            TimeBudget(60),
        ]
    )


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({}, ValueError, "Without a limit"),
        ({"tolerance": 0.0}, ValueError, r"tolerance must be in \(0, 1\]; got 0"),
        ({"tolerance": 1.5}, ValueError, r"tolerance must be in \(0, 1\]; got 1.5"),
        ({"tolerance": "1%"}, TypeError, "tolerance must be a number; got '1%'"),
        ({"absolute": -1.0}, ValueError, "absolute must be in"),
        ({"absolute": float("nan")}, ValueError, "absolute must be in"),
        ({"top_k": 0}, ValueError, "top_k must be at least 1; got 0"),
        ({"top_k": 1, "confidence": 1.0}, ValueError, "confidence must be in"),
        ({"seconds": 0}, ValueError, "seconds must be in"),
        ({"n_orderings": 2.5}, TypeError, "n_orderings must be an integer; got 2.5"),
        ({"tolerance": 0.1, "min_units": 1}, ValueError, "min_units must be at least 2; got 1"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options, error, text):
    with pytest.raises(error, match=text):
        as_stopping(**options)


def test_any_of_refuses_what_is_not_a_rule():
    with pytest.raises(TypeError, match="rules must be objects with a method reason; got 60"):
        AnyOf([60])
    with pytest.raises(ValueError, match="rules must be at least one"):
        AnyOf([])


@pytest.mark.parametrize(
    ("se", "text"),
    [(999.4, "999"), (1000.0, "1,000"), (12_345.6, "12,346"), (999_999_999.0, "999,999,999"),
     (1e9, "1e+09"), (1.5e9, "1.5e+09"), (0.012345, "0.0123")],
)  # fmt: skip
def test_errors_have_three_digits_or_are_whole_numbers(se, text):
    reason = StopReason(StopKind.ABSOLUTE, {"se": se, "allowed": 2.0})
    assert str(reason) == f"the largest standard error, {text}, is within 2"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ({"spread": 3.1, "largest": 30.0}, "2.42 % of the range of the values"),
        (
            {"spread": 2.9, "largest": 30.0},
            "0.25 % of the largest value, and the values hardly differ",
        ),
        ({"spread": 3.0, "largest": 30.0}, "2.5 % of the range of the values"),
        ({"spread": 3.0, "largest": 30.0, "n_features": 1}, "2.5 % of the value"),
        ({"se": 0.0, "spread": 3.0, "largest": 30.0}, None),
    ],
)
def test_a_tolerance_is_told_as_a_share_of_the_range_or_of_the_largest_value(numbers, text):
    given = {"se": 0.075, "allowed": 0.1, "n_features": 3} | numbers
    found = str(StopReason(StopKind.TOLERANCE, given))
    if text is None:
        assert found == "the standard errors are zero"
    else:
        assert found == f"the largest standard error, 0.075, is {text} (tolerance 10 %)"


def test_other_ends_have_their_sentences():
    def told(kind, **numbers):
        return str(StopReason(kind, numbers))

    few = told(StopKind.TOP_K, k=3, confidence=0.9, n_features=3)
    assert few == "there are no more than 3 features, so the largest 3 are settled"
    one, two = (told(StopKind.TOP_K, k=k, confidence=0.9, n_features=3) for k in (1, 2))
    assert one == "the largest value is settled with confidence 90 %"
    assert two == "the 2 largest values are settled with confidence 90 %"
    assert told(StopKind.ORDERINGS, n=24, is_all=True) == "all 24 orderings are done"
    assert told(StopKind.ORDERINGS, n=24, is_all=False) == "24 orderings are done"
    assert told(StopKind.TIME, seconds=90.0) == "the time limit of 90 seconds is reached"
    assert told(StopKind.EXHAUSTED) == "there is nothing left to evaluate"
    assert told(StopKind.INTERRUPTED) == "it was interrupted"
    assert told(StopKind.OTHER) == "a rule ended it without a reason"
    assert told(StopKind.DATA, share=0.5, relative=0.012).endswith(
        "50 % of those from the choice of the rows, or 1.2 % of the range of the values"
    )


@pytest.mark.parametrize(
    ("rule", "progress"),
    [
        (Tolerance(0.25), at([0.0, 4.0], 1.0)),
        (DataTolerance(0.01, share=0.25), beside_rows([0.0, 4.0], [0.25, 0.5], [1.0, 2.0])),
        (AbsoluteTolerance(0.5), at([0.0, 4.0], 0.5)),
        (TimeBudget(5.0), Progress()),
        (NOrderings(100), Progress()),
        (TopK(2), Progress(n_units=MIN_UNITS, se=np.array([9.0, 9.0]))),
        (TopK(1), Progress(n_units=MIN_UNITS, se=np.zeros(2))),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_rule_is_met_exactly_at_its_limit(rule, progress):
    # All numbers are binary fractions, which are compared without rounding.
    assert rule.reason(progress) is not None
    for name in ("seconds", "n_orderings"):
        less = replace(progress, **{name: 0.999 * vars(progress)[name]})
        met = rule.reason(less) is not None
        assert met != (name == {TimeBudget: "seconds", NOrderings: "n_orderings"}.get(type(rule)))
    more = replace(progress, se=progress.se + 2.0**-40)
    is_of_errors = isinstance(rule, (Tolerance, DataTolerance, AbsoluteTolerance))
    assert (rule.reason(more) is None) == is_of_errors
    few = replace(progress, n_units=MIN_UNITS - 1)
    assert (rule.reason(few) is None) == (is_of_errors or isinstance(rule, TopK))


def test_equal_values_are_not_settled_unless_they_are_exact():
    tied = at([1.0, 1.0], 0.0)
    assert TopK(1).reason(tied) is not None
    assert TopK(1).reason(at([1.0, 1.0], 1e-9)) is None
    # All orderings that there are end a run, however many were wanted.
    found = NOrderings(10**9).reason(Progress(is_exact=True))
    assert str(found) == "all 100 orderings are done"
