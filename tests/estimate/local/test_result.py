import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dsage.estimate import LocalEstimate, intervals

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
