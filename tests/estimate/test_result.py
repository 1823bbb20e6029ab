from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dsage.estimate.accumulate.history import History
from dsage.estimate.inference import holm, intervals, p_values, simultaneous_intervals
from dsage.estimate.result import Estimate, OutputEstimate, TermEstimate, TermKind

NAMES = ("a", "b", "c")


def made(**changes):
    term = TermEstimate(
        TermKind.SAMPLED, np.array([0.1, 2.0, 0.1]), np.array([0.03, 0.04, 0.0]), 20, 400
    )
    options = {
        "feature_names": NAMES,
        "values": np.array([0.1, 2.0, 0.1]),
        "se_orderings": np.array([0.03, 0.04, 0.0]),
        "se_draws": np.array([0.04, 0.03, 0.0]),
        "se_rows": np.array([0.12, 0.0, 0.0]),
        "df": np.array([9.0, np.inf, 9.0]),
        "n_orderings": 20,
        "n_units": 10,
        "n_evaluated": 400,
        "n_shared": 30,
        "share_skipped": np.array([0.5, 0.0, 0.25]),
        "terms": (term,),
        "audit": None,
        "skipped_surpluses": pd.DataFrame(),
        "seconds": 1.0,
        "is_exact": False,
        "estimand": "d-sage",
        "history": History.empty(3),
    }
    return Estimate(**{**options, **changes})


def test_errors_of_computing_and_of_rows_are_put_together():
    result = made()
    np.testing.assert_allclose(result.se, [0.05, 0.05, 0.0])
    np.testing.assert_allclose(result.se_total, [0.13, 0.05, 0.0])


def test_the_degrees_of_freedom_of_both_errors_are_between_theirs():
    # Satterthwaite: (0.05^2 + 0.12^2)^2 / (0.05^4 / 9 + 0.12^4 / 19).
    result = made(df_rows=19.0)
    both = 0.0169**2 / (0.05**4 / 9 + 0.12**4 / 19)
    np.testing.assert_allclose(result.df_total[:2], [both, np.inf])
    # Of errors that are not known, the other one counts alone.
    unknown = made(se_rows=np.full(3, np.nan), df_rows=1.0)
    np.testing.assert_allclose(unknown.df_total[:2], [9.0, np.inf])
    unseen = made(se_orderings=np.full(3, np.inf), df_rows=19.0)
    np.testing.assert_allclose(unseen.df_total[0], 19.0)


def test_the_frame_has_one_row_a_feature_the_largest_value_first_and_ties_in_order():
    frame = made().to_frame()
    assert frame["feature"].tolist() == ["b", "a", "c"]
    assert frame.index.tolist() == [0, 1, 2]
    assert frame.columns.tolist() == [
        "feature",
        "value",
        "se",
        "lower",
        "upper",
        "lower_all",
        "upper_all",
        "se_orderings",
        "se_draws",
        "se_rows",
        "p_value",
        "share_skipped",
    ]
    assert frame["value"].tolist() == [2.0, 0.1, 0.1]
    assert frame["share_skipped"].tolist() == [0.0, 0.5, 0.25]
    assert frame["se_rows"].tolist() == [0.0, 0.12, 0.0]


@pytest.mark.parametrize("confidence", [0.95, 0.5])
def test_intervals_are_about_these_rows_and_tests_about_the_population(confidence):
    result = made()
    frame = result.to_frame(confidence).set_index("feature").loc[list(NAMES)]
    df = [9.0, np.inf, 9.0]
    lower, upper = intervals(result.values, [0.05, 0.05, 0.0], confidence, df=df)
    np.testing.assert_allclose(frame["lower"], lower)
    np.testing.assert_allclose(frame["upper"], upper)
    lower, upper = simultaneous_intervals(result.values, [0.05, 0.05, 0.0], confidence, df=df)
    np.testing.assert_allclose(frame["lower_all"], lower)
    np.testing.assert_allclose(frame["upper_all"], upper)
    total_df = [9.0 * (0.13 / 0.05) ** 4, np.inf, np.inf]
    p = holm(p_values(result.values, [0.13, 0.05, 0.0], df=total_df))
    np.testing.assert_allclose(frame["p_value"], p)


def test_few_rows_are_weak_evidence_however_alike_they_are():
    few = made(se_rows=np.array([0.04, 0.3, 0.04]), se_orderings=np.zeros(3), se_draws=np.zeros(3))
    p = [replace(few, df_rows=df).to_frame()["p_value"].to_numpy() for df in (1.0, 4.0, np.inf)]
    assert (p[0] > p[1]).all()
    assert (p[1] > p[2]).all()
    np.testing.assert_allclose(p[1], holm(p_values(few.values, few.se_rows, df=4.0))[[1, 0, 2]])


def test_an_exact_value_has_an_interval_of_no_width():
    frame = made().to_frame().set_index("feature")
    ends = frame.loc["c", ["lower", "upper", "lower_all", "upper_all"]]
    assert (ends == 0.1).all()
    assert frame.loc["c", "p_value"] == 0.0


