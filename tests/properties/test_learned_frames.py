"""A graph is learned of any data frame, or the data is refused by the name of its column."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dsage
from dsage._check import record_warnings
from dsage.data.frames import take_rows
from dsage.data.table import Table
from odd_frames import frames

quick = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@pytest.fixture(autouse=True)
def _no_warnings():
    with record_warnings(show=False):
        yield


def assert_refused(error, names):
    """An error of the package that names one of the columns and says what to do."""
    problem = getattr(error, "problem", None)
    assert problem is not None, error
    assert problem.advice
    assert any(name in str(error) for name in names), error


@quick
@given(frames(), st.integers(0, 2**16))
def test_a_graph_is_learned_of_any_frame_or_it_is_refused(made, seed):
    frame, bad, n_rows = made
    rows = np.random.default_rng(seed).integers(n_rows, size=20 if n_rows else 0)
    repeated = take_rows(frame, rows)
    try:
        graph = dsage.learn_graph(repeated)
    except (TypeError, ValueError) as error:
        assert_refused(error, [*bad, *(["row"] if not n_rows else [])])
        return
    names = Table(repeated).names
    assert graph.names[: len(names)] == names
    assert set(graph.names[len(names) :]) == set(graph.indicators)
    assert set().union(*graph.indicators.values()) <= set(names)


@quick
@given(frames(may_be_bad=False))
def test_a_completed_table_has_no_missing_values(made):
    frame, _, n_rows = made
    table = Table(frame).completed()
    chunks = list(table.chunks())
    assert sum(map(len, chunks)) == n_rows
    assert all(np.isfinite(chunk).all() for chunk in chunks)
    for name in table.discrete:
        codes, categories = table.codes(name)
        assert len(codes) == n_rows
        assert set(codes.tolist()) <= set(range(len(categories)))
