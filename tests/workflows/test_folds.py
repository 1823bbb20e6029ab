"""Cross-validated explanations: the folds are those of `explain`, and the pooled values their mean."""

import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_validate,
)

import dsage
from dsage._check import DsageWarning
from fold_case import QUICK, table


def test_a_fold_is_the_explanation_of_its_own_model_on_its_own_rows():
    X, y = table()
    folded = dsage.explain_cv(LinearRegression(), X, y, cv=3, **QUICK)
    train, test = list(KFold(3).split(X))[1]
    model = LinearRegression().fit(X.iloc[train], y.iloc[train])
    alone = dsage.explain(model, X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test], **QUICK)
    np.testing.assert_array_equal(folded.folds[1].values, alone.values)
    assert folded.target == "outcome"


def test_pooled_values_are_means_over_evaluated_rows():
    X, y = table(50)
    folded = dsage.explain_cv(LinearRegression(), X, y, cv=3, **QUICK)  # 17, 17 and 16 rows
    np.testing.assert_allclose(folded.weights, np.array([17, 17, 16]) / 50)
    np.testing.assert_allclose(folded.values, folded.weights @ folded.fold_values)


def test_weights_of_rows_weigh_folds_and_rows():
    X, y = table()
    weights = np.r_[np.full(30, 3.0), np.ones(30)]
    folded = dsage.explain_cv(LinearRegression(), X, y, cv=2, sample_weight=weights, **QUICK)
    np.testing.assert_allclose(folded.weights, [0.75, 0.25])
    varied = np.linspace(0.1, 2.0, 60)
    other = dsage.explain_cv(LinearRegression(), X, y, cv=2, sample_weight=varied, **QUICK)
    assert not np.allclose(other.folds[0].values, folded.folds[0].values)


@pytest.mark.parametrize(
    ("cv", "groups", "repeats"),
    [
        (GroupKFold(3), np.arange(60) % 6, (1, 1, 1)),
        (LeaveOneGroupOut(), np.arange(60) % 3, (1, 1, 1)),
        (TimeSeriesSplit(3), None, (1, 1, 1)),
        (RepeatedKFold(n_splits=2, n_repeats=2, random_state=0), None, (1, 1, 2, 2)),
        (ShuffleSplit(2, test_size=0.6, random_state=0), None, (1, 2)),
        ([(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))], None, (1, 1)),
        ([(np.arange(60) < 40, np.arange(60) >= 40)], None, (1,)),
    ],
    ids=["groups", "leave one group out", "time", "repeats", "shuffles", "pairs", "masks"],
)
def test_any_splitter_is_taken(cv, groups, repeats):
    X, y = table()
    folded = dsage.explain_cv(LinearRegression(), X, y, cv, cv_groups=groups, **QUICK)
    assert folded.repeats == repeats
    assert np.isfinite(folded.values).all()
    assert len(folded.fold_frame()) == 3 * len(repeats)


def test_fitted_models_of_cross_validate_are_taken():
    X, y = table()
    found = cross_validate(LinearRegression(), X, y, cv=3, return_estimator=True)
    given = dsage.explain_cv(None, X, y, cv=3, models=found["estimator"], **QUICK)
    fitted = dsage.explain_cv(LinearRegression(), X, y, cv=3, **QUICK)
    np.testing.assert_array_equal(given.fold_values, fitted.fold_values)


def test_functions_are_taken_as_fitted_models():
    X, y = table(24)
    functions = [lambda X: X["much"].to_numpy(), lambda X: 2.0 * X["much"].to_numpy()]
    folded = dsage.explain_cv(None, X, y, cv=2, models=functions, n_orderings=4, **QUICK)
    assert (folded.fold_values[:, 0] > 0).all()


def test_models_of_random_folds_are_refused_with_the_way_out():
    X, y = table()
    random = KFold(3, shuffle=True)
    found = cross_validate(
        LinearRegression(), X, y, cv=random, return_estimator=True, return_indices=True
    )
    with pytest.raises(ValueError, match="cv must be a splitter that repeats its folds"):
        dsage.explain_cv(None, X, y, cv=random, models=found["estimator"], **QUICK)
    pairs = zip(found["indices"]["train"], found["indices"]["test"], strict=True)
    folded = dsage.explain_cv(None, X, y, cv=pairs, models=found["estimator"], **QUICK)
    assert len(folded.folds) == 3


