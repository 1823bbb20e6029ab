"""A table of the columns says what they are, and what is odd about them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dsage.data import describe

RNG = np.random.default_rng(0)
N = 40
CODES = RNG.integers(0, 3, N)
FRAME = pd.DataFrame(
    {
        "x": np.where(np.arange(N) < 10, np.nan, RNG.normal(size=N)),
        "key": np.arange(N),
        "kind": ["often", "rare"] * 15 + ["often"] * 10,
        **{f"c{k}": (k == CODES) * 1 for k in range(3)},
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N) % 20, "D"),
        "one": 1.5,
        "none": np.nan,
        "grade": np.arange(N) % 4,
        "number": pd.Series([1, 2] * 20, dtype=object),
    }
).assign(again=lambda frame: frame["x"])


def line(frame, name):
    return frame.set_index("name").loc[name]


def test_every_column_has_a_line_with_what_it_is():
    table = describe(FRAME)
    assert table["name"].tolist() == list(FRAME)
    assert table["missing"].tolist() == FRAME.isna().mean().tolist()
    assert table["distinct"].tolist() == FRAME.nunique().tolist()
    assert table["dtype"].tolist() == [str(dtype) for dtype in FRAME.dtypes]
    kinds = "number identifier class codes codes codes time constant constant codes class copy"
    assert table["kind"].tolist() == kinds.split()
    assert line(table, "kind")["values"] == "often, rare"
    assert line(table, "day")["values"] == "2020-01-01 to 2020-01-20"
    assert line(table, "key")["values"] == "0 to 39"
    assert line(table, "one")["values"] == "1.5"
    assert line(table, "none")["values"] == ""


def test_remarks_name_other_columns_and_what_to_do():
    table = describe(FRAME)
    assert line(table, "again")["remarks"] == "copy of 'x'"
    assert line(table, "c1")["remarks"] == "one-hot with 'c0', 'c2'"
    assert "leave it out, or say that it is integer" in line(table, "key")["remarks"]
    assert line(table, "one")["remarks"] == "a single value"
    assert line(table, "none")["remarks"] == "all values are missing"
    assert "may be a number or a class" in line(table, "grade")["remarks"]
    assert "numbers as objects" in line(table, "number")["remarks"]
    assert line(table, "x")["remarks"] == ""


def test_what_the_user_says_is_no_guess():
    table = describe(FRAME, kinds={"grade": "class", "key": "integer"}, discrete="c0")
    assert line(table, "grade")[["kind", "values", "remarks"]].tolist() == [
        "class",
        "0, 1, 2, ...",
        "",
    ]
    assert line(table, "key")[["kind", "remarks"]].tolist() == ["integer", ""]


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_other_libraries_are_described_alike(convert):
    frame = FRAME.drop(columns=["number", "none"])
    columns = ["name", "kind", "distinct", "missing", "values", "remarks"]
    pd.testing.assert_frame_equal(describe(convert(frame))[columns], describe(frame)[columns])


def test_long_texts_are_cut_and_no_rows_are_no_problem():
    table = describe(pd.DataFrame({"text": ["a" * 100, "b"]}))
    assert len(line(table, "text")["values"]) < 50
    assert describe(FRAME.iloc[:0].drop(columns="number"))["missing"].tolist() == [0.0] * 11
    assert describe(np.zeros((3, 2)))["name"].tolist() == ["X1", "X2"]
