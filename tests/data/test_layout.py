import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal as assert_polars_equal
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dsage.data.layout import Layout


def pandas_frame():
    return pd.DataFrame(
        {
            "float": [1.5, 2.0, -3.0, 0.0],
            "single": np.array([1, 2, 3, 4], np.float32),
            "tiny": np.array([1, -2, 3, 127], np.int8),
            "unsigned": np.array([1, 2, 3, 4], np.uint64),
            "nullable": pd.array([1, 2, 3, 4], dtype="Int64"),
            "nullable_float": pd.array([1.5, 2, 3, 4], dtype="Float64"),
            "arrow": pd.array([1, 2, 3, 4], dtype=pd.ArrowDtype(pa.int32())),
            "bool": [True, False, True, True],
            "nullable_bool": pd.array([True, True, False, True], dtype="boolean"),
            "category": pd.Categorical(["x", "y", "x", "y"], ["y", "x", "z"]),
            "ordered": pd.Categorical(["hi", "lo", "hi", "lo"], ["lo", "mid", "hi"], ordered=True),
            "numbers": pd.Categorical([10, 5, 10, 5]),
            "string": ["q", "a", "q", "b"],
            "arrow_string": pd.array(["k", "l", "k", "l"], dtype=pd.ArrowDtype(pa.string())),
            "object": pd.Series(["q", 1, 2.5, "q"], dtype=object),
        }
    )


def polars_frame():
    return pl.DataFrame(
        {
            "float": [1.5, 2.0, -3.0],
            "tiny": pl.Series([1, -2, 3], dtype=pl.Int8),
            "unsigned": pl.Series([1, 2, 3], dtype=pl.UInt64),
            "single": pl.Series([1.5, 2, 3], dtype=pl.Float32),
            "bool": [True, False, True],
            "enum": pl.Series(["x", "y", "x"], dtype=pl.Enum(["y", "x", "z"])),
            "category": pl.Series(["q", "a", "q"], dtype=pl.Categorical),
            "string": ["z", "y", "z"],
        }
    )


def arrow_table():
    dictionary = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0], pa.int8()), ["v", "u", "w"], ordered=True
    )
    return pa.table(
        {
            "float": [1.5, 2.0, -3.0],
            "single": pa.array([1, 2, 3], pa.float32()),
            "tiny": pa.array([1, 2, 255], pa.uint8()),
            "bool": [True, False, True],
            "dictionary": dictionary,
            "string": ["z", "y", "z"],
        }
    )


FRAMES = {
    "pandas": (pandas_frame, pd.testing.assert_frame_equal),
    "polars": (polars_frame, assert_polars_equal),
    "pyarrow": (arrow_table, lambda a, b: pytest.fail(f"{a} {b}") if not a.equals(b) else None),
}

kinds = pytest.mark.parametrize("kind", FRAMES)


@kinds
@pytest.mark.parametrize("discrete", [(), ("tiny", "float")])
def test_decoding_gives_back_the_frame_with_its_dtypes_and_categories(kind, discrete):
    make, assert_equal = FRAMES[kind]
    frame = make()
    layout = Layout.of(frame, discrete=discrete)
    matrix = layout.encode(frame)
    assert layout.kind == kind
    assert matrix.dtype == np.float64
    assert_equal(layout.decode(matrix), frame)
    assert_equal(layout.decode(matrix.astype(np.float32)), frame)
    assert_equal(pickle.loads(pickle.dumps(layout)).decode(matrix), frame)
    np.testing.assert_array_equal(layout.encode(layout.decode(matrix)), matrix)


@kinds
def test_a_frame_of_floats_only_comes_back(kind):
    make, assert_equal = FRAMES[kind]
    full = make()
    names = ["float", "single"]
    frame = full.select(names) if kind != "pandas" else full[names]
    layout = Layout.of(frame)
    assert_equal(layout.decode(layout.encode(frame)), frame)
    assert layout.n_categories.tolist() == [0, 0]


