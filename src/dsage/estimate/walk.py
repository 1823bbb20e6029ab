"""Surpluses along orderings: at prefixes, at boundaries, or with the separated ones skipped."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from dsage.games.base import (
    Along,
    Coalitions,
    Floats,
    Game,
    Mask,
    Orders,
    Request,
    Rows,
    ask,
    by_feature,
    prefixes,
)
from dsage.graphs.separation import Oracle

_Result = TypeVar("_Result")

Asking = Generator[Request, Floats, _Result]
"""A computation that yields requests to a game, and is sent their answers."""


def play(asking: Asking[_Result], game: Game) -> _Result:
    """Return the result of a computation with the answers of a game."""
    try:
        request = next(asking)
        while True:
            request = asking.send(ask(game, request))
    except StopIteration as end:
        result: _Result = end.value
        return result


class Surpluses(NamedTuple):
    """The surpluses of all features, ordering by ordering.

    `values` has shape (n_orderings, n_rows, n_replicates, n_features); `skipped`,
    (n_orderings, n_features), marks surpluses that are zero by separation.
    """

    values: Floats
    skipped: Mask


class Walk(Protocol):
    """A way to turn orderings into surpluses.

    It requests risks instead of evaluating them, so that the requests of many walks can be
    evaluated together.
    """

    def __call__(
        self, orders: Orders, rows: Rows, epoch: int, wanted: Mask | None = None
    ) -> Asking[Surpluses]:
        """Compute the surpluses along orderings (n_orderings, n_features) on some rows.

        With `wanted`, (n_features,), the surpluses of other features are arbitrary, and risks that
        only these need may be left out.
        """


class Prefixes:
    """Surpluses of a game at the prefixes themselves: plain SAGE, or the paper's Algorithm 1.

    With an oracle, surpluses of features that it separates given the prefix are zero, and a prefix
    that only such surpluses need is not evaluated. The game's `path_risks` are used, if it has
    them, unless `use_paths` is false: the draws of a coalition then belong to the ordering, and
    differ from the draws of the same coalition elsewhere.
    """

    def __init__(self, game: Game, oracle: Oracle | None = None, *, use_paths: bool = True) -> None:
        self._oracle, self._n_replicates = oracle, game.n_replicates
        self._use_paths = use_paths and game.has_paths

    def __call__(
        self, orders: Orders, rows: Rows, epoch: int, wanted: Mask | None = None
    ) -> Asking[Surpluses]:
        """Compute the surpluses; see :class:`Walk`."""
        known = prefixes(orders)
        skipped = separated_steps(self._oracle, known, orders)
        needed = _ends(~skipped if wanted is None else ~skipped & wanted[orders])
        if self._use_paths:
            risks = yield Along(orders, rows, epoch, needed)
        else:
            risks = np.zeros((*needed.shape, len(rows), self._n_replicates))
            if needed.any():
                risks[needed] = yield Coalitions(known[needed], rows, epoch)
        steps = risks[:, :-1] - risks[:, 1:]
        steps[skipped] = 0.0
        return to_surpluses(steps, skipped, orders)


class Boundaries:
    """Surpluses of a game at the Markov boundaries of the prefixes.

    A separated feature does not change the boundary, so its surplus is exactly zero.
    """

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def __call__(
        self, orders: Orders, rows: Rows, epoch: int, wanted: Mask | None = None
    ) -> Asking[Surpluses]:
        """Compute the surpluses; see :class:`Walk`."""
        known = prefixes(orders)
        boundaries = self._oracle.boundary(known.reshape(-1, known.shape[-1]))
        if wanted is None:
            risks = yield Coalitions(boundaries, rows, epoch)
        else:
            needed = _ends(wanted[orders]).ravel()
            some = yield Coalitions(boundaries[needed], rows, epoch)
            risks = np.zeros((len(boundaries), *some.shape[1:]))
            risks[needed] = some
        risks = risks.reshape(*known.shape[:2], *risks.shape[1:])
        boundaries = boundaries.reshape(known.shape)
        skipped = (boundaries[:, :-1] == boundaries[:, 1:]).all(axis=2)
        return to_surpluses(risks[:, :-1] - risks[:, 1:], skipped, orders)


def _ends(steps: Mask) -> Mask:
    """Return the prefixes before and after steps, (n_orderings, n_features + 1)."""
    ends = np.zeros((len(steps), steps.shape[1] + 1), dtype=np.bool_)
    ends[:, :-1] |= steps
    ends[:, 1:] |= steps
    return ends


def separated_steps(oracle: Oracle | None, known: Mask, orders: Orders) -> Mask:
    """Return which steps of orderings add a separated feature, (n_orderings, n_features)."""
    if oracle is None:
        return np.zeros(orders.shape, dtype=np.bool_)
    before = known[:, :-1]
    separated = oracle.separated(before.reshape(-1, known.shape[-1])).reshape(before.shape)
    return np.take_along_axis(separated, orders[:, :, None], axis=2)[:, :, 0]


def to_surpluses(steps: Floats, skipped: Mask, orders: Orders) -> Surpluses:
    """Return steps (n_orderings, n_features, n_rows, n_replicates) as surpluses of the features."""
    values = np.moveaxis(by_feature(steps, orders), 1, 3)
    return Surpluses(values, by_feature(skipped, orders))
