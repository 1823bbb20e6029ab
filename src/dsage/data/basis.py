"""Basis columns that represent one column: functions of a number, or indicators of a class."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

Floats = npt.NDArray[np.float64]

# Knots of the distribution function of a column: all of its values, up to this number.
_MAX_KNOTS = 1 << 14
# A function is left out if the functions before it explain all but this share of its variance.
_EXPLAINED = 1e-3
# A function whose variance is below this is constant up to rounding; functions are of order one.
_CONSTANT = 1e-9
# The degrees of the polynomials, in the order in which they are added: degree 1 comes late, because
# a lead is nearly the same.
_ORDER = (2, 3, 1, 4, 5, 6, 7, 8)
# A tail is cut at this many standard deviations.
_TAIL = 3.0
# Tails are heavy if less than this share of the variance is left then.
_HEAVY = 0.5
# Categories with an indicator of their own; all others share one.
_MAX_INDICATORS = 15


class NumberBasis(NamedTuple):
    """Orthonormal functions of a number: leads, then polynomials of its rank.

    The leads are the standardised number itself (``"value"``), its normal score (``"score"``), or
    the number cut at three standard deviations (``"tail"``). The others are Legendre polynomials of
    ``2 F(x) - 1``, where F is the distribution function of the column. Each function is made
    orthogonal to the ones before it, and left out if they explain it. All functions of a missing
    value are 0.

    Examples
    --------
    >>> values = np.random.default_rng(0).exponential(size=1000)
    >>> basis = NumberBasis.fit(values, 4, leads=("score", "value"))
    >>> functions = basis(values)
    >>> np.allclose(functions.T @ functions / 1000, np.eye(4))
    True
    """

    knots: Floats  # (n_knots,): values in increasing order
    levels: Floats  # (n_knots,): F at the knots, within (0, 1)
    center: float
    scale: float
    leads: tuple[str, ...]
    means: Floats  # (n_raw,): of the functions before they are made orthonormal
    weights: Floats  # (n_raw, n_functions)

    @classmethod
    def fit(cls, values: Floats, n_functions: int, *, leads: tuple[str, ...] = ("value",)) -> Self:
        """Fit at most `n_functions` to the values of a column; NaN is ignored."""
        return cls.fit_evaluate(values, n_functions, leads=leads)[0]

    @classmethod
    def fit_evaluate(
        cls, values: Floats, n_functions: int, *, leads: tuple[str, ...] = ("value",)
    ) -> tuple[Self, tuple[Floats, Floats, Floats]]:
        """Fit the functions, and evaluate them at the same values."""
        absent = np.isnan(values)
        present = values[~absent]
        knots, levels, rank = _rank(present)
        center, scale = float(present.mean()), float(present.std())
        nothing = np.empty((n_functions, 0))
        made = cls(knots, levels, center, scale or 1.0, leads, np.empty(0), nothing)
        value, score, raw = made._raw(present, rank)
        means = raw.mean(axis=0)
        raw -= means
        made = made._replace(means=means, weights=_orthogonalize(raw))
        functions: Floats = raw @ made.weights
        if absent.any():
            functions, value, score = (
                _fill_missing(each, absent) for each in (functions, value, score)
            )
        return made, (functions, value, score)

    def first(self, n_functions: int) -> Self:
        """Return the basis of the first functions, as if at most `n_functions` had been fitted."""
        among = ~self.weights[n_functions:].any(axis=0)
        weights = self.weights[:n_functions, among]
        return self._replace(means=self.means[:n_functions], weights=weights)

    def __call__(self, values: Floats) -> Floats:
        """Return the functions of values, (n_rows, n_functions)."""
        return self.evaluate(values)[0]

    def evaluate(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the functions of values, the standardised values and their normal scores."""
        absent = np.isnan(values)
        is_complete = not absent.any()
        value, score, raw = self._raw(
            values if is_complete else np.where(absent, self.center, values)
        )
        functions: Floats = (raw - self.means) @ self.weights
        if not is_complete:
            for made in (functions, value, score):
                made[absent] = 0.0
        return functions, value, score

    def _raw(self, values: Floats, rank: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """Return values, their normal scores, and the functions that are not yet orthonormal."""
        if rank is None:
            rank = np.interp(values, self.knots, self.levels)
        value: Floats = (values - self.center) / self.scale
        score: Floats = ndtri(rank)
        rank *= 2.0
        rank -= 1.0
        degrees = _ORDER[: max(0, len(self.weights) - len(self.leads))]
        made = {"value": value, "score": score}
        if "tail" in self.leads:
            made["tail"] = _cut(value)
        leads = [made[lead] for lead in self.leads]
        polynomials = _legendre(max(degrees, default=0), rank)
        raw = [*leads, *(polynomials[degree] for degree in degrees)][: len(self.weights)]
        return value, score, np.array(raw).T


def is_heavy(values: Floats) -> bool:
    """Return whether values beyond three standard deviations have half of the variance, or more.

    >>> rng = np.random.default_rng(0)
    >>> is_heavy(rng.exponential(size=1000)), is_heavy(rng.standard_cauchy(size=1000))
    (False, True)
    """
    deviation = float(values.std())
    if deviation == 0.0:
        return False
    return bool(_cut((values - values.mean()) / deviation).var() < _HEAVY)


def _cut(standard: Floats) -> Floats:
    """Return standardised values, cut at the tails."""
    cut: Floats = np.clip(standard, -_TAIL, _TAIL)
    return cut


def _fill_missing(present: Floats, absent: npt.NDArray[np.bool_]) -> Floats:
    """Return rows with 0 where values are missing."""
    whole = np.zeros((len(absent), *present.shape[1:]))
    whole[~absent] = present
    return whole


def distribution(values: Floats) -> tuple[Floats, Floats]:
    """Return knots and the distribution function there: mid-ranks divided by the number of values.

    >>> distribution(np.array([3.0, 1.0, 1.0, 2.0]))
    (array([1., 2., 3.]), array([0.25 , 0.625, 0.875]))
    """
    return _rank(values)[:2]


def _rank(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return knots, the distribution function there, and at the values."""
    knots, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    levels = (np.cumsum(counts) - 0.5 * counts) / len(values)
    if len(knots) <= _MAX_KNOTS:
        return knots, levels, levels[at]
    kept = np.linspace(0, len(knots) - 1, _MAX_KNOTS).round().astype(np.intp)
    knots, levels = knots[kept], levels[kept]
    return knots, levels, np.interp(values, knots, levels)


def level_places(counts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the level of each code, for the number of times that each of them occurs.

    There are at most 17 levels: the most frequent code has level 0, and rare ones share the last.

    >>> level_places(np.array([0, 1, 3]))
    array([2, 1, 0])
    """
    place = np.empty(len(counts), dtype=np.intp)
    place[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(place, _MAX_INDICATORS + 1)


def indicators(levels: npt.NDArray[np.intp]) -> Floats:
    """Return the indicators of all levels but 0, (n_rows, n_levels - 1).

    >>> indicators(np.array([1, 0, 2]))
    array([[1., 0.],
           [0., 0.],
           [0., 1.]])
    """
    others = np.arange(1, int(levels.max(initial=0)) + 1)
    made: Floats = (levels[:, None] == others).astype(np.float64)
    return made


def _legendre(degree: int, x: Floats) -> list[Floats]:
    """Return the Legendre polynomials of degrees 0, 1, ..., `degree`, by their recurrence.

    >>> _legendre(2, np.array([0.0, 1.0]))[2]
    array([-0.5,  1. ])
    """
    made = [np.ones_like(x), x]
    for at in range(1, degree):
        made.append(((2 * at + 1) * x * made[at] - at * made[at - 1]) / (at + 1))
    return made


def _orthogonalize(raw: Floats) -> Floats:
    """Return weights that make centered columns orthonormal, one after the other.

    Columns that are explained by the ones before them are left out. Covariances are precise enough
    for this, because the rest of a column that is kept is far above rounding errors.
    """
    n_rows, n_raw = raw.shape
    covariance = raw.T @ raw / n_rows
    weights = np.zeros((n_raw, 0))
    for place in range(n_raw):
        weight = np.zeros(n_raw)
        weight[place] = 1.0
        for _ in range(2):
            weight -= weights @ (weights.T @ (covariance @ weight))
        left = float(weight @ covariance @ weight)
        if left > _EXPLAINED * max(float(covariance[place, place]), _CONSTANT):
            weights = np.column_stack([weights, weight / np.sqrt(left)])
    return weights
