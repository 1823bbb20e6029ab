"""The energy score: the distance of draws from a held-out row."""

from __future__ import annotations

import math

import numpy as np

from dsage.samplers.checks import Floats, Ints, Mask

_CHUNK = 2**22  # distances computed at a time


def energy_scores(
    X: Floats,
    draws: Floats,
    features: Ints,
    n_categories: Ints,
    scale: Floats,
    *,
    in_two_sets: bool = False,
    center: Floats | None = None,
) -> Floats:
    """Return the unbiased energy score of each row, divided by the root of the number of features.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        The rows.
    draws : array of shape (n_rows, n_draws, n_features)
        Draws for each row, independent of each other, or in two independent sets.
    features : int array
        The columns that count; without any, scores are 0.
    n_categories : int array of shape (n_features,)
        The numbers of categories: two different classes are sqrt(2) apart, as points of one column
        per category. Numbers have 0.
    scale : array of shape (n_features,)
        Divisors of the numbers. A missing number is a separate point: the mean, and 1 in an
        indicator column.
    in_two_sets : bool, default=False
        Whether only the first half of the draws of a row is independent of the second. Distances
        between draws are then those between the halves.
    center : array of shape (n_features,), optional
        Where missing numbers lie; by default at the means of the rows.

    Returns
    -------
    array of shape (n_rows,)
    """
    n_rows, n_draws, _ = draws.shape
    if not len(features):
        return np.zeros(n_rows)
    is_class = n_categories[features] > 0
    classes, numbers = features[is_class], features[~is_class]
    missing = has_gaps(X[:, numbers]) | has_gaps(draws[:, :, numbers])
    middle = column_means(X[:, numbers]) if center is None else center[numbers]
    scores = np.empty(n_rows)
    step = max(1, _CHUNK // n_draws**2)
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        points = _embed(draws[rows][:, :, numbers], middle, scale[numbers], missing)
        row = _embed(X[rows][:, None, numbers], middle, scale[numbers], missing)
        drawn, own = draws[rows][:, :, classes], X[rows][:, None, classes]
        to_row = np.sqrt(_squares(points, row, drawn, own)[:, :, 0]).mean(axis=1)
        if in_two_sets:
            half = n_draws // 2
            squares = _squares(points[:, :half], points[:, half:], drawn[:, :half], drawn[:, half:])
            among = np.sqrt(squares).mean(axis=(1, 2)) / 2
        else:
            squares = _squares(points, points, drawn, drawn)
            # Rounding would leave a distance of a draw to itself.
            squares[:, np.arange(n_draws), np.arange(n_draws)] = 0.0
            among = np.sqrt(squares).sum(axis=(1, 2)) / (2 * n_draws * (n_draws - 1))
        scores[rows] = to_row - among
    scores /= math.sqrt(len(features))
    return scores


def has_gaps(values: Floats) -> Mask:
    """Return which columns, along the last axis, have missing values."""
    return np.asarray(np.isnan(values).any(axis=tuple(range(values.ndim - 1))), np.bool_)


def column_scales(X: Floats) -> Floats:
    """Return the standard deviation of each column over what is not missing; 1 if it is 0."""
    present = ~np.isnan(X)
    off = np.where(present, X - column_means(X), 0.0)
    # Divided first: the squares of large numbers overflow.
    largest = np.maximum(np.abs(off).max(axis=0, initial=0.0), 1e-300)
    deviation: Floats = largest * np.sqrt(
        ((off / largest) ** 2).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    )
    scales: Floats = np.where(deviation > 0, deviation, 1.0)
    return scales


def column_means(X: Floats) -> Floats:
    """Return the mean of each column over what is not missing; 0 if everything is."""
    present = ~np.isnan(X)
    means: Floats = np.where(present, X, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return means


def _embed(values: Floats, center: Floats, scale: Floats, missing: Mask) -> Floats:
    """Return numbers as points; each column with missing values has one more coordinate."""
    points: Floats = (values - center) / scale
    if not missing.any():
        return points
    gaps = np.isnan(points)
    return np.concatenate([np.where(gaps, 0.0, points), gaps[..., missing]], axis=-1)


def _squares(a: Floats, b: Floats, a_classes: Floats, b_classes: Floats) -> Floats:
    """Return the squared distances of points (n_rows, n_a, n_b)."""
    norms = [np.einsum("rkf,rkf->rk", each, each) for each in (a, b)]
    squares: Floats = norms[0][:, :, None] + norms[1][:, None, :]
    squares -= 2.0 * np.matmul(a, np.swapaxes(b, 1, 2))
    np.maximum(squares, 0.0, out=squares)
    for one, other in zip(np.moveaxis(a_classes, 2, 0), np.moveaxis(b_classes, 2, 0), strict=True):
        squares += 2.0 * (one[:, :, None] != other[:, None, :])
    return squares
