"""``dsage explain --cv``."""

import pandas as pd
import pytest

import dsage as package

QUICK = ("--target", "outcome", "--fit", "lm", "--sampler", "gaussian", "--graph", "none")
QUICK += ("--no-sampler-check",)


def test_a_table_is_cross_validated(dsage, tmp_path):
    ran = dsage(
        "explain", "data.csv", *QUICK, "--cv", 3, "--repeats", 2,
        "--out", "f.dsage", "--csv", "f.csv", "--checkpoint", "folds",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "Fitting a linear regression of numbers in each of 6 folds." in ran.err
    assert "6 folds: outcome, squared_error, 180 evaluated rows in 2 repeats" in ran.out
    folded = package.FoldedExplanation.load("f.dsage")
    assert len(folded.folds) == 6
    frame = pd.read_csv("f.csv")
    assert frame["feature"].tolist()[0] == "dose"
    assert "lower_procedure" in frame
    assert len(list((tmp_path / "folds").glob("fold-*.dsage"))) == 6


def test_classes_are_cross_validated(dsage):
    table = pd.read_csv("data.csv", nrows=30)
    table["outcome"] = (table["outcome"] > 0).map({True: "high", False: "low"})
    table.to_csv("classes.csv", index=False)
    ran = dsage(
        "explain",
        "classes.csv",
        *QUICK[:2],
        "--fit",
        "logistic",
        *QUICK[4:],
        "--cv",
        2,
        "--tolerance",
        0.5,
    )
    assert ran.code == 0, ran.err
    assert "cross_entropy" in ran.out


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--cv", 3, "--test", "test.csv"], "--test must be left out with --cv"),
        (["--cv", 3, "--test-size", 0.2], "--test-size must be left out with --cv"),
        (["--cv", 3, "--report", "r.html"], "--report must be left out with --cv"),
        (["--repeats", 3], "--repeats must be used with --cv"),
        (["--cv", 3, "--checkpoint", "data.csv"], "--checkpoint must be a folder with --cv"),
        (["--cv", 200], "--cv must be a number of folds or a splitter"),
    ],
)
def test_options_that_do_not_fit_are_refused(dsage, options, text):
    assert text in dsage("explain", "data.csv", *QUICK, *options).error


def test_an_error_names_the_fold(dsage):
    table = pd.read_csv("data.csv")
    table["outcome"] = ["rare"] + ["a", "b"] * 44 + ["a"]
    table.to_csv("rare.csv", index=False)
    options = [*QUICK[:2], "--fit", "logistic", *QUICK[4:], "--cv", 2]
    assert "of 2: " in dsage("explain", "rare.csv", *options).error
