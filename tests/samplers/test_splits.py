"""Which rows candidates are fitted to and scored on, and on which coalitions."""

import numpy as np
import pandas as pd
import pytest

from dsage._random import Streams
from dsage.data.groups import Groups
from dsage.samplers import SAMPLERS, FunctionSampler, splits
from dsage.samplers.coalitions import has_few, prefix_coalitions, random_coalitions
from dsage.samplers.costs import draw_seconds, fit_seconds, predict_seconds
from dsage.samplers.marginal import Marginal
from dsage.samplers.splits import Part, make_blocks, most_fit_rows, split_rows


def parts_of(n_rows, *, n_features=2, codes=None, test_share=0.25, max_rows=4000):
    X = np.random.default_rng(0).normal(size=(n_rows, n_features))
    n_categories = np.zeros(n_features, int)
    if codes is not None:
        X[:, 1], n_categories[1] = codes, int(np.max(codes)) + 1
    frame = pd.DataFrame(X)
    streams = Streams(0)
    found = split_rows(
        frame, X, n_categories, test_share=test_share, max_rows=max_rows, streams=streams
    )
    for part in found:
        # Rows of the table, the held-out ones by their numbers and in their order.
        np.testing.assert_array_equal(part.test.to_numpy(), X[part.at])
        assert (np.diff(part.at) > 0).all()
        assert (np.diff(part.train.index) > 0).all()
        assert not set(part.train.index) & set(part.at)
        np.testing.assert_array_equal(part.train.to_numpy(), X[part.train.index])
    return found


@pytest.mark.parametrize(
    ("n_features", "expected"),
    [(0, 3000), (1, 3000), (20, 3000), (24, 2500), (120, 500), (999, 500)],
)
def test_wide_tables_are_fitted_to_fewer_rows(n_features, expected):
    assert most_fit_rows(n_features) == expected


