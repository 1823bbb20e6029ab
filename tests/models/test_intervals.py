"""Intervals between the edges of columns: those that a search of the edges finds."""

import numpy as np
import pytest

from dsage.models.intervals import Intervals

RNG = np.random.default_rng(0)
EDGES = {
    "none": np.empty(0),
    "one": np.array([2.0]),
    "even": np.arange(-5.0, 6.0),
    "normal": np.sort(RNG.normal(size=40)),
    "many": np.sort(RNG.normal(size=300)),
    "skewed": np.sort(RNG.lognormal(sigma=3.0, size=60)),
    "close": np.array([0.0, 1e-9, 2e-9, 3e-9, 4e-9, 1.0]),
    "neighbors": np.array([1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 2.0) + 2**-51]),
    "huge": np.array([-1.7e308, 0.0, 1.7e308]),
    "tiny": np.array([0.0, 5e-324, 1e-323]),
}


def points_around(edges):
    ends = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    low, high = (edges[0], edges[-1]) if len(edges) else (0.0, 1.0)
    inside = low * (1.0 - RNG.random(500)) + high * RNG.random(500)
    return np.concatenate([ends, inside, [-np.inf, np.inf, -1e300, 1e300, 0.0, -0.0]])


@pytest.mark.parametrize("name", EDGES)
def test_intervals_are_those_that_a_search_finds(name):
    edges = EDGES[name]
    points = points_around(edges)
    found = Intervals([edges]).find(points[None], np.array([0]))[0]
    assert np.array_equal(found, np.searchsorted(edges, points))


def test_columns_are_numbered_one_after_the_other_and_can_be_chosen():
    edges = list(EDGES.values())
    intervals = Intervals(edges)
    columns = np.array([3, 0, 6, 5, 4])
    x = RNG.normal(size=(5, 700))
    found = intervals.find(x, columns)
    for column, points, own in zip(columns.tolist(), x, found, strict=True):
        wanted = np.searchsorted(edges[column], points)
        assert np.array_equal(own - intervals.starts[column], wanted)
    sizes = np.array([len(each) + 2 for each in edges])
    assert np.array_equal(np.diff(intervals.starts), sizes[:-1])


def test_missing_values_are_in_the_last_interval():
    intervals = Intervals([EDGES["close"], EDGES["one"]])
    x = np.array([[np.nan, 0.5, np.nan], [np.nan, np.nan, 3.0]])
    assert intervals.find(x, np.array([0, 1])).tolist() == [[7, 5, 7], [10, 10, 9]]


def test_columns_with_close_edges_are_searched():
    intervals = Intervals([EDGES["close"], EDGES["even"]])
    assert intervals._is_searched.tolist() == [True, False]
    assert intervals._n_steps.tolist() == [0, 1]
