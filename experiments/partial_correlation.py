"""Test partial correlations along orderings, from the covariance matrix or with pingouin."""

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

_PINGOUIN_DECIMALS = 2


def partial_correlations(covariance: Floats, questions: Questions) -> Floats:
    """Return the partial correlations of the target with each feature given those before it.

    One Cholesky factor ``Sigma = L L'`` per ordering suffices. With the columns in that order
    and the target last, the entry ``l_k`` of the last row is the covariance of the target with
    feature k given those before it, divided by that feature's conditional standard deviation.
    The target's conditional variance is ``Sigma_yy - l_1^2 - ... - l_{k-1}^2``.

    Parameters
    ----------
    covariance : array of shape (n_features + 1, n_features + 1)
        Covariance matrix of the features and, last, the target.
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
    """Return two-sided p-values for the hypothesis of no partial correlation.

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
    """Return where a bound of the 95 % interval is 0 when rounded to two decimals.

    This is the rule of the paper's script, which reads the rounded intervals of pingouin. With a
    million rows the interval is about 0.004 wide: both bounds round to 0 for correlations below
    about 0.003, and one of them does up to about 0.007.

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
    return np.asarray((bounds.round(_PINGOUIN_DECIMALS) == 0).any(axis=0))


def has_pingouin() -> bool:
    """Return whether pingouin is installed, and warn if it is not."""
    if find_spec("pingouin") is not None:
        return True
    warnings.warn(
        "pingouin is not installed, so its column is left out. Install it with: "
        "pip install 'dsage[paper]'.",
        stacklevel=2,
    )
    return False


def pingouin_p_values(data: pd.DataFrame, target: str, questions: Questions) -> Floats:
    """Return the p-values of pingouin's ``partial_corr``, which reads the rows in every call.

    Parameters
    ----------
    data : data frame of shape (n_rows, n_features + 1)
        The features in the order of the questions, and the target.
    target : str
        Name of the target.
    questions : Questions
        The orderings, possibly of only some of the features.

    Returns
    -------
    array of shape (n_orderings, n_features)
    """
    partial_corr = import_module("pingouin").partial_corr
    features = [str(name) for name in data.columns if name != target]

    def run_tests() -> Iterator[float]:
        for ordering in questions.orderings:
            names = [features[feature] for feature in ordering]
            for k, name in enumerate(names):
                result = partial_corr(data, x=name, y=target, covar=names[:k])
                yield float(result["p_val"].iloc[0])

    return np.fromiter(run_tests(), np.float64, len(questions)).reshape(questions.orderings.shape)
