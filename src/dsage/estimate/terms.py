"""The terms of an estimate: what one unit of orderings gives on one block of rows."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dsage.estimate.exact import Enumeration
from dsage.estimate.result import TermKind
from dsage.estimate.walk import Asking, Walk, by_feature, played, prefixes, separated_steps
from dsage.games.base import Coalitions, Floats, Game, Mask, Orders, Rows
from dsage.games.moment import CheapGame
from dsage.graphs.separation import Oracle
from dsage.orderings import Orderings


class Outcome(NamedTuple):
    """What a unit gives on a block.

    surplus : array of shape (n_rows, n_replicates, n_features)
        Mean over the unit's orderings.
    control : array of shape (n_features,)
        The same of the cheap game, mean over the rows; zeros without one.
    n_skipped : int array of shape (n_features,)
        How many surpluses were zero by separation.
    noted : list of (int, int, float)
        Feature, position and mean surplus of what separation sets to zero, from an audit.
    """

    surplus: Floats
    control: Floats
    n_skipped: npt.NDArray[np.intp]
    noted: list[tuple[int, int, float]]


class Term(Protocol):
    """A mean over units of orderings."""

    kind: TermKind
    batch_size: int

    def __call__(self, unit: int, rows: Rows, epoch: int) -> Asking[Outcome]:
        """Give what a unit gives on some rows, asking the model's game for risks."""
        ...


class Sampled:
    """The surpluses along sampled orderings, beside those of the cheap game.

    Parameters
    ----------
    walk : Walk
        Of the model's game.
    orderings : Orderings
        The orderings.
    control_walk, control : Walk and Game, optional
        Of the cheap game, and that.
    """

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

    def __call__(self, unit: int, rows: Rows, epoch: int) -> Asking[Outcome]:
        """Give what a unit gives on some rows; see :class:`Term`."""
        orders = self._orderings.batch(unit)
        values, skipped = yield from self._walk(orders, rows, epoch)
        control = np.zeros(orders.shape[1])
        if self._control_walk is not None and self._control is not None:
            cheap = played(self._control_walk(orders, rows, 0), self._control)
            control = cheap.values.mean(axis=(0, 1, 2))
        return Outcome(values.mean(axis=0), control, skipped.sum(axis=0), [])


class Enumerated:
    """The surpluses averaged over all orderings, from the few risks that they need.

    Parameters
    ----------
    enumeration : Enumeration
        All orderings at once.
    control : CheapGame, optional
        The cheap game.
    """

    kind = TermKind.ENUMERATED
    batch_size = 1

    def __init__(self, enumeration: Enumeration, control: CheapGame | None) -> None:
        self._enumeration, self._control = enumeration, control

    def __call__(self, unit: int, rows: Rows, epoch: int) -> Asking[Outcome]:  # noqa: ARG002
        """Give what all orderings give on some rows; see :class:`Term`."""
        coalitions, coefficients = self._enumeration.coalitions, self._enumeration.coefficients
        risks = yield Coalitions(coalitions, rows, epoch)
        surplus = np.einsum("fc,crg->rgf", coefficients, risks)
        control = np.zeros(len(coefficients))
        if self._control is not None:
            control = coefficients @ self._control.risks(coalitions, rows).mean(axis=(1, 2))
        return Outcome(surplus, control, np.zeros(len(coefficients), dtype=np.intp), [])


class Correction:
    """SAGE minus d-SAGE: the surpluses at the coalitions themselves less those of the main term.

    Parameters
    ----------
    plain : Walk
        At the coalitions themselves.
    walk : Walk
        Of the main term; on the same game, so that both have the same noise.
    oracle : Oracle
        Tells which surpluses separation sets to zero.
    orderings : Orderings
        The orderings.
    first_unit : int
        Number of the unit that stands for the first, to keep orderings apart from the main term's.
    """

    kind = TermKind.CORRECTION

    def __init__(
        self, plain: Walk, walk: Walk, oracle: Oracle, orderings: Orderings, first_unit: int
    ) -> None:
        self._plain, self._walk, self._oracle = plain, walk, oracle
        self._orderings, self._first_unit = orderings, first_unit
        self.batch_size = orderings.batch_size

    def __call__(self, unit: int, rows: Rows, epoch: int) -> Asking[Outcome]:
        """Give what a unit gives on some rows; see :class:`Term`."""
        orders = self._orderings.batch(self._first_unit + unit)
        values = (yield from self._plain(orders, rows, epoch)).values
        difference = values - (yield from self._walk(orders, rows, epoch)).values
        skipped = by_feature(separated_steps(self._oracle, prefixes(orders), orders), orders)
        n_features = orders.shape[1]
        return Outcome(
            difference.mean(axis=0),
            np.zeros(n_features),
            skipped.sum(axis=0),
            _noted(values.mean(axis=(1, 2)), skipped, orders),
        )


def _noted(surplus: Floats, skipped: Mask, orders: Orders) -> list[tuple[int, int, float]]:
    position = np.argsort(orders, axis=1)
    return [
        (int(feature), int(position[ordering, feature]), float(surplus[ordering, feature]))
        for ordering, feature in zip(*np.nonzero(skipped), strict=True)
    ]
