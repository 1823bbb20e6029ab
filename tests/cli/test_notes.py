"""Notes and warnings about the model and the run."""

import logging
import re

import lightgbm as lgb
import numpy as np
import pytest
import skops.io
from sklearn.linear_model import LinearRegression

import dsage as package
from cli_case import table
from dsage.cli.models import align_columns, note_column_order, parse_labels, score_held_out

FAST = (
    *("--sampler", "gaussian", "--tolerance", 0.4, "--resamples", 0),
    "--no-sampler-check",
)
UNNAMED = "Warning: the model has no column names"


def unnamed(columns):
    X = table()
    skops.io.dump(LinearRegression().fit(X[columns].to_numpy(), X["outcome"]), "model.skops")
    return ("explain", "data.csv", "--target", "outcome", "--model", "model.skops", *FAST)


def test_the_assumed_order_of_columns_is_noted_for_a_model_without_names(dsage):
    ran = dsage(*unnamed(["dose", "age", "idle"]), "--test", "test.csv", "--quiet")
    assert UNNAMED in ran.err
    assert "order: dose, age, idle." in ran.err
    X = table()
    skops.io.dump(LinearRegression().fit(X.iloc[:, :3], X["outcome"]), "named.skops")
    named = ("--model", "named.skops", *FAST, "--test", "test.csv")
    assert UNNAMED not in dsage("explain", "data.csv", "--target", "outcome", *named).err


def test_the_score_of_a_loaded_model_shows_a_wrong_order_of_columns(dsage):
    right = dsage(*unnamed(["dose", "age", "idle"]), "--test", "test.csv")
    wrong = dsage(*unnamed(["idle", "age", "dose"]), "--test", "test.csv")
    assert "R2 on the 40 evaluation rows is 0.9" in right.err
    assert "R2 on the 40 evaluation rows is 0.9" not in wrong.err
    assert "R2 on the 40 evaluation rows is" in wrong.err


def test_the_assumed_order_of_columns_is_noted_for_boosters_without_names(capsys):
    X = table()
    for features, is_told in ((X.iloc[:, :3], False), (X.iloc[:, :3].to_numpy(), True)):
        data = lgb.Dataset(features, label=X["outcome"])
        booster = lgb.train({"verbosity": -1, "num_threads": 1}, data, 2)
        note_column_order(booster, X.iloc[:, :3])
        assert (UNNAMED in capsys.readouterr().err) == is_told


def test_columns_of_catboost_are_matched_by_name():
    catboost = pytest.importorskip("catboost")
    X = table()
    few = {"iterations": 3, "verbose": False, "allow_writing_files": False}
    named = catboost.CatBoostRegressor(**few).fit(X[["dose", "age"]], X["outcome"])
    assert align_columns(named, X[["age", "dose"]]).columns.tolist() == ["dose", "age"]
    with pytest.raises(ValueError, match="--drop 'idle'"):
        align_columns(named, X[["age", "dose", "idle"]])
    unnamed = catboost.CatBoostRegressor(**few).fit(X[["dose", "age"]].to_numpy(), X["outcome"])
    assert align_columns(unnamed, X[["age", "dose"]]).columns.tolist() == ["age", "dose"]


def test_the_assumed_order_of_columns_is_not_noted_for_results_with_names(capsys):
    sm = pytest.importorskip("statsmodels.api")
    X = table()
    for features, is_told in ((X.iloc[:, :3], False), (X.iloc[:, :3].to_numpy(), True)):
        note_column_order(sm.OLS(X["outcome"].to_numpy(), features).fit(), X.iloc[:, :3])
        assert (UNNAMED in capsys.readouterr().err) == is_told


# Classes


