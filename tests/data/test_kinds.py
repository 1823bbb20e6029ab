"""What a column is, by its type and its values, and how the user says it otherwise."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dsage.data.kinds import Kind
from dsage.data.layout import Layout

RNG = np.random.default_rng(0)
N = 100

COLUMNS = {
    "number": RNG.normal(size=N),
    "integer": RNG.integers(0, 1000, N),
    "whole floats": RNG.integers(0, 1000, N) * 1.0,
    "two": np.where(RNG.random(N) < 0.5, 1.5, 2.5),
    "codes": RNG.integers(1, 6, N),
    "gaps": np.where(RNG.random(N) < 0.2, np.nan, RNG.integers(1, 6, N)),
    "eleven": np.arange(N) % 11,
    "boolean": RNG.random(N) < 0.5,
    "objects": pd.Series(np.where(RNG.random(N) < 0.1, None, RNG.random(N) < 0.5), dtype=object),
    "class": RNG.choice(list("abc"), N),
    "ordered": pd.Categorical(RNG.choice(list("abc"), N), ordered=True),
    "category": pd.Categorical(RNG.choice(list("abc"), N)),
    "time": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 99, N), "D"),
    "constant": np.full(N, 3.5),
    "nothing": np.full(N, np.nan),
    "one or none": np.where(RNG.random(N) < 0.5, 3.5, np.nan),
    "id": RNG.permutation(N) + 7,
    "part of ids": RNG.permutation(2 * N)[:N],
    "key": [f"key {n}" for n in RNG.permutation(N)],
}
KINDS = {
    "number": "number",
    "integer": "integer",
    "whole floats": "integer",
    "two": "codes",
    "codes": "codes",
    "gaps": "codes",
    "eleven": "integer",
    "boolean": "boolean",
    "objects": "boolean",
    "class": "class",
    "ordered": "ordered class",
    "category": "class",
    "time": "time",
    "constant": "constant",
    "nothing": "constant",
    "one or none": "codes",
    "id": "identifier",
    "part of ids": "identifier",
    "key": "identifier",
}


def test_kinds_are_as_documented():
    layout = Layout.of(pd.DataFrame(COLUMNS))
    assert dict(zip(layout.names, map(str, layout.kinds), strict=True)) == KINDS
    values = dict(zip(layout.names, layout.value_kinds, strict=True))
    assert (values["id"], values["key"]) == (Kind.INTEGER, Kind.CLASS)
    assert values["constant"] == Kind.CODES


def test_kinds_do_not_depend_on_the_library():
    frame = pd.DataFrame(COLUMNS).drop(columns=["objects", "nothing", "ordered"])
    expected = Layout.of(frame).kinds
    assert Layout.of(pl.from_pandas(frame)).kinds == expected
    assert Layout.of(frame.convert_dtypes()).kinds == expected


def test_an_enum_of_polars_has_an_order():
    enum = pl.Series(["x", "y", "x"], dtype=pl.Enum(["x", "y"]))
    assert Layout.of(pl.DataFrame({"e": enum})).kinds == (Kind.ORDERED_CLASS,)


def test_copies_name_the_first_of_their_columns():
    x = RNG.normal(size=N)
    x[3] = np.nan
    s = RNG.choice(list("ab"), N)
    frame = pd.DataFrame({"x": x, "s": s, "z": x, "one": 1, "uno": 1, "t": s, "last": x})
    layout = Layout.of(frame)
    assert layout.copies == {2: 0, 5: 1, 6: 0}
    assert [str(kind) for kind in layout.kinds[2:]] == [
        "copy",
        "constant",
        "constant",
        "copy",
        "copy",
    ]
    assert layout.value_kinds[2] == Kind.NUMBER


def test_columns_that_are_said_to_be_numbers_are_free_also_if_constant():
    layout = Layout.of(np.zeros((1, 3)), kinds=dict.fromkeys(("X1", "X2", "X3"), "number"))
    assert set(layout.kinds) == {Kind.NUMBER}
    assert layout.copies == {}
    assert layout.possible.is_free


def test_values_that_only_look_alike_are_no_copies():
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N), "D")
    later = days + pd.Timedelta("1D")
    frame = pd.DataFrame({"a": ["u", "v"] * 50, "b": ["x", "y"] * 50, "t": days, "later": later})
    assert Layout.of(frame).copies == {}


def test_many_rows_are_decided_like_few():
    frame = pd.DataFrame({"a": np.arange(10_000) % 10, "b": np.arange(10_000) % 11})
    assert Layout.of(frame).kinds == (Kind.CODES, Kind.INTEGER)
    late = np.zeros(10_000)
    late[-20:] = np.arange(20)
    assert Layout.of(pd.DataFrame({"a": late})).kinds == (Kind.INTEGER,)


def test_the_user_knows_better():
    frame = pd.DataFrame(COLUMNS)
    given = {
        "codes": "number",
        "two": "ordered class",
        "integer": "class",
        "whole floats": "codes",
        "class": "ordered class",
        "id": "integer",
        "boolean": "class",
    }
    layout = Layout.of(frame, kinds=given)
    found = dict(zip(layout.names, map(str, layout.kinds), strict=True))
    assert {name: found[name] for name in given} == given
    counts = dict(zip(layout.names, layout.n_categories, strict=True))
    assert counts["two"] == 2
    assert counts["integer"] == len(np.unique(COLUMNS["integer"]))
    assert layout.numbers_as_classes == ("integer", "two")
    pd.testing.assert_frame_equal(
        layout.decode(layout.encode(frame)), frame, check_column_type=False
    )


@pytest.mark.parametrize(
    ("kinds", "error", "words"),
    [
        ({"codse": "class"}, ValueError, "Did you mean 'codes'"),
        ({"codes": "clas"}, ValueError, r"kinds\['codes'\] must be one of the kinds.*mean 'class'"),
        ({"class": "number"}, ValueError, r"kinds\['class'\].*can be 'class' or 'ordered class'"),
        ({"time": "number"}, ValueError, r"kinds\['time'\].*dates or times.*'time'"),
        ({"number": "integer"}, ValueError, "column 'number' must be of whole numbers.*'codes'"),
        ([("codes", "class")], TypeError, "kinds must be a dict"),
        ({"two": "number"}, ValueError, r"kinds\['two'\] must be a class, as discrete="),
    ],
)
def test_kinds_that_cannot_be_are_refused(kinds, error, words):
    with pytest.raises(error, match=words):
        Layout.of(pd.DataFrame(COLUMNS), kinds=kinds, discrete="two")
