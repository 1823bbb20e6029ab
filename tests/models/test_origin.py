"""Models from files fail with errors of the package that name the file."""

import gc
import pickle

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

import dsage
from dsage.models import as_model, origin
from dsage.models.adapt import adapt
from dsage.models.files import load_model
from dsage.models.losses.choose import decide_loss, gives_classes
from dsage.models.origin import file_of, naming_file, remember_file

ROWS = np.random.default_rng(0).normal(size=(30, 3))


@pytest.fixture
def damaged(tmp_path):
    """A model whose file is valid, with a coefficient too few."""
    model = LinearRegression().fit(ROWS, ROWS[:, 0])
    model.coef_ = model.coef_[:2]
    joblib.dump(model, tmp_path / "line.joblib")
    return load_model(tmp_path / "line.joblib", trust_pickle=True)


def test_a_model_that_only_fails_at_rows_is_an_error_that_names_the_file(damaged):
    model = as_model(damaged, "squared_error")
    with pytest.raises(ValueError, match=r"the model in line\.joblib must be whole") as caught:
        model.predict(ROWS)
    assert caught.value.problem.parameter == "the model in line.joblib"
    assert isinstance(caught.value.__cause__, ValueError)
    assert "Raised by LinearRegression" in caught.value.__notes__[0]


def test_explain_names_the_file_of_a_damaged_model(damaged):
    with pytest.raises(ValueError, match=r"the model in line\.joblib"):
        dsage.explain(damaged, ROWS, ROWS[:, 0], ROWS[::2], ROWS[::2, 0], progress=False)


def test_a_model_that_is_sent_to_a_worker_still_names_the_file(damaged):
    model = pickle.loads(pickle.dumps(as_model(damaged, "squared_error")))
    with pytest.raises(ValueError, match=r"the model in line\.joblib"):
        model.predict(ROWS)


def test_a_classifier_without_its_classes_names_the_file():
    model = LogisticRegression().fit(ROWS, ROWS[:, 0] > 0)
    del model.classes_
    with pytest.raises(ValueError, match=r"the model in m\.skops"):
        as_model(remember_file(model, "m.skops"), "cross_entropy").predict(ROWS)


def test_a_model_that_cannot_say_what_it_is_names_the_file():
    model = remember_file(make_pipeline(LinearRegression()), "m.skops")
    model.steps = [()]
    for look in (gives_classes, decide_loss):
        with pytest.raises(ValueError, match=r"the model in m\.skops .*IndexError"):
            look(model)


def test_a_native_booster_from_a_file_names_it(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(ROWS, ROWS[:, 0])
    booster = lightgbm.train({"verbosity": -1, "min_data_in_leaf": 5}, data, 2)
    booster.save_model(tmp_path / "tree.txt")
    loaded = load_model(tmp_path / "tree.txt")
    assert file_of(adapt(loaded)) == "tree.txt"
    assert file_of(adapt(booster)) == ""


def test_errors_of_the_package_and_of_memory_pass_unchanged():
    for error in (dsage._check.refusal("a", "b", 1, "c"), MemoryError()):
        with pytest.raises(type(error)) as caught, naming_file("line.skops"):
            raise error
        assert caught.value is error


def test_files_of_models_that_are_gone_are_forgotten():
    gc.collect()
    model = remember_file(LinearRegression(), "line.skops")
    n_known = len(origin._files)
    del model
    gc.collect()
    assert len(origin._files) == n_known - 1
    # What cannot be referred to weakly is no error.
    assert file_of(remember_file([], "list.pkl")) == ""