def test_codes_follow_declared_categories_and_else_the_sorted_values():
    layout = Layout.of(pandas_frame())
    codes = dict(zip(layout.names, layout.encode(pandas_frame()).T.tolist(), strict=True))
    categories = dict(zip(layout.names, layout.n_categories.tolist(), strict=True))
    assert codes["category"] == [1, 0, 1, 0]
    assert categories["category"] == 3
    assert codes["ordered"] == [2, 0, 2, 0]
    assert codes["numbers"] == [1, 0, 1, 0]
    assert codes["string"] == [2, 0, 2, 1]
    assert codes["bool"] == [1, 0, 1, 1]
    assert [categories[name] for name in ("float", "tiny", "nullable", "arrow")] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "array",
    [
        np.array([["a", "bb"], ["c", "bb"]]),
        np.array([[True], [False]]),
        np.array([[1, 2], [4, 5]], np.int16),
        np.eye(2, dtype=np.float32),
        np.eye(3),
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_come_back_with_their_type(array):
    layout = Layout.of(array)
    decoded = layout.decode(layout.encode(array))
    assert decoded.dtype == array.dtype
    np.testing.assert_array_equal(decoded, array)
    assert layout.names == tuple(f"X{j + 1}" for j in range(array.shape[1]))


def test_named_columns_of_numbers_become_codes():
    array = np.array([[2.0, 0.5], [7.0, 1.5], [2.0, 2.5]])
    layout = Layout.of(array, discrete="X1")
    assert layout.n_categories.tolist() == [2, 0]
    np.testing.assert_array_equal(layout.encode(array)[:, 0], [0, 1, 0])
    np.testing.assert_array_equal(layout.decode(layout.encode(array)), array)
    with pytest.raises(ValueError, match=r"column 'X1' must be made of the categories seen"):
        layout.encode(array + 1.0)


@given(
    st.lists(st.floats(-1e25, 1e25), min_size=1, max_size=20),
    st.sampled_from([np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64]),
)
@settings(deadline=None)
def test_integers_are_rounded_half_to_even_within_the_range_of_their_type(values, dtype):
    layout = Layout.of(pd.DataFrame({"a": np.array([1], dtype)}))
    decoded = layout.decode(np.array(values)[:, None])["a"]
    info = np.iinfo(dtype)
    assert decoded.dtype == dtype
    for value, integer in zip(values, decoded.tolist(), strict=True):
        expected = min(max(round(value), int(info.min)), int(info.max))
        # Beyond 2**53 not every integer is a float: the top of a 64-bit type is not one.
        assert integer == expected or (expected == info.max and info.max - integer < 2**12)


@kinds
def test_columns_are_found_by_name_and_others_ignored(kind):
    make, _ = FRAMES[kind]
    frame = make()
    layout = Layout.of(frame)
    names = list(layout.names)[::-1]
    if kind == "pandas":
        other = frame[names].assign(target=1)
    elif kind == "polars":
        other = frame.select(names).with_columns(target=pl.lit(1))
    else:
        other = frame.select(names).append_column("target", pa.array([1, 2, 3]))
    np.testing.assert_array_equal(layout.encode(other), layout.encode(frame))


@pytest.mark.parametrize(
    "other",
    [
        pd.Categorical(["x", "y", "x", "y"], ["x", "y"]),
        pd.Categorical(["x", "y", "x", "y"], ["x", "unused", "y"]),
        pd.Series(["x", "y", "x", "y"]),
        pd.Series(["x", "y", "x", "y"], dtype=object),
    ],
)
def test_categories_are_matched_by_value_not_by_code(other):
    frame = pandas_frame()
    layout = Layout.of(frame)
    np.testing.assert_array_equal(layout.encode(frame.assign(category=other)), layout.encode(frame))


def test_a_frame_of_another_library_is_encoded_alike():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [True, False]})
    layout = Layout.of(frame)
    for convert in (pl.from_pandas, pa.Table.from_pandas):
        np.testing.assert_array_equal(layout.encode(convert(frame)), layout.encode(frame))


