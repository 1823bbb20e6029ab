import itertools
import tracemalloc

import numpy as np
import pytest

from dsage.games import Cached
from dsage.games.base import Along, Coalitions, count_pairs
from dsage.games.cached import _BYTES_AN_ENTRY, _FEWEST_ROWS, _cut
from given import all_coalitions
from tables import NAMES, PathTable, Table

ROWS = np.array([0, 3, 4])
EVERY = all_coalitions(4)


def test_a_game_with_a_memory_gives_what_the_game_gives():
    game = Table()
    cached = Cached(game)
    assert (cached.feature_names, cached.n_rows, cached.n_replicates) == (NAMES, 6, 2)
    generator = np.random.default_rng(0)
    for _ in range(20):
        known = EVERY[generator.integers(16, size=generator.integers(1, 9))]
        rows = np.sort(generator.permutation(6)[:3])
        epoch = int(generator.integers(3))
        np.testing.assert_array_equal(
            cached.risks(known, rows, epoch), Table().risks(known, rows, epoch)
        )


def test_a_coalition_is_evaluated_once_for_the_same_rows_and_epoch():
    game = Table()
    cached = Cached(game)
    for rows, epoch in itertools.product([ROWS, ROWS[:2], ROWS[::-1]], [0, 1]):
        game.asked.clear()
        cached.risks(EVERY[:5], rows, epoch)
        assert len(game.asked) == 5
        cached.risks(EVERY[2:7], rows, epoch)
        assert len(game.asked) == 7
        cached.risks(EVERY[:7], rows, epoch)
        assert len(game.asked) == 7


def test_a_coalition_that_occurs_twice_in_one_call_is_evaluated_once():
    game = Table()
    cached = Cached(game)
    known = EVERY[[3, 5, 3, 3, 5]]
    risks = cached.risks(known, ROWS)
    assert sorted(game.asked) == sorted({(2, 3), (1, 3)})
    np.testing.assert_array_equal(risks, Table().risks(known, ROWS))
    assert (cached.n_evaluated, cached.n_shared) == (2 * 3, 3 * 3)


def test_counts_are_of_pairs_of_a_coalition_and_a_row():
    cached = Cached(Table())
    cached.risks(EVERY, ROWS)
    assert (cached.n_evaluated, cached.n_shared) == (16 * 3, 0)
    cached.risks(EVERY[:4], ROWS)
    assert (cached.n_evaluated, cached.n_shared) == (16 * 3, 4 * 3)
    cached.risks(EVERY[:4], ROWS[:1])
    assert (cached.n_evaluated, cached.n_shared) == (16 * 3 + 4, 4 * 3)


def test_forgetting_an_epoch_forgets_that_epoch_only():
    game = Table()
    cached = Cached(game)
    for epoch in (0, 1):
        cached.risks(EVERY, ROWS, epoch)
    cached.forget(0)
    assert len(cached._kept) == 16
    game.asked.clear()
    cached.risks(EVERY, ROWS, 1)
    assert not game.asked
    np.testing.assert_array_equal(cached.risks(EVERY, ROWS, 0), Table().risks(EVERY, ROWS, 0))
    assert len(game.asked) == 16


@pytest.mark.parametrize("n_kept", [0, 1, 5])
def test_too_little_memory_changes_nothing_but_the_work(n_kept):
    each = len(ROWS) * 2 * 8 + _BYTES_AN_ENTRY
    game = Table()
    cached = Cached(game, max_bytes=n_kept * each + 1)
    generator = np.random.default_rng(1)
    for _ in range(30):
        known = EVERY[generator.integers(16, size=7)]
        np.testing.assert_array_equal(cached.risks(known, ROWS), Table().risks(known, ROWS))
        assert cached._bytes == each * len(cached._kept)
        assert cached._bytes <= n_kept * each
    assert cached.n_evaluated == 3 * len(game.asked)
    assert len(game.asked) > 16


def test_the_least_recently_used_is_forgotten_first():
    game = Table()
    cached = Cached(game, max_bytes=2 * (len(ROWS) * 2 * 8 + _BYTES_AN_ENTRY))
    for at in (0, 1, 0, 2):
        cached.risks(EVERY[[at]], ROWS)
    game.asked.clear()
    cached.risks(EVERY[[0]], ROWS)
    assert not game.asked
    cached.risks(EVERY[[1]], ROWS)
    assert len(game.asked) == 1


