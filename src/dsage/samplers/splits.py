"""Rows to fit candidates to, rows to score them on, and the coalitions of each block of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsage._random import Streams
from dsage.data.frames import take_rows
from dsage.data.groups import Groups
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.coalitions import has_few, prefix_coalitions

# Below this number of rows each is held out once, in folds.
_ENOUGH_ROWS = 400
# Rows and entries that candidates are fitted to, and rows that they are scored on, at most.
_FIT_ROWS, _FIT_ENTRIES, _FEWEST_FIT_ROWS, SCORED_ROWS = 3000, 60_000, 500, 512
# Number of rows that are scored together, and of rows that share coalitions: few, so that there
# are many coalitions.
BLOCK_ROWS, _PIECE = 64, 16
# How often each row is scored, with other coalitions each time, if nothing is decided before: more
# would hardly lower the errors of the rows. With few coalitions in all, each time adds less.
_SWEEPS, _SWEEPS_OF_FEW = 2, 4
_FEWEST = 5


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to fit to, rows to score on, and the numbers of the latter."""

    train: Any
    test: Any
    at: Ints

    @property
    def n_train(self) -> int:
        """Number of rows to fit to."""
        return len(self.train)


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows that share coalitions, by their positions in a part, and the coalitions.

    `weights` of the coalitions have the sum 1; they are exact if these are all that there are.
    """

    rows: Ints
    known: Mask
    weights: Floats
    is_exact: bool
    first_pair: int  # each pair of a coalition and a row has its own noise

    def pairs(self, number: int) -> Ints:
        """Return the numbers of the pairs of a coalition, given by its number, and each row."""
        return self.first_pair + number * len(self.rows) + np.arange(len(self.rows))


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a part, on which all candidates are scored; `at` are their numbers."""

    part: int
    at: Ints
    pieces: tuple[Piece, ...]

    @property
    def n_coalitions(self) -> int:
        """Number of coalitions, over all pieces."""
        return sum(len(piece.known) for piece in self.pieces)

    @property
    def n_pairs(self) -> int:
        """Number of pairs of a coalition and a row."""
        return sum(len(piece.known) * len(piece.rows) for piece in self.pieces)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.pieces[0].known.shape[1])


def most_fit_rows(n_features: int) -> int:
    """Return the number of rows that candidates are fitted to, at most."""
    return min(_FIT_ROWS, max(_FEWEST_FIT_ROWS, _FIT_ENTRIES // max(n_features, 1)))


def split_rows(
    X: Any,  # noqa: ANN401
    matrix: Floats,
    n_categories: Ints,
    *,
    test_share: float,
    max_rows: int,
    streams: Streams,
) -> tuple[Part, ...]:
    """Return the parts on which candidates are compared; none if there are too few rows.

    A table of many rows is split once. In a small one each row is held out once: the rows are
    divided into folds, and each fold is scored by fits to the others. Rows with a category that no
    training row has are not held out.
    """
    order = streams("choose-rows").permutation(len(matrix))[:max_rows]
    n_test = round(test_share * len(order))
    if not n_test or len(order) - n_test < _FEWEST:
        return ()
    n_folds = 1 if len(order) >= _ENOUGH_ROWS else max(2, round(1 / test_share))
    folds = [order[:n_test]] if n_folds == 1 else np.array_split(order, n_folds)
    n_fit = most_fit_rows(matrix.shape[1])
    n_scored = SCORED_ROWS // n_folds
    parts = []
    for fold in folds:
        rest = order[~np.isin(order, fold)][:n_fit]
        unseen = np.zeros(len(fold), dtype=np.bool_)
        for column in np.flatnonzero(n_categories):
            unseen |= ~np.isin(matrix[fold, column], matrix[rest, column])
        held, rest = np.sort(fold[~unseen][:n_scored]), np.concatenate([fold[unseen], rest])
        if len(held):
            parts.append(Part(take_rows(X, np.sort(rest)), take_rows(X, held), held))
    n_held = sum(len(part.at) for part in parts)
    return tuple(parts) if n_held >= _FEWEST else ()


def make_blocks(
    parts: Sequence[Part], players: Groups, n_coalitions: int, streams: Streams
) -> Iterator[Block]:
    """Yield the blocks in the order in which they are scored: all rows once, then again.

    Each row is scored on `n_coalitions` coalitions of players, as random orderings give them.
    """
    n_players, n_blocks, n_pairs = len(players.names), 0, 0
    is_exact = has_few(n_players, n_coalitions)
    portions = _in_turn(parts)
    for sweep in range(_SWEEPS_OF_FEW if is_exact else _SWEEPS):
        for number, rows in portions:
            pieces: list[Piece] = []
            for some in np.array_split(rows, -(-len(rows) // _PIECE)):
                generator = streams("choose-coalitions", sweep, n_blocks, len(pieces))
                known, weights = prefix_coalitions(n_players, n_coalitions, generator)
                pieces.append(Piece(some, players.expanded(known), weights, is_exact, n_pairs))
                n_pairs += len(known) * len(some)
            n_blocks += 1
            yield Block(number, parts[number].at[rows], tuple(pieces))


def _in_turn(parts: Sequence[Part]) -> list[tuple[int, Ints]]:
    """Return the rows of all parts in portions, the parts in turn."""
    cut = [
        np.array_split(np.arange(len(part.at)), -(-len(part.at) // BLOCK_ROWS)) for part in parts
    ]
    return [
        (number, portions[turn])
        for turn in range(max(map(len, cut)))
        for number, portions in enumerate(cut)
        if turn < len(portions)
    ]