def test_an_array_given_for_a_frame_is_an_encoded_matrix():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    layout = Layout.of(frame)
    matrix = layout.encode(frame)
    np.testing.assert_array_equal(layout.encode(matrix), matrix)
    with pytest.raises(ValueError, match=r"column 'b' of the matrix must be codes.*got 2\.0"):
        layout.encode(matrix + 1.0)
    with pytest.raises(TypeError, match="column 'a' of the array must be floats"):
        layout.encode(matrix.astype(str))


def test_only_known_columns_are_looked_at():
    frame = pd.DataFrame({"a": [np.nan, 2.0], "b": ["never seen", None], "c": [1, 2]})
    layout = Layout.of(pd.DataFrame({"a": [1.0], "b": ["x"], "c": [1]}))
    known = np.array([False, False, True])
    np.testing.assert_array_equal(layout.encode(frame, known), [[0, 0, 1], [0, 0, 2]])


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_arrays_of_floats_are_read_at_once(kind):
    rows = np.arange(6.0).reshape(3, 2)
    layout = Layout.of(rows if kind == "array" else pd.DataFrame(rows, columns=["a", "b"]))
    known = np.array([True, False])
    encoded = layout.encode(rows, known)
    np.testing.assert_array_equal(encoded, rows * known)
    encoded[:] = 7.0
    assert rows[0, 1] == 1.0
    gap = np.array([[np.nan, 1.0]])
    np.testing.assert_array_equal(layout.encode(gap), gap)
    rows[1, 1] = -np.inf
    with pytest.raises(ValueError, match=layout.names[1]):
        layout.encode(rows)
    # What is not known is not looked at.
    np.testing.assert_array_equal(layout.encode(rows, known)[:, 1], 0.0)


def test_infinite_values_are_refused_by_name():
    good = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0], "c": [3.0, np.nan]})
    bad = good.assign(a=[np.inf, 1.0], c=[np.nan, -np.inf])
    for call in (Layout.of, Layout.of(good).encode):
        with pytest.raises(
            ValueError, match=r"finite; got \['a', 'c'\].*by NaN if they are missing"
        ):
            call(bad)


def test_unseen_categories_are_refused_by_column_and_value():
    layout = Layout.of(pd.DataFrame({"s": ["a", "b"], "c": pd.Categorical(["u", "v"])}))
    with pytest.raises(
        ValueError,
        match=r"column 's' must be made of the categories seen in training; got 'zz'\. They are 'a', 'b'",
    ):
        layout.encode(pd.DataFrame({"s": ["a", "zz"], "c": ["u", "v"]}))
    with pytest.raises(ValueError, match=r"column 'c' .* got \['w', 'y'\]"):
        layout.encode(pd.DataFrame({"s": ["a", "b"], "c": pd.Categorical(["w", "y"])}))


def test_absent_columns_are_named():
    layout = Layout.of(pd.DataFrame({"a": [1.0], "b": [1.0], "c": [1.0]}))
    with pytest.raises(ValueError, match="These are missing: 'a', 'c'"):
        layout.encode(pd.DataFrame({"b": [1.0]}))


def test_a_column_of_another_kind_is_refused():
    layout = Layout.of(pd.DataFrame({"a": [1.0], "b": ["x"]}))
    with pytest.raises(TypeError, match="column 'a' must be of numbers, as in training"):
        layout.encode(pd.DataFrame({"a": ["1.0"], "b": ["x"]}))
    with pytest.raises(TypeError, match="column 'b' must be of strings, booleans or categories"):
        layout.encode(pd.DataFrame({"a": [1.0], "b": [2.0]}))