def test_results_do_not_depend_on_the_number_of_jobs():
    X, y = table()
    alone, together = (
        dsage.explain_cv(LinearRegression(), X, y, cv=2, n_jobs=n_jobs, **QUICK)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(alone.fold_values, together.fold_values)


def test_other_data_frames_and_arrays_are_split():
    X, y = table()
    plain = dsage.explain_cv(LinearRegression(), X.to_numpy(), y.to_numpy(), cv=2, **QUICK)
    polars = dsage.explain_cv(
        LinearRegression(), pl.DataFrame(X.to_dict("list")), pl.Series("z", y), cv=2, **QUICK
    )
    np.testing.assert_allclose(plain.values, polars.values)
    assert polars.target == "z"


def test_folds_of_a_classifier_are_stratified():
    X, y = table(30)
    labels = np.sort((y > y.median()).to_numpy())  # without strata a fold would have one class
    folded = dsage.explain_cv(LogisticRegression(), X, labels, cv=3, n_orderings=4, **QUICK)
    assert folded.folds[0].choices.loss.name == "cross_entropy"


def test_parameters_of_fit_are_split_with_the_rows():
    X, y = table()
    weights = np.linspace(1.0, 9.0, 60)
    folded = dsage.explain_cv(
        LinearRegression(), X, y, cv=2, fit_params={"sample_weight": weights}, **QUICK
    )
    train, test = next(KFold(2).split(X))
    model = LinearRegression().fit(X.iloc[train], y.iloc[train], sample_weight=weights[train])
    alone = dsage.explain(model, X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test], **QUICK)
    np.testing.assert_array_equal(folded.folds[0].values, alone.values)


class OnNumbers(LinearRegression):
    """Ignores a column of text."""

    def fit(self, X, y):
        return super().fit(X.drop(columns="kind"), y)

    def predict(self, X):
        return super().predict(X.drop(columns="kind"))


def test_warnings_of_folds_are_told_once_with_the_folds():
    X, y = table(30)
    X["kind"] = ["a"] * 29 + ["b"]
    options = {**QUICK, "sampler": "marginal", "n_orderings": 4}
    with pytest.warns(DsageWarning) as told:
        folded = dsage.explain_cv(OnNumbers(), X, y, cv=3, **options)
    texts = [str(each.message) for each in told]
    assert len(texts) == 1
    assert texts[0].startswith("fold 3 of 3: Column 'kind' has 1 category in X_test")
    assert len(folded.warnings) == 1


# Errors


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"cv": 1}, "cv must be a number of folds or a splitter.*k-fold"),
        ({"cv": []}, "cv must be one fold or more"),
        ({"cv": [([0, 1, 2], [2, 3])]}, "fold 1 of 1: cv must be pairs of different rows; got 'rows 2"),
        ({"cv": [([0, 1], [99])]}, "fold 1 of 1: cv must be pairs of rows from 0 to 59; got 99"),
        ({"cv": [([0, 1], [])]}, "fold 1 of 1: cv must be pairs of arrays|folds with rows"),
        ({"cv": [([0.5], [1])]}, "fold 1 of 1: cv must be pairs of arrays of whole numbers"),
        ({"cv_groups": [1, 2]}, "cv_groups must be of 60 rows, as y is; got 2"),
        ({"estimator": 3}, "estimator must be an object with a method fit; got 'int'"),
        ({"models": [LinearRegression()]}, "models must be 5 models, one per fold; got 1"),
        ({"smpler": "gaussian"}, "Did you mean 'sampler'"),
        ({"loss": "msee"}, "^fold 1 of 5: loss must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"sample_weight": [1.0]}, "sample_weight must be of shape"),
    ],
)  # fmt: skip
def test_a_bad_argument_is_named(change, text):
    X, y = table()
    with pytest.raises((ValueError, TypeError), match=text):
        dsage.explain_cv(**{"estimator": LinearRegression(), "X": X, "y": y, **QUICK, **change})


def test_an_empty_part_of_a_fold_is_named():
    X, y = table()
    pairs = [(np.arange(60), np.arange(0))]
    with pytest.raises(ValueError, match="fold 1 of 1: cv must be folds with rows in both parts"):
        dsage.explain_cv(LinearRegression(), X, y, pairs, **QUICK)


class FailsOnce(LinearRegression):
    """Refuses rows of which the first is not row 0."""

    def fit(self, X, y):
        if X.index[0] != 0:
            raise RuntimeError("cannot be fitted")
        return super().fit(X, y)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_error_names_the_fold(n_jobs):
    X, y = table()
    with pytest.raises(RuntimeError, match=r"^fold 1 of 3: cannot be fitted"):
        dsage.explain_cv(FailsOnce(), X, y, cv=3, n_jobs=n_jobs, **QUICK)


# Interrupts and checkpoints


