"""Mechanisms: a node as a function of its parents and its own noise, learned from rows.

Each has *lines*, linear predictors to which its parents add, and turns lines and noise into a
value:

- a number is ``g(parents) + N``: one line, and errors of the regression as noise;
- a class with an order, two classes, or few numbers, is the level at which the distribution
  function, given the parents, exceeds a uniform;
- other classes are the level with the largest sum of log probability and Gumbel noise (Oberst &
  Sontag, 2019), which does not depend on the order of the levels;
- a number with gaps is missing or not, like two classes, and a number if it is present.

The *abducted* noise of a known row is the noise that reproduces its value. For a number it is a
single number. For a class it has a distribution, from which it is drawn by uniforms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dsage.data.basis import level_places
from dsage.data.possible import Range
from dsage.flow.blocks import Column, Effects, classify, regress
from dsage.games.base import Floats

Ints = npt.NDArray[np.intp]

_N_QUANTILES = 1001
# Lines that differ by less, relative to their size, count as equal: the value is then the row's
# own.
_SAME = 1e-9


class Mechanism(ABC):
    """A node as a function of lines, to which its parents add, and of noise.

    Attributes
    ----------
    kind : str
        What it is: ``"number"``, ``"levels"``, ``"class"`` or ``"number with gaps"``.
    effects : Effects
        The effect of each parent on the lines.
    n_uniforms : int
        Number of uniforms that the noise is computed from.
    explained : float
        The share of the variance (of leave-one-out predictions, for numbers) or of the deviance
        that the parents explain.
    n_terms : int
        Functions of each parent that is a number; 0 without parents.
    """

    kind: str
    effects: Effects
    n_uniforms: int
    explained: float = 0.0
    n_terms: int = 0

    @abstractmethod
    def draw(self, uniforms: Floats) -> Floats:
        """Return noise (..., n_noise) made of uniforms (..., n_uniforms)."""

    @abstractmethod
    def abduct(self, x: Floats, lines: Floats, uniforms: Floats) -> Floats:
        """Return the noise (n_rows, n_draws, n_noise) of rows.

        `x` has shape (n_rows,), `lines` (n_rows, n_lines) and `uniforms` (n_rows, n_draws,
        n_uniforms).
        """

    @abstractmethod
    def value(self, lines: Floats, noise: Floats) -> Floats:
        """Return the values (...) of lines (..., n_lines) and noise (..., n_noise)."""

    def value_of_rows(self, x: Floats, own: Floats, lines: Floats, noise: Floats) -> Floats:
        """Return the values (n_rows, n_draws) with the noise of rows.

        Where the lines are `own`, those of the rows, (n_rows, n_lines), these are their values `x`,
        to the bit.
        """
        apart = np.abs(lines - own[:, None]) > _SAME * (1.0 + np.abs(own[:, None]))
        is_moved = apart.any(axis=-1)
        values = np.broadcast_to(x[:, None], is_moved.shape).copy()
        if is_moved.any():
            values[is_moved] = self.value(lines, noise)[is_moved]
        return values


class Number(Mechanism):
    """A number: the prediction from its parents, plus noise."""

    kind = "number"
    n_uniforms = 1

    def __init__(
        self, values: Floats, parents: Sequence[Column], whole: Range | None = None
    ) -> None:
        self._whole = whole
        if parents:
            self.effects, errors, self.n_terms = regress(values, parents)
            total = float(values.var())
            self.explained = 1.0 - float((errors**2).mean()) / total if total else 0.0
            ordered = np.sort(errors)
            shares = np.linspace(0.0, 1.0, min(len(ordered), _N_QUANTILES))
            quantiles = np.quantile(ordered, shares)
            # The interpolated quantiles must have mean zero.
            middles = (quantiles[:-1] + quantiles[1:]) / 2 if len(quantiles) > 1 else quantiles
            self._noise: Floats = quantiles - middles.mean()
        else:
            self.effects = Effects((), (), np.zeros(1))
            self._noise = np.sort(values)

    def draw(self, uniforms: Floats) -> Floats:
        """Return interpolated quantiles of the errors; without parents, values from training."""
        last = len(self._noise) - 1
        if not len(self.effects):
            at = np.minimum((uniforms * (last + 1)).astype(np.intp), last)
            return self._noise[at]
        place = uniforms * last
        below = np.minimum(place.astype(np.intp), max(last - 1, 0))
        low, high = self._noise[below], self._noise[np.minimum(below + 1, last)]
        noise: Floats = low + (place - below) * (high - low)
        return noise

    def abduct(self, x: Floats, lines: Floats, uniforms: Floats) -> Floats:
        """Return the residuals."""
        noise = (x - lines[:, 0])[:, None, None]
        return np.broadcast_to(noise, (*uniforms.shape[:2], 1))

    def value(self, lines: Floats, noise: Floats) -> Floats:
        """Return lines plus noise; whole numbers are rounded and stay in their range."""
        values: Floats = lines[..., 0] + noise[..., 0]
        if self._whole is not None:
            self._whole.snap(values)
        return values


class Levels(Mechanism):
    """Values that have an order, or two values: the distribution function at a uniform.

    A missing value, NaN, is the last one.
    """

    kind = "levels"
    n_uniforms = 1

    def __init__(self, values: Floats, parents: Sequence[Column]) -> None:
        self._levels, codes = np.unique(values, return_inverse=True)
        counts = np.bincount(codes)
        self.effects = Effects((), (), np.log(counts / len(values)))
        if parents and len(counts) > 1:
            self.effects, self.n_terms = classify(codes, len(counts), parents)
            self.explained = _share_explained(self.effects, codes, parents)

    @property
    def levels(self) -> Floats:
        """The values, in their order."""
        return self._levels

    def codes(self, x: Floats) -> Ints:
        """Return the levels of values; for numbers not seen in training, the next level."""
        return np.minimum(np.searchsorted(self._levels, x), len(self._levels) - 1)

    def draw(self, uniforms: Floats) -> Floats:
        """Return the uniforms."""
        return uniforms

    def abduct(self, x: Floats, lines: Floats, uniforms: Floats) -> Floats:
        """Return uniforms between the values of the distribution function around a level."""
        shares = _shares(lines)
        upper = np.cumsum(shares, axis=-1)
        at = self.codes(x)
        rows = np.arange(len(x))
        share = shares[rows, at][:, None, None]
        noise: Floats = (upper[rows, at][:, None, None] - share) + share * uniforms
        return noise

    def value(self, lines: Floats, noise: Floats) -> Floats:
        """Return the levels at which the distribution function exceeds the noise."""
        upper = np.cumsum(_shares(lines), axis=-1)[..., :-1]
        found: Floats = self._levels[(noise > upper).sum(axis=-1)]
        return found


class Nominal(Mechanism):
    """A class: the level with the largest sum of log probability and Gumbel noise.

    Rare categories share a level. Which of them it is does not depend on the parents.
    """

    kind = "class"

    def __init__(self, values: Floats, parents: Sequence[Column]) -> None:
        self._codes, at, counts = np.unique(values, return_inverse=True, return_counts=True)
        self._level = level_places(counts)
        n_levels = int(self._level.max()) + 1
        self.n_uniforms = n_levels + 1
        sizes = np.bincount(self._level, weights=counts)
        self.effects = Effects((), (), np.log(sizes / len(values)))
        if parents:
            levels = self._level[at]
            self.effects, self.n_terms = classify(levels, n_levels, parents)
            self.explained = _share_explained(self.effects, levels, parents)
        # The categories of each level, and where their shares in it end.
        self._members = [np.flatnonzero(self._level == level) for level in range(n_levels)]
        self._ends = [np.cumsum(counts[each] / counts[each].sum()) for each in self._members]

    def draw(self, uniforms: Floats) -> Floats:
        """Return Gumbel noise for each level, and a uniform for the categories within a level."""
        gumbels = -np.log(-np.log(uniforms[..., :-1]))
        return np.concatenate([gumbels, uniforms[..., -1:]], axis=-1)

    def abduct(self, x: Floats, lines: Floats, uniforms: Floats) -> Floats:
        """Return Gumbel noise given which level has the largest sum (Maddison & Tarlow, 2017)."""
        at = np.searchsorted(self._codes, x)
        levels = self._level[at]
        shares = np.broadcast_to(_shares(lines)[:, None], uniforms[..., :-1].shape)
        logs = np.log(np.maximum(shares, np.finfo(np.float64).tiny))
        waits = -np.log(uniforms[..., :-1])
        # The largest one is a Gumbel variable itself; the others are truncated at it.
        first = np.take_along_axis(waits, levels[:, None, None], axis=-1)
        largest = np.arange(shares.shape[-1]) == levels[:, None, None]
        sums = -np.log(np.where(largest, first, first + waits * np.exp(-logs)))
        low, high = self._ends_of(at)
        inside = low[:, None] + (high - low)[:, None] * uniforms[..., -1]
        return np.concatenate([sums - logs, inside[..., None]], axis=-1)

    def _ends_of(self, at: Ints) -> tuple[Floats, Floats]:
        """Return where the shares of categories in their levels begin and end."""
        low, high = np.zeros(len(self._codes)), np.ones(len(self._codes))
        for members, ends in zip(self._members, self._ends, strict=True):
            high[members] = ends
            low[members[1:]] = ends[:-1]
        return low[at], high[at]

    def value(self, lines: Floats, noise: Floats) -> Floats:
        """Return the category of the largest sum."""
        levels = (lines + noise[..., :-1]).argmax(axis=-1)
        chosen = np.empty(levels.shape, dtype=np.intp)
        for number, (members, ends) in enumerate(zip(self._members, self._ends, strict=True)):
            here = levels == number
            place = np.searchsorted(ends[:-1], noise[..., -1][here])
            chosen[here] = members[place]
        return self._codes[chosen]


class Gaps(Mechanism):
    """A number with missing values: whether it is missing, and the number if it is not."""

    kind = "number with gaps"
    n_uniforms = 2

    def __init__(
        self, values: Floats, parents: Sequence[Column], whole: Range | None = None
    ) -> None:
        absent = np.isnan(values)
        present = [Column(each.values[~absent], each.is_class) for each in parents]
        self._absent = Levels(absent.astype(np.float64), parents)
        self._number = Number(values[~absent], present, whole)
        self.effects = _Both(self._number.effects, self._absent.effects)
        self.explained, self.n_terms = self._number.explained, self._number.n_terms

    def draw(self, uniforms: Floats) -> Floats:
        """Return the noise of the number, and the noise that decides whether it is missing."""
        of_number = self._number.draw(uniforms[..., :1])
        return np.concatenate([of_number, self._absent.draw(uniforms[..., 1:])], axis=-1)

    def abduct(self, x: Floats, lines: Floats, uniforms: Floats) -> Floats:
        """Return both noises; if a number is missing, its noise is unknown and is drawn."""
        absent = np.isnan(x)
        given = self._number.abduct(np.where(absent, 0.0, x), lines[:, :1], uniforms[..., :1])
        of_number = np.where(absent[:, None, None], self._number.draw(uniforms[..., :1]), given)
        flags = absent.astype(np.float64)
        of_gap = self._absent.abduct(flags, lines[:, 1:], uniforms[..., 1:])
        return np.concatenate([of_number, of_gap], axis=-1)

    def value(self, lines: Floats, noise: Floats) -> Floats:
        """Return numbers, NaN where they are missing."""
        absent = self._absent.value(lines[..., 1:], noise[..., 1:]) > 0
        values = self._number.value(lines[..., :1], noise[..., :1])
        values[absent] = np.nan
        return values


class _Both(Effects):
    """The lines of two mechanisms with the same parents, side by side."""

    def __init__(self, one: Effects, other: Effects) -> None:
        super().__init__((), (), np.concatenate([one.intercept, other.intercept]))
        self._both = one, other

    def __len__(self) -> int:
        return max(map(len, self._both))

    def add(self, parent: int, values: Floats) -> Floats:
        """Return the effect of a parent on the lines of both."""
        parts = [
            each.add(parent, values)
            if len(each)
            else np.zeros((*values.shape, len(each.intercept)))
            for each in self._both
        ]
        return np.concatenate(parts, axis=-1)


def fit_mechanisms(
    columns: Sequence[Column],
    parents: Sequence[Sequence[int]],
    *,
    has_order: Sequence[bool],
    whole: Sequence[Range | None],
) -> tuple[Mechanism, ...]:
    """Learn the mechanism of each node from its values and those of its parents.

    Parameters
    ----------
    columns : sequence of Column
        The nodes in training.
    parents : sequence of sequences of int
        The parents of each node.
    has_order : sequence of bool
        Which classes are ordered.
    whole : sequence of Range or None
        The range of nodes that are whole numbers.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(500, 2))
    >>> nodes = [Column(x[:, 0], False), Column(2 * x[:, 0] + x[:, 1], False)]
    >>> made = fit_mechanisms(nodes, [[], [0]], has_order=[False] * 2, whole=[None] * 2)
    >>> made[1].kind, round(made[1].explained, 1)
    ('number', 0.8)
    """
    made: list[Mechanism] = []
    for at, column in enumerate(columns):
        given = [columns[parent] for parent in parents[at]]
        values = column.values
        absent = np.isnan(values)
        if column.is_class or absent.all() or np.unique(values).size == 1:
            is_levels = has_order[at] or not column.is_class or np.unique(values).size <= 2
            made.append(Levels(values, given) if is_levels else Nominal(values, given))
        elif absent.any():
            made.append(Gaps(values, given, whole[at]))
        else:
            made.append(Number(values, given, whole[at]))
    return tuple(made)


def _shares(lines: Floats) -> Floats:
    """Return probabilities whose logarithms are the lines, up to a constant."""
    weights = np.exp(lines - lines.max(axis=-1, keepdims=True))
    shares: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def _share_explained(effects: Effects, codes: Ints, parents: Sequence[Column]) -> float:
    """Return the share of the deviance that the parents explain."""
    logs = np.log(np.maximum(_shares(effects.lines([each.values for each in parents])), 1e-300))
    shares = np.bincount(codes) / len(codes)
    base = float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())
    return 1.0 + float(logs[np.arange(len(codes)), codes].mean()) / base if base else 0.0
