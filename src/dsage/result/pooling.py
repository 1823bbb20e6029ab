"""Statistics of several estimates of one value: folds, and random effects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from dsage.games.base import Floats

# Errors below this share of the largest error count as zero.
_TINY = 1e-9


def corrected_error(values: Floats, weights: Floats, n_train: Floats, n_test: Floats) -> Floats:
    """Return the standard error of the mean over folds whose training rows overlap.

    Nadeau and Bengio (2003): the values of J folds have the sample variance S^2, but they are not
    independent, since their models share training rows. Their mean has a variance of about
    ``(1/J + n_test/n_train) S^2``. With repeated cross-validation J counts all folds (Bouckaert
    and Frank, 2004). Here 1/J is the sum of the squared weights, and the ratio of rows is the mean
    over folds.

    Parameters
    ----------
    values : array of shape (n_folds, n_features)
        The values of each fold.
    weights : array of shape (n_folds,)
        The weights of the folds, which add up to 1.
    n_train, n_test : arrays of shape (n_folds,)
        Numbers of training rows and evaluation rows.

    Returns
    -------
    array of shape (n_features,)
        NaN for a single fold.

    Examples
    --------
    >>> values = np.array([[1.0], [2.0], [3.0], [2.0], [2.0]])
    >>> equal = np.full(5, 0.2)
    >>> corrected_error(values, equal, np.full(5, 80.0), np.full(5, 20.0)).round(4)
    array([0.4743])
    """
    factor = float((weights**2).sum() + weights @ (n_test / n_train))
    error: Floats = np.sqrt(factor) * spread(values)
    return error


def spread(values: Floats) -> Floats:
    """Return the standard deviation between the lines of a table; NaN for a single one."""
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    found: Floats = values.std(axis=0, ddof=1)
    return found


def number_repeats(tests: Iterable[npt.NDArray[np.intp]]) -> tuple[int, ...]:
    """Return the number of the repeat of each fold, from 1.

    A new repeat starts when a fold evaluates a row that the current repeat has already evaluated.

    Examples
    --------
    >>> rows = np.arange(4)
    >>> number_repeats([rows[:2], rows[2:], rows[::2], rows[1::2]])
    (1, 1, 2, 2)
    """
    numbers: list[int] = []
    seen: set[int] = set()
    for test in tests:
        rows = set(test.tolist())
        is_new = not numbers or bool(rows & seen)
        seen = rows if is_new else seen | rows
        numbers.append((numbers[-1] if numbers else 0) + is_new)
    return tuple(numbers)


def error_of_rows(se_rows: Floats, weights: Floats, repeats: Sequence[int]) -> Floats:
    """Return the error from the choice of the rows of a weighted mean over folds.

    The folds of a repeat have different rows, so their errors are independent. All repeats have
    the same rows, so their errors are not independent; their sum is an upper bound.
    """
    squares = (weights[:, None] * se_rows) ** 2
    numbers = np.asarray(repeats)
    parts = [np.sqrt(squares[numbers == number].sum(axis=0)) for number in np.unique(numbers)]
    total: Floats = np.sum(parts, axis=0)
    return total


class RandomEffects(NamedTuple):
    """The mean of several estimates of one value, and how much the values themselves differ.

    `se` is the standard error of the mean, and `df` its degrees of freedom. `spread` is the
    standard deviation of the true values, `p_spread` the p-value of the hypothesis that it is zero
    (Cochran's Q). Arrays of shape (n_features,).
    """

    values: Floats
    se: Floats
    df: float
    spread: Floats
    p_spread: Floats


def random_effects(values: Floats, se: Floats) -> RandomEffects:
    """Return the random-effects mean of estimates with known errors, for each column.

    The spread is the estimate of Paule and Mandel (1982), for which the weighted sum of squares
    around the mean equals its expectation. The error of the mean is the estimate of Hartung and
    Knapp (2001), but never smaller than the error from the weights alone; it has one degree of
    freedom fewer than there are estimates.

    Parameters
    ----------
    values, se : arrays of shape (n_estimates, n_features)
        Estimates and their standard errors.

    Examples
    --------
    >>> found = random_effects(np.array([[1.0], [1.2], [3.0]]), np.full((3, 1), 0.1))
    >>> found.values.round(2), found.spread.round(2), found.df
    (array([1.73]), array([1.1]), 2.0)
    """
    n_estimates, n_features = values.shape
    found = [_pool(values[:, at], se[:, at]) for at in range(n_features)]
    mean, error, tau, p = (np.array(each) for each in zip(*found, strict=True))
    return RandomEffects(mean, error, float(n_estimates - 1), tau, p)


def _pool(values: Floats, se: Floats) -> tuple[float, float, float, float]:
    """Return mean, error, spread and the p-value of the spread of one feature."""
    n_estimates = len(values)
    deviation = float(values.std(ddof=1))
    scale = max(deviation, float(se.max()))
    if not scale > _TINY * float(np.abs(values).max()):
        return float(values.mean()), 0.0, 0.0, 1.0
    # A value without an error would have all the weight.
    least = _TINY * scale
    variances = np.maximum(se, least) ** 2
    sum_of_squares = _sum_of_squares(0.0, values, variances)
    p = float(stats.chi2.sf(sum_of_squares, n_estimates - 1))
    tau2 = 0.0
    if sum_of_squares > n_estimates - 1:
        # At the sample variance the sum is below its expectation.
        tau2 = optimize.brentq(
            lambda tau2: _sum_of_squares(tau2, values, variances) - (n_estimates - 1),
            0.0,
            deviation**2 * 1.0001,
        )
    weights = 1.0 / (variances + tau2)
    mean = float(weights @ values / weights.sum())
    excess = _sum_of_squares(tau2, values, variances) / (n_estimates - 1)
    error = float(np.sqrt(max(excess, 1.0) / weights.sum()))
    return mean, error if error > least else 0.0, float(np.sqrt(tau2)), p


def _sum_of_squares(tau2: float, values: Floats, variances: Floats) -> float:
    weights = 1.0 / (variances + tau2)
    mean = weights @ values / weights.sum()
    return float(weights @ (values - mean) ** 2)
