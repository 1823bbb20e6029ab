"""Typed columns: which are numbers, which are classes, and what is refused."""

from __future__ import annotations

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


every_library = pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        lambda frame: frame.convert_dtypes(),
        pl.from_pandas,
        pa.Table.from_pandas,
    ],
    ids=["pandas", "nullable", "polars", "pyarrow"],
)


@every_library
def test_missing_classes_are_the_last_category(convert):
    frame = pd.DataFrame({"s": ["b", None, "a"], "f": [True, None, False], "n": [2.0, np.nan, 1.0]})
    table = Table(convert(frame), discrete="n")
    for name, categories in {"s": ("a", "b"), "f": (False, True), "n": (1, 2)}.items():
        codes, found = table.codes(name)
        assert (codes.tolist(), found) == ([1, 2, 0], (*categories, None))
    assert table.completed() is table
    codes, categories = table.take([0, 2]).codes("s")
    assert (codes.tolist(), categories) == ([1, 0], ("a", "b", None))


def holes(n_rows=20):
    """Numbers with gaps: two missing together, one elsewhere, one in few rows, one never."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 5)), columns=list("abcde"))
    frame.loc[:5, ["a", "b"]] = np.nan
    frame.loc[6:, "c"] = np.nan
    frame.loc[:3, "d"] = np.nan
    return frame


@every_library
def test_missing_numbers_are_the_mean_and_are_indicated(convert):
    frame = holes()
    table = Table(convert(frame)).completed()
    # The third is missing where the first two are not.
    assert table.indicators == {"a and b are missing": ("a", "b", "c")}
    assert table.names == table.continuous == ("a", "b", "c", "d", "e", "a and b are missing")
    found = np.concatenate(list(table.chunks()))
    np.testing.assert_allclose(found[:, :5], frame.fillna(frame.mean()))
    np.testing.assert_array_equal(found[:, 5], frame["a"].isna())
    assert not table.discrete
    assert table.is_completed


def test_an_indicator_is_uncorrelated_with_its_column_in_all_rows_and_in_some():
    for table in (Table(holes()).completed(), Table(holes()).completed().take(range(1, 20, 2))):
        a, *_, missing = np.concatenate(list(table.chunks())).T
        assert abs(np.corrcoef(a, missing)[0, 1]) < 1e-12


def test_ranks_are_among_the_present_values():
    frame = holes()
    table = Table(frame, transform="rank").completed()
    scores = next(table.chunks())[:, 0]
    present = frame["a"].notna().to_numpy()
    np.testing.assert_array_equal(scores[present], normal_scores(frame["a"].dropna().to_numpy()))
    np.testing.assert_allclose(scores[~present], 0.0, atol=1e-12)


def test_a_column_of_which_only_presence_varies_is_present_or_not():
    frame = pd.DataFrame({"flag": [1.0, np.nan, 1.0, np.nan], "empty": 4 * [np.nan]})
    table = Table(frame).completed()
    assert table.indicators == {}
    np.testing.assert_array_equal(next(table.chunks()), [[1, 0], [0, 0], [1, 0], [0, 0]])


def test_an_indicator_has_a_name_of_its_own():
    frame = holes()[["a", "d"]].assign(**{"a is missing": 1.0})
    assert Table(frame).completed().indicators == {"a is missing_": ("a",)}
    many = pd.DataFrame(dict.fromkeys("pqrst", holes()["a"]))
    assert list(Table(many).completed().indicators) == ["p, q and 3 more are missing"]
    three = pd.DataFrame(dict.fromkeys("pqr", holes()["a"]))
    assert list(Table(three).completed().indicators) == ["p, q and r are missing"]


def test_numbers_are_filled_in_in_chunks(monkeypatch):
    whole = next(Table(holes()).completed().chunks())
    monkeypatch.setattr(data_module, "_CHUNK_BYTES", 8 * 6 * 7)
    chunks = list(Table(holes()).completed().chunks())
    assert len(chunks) == 3
    np.testing.assert_array_equal(np.concatenate(chunks), whole)
    some = Table(holes()).completed().select(["d", "a and b are missing"]).take([0, 19])
    np.testing.assert_allclose(
        np.concatenate(list(some.chunks())), [[holes().loc[19, "d"], 1], [holes().loc[19, "d"], 0]]
    )


def test_arrays_with_missing_values_are_filled_in():
    table = Table(holes().to_numpy()).completed()
    np.testing.assert_array_equal(next(table.chunks()), next(Table(holes()).completed().chunks()))
    complete = Table(np.arange(4.0).reshape(2, 2))
    assert complete.completed() is complete
    assert not complete.is_completed


def test_missing_and_infinite_numbers_are_refused_by_name():
    with pytest.raises(ValueError, match=r"missing values; got \['a', 'b', 'c', 'd'\]"):
        list(Table(holes()).chunks())
    frame = holes().assign(e=np.inf)
    with pytest.raises(ValueError, match=r"finite .*; got \['e'\]"):
        list(Table(frame).completed().chunks())


def test_a_frame_of_a_completed_table_has_all_columns():
    frame = holes().assign(s=["u", None] * 10)[["s", *"abcde"]]
    made = Table(frame).completed().to_frame()
    assert made.columns.tolist() == ["s", *"abcde", "a and b are missing"]
    assert made["s"].tolist() == ["u", None] * 10
    np.testing.assert_allclose(made["a"], frame["a"].fillna(frame["a"].mean()))


@every_library
def test_dates_are_numbers(convert):
    days = pd.to_datetime(["2020-01-03", "2020-01-01", None, "2020-01-02"])
    frame = pd.DataFrame({"day": days, "x": [1.0, 2.0, 3.0, 4.0]})
    table = Table(convert(frame)).completed()
    assert table.continuous == ("day", "x")
    np.testing.assert_array_equal(next(table.chunks())[:, 0], [2.0, 0.0, 1.0, 1.0])
    array = Table(days.to_numpy()[:2, None])
    np.testing.assert_array_equal(next(array.completed().chunks()), [[2.0], [0.0]])


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (np.zeros(3), ValueError, "array of shape"),
        (5, ValueError, "data frame or an array"),
        (np.array([[1, "a"]], dtype=object), TypeError, "Use a data frame"),
        (np.array([[1 + 2j]]), TypeError, r"got \['X1'\]"),
        (pl.DataFrame({"list": [[1, 2]]}), TypeError, r"times; got \['list'\]"),
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
