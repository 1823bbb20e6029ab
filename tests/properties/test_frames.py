"""Any data frame comes back exactly as it was, or is refused by the name of its column."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal as assert_polars_equal

from dsage._check import record_warnings
from dsage.data import describe
from dsage.data.frames import take_rows
from dsage.data.inputs import check_inputs
from dsage.data.layout import Layout
from odd_frames import frames

quick = settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@pytest.fixture(autouse=True)
def _no_warnings():
    with record_warnings(show=False):
        yield


def assert_same(found, wanted):
    """Compare values, dtypes and missing values."""
    assert type(found) is type(wanted)
    if isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    elif isinstance(wanted, pd.DataFrame):
        wanted = wanted.reset_index(drop=True)
        pd.testing.assert_frame_equal(found, wanted, check_exact=True)
        for name in wanted:
            absent = wanted[name].isna()
            for one, other in zip(found[name][absent], wanted[name][absent], strict=True):
                assert type(one) is type(other)
    elif isinstance(wanted, pl.DataFrame):
        assert_polars_equal(found, wanted, check_exact=True)
    else:
        assert found.schema == wanted.schema
        assert repr(found.to_pylist()) == repr(wanted.to_pylist())


def assert_refused(error, names):
    """An error of the package that names one of the columns and says what to do."""
    problem = getattr(error, "problem", None)
    assert problem is not None, error
    assert problem.advice
    assert any(name in str(error) for name in names), error


@quick
@given(frames())
def test_a_frame_comes_back_or_is_refused(made):
    frame, bad, n_rows = made
    try:
        layout = Layout.of(frame)
        matrix = layout.encode(frame)
    except (TypeError, ValueError) as error:
        assert_refused(error, bad)
        return
    assert not bad
    assert matrix.shape == (n_rows, len(layout.names))
    assert not np.isinf(matrix).any()
    assert_same(layout.decode(matrix), frame)
    assert layout.extend(frame) is layout
    assert len(describe(frame)) == len(layout.names)


@quick
@given(frames(may_be_bad=False), st.data())
def test_evaluation_rows_come_back_whatever_training_has_seen(made, data):
    frame, _, n_rows = made
    cut = data.draw(st.integers(0, n_rows))
    train, test = (take_rows(frame, part) for part in np.split(np.arange(n_rows), [cut]))
    layout = Layout.of(train)
    longer = layout.extend(test)
    np.testing.assert_array_equal(longer.encode(train), layout.encode(train))
    matrix = longer.encode(test)
    assert len(matrix) == n_rows - cut
    absent = longer.is_missing(matrix)
    known = longer.is_missing(longer.encode(longer.decode(matrix)))
    np.testing.assert_array_equal(known, absent)
    np.testing.assert_array_equal(longer.encode(longer.decode(matrix)), matrix)


@quick
@given(frames(), st.data())
def test_inputs_are_checked_or_refused(made, data):
    frame, bad, n_rows = made
    cut = data.draw(st.integers(0, n_rows))
    train, test = (take_rows(frame, part) for part in np.split(np.arange(n_rows), [cut]))
    try:
        inputs = check_inputs(train, np.arange(cut), test, np.arange(n_rows - cut))
    except (TypeError, ValueError) as error:
        names = [*bad, *(["y must be of shape"] if cut in (0, n_rows) else [])]
        assert_refused(error, names)
        return
    assert (len(inputs.y_train), len(inputs.y_test)) == (cut, n_rows - cut)
    assert len(inputs.layout.encode(inputs.X_test)) == n_rows - cut
    assert set(inputs.share_missing()) == set(inputs.names)
    rows = inputs.first_rows(n_rows)
    assert len(rows) == n_rows - cut


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "a"], "distinct names.*'a'"),
        (["a", ""], "non-empty strings; got ''. Choose a name"),
        (["a", 0], r"strings; got 0\. Convert it: str\(0\)"),
        (["a", None], "strings; got"),
        ([("a", "b"), ("a", "c")], r"strings; got \('a', 'b'\)"),
    ],
)
@pytest.mark.parametrize("call", [Layout.of, describe])
def test_names_that_cannot_be_are_refused(names, words, call):
    with pytest.raises((TypeError, ValueError), match=words) as caught:
        call(pd.DataFrame([[1.0, 2.0]], columns=names))
    assert caught.value.problem.advice


def test_names_that_occur_twice_are_refused_in_pyarrow_too():
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(ValueError, match="distinct"):
        Layout.of(twice)
