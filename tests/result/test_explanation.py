import math
from dataclasses import replace

import numpy as np
import pytest

from dsage.estimate.inference import intervals
from explanations import make_explanation, with_check

COLUMNS = [
    "feature", "value", "se", "lower", "upper", "se_rows", "lower_total", "upper_total",
    "se_sampler", "sampler_matters", "share", "n_evaluated", "n_skipped", "audit_difference", "audit_lower", "audit_upper", "audit_matters",
    "p_value",
]  # fmt: skip


@pytest.fixture(scope="module")
def explanation():
    return make_explanation(4)


def test_the_frame_has_a_line_for_each_feature_the_largest_first(explanation):
    frame = explanation.to_frame()
    assert list(frame.columns) == COLUMNS
    assert sorted(frame["feature"]) == sorted(explanation.feature_names)
    assert frame["value"].is_monotonic_decreasing
    by_name = frame.set_index("feature").loc[list(explanation.feature_names)]
    np.testing.assert_array_equal(by_name["value"], explanation.values)
    np.testing.assert_array_equal(by_name["se"], explanation.se)


def test_the_interval_for_the_population_counts_the_error_of_the_rows(explanation):
    frame = explanation.to_frame(0.9)
    known = explanation.estimate
    low, high = intervals(known.values, known.se_total, 0.9, df=known.df_total)
    by_name = frame.set_index("feature").loc[list(explanation.feature_names)]
    np.testing.assert_allclose(by_name["lower_total"], low)
    np.testing.assert_allclose(by_name["upper_total"], high)
    assert (frame["lower_total"] < frame["lower"]).all()


def test_shares_sum_to_one_and_surpluses_to_the_orderings(explanation):
    frame = explanation.to_frame()
    assert frame["share"].sum() == pytest.approx(1.0)
    assert set(frame["n_evaluated"] + frame["n_skipped"]) == {explanation.estimate.n_surpluses}
    skipped = frame.set_index("feature").loc[list(explanation.feature_names), "n_skipped"]
    np.testing.assert_array_equal(
        skipped, np.rint(explanation.estimate.share_skipped * explanation.estimate.n_surpluses)
    )
    assert explanation.share_skipped == pytest.approx(
        skipped.mean() / explanation.estimate.n_surpluses
    )


def test_all_orderings_of_many_features_are_counted_exactly(explanation):
    known = explanation.estimate
    count = math.factorial(200)
    levels = tuple(
        replace(term, n_orderings=count) if term.is_main else term for term in known.terms
    )
    share = np.array([0.0, 0.25, 0.5, 1.0])
    many = replace(explanation, estimate=replace(known, terms=levels, share_skipped=share))
    frame = many.to_frame().set_index("feature").loc[list(explanation.feature_names)]
    assert frame["n_skipped"].tolist() == [0, count // 4, count // 2, count]
    assert set(frame["n_evaluated"] + frame["n_skipped"]) == {count}


def test_the_audit_is_in_the_frame_or_unknown(explanation):
    audit = explanation.estimate.audit_frame().set_index("feature")
    frame = explanation.to_frame().set_index("feature").loc[list(audit.index)]
    np.testing.assert_allclose(frame["audit_difference"], audit["difference"])
    np.testing.assert_allclose(frame["audit_lower"], audit["lower"])
    np.testing.assert_array_equal(frame["audit_matters"], audit["matters"])
    plain = make_explanation(2, audited=False).to_frame()
    assert plain["audit_difference"].isna().all()
    assert not plain["audit_matters"].any()


def test_the_history_ends_with_the_result(explanation):
    history = explanation.estimate.history
    assert len(history) > 1
    np.testing.assert_array_equal(history.values[-1], explanation.values)
    np.testing.assert_array_equal(history.se[-1], explanation.se)
    assert (np.diff(history.n_evaluated) >= 0).all()
    assert history.n_evaluated[-1] == explanation.estimate.n_evaluated


def test_groups_are_the_features_of_a_record_of_groups():
    groups = {"first": ["feature 0", "feature 1"], "last": ["feature 2"]}
    explanation = make_explanation(3, groups=groups)
    assert explanation.feature_names == ("first", "last")
    assert sorted(explanation.to_frame()["feature"]) == ["first", "last"]


def test_the_error_of_the_sampler_is_in_the_frame_and_none_without_a_check(explanation):
    assert explanation.se_sampler is None
    assert explanation.to_frame()["se_sampler"].isna().all()
    assert not explanation.to_frame()["sampler_matters"].any()
    checked = with_check(explanation, [0.0, 0.01, 0.02, 5.0])
    np.testing.assert_allclose(checked.se_sampler, [0.0, 0.01, 0.02, 5.0], atol=1e-3)
    by_name = checked.to_frame().set_index("feature").loc[list(checked.feature_names)]
    np.testing.assert_array_equal(by_name["se_sampler"], checked.se_sampler)
    assert by_name["sampler_matters"].tolist() == [False, False, False, True]
