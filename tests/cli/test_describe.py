"""``dsage describe``, and ``--kind``."""

import numpy as np
import pandas as pd
import pytest

import dsage as package
from cli_case import table


@pytest.fixture
def odd(tmp_path):
    """A table with a column of every sort, as odd.parquet and odd.csv."""
    frame = table().assign(
        grade=np.tile([1, 2, 3], 30),
        day=pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(90) % 7, "D"),
        price=[f"{number},5" for number in range(90)],
    )
    frame.loc[:8, "age"] = np.nan
    frame.to_parquet(tmp_path / "odd.parquet")
    frame.to_csv(tmp_path / "odd.csv", index=False)


def lines(ran):
    assert ran.code == 0, ran.err
    return {line.split()[0]: line for line in ran.out.splitlines() if line.split()}


def test_columns_are_described(dsage, odd, tmp_path):
    ran = dsage("describe", "odd.parquet", "--target", "outcome", "--csv", "columns.csv")
    shown = lines(ran)
    assert "10.0%" in shown["age"]
    assert "codes" in shown["grade"]
    assert "2020-01-01 to 2020-01-07" in shown["day"]
    assert "The target 'outcome' is treated as numbers" in shown["outcome"]
    assert "Column 'price': These look like numbers with commas" in ran.out
    assert "90 rows, 7 columns. Set the kind of a column with --kind COLUMN=KIND" in ran.out
    written = pd.read_csv(tmp_path / "columns.csv")
    assert written["name"].tolist()[-1] == "outcome"
    assert written["kind"].tolist()[:3] == ["number"] * 3


def test_kinds_can_be_said(dsage, odd):
    shown = lines(
        dsage("describe", "odd.csv", "--kind", "grade=ordered class", "--discrete", "price")
    )
    assert "ordered class" in shown["grade"]
    assert "price" in shown
    target = lines(dsage("describe", "odd.csv", "--target", "grade", "--kind", "grade=class"))
    assert "treated as classes: set by --kind grade=class." in target["grade"]
    target = lines(dsage("describe", "odd.csv", "--target", "grade", "--kind", "grade=number"))
    assert "treated as numbers: set by --kind grade=number." in target["grade"]


def test_what_explain_would_say_is_described(dsage, odd):
    ran = dsage("describe", "odd.csv", "--target", "age")
    shown = lines(ran)
    assert "treated as numbers" in shown["age"]
    assert "Remove the 9 rows" in shown["age"]
    assert "time" in shown["day"]
    assert (
        "It cannot be the target"
        in lines(dsage("describe", "odd.parquet", "--target", "day"))["day"]
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--kind", "grade"), "--kind must be COLUMN=KIND; got 'grade'"),
        (("--kind", "grad=class"), "--kind must be one of the columns of odd.csv; got 'grad'"),
        (("--kind", "grade=clas"), "--kind grade must be one of the kinds; got 'clas'. Did you"),
        (("--kind", "dose=integer"), "column 'dose' must be of whole numbers"),
        (("--target", "outcom"), "--target must be one of the columns of odd.csv"),
        (("--csv", "odd.csv"), "--csv must be a different file from DATA"),
    ],
)
def test_wrong_options_are_refused(dsage, odd, arguments, error):
    assert error in dsage("describe", "odd.csv", *arguments).error


def test_kinds_reach_the_run(dsage):
    frame = table().assign(grade=np.tile([1, 2, 3], 30))
    frame.to_csv("graded.csv", index=False)
    options = ("--target", "outcome", "--graph", "none", "--sampler", "marginal", "--fit", "lm")
    ran = dsage(
        *("explain", "graded.csv", *options, "--kind", "grade=class", "--tolerance", 0.5),
        *("--out", "run.dsage"),
    )
    assert ran.code == 0, ran.err
    data = package.load("run.dsage").choices.data
    assert (str(data.kinds["grade"]), data.class_numbers) == ("class", ("grade",))


def test_identifiers_are_told_with_the_option(dsage):
    table().assign(key=np.arange(90)).to_csv("keys.csv", index=False)
    options = ("--target", "outcome", "--graph", "none", "--sampler", "marginal", "--fit", "lm")
    ran = dsage("explain", "keys.csv", *options, "--tolerance", 0.5)
    assert "Column 'key'" in ran.err
    assert "identifier" in ran.err
    assert "--kind key=integer" in ran.err