class Interrupted:
    """Is interrupted while a model is fitted to the first two thirds of the rows, if `is_on`."""

    is_on = True

    def fit(self, X, y):
        if Interrupted.is_on and X.index[-1] == 39:
            raise KeyboardInterrupt
        return LinearRegression().fit(X, y)


@pytest.mark.interrupts
def test_an_interrupt_returns_the_folds_so_far():
    X, y = table()
    folded = dsage.explain_cv(Interrupted(), X, y, cv=3, **QUICK)
    assert len(folded.folds) == 2
    assert folded.is_interrupted
    assert "interrupted: these are 2 of 3 folds" in repr(folded)


@pytest.mark.interrupts
def test_the_same_call_resumes_from_its_folder(tmp_path, monkeypatch):
    X, y = table()
    call = {"cv": 3, "checkpoint": tmp_path / "run", **QUICK}
    dsage.explain_cv(Interrupted(), X, y, **call)
    names = sorted(file.name for file in (tmp_path / "run").iterdir())
    assert names == ["fold-1.dsage", "fold-2.dsage", "run.json"]
    written = (tmp_path / "run" / "fold-1.dsage").stat().st_mtime_ns
    monkeypatch.setattr(Interrupted, "is_on", False)
    resumed = dsage.explain_cv(Interrupted(), X, y, **call)
    whole = dsage.explain_cv(Interrupted(), X, y, **{**call, "checkpoint": None})
    np.testing.assert_array_equal(resumed.fold_values, whole.fold_values)
    assert (tmp_path / "run" / "fold-1.dsage").stat().st_mtime_ns == written


def test_a_resumed_call_without_a_seed_has_that_of_its_folder(tmp_path):
    X, y = table()
    call = {"cv": 2, "checkpoint": tmp_path, **QUICK, "random_state": None}
    first = dsage.explain_cv(LinearRegression(), X, y, **call)
    (tmp_path / "fold-2.dsage").unlink()
    again = dsage.explain_cv(LinearRegression(), X, y, **call)
    seeds = {each.choices.run.random_state for each in (*first.folds, *again.folds)}
    assert len(seeds) == 1


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The arguments of a run that is finished, with its folder."""
    X, y = table()
    call = {"estimator": LinearRegression(), "X": X, "y": y, "cv": 2, **QUICK}
    call["checkpoint"] = tmp_path_factory.mktemp("run")
    dsage.explain_cv(**call)
    return call


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"cv": 3}, "It differs in: the folds"),
        ({"y": table(seed=1)[1]}, "It differs in: the targets"),
        ({"X": table(seed=1)[0]}, "It differs in: the rows"),
        ({"estimator": LinearRegression(fit_intercept=False)}, "It differs in: the estimator"),
        ({"n_orderings": 8}, "It differs in: the option n_orderings"),
        ({"random_state": 1}, "It differs in: random_state, which is 0"),
    ],
)
def test_the_folder_of_another_run_is_refused(finished, change, text):
    call = finished
    with pytest.raises(ValueError, match=f"checkpoint must be a folder of this run.*{text}"):
        dsage.explain_cv(**{**call, **change})


def test_a_damaged_folder_is_refused(tmp_path):
    X, y = table()
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match=r"run\.json is damaged"):
        dsage.explain_cv(LinearRegression(), X, y, cv=2, checkpoint=tmp_path, **QUICK)
    (tmp_path / "run.json").unlink()
    (tmp_path / "fold-1.dsage").write_text("")
    with pytest.raises(ValueError, match=r"It has folds, but no run\.json"):
        dsage.explain_cv(LinearRegression(), X, y, cv=2, checkpoint=tmp_path, **QUICK)
    file = tmp_path / "fold-1.dsage"
    with pytest.raises(ValueError, match="checkpoint must be a folder;"):
        dsage.explain_cv(LinearRegression(), X, y, cv=2, checkpoint=file, **QUICK)


def test_a_fold_whose_state_is_of_another_model_starts_again(tmp_path):
    X, y = table()
    call = {"cv": 2, "checkpoint": tmp_path, **QUICK}
    whole = dsage.explain_cv(LinearRegression(), X, y, **call)
    (tmp_path / "fold-2.dsage").unlink()
    (tmp_path / "fold-2.state").write_text("not a state")
    with pytest.warns(DsageWarning, match="fold 2 of 2: the state in .* random_state"):
        again = dsage.explain_cv(LinearRegression(), X, y, **call)
    np.testing.assert_array_equal(again.fold_values, whole.fold_values)
    assert not (tmp_path / "fold-2.state").exists()


def test_a_quiet_run_warns_of_nothing():
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dsage.explain_cv(LinearRegression(), X, y, cv=2, **QUICK)
