"""Errors are one line that names the option and the remedy."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LinearRegression, LogisticRegression

from cli_case import table

EXPLAIN = ("explain", "data.csv", "--target", "outcome")


def test_a_bad_path_is_refused(dsage):
    error = dsage("explain", "dta.csv", "--target", "outcome").error
    assert "the data file must be a file that exists; got 'dta.csv'" in error
    assert "got '.'" in dsage("graph", ".", "--target", "outcome").error


def test_a_target_that_is_missing_is_refused_with_the_one_that_may_be_meant(dsage):
    error = dsage("explain", "data.csv", "--target", "outcom").error
    assert error.startswith("Error: --target must be ")
    assert "data.csv" in error
    assert error.endswith("got 'outcom'. Did you mean 'outcome'?")


def test_a_table_of_the_target_alone_is_refused(dsage):
    table()[["outcome"]].to_csv("one.csv", index=False)
    assert "add features" in dsage("explain", "one.csv", "--target", "outcome").error


@pytest.mark.parametrize(
    ("content", "error"),
    [("", "It is empty"), ("dose,outcome\n", "one row"), ("\n", "no columns")],
)
def test_an_empty_file_is_refused(dsage, tmp_path, content, error):
    (tmp_path / "empty.csv").write_text(content)
    assert error in dsage("explain", "empty.csv", "--target", "outcome").error


def test_infinite_values_are_refused_by_column(dsage):
    X = table()
    X.loc[[1, 7], "idle"] = np.inf
    X.to_csv("infinite.csv", index=False)
    for command in ("explain", "graph", "score-samplers"):
        error = dsage(command, "infinite.csv", "--target", "outcome").error
        assert "infinite.csv must be free of infinite values; got {'idle': 2}" in error
        assert "--drop" in error
    assert "infinite.csv must" in dsage(*EXPLAIN, "--test", "infinite.csv").error


def test_a_target_with_missing_values_is_refused_with_the_rows(dsage):
    X = table()
    X.loc[[2, 5], "outcome"] = np.nan
    X.to_csv("gaps.csv", index=False)
    for command in (
        ("explain", "gaps.csv"),
        ("graph", "gaps.csv"),
        (*EXPLAIN[:2], "--test", "gaps.csv"),
    ):
        error = dsage(*command, "--target", "outcome").error
        assert "the target 'outcome' of gaps.csv must be present in every row" in error
        assert "got '2 of 90 rows without a value: 3, 6'. Remove these rows" in error
    X.loc[:, "outcome"] = np.nan
    X.to_csv("gaps.csv", index=False)
    assert (
        "90 of 90 rows without a value: 1, 2, 3, 4, 5, ..."
        in dsage("explain", "gaps.csv", "--target", "outcome").error
    )


def test_a_target_of_dates_is_refused(dsage):
    table().assign(day=pd.date_range("2024-01-01", periods=90)).to_parquet("days.parquet")
    error = dsage("explain", "days.parquet", "--target", "day").error
    assert "the target 'day' of days.parquet must be of numbers or classes" in error
    assert "days since a date" in error


def test_few_rows_are_refused(dsage):
    table(6).to_csv("few.csv", index=False)
    assert "10 rows or more; got 6" in dsage("explain", "few.csv", "--target", "outcome").error


@pytest.mark.parametrize("size", [1000, 0.999])
def test_a_size_that_leaves_no_rows_is_refused(dsage, size):
    error = dsage(*EXPLAIN, "--test-size", size).error
    assert "--test-size must be fewer than all 90 rows" in error


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--test-size", ["0", "-1", "2.7", "nan", "inf"]),
        ("--tolerance", ["0", "-0.1", "1.5", "nan"]),
        ("--jobs", ["0", "-3"]),
        ("--time", ["-5", "nan", "inf"]),
        ("--loss", ["mean"]),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused_before_anything_is_read(dsage, option, values):
    for value in values:
        error = dsage("explain", "missing.csv", "--target", "outcome", option, value).error
        assert error.startswith(f"Error: {option} must be "), (option, value)


def test_the_options_of_the_other_commands_are_checked_too(dsage):
    assert "--jobs must be" in dsage("graph", "no.csv", "--target", "a", "--jobs", 0).error
    assert "--tolerance must be" in dsage("demo", "--tolerance", "nan").error


# Texts that should be numbers


def test_semicolons_decimal_commas_and_latin_letters_are_read_when_they_are_named(dsage, tmp_path):
    options = {"sep": ";", "decimal": ",", "index": False}
    X = table().rename(columns={"idle": "müßig"})
    X.to_csv("european.csv", encoding="latin-1", **options)
    how = ("--sep", ";", "--decimal", ",", "--encoding", "latin-1")
    fast = ("--fit", "lm", "--graph", "none", "--sampler", "gaussian", "--no-sampler-check")
    for command in (
        ("explain", *fast, "--test", "european.csv"),
        ("graph", "--resamples", 0),
        ("score-samplers",),
    ):
        ran = dsage(*command, "european.csv", "--target", "outcome", *how)
        assert ran.code == 0, ran.err
    told = dsage("explain", "european.csv", "--target", "outcome").error
    assert told.endswith("--encoding latin-1.")
    told = dsage("explain", "european.csv", "--target", "outcome", *how[4:]).error
    assert "--sep ';'" in told
    assert told.endswith("--decimal ,.")
    told = dsage("explain", "european.csv", "--target", "outcome", *how[4:], *how[:2]).error
    assert "'dose' of european.csv must be numbers" in told
    assert "add --decimal ," in told
    (tmp_path / "tabs.csv").write_text("a\tb\n" + "1\t2\n3\t5\n" * 9)
    assert dsage("graph", "tabs.csv", "--target", "a", "--sep", "tab", "--resamples", 0).code == 0


def test_commas_of_thousands_in_the_target_are_refused_unless_they_are_classes(dsage):
    prices = [f"{number % 4 + 1},{number:03d}" for number in range(90)]
    table().assign(price=prices).to_csv("prices.csv", index=False)
    error = dsage("explain", "prices.csv", "--target", "price").error
    assert "if they separate thousands, remove them" in error
    pairs = np.resize(["1,2", "2,3"], 90)
    table().assign(pair=pairs).to_csv("pairs.csv", index=False)
    options = ("--target", "outcome", "--fit", "lm", "--graph", "none", "--sampler", "marginal")
    assert "--discrete 'pair'" in dsage("explain", "pairs.csv", *options).error
    quick = ("--time", 0.01, "--discrete", "pair")
    assert dsage("explain", "pairs.csv", *options, *quick).code == 0


# Models


@pytest.mark.parametrize(
    "given", [("--fit", "logistic"), ("--model", "model.skops"), ("--loss", "brier")]
)
def test_a_model_of_classes_is_refused_for_a_measured_target(dsage, given):
    X = table()
    model = LogisticRegression().fit(X.iloc[:, :3], X["outcome"] > 0)
    skops.io.dump(model, "model.skops")
    error = dsage(*EXPLAIN, *given).error
    assert error.startswith(
        f"Error: {given[0]} must be suited to a numeric target; got {given[1]!r}."
    )
    assert "--fit lm or --fit rf" in error
    assert "--discrete 'outcome'" in error


def test_a_wrong_model_file_is_refused(dsage, tmp_path):
    (tmp_path / "model.skops").write_text("dose,age\n")
    assert "skops file; got 'model.skops" in dsage(*EXPLAIN, "--model", "model.skops").error
    (tmp_path / "model.pt").write_text("something")
    assert "one of .skops, .onnx" in dsage(*EXPLAIN, "--model", "model.pt").error
    assert "a file that exists" in dsage(*EXPLAIN, "--model", "no.onnx").error


def test_a_pickle_is_refused_with_what_it_could_do(dsage, tmp_path):
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(LinearRegression()))
    error = dsage(*EXPLAIN, "--model", "model.pkl").error
    assert "A pickle can run any program with your rights" in error
    assert "--trust-pickle" in error


def test_columns_that_are_not_those_of_the_model_are_refused(dsage):
    X = table()
    skops.io.dump(LinearRegression().fit(X[["dose"]], X["outcome"]), "one.skops")
    error = dsage(*EXPLAIN, "--model", "one.skops").error
    assert error.endswith("--drop 'age' --drop 'idle'.")
    X = X.rename(columns={"age": "years"})
    skops.io.dump(LinearRegression().fit(X.iloc[:, :3], X["outcome"]), "other.skops")
    assert "These are missing: 'years'" in dsage(*EXPLAIN, "--model", "other.skops").error
    unnamed = LinearRegression().fit(X[["dose", "idle"]].to_numpy(), X["outcome"])
    skops.io.dump(unnamed, "unnamed.skops")
    assert "must be the model's, 2; got 3" in dsage(*EXPLAIN, "--model", "unnamed.skops").error


def test_columns_of_the_test_file_are_compared(dsage):
    table(40).drop(columns="age").to_csv("less.csv", index=False)
    assert "These are missing: 'age'" in dsage(*EXPLAIN, "--test", "less.csv").error
    table(40).assign(age="old").to_csv("text.csv", index=False)
    error = dsage(*EXPLAIN, "--test", "text.csv").error
    assert "'age' of text.csv must be as in DATA; got 'class'" in error


def test_a_regression_of_classes_is_refused(dsage):
    X = table()
    X.assign(outcome=np.where(X["outcome"] > 0, "ill", "well")).to_csv("ill.csv", index=False)
    error = dsage("explain", "ill.csv", "--target", "outcome", "--fit", "lm").error
    assert "Choose --fit logistic, rf or hgb" in error


def test_a_model_and_a_fit_or_two_sets_of_rows_are_too_many(dsage):
    assert "one at a time" in dsage(*EXPLAIN, "--model", "a.skops", "--fit", "lm").error
    error = dsage(*EXPLAIN, "--test", "test.csv", "--test-size", 0.5).error
    assert "--test has the rows" in error


# Options


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("explan", "data.csv"), "No such command 'explan'. Did you mean 'explain'?"),
        (("explain", "data.csv", "--targt", "outcome"), "No such option: --targt .*--target"),
        (("explain", "data.csv"), "Missing option '--target'. Add --help"),
        ((*EXPLAIN, "--fit", "lmm"), "--fit must be one of the models; got 'lmm'. Did you mean"),
        ((*EXPLAIN, "--sampler", "gausian"), "Did you mean 'gaussian'"),
        (
            (*EXPLAIN, "--loss", "squared_eror"),
            "Error: --loss must be .* Did you mean 'squared_error'",
        ),
        (
            (*EXPLAIN, "--orderings", "antithetc"),
            "--orderings must be .* Did you mean 'antithetic'",
        ),
        ((*EXPLAIN, "--estimand", "dsage"), "--estimand must be .* Did you mean 'd-sage'"),
        ((*EXPLAIN, "--graph", "lern"), "--graph must be .* Did you mean 'learn'"),
        ((*EXPLAIN, "--graph", "no.json"), "--graph must be a file that exists; got 'no.json'"),
        ((*EXPLAIN, "--graph", "data.csv"), "Error: --graph must be a graph saved by dsage"),
        ((*EXPLAIN, "--time", "soon"), "--time must be a time; got 'soon'"),
        ((*EXPLAIN, "--time", "1 2h"), "--time must be a time"),
        ((*EXPLAIN, "--time", "5.5.5h"), "add a unit to each number"),
        ((*EXPLAIN, "--time", "0"), "--time must be above zero"),
        ((*EXPLAIN, "--seed", "x"), "Invalid value for '--seed'"),
        ((*EXPLAIN, "--drop", "ages"), "Error: --drop must be .* Did you mean 'age'"),
        ((*EXPLAIN, "--discrete", "ages"), "--discrete must be .* Did you mean 'age'"),
        (
            (*EXPLAIN, "--groups", "no.json"),
            "--groups must be a JSON file; .*No such file",
        ),
        ((*EXPLAIN, "--groups", "data.csv"), "--groups must be a JSON file"),
        ((*EXPLAIN, "--report", "run.txt"), "--report must be a name that ends in .html"),
        ((*EXPLAIN, "--out", "run.html"), "--out must be a name that ends in .dsage; .*run.dsage"),
        ((*EXPLAIN, "--out", "no/run.dsage"), "--out must be in a folder that exists"),
        ((*EXPLAIN, "--csv", "."), "--csv must be a file; got '.'"),
        (
            ("graph", "data.csv", "--target", "age", "--plot", "g.bmp"),
            "--plot must be a name that ends in .png",
        ),
        (("graph", "data.csv", "--target", "age", "--method", "tabuu"), "Did you mean 'tabu'"),
        (("graph", "data.csv", "--target", "age", "--score", "bicc"), "Did you mean 'bic'"),
        (("report", "no.dsage"), "Error: RUN must be an existing file; got .no.dsage"),
        (("report", "data.csv"), "Error: RUN must be the file .*data.csv.* dsage explain --out"),
        (("compare", "data.csv", "data.csv"), "data.csv"),
    ],
)
def test_a_wrong_option_is_refused_with_what_was_meant(dsage, arguments, error):
    assert re.search(error, dsage(*arguments).error)


def test_groups_must_be_lists_of_names(dsage, tmp_path):
    for content in ('["dose"]', '{"a": "dose"}', "{}"):
        (tmp_path / "groups.json").write_text(content)
        assert "groups of names" in dsage(*EXPLAIN, "--groups", "groups.json").error
    (tmp_path / "groups.json").write_text('{"a": ["dosis"]}')
    error = dsage(*EXPLAIN, "--groups", "groups.json").error
    assert "--groups must be one of the features; got 'dosis'. Did you mean 'dose'?" in error


def test_debug_shows_where(dsage):
    ran = dsage("explain", "no.csv", "--target", "outcome", "--debug")
    assert isinstance(ran.exception, FileNotFoundError)


def test_an_unexpected_error_is_one_line_too(dsage, monkeypatch):
    def failing(*args, **options):
        raise KeyError("a\nb")

    monkeypatch.setattr("dsage.cli.explain.read_rows", failing)
    error = dsage(*EXPLAIN).error
    assert error.startswith("Error: KeyError: 'a\\nb'.")
    assert "--debug" in error
