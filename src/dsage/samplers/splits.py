"""Rows to fit candidates to, rows to score them on, and the coalitions of each block of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsage._random import Streams
from dsage.data.frames import take_rows
from dsage.data.groups import Groups
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.coalitions import prefix_coalitions

# Below this number of rows each is held out once, in folds.
_ENOUGH_ROWS = 1200
# Rows and entries that candidates are fitted to, and rows that they are scored on, at most.
_FIT_ROWS, _FIT_ENTRIES, _FEWEST_FIT_ROWS, SCORED_ROWS = 3000, 60_000, 500, 512
_BLOCK = 64
# How often each row is scored, with other coalitions each time, if nothing is decided before.
_SWEEPS = 4
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
class Block:
    """Some rows of a part, and the coalitions on which all candidates are scored there."""

    part: int
    rows: Ints  # positions in the part
    at: Ints  # numbers of the rows, the same in every sweep
    known: Mask
    weights: Floats
    first_pair: int  # each pair of a coalition and a row has noise of its own


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
) -> list[Block]:
    """Return the blocks in the order in which they are scored: all rows once, then again."""
    blocks: list[Block] = []
    n_pairs = 0
    for sweep in range(_SWEEPS):
        for number, rows in _pieces(parts):
            generator = streams("choose-coalitions", sweep, len(blocks))
            known, weights = prefix_coalitions(len(players.names), n_coalitions, generator)
            at = parts[number].at[rows]
            blocks.append(Block(number, rows, at, players.expanded(known), weights, n_pairs))
            n_pairs += len(known) * len(rows)
    return blocks


def _pieces(parts: Sequence[Part]) -> list[tuple[int, Ints]]:
    """Return pieces of the rows of all parts, the parts in turn."""
    cut = [np.array_split(np.arange(len(part.at)), -(-len(part.at) // _BLOCK)) for part in parts]
    longest = max(map(len, cut))
    return [
        (number, pieces[turn])
        for turn in range(longest)
        for number, pieces in enumerate(cut)
        if turn < len(pieces)
    ]