def test_what_no_layout_can_hold_is_refused():
    with pytest.raises(TypeError, match=r"the columns must be numbers.*got \['when'\]"):
        Layout.of(pd.DataFrame({"when": pd.period_range("2020", periods=2, freq="Y")}))
    with pytest.raises(TypeError, match="Use a data frame for columns of different types"):
        Layout.of(np.array([[1, "a"]], dtype=object))
    with pytest.raises(ValueError, match="one column per variable"):
        Layout.of(np.zeros(3))
    with pytest.raises(TypeError, match=r"the data frame must be eager.*collect"):
        Layout.of(pl.LazyFrame({"a": [1]}))
    with pytest.raises(TypeError, match="the columns of the data frame must be strings; got 0"):
        Layout.of(pd.DataFrame({0: [1.0]}))
    with pytest.raises(ValueError, match="the columns must be of distinct names"):
        Layout.of(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]))
    with pytest.raises(TypeError, match="data must be without a mask"):
        Layout.of(np.ma.masked_equal(np.eye(2), 1.0))
    with pytest.raises(TypeError, match="the columns must be numbers or classes; got 'lists'"):
        Layout.of(pd.DataFrame({"lists": [[1], [2]]}))
    with pytest.raises(ValueError, match="discrete must be one of the columns of the data"):
        Layout.of(np.zeros((1, 2)), discrete="X3")


def test_matrices_that_cannot_be_decoded_are_refused():
    layout = Layout.of(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))
    with pytest.raises(ValueError, match="reshape draws to rows first"):
        layout.decode(np.zeros((2, 3, 2)))
    with pytest.raises(
        ValueError, match=r"the matrix must be of shape \(n_rows, 2\); got \(2, 3\)"
    ):
        layout.decode(np.zeros((2, 3)))
    for code in (2.0, -1.0, 0.5, np.nan):
        with pytest.raises(ValueError, match="column 'b' of the matrix must be codes"):
            layout.decode(np.array([[1.0, code]]))
    with pytest.raises(ValueError, match=r"column 'a' must be without missing values.*extend"):
        layout.decode(np.array([[np.nan, 1.0]]))


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_a_pipeline_trained_on_the_frame_accepts_decoded_draws(convert):
    rng = np.random.default_rng(0)
    frame = convert(
        pd.DataFrame(
            {
                "age": rng.integers(20, 80, 60),
                "dose": rng.random(60),
                "sex": np.where(rng.random(60) < 0.5, "f", "m"),
                "smokes": rng.random(60) < 0.3,
                "ward": pd.Categorical(np.array(["a", "b", "c"])[rng.integers(0, 3, 60)]),
            }
        )
    )
    prepare = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["age", "dose"]),
            ("classes", OneHotEncoder(), ["sex", "smokes", "ward"]),
        ]
    )
    model = make_pipeline(prepare, LogisticRegression()).fit(frame, rng.random(60) < 0.5)
    layout = Layout.of(frame)
    matrix = layout.encode(frame)
    shuffled = rng.permuted(matrix, axis=0)
    drawn = layout.decode(shuffled)
    assert type(drawn) is type(frame)
    np.testing.assert_array_equal(
        model.predict_proba(layout.decode(matrix)), model.predict_proba(frame)
    )
    assert model.predict_proba(drawn).shape == (60, 2)
    if isinstance(frame, pd.DataFrame):
        assert drawn.dtypes.equals(frame.dtypes)
        assert drawn["ward"].cat.categories.equals(frame["ward"].cat.categories)


def test_repr_names_the_columns():
    assert (
        repr(Layout.of(np.zeros((1, 1)))) == "Layout(kind='numpy', names=('X1',), n_categories=[0])"
    )


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_whole_numbers_that_floats_round_are_told(convert):
    numbers = np.array([2**53 + 2, 5, 2**60 + 1])
    frame = convert(pd.DataFrame({"key": numbers, "small": [2**53, -(2**53), 0]}))
    with pytest.warns(UserWarning, match=r"Column 'key' has whole numbers beyond 2\*\*53") as told:
        Layout.of(frame)
    assert len(told) == 1
    exact = Layout.of(frame, discrete=["key"])
    keys = exact.decode(exact.encode(frame))["key"]
    assert (keys.to_pylist() if hasattr(keys, "to_pylist") else list(keys)) == numbers.tolist()


