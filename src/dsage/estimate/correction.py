"""SAGE minus d-SAGE: the term that audits skipping, or corrects for it."""

from __future__ import annotations

import numpy as np

from dsage.estimate.result import TermKind
from dsage.estimate.terms import Outcome
from dsage.estimate.walk import Asking, Surpluses, Walk, separated_steps, to_surpluses
from dsage.games.base import Along, Coalitions, Floats, Game, Mask, Orders, Rows, prefixes
from dsage.graphs.separation import Oracle
from dsage.orderings import Orderings


class BoundaryGaps:
    """The surpluses at the coalitions themselves minus the surpluses at their boundaries.

    With ``d(S) = risk(S) - risk(M(S))``, the difference for the step from S to S + j is
    ``d(S) - d(S + j)``. If S is its own boundary, d(S) is zero, so only the other coalitions and
    their boundaries are evaluated.
    """

    def __init__(self, game: Game, oracle: Oracle) -> None:
        self._oracle, self._n_replicates = oracle, game.n_replicates

    def __call__(
        self,
        orders: Orders,
        rows: Rows,
        epoch: int,
        wanted: Mask | None = None,  # noqa: ARG002
    ) -> Asking[Surpluses]:
        """Compute the differences; see :class:`~dsage.estimate.walk.Walk`."""
        known = prefixes(orders)
        flat = known.reshape(-1, known.shape[-1])
        boundaries = self._oracle.boundary(flat)
        differs = (flat != boundaries).any(axis=1)
        gaps = np.zeros((len(flat), len(rows), self._n_replicates))
        if differs.any():
            both = np.concatenate([flat[differs], boundaries[differs]])
            risks = yield Coalitions(both, rows, epoch)
            gaps[differs] = risks[: len(both) // 2] - risks[len(both) // 2 :]
        gaps = gaps.reshape(*known.shape[:2], *gaps.shape[1:])
        boundaries = boundaries.reshape(known.shape)
        skipped = (boundaries[:, :-1] == boundaries[:, 1:]).all(axis=2)
        return to_surpluses(gaps[:, :-1] - gaps[:, 1:], skipped, orders)


class SkippedSurpluses:
    """The surpluses that the paper's Algorithm 1 sets to zero; zero for the others."""

    def __init__(self, game: Game, oracle: Oracle) -> None:
        self._oracle, self._n_replicates = oracle, game.n_replicates
        self._use_paths = game.has_paths

    def __call__(
        self,
        orders: Orders,
        rows: Rows,
        epoch: int,
        wanted: Mask | None = None,  # noqa: ARG002
    ) -> Asking[Surpluses]:
        """Compute the surpluses; see :class:`~dsage.estimate.walk.Walk`."""
        known = prefixes(orders)
        skipped = separated_steps(self._oracle, known, orders)
        needed = np.zeros(known.shape[:2], dtype=np.bool_)
        needed[:, :-1] |= skipped
        needed[:, 1:] |= skipped
        risks = np.zeros((*needed.shape, len(rows), self._n_replicates))
        if needed.any():
            if self._use_paths:
                risks = yield Along(orders, rows, epoch, needed)
            else:
                risks[needed] = yield Coalitions(known[needed], rows, epoch)
        steps = risks[:, :-1] - risks[:, 1:]
        steps[~skipped] = 0.0
        return to_surpluses(steps, skipped, orders)


class Correction:
    """The mean difference of SAGE and d-SAGE, and the surpluses that separation sets to zero.

    `first_batch` keeps the orderings separate from the orderings of the main term.
    """

    kind = TermKind.CORRECTION

    def __init__(self, walk: Walk, orderings: Orderings, first_batch: int) -> None:
        self._walk, self._orderings, self._first_batch = walk, orderings, first_batch
        self.batch_size = orderings.batch_size

    def __call__(self, batch: int, rows: Rows, epoch: int) -> Asking[Outcome]:
        """Evaluate a batch of orderings on some rows; see :class:`~dsage.estimate.terms.Term`."""
        orders = self._orderings.batch(self._first_batch + batch)
        values, skipped = yield from self._walk(orders, rows, epoch)
        # The main term has zero there, so that the difference is the surplus itself.
        noted = _note_skipped(values.mean(axis=(1, 2)), skipped, orders)
        no_control = np.zeros(orders.shape[1])
        return Outcome(values.mean(axis=0), no_control, skipped.sum(axis=0), noted)


def _note_skipped(surplus: Floats, skipped: Mask, orders: Orders) -> list[tuple[int, int, float]]:
    position = np.argsort(orders, axis=1)
    return [
        (int(feature), int(position[ordering, feature]), float(surplus[ordering, feature]))
        for ordering, feature in zip(*np.nonzero(skipped), strict=True)
    ]
