"""Confidence intervals and tests for values with standard errors.

A standard error of zero means that the value is exact; NaN or infinity, that its error is not known
yet. Degrees of freedom measure the precision of the standard error itself.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from dsage._check import refusal

Floats = npt.NDArray[np.float64]

MIN_UNITS = 30
"""Units needed before a standard error is trusted; with fewer it is often far too small."""


def intervals(
    values: npt.ArrayLike,
    se: npt.ArrayLike,
    confidence: float = 0.95,
    *,
    df: npt.ArrayLike = np.inf,
) -> tuple[Floats, Floats]:
    """Return the two-sided confidence interval ``value -+ q se`` of each value.

    Parameters
    ----------
    values, se : arrays of shape (n_features,)
        Estimates and their standard errors.
    confidence : float, default=0.95
        Coverage probability of the interval of a *single* feature.
    df : float or array of shape (n_features,), default=inf
        Degrees of freedom of the standard errors; q is the quantile of Student's distribution.

    Returns
    -------
    low, high : arrays of shape (n_features,)
        Equal if the standard error is 0; -inf and inf if it is unknown.

    Examples
    --------
    >>> low, high = intervals([1.0, 2.0], [0.5, 0.0])
    >>> low.round(2), high.round(2)
    (array([0.02, 2.  ]), array([1.98, 2.  ]))
    """
    values, se, df = _check(values, se, df)
    return _ends(values, se, df, _check_confidence(confidence))


def simultaneous_intervals(
    values: npt.ArrayLike,
    se: npt.ArrayLike,
    confidence: float = 0.95,
    *,
    df: npt.ArrayLike = np.inf,
) -> tuple[Floats, Floats]:
    """Return intervals that cover *all* values at once with probability at least `confidence`.

    Each of the m intervals has confidence ``confidence ** (1 / m)``. By Šidák's inequality (1967),
    centered jointly normal errors lie in a box at least as often as independent ones, whatever
    their correlations, so the joint confidence is at least the product. Exact values do not count
    in m. With finite `df` this is a convention rather than a theorem; Bonferroni's correction,
    which needs no assumption, would allow each interval an error rate at most 3 % smaller at
    confidence 0.95.

    Parameters
    ----------
    values, se : arrays of shape (n_features,)
        Estimates and their standard errors.
    confidence : float, default=0.95
        Joint coverage probability.
    df : float or array of shape (n_features,), default=inf
        Degrees of freedom of the standard errors.

    Returns
    -------
    low, high : arrays of shape (n_features,)

    Examples
    --------
    >>> low, high = simultaneous_intervals([1.0, 2.0], [0.5, 0.5])
    >>> low.round(2), high.round(2)
    (array([-0.12,  0.88]), array([2.12, 3.12]))
    """
    values, se, df = _check(values, se, df)
    n_uncertain = max(int(np.count_nonzero(se)), 1)
    return _ends(values, se, df, _check_confidence(confidence) ** (1 / n_uncertain))


def interval_columns(
    values: Floats, se: Floats, confidence: float, df: npt.ArrayLike
) -> dict[str, Floats]:
    """Return the columns of a table of values: errors, and both kinds of intervals."""
    lower, upper = intervals(values, se, confidence, df=df)
    lowest, highest = simultaneous_intervals(values, se, confidence, df=df)
    return {"se": se, "lower": lower, "upper": upper, "lower_all": lowest, "upper_all": highest}


def p_values(values: npt.ArrayLike, se: npt.ArrayLike, *, df: npt.ArrayLike = np.inf) -> Floats:
    """Return the p-value of each feature for the hypothesis that its value is not positive.

    The test is one-sided: the probability of an estimate at least as large if the value were 0.

    Parameters
    ----------
    values, se : arrays of shape (n_features,)
        Estimates and their standard errors.
    df : float or array of shape (n_features,), default=inf
        Degrees of freedom of the standard errors.

    Returns
    -------
    array of shape (n_features,)
        0 for an exact positive value, 1 for any other exact value or an unknown error.

    Examples
    --------
    >>> p_values([1.0, -1.0, 0.3], [0.5, 0.5, 0.0]).round(3)
    array([0.023, 0.977, 0.   ])
    """
    values, se, df = _check(values, se, df)
    exact = np.where(values > 0, 0.0, 1.0)
    has_error = np.isfinite(se) & (se > 0)
    ratio = np.divide(values, se, out=np.zeros_like(values), where=has_error)
    tested = np.asarray(stats.t.sf(ratio, df), dtype=np.float64)
    return np.where(has_error, tested, np.where(se == 0, exact, 1.0))


def holm(p: npt.ArrayLike) -> Floats:
    """Return p-values adjusted for multiple testing, by Holm's step-down method (1979).

    Rejecting where the adjusted value is at most alpha rejects any true hypothesis with probability
    at most alpha, whatever the dependence: the k-th smallest of m is multiplied by m - k + 1, and
    the results are made monotone.

    Parameters
    ----------
    p : array of shape (n_features,)
        P-values.

    Returns
    -------
    array of shape (n_features,)

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise refusal("p", "a vector of numbers in [0, 1]", p, "Pass p-values")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def effective_df(variances: npt.ArrayLike, df: npt.ArrayLike) -> Floats:
    """Return the degrees of freedom of a sum of independent variance estimates.

    Satterthwaite (1946): ``(sum_i V_i)^2 / sum_i (V_i^2 / df_i)``, for an estimate that is a sum of
    independent parts, such as terms.

    Parameters
    ----------
    variances : array of shape (n_parts, n_features)
        Variance of each part.
    df : array of shape (n_parts,) or (n_parts, n_features)
        Degrees of freedom of each of them.

    Returns
    -------
    array of shape (n_features,)
        inf if all variances are 0.

    Examples
    --------
    >>> effective_df([[1.0, 4.0, 0.0], [1.0, 0.0, 0.0]], [9, 9])
    array([18.,  9., inf])
    """
    variances = np.asarray(variances, dtype=np.float64)
    df = np.asarray(df, dtype=np.float64)
    if variances.ndim != 2 or not (variances >= 0).all():
        condition = "non-negative numbers of shape (n_parts, n_features)"
        raise refusal("variances", condition, variances, "Pass one row per part")
    if df.shape not in (variances.shape, variances.shape[:1]) or not (df > 0).all():
        raise refusal("df", "positive, one per part", df, "Pass the number of units minus one")
    df = df if df.ndim == 2 else df[:, None]
    total = variances.sum(axis=0)
    # Shares are squared rather than variances, because the square of a tiny variance underflows.
    shares = np.divide(variances, total, out=np.zeros_like(variances), where=total > 0)
    spread = (shares**2 / df).sum(axis=0)
    result: Floats = np.divide(1.0, spread, out=np.full_like(total, np.inf), where=spread > 0)
    return result


def _ends(values: Floats, se: Floats, df: Floats, confidence: float) -> tuple[Floats, Floats]:
    half = np.where(np.isfinite(se), se, np.inf)
    # (1 + confidence) / 2 would lose digits for a confidence close to one.
    half = np.where(half > 0, stats.t.isf((1 - confidence) / 2, df) * half, 0.0)
    return values - half, values + half


def _check(
    values: npt.ArrayLike, se: npt.ArrayLike, df: npt.ArrayLike
) -> tuple[Floats, Floats, Floats]:
    values, se, df = (np.asarray(given, dtype=np.float64) for given in (values, se, df))
    if values.ndim != 1 or not np.isfinite(values).all():
        raise refusal("values", "a vector of finite numbers", values, "Check the model")
    if se.shape != values.shape or (se < 0).any():
        raise refusal("se", f"{len(values)} numbers of 0 or more", se, "Pass one per value")
    if df.shape not in ((), values.shape) or not (df > 0).all():
        condition = f"one positive number or {len(values)}"
        raise refusal("df", condition, df, "Pass inf for exact standard errors")
    return values, se, np.broadcast_to(df, values.shape)


def _check_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise refusal("confidence", "between 0 and 1", confidence, "Use a number such as 0.95")
    return float(confidence)
