"""The terms of an estimate: what one unit of orderings gives on one block of rows."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dsage.estimate.exact import Enumeration
from dsage.estimate.walk import Walk, by_feature, prefixes, separated_steps
from dsage.games.base import Floats, Game, Mask, Orders, Rows
from dsage.games.moment import CheapGame
from dsage.graphs.separation import Oracle
from dsage.orderings import Orderings


class Outcome(NamedTuple):
    """What a unit gives on a block.

    surplus : array of shape (n_rows, n_groups, n_features)
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

    name: str
    unit_size: int

    def __call__(self, unit: int, rows: Rows, epoch: int) -> Outcome:
        """Evaluate a unit on some rows."""
        ...


class Sampled:
    """The surpluses along sampled orderings, beside those of the cheap game.

    Parameters
    ----------
    walk : Walk
        Of the model's game.
    orderings : Orderings
        The orderings.
    control : Walk, optional
        Of the cheap game.
    """

    name = "surpluses"

    def __init__(self, walk: Walk, orderings: Orderings, control: Walk | None) -> None:
        self._walk, self._orderings, self._control = walk, orderings, control
        self.unit_size = orderings.unit_size

    def __call__(self, unit: int, rows: Rows, epoch: int) -> Outcome:
        """Evaluate a unit on some rows; see :class:`Term`."""
        orders = self._orderings.block(unit)
        values, skipped = self._walk(orders, rows, epoch)
        control = np.zeros(orders.shape[1])
        if self._control is not None:
            control = self._control(orders, rows, 0).values.mean(axis=(0, 1, 2))
        return Outcome(values.mean(axis=0), control, skipped.sum(axis=0), [])


class Enumerated:
    """The surpluses averaged over all orderings, from the few risks that they need.

    Parameters
    ----------
    game : Game
        The model's game.
    enumeration : Enumeration
        All orderings at once.
    control : CheapGame, optional
        The cheap game.
    """

    name = "surpluses, all orderings"
    unit_size = 1

    def __init__(self, game: Game, enumeration: Enumeration, control: CheapGame | None) -> None:
        self._game, self._enumeration, self._control = game, enumeration, control

    def __call__(self, unit: int, rows: Rows, epoch: int) -> Outcome:  # noqa: ARG002
        """Evaluate all orderings on some rows; see :class:`Term`."""
        coalitions, coefficients = self._enumeration.coalitions, self._enumeration.coefficients
        risks = self._game.risks(coalitions, rows, epoch)
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

    name = "SAGE - d-SAGE"

    def __init__(
        self, plain: Walk, walk: Walk, oracle: Oracle, orderings: Orderings, first_unit: int
    ) -> None:
        self._plain, self._walk, self._oracle = plain, walk, oracle
        self._orderings, self._first_unit = orderings, first_unit
        self.unit_size = orderings.unit_size

    def __call__(self, unit: int, rows: Rows, epoch: int) -> Outcome:
        """Evaluate a unit on some rows; see :class:`Term`."""
        orders = self._orderings.block(self._first_unit + unit)
        values = self._plain(orders, rows, epoch).values
        difference = values - self._walk(orders, rows, epoch).values
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
