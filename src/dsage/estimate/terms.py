"""The terms of an estimate: one batch of orderings evaluated on one shard of the rows."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dsage.estimate.exact import Enumeration
from dsage.estimate.result import TermKind
from dsage.estimate.walk import Asking, Walk, play
from dsage.games.base import Coalitions, Floats, Game, Mask, Orders, Rows
from dsage.orderings import Orderings


class Outcome(NamedTuple):
    """The result of a unit.

    The mean surpluses over the batch of orderings, (n_rows, n_replicates, n_features), and for
    the first level, (n_features,); the number of surpluses that are zero by separation; and, from
    an audit, feature, position and mean surplus of each step that separation sets to zero. With
    `wanted`, (n_features,), only the surpluses of these features are meaningful.
    """

    surplus: Floats
    control: Floats
    n_skipped: npt.NDArray[np.intp]
    noted: list[tuple[int, int, float]]
    wanted: Mask | None = None


class Term(Protocol):
    """A mean over units."""

    kind: TermKind
    batch_size: int

    def __call__(self, batch: int, rows: Rows, epoch: int) -> Asking[Outcome]:
        """Evaluate a batch of orderings on some rows, requesting risks of the model's game."""


class MainTerm(Term, Protocol):
    """The mean surplus, which may have a first level."""

    def control(self, batch: int, rows: Rows) -> Floats:
        """Return the mean surpluses of the first level, (n_features,); 0 without one."""


class Sampled:
    """The surpluses along sampled orderings, also in the first level, `control`, if any."""

    kind = TermKind.SAMPLED

    def __init__(
        self,
        walk: Walk,
        orderings: Orderings,
        control_walk: Walk | None = None,
        control: Game | None = None,
    ) -> None:
        self._walk, self._orderings = walk, orderings
        self._control_walk, self._control = control_walk, control
        self.batch_size = orderings.batch_size

    def __call__(
        self, batch: int, rows: Rows, epoch: int, wanted: Mask | None = None
    ) -> Asking[Outcome]:
        """Evaluate a batch of orderings on some rows; see :class:`Term`.

        With `wanted`, only for some of the features.
        """
        orders = self._orderings.batch(batch)
        values, skipped = yield from self._walk(orders, rows, epoch, wanted)
        control = self._surpluses(orders, rows)
        if control is None:
            control = np.zeros(values.shape[-1])
        return Outcome(values.mean(axis=0), control, skipped.sum(axis=0), [], wanted)

    def control(self, batch: int, rows: Rows) -> Floats:
        """Return the mean surpluses of the first level; see :class:`MainTerm`."""
        orders = self._orderings.batch(batch)
        found = self._surpluses(orders, rows)
        return np.zeros(orders.shape[1]) if found is None else found

    def _surpluses(self, orders: Orders, rows: Rows) -> Floats | None:
        """Return the mean surpluses of the first level; None without one."""
        if self._control_walk is None or self._control is None:
            return None
        cheap = play(self._control_walk(orders, rows, 0), self._control)
        means: Floats = cheap.values.mean(axis=(0, 1, 2))
        return means


class Enumerated:
    """The surpluses averaged over all orderings, from the few risks that they need."""

    kind = TermKind.ENUMERATED
    batch_size = 1

    def __init__(self, enumeration: Enumeration, control: Game | None) -> None:
        self._enumeration, self._control = enumeration, control

    def __call__(self, batch: int, rows: Rows, epoch: int) -> Asking[Outcome]:
        """Average over all orderings on some rows; see :class:`Term`."""
        coalitions, coefficients = self._enumeration.coalitions, self._enumeration.coefficients
        risks = yield Coalitions(coalitions, rows, epoch)
        surplus = np.einsum("fc,crg->rgf", coefficients, risks)
        control = self.control(batch, rows)
        return Outcome(surplus, control, np.zeros(len(coefficients), dtype=np.intp), [])

    def control(self, batch: int, rows: Rows) -> Floats:  # noqa: ARG002
        """Return the mean surpluses of the first level; see :class:`MainTerm`."""
        coefficients = self._enumeration.coefficients
        if self._control is None:
            return np.zeros(len(coefficients))
        risks = self._control.risks(self._enumeration.coalitions, rows)
        means: Floats = coefficients @ risks.mean(axis=(1, 2))
        return means
