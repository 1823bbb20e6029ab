"""Draws are moved to values that can occur; columns that exclude each other are found."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsage.data.layout import Layout
from dsage.data.possible import Exclusive, Possible

RNG = np.random.default_rng(0)
N = 300
CLASS = RNG.integers(0, 4, N)


def one_hot(codes=CLASS, drop=0, dtype=float):
    return pd.get_dummies(pd.Series(codes), prefix="c", dtype=dtype).iloc[:, drop:]


def sets(layout):
    return [each.columns.tolist() for each in layout.exclusive]


@pytest.mark.parametrize("dtype", [float, int, bool])
def test_one_hot_columns_are_found_by_their_pattern(dtype):
    frame = pd.concat([one_hot(dtype=dtype), pd.DataFrame({"x": RNG.normal(size=N)})], axis=1)
    layout = Layout.of(frame)
    assert sets(layout) == [[0, 1, 2, 3]]
    np.testing.assert_array_equal(layout.exclusive[0].states, np.eye(4))
    dropped = Layout.of(one_hot(drop=1, dtype=dtype))
    assert sets(dropped) == [[0, 1, 2]]
    np.testing.assert_array_equal(dropped.exclusive[0].states, np.vstack([[0, 0, 0], np.eye(3)]))


def test_adjacent_one_hot_classes_are_told_apart():
    other = RNG.integers(0, 3, N)
    frame = pd.concat([one_hot(drop=1), one_hot(other, drop=1).add_prefix("d")], axis=1)
    assert sets(Layout.of(frame)) == [[0, 1, 2], [3, 4]]
    flag = (RNG.random(N) < 0.5) * 1
    assert sets(Layout.of(frame.assign(flag=flag))) == [[0, 1, 2], [3, 4]]


def test_levels_that_training_lacks_are_part_of_their_class():
    frame = one_hot()
    frame.insert(2, "never", 0.0)
    frame["nothing"] = 0.0
    layout = Layout.of(frame)
    assert sets(layout) == [[0, 1, 2, 3, 4]]
    assert layout.exclusive[0].may_be_one.tolist() == [True, True, False, True, True]


def test_rare_flags_that_never_meet_are_not_taken_for_a_class():
    flags = np.zeros((N, 3))
    flags[[1, 2], 0] = flags[[5, 6], 1] = flags[[9], 2] = 1
    assert Layout.of(pd.DataFrame(flags, columns=list("abc"))).exclusive == ()


def test_other_numbers_and_gaps_are_no_flags():
    frame = one_hot()
    frame.iloc[3, 1] = np.nan
    assert sets(Layout.of(frame)) == [[2, 3]]
    assert Layout.of(one_hot() * 2).exclusive == ()
    assert Layout.of(one_hot(), kinds=dict.fromkeys(one_hot(), "number")).exclusive == ()


def test_a_group_brings_columns_together():
    frame = one_hot()
    frame = frame.assign(x=RNG.normal(size=N), y=(RNG.random(N) < 0.5) * 1.0)
    frame = frame[["c_0", "x", "c_1", "y", "c_2", "c_3"]]
    assert sets(Layout.of(frame)) == [[4, 5]]
    group = {"class": ["c_3", "c_0", "c_1", "c_2"]}
    assert sets(Layout.of(frame, groups=group)) == [[0, 2, 4, 5]]
    # Columns of a group may be something else, and need not exclude each other.
    group["class"] += ["x"]
    assert sets(Layout.of(frame, groups=group)) == [[0, 2, 4, 5]]
    symptoms = {"symptoms": ["y", "c_0"]}
    assert sets(Layout.of(frame, groups=symptoms)) == [[4, 5]]
    rare = pd.DataFrame({"a": np.eye(N)[0], "x": RNG.normal(size=N), "b": np.eye(N)[1]})
    assert sets(Layout.of(rare)) == []
    assert sets(Layout.of(rare, groups={"g": ["a", "b"]})) == [[0, 2]]
    with pytest.raises(ValueError, match="one of the features; got 'c_9'"):
        Layout.of(frame, groups={"g": ["c_9"]})


def test_tables_of_numbers_are_free():
    layout = Layout.of(RNG.normal(size=(50, 3)))
    assert layout.possible.is_free
    assert not Layout.of(np.arange(20.0)[:, None]).possible.is_free


def brute_force(row, known, frame, exclusive):
    """Return a row moved to possible values, by definition."""
    row = row.copy()
    for at, name in enumerate(frame):
        values = frame[name].dropna().to_numpy()
        if known[at] or np.isnan(row[at]) or any(at in each.columns for each in exclusive):
            continue
        if name == "codes":
            row[at] = values[np.argmin(np.abs(values - row[at]))]
        elif name == "integer":
            row[at] = np.clip(np.rint(row[at]), values.min(), values.max())
    for each in exclusive:
        inside = known[each.columns]
        fitting = [
            state for state in each.states if (state[inside] == row[each.columns][inside]).all()
        ]
        unknown = each.columns[~inside]
        if not fitting:
            row[unknown] = 0
            continue
        gaps = [((state - row[each.columns])[~inside] ** 2).sum() for state in fitting]
        row[unknown] = fitting[int(np.argmin(gaps))][~inside]
    return row


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1]), st.sampled_from([2, 3, 7]))
def test_draws_are_moved_by_definition(seed, drop, n_codes):
    rng = np.random.default_rng(seed)
    frame = pd.concat(
        [
            pd.DataFrame(
                {
                    "number": RNG.normal(size=N),
                    "integer": RNG.integers(-5, 20, N),
                    "codes": rng.choice(rng.normal(size=n_codes), N),
                }
            ),
            one_hot(drop=drop),
        ],
        axis=1,
    )
    layout = Layout.of(frame)
    assert len(layout.exclusive) == 1
    d = len(layout.names)
    known = rng.random(d) < 0.4
    draws = rng.normal(scale=3, size=(6, 5, d))
    draws[:, :, 3:] = rng.normal(0.3, 0.4, size=(6, 5, d - 3))
    rows = layout.encode(frame)[:6]
    draws[:, :, known] = rows[:, None, known]
    draws[0, 0, 2] = np.nan
    expected = [
        [brute_force(row, known, frame, layout.exclusive) for row in each] for each in draws
    ]
    alone = draws[2:3].copy()
    layout.possible.snap(draws, known)
    np.testing.assert_array_equal(draws, expected)
    layout.possible.snap(alone, known)
    np.testing.assert_array_equal(alone, draws[2:3])


def test_known_members_that_no_pattern_has_leave_the_others_zero():
    possible = Possible({}, [Exclusive(np.array([0, 1, 2]), np.eye(3))])
    draws = np.array(
        [[[1.0, 0.9, 0.9]], [[0.5, 0.9, 0.2]], [[np.nan, 0.9, 0.2]], [[0.0, 0.1, 0.2]]]
    )
    known = np.array([True, False, False])
    possible.snap(draws, known)
    np.testing.assert_array_equal(draws[:, 0, 1:], [[0, 0], [0, 0], [0, 0], [0, 1]])


def test_draws_in_single_precision_are_moved_too():
    frame = pd.DataFrame({"a": np.tile([0.1, 0.7, 5.0], 20), "b": np.arange(60) % 30})
    draws = np.array([[[0.3, 12.6]], [[4.0, -3.0]]], np.float32)
    Layout.of(frame).possible.snap(draws, np.zeros(2, bool))
    np.testing.assert_array_equal(draws[:, 0], np.array([[0.1, 13], [5, 0]], np.float32))


def test_times_are_drawn_among_whole_units_within_range():
    days = pd.DataFrame({"t": pd.to_datetime(["2020-01-01", "2020-01-03", "2020-01-09"])})
    layout = Layout.of(days)
    draws = np.array([[[2.4]], [[100.0]], [[-3.0]], [[np.nan]]])
    layout.possible.snap(draws, np.array([False]))
    found = layout.decode(draws[:, 0])["t"]
    assert found.tolist()[:3] == [*pd.to_datetime(["2020-01-03", "2020-01-09", "2020-01-01"])]
    assert found.isna()[3]


def test_only_exclusive_columns_are_left_to_move_where_each_has_a_value_of_training():
    frame = pd.concat([one_hot(), pd.DataFrame({"n": np.arange(N) % 7})], axis=1)
    possible = Layout.of(frame).possible
    assert set(possible.columns) == {4}
    draws = np.array([[[0.0, 1.0, 0.0, 0.0, 2.6]]])
    possible.together.snap(draws, np.array([True, False, False, False, False]))
    np.testing.assert_array_equal(draws, [[[0.0, 1.0, 0.0, 0.0, 2.6]]])
    draws[0, 0, 0] = 1.0
    possible.together.snap(draws, np.array([True, False, False, False, False]))
    np.testing.assert_array_equal(draws, [[[1.0, 0.0, 0.0, 0.0, 2.6]]])
    assert Layout.of(frame[["n"]]).possible.together.is_free
