"""Data frames of every kind, built by hypothesis: good ones, and ones that must be refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

SIZES = (0, 1, 2, 3, 6)


class Made(NamedTuple):
    """A column, and whether it must be refused."""

    values: object
    is_bad: bool = False


def draws(values, n_rows, *, missing=()):
    """Lists of values, some of them missing in one way."""
    options = [st.lists(values, min_size=n_rows, max_size=n_rows)]
    for absent in missing:
        either = st.one_of(values, values, st.just(absent))
        options.append(st.lists(either, min_size=n_rows, max_size=n_rows))
        options.append(st.just([absent] * n_rows))
    return st.one_of(options)


floats = st.floats(-1e9, 1e9, width=32)
small = st.integers(-100, 100)
texts = st.sampled_from(["a", "b", "", "ä \N{SNOWMAN}", "NA", "nan", "1", " x"])
days = st.dates(dt.date(1700, 1, 1), dt.date(2200, 1, 1))
seconds = st.integers(-(10**9), 10**9)
NAN = float("nan")


@cache
def pandas_columns(n):
    """Columns of pandas."""

    def series(values, dtype=None, missing=(), is_bad=False):
        lists = draws(values, n, missing=missing)
        return lists.map(lambda found: Made(pd.Series(found, dtype=dtype), is_bad))

    def stamps(unit, zone=None):
        def make(found):
            array = np.array([("NaT" if each is None else each) for each in found], "M8[s]")
            column = pd.Series(array.astype(f"M8[{unit}]"))
            return Made(
                column if zone is None else column.dt.tz_localize("UTC").dt.tz_convert(zone)
            )

        return draws(seconds, n, missing=[None]).map(make)

    def categories(values, *, ordered):
        def make(found):
            labels = pd.unique(
                pd.Series([each for each in found if each is not None], dtype=object)
            )
            levels = [*list(labels)[::-1], *(["unused"] if isinstance(values, str) else [])]
            return Made(pd.Series(pd.Categorical(found, levels, ordered=ordered)))

        return draws(values, n, missing=[None]).map(make)

    arrow = {
        pa.int16(): small, pa.uint8(): st.integers(0, 255), pa.float32(): floats,
        pa.float64(): floats, pa.string(): texts, pa.large_string(): texts, pa.bool_(): st.booleans(),
        pa.date32(): days, pa.duration("ms"): st.timedeltas(dt.timedelta(-9), dt.timedelta(9)).map(
            lambda each: dt.timedelta(milliseconds=each // dt.timedelta(milliseconds=1))
        ),
        pa.time64("us"): st.times(), pa.decimal128(12, 2): st.integers(-(10**6), 10**6).map(
            lambda each: Decimal(each) / 100
        ),
    }  # fmt: skip
    backed = [series(values, pd.ArrowDtype(kind), missing=[None]) for kind, values in arrow.items()]
    lengths = draws(seconds, n, missing=[None]).map(
        lambda found: Made(
            pd.Series(np.array(["NaT" if each is None else each for each in found], "m8[s]"))
        )
    )
    return st.one_of(
        series(floats, "float64", [NAN]), series(floats, "float32", [NAN]),
        series(small, "int64"), series(small, "int8"), series(st.integers(0, 9), "uint16"),
        series(small, "Int64", [None]), series(st.integers(0, 9), "UInt8", [None]),
        series(floats, "Float64", [None]), series(floats, "Float32", [None]),
        series(st.booleans(), "bool"), series(st.booleans(), "boolean", [None]),
        series(texts, "str", [None]), series(texts, "string", [None]),
        series(texts, object, [None, NAN, pd.NA]), series(st.booleans(), object, [None, NAN]),
        series(st.one_of(texts, small, st.tuples(small)), object, [None]),
        series(days, object, [None]),
        categories(texts, ordered=False), categories(texts, ordered=True),
        categories(small, ordered=False), categories(st.booleans(), ordered=False),
        stamps("s"), stamps("us"), stamps("ns"), stamps("ms", "Europe/Berlin"), lengths,
        *backed,
    )  # fmt: skip


@cache
def bad_pandas_columns(n):
    """Columns of pandas that must be refused if they have rows."""
    infinite = draws(st.sampled_from([1.5, 2.5, np.inf]), n).filter(lambda found: np.inf in found)
    kinds = [
        infinite.map(lambda found: Made(pd.Series(found), is_bad=True)),
        infinite.map(lambda found: Made(pd.Series(found, dtype="Float64"), is_bad=True)),
        st.just(Made(pd.Series([[1]] * n, dtype=object), is_bad=True)),
        st.just(Made(pd.Series([{"a": 1}] * n, dtype=object), is_bad=True)),
        st.just(Made(pd.Series([1j] * n), is_bad=True)),
        st.just(Made(pd.Series(pd.period_range("2020", periods=n, freq="D")), is_bad=True)),
        st.just(Made(pd.Series(pd.arrays.SparseArray([0.0] * n)), is_bad=True)),
        st.just(Made(pd.Series(pd.interval_range(0, n)), is_bad=True)),
    ]
    return st.one_of(kinds)


@cache
def polars_columns(n):
    """Columns of polars."""

    def series(values, dtype, missing=(None,)):
        lists = draws(values, n, missing=missing)
        return lists.map(lambda found: Made(pl.Series(found, dtype=dtype, strict=False)))

    physical = {
        pl.Datetime("ms"): seconds, pl.Datetime("us", "Asia/Tokyo"): seconds,
        pl.Datetime("ns"): seconds, pl.Duration("us"): seconds,
        pl.Time: st.integers(0, 86_399).map(lambda each: each * 10**9),
    }  # fmt: skip
    times = [
        draws(values, n, missing=[None]).map(
            lambda found, kind=kind: Made(pl.Series(found, dtype=pl.Int64).cast(kind))
        )
        for kind, values in physical.items()
    ]
    return st.one_of(
        series(floats, pl.Float64, [None, NAN]), series(floats, pl.Float32, [None, NAN]),
        series(small, pl.Int8), series(small, pl.Int64), series(small, pl.Int128), series(st.integers(0, 9), pl.UInt64),
        series(st.booleans(), pl.Boolean), series(texts, pl.String),
        series(texts, pl.Categorical),
        series(st.sampled_from("ab"), pl.Enum(["c", "b", "a"])),
        series(days, pl.Date), series(st.none(), pl.Null), *times,
        series(st.integers(-999, 999).map(lambda each: Decimal(each) / 10), pl.Decimal(10, 1)),
    )  # fmt: skip


@cache
def arrow_columns(n):
    """Columns of pyarrow."""

    def array(values, dtype, missing=(None,)):
        lists = draws(values, n, missing=missing)
        return lists.map(lambda found: Made(pa.array(found, dtype, from_pandas=False)))

    def dictionary(found):
        return Made(pa.array(found, pa.string()).dictionary_encode())

    return st.one_of(
        array(floats, pa.float64(), [None, NAN]), array(floats, pa.float32(), [None, NAN]),
        array(small, pa.int8()), array(small, pa.int64()), array(st.booleans(), pa.bool_()),
        array(texts, pa.string()), array(texts, pa.large_string()), array(texts, pa.string_view()),
        array(days, pa.date32()), array(days, pa.date64()), array(st.times(), pa.time64("us")),
        array(seconds, pa.timestamp("s")), array(seconds, pa.timestamp("ms", "Asia/Tokyo")),
        array(seconds, pa.duration("us")), array(st.none(), pa.null()),
        array(st.integers(-999, 999).map(lambda each: Decimal(each) / 10), pa.decimal128(5, 1)),
        draws(texts, n, missing=[None]).map(dictionary),
    )  # fmt: skip


@cache
def bad_arrow_columns(n):
    """Columns of pyarrow that must be refused if they have rows."""
    twice = pa.DictionaryArray.from_arrays(pa.array([0] * n), pa.array(["a", "a"]))
    values = [pa.array([[1]] * n), pa.array([{"a": 1}] * n), pa.array([np.inf] * n), twice]
    return st.sampled_from([Made(each, is_bad=True) for each in values])


@cache
def bad_polars_columns(n):
    """Columns of polars that must be refused if they have rows."""
    values = [[[1]] * n, [{"a": 1}] * n, [np.inf] * n, [b"a"] * n]
    return st.sampled_from([Made(pl.Series(each), is_bad=True) for each in values])


@cache
def arrays(n):
    """Two-dimensional arrays of NumPy, and whether they must be refused."""

    def array(values, dtype, missing=(), is_bad=False):
        def make(columns):
            made = np.empty((n, len(columns)), dtype)
            for at, column in enumerate(columns):
                made[:, at] = np.array(column, dtype) if n else []
            return Made(made, is_bad)

        return st.lists(draws(values, n, missing=missing), min_size=1, max_size=3).map(make)

    bad = st.just(Made(np.full((n, 2), 1j), is_bad=True))
    return st.one_of(
        array(floats, np.float64, [NAN]), array(floats, np.float32, [NAN]),
        array(small, np.int8), array(small, np.int64), array(st.booleans(), np.bool_),
        array(st.sampled_from(["a", "bb", ""]), "U2"), array(seconds, "M8[s]", ["NaT"]),
        array(small, "M8[D]", ["NaT"]),
        array(small, ">M8[s]", ["NaT"]), array(small, ">i4"), array(st.sampled_from([b"a", b"bb"]), "S2"), array(seconds, "m8[ms]", ["NaT"]), bad,
        array(st.just(np.inf), np.float64, is_bad=n > 0),
    )  # fmt: skip


_GOOD = {"pandas": pandas_columns, "polars": polars_columns, "pyarrow": arrow_columns}
_BAD = {"pandas": bad_pandas_columns, "polars": bad_polars_columns, "pyarrow": bad_arrow_columns}


@st.composite
def frames(draw, *, may_be_bad=True):
    """A frame or an array, the names of its columns that must be refused, and its rows."""
    n_rows = draw(st.sampled_from(SIZES))
    library = draw(st.sampled_from(["pandas", "pandas", "polars", "pyarrow", "numpy"]))
    if library == "numpy":
        made = draw(arrays(n_rows).filter(lambda each: may_be_bad or not each.is_bad))
        return made.values, (["X1"] if made.is_bad else []), n_rows
    columns = draw(st.lists(_GOOD[library](n_rows), min_size=1, max_size=4))
    if may_be_bad and n_rows and draw(st.integers(0, 3)) == 0:
        columns.append(draw(_BAD[library](n_rows)))
    named = {f"column {at}": column for at, column in enumerate(columns)}
    bad = [name for name, column in named.items() if column.is_bad]
    values = {name: column.values for name, column in named.items()}
    if library == "pandas":
        index = draw(st.sampled_from([None, "shifted"]))
        frame = pd.DataFrame(values)
        return (frame if index is None else frame.set_axis(np.arange(n_rows) + 5)), bad, n_rows
    return (pl.DataFrame(values) if library == "polars" else pa.table(values)), bad, n_rows
