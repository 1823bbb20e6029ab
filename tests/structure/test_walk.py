import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsage.structure.searches.walk import stops


@given(st.integers(0, 10_000))
def test_stops_cover_the_legal_places_from_near_to_far(seed):
    rng = np.random.default_rng(seed)
    n_nodes = int(rng.integers(1, 9))
    order = rng.permutation(n_nodes).tolist()
    rank = np.argsort(order).tolist()
    here = int(rng.integers(n_nodes))
    dependents = [node for node in order if rank[node] != here and rng.random() < 0.5]
    low, high = int(rng.integers(here + 1)), int(rng.integers(here + 1, n_nodes + 1))
    behind, before = stops(here, dependents, rank, (low, high))
    places = [place for stop in behind for place in range(stop.first, stop.last + 1)]
    assert places == list(range(here + 1, high + 1))
    for stop, following in itertools.pairwise(behind):
        assert rank[following.passed] == stop.last
    for at, stop in enumerate(before):
        assert rank[stop.passed] == stop.last < here
        assert stop.first == (rank[before[at + 1].passed] + 1 if before[at + 1 :] else low)
    passed = {stop.passed for stop in (*behind, *before)} - {None}
    assert passed == {node for node in dependents if low <= rank[node] < high}


def test_nothing_is_passed_first_behind_and_something_before():
    behind, before = stops(1, [0, 2], [0, 1, 2], (0, 3))
    assert [tuple(each) for each in behind] == [(None, 2, 2), (2, 3, 3)]
    assert [tuple(each) for each in before] == [(0, 0, 0)]
