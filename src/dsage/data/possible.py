"""The values that a feature can have, and how draws are moved to the nearest of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


class Exclusive(NamedTuple):
    """Columns of zeros and ones of which at most one is 1 in any row: the classes of one feature.

    `states` are the patterns that occur in training, (n_states, n_columns).
    """

    columns: Ints
    states: Floats

    @property
    def may_be_none(self) -> bool:
        """Whether all columns are 0 in some row of training."""
        return bool((self.states.sum(axis=1) == 0).any())

    @property
    def may_be_one(self) -> Mask:
        """Which columns are 1 in some row of training."""
        found: Mask = (self.states != 0).any(axis=0)
        return found


@dataclass(frozen=True)
class Range:
    """Whole numbers between the smallest and the largest one of training."""

    low: float
    high: float

    def snap(self, values: npt.NDArray[Any]) -> None:
        """Round values in place, and move them into the range; NaN stays."""
        np.rint(values, out=values)
        np.clip(values, self.low, self.high, out=values)


@dataclass(frozen=True, eq=False)
class Codes:
    """The numbers that occur in training, sorted."""

    values: Floats

    def snap(self, values: npt.NDArray[Any]) -> None:
        """Replace values in place by the nearest ones of training; NaN stays."""
        found = self.values
        if not len(found):
            return
        middles = found[:-1] / 2 + found[1:] / 2
        if len(found) <= 3:
            nearest = np.full(values.shape, found[0])
            for middle, value in zip(middles, found[1:], strict=True):
                nearest[values > middle] = value
        else:
            nearest = found[np.searchsorted(middles, values)]
        np.copyto(values, nearest, where=~np.isnan(values), casting="same_kind")


class Possible:
    """The values that can occur in each column, according to its kind.

    Codes are values that occur in training, whole numbers and times lie between the smallest and
    the largest value in training, and exclusive columns have a pattern that occurs in training.
    Other columns can have any value.

    Examples
    --------
    >>> possible = Possible({0: Codes(np.array([1.0, 2.0, 5.0])), 2: Range(0.0, 9.0)})
    >>> draws = np.array([[[4.0, 0.3, 12.6]]])
    >>> possible.snap(draws, np.array([False, False, False]))
    >>> draws
    array([[[5. , 0.3, 9. ]]])
    """

    def __init__(
        self, columns: dict[int, Codes | Range], exclusive: Iterable[Exclusive] = ()
    ) -> None:
        self.exclusive = tuple(exclusive)
        together = {int(column) for each in self.exclusive for column in each.columns}
        self.columns = {at: each for at, each in columns.items() if at not in together}

    @property
    def is_free(self) -> bool:
        """Whether draws never need to be moved."""
        return not (self.columns or self.exclusive)

    @property
    def together(self) -> Possible:
        """The restrictions that remain if each unknown column already has a value from training.

        Only exclusive columns can then be impossible: they may contradict each other, or known
        ones.
        """
        return Possible({}, self.exclusive)

    def snap(self, draws: npt.NDArray[Any], known: Mask) -> None:
        """Move draws (n_rows, n_draws, n_features) to the nearest possible values, in place.

        Features in the mask `known` (n_features,) are not changed. Each row is moved independently
        of the others.
        """
        for at, values in self.columns.items():
            if not known[at]:
                # A slice is strided: work on a copy that is not.
                column = np.ascontiguousarray(draws[..., at])
                values.snap(column)
                draws[..., at] = column
        for each in self.exclusive:
            _snap_together(draws, known, each)


def _snap_together(draws: npt.NDArray[Any], known: Mask, exclusive: Exclusive) -> None:
    """Replace unknown members by those of the nearest pattern that agrees with known ones.

    The squared distance of a draw from the pattern with member j only is a constant minus 2 x_j
    plus 1, and from the empty pattern the same constant. A pattern with a known member leaves all
    others 0; so do patterns that were never seen.
    """
    columns = exclusive.columns
    unknown, given = columns[~known[columns]], columns[known[columns]]
    if not len(unknown):
        return
    members = np.where(exclusive.may_be_one[~known[columns]], draws[..., unknown], -np.inf)
    members[np.isnan(members)] = -np.inf
    best = members.argmax(axis=-1)
    largest = np.take_along_axis(members, best[..., None], axis=-1)[..., 0]
    is_one = largest > 0.5 if exclusive.may_be_none else largest > -np.inf
    if len(given):
        is_one &= (draws[..., given] == 0).all(axis=-1)
    draws[..., unknown] = 0
    at = unknown[best]
    np.put_along_axis(draws, at[..., None], is_one[..., None].astype(draws.dtype), axis=-1)