@pytest.mark.parametrize("n_rows", [400, 1000])
def test_a_table_of_many_rows_is_split_once(n_rows):
    (part,) = parts_of(n_rows)
    assert (len(part.at), part.n_train) == (n_rows // 4, n_rows - n_rows // 4)


@pytest.mark.parametrize(("test_share", "n_folds"), [(0.25, 4), (0.2, 5), (0.5, 2), (0.8, 2)])
def test_each_row_of_a_small_table_is_held_out_once(test_share, n_folds):
    parts = parts_of(399, test_share=test_share)
    assert len(parts) == n_folds
    assert sorted(np.concatenate([part.at for part in parts]).tolist()) == list(range(399))
    assert all(part.n_train + len(part.at) == 399 for part in parts)


def test_rows_that_are_fitted_to_and_scored_on_are_bounded():
    (part,) = parts_of(4000, max_rows=4000)
    assert (part.n_train, len(part.at)) == (3000, 512)
    (part,) = parts_of(4500, n_features=40, max_rows=4000)
    assert (part.n_train, len(part.at)) == (1500, 512)
    (part,) = parts_of(900, max_rows=500)
    assert (part.n_train, len(part.at)) == (375, 125)
    few = parts_of(399, test_share=0.5)
    assert [len(part.at) for part in few] == [200, 199]


@pytest.mark.parametrize(
    ("n_rows", "test_share", "n_parts"),
    [(6, 0.25, 0), (7, 0.25, 4), (1, 0.25, 0), (20, 0.02, 0), (9, 0.6, 0), (10, 0.45, 2)],
)
def test_at_least_five_rows_are_left_to_fit_to(n_rows, test_share, n_parts):
    assert len(parts_of(n_rows, test_share=test_share)) == n_parts


def test_rows_with_categories_that_no_other_row_has_are_not_held_out():
    codes = np.arange(30) % 3
    codes[[4, 17]] = [3, 4]
    parts = parts_of(30, codes=codes)
    held = np.concatenate([part.at for part in parts])
    assert sorted(held.tolist()) == sorted(set(range(30)) - {4, 17})
    for part in parts:
        assert len(part.at) + part.n_train == 30
    # With fewer than five rows to score on, there are no parts.
    assert parts_of(30, codes=np.arange(30)) == ()
    codes = np.arange(30)
    codes[:5] = codes[5:10]
    assert len(np.concatenate([part.at for part in parts_of(30, codes=codes)])) >= 5


def part_of(n_rows, first=0):
    return Part(None, None, first + np.arange(n_rows))


@pytest.mark.parametrize(("n_players", "n_sweeps"), [(3, 4), (4, 2)])
def test_all_rows_are_scored_before_any_is_scored_again(n_players, n_sweeps):
    players = Groups({}, [f"v{at}" for at in range(n_players)])
    parts = [part_of(65), part_of(64, 100), part_of(17, 200)]
    blocks = list(make_blocks(parts, players, 7, Streams(0)))
    # Blocks of up to 64 rows of about equal size, parts in turn.
    once = [(0, 33), (1, 64), (2, 17), (0, 32)]
    assert [(each.part, len(each.at)) for each in blocks] == once * n_sweeps
    pairs = []
    for number, block in enumerate(blocks):
        own = parts[block.part].at
        assert [len(each.rows) for each in block.pieces] == {
            33: [11, 11, 11], 64: [16, 16, 16, 16], 17: [9, 8], 32: [16, 16],
        }[len(block.at)]  # fmt: skip
        rows = np.concatenate([piece.rows for piece in block.pieces])
        np.testing.assert_array_equal(own[rows], block.at)
        assert (np.diff(rows) == 1).all()
        assert number % 4 != 3 or rows[0] == 33
        for piece in block.pieces:
            assert piece.is_exact == (n_players == 3)
            assert piece.weights.sum() == pytest.approx(1.0)
            assert piece.known.shape[1] == n_players
            for at in range(len(piece.known)):
                pairs += piece.pairs(at).tolist()
        assert block.n_features == n_players
        assert block.n_coalitions == sum(len(piece.known) for piece in block.pieces)
        assert block.n_pairs == sum(
            piece.known.shape[0] * len(piece.rows) for piece in block.pieces
        )
    # Every pair of a coalition and a row has its own number.
    assert pairs == list(range(len(pairs)))


def test_coalitions_differ_between_pieces_and_sweeps_and_are_of_groups():
    players = Groups({"ab": ["a", "b"]}, list("abcdefg"))
    blocks = list(make_blocks([part_of(40)], players, 3, Streams(0)))
    assert len(blocks) == 2
    known = [piece.known for block in blocks for piece in block.pieces]
    assert all((each[:, 0] == each[:, 1]).all() for each in known)
    assert len({each.tobytes() for each in known}) == len(known) == 6


@pytest.mark.parametrize(
    ("n_players", "n_coalitions", "expected"),
    [(3, 7, True), (3, 6, False), (1, 1, True), (63, 2**63 - 1, True), (64, 2**64, False)],
)
def test_there_are_few_coalitions_if_all_but_the_full_one_are_asked_for(
    n_players, n_coalitions, expected
):
    assert has_few(n_players, n_coalitions) == expected


def test_repeated_coalitions_count_as_often_as_they_are_drawn():
    known, weights = prefix_coalitions(4, 14, np.random.default_rng(0))
    assert len(np.unique(known, axis=0)) == len(known) < 14
    counts = weights * 14
    np.testing.assert_allclose(counts, np.rint(counts))
    assert counts.sum() == pytest.approx(14)
    assert counts.max() >= 2
    sizes = np.sort(np.repeat(known.sum(axis=1), np.rint(counts).astype(int)))
    # One size in each fourteenth of their range.
    parts = np.arange(14)
    assert (4 * parts // 14 <= sizes).all()
    assert (sizes <= (4 * (parts + 1) - 1) // 14).all()


@pytest.mark.parametrize(
    ("n_features", "n_coalitions", "sizes"),
    [
        (3, 100, [0, 1, 2, 1, 2, 1, 2]),
        (2, 2, [0, 1]),
        (1, 5, [0]),
        (4, 6, [0, 1, 2, 3, 1, 2]),
        (9, 3, [0, 4, 8]),
    ],
)
def test_random_coalitions_have_all_sizes_in_turn_and_differ(n_features, n_coalitions, sizes):
    known = random_coalitions(n_features, n_coalitions, Streams(0))
    assert known.sum(axis=1).tolist() == sizes
    assert len(np.unique(known, axis=0)) == len(known)
    assert known.shape[1] == n_features


def test_costs_are_counts_times_the_traits_of_a_sampler():
    mixture, other = SAMPLERS["mixture"](), FunctionSampler(lambda *_: None)
    # In microseconds: 40 a call and feature, 150 a call, 0.05 a row and feature, and as much for
    # its score.
    expected = 1e-6 * (7 * (150 + 40 * 3) + 1000 * 3 * (0.05 + 0.05))
    assert draw_seconds(mixture, 7, 1000, 3) == pytest.approx(expected)
    expected = 1e-6 * (7 * (150 + 20 * 3) + 1000 * 3 * (1.0 + 0.05))
    assert draw_seconds(other, 7, 1000, 3) == pytest.approx(expected)
    assert predict_seconds(2_000_000) == pytest.approx(10.0)
    assert fit_seconds(mixture, 1000, 3) == pytest.approx(0.3 + 1e-6 * 50 * 1000 * 3)
    assert fit_seconds(SAMPLERS["sequential"](), 10**6, 2) == pytest.approx(2.0)
    assert fit_seconds(other, 1000, 3) is None

    class Own(Marginal):
        """A subclass has no traits: it may do anything."""

    assert fit_seconds(Marginal(), 10, 1) is not None
    assert fit_seconds(Own(), 10, 1) is None


def test_rows_are_scored_on_folds_of_512_in_all(monkeypatch):
    monkeypatch.setattr(splits, "SCORED_ROWS", 40)
    assert [len(part.at) for part in parts_of(399)] == [10] * 4