def test_memory_stays_within_the_budget_where_entries_are_small():
    names = [f"v{number}" for number in range(12)]
    known = all_coalitions(12)
    row = np.array([1])
    game, budget = Table(names), 2**19
    cached = Cached(game, max_bytes=budget)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for first in range(0, len(known), 64):
        cached.risks(known[first : first + 64], row)
        game.asked.clear()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    # In addition, a number for each coalition that was ever requested.
    assert taken < 1.2 * budget + 100 * len(known)


def test_returned_risks_may_be_changed():
    cached = Cached(Table())
    cached.risks(EVERY, ROWS)[:] = 0.0
    cached.risks(EVERY, ROWS)[:] = 0.0
    np.testing.assert_array_equal(cached.risks(EVERY, ROWS), Table().risks(EVERY, ROWS))


def test_more_than_eight_features_are_told_apart():
    names = [f"v{number}" for number in range(9)]
    cached = Cached(Table(names))
    known = np.eye(9, dtype=bool)
    np.testing.assert_array_equal(cached.risks(known, ROWS), Table(names).risks(known, ROWS))


def test_paths_are_passed_on_and_counted_where_the_game_has_them():
    assert not Cached(Table()).has_paths
    game = PathTable()
    cached = Cached(game)
    assert cached.has_paths
    orders, needed = np.array([[1, 0, 3, 2]]), np.array([[True, True, False, True, True]])
    risks = cached.path_risks(orders, ROWS, 2, needed)
    np.testing.assert_array_equal(risks, PathTable().path_risks(orders, ROWS, 2, needed))
    assert cached.n_evaluated == 4 * 3


def test_zero_bytes_of_memory_are_allowed_and_negative_ones_are_refused():
    assert Cached(Table(), max_bytes=0).risks(EVERY, ROWS).shape == (16, 3, 2)
    with pytest.raises(ValueError, match="max_bytes must be"):
        Cached(Table(), max_bytes=-1)


# What would be evaluated with unlimited memory: the cost that steers effort between terms


@pytest.mark.parametrize("max_bytes", [0, 1000, 2**20])
def test_distinct_pairs_are_counted_once_however_small_the_memory(max_bytes):
    cached = Cached(Table(), max_bytes=max_bytes)
    for _ in range(3):
        cached.risks(EVERY[:5], ROWS)
    assert cached.n_distinct == 5 * 3
    cached.risks(EVERY[3:7], ROWS)
    assert cached.n_distinct == 7 * 3
    assert cached.n_evaluated == 7 * 3 if max_bytes == 2**20 else cached.n_evaluated > 7 * 3


def test_pairs_of_other_rows_and_epochs_are_distinct():
    cached = Cached(Table(), max_bytes=0)
    for rows, epoch in [(ROWS, 0), (ROWS, 1), (ROWS[:2], 0), (ROWS, 0), (ROWS[:2], 0)]:
        cached.risks(EVERY[:4], rows, epoch)
    assert cached.n_distinct == 4 * (3 + 3 + 2)


def test_prefixes_are_distinct_each_time_and_only_where_needed():
    cached = Cached(PathTable())
    needed = np.array([[True, False, False, True, True]])
    for _ in range(2):
        cached.path_risks(np.array([[1, 0, 3, 2]]), ROWS, 0, needed)
    assert cached.n_distinct == 2 * 3 * 3


def test_a_restored_memory_goes_on_counting_distinct_pairs():
    cached, again = Cached(Table(), max_bytes=0), Cached(Table(), max_bytes=0)
    cached.risks(EVERY[:5], ROWS)
    again.restore(cached.state())
    again.risks(EVERY[:8], ROWS)
    assert again.n_distinct == 8 * 3


def test_a_forgotten_epoch_leaves_the_count_and_the_other_epochs():
    cached = Cached(Table(), max_bytes=0)
    for epoch in (0, 1):
        cached.risks(EVERY[:5], ROWS, epoch)
    cached.forget(0)
    assert cached.n_distinct == 2 * 5 * 3
    cached.risks(EVERY[:5], ROWS, 1)
    assert cached.n_distinct == 2 * 5 * 3


