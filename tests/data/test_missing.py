"""Missing values are values: they are encoded, and come back as what they were."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal as assert_polars_equal

from dsage.data.layout import Layout


def arrow_dtype(kind):
    return pd.ArrowDtype(kind)


PANDAS = {
    "float": pd.Series([1.5, np.nan, -3.0, 0.25]),
    "single": pd.Series([1.5, np.nan, -3.0, 0.25], dtype=np.float32),
    "Int8": pd.Series([1, None, 127, -128], dtype="Int8"),
    "UInt64": pd.Series([1, None, 3, 4], dtype="UInt64"),
    "Float64": pd.Series([1.5, None, 3, 4], dtype="Float64"),
    "Float64 NaN": pd.Series(
        pd.arrays.FloatingArray(np.array([1.0, np.nan, 2.0, 4.0]), np.zeros(4, bool))
    ),
    "arrow int": pd.Series([1, None, 3, 4], dtype=arrow_dtype(pa.int32())),
    "arrow float": pd.Series([1.5, None, 3, 4], dtype=arrow_dtype(pa.float64())),
    "arrow NaN": pd.Series(pd.arrays.ArrowExtensionArray(pa.array([1.0, float("nan"), 2.0, 4.0]))),
    "arrow string": pd.Series(["b", None, "a", "b"], dtype=arrow_dtype(pa.string())),
    "arrow bool": pd.Series([True, None, False, True], dtype=arrow_dtype(pa.bool_())),
    "boolean": pd.Series([True, None, False, True], dtype="boolean"),
    "string": pd.Series(["b", None, "a", "b"], dtype="string"),
    "str": pd.Series(["b", None, "a", "b"], dtype="str"),
    "object None": pd.Series(["b", None, "a", "b"], dtype=object),
    "object NaN": pd.Series(["b", np.nan, "a", "b"], dtype=object),
    "object NA": pd.Series(["b", pd.NA, "a", "b"], dtype=object),
    "object booleans": pd.Series([True, None, False, True], dtype=object),
    "category": pd.Series(pd.Categorical(["b", None, "a", "b"], ["c", "b", "a"])),
    "ordered": pd.Series(pd.Categorical(["b", None, "a", "b"], ["c", "b", "a"], ordered=True)),
    "all float": pd.Series([np.nan] * 4),
    "all object": pd.Series([None] * 4, dtype=object),
    "all Int64": pd.Series([None] * 4, dtype="Int64"),
    "all category": pd.Series(pd.Categorical([None] * 4, ["a"])),
}

POLARS = {
    "float null": pl.Series([1.5, None, 3.0]),
    "float NaN": pl.Series([1.5, float("nan"), 3.0]),
    "int": pl.Series([1, None, 3], dtype=pl.Int16),
    "uint": pl.Series([1, None, 3], dtype=pl.UInt64),
    "bool": pl.Series([True, None, False]),
    "string": pl.Series(["b", None, "a"]),
    "categorical": pl.Series(["b", None, "a"], dtype=pl.Categorical),
    "enum": pl.Series(["b", None, "a"], dtype=pl.Enum(["c", "b", "a"])),
    "nothing": pl.Series([None, None, None]),
    "all int": pl.Series([None, None, None], dtype=pl.Int64),
}

ARROW = {
    "float null": pa.array([1.5, None, 3.0]),
    "float NaN": pa.array([1.5, float("nan"), 3.0]),
    "int": pa.array([1, None, 2**40]),
    "bool": pa.array([True, None, False]),
    "string": pa.array(["b", None, "a"]),
    "dictionary": pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0], pa.int8()), ["c", "b", "a"], ordered=True
    ),
    "nothing": pa.nulls(3),
}


@pytest.mark.parametrize("name", PANDAS)
def test_missing_values_of_pandas_come_back(name):
    frame = PANDAS[name].to_frame("a")
    layout = Layout.of(frame)
    matrix = layout.encode(frame)
    assert layout.is_missing(matrix)[:, 0].tolist() == frame["a"].isna().tolist() or "NaN" in name
    assert layout.may_miss.tolist() == [True]
    decoded = pickle.loads(pickle.dumps(layout)).decode(matrix)
    pd.testing.assert_frame_equal(decoded, frame)
    absent = np.asarray(layout.is_missing(matrix)[:, 0])
    for found, wanted in zip(decoded["a"][absent], frame["a"][absent], strict=True):
        assert type(found) is type(wanted)
    np.testing.assert_array_equal(layout.encode(decoded), matrix)


@pytest.mark.parametrize("name", POLARS)
def test_missing_values_of_polars_come_back(name):
    frame = pl.DataFrame({"a": POLARS[name]})
    layout = Layout.of(frame)
    matrix = layout.encode(frame)
    assert layout.is_missing(matrix)[1, 0]
    assert_polars_equal(layout.decode(matrix), frame)


@pytest.mark.parametrize("name", ARROW)
def test_missing_values_of_pyarrow_come_back(name):
    table = pa.table({"a": ARROW[name]})
    layout = Layout.of(table)
    matrix = layout.encode(table)
    assert layout.is_missing(matrix)[1, 0]
    decoded = layout.decode(matrix)
    assert decoded.schema == table.schema
    assert repr(decoded["a"].to_pylist()) == repr(table["a"].to_pylist())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_missing_numbers_of_arrays_come_back(dtype):
    array = np.array([[1.0, np.nan], [np.nan, 2.0]], dtype)
    layout = Layout.of(array)
    np.testing.assert_array_equal(layout.decode(layout.encode(array)), array)
    assert layout.decode(layout.encode(array)).dtype == dtype
    assert layout.is_missing(layout.encode(array)).tolist() == [[False, True], [True, False]]


def test_missing_is_the_last_category_of_training():
    frame = pd.DataFrame({"s": ["b", None, "a"], "x": [1.0, np.nan, 2.5], "t": ["u", "v", "u"]})
    layout = Layout.of(frame)
    assert layout.n_categories.tolist() == [3, 0, 2]
    assert layout.missing_codes.tolist() == [2, -1, -1]
    assert layout.may_miss.tolist() == [True, True, False]
    np.testing.assert_array_equal(layout.encode(frame), [[1, 1, 0], [2, np.nan, 1], [0, 2.5, 0]])


def test_classes_of_numbers_may_be_missing():
    frame = pd.DataFrame({"zip": [20001.0, np.nan, 10001.0]})
    layout = Layout.of(frame, kinds={"zip": "class"})
    np.testing.assert_array_equal(layout.encode(frame)[:, 0], [1, 2, 0])
    pd.testing.assert_frame_equal(layout.decode(layout.encode(frame)), frame)
    keys = pl.DataFrame({"key": [2**60 + 1, None, 2**60]})
    exact = Layout.of(keys, discrete="key")
    assert_polars_equal(exact.decode(exact.encode(keys)), keys)


def test_unseen_categories_are_appended_and_old_codes_stay():
    train = pd.DataFrame({"s": ["b", None, "a"], "c": pd.Categorical(["v", "u", "v"])})
    test = pd.DataFrame({"s": ["d", "a", "c"], "c": pd.Categorical(["w", None, "u"])})
    layout = Layout.of(train)
    longer = layout.extend(test)
    np.testing.assert_array_equal(longer.encode(train), layout.encode(train))
    np.testing.assert_array_equal(longer.encode(test), [[4, 2], [0, 3], [3, 0]])
    assert longer.missing_codes.tolist() == [2, 3]
    assert longer.n_categories.tolist() == [5, 4]
    assert longer.may_miss.tolist() == [True, False]
    assert longer.categories("s") == ("a", "b", "c", "d")
    decoded = longer.decode(longer.encode(test))
    assert decoded["s"].tolist() == ["d", "a", "c"]
    assert decoded["c"].cat.categories.tolist() == ["u", "v", "w"]
    assert decoded["c"].isna().tolist() == [False, True, False]
    assert layout.extend(train) is layout


EXTENSIONS = [
    (pd.DataFrame({"a": ["x", "y"]}), pd.DataFrame({"a": ["x", "new", None]})),
    (pd.DataFrame({"a": [True, False]}), pd.DataFrame({"a": [True, None, False]})),
    (pd.DataFrame({"a": [3, 4]}), pd.DataFrame({"a": [3.0, np.nan, 5.0]})),
    (
        pd.DataFrame({"a": pd.array(["x"], dtype="string")}),
        pd.DataFrame({"a": pd.array(["n", None], dtype="string")}),
    ),
    (
        pd.DataFrame({"a": pd.Categorical(["x"], ordered=True)}),
        pd.DataFrame({"a": pd.Categorical(["x", "n", None], ["n", "x"], ordered=True)}),
    ),
    (
        pd.DataFrame({"a": pd.Series([1, "a"], dtype=object)}),
        pd.DataFrame({"a": pd.Series([2.5, "a", None], dtype=object)}),
    ),
    (pl.DataFrame({"a": ["x"]}), pl.DataFrame({"a": ["n", None, "x"]})),
    (pl.DataFrame({"a": [True]}), pl.DataFrame({"a": [None, True]})),
    (
        pl.DataFrame({"a": pl.Series(["x"], dtype=pl.Categorical)}),
        pl.DataFrame({"a": pl.Series(["n", None, "x"], dtype=pl.Categorical)}),
    ),
    (pl.DataFrame({"a": [1.5, 2.5]}), pl.DataFrame({"a": [float("nan"), 2.5]})),
    (pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [None, 2]})),
    (pa.table({"a": ["x"]}), pa.table({"a": ["n", None, "x"]})),
    (pa.table({"a": [1.5]}), pa.table({"a": [2.5, None, 1.5]})),
    (pa.table({"a": [True]}), pa.table({"a": [False, None]})),
    (np.array([["x"], ["y"]]), np.array([["longer"], ["y"]])),
    (np.array([[1], [2]]), np.array([[1.0], [np.nan]])),
]


@pytest.mark.parametrize(("train", "test"), EXTENSIONS, ids=range(len(EXTENSIONS)))
def test_what_only_further_rows_have_comes_back(train, test):
    layout = Layout.of(train)
    longer = layout.extend(test)
    np.testing.assert_array_equal(longer.encode(train), layout.encode(train))
    found = longer.decode(longer.encode(test))
    if isinstance(test, np.ndarray):
        np.testing.assert_array_equal(found, test)
        assert found.dtype == test.dtype
        return
    found, wanted = (
        each["a"].to_pylist() if isinstance(each, pa.Table) else list(each["a"])
        for each in (found, test)
    )
    assert [*map(repr, found)] == [*map(repr, wanted)]


def test_dictionaries_of_pyarrow_and_enums_of_polars_get_further_values():
    short = pa.array(["x", "y"]).dictionary_encode()
    layout = Layout.of(pa.table({"a": short}))
    test = pa.table({"a": pa.array(["n", None, "y"]).dictionary_encode()})
    longer = layout.extend(test)
    assert longer.decode(longer.encode(test))["a"].to_pylist() == ["n", None, "y"]
    enum = pl.DataFrame({"a": pl.Series(["x"], dtype=pl.Enum(["x", "y"]))})
    more = pl.DataFrame({"a": pl.Series(["n", None], dtype=pl.Enum(["x", "n"]))})
    longer = Layout.of(enum).extend(more)
    assert longer.decode(longer.encode(more))["a"].to_list() == ["n", None]


def test_a_layout_that_does_not_know_missing_values_says_what_to_do():
    layout = Layout.of(pd.DataFrame({"s": ["a", "b"], "x": [1.0, 2.0]}))
    with pytest.raises(ValueError, match=r"column 's' must be without missing.*layout\.extend"):
        layout.encode(pd.DataFrame({"s": ["a", None], "x": [1.0, 2.0]}))
    with pytest.raises(ValueError, match=r"column 's' .* got 'c'.*layout\.extend"):
        layout.encode(pd.DataFrame({"s": ["a", "c"], "x": [1.0, 2.0]}))
    # Numbers need no code for it.
    assert np.isnan(layout.encode(pd.DataFrame({"s": ["a"], "x": [np.nan]}))[0, 1])


@pytest.mark.parametrize(
    "nothing",
    [
        pd.Series([None, None], dtype=object),
        pd.Series([np.nan, np.nan]),
        pd.Series([pd.NaT, pd.NaT]),
        pd.Series([None, None], dtype="Int64"),
    ],
    ids=lambda series: str(series.dtype),
)
@pytest.mark.parametrize("column", ["s", "x", "t"])
def test_a_column_of_missing_values_fits_any_type(nothing, column):
    train = pd.DataFrame(
        {"s": ["a", None], "x": [1.0, np.nan], "t": pd.to_datetime(["2020-01-01", None])}
    )
    layout = Layout.of(train)
    test = train.assign(**{column: nothing})
    longer = layout.extend(test)
    position = train.columns.get_loc(column)
    assert longer.is_missing(longer.encode(test))[:, position].all()
    decoded = longer.decode(longer.encode(test))
    assert decoded[column].isna().all()
    assert decoded.dtypes.equals(train.dtypes)


def test_of_null_and_nan_null_comes_back():
    frame = pl.DataFrame({"a": [1.0, float("nan"), None]})
    layout = Layout.of(frame)
    assert layout.decode(layout.encode(frame))["a"].to_list() == [1.0, None, None]