def test_an_error_that_is_not_known_yet_leaves_everything_open():
    frame = made(se_orderings=np.full(3, np.inf)).to_frame()
    assert np.isinf(frame["upper"]).all()
    assert np.isinf(frame["lower_all"]).all()
    assert (frame["p_value"] == 1.0).all()


def test_one_row_is_no_evidence_about_the_population():
    result = made(se_rows=np.full(3, np.nan))
    assert (result.to_frame()["p_value"] == 1.0).all()
    assert np.isfinite(result.to_frame()["lower"]).all()


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_a_level_outside_0_and_1_is_refused(confidence):
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        made().to_frame(confidence)


# The audit


def test_without_an_audit_there_is_no_frame_of_it():
    with pytest.raises(ValueError, match="no audit"):
        made().audit_frame()


def test_the_audit_tells_d_sage_minus_sage_in_the_order_of_the_features():
    audit = TermEstimate(
        TermKind.CORRECTION, np.array([0.3, -0.01, 0.0]), np.array([0.05, 0.02, 0.0]), 8, 90, 7
    )
    frame = made(audit=audit).audit_frame(0.9)
    assert frame.columns.tolist() == ["feature", "difference", "se", "lower", "upper", "matters"]
    assert frame["feature"].tolist() == list(NAMES)
    np.testing.assert_allclose(frame["difference"], [-0.3, 0.01, 0.0])
    lower, upper = intervals([-0.3, 0.01, 0.0], audit.se, 0.9, df=7)
    np.testing.assert_allclose(frame["lower"], lower)
    np.testing.assert_allclose(frame["upper"], upper)


@pytest.mark.parametrize(
    ("difference", "se", "matters"),
    [
        (0.5, 0.01, True),
        (-0.5, 0.01, True),
        (0.5, 0.3, False),  # it may be nothing
        (0.03, 0.0, False),  # surely below 2 % of 1.9
        (0.04, 0.0, True),
        (-0.04, 0.0, True),
        (0.5, np.inf, False),
    ],
)
def test_a_difference_matters_where_it_is_surely_above_2_percent_of_the_range(
    difference, se, matters
):
    audit = TermEstimate(
        TermKind.CORRECTION, np.array([difference, 0.0, 0.0]), np.array([se, 0.0, 0.0]), 8, 9
    )
    assert made(audit=audit).audit_frame()["matters"].tolist() == [matters, False, False]


def test_whether_differences_matter_is_judged_for_all_features_at_once():
    # 0.14 is 2.55 errors above 2 % of the range 1.9: enough for one feature, not for twenty.
    n_features = 20
    names = tuple(f"v{number}" for number in range(n_features))
    values = np.zeros(n_features)
    values[0] = 1.9
    audit = TermEstimate(
        TermKind.CORRECTION, np.full(n_features, 0.14), np.full(n_features, 0.04), 8, 9
    )
    frame = made(feature_names=names, values=values, audit=audit).audit_frame()
    assert (frame["upper"] < -0.02 * 1.9).all()
    assert not frame["matters"].any()


def parts_of(n):
    """Made-up values of several outputs, or parts."""
    rng = np.random.default_rng(n)
    names = ("values", "se_orderings", "se_draws", "se_rows", "df")
    return OutputEstimate(**{name: rng.uniform(1.0, 2.0, size=(n, 3)) for name in names})


def test_an_output_has_its_own_values_and_errors():
    outputs = parts_of(2)
    found = made(outputs=outputs)
    for at in (0, 1):
        one = found.of_output(at)
        for name, array in vars(outputs).items():
            np.testing.assert_array_equal(vars(one)[name], array[at])
        assert (one.terms, one.audit, one.outputs, len(one.history)) == ((), None, None, 0)
        assert (one.feature_names, one.n_orderings, one.df_rows) == (NAMES, 20, found.df_rows)
    for wrong, given, n_outputs in ((2, found, 2), (-1, found, 2), (0, made(), 0)):
        text = f"the number of one of {n_outputs} outputs; got {wrong}"
        with pytest.raises(ValueError, match=text):
            given.of_output(wrong)


def test_causal_values_are_shown_with_their_parts():
    parts = parts_of(2)
    frame = made(parts=parts).to_frame().set_index("feature").loc[list(NAMES)]
    for at, name in enumerate(("direct", "indirect")):
        np.testing.assert_array_equal(frame[name], parts.values[at])
        np.testing.assert_allclose(
            frame[f"se_{name}"], np.hypot(parts.se_orderings[at], parts.se_draws[at])
        )
    assert "direct" not in made().to_frame()


def test_the_surpluses_of_a_feature_are_the_orderings_of_the_main_term():
    (term,) = made().terms
    first = replace(term, kind=TermKind.FIRST_LEVEL, n_orderings=7)
    last = replace(term, kind=TermKind.CORRECTION, n_orderings=9)
    for kind in (TermKind.SAMPLED, TermKind.ENUMERATED):
        found = made(terms=(first, replace(term, kind=kind), last))
        assert found.n_surpluses == 20
