"""Constants, duplicates and linear functions are found and named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.data.table import Table
from dsage.structure.counts import Counts
from dsage.structure.degeneracies import Degeneracies, degeneracies, discrete_degeneracies
from dsage.structure.moments import Moments


def normal(seed: int, n_rows: int, n_columns: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


def found(columns: dict[str, np.ndarray]):
    return degeneracies(Moments.from_array(np.column_stack([*columns.values()]), columns))


def test_ordinary_data_have_none():
    assert not degeneracies(Moments.from_array(normal(0, 100, 10)))


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1, -1e-30])
def test_constants_are_named_whatever_their_value(value):
    X = normal(1, 100_000, 1)[:, 0]
    record = found({"x": X, "k": np.full(len(X), value)})
    assert record.constant == ("k",)
    assert not record.duplicated
    assert not record.determined


def test_a_column_that_varies_by_rounding_only_is_constant():
    noise = np.where(np.arange(100) % 2, 0.1 + 0.2, 0.3)
    assert len(set(noise.tolist())) == 2
    assert found({"x": normal(2, 100, 1)[:, 0], "k": noise}).constant == ("k",)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([-1e6, -1.0, 1e-6, 3.0]),
    shift=st.sampled_from([0.0, 1.0, 1e3]),
)
def test_copies_are_grouped_up_to_shift_and_scale(seed, scale, shift):
    X = normal(seed, 200, 2)
    # The copy rounds to its own size: a shift much larger than the scale would make it no copy.
    copy = X[:, 0] * scale + shift * abs(scale)
    record = found({"a": X[:, 0], "b": X[:, 1], "a2": copy, "a3": X[:, 0]})
    assert record.duplicated == (("a", "a2", "a3"),)
    assert not record.determined


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n_rows=st.sampled_from([20, 1000]))
def test_a_linear_function_is_named_with_its_arguments(seed, n_rows):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, 4))
    weights = generator.choice([-2.0, -1.0, 1.0, 2.0], size=2)
    columns = dict(zip("abcd", X.T, strict=True))
    # It varies less than its arguments, so that it is explained first and they are not.
    columns["sum"] = X[:, [0, 2]] @ weights * 0.01
    record = found(columns)
    assert len(record.determined) == 1
    name, others = record.determined[0]
    assert {name, *others} == {"a", "c", "sum"}


def test_nearly_linear_functions_are_left_alone():
    X = normal(3, 1000, 3)
    columns = dict(zip("abc", X.T, strict=True))
    columns["near"] = X[:, 0] + X[:, 1] + 1e-3 * normal(4, 1000, 1)[:, 0]
    assert not found(columns)


def test_too_few_rows_are_reported_and_nothing_is_called_determined():
    record = degeneracies(Moments.from_array(normal(5, 6, 6)))
    assert record.too_few_rows
    assert record
    assert record.determined == ()
    assert not degeneracies(Moments.from_array(normal(5, 60, 6))).too_few_rows


def test_a_constant_is_neither_a_copy_nor_a_function():
    X = normal(6, 50, 2)
    record = found({"k": np.ones(50), "a": X[:, 0], "l": np.full(50, 2.0), "b": X[:, 1]})
    assert record.constant == ("k", "l")
    assert record.duplicated == record.determined == ()


def test_all_constants_are_no_trouble():
    record = found({"k": np.ones(5), "l": np.zeros(5)})
    assert record.constant == ("k", "l")


def test_classes_are_copies_up_to_the_names_of_their_categories():
    codes = np.arange(60) % 3
    columns = {"a": codes, "k": np.zeros(60, int), "b": (codes + 1) % 3, "c": np.arange(60) // 20}
    frame = pd.DataFrame({name: np.array(list("xyz"))[each] for name, each in columns.items()})
    record = discrete_degeneracies(Counts.from_table(Table(frame)))
    assert record == Degeneracies(("k",), (("a", "b"),), (), too_few_rows=False)


def test_the_tolerance_is_a_share():
    with pytest.raises(ValueError, match="tolerance must be in"):
        degeneracies(Moments.from_array(normal(0, 10, 2)), tolerance=0.0)


@pytest.mark.parametrize("field", ["constant", "duplicated", "determined", "too_few_rows"])
def test_degeneracies_of_one_kind_are_something_to_report(field):
    nothing = Degeneracies((), (), (), too_few_rows=False)
    found = {"constant": ("a",), "duplicated": (("a", "b"),), "determined": (("c", ("a", "b")),)}
    one = replace(nothing, **{field: found.get(field, True)})
    assert not nothing
    assert one
    assert one | nothing == one
