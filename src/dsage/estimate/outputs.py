"""Values of single outputs in addition to their sum: more columns of the same orderings and draws.

A game whose losses are summed over outputs can return the risks of each, see
:meth:`dsage.games.Game.apart`. The columns of the estimate are then the features in sum, followed
by the features for the first output, for the second, ... All are estimated together, with one slope
of the first level, so the values of the outputs add up to their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dsage.estimate.terms import MainTerm, Outcome, Term
from dsage.estimate.walk import Asking
from dsage.games.base import Floats, Orders, Rows


def with_sum(parts: Sequence[Floats]) -> Floats:
    """Return arrays of outputs, (..., n_features) each, side by side after their sum.

    Examples
    --------
    >>> with_sum([np.array([1.0, 2.0]), np.array([10.0, 20.0])])
    array([11., 22.,  1.,  2., 10., 20.])
    """
    return np.concatenate([np.sum(parts, axis=0), *parts], axis=-1)


class WalksWithSum:
    """The surpluses along orderings in the cheap games of the outputs, and in their sum."""

    def __init__(self, walks: Sequence[Callable[[Orders], Floats]]) -> None:
        self._walks = walks

    def __call__(self, orders: Orders) -> Floats:
        """Return the surpluses, (n_orderings, (1 + n_outputs) * n_features)."""
        return with_sum([walk(orders) for walk in self._walks])


class ByOutput:
    """A term on a game whose outputs are apart: its columns are the sum, and then each output.

    `controls` are terms, one for each output, that know the surpluses of its first level.
    """

    def __init__(self, term: Term, n_outputs: int, controls: Sequence[MainTerm] = ()) -> None:
        self._term, self._n_outputs, self._controls = term, n_outputs, controls
        self.kind, self.batch_size = term.kind, term.batch_size

    def __call__(self, batch: int, rows: Rows, epoch: int) -> Asking[Outcome]:
        """Evaluate a batch of orderings on some rows; see :class:`Term`."""
        outcome = yield from self._term(batch, rows, epoch)
        n_rows, _, n_features = outcome.surplus.shape
        # The game's risks are scaled so that their mean, not their sum, is the risk of all outputs.
        apart = outcome.surplus.reshape(n_rows, self._n_outputs, -1, n_features) / self._n_outputs
        surplus = with_sum([apart[:, output] for output in range(self._n_outputs)])
        cheap = [term.control(batch, rows) for term in self._controls]
        control = with_sum(cheap) if cheap else np.zeros(surplus.shape[-1])
        n_skipped = np.tile(outcome.n_skipped, 1 + self._n_outputs)
        return Outcome(surplus, control, n_skipped, outcome.noted)
