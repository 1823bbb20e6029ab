"""Typed columns: which are numbers, which are classes, and what is refused."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import norm

from dsage.data import table as data_module
from dsage.data.table import Table, normal_scores

FRAME = pd.DataFrame(
    {
        "age": [30, 20, 40],
        "height": [1.5, 1.75, 2.0],
        "sex": ["m", "f", "f"],
        "smokes": [True, False, True],
        "city": pd.Categorical(["b", "a", "b"], categories=["c", "b", "a"]),
    }
)


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        lambda frame: frame.convert_dtypes(),
        pl.from_pandas,
        pa.Table.from_pandas,
    ],
    ids=["pandas", "nullable", "polars", "pyarrow"],
)
def test_columns_are_typed_alike_in_every_frame(convert):
    table = Table(convert(FRAME))
    assert table.continuous == ("age", "height")
    assert table.discrete == ("sex", "smokes", "city")
    np.testing.assert_array_equal(next(table.chunks()), [[30, 1.5], [20, 1.75], [40, 2.0]])
    codes, categories = table.codes("sex")
    assert (codes.tolist(), categories) == ([1, 0, 0], ("f", "m"))
    codes, categories = table.codes("smokes")
    assert (codes.tolist(), categories) == ([1, 0, 1], (False, True))
    codes, categories = table.codes("city")
    assert [categories[code] for code in codes] == ["b", "a", "b"]


def test_categories_that_do_not_occur_are_dropped():
    assert set(Table(FRAME).codes("city")[1]) == {"a", "b"}


def test_an_enum_is_discrete():
    frame = pl.DataFrame({"e": pl.Series(["y", "x"], dtype=pl.Enum(["x", "y"]))})
    assert Table(frame).codes("e")[1] == ("x", "y")


def test_numbers_are_classes_where_the_user_says_so():
    table = Table(FRAME, discrete="age")
    assert table.continuous == ("height",)
    codes, categories = table.codes("age")
    assert (codes.tolist(), categories) == ([1, 0, 2], (20, 30, 40))


def test_categories_of_different_types_have_an_order():
    frame = pd.DataFrame({"x": pd.Series([1, "a", 1], dtype=object)})
    codes, categories = Table(frame).codes("x")
    assert [categories[code] for code in codes] == [1, "a", 1]


def test_arrays_get_names():
    assert Table(np.zeros((2, 3))).names == ("X1", "X2", "X3")
    assert Table(np.zeros((2, 2)), ["a", "b"]).continuous == ("a", "b")


def test_arrays_of_booleans_and_strings_are_discrete():
    assert Table(np.array([[True], [False]])).discrete == ("X1",)
    assert Table(np.array([["x"], ["y"]])).codes("X1")[1] == ("x", "y")


def test_some_columns_of_a_frame_can_be_chosen():
    assert Table(FRAME, ["height", "age"]).names == ("height", "age")
    with pytest.raises(ValueError, match="These are missing: 'heigth'"):
        Table(FRAME, ["heigth"])


def test_normal_scores_depend_on_ranks_only():
    values = np.random.default_rng(0).normal(size=50)
    np.testing.assert_array_equal(normal_scores(values), normal_scores(np.exp(values)))


def test_normal_scores_are_the_normal_quantiles_of_middle_ranks():
    np.testing.assert_allclose(
        normal_scores(np.array([5.0, 1.0, 5.0, 9.0])), norm.ppf([0.5, 0.125, 0.5, 0.875])
    )


def test_the_rank_transform_changes_continuous_columns_only():
    table = Table(FRAME, transform="rank")
    np.testing.assert_allclose(
        next(table.chunks())[:, 0], norm.ppf([0.5, 1 / 6, 5 / 6]), atol=1e-15
    )
    assert table.codes("sex")[0].tolist() == [1, 0, 0]


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_some_rows_can_be_taken_again_and_again(convert):
    table = Table(convert(FRAME)).take([2, 0, 2]).take(np.array([1, 2]))
    assert table.n_rows == 2
    np.testing.assert_array_equal(next(table.chunks()), [[30, 1.5], [40, 2.0]])
    codes, categories = table.codes("sex")
    assert (codes.tolist(), categories) == ([1, 0], ("f", "m"))


def test_rows_of_an_array_can_be_taken_in_chunks(monkeypatch):
    X = np.arange(40.0).reshape(20, 2)
    rows = np.random.default_rng(0).integers(0, 20, size=50)
    monkeypatch.setattr(data_module, "_CHUNK_BYTES", 8 * 2 * 7)
    chunks = list(Table(X).take(rows).chunks())
    assert max(len(chunk) for chunk in chunks) == 7
    np.testing.assert_array_equal(np.concatenate(chunks), X[rows])


def test_rows_taken_keep_the_categories_of_the_whole():
    codes, categories = Table(FRAME).take([1, 2]).codes("sex")
    assert (codes.tolist(), categories) == ([0, 0], ("f", "m"))


def test_normal_scores_are_of_the_rows_taken():
    table = Table(FRAME, transform="rank").take([0, 1])
    np.testing.assert_allclose(next(table.chunks())[:, 0], norm.ppf([0.75, 0.25]))


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_some_columns_can_be_selected(convert):
    table = Table(convert(FRAME)).select(["sex", "height", "age"])
    assert (table.names, table.discrete) == (("sex", "height", "age"), ("sex",))
    np.testing.assert_array_equal(next(table.chunks())[:, 0], FRAME["height"])
    array = Table(np.arange(6).reshape(2, 3)).select(["X3", "X1"])
    np.testing.assert_array_equal(next(array.chunks()), [[2, 0], [5, 3]])


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ([3], ValueError, "from 0 to 2; got 3"),
        ([-1], ValueError, "from 0 to 2; got -1"),
        ([True, False, True], TypeError, "positions of rows"),
        (1, TypeError, "positions of rows"),
    ],
)
def test_rows_that_are_not_there_cannot_be_taken(rows, error, words):
    with pytest.raises(error, match=words):
        Table(FRAME).take(rows)


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_missing_values_name_all_their_columns(convert):
    frame = pd.DataFrame({"s": ["a", None], "t": ["a", "b"], "u": [None, "b"]})
    with pytest.raises(ValueError, match=r"missing values; got \['s', 'u'\]"):
        Table(convert(frame)).check_complete()
    with pytest.raises(ValueError, match=r"missing values; got \['s'\]"):
        Table(convert(frame)).codes("s")


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (np.zeros(3), ValueError, "array of shape"),
        (5, ValueError, "data frame or an array"),
        (np.array([[1, "a"]], dtype=object), TypeError, "Use a data frame"),
        (np.array([[1 + 2j]]), TypeError, r"got \['X1'\]"),
        (
            pd.DataFrame({"day": [datetime.datetime(2020, 1, 1)]}),
            TypeError,
            r"categories; got \['day'\]",
        ),
        (pd.DataFrame(np.zeros((1, 2)), columns=["a", "a"]), ValueError, "unique column names"),
    ],
)
def test_data_of_no_use_are_refused(data, error, words):
    with pytest.raises(error, match=words):
        Table(data)


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match="transform must be one of"):
        Table(FRAME, transform="log")
    with pytest.raises(ValueError, match="Did you mean 'age'"):
        Table(FRAME, discrete=["agee"])
    with pytest.raises(ValueError, match=r"of shape \(n_rows, 1\); got \(1, 2\)"):
        Table(np.zeros((1, 2)), ["a"])


def test_masks_lists_and_repeated_names_are_refused():
    with pytest.raises(TypeError, match="data must be without a mask"):
        Table(np.ma.masked_equal([[1.0, 999.0]], 999.0))
    with pytest.raises(ValueError, match="the columns must be of distinct names"):
        Table(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(TypeError, match="the columns must be numbers or classes; got 'a'"):
        Table(pd.DataFrame({"a": [[1], [2]]})).codes("a")
