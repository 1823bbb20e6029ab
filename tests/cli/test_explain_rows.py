"""``dsage explain-rows`` from files to values of rows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LinearRegression, LogisticRegression

from cli_case import table
from dsage import RowExplanation
from dsage.cli.workflows import parse_rows

LM = ("--target", "outcome", "--fit", "lm", "--sampler", "gaussian", "--graph", "none")


def rows_of(ran):
    lines = ran.out.splitlines()[4:]
    return [line.split()[0] for line in lines[: lines.index("")]]


def test_rows_of_a_table_are_explained(dsage):
    ran = dsage("explain-rows", "data.csv", *LM, "--rows", "0,5,7-8")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Conditional SHAP values of")
    assert rows_of(ran) == ["0", "5", "7", "8"]
    assert "linear regression of numbers to 86 rows" in ran.err


def test_a_loaded_model_explains_rows(dsage):
    data = table()
    X, y = data.drop(columns="outcome"), data["outcome"]
    model = LinearRegression().fit(X, y)
    skops.io.dump(model, "model.skops")
    options = ("--target", "outcome", "--model", "model.skops", "--sampler", "gaussian")
    files = ("--csv", "rows.csv", "--json", "rows.json", "--report", "rows.html")
    ran = dsage("explain-rows", "data.csv", *options, "--graph", "none", "--rows", "3", *files)
    assert ran.code == 0, ran.err
    frame = pd.read_csv("rows.csv")
    assert frame["row"].tolist() == [3, 3, 3]
    mean = float(model.predict(X).mean())
    assert frame["value"].sum() == pytest.approx(model.predict(X)[3] - mean, abs=1e-6)
    lines = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    assert [line["feature"] for line in lines] == frame["feature"].tolist()
    assert "dsage report of rows" in Path("rows.html").read_text(encoding="utf-8")


def test_rows_of_another_table_are_explained(dsage):
    table(5, seed=3).to_csv("new.csv", index=False)
    options = (*LM, "--test", "new.csv", "--rows", "all", "--values", "loss", "--plot", "rows.png")
    ran = dsage("explain-rows", "data.csv", *options)
    assert ran.code == 0, ran.err
    assert rows_of(ran) == ["0", "1", "2", "3", "4"]
    assert "squared error" in ran.out.splitlines()[0]
    assert "The picture is in rows.png." in ran.err


def test_a_class_is_chosen_by_its_label(dsage):
    data = table()
    data["outcome"] = np.where(data["outcome"] > 0, "up", "down")
    data.to_csv("classes.csv", index=False)
    X, y = data.drop(columns="outcome"), data["outcome"]
    skops.io.dump(LogisticRegression().fit(X, y), "model.skops")
    options = ("--target", "outcome", "--model", "model.skops", "--sampler", "gaussian")
    options += ("--graph", "none", "--rows", "0", "--tolerance", 0.4)
    ran = dsage("explain-rows", "classes.csv", *options, "--output", "down")
    assert ran.code == 0, ran.err
    assert "probability of outcome = down" in ran.out
    bad = dsage("explain-rows", "classes.csv", *options, "--output", "left")
    assert "--output must be an output of the model; got 'left'" in bad.error


@pytest.mark.parametrize(
    ("rows", "found"), [("4", [4]), ("2-4,0", [2, 3, 4, 0]), ("all", [0, 1, 2, 3, 4]), ("1,1", [1])]
)
def test_positions_of_rows_are_read(rows, found):
    assert parse_rows(rows, 5, "data.csv") == found


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--rows", "first"), "--rows must be positions of rows; got 'first'"),
        (("--rows", "3-1"), "--rows must be at least one row; got '3-1'"),
        (("--rows", "90"), "data.csv has 90 rows, counted from 0 to 89"),
        (
            ("--rows", "all"),
            "--rows must be fewer rows, so that a model can be fitted to the others",
        ),
        (("--rows", "1", "--values", "risk"), "--values must be one of the kinds of values"),
        (("--rows", "1", "--tolerance", 2), "--tolerance must be"),
    ],
)
def test_wrong_options_are_refused(dsage, options, text):
    assert text in dsage("explain-rows", "data.csv", *LM, *options).error


def test_a_range_beyond_the_table_is_refused_at_once():
    with pytest.raises(ValueError, match=r"--rows must be rows of data\.csv; got 99999999999"):
        parse_rows("0-99999999999", 90, "data.csv")


@pytest.mark.parametrize("option", ["--cv", "--repeats"])
def test_options_of_folds_are_none_of_rows(dsage, option):
    ran = dsage("explain-rows", "data.csv", *LM, "--rows", "0", option, "3")
    assert ran.code == 2
    assert f"No such option: {option}" in ran.err


def test_an_output_that_does_not_exist_is_named_as_an_option(dsage):
    ran = dsage("explain-rows", "data.csv", *LM, "--rows", "0", "--output", "1")
    assert ran.code == 2
    assert "--output must be left out" in ran.err


def test_rows_are_saved(dsage):
    ran = dsage("explain-rows", "data.csv", *LM, "--rows", "0,3", "--out", "rows.dsage")
    assert ran.code == 0, ran.err
    assert RowExplanation.load("rows.dsage").row_names == (0, 3)
