import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from dsage.data.frames import Frame, check_columns, take_rows
from dsage.data.missing import check_finite

TABLE = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"], "c": [4, 5, 6]})

libraries = pytest.mark.parametrize(
    "convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas]
)


@libraries
def test_columns_of_data_frames_are_used_by_name_and_in_any_order(convert):
    frame = Frame(convert(TABLE), ["c", "a"])
    assert (frame.names, frame.n_rows, frame.is_array) == (("c", "a"), 3, False)
    assert frame.kinds == {"c": "number", "a": "number"}
    np.testing.assert_array_equal(frame.matrix(), [[4, 1], [5, 2], [6, 3]])
    np.testing.assert_array_equal(frame.matrix(["a"], np.array([2, 0])), [[3], [1]])
    assert list(frame.column("a")) == list(convert(TABLE)["a"])


def test_columns_of_arrays_have_names_by_position_or_given_ones():
    array = np.arange(6.0).reshape(2, 3)
    assert Frame(array).names == ("X1", "X2", "X3")
    frame = Frame(array, ["p", "q", "r"])
    assert frame.library == "numpy"
    np.testing.assert_array_equal(frame.matrix(["r", "p"]), [[2, 0], [5, 3]])
    with pytest.raises(ValueError, match=r"of shape \(n_rows, 2\); got \(2, 3\)"):
        Frame(array, ["p", "q"])


@libraries
def test_a_column_can_be_added(convert):
    wide = Frame(convert(TABLE)).with_column("y", np.array([7, 8, 9]))
    assert type(wide) is type(convert(TABLE))
    assert list(Frame(wide).column("y").to_numpy()) == [7, 8, 9]
    made = Frame(np.zeros((1, 1))).with_column("y", np.array(["yes"]))
    assert made.to_dict("list") == {"X1": [0.0], "y": ["yes"]}


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (sparse.eye(2), "data must be dense"),
        (pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), r"dense columns; got \['a'\]"),
        ("data.csv", "Read the data first"),
        (None, "Read the data first"),
    ],
)
def test_data_without_rows_in_memory_are_refused(data, match):
    with pytest.raises(TypeError, match=match):
        Frame(data)


def test_missing_and_further_columns_are_named():
    check_columns(["a", "b", "c"], ["c", "a"], "the columns")
    with pytest.raises(ValueError, match=r"at least 'a', 'd'; .* missing: 'd'"):
        check_columns(["a", "b"], ["a", "d"], "the columns")
    with pytest.raises(ValueError, match=r"exactly 'a'; .* Drop 'b'"):
        check_columns(["a", "b"], ["a"], "the columns", only=True)


def test_only_columns_that_are_not_finite_are_refused():
    check_finite(np.full((4, 2), 1e308), ["a", "b"])  # the sum overflows
    check_finite(np.empty((0, 2)), ["a", "b"])
    with pytest.raises(ValueError, match=r"missing values; got \['b', 'c'\]"):
        check_finite(np.array([[1.0, np.nan, 0.0], [2.0, 0.0, np.inf]]), ["a", "b", "c"])


def test_rows_of_views_of_strings_can_be_taken():
    # polars exports its strings like this.
    table = pa.table({"a": pa.array(["x", None, "z"], pa.string_view()), "b": [1, 2, 3]})
    taken = take_rows(table, np.array([2, 1]))
    assert taken.schema == table.schema
    assert taken.to_pylist() == [{"a": "z", "b": 3}, {"a": None, "b": 2}]
