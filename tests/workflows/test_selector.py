"""`FeatureSelector` as a part of scikit-learn, and what it selects."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import dsage
from dsage import Explainer, FeatureSelector
from explain_case import chain, mixed

QUICK = {"graph": None, "sampler": "gaussian", "sampler_check": False, "progress": False}
FAST = Explainer(**QUICK)
TINY = Explainer(**QUICK, n_orderings=2, exact="never", first_level="none")


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([FeatureSelector(LinearRegression(), k=1, explainer=TINY)])
def test_the_selector_keeps_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rows():
    return chain()


@pytest.fixture(scope="module")
def selector(rows):
    return FeatureSelector(LinearRegression(), explainer=FAST, random_state=0).fit(*rows)


def test_noise_is_not_selected_and_causes_are(selector):
    assert selector.get_feature_names_out().tolist() == ["a", "b", "c"]
    assert selector.get_support().tolist() == [True, True, True, False]


def test_evaluation_rows_were_not_seen(rows):
    seen = []

    class Recorder(LinearRegression):
        def fit(self, X, y):
            seen.extend(X.index)
            return super().fit(X, y)

    found = FeatureSelector(Recorder(), explainer=FAST, random_state=0).fit(*rows)
    data = found.explanation_.choices.data
    assert (len(seen), data.n_rows_train, data.n_rows_evaluation) == (225, 225, 75)
    assert len(set(seen)) == 225


def test_a_pipeline_selects_and_predicts_with_names(rows):
    X, y = rows
    selector = FeatureSelector(LinearRegression(), k=1, explainer=FAST, random_state=0)
    pipeline = make_pipeline(StandardScaler(), selector, LinearRegression())
    pipeline.set_output(transform="pandas").fit(X, y)
    assert pipeline[:-1].get_feature_names_out().tolist() == ["c"]
    assert pipeline[:-1].transform(X).columns.tolist() == ["c"]
    assert pipeline.score(X, y) > 0.5
    assert pipeline.set_params(featureselector__explainer__n_orderings=16) is pipeline


def test_categories_reach_the_model_as_they_are(rows):
    X, y = mixed()
    kinds = []

    class Votes(LogisticRegression):
        def fit(self, X, y):
            kinds.append(X.dtypes.astype(str).tolist())
            return super().fit(X[["size"]], y)

        def predict_proba(self, X):
            return super().predict_proba(X[["size"]])

    explainer = Explainer(graph=None, sampler="marginal", n_orderings=8, progress=False)
    found = FeatureSelector(Votes(), k=1, explainer=explainer, random_state=0).fit(X, y)
    assert found.get_feature_names_out().tolist() == ["size"]
    assert kinds == [X.dtypes.astype(str).tolist()]
    assert found.set_output(transform="pandas").transform(X)["size"].equals(X["size"])


@pytest.mark.parametrize(
    ("correction", "is_selected"),
    [("none", [True, True, False]), ("holm", [True, False, False]),
     ("simultaneous", [True, False, False])],
)  # fmt: skip
def test_corrections_account_for_the_number_of_features(selector, correction, is_selected):
    # One-sided p-values 0.0001, 0.03 and 0.3.
    estimate = replace(
        selector.explanation_.estimate,
        feature_names=("a", "b", "c"),
        values=np.array([3.72, 1.88, 0.52]),
        se_orderings=np.zeros(3),
        se_draws=np.zeros(3),
        se_rows=np.ones(3),
        df=np.full(3, np.inf),
        df_rows=np.inf,
    )
    explanation = replace(selector.explanation_, estimate=estimate)
    chosen = FeatureSelector(LinearRegression(), correction=correction)._choose(explanation)
    assert chosen.tolist() == is_selected


def test_a_group_is_selected_as_a_whole(rows):
    explainer = Explainer(**FAST.get_params() | {"groups": {"both": ["a", "d"]}})
    found = FeatureSelector(LinearRegression(), k=2, explainer=explainer, random_state=0).fit(*rows)
    assert found.explanation_.feature_names == ("both", "b", "c")
    assert found.get_support().sum() in (2, 3)
    assert len(set(found.get_support()[[0, 3]])) == 1


def test_a_fitted_model_is_not_fitted_again(rows):
    X, y = rows
    model = LinearRegression().fit(X[:150], y[:150])
    before = model.coef_.copy()
    found = FeatureSelector(model, prefit=True, explainer=FAST, random_state=0)
    found.fit(X[150:], y[150:])
    assert found.estimator_ is model
    np.testing.assert_array_equal(model.coef_, before)


def test_the_explanation_and_its_parts_are_kept(selector):
    assert isinstance(selector.explanation_, dsage.Explanation)
    assert selector.explanation_.sampler.is_fitted


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"k": 5}, ValueError, "k must be at most 4; got 5"),
        ({"k": 0}, ValueError, "k must be at least 1"),
        ({"alpha": 0.9}, ValueError, r"alpha must be in \(0, 0.5\]"),
        ({"correction": "hlom"}, ValueError, "Did you mean 'holm'"),
        ({"test_size": 0}, ValueError, r"test_size must be in \(0, 1\]"),
        ({"explainer": 3}, TypeError, "explainer must be an Explainer; got 'int'"),
        ({"prefit": True}, ValueError, "not fitted"),
    ],
)
def test_bad_options_are_named(rows, options, error, text):
    with pytest.raises(error, match=text):
        FeatureSelector(LinearRegression(), **{"explainer": FAST, **options}).fit(*rows)


def test_too_few_rows_are_refused(rows):
    X, y = rows
    with pytest.raises(ValueError, match="X must be of at least 4 rows; got 3"):
        FeatureSelector(LinearRegression(), explainer=FAST).fit(X[:3], y[:3])


def test_classes_are_shared_out_where_that_is_possible():
    X = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 7})
    y = np.where(np.arange(40) < 30, "no", "yes")
    found = FeatureSelector(LogisticRegression(), k=1, random_state=0)
    _, _, _, y_test = found._split(X, y, 0)
    assert (y_test == "yes").sum() in (2, 3)
    y[:] = "no"
    y[0] = "yes"
    assert len(found._split(X, y, 0)[3]) == 10


@pytest.mark.parametrize("correction", ["holm", "simultaneous", "none"])
def test_cross_validation_evaluates_all_rows(rows, correction):
    selector = FeatureSelector(
        LinearRegression(), cv=5, correction=correction, explainer=FAST, random_state=0
    ).fit(*rows)
    folded = selector.explanation_
    assert sum(each.choices.data.n_rows_evaluation for each in folded.folds) == len(rows[0])
    assert selector.get_support()[-1] == np.False_
    assert selector.get_support().any()
    assert selector.estimator_.n_features_in_ == 4
    if correction == "holm":
        sure = folded.to_frame().set_index("feature")["p_value"].loc[list(folded.feature_names)]
        assert selector.get_support().tolist() == (sure <= 0.05).tolist()


def test_the_best_of_all_folds_are_selected_with_their_groups(rows):
    X, y = rows
    grouped = Explainer(**QUICK, groups={"a group": ["a", "b"]})
    selector = FeatureSelector(LinearRegression(), k=1, cv=3, explainer=grouped, random_state=0)
    support = selector.fit(X, y).get_support()
    best = selector.explanation_.to_frame()["feature"][0]
    members = ["a", "b"] if best == "a group" else [best]
    assert X.columns[support].tolist() == members


def test_a_fitted_model_cannot_be_cross_validated(rows):
    model = LinearRegression().fit(*rows)
    with pytest.raises(ValueError, match="cv must be None with prefit=True"):
        FeatureSelector(model, prefit=True, cv=3).fit(*rows)


def test_an_error_in_a_fold_names_the_fold(rows):
    X, y = rows
    classes = np.where(np.arange(len(y)) < 100, "x", "y")
    folds = [(np.arange(60), np.arange(60, 300))]
    selector = FeatureSelector(LogisticRegression(), cv=folds, explainer=FAST)
    with pytest.raises(ValueError, match="fold 1 of 1: "):
        selector.fit(X, classes)
