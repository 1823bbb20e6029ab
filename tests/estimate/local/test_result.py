import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dsage.estimate import LocalEstimate, intervals
from dsage.estimate.local.result import RowAudit, RowParts

# shap itself uses what newer releases of matplotlib will deprecate.
IMPORTS_SHAP = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
GENERATOR = np.random.default_rng(0)
VALUES = GENERATOR.normal(size=(3, 2))
DATA = pd.DataFrame({"b": ["u", "v", "u"], "other": [9, 9, 9], "a": [1.5, 2.5, 3.5]})
LOCAL = LocalEstimate(
    feature_names=("a", "b"),
    values=VALUES,
    se_orderings=np.array([[0.3, 0.0], [0.1, 0.2], [0.0, 0.0]]),
    se_draws=np.array([[0.4, 0.0], [0.0, 0.0], [0.0, 0.3]]),
    df=np.array([[5.0, 6.0], [7.0, 8.0], [9.0, np.inf]]),
    base_value=0.25,
    predictions=VALUES.sum(axis=1) + np.array([0.2, 0.25, 0.3]),
    data=DATA,
    n_orderings=10,
    n_evaluated=100,
    n_shared=0,
    share_skipped=np.zeros(2),
    seconds=0.0,
    is_exact=False,
)


def test_errors_of_orderings_and_draws_are_joined():
    np.testing.assert_allclose(LOCAL.se, [[0.5, 0.0], [0.1, 0.2], [0.0, 0.3]])


def test_what_base_and_values_leave_of_the_predictions_is_unexplained():
    np.testing.assert_allclose(LOCAL.unexplained, [-0.05, 0.0, 0.05], atol=1e-15)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_frame_has_a_line_for_each_row_and_feature(confidence):
    frame = LOCAL.to_frame(confidence)
    assert frame.columns.tolist() == ["row", "feature", "value", "se", "lower", "upper"]
    assert frame["row"].tolist() == [0, 0, 1, 1, 2, 2]
    assert frame["feature"].tolist() == ["a", "b"] * 3
    for line in frame.itertuples():
        at = line.row, ["a", "b"].index(line.feature)
        low, high = intervals([VALUES[at]], [LOCAL.se[at]], confidence, df=LOCAL.df[at])
        assert (line.value, line.se) == (VALUES[at], LOCAL.se[at])
        assert (line.lower, line.upper) == (pytest.approx(low[0]), pytest.approx(high[0]))


@IMPORTS_SHAP
@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas])
def test_shap_gets_values_bases_and_the_columns_that_were_explained(convert):
    explanation = replace(LOCAL, data=convert(DATA)).to_shap()
    np.testing.assert_array_equal(explanation.values, VALUES)
    np.testing.assert_array_equal(explanation.base_values, [0.25] * 3)
    assert explanation.feature_names == ["a", "b"]
    assert explanation.data.tolist() == [[1.5, "u"], [2.5, "v"], [3.5, "u"]]
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, LOCAL.predictions - LOCAL.unexplained)
    assert explanation[1].values.shape == (2,)
    assert explanation[:, "b"].values.tolist() == VALUES[:, 1].tolist()


@IMPORTS_SHAP
def test_shap_gets_arrays_as_they_are():
    matrix = GENERATOR.normal(size=(3, 2))
    explanation = replace(LOCAL, data=matrix).to_shap()
    np.testing.assert_array_equal(explanation.data, matrix)


def test_without_shap_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"pip install 'dsage\[shap\]'"):
        LOCAL.to_shap()


def test_what_is_unexplained_is_divided_by_the_variances():
    # Rows with both errors, with errors of one value, and without any: 0.3 of each is unexplained.
    values = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [0.0, 0.0], [1.0, 2.0]])
    se = np.array([[0.3, 0.6], [0.0, 0.5], [0.0, 0.0], [0.0, 0.0], [np.nan, 0.5]])
    local = replace(
        LOCAL, values=values, se_orderings=se, se_draws=np.zeros((5, 2)), df=np.ones((5, 2)),
        base_value=0.0, predictions=values.sum(axis=1) + 0.3,
    )  # fmt: skip
    shift = local.balanced().values - values
    expected = [[0.06, 0.24], [0.0, 0.3], [0.06, 0.24], [0.15, 0.15], [0.0, 0.0]]
    np.testing.assert_allclose(shift, expected, atol=1e-12)
    # Values with separations need not add up, nor do those of losses.
    assert replace(local, estimand="d-sage").balanced().values is values
    assert replace(local, is_loss=True).balanced().values is values