@pytest.mark.parametrize("container", ["pyarrow", "polars", "pandas"])
def test_decimal_numbers_that_floats_round_are_told(container):
    convert = {
        "pyarrow": lambda table: table,
        "polars": pl.from_arrow,
        "pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    }[container]
    numbers = pa.array([Decimal("0.3"), Decimal("-2.25")], pa.decimal128(10, 2))
    exact = convert(pa.table({"a": numbers}))
    assert Layout.of(exact).decode(Layout.of(exact).encode(exact)).equals(exact)
    wide = pa.table({"a": pa.array([Decimal("1234567890123456.12")], pa.decimal128(30, 2))})
    with pytest.warns(UserWarning, match="Column 'a' has decimal numbers of more than 15 digits"):
        Layout.of(convert(wide))


def test_integers_of_128_bits_are_taken_as_far_as_64_bits_go():
    frame = pl.DataFrame({"a": pl.Series([1, None, 2**40], dtype=pl.Int128)})
    layout = Layout.of(frame)
    assert_polars_equal(layout.decode(layout.encode(frame)), frame)
    keys = pl.DataFrame({"a": pl.Series([2**70, 2**70 + 1, None], dtype=pl.Int128)})
    with pytest.raises(ValueError, match=r"column 'a' must be whole numbers of 64 bits.*floats"):
        Layout.of(keys)
    classes = Layout.of(keys, discrete="a")
    assert_polars_equal(classes.decode(classes.encode(keys)), keys)


def test_dictionaries_with_repeated_or_missing_values_are_refused():
    for values in (["a", "a"], ["a", None]):
        odd = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(values))
        with pytest.raises(ValueError, match="column 'd' must be a dictionary of distinct values"):
            Layout.of(pa.table({"d": odd}))


def test_objects_stay_objects_when_strings_and_numbers_meet():
    train = pd.DataFrame({"a": pd.Series(["x", "1"], dtype=object)})
    test = pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)})
    longer = Layout.of(train).extend(test)
    assert longer.decode(longer.encode(test))["a"].tolist() == [1, "x"]
    texts = Layout.of(train.astype("str")).extend(test)
    assert texts.decode(texts.encode(test))["a"].tolist() == [1, "x"]
    with pytest.raises(TypeError, match="column 'a' must be made of values of the type it had"):
        Layout.of(pl.DataFrame({"a": ["x"]})).extend(test)


def test_the_order_of_bytes_does_not_matter():
    times = np.array([["2020-01-05"], ["2020-01-01"]], "M8[D]").astype(">M8[s]")
    layout = Layout.of(times)
    np.testing.assert_array_equal(layout.encode(times)[:, 0], [4, 0])
    assert layout.decode(layout.encode(times)).dtype == times.dtype


def test_lists_of_numbers_and_strings_are_refused():
    # NumPy would make strings of the numbers.
    with pytest.raises(TypeError, match="Use a data frame for columns of different types"):
        Layout.of([[1.5, "a"], [2.5, "b"]])
    assert Layout.of([["x", "a"], ["y", "b"]]).n_categories.tolist() == [2, 2]


def test_numbers_held_as_objects_are_told_to_be_classes():
    frame = pd.DataFrame({"price": [Decimal("1.5"), 2, 2.5], "flag": [True, False, True], "b": "x"})
    frame = frame.astype({"price": object, "flag": object})
    with pytest.warns(UserWarning, match="Column 'price' holds numbers as objects") as told:
        assert Layout.of(frame).n_categories.tolist() == [3, 2, 1]
    assert len(told) == 1
    assert Layout.of(frame, discrete="price").n_categories.tolist() == [3, 2, 1]


def test_layout_of_numbers_is_that_of_a_frame_of_numbers_that_vary():
    names = ["a", "b"]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), columns=names)
    made, learned = Layout.of_numbers(names), Layout.of(frame, kinds=dict.fromkeys(names, "number"))
    assert made._columns == learned._columns
    assert (made.kind, made.names, made.copies, made.exclusive) == ("pandas", ("a", "b"), {}, ())
    pd.testing.assert_frame_equal(made.decode(made.encode(frame)), frame)
