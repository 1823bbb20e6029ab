"""Counts: exact tables from batches."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.data.table import Table
from dsage.structure import search_graph
from dsage.structure.counts import Counts, configurations

NAMES = ("a", "b", "c")


def frame_of(seed: int, n_rows: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": generator.choice(["x", "y", "z"], size=n_rows),
            "b": generator.choice([True, False], size=n_rows),
            "c": generator.integers(10, 14, size=n_rows),
        }
    )


def multiset(counts: Counts) -> dict[tuple[object, ...], int]:
    return {
        tuple(
            categories[code] for categories, code in zip(counts.categories, row, strict=True)
        ): int(number)
        for row, number in zip(counts.rows, counts.multiplicity, strict=True)
    }


def test_counts_hold_each_distinct_row_once_with_its_multiplicity():
    frame = frame_of(0, 300)
    expected = frame.value_counts()
    assert multiset(Counts.from_frame(frame)) == dict(expected.items())


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(1, 39), max_size=5, unique=True))
def test_counts_merged_from_batches_equal_counts_of_the_whole(seed, cuts):
    frame = frame_of(seed, 40)
    edges = [0, *sorted(cuts), 40]
    batches = [frame[start:stop] for start, stop in itertools.pairwise(edges)]
    merged, whole = Counts.from_batches(batches), Counts.from_frame(frame)
    assert merged.categories == whole.categories
    np.testing.assert_array_equal(merged.rows, whole.rows)
    np.testing.assert_array_equal(merged.multiplicity, whole.multiplicity)


def test_any_contingency_table_follows():
    frame = frame_of(1, 200)
    table = Counts.from_frame(frame).table(["c", "a"])
    expected = pd.crosstab(frame["c"], frame["a"]).to_numpy()
    np.testing.assert_array_equal(table, expected)


def test_selected_counts_are_those_of_the_columns():
    frame = frame_of(2, 100)
    selected = Counts.from_frame(frame).select(["c", "b"])
    assert multiset(selected) == multiset(Counts.from_frame(frame[["c", "b"]]))


def test_batches_may_be_of_different_frames_and_orders():
    frame = frame_of(3, 30)
    batches = [frame[:10], pl.from_pandas(frame[10:20]), frame.loc[20:, ["c", "b", "a"]]]
    assert multiset(Counts.from_batches(batches)) == multiset(Counts.from_frame(frame))


def test_many_categories_do_not_overflow():
    # Five times 16 bits: in 64 of them, rows that differ in the first variable would be one.
    rows = [[first, 1, 2, 3, 4] for first in (0, 1, 2, 2)]
    counts = Counts(list("abcde"), [range(2**16)] * 5, rows)
    assert counts.rows[:, 0].tolist() == [0, 1, 2]
    assert counts.multiplicity.tolist() == [1, 1, 2]


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_configurations_number_what_occurs(data):
    n_categories = data.draw(st.lists(st.integers(1, 6), max_size=4))
    n_rows = data.draw(st.integers(1, 20))
    columns = [
        np.array(data.draw(st.lists(st.integers(0, r - 1), min_size=n_rows, max_size=n_rows)))
        for r in n_categories
    ]
    codes, n_observed = configurations(columns, n_categories, n_rows)
    combinations = list(zip(*columns, strict=True)) if columns else [()] * n_rows
    assert n_observed == len(set(combinations))
    assert len({(code, row) for code, row in zip(codes.tolist(), combinations, strict=True)}) == (
        n_observed
    )
    assert set(codes.tolist()) == set(range(n_observed))


def test_bad_counts_are_refused():
    with pytest.raises(ValueError, match=r"rows must be of shape \(1, 2\)"):
        Counts(["a", "b"], [(0,), (0,)], [[0]])
    with pytest.raises(ValueError, match="at least one row"):
        Counts.from_frame(pd.DataFrame({"a": []}))
    with pytest.raises(ValueError, match="at least one batch"):
        Counts.from_batches([])
    with pytest.raises(ValueError, match=r"same variables; got \['b', 'c'\]"):
        _ = Counts.from_frame(frame_of(0, 5)[["b"]]) + Counts.from_frame(frame_of(0, 5)[["c"]])


def test_missing_values_are_counted_as_one_more_category():
    counts = Counts.from_frame(pd.DataFrame({"a": ["x", None, None], "b": ["x", "y", "x"]}))
    assert counts.categories == (("x", None), ("x", "y"))
    assert counts.table(["a", "b"]).tolist() == [[1, 0], [1, 1]]
    more = counts + Counts.from_frame(pd.DataFrame({"a": ["z", None], "b": ["x", "x"]}))
    assert dict(zip(more.categories[0], more.table("a").tolist(), strict=True)) == {
        "x": 1, "z": 1, None: 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "multiplicity", "text"),
    [
        ([[0], [2]], None, r"codes from 0 to 1 in the column 'a'; got \(0, 2\)"),
        ([[-1], [0]], None, r"codes from 0 to 1 in the column 'a'; got \(-1, 0\)"),
        ([[0], [1]], [1, -3], "multiplicity must be a positive integer"),
        ([[0], [1]], [1.5, 1.0], "multiplicity must be a positive integer"),
        ([[0], [1]], [1], "multiplicity must be a positive integer"),
    ],
)
def test_bad_codes_and_multiplicities_are_refused(rows, multiplicity, text):
    with pytest.raises(ValueError, match=text):
        Counts(["a"], [("x", "y")], np.array(rows), multiplicity)


@pytest.mark.parametrize(("n_rows", "n_categories"), [(60, 50), (60, 51), (160, 80), (160, 81)])
def test_columns_of_which_most_categories_occur_once_are_refused(n_rows, n_categories):
    codes = np.column_stack([np.arange(n_rows) % n_categories, np.arange(n_rows) % 2])
    counts = Counts(["c", "d"], [range(n_categories), range(2)], codes)
    if n_categories <= max(50, n_rows / 2):
        assert search_graph(counts).graph.names == ("c", "d")
    else:
        with pytest.raises(ValueError, match=r"of classes that recur; got \['c'\]"):
            search_graph(counts)


@pytest.mark.parametrize("most", [9, 30])
def test_all_rows_on_disk_are_counted_unless_too_many_are_distinct_or_some_are_asked_for(most):
    rng = np.random.default_rng(0)
    table = Table(pd.DataFrame({name: rng.choice(list("xyz"), 300) for name in "ab"}))
    # Nine distinct rows.
    counts = Counts._from_disk(table, most)
    assert counts.multiplicity.sum() == 300
    some = np.array([3, 50, 299])
    assert Counts._from_disk(table, 1, some).multiplicity.sum() == 3