@pytest.mark.parametrize(("off", "is_shared"), [(1e-8, False), (1e-5, True)])
def test_values_without_errors_keep_what_rounding_leaves(off, is_shared):
    # A billionth of the prediction, or of the base value, is rounding.
    values = np.array([[1.0, 2.0], [-60.0, 2.0]])
    local = replace(
        LOCAL, values=values, se_orderings=np.zeros((2, 2)), se_draws=np.zeros((2, 2)),
        base_value=np.array([0.0, 100.0]), predictions=np.array([3.0, 42.0]) * (1 + off / 100),
    )  # fmt: skip
    large = replace(local, base_value=np.array([100.0, 100.0]), predictions=np.array([103.0, 42.0]))
    large = replace(large, predictions=large.predictions + off)
    changed = (large.balanced().values != values).any(axis=1)
    assert changed.tolist() == [is_shared, is_shared]
    small = replace(local, predictions=np.array([3.0 + 1e-8, 42.0]))
    assert (small.balanced().values != values).any(axis=1).tolist() == [True, False]


def test_parts_share_a_change_by_their_own_variances():
    parts = RowParts(
        direct=np.array([[1.0, 2.0, 3.0]]),
        indirect=np.array([[0.5, 0.5, 0.5]]),
        se_direct=np.array([[0.3, 0.0, 0.0]]),
        se_indirect=np.array([[0.1, 0.2, 0.0]]),
    )
    found = parts.shifted(np.array([[1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(found.direct, [[1.9, 2.0, 4.0]])
    np.testing.assert_allclose(found.indirect, [[0.6, 1.5, 0.5]])
    local = replace(
        LOCAL, feature_names=tuple("abc"), values=np.array([[1.5, 2.5, 3.5]]),
        se_orderings=np.array([[0.3, 0.4, 0.0]]), se_draws=np.zeros((1, 3)), base_value=0.0,
        df=np.ones((1, 3)), predictions=np.array([8.0]), parts=parts,
    )  # fmt: skip
    even = local.balanced()
    np.testing.assert_allclose(even.values.sum(axis=1), even.predictions)
    np.testing.assert_allclose(even.parts.direct + even.parts.indirect, even.values)
    frame = even.to_frame()
    np.testing.assert_allclose(frame["direct"] + frame["indirect"], frame["value"])
    np.testing.assert_allclose(frame["se_indirect"], [0.1, 0.2, 0.0])


def test_differences_matter_beyond_two_percent_of_the_range():
    values = np.array([[0.0, 10.0], [5.0, 3.0]])
    differences = np.array([[0.21, 0.19], [-0.21, -0.19]])
    audit = RowAudit(differences, np.zeros((2, 2)), np.full((2, 2), np.inf))
    assert audit.matters(values).tolist() == [[True, False], [True, False]]
    noisy = RowAudit(differences, np.full((2, 2), 0.05), np.full((2, 2), 20.0))
    assert not noisy.matters(values).any()
    sure = RowAudit(10 * differences, np.full((2, 2), 0.05), np.full((2, 2), 20.0))
    assert sure.matters(values).all()
    only = audit.take(np.array([1]))
    assert only.matters(values).tolist() == [[True, False]]


def test_some_rows_have_their_own_part_of_everything():
    audit = RowAudit(VALUES, VALUES**2, VALUES + 9)
    parts = RowParts(VALUES, -VALUES, VALUES**2, VALUES**4)
    whole = replace(LOCAL, audit=audit, parts=parts, base_value=np.array([1.0, 2.0, 3.0]))
    rows = np.array([2, 0])
    found = whole.take(rows)
    for name in ("values", "se_orderings", "se_draws", "df", "base_value", "predictions"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name)[rows])
    np.testing.assert_array_equal(found.audit.se, audit.se[rows])
    np.testing.assert_array_equal(found.parts.se_indirect, parts.se_indirect[rows])
    assert found.data["a"].tolist() == [3.5, 1.5]
    assert LOCAL.take(rows).base_value == 0.25
    assert (LOCAL.take(rows).audit, LOCAL.take(rows).parts) == (None, None)