@pytest.mark.parametrize("n_pairs", [1, 4, 5, 12, 40, 10**6])
@pytest.mark.parametrize("is_along", [False, True])
def test_requests_are_cut_into_pieces_of_a_given_size_that_cover_them(n_pairs, is_along):
    orders = np.array(list(itertools.permutations(range(3))))
    rows = np.arange(7)
    needed = np.ones((6, 4), bool)
    known = np.arange(18).reshape(6, 3) % 2 == 0
    request = Along(orders, rows, 0, needed) if is_along else Coalitions(known, rows, 0)
    # An ordering of three features has four prefixes, and is worth a few rows.
    each, fewest = (4, _FEWEST_ROWS) if is_along else (1, 1)
    seen = np.zeros((6, 4, 7) if is_along else (6, 7), int)
    for place, piece in _cut(request, n_pairs):
        seen[place] += 1
        assert seen[place].size == count_pairs(piece)
        assert count_pairs(piece) <= max(n_pairs, fewest * each)
    assert (seen == 1).all()
    # No smaller than they must be: rows are cut only where one ordering is too much.
    n_pieces = len(_cut(request, n_pairs))
    if n_pairs >= 7 * each:
        assert n_pieces == -(-6 // (n_pairs // (7 * each)))
    else:
        assert n_pieces == 6 * -(-7 // max(fewest, n_pairs // each))


class Plain:
    """A memory of the last risks, one key after the other."""

    def __init__(self, max_bytes):
        self.max_bytes, self.kept, self.seen = max_bytes, {}, set()
        self.counts = [0, 0, 0]

    def answer(self, requests):
        """Remember the answers; return the coalitions that are new, request by request."""
        keys = [
            [(tuple(known.tolist()), tuple(rows.tolist()), epoch) for known in each]
            for each, rows, epoch in requests
        ]
        new = []
        for each in keys:
            new.append([key for at, key in enumerate(each) if self.is_new(key, [*new, each[:at]])])
        for key in (key for each in keys for key in each):
            if key in self.kept:
                self.kept[key] = self.kept.pop(key)
        fresh = [key for each in new for key in each]
        n_asked = sum(len(key[1]) for each in keys for key in each)
        n_new = sum(len(key[1]) for key in fresh)
        unseen = [key for key in fresh if key not in self.seen]
        self.seen |= set(unseen)
        more = n_new, n_asked - n_new, sum(len(key[1]) for key in unseen)
        self.counts = [count + each for count, each in zip(self.counts, more, strict=True)]
        for key in fresh:
            # An entry takes 320 bytes, and its risks: two of each row.
            self.kept[key] = 320 + 16 * len(key[1])
        while sum(self.kept.values()) > self.max_bytes:
            del self.kept[next(iter(self.kept))]
        return [[np.flatnonzero(key[0]).tolist() for key in each] for each in new]

    def is_new(self, key, earlier):
        return key not in self.kept and not any(key in each for each in earlier)

    def forget(self, epoch):
        self.kept = {key: size for key, size in self.kept.items() if key[2] != epoch}
        self.seen = {key for key in self.seen if key[2] != epoch}


@pytest.mark.parametrize("max_bytes", [0, 383, 384, 2000, 10**6])
def test_a_memory_keeps_the_risks_that_were_used_last(max_bytes):
    rng, game, plain = np.random.default_rng(0), Table(), Plain(max_bytes)
    cached = Cached(game, max_bytes=max_bytes)
    row_sets = [np.array([0, 2, 5, 1]), np.array([3]), np.arange(6)]
    for number in range(120):
        if number % 17 == 16:
            epoch = int(rng.integers(3))
            cached.forget(epoch)
            plain.forget(epoch)
        requests = [
            Coalitions(rng.random((int(rng.integers(4)), 4)) < 0.5, row_sets[rng.integers(3)],
                       int(rng.integers(3)))
            for _ in range(rng.integers(1, 4))
        ]  # fmt: skip
        game.asked.clear()
        answers = cached.answers(requests)
        expected = plain.answer(requests)
        assert list(map(list, game.asked)) == [each for part in expected for each in part]
        for request, answer in zip(requests, answers, strict=True):
            assert answer.shape == (len(request.known), len(request.rows), 2)
            for known, risks in zip(request.known, answer, strict=True):
                truth = game.risk(np.flatnonzero(known).tolist(), request.rows, request.epoch)
                np.testing.assert_array_equal(risks, truth)
        assert [cached.n_evaluated, cached.n_shared, cached.n_distinct] == plain.counts
        assert len(cached.state()["sizes"]) == len(plain.kept)
        if number == 60:
            # A copy goes on with the same memory.
            copy = Cached(game, max_bytes=max_bytes)
            copy.restore(cached.state())
            cached = copy
