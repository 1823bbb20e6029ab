"""What a run says about the model, and about itself."""

import logging

import lightgbm as lgb
import numpy as np
import pytest
import skops.io
from sklearn.linear_model import LinearRegression

import dsage as package
from cli_case import table
from dsage.cli.judging import as_labels, held_out_score, tell_order

FAST = ("--sampler", "gaussian", "--tolerance", 0.4, "--resamples", 0)
UNNAMED = "Warning: the model has no column names; its columns are taken to be in this order:"


def unnamed(columns):
    X = table()
    skops.io.dump(LinearRegression().fit(X[columns].to_numpy(), X["outcome"]), "model.skops")
    return ("explain", "data.csv", "--target", "outcome", "--model", "model.skops", *FAST)


def test_a_model_without_names_is_told_with_the_order_of_its_columns(dsage):
    ran = dsage(*unnamed(["dose", "age", "idle"]), "--test", "test.csv", "--quiet")
    assert f"{UNNAMED} dose, age, idle." in ran.err
    X = table()
    skops.io.dump(LinearRegression().fit(X.iloc[:, :3], X["outcome"]), "named.skops")
    named = ("--model", "named.skops", *FAST, "--test", "test.csv")
    assert UNNAMED not in dsage("explain", "data.csv", "--target", "outcome", *named).err


def test_the_score_of_a_loaded_model_shows_a_wrong_order_of_columns(dsage):
    right = dsage(*unnamed(["dose", "age", "idle"]), "--test", "test.csv")
    wrong = dsage(*unnamed(["idle", "age", "dose"]), "--test", "test.csv")
    assert "The model's R2 on the 40 rows held out is 0.9" in right.err
    assert "The model's R2 on the 40 rows held out is 0.9" not in wrong.err
    assert "The model's R2 on the 40 rows held out is" in wrong.err


def test_boosters_tell_whether_they_have_names(capsys):
    X = table()
    for features, is_told in ((X.iloc[:, :3], False), (X.iloc[:, :3].to_numpy(), True)):
        data = lgb.Dataset(features, label=X["outcome"])
        booster = lgb.train({"verbosity": -1, "num_threads": 1}, data, 2)
        tell_order(booster, X.iloc[:, :3])
        assert (UNNAMED in capsys.readouterr().err) == is_told


# Classes


def softmax(n_rows=90):
    """A booster of three classes that does not know their names, and its table."""
    X = table(n_rows)
    levels = np.digitize(X["outcome"], [-1, 1])
    data = lgb.Dataset(X.iloc[:, :3], label=levels)
    options = {"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 1}
    lgb.train(options, data, 10).save_model("model.txt")
    return X.assign(outcome=np.array(["lo", "mid", "hi"])[levels])


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
    assert "taken to be 'hi', 'lo', 'mid', in this order. Name them with --classes." in wrong
    assert "does not tell its classes" not in right
    assert [float(err.split("held out is ")[1][:5]) > 0.7 for err in (right, wrong)] == [
        True,
        False,
    ]


def test_labels_are_of_the_type_of_the_target():
    X = table()
    for y, texts, labels in (
        (X["outcome"] > 0, ["True", "false"], [True, False]),
        ((X["outcome"] > 0) + 1, ["2", "1"], [2, 1]),
        ((X["outcome"] > 0) + 0.5, ["0.5", "1.5"], [0.5, 1.5]),
        (X["outcome"].gt(0).map({True: "1", False: "0"}), ["1", "0", "2"], ["1", "0", "2"]),
    ):
        found = as_labels(texts, y, y)
        assert found == labels
        assert list(map(type, found)) == list(map(type, labels))


@pytest.mark.parametrize(
    ("classes", "error"),
    [
        ("lo,mid", "--classes must be with 'hi', which the target has; got ['lo', 'mid']"),
        ("lo,mid,hi,huge", "--classes must be 3, one for each column of the model's"),
        (None, "--classes must be given with --model"),
    ],
)
def test_classes_that_do_not_fit_are_refused(dsage, classes, error):
    softmax().to_csv("levels.csv", index=False)
    given = ("--model", "model.txt", "--classes", classes) if classes else ("--classes", "a,b")
    assert error in dsage("explain", "levels.csv", "--target", "outcome", *given).error


def test_texts_are_no_labels_of_numbers():
    y = table()["outcome"].gt(0)
    with pytest.raises(ValueError, match="--classes must be numbers, as the target is; got 'a,b'"):
        as_labels(["a", "b"], y + 1, y + 1)
    with pytest.raises(ValueError, match="--classes must be true or false"):
        as_labels(["a", "b"], y, y)


def test_a_target_that_does_not_vary_has_no_score():
    X = table()
    model = LinearRegression().fit(X.iloc[:, :3], X["outcome"])
    y = X["outcome"] * 0
    name, score = held_out_score(model, X.iloc[:, :3], y, loss="auto", labels=[])
    assert name == "R2"
    assert np.isnan(score)


# Phases and time


def test_the_phases_are_told_once_each_where_there_are_no_bars(dsage):
    options = ("explain", "data.csv", "--target", "outcome", "--fit", "lm", *FAST)
    ran = dsage(*options)
    told = [line for line in ran.err.splitlines() if line.endswith(" ...")]
    assert told == ["Learning the graph ...", "Scoring samplers ...", "Estimating ..."]
    assert "Learning" not in dsage(*options, "--graph", "none").err
    assert dsage(*options, "--graph", "none", "--quiet").err == ""
    assert not logging.getLogger("dsage").handlers
    assert logging.getLogger("dsage").level == logging.NOTSET
    ran = dsage("graph", "data.csv", "--target", "outcome", "--resamples", 0)
    assert ran.err == "Learning the graph ...\n"
    assert dsage("score-samplers", "data.csv").err == "Scoring samplers ...\n"


def test_a_checkpoint_whose_time_is_spent_is_told_with_what_it_holds(dsage):
    options = ("--target", "outcome", "--fit", "rf", "--graph", "none", "--sampler", "gaussian")
    command = ("explain", "data.csv", *options, "--checkpoint", "run.check", "--time", 0.05)
    first = dsage(*command)
    assert first.code == 0, first.err
    assert "already holds" not in first.err
    again = dsage(*command)
    assert "Warning: run.check already holds 0." in again.err
    assert "Give a longer --time to go on." in again.err
