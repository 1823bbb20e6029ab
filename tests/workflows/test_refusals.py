"""What cannot be explained is refused by name: the argument, the fold, the model, the data or the row."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

import dsage
from fold_case import QUICK, table

X, Y = table()
LINEAR = LinearRegression().fit(X, Y)
ROWS = X[:40], Y[:40], X[40:], Y[40:]
PLAIN = {"sampler": "gaussian", "random_state": 0, "progress": False}


def cross_validate(estimator=None, X=X, y=Y, cv=2, **options):
    estimator = LinearRegression() if estimator is None and "models" not in options else estimator
    return dsage.explain_cv(estimator, X, y, cv, **options, **QUICK)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": LinearRegression}, r"estimator must be .*Pass an instance: LinearRegr"),
        ({"models": LINEAR}, "models must be several models; got 'LinearRegression'"),
        ({"models": "ab"}, "models must be several models; got 'str'"),
        ({"models": [LINEAR, None]}, "fold 2 of 2: model must be callable, or an object with pr"),
        ({"models": [LINEAR, Ridge]}, r"fold 2 of 2: model must be .*Fit an instance: Ridge\(\)"),
        ({"estimator": LINEAR, "models": [LINEAR] * 2}, "estimator must be None if models are"),
        ({"X": None}, "data must be a data frame"),
        ({"y": Y[:9]}, "y must be of 60 rows, as X is; got 9"),
        ({"fit_params": [1]}, "fit_params must be a mapping of names; got 'list'"),
        ({"sample_weight": ["a"] * 60}, "sample_weight must be numbers"),
        ({"checkpoint": 3}, "checkpoint must be a folder; got 3"),
        ({"cv": [([], [1, 2])]}, "fold 1 of 1: cv must be folds with rows in both parts"),
    ],
)
def test_wrong_arguments_of_cross_validation_are_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        cross_validate(**arguments)


def test_models_may_come_from_a_generator():
    found = cross_validate(models=(LINEAR for _ in range(2)))
    assert len(found.folds) == 2


class Mean:
    """A learner that does not follow the conventions: its fit returns nothing."""

    def fit(self, X, y):
        self.mean_ = np.mean(y)

    def predict(self, X):
        return np.full(len(X), self.mean_)


def test_an_estimator_whose_fit_returns_nothing_is_explained():
    found = cross_validate(Mean())
    np.testing.assert_allclose(found.values, 0.0, atol=1e-9)


def test_a_single_fold_is_not_called_folds():
    found = cross_validate(cv=[(np.arange(40), np.arange(40, 60))])
    assert ", 1 fold: " in repr(found)


@pytest.mark.parametrize("model", [None, "forest", Ridge])
def test_what_cannot_predict_is_refused_with_the_name_of_the_model(model):
    with pytest.raises(TypeError, match="model 'bad': model must be callable, or an object"):
        dsage.compare({"good": LINEAR, "bad": model}, *ROWS, **PLAIN)


def test_a_data_set_of_none_is_refused():
    with pytest.raises(TypeError, match="data 'new' must be a pair of rows and targets"):
        dsage.compare_data(LINEAR, *ROWS[:2], {"old": ROWS[2:], "new": (None, None)}, **PLAIN)


def test_the_wrong_options_of_combine_are_refused():
    folded = cross_validate()
    with pytest.raises(TypeError, match="pooled already"):
        dsage.combine(folded)
    with pytest.raises(TypeError, match="shared_rows must be True, False or None"):
        dsage.combine(folded.folds, shared_rows="yes")


def test_a_row_of_an_unknown_class_is_named():
    labels = np.where(Y > 0, "yes", "no")
    model = LogisticRegression().fit(X, labels)
    wrong = ["yes", "maybe", "no"]
    with pytest.raises(ValueError, match=r"got 'maybe'\. Row 1 is the first") as found:
        dsage.explain_rows(model, X, labels, X[:3], wrong, values="loss", graph=None, **PLAIN)
    assert found.value.__notes__ == ["This is about y_rows."]


def test_an_output_of_losses_is_refused():
    with pytest.raises(TypeError, match="output must be left out for values='loss'"):
        dsage.explain_rows(LINEAR, X, Y, X[:3], Y[:3], values="loss", output=1, graph=None, **PLAIN)


def test_rows_are_selected_by_masks_and_named_by_labels_of_several_levels():
    rows = X[:3].set_axis(pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a")]))
    found = dsage.explain_rows(LINEAR, X, Y, rows, graph=None, **PLAIN)
    assert found.to_frame()["row"][0] == (1, "a")
    assert found[np.array([True, False, True])].row_names == ((1, "a"), (2, "a"))
    for nothing in ([], slice(3, 3), np.zeros(3, bool)):
        with pytest.raises(IndexError, match="the index must be at least one row"):
            found[nothing]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": []}, "measures must be one or more"),
        ({"measures": "pfi", "refit": LINEAR.fit}, "refit must be given for 'loco' only"),
        ({"measures": "pfi", "rng": 1}, "rng must be left out if random_state"),
    ],
)
def test_wrong_options_of_measures_are_named(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        dsage.explain_measures(LINEAR, *ROWS, **options, **PLAIN)


def test_measures_take_another_name_of_the_seed():
    options = {"measures": "pfi", "sampler": "gaussian", "progress": False}
    one, other = (
        dsage.explain_measures(LINEAR, *ROWS, **options, **{name: 3})
        for name in ("rng", "random_state")
    )
    np.testing.assert_array_equal(one.table(), other.table())


def test_a_single_feature_has_no_interactions():
    few = X[["much"]]
    with pytest.raises(ValueError, match="interactions must be False if there is one feature"):
        dsage.explain_measures(
            LinearRegression().fit(few, Y), few, Y, few, Y, measures="total", interactions=True,
            **PLAIN,
        )  # fmt: skip


def test_an_explainer_needs_targets():
    with pytest.raises(TypeError, match="y must be the targets of the rows"):
        dsage.Explainer(graph=None, sampler="gaussian").fit(X, None)


@pytest.mark.parametrize("estimator", [None, len, LinearRegression])
def test_a_selector_needs_an_estimator(estimator):
    with pytest.raises(TypeError, match="estimator must be an estimator"):
        dsage.FeatureSelector(estimator).fit(X, Y)


def test_a_selector_leaves_rows_to_fit():
    with pytest.raises(ValueError, match="test_size must be below 1"):
        dsage.FeatureSelector(LinearRegression(), test_size=1.0).fit(X, Y)