def softmax(n_rows=90):
    """A booster of three classes that does not know their names, and its table."""
    X = table(n_rows)
    codes = np.digitize(X["outcome"], [-1, 1])
    data = lgb.Dataset(X.iloc[:, :3], label=codes)
    options = {"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 1}
    lgb.train(options, data, 10).save_model("model.txt")
    return X.assign(outcome=np.array(["lo", "mid", "hi"])[codes])


@pytest.mark.parametrize(
    "given", [("--classes", "lo,mid,hi"), ("--classes", "lo", "--classes", "mid, hi")]
)
def test_the_classes_of_a_model_are_those_that_are_named(dsage, given):
    softmax().to_csv("levels.csv", index=False)
    options = ("explain", "levels.csv", "--target", "outcome", "--model", "model.txt")
    quick = ("--graph", "none", "--sampler", "marginal", "--tolerance", 0.4, "--out", "run.dsage")
    right = dsage(*options, *quick, *given).err
    assert package.load("run.dsage").values.sum() > 0
    wrong = dsage(*options, *quick).err
    assert package.load("run.dsage").values.sum() < 0
    assert "'hi', 'lo', 'mid', in this order" in wrong
    assert "--classes" in wrong
    assert "--classes" not in right
    scores = [float(err.split("evaluation rows is ")[1][:5]) for err in (right, wrong)]
    assert scores[0] > 0.7 > scores[1]


def test_labels_are_of_the_type_of_the_target():
    X = table()
    for y, texts, labels in (
        (X["outcome"] > 0, ["True", "false"], [True, False]),
        ((X["outcome"] > 0) + 1, ["2", "1"], [2, 1]),
        ((X["outcome"] > 0) + 0.5, ["0.5", "1.5"], [0.5, 1.5]),
        (X["outcome"].gt(0).map({True: "1", False: "0"}), ["1", "0", "2"], ["1", "0", "2"]),
    ):
        found = parse_labels(texts, y, y)
        assert found == labels
        assert list(map(type, found)) == list(map(type, labels))


@pytest.mark.parametrize(
    ("classes", "error"),
    [
        ("lo,mid", "got ['lo', 'mid']. The target also has 'hi'"),
        ("lo,mid,hi,huge", "--classes must be 3 labels, one per column of the model's"),
        (None, "--classes must be used with --model"),
    ],
)
def test_classes_that_do_not_fit_are_refused(dsage, classes, error):
    softmax().to_csv("levels.csv", index=False)
    given = ("--model", "model.txt", "--classes", classes) if classes else ("--classes", "a,b")
    assert error in dsage("explain", "levels.csv", "--target", "outcome", *given).error


def test_labels_that_are_not_of_the_type_of_the_target_are_refused():
    y = table()["outcome"].gt(0)
    with pytest.raises(ValueError, match=r"--classes must be numbers, .*got 'a,b'"):
        parse_labels(["a", "b"], y + 1, y + 1)
    with pytest.raises(ValueError, match="--classes must be true or false"):
        parse_labels(["a", "b"], y, y)


def test_a_target_that_does_not_vary_has_no_score():
    X = table()
    model = LinearRegression().fit(X.iloc[:, :3], X["outcome"])
    y = X["outcome"] * 0
    name, score = score_held_out(model, X.iloc[:, :3], y, loss="auto", labels=[])
    assert name == "R2"
    assert np.isnan(score)


# Phases and time


def test_each_phase_is_noted_once_without_a_terminal(dsage):
    options = ("explain", "data.csv", "--target", "outcome", "--fit", "lm", *FAST)
    ran = dsage(*options)
    told = [line for line in ran.err.splitlines() if line.endswith(" ...")]
    assert told == ["Learning the graph ...", "Scoring samplers ...", "Estimating ..."]
    checked = dsage(*options[:-1], "--graph", "none").err
    assert "Comparing with other samplers ..." in checked
    assert "Learning" not in dsage(*options, "--sampler", "marginal").err
    assert "Learning" not in dsage(*options, "--graph", "none").err
    assert dsage(*options, "--graph", "none", "--quiet").err == ""
    assert not logging.getLogger("dsage").handlers
    assert logging.getLogger("dsage").level == logging.NOTSET
    ran = dsage("graph", "data.csv", "--target", "outcome", "--resamples", 0)
    assert ran.err == "Learning the graph ...\n"
    assert dsage("score-samplers", "data.csv").err == "Scoring samplers ...\n"


def test_a_checkpoint_with_no_time_left_is_reported_with_its_time(dsage):
    options = ("--target", "outcome", "--fit", "rf", "--graph", "none", *FAST[:2], FAST[-1])
    command = ("explain", "data.csv", *options, "--checkpoint", "run.check")
    # Less than the first evaluations take, on any machine.
    command = (*command, "--time", 0.001)
    first = dsage(*command)
    assert first.code == 0, first.err
    assert "already holds" not in first.err
    again = dsage(*command)
    assert re.search(r"Warning: run.check already holds \d\S* s of work", again.err)
    assert "Use a longer --time" in again.err
