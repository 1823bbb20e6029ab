"""Surpluses along orderings: at prefixes, at boundaries, or with the separated ones skipped."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from dsage.games.base import (
    Along,
    Coalitions,
    Floats,
    Game,
    Mask,
    Orders,
    Paths,
    Request,
    Rows,
    ask,
)
from dsage.graphs.separation import Oracle

_Result = TypeVar("_Result")

_Entry = TypeVar("_Entry", bound=np.generic)

Asking = Generator[Request, Floats, _Result]
"""A computation that asks a game as it goes: it yields requests, and is sent their answers."""


def played(asking: Asking[_Result], game: Game) -> _Result:
    """Return what a computation gives with the answers of a game."""
    try:
        request = next(asking)
        while True:
            request = asking.send(ask(game, request))
    except StopIteration as end:
        result: _Result = end.value
        return result


class Surpluses(NamedTuple):
    """What the features add, ordering by ordering.

    values : array of shape (n_orderings, n_rows, n_replicates, n_features)
    skipped : bool array of shape (n_orderings, n_features)
        Which of them are zero by separation.
    """

    values: Floats
    skipped: Mask


class Walk(Protocol):
    """A way to turn orderings into surpluses.

    It asks for risks, and does not evaluate them: so many walks can be under way, and what they
    need be evaluated together.
    """

    def __call__(self, orders: Orders, rows: Rows, epoch: int) -> Asking[Surpluses]:
        """Give the surpluses along orderings (n_orderings, n_features) on some rows."""
        ...


def prefixes(orders: Orders) -> Mask:
    """Return the coalitions along orderings, (n_orderings, n_features + 1, n_features).

    Examples
    --------
    >>> prefixes(np.array([[1, 0]])).astype(int)
    array([[[0, 0],
            [0, 1],
            [1, 1]]])
    """
    n_features = orders.shape[1]
    position = np.empty_like(orders)
    np.put_along_axis(position, orders, np.arange(n_features), axis=1)
    known: Mask = position[:, None, :] < np.arange(n_features + 1)[:, None]
    return known


def by_feature(steps: npt.NDArray[_Entry], orders: Orders) -> npt.NDArray[_Entry]:
    """Bring what belongs to positions, (n_orderings, n_features, ...), to the features' order."""
    out = np.empty_like(steps)
    out[np.arange(len(orders))[:, None], orders] = steps
    return out


class Prefixes:
    """Surpluses of a game at the prefixes themselves: plain SAGE, or the paper's Algorithm 1.

    Parameters
    ----------
    game : Game
        The game.
    oracle : Oracle, optional
        Surpluses of features that it separates given the prefix are zero; a prefix that no other
        surplus needs is not evaluated. By default nothing is skipped.
    use_paths : bool, default=True
        Whether to take all prefixes at once from a game that can. The draws of a coalition then
        belong to the ordering, and are not those of the same coalition elsewhere.
    """

    def __init__(self, game: Game, oracle: Oracle | None = None, *, use_paths: bool = True) -> None:
        self._oracle, self._n_groups = oracle, game.n_replicates
        self._use_paths = use_paths and isinstance(game, Paths)

    def __call__(self, orders: Orders, rows: Rows, epoch: int) -> Asking[Surpluses]:
        """Give the surpluses; see :class:`Walk`."""
        n_orderings, n_features = orders.shape
        known = prefixes(orders)
        skipped = separated_steps(self._oracle, known, orders)
        needed = np.zeros((n_orderings, n_features + 1), dtype=np.bool_)
        needed[:, :-1] |= ~skipped
        needed[:, 1:] |= ~skipped
        if self._use_paths:
            risks = yield Along(orders, rows, epoch, needed)
        else:
            risks = np.zeros((*needed.shape, len(rows), self._n_groups))
            if needed.any():
                risks[needed] = yield Coalitions(known[needed], rows, epoch)
        steps = risks[:, :-1] - risks[:, 1:]
        steps[skipped] = 0.0
        return arranged(steps, skipped, orders)


class Boundaries:
    """Surpluses of a game at the Markov boundaries of the prefixes.

    A separated feature does not change the boundary, so its surplus is a difference of one risk
    with itself.

    Parameters
    ----------
    oracle : Oracle
        Knows the boundaries.
    """

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def __call__(self, orders: Orders, rows: Rows, epoch: int) -> Asking[Surpluses]:
        """Give the surpluses; see :class:`Walk`."""
        known = prefixes(orders)
        boundaries = self._oracle.boundary(known.reshape(-1, known.shape[-1]))
        risks = yield Coalitions(boundaries, rows, epoch)
        risks = risks.reshape(*known.shape[:2], *risks.shape[1:])
        boundaries = boundaries.reshape(known.shape)
        skipped = (boundaries[:, :-1] == boundaries[:, 1:]).all(axis=2)
        return arranged(risks[:, :-1] - risks[:, 1:], skipped, orders)


def separated_steps(oracle: Oracle | None, known: Mask, orders: Orders) -> Mask:
    """Tell which steps of orderings add a separated feature, (n_orderings, n_features)."""
    if oracle is None:
        return np.zeros(orders.shape, dtype=np.bool_)
    before = known[:, :-1]
    separated = oracle.separated(before.reshape(-1, known.shape[-1])).reshape(before.shape)
    return np.take_along_axis(separated, orders[:, :, None], axis=2)[:, :, 0]


def arranged(steps: Floats, skipped: Mask, orders: Orders) -> Surpluses:
    """Return steps (n_orderings, n_features, n_rows, n_replicates) as surpluses of the features."""
    values = np.moveaxis(by_feature(steps, orders), 1, 3)
    return Surpluses(values, by_feature(skipped, orders))
