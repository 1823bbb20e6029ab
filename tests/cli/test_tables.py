"""Tables as they are: missing values, dates, names, rare classes."""

import numpy as np
import pandas as pd
import pytest

import dsage as package
from cli_case import table
from dsage.cli.tables import is_text, parse_dates, remark

FAST = ("--graph", "none", "--sampler", "marginal", "--time", 0.05, "--no-sampler-check")


def with_gaps(n_rows=90, seed=0):
    """Numbers, classes and days with missing values; the target depends on what is missing."""
    random = np.random.default_rng(seed)
    X = table(n_rows, seed)
    X["kind"] = random.choice(["mild", "strong"], n_rows)
    X["day"] = np.datetime64("2024-01-01") + random.integers(0, 30, n_rows)
    for name in ("age", "kind", "day"):
        X.loc[random.random(n_rows) < 0.2, name] = None
    X["outcome"] += 3 * X["kind"].isna()
    return X


@pytest.mark.parametrize("fit", ["lm", "rf", "hgb"])
@pytest.mark.parametrize("data", ["gaps.csv", "gaps.parquet"])
def test_missing_values_are_values(dsage, fit, data):
    with_gaps().to_csv("gaps.csv", index=False)
    with_gaps().to_parquet("gaps.parquet")
    options = ("--target", "outcome", "--fit", fit, *FAST, "--out", "run.dsage")
    ran = dsage("explain", data, *options)
    assert ran.code == 0, ran.err
    assert "Dates and times: 'day'." in ran.err
    found = package.load("run.dsage").choices.data
    assert found.share_missing["kind"] > 0.1
    assert found.share_missing["dose"] == 0
    assert str(found.kinds["day"]) == "time"


def test_missing_values_of_the_test_file_need_not_be_in_the_data(dsage):
    X = with_gaps(40, seed=1)
    X.loc[:, "kind"] = None
    X.to_csv("gaps.csv", index=False)
    with_gaps().dropna().to_csv("whole.csv", index=False)
    options = ("--target", "outcome", "--fit", "lm", *FAST, "--test", "gaps.csv")
    ran = dsage("explain", "whole.csv", *options)
    assert ran.code == 0, ran.err
    assert "have missing values in X_test, but none in X_train" in ran.err


@pytest.mark.parametrize("command", [("graph", "--resamples", 2), ("score-samplers",)])
def test_the_other_commands_take_missing_values_and_dates(dsage, command):
    with_gaps().to_csv("gaps.csv", index=False)
    ran = dsage(*command, "gaps.csv", "--target", "outcome")
    assert ran.code == 0, ran.err


def test_score_samplers_does_not_need_the_target(dsage):
    X = table()
    X.loc[:3, "outcome"] = np.nan
    X.to_csv("gaps.csv", index=False)
    assert dsage("score-samplers", "gaps.csv", "--target", "outcome").code == 0


def test_rare_classes_are_split_like_others(dsage):
    X = table().assign(kind="usual")
    X.loc[[3, 50], "kind"] = ["odd", "strange"]
    X.to_csv("rare.csv", index=False)
    told = ""
    for seed in range(3):
        ran = dsage(
            *("explain", "rare.csv", "--target", "outcome", "--fit", "lm", "--test-size", 0.5),
            *("--graph", "none", "--sampler", "marginal", "--time", 0.01, "--seed", seed),
        )
        assert ran.code == 0, ran.err
        assert "45 evaluation rows" in ran.out
        told += ran.err
    assert "Column 'kind' has 1 category in X_test that X_train lacks" in told


@pytest.mark.parametrize("fit", ["lm", "rf", "hgb"])
def test_a_column_of_names_is_explained_with_a_note(dsage, fit):
    names = [f"patient {number}" for number in range(90)]
    table().assign(patient=names).to_csv("names.csv", index=False)
    ran = dsage("explain", "names.csv", "--target", "outcome", "--fit", fit, *FAST)
    assert ran.code == 0, ran.err
    assert "Column 'patient'" in ran.err
    assert "identifier" in ran.err
    assert "'patient' is treated as" not in ran.err
    names[5] = names[4]
    table().assign(patient=names).to_csv("names.csv", index=False)
    ran = dsage("explain", "names.csv", "--target", "outcome", "--fit", fit, *FAST)
    assert ran.code == 0, ran.err
    assert "'patient' is treated as a class with 89 categories in 90 rows" in ran.err
    assert "--drop 'patient'" in ran.err


@pytest.mark.parametrize(
    ("texts", "advice", "is_warning"),
    [
        (pd.date_range("2024-01-01", periods=90).strftime("%d.%m.%Y"), "look like dates", True),
        (["?", *map(str, range(89))], "except '?'", True),
        (np.resize(["?", *map(str, range(29))], 90), "except '?'", True),
        (np.resize([f"B{number}" for number in range(60)], 90), "name or an ID", False),
    ],
)
def test_odd_texts_are_told(dsage, texts, advice, is_warning):
    table().assign(odd=texts).to_csv("odd.csv", index=False)
    options = ("explain", "odd.csv", "--target", "outcome", "--fit", "lm", *FAST)
    ran = dsage(*options, "--quiet")
    assert ran.code == 0, ran.err
    assert (advice in ran.err) == is_warning
    assert advice in dsage(*options).err
    assert advice not in dsage(*options, "--kind", "odd=class").err


@pytest.mark.parametrize(
    "texts", [["a", "b"], ["2024-01-31", "soon"], ["2024-13-45", "2024-01-31"]]
)
def test_texts_that_are_no_dates_stay_texts(texts):
    column = pd.Series(texts, name="day")
    assert parse_dates(column) is column


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["2024-01-31", None, "2023-02-01"], pd.Timestamp("2024-01-31")),
        (["2024-01-31 12:30", "2024-01-31T11:00:05"], pd.Timestamp("2024-01-31 12:30")),
        (["2024-01-31T12:30+02:00"], pd.Timestamp("2024-01-31T12:30+02:00")),
    ],
)
def test_dates_are_read(texts, first):
    found = parse_dates(pd.Series(texts, name="day"))
    assert found[0] == first
    assert found.isna().sum() == texts.count(None)


def test_dates_that_a_kind_is_said_of_stay_classes(dsage):
    X = with_gaps()
    X.to_csv("gaps.csv", index=False)
    options = ("--target", "outcome", "--fit", "lm", *FAST, "--out", "run.dsage")
    ran = dsage("explain", "gaps.csv", *options, "--kind", "day=class")
    assert ran.code == 0, ran.err
    assert str(package.load("run.dsage").choices.data.kinds["day"]) == "class"


def test_booleans_with_gaps_and_empty_columns_are_no_texts():
    for values in ([True, None], [None, None], [1.0, 2.0]):
        column = pd.Series(values, name="x", dtype=object)
        assert not is_text(column)
        assert remark(column) is None
