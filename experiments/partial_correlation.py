"""Tests of partial correlation along orderings, from the covariance matrix or by pingouin."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from experiments.simulate import Questions

Floats = npt.NDArray[np.float64]

# Decimals to which pingouin prints an interval.
_PRINTED = 2


def partial_correlations(covariance: Floats, questions: Questions) -> Floats:
    """Return the partial correlations of the target with each next feature of each ordering.

    One Cholesky factor serves an ordering: with the columns in its order and the target last,
    ``Sigma = L L'``, the entry ``l_k`` of the last row is the covariance of the target with
    feature k given those before it, divided by that feature's conditional deviation; the
    target's conditional variance is ``Sigma_yy - l_1^2 - ... - l_{k-1}^2``.

    Parameters
    ----------
    covariance : array of shape (n_features + 1, n_features + 1)
        Of the features and, last, the target.
    questions : Questions
        The orderings.

    Returns
    -------
    array of shape (n_orderings, n_features)

    Examples
    --------
    >>> covariance = np.array([[1.0, 0.5, 0.4], [0.5, 1.0, 0.8], [0.4, 0.8, 1.0]])
    >>> partial_correlations(covariance, Questions(np.array([[0, 1], [1, 0]]))).round(3)
    array([[0.4  , 0.756],
           [0.8  , 0.   ]])
    """
    n_orderings, n_features = questions.orderings.shape
    target = np.full((n_orderings, 1), n_features)
    order = np.concatenate([questions.orderings, target], axis=1)
    factors = np.linalg.cholesky(covariance[order[:, :, None], order[:, None, :]])
    row = factors[:, -1, :-1]
    explained = np.cumsum(row**2, axis=1) - row**2
    return np.asarray(row / np.sqrt(covariance[-1, -1] - explained))


def p_values(correlations: Floats, n_rows: int) -> Floats:
    """Return the two-sided p-values of no partial correlation.

    ``t = r sqrt(df / (1 - r^2))`` with ``df = n_rows - 2 - k`` after k known features.

    Examples
    --------
    >>> p_values(np.array([[0.5, 0.0]]), n_rows=20).round(4)
    array([[0.0248, 1.    ]])
    """
    freedom = n_rows - 2 - np.arange(correlations.shape[1])
    t = correlations * np.sqrt(freedom / (1 - correlations**2))
    return np.asarray(2 * stats.t.sf(np.abs(t), freedom))


def has_zero_bound(correlations: Floats, n_rows: int) -> npt.NDArray[np.bool_]:
    """Tell where a bound of the 95 % interval is 0 as pingouin prints it, with two decimals.

    The rule of the paper's script. With a million rows the interval is about 0.004 wide: both
    bounds are 0 unless the correlation is about 0.003 or more, and one is up to about 0.007.

    Examples
    --------
    >>> has_zero_bound(np.array([[0.001, 0.006, 0.01]]), n_rows=1_000_000)
    array([[ True,  True, False]])
    >>> has_zero_bound(np.array([[0.0]]), n_rows=10_000)
    array([[False]])
    """
    deviation = 1 / np.sqrt(n_rows - np.arange(correlations.shape[1]) - 3)
    middle, half = np.arctanh(correlations), stats.norm.ppf(0.975) * deviation
    bounds = np.stack([np.tanh(middle - half), np.tanh(middle + half)])
    return np.asarray((bounds.round(_PRINTED) == 0).any(axis=0))


def has_pingouin() -> bool:
    """Tell whether pingouin is there; warn where it is not."""
    if find_spec("pingouin") is not None:
        return True
    warnings.warn(
        "pingouin is not installed: its column is left out. Install it with: "
        "pip install 'dsage[paper]'.",
        stacklevel=2,
    )
    return False


def pingouin_p_values(data: pd.DataFrame, target: str, questions: Questions) -> Floats:
    """Return the p-values of pingouin's ``partial_corr``, which is given the rows every time.

    Parameters
    ----------
    data : data frame of shape (n_rows, n_features + 1)
        The features in the order of the questions, and the target.
    target : str
        Its name.
    questions : Questions
        The orderings; they may be of fewer features, too.

    Returns
    -------
    array of shape (n_orderings, n_features)
    """
    partial_corr = import_module("pingouin").partial_corr
    features = [str(name) for name in data.columns if name != target]

    def tested() -> Iterator[float]:
        for ordering in questions.orderings:
            names = [features[feature] for feature in ordering]
            for k, name in enumerate(names):
                result = partial_corr(data, x=name, y=target, covar=names[:k])
                yield float(result["p_val"].iloc[0])

    return np.fromiter(tested(), np.float64, len(questions)).reshape(questions.orderings.shape)
