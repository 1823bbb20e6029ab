"""Find the columns of wide tables that linear regressions may not explain, at a bounded cost."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dsage.data.rows import Rows, spread
from dsage.data.table import normal_scores
from dsage.structure.blocks import N_TERMS, NEGENTROPY, negentropy

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

# Number of rows that are used, and of columns whose functions are in memory at once.
_MAX_ROWS, _CHUNK = 4_000, 128
# Numbers of functions of a column, in addition to the column itself, that are tested together.
_SIZES = (3, N_TERMS - 1)
# A column is suspect if it gains as large a share of what it must.
_SHARE = 0.5


class Suspect(NamedTuple):
    """A column, the one whose functions may explain it, and by how much, in nats."""

    node: int
    other: int
    gain: float


def find_suspects(
    rows: Rows, parents: Sequence[Sequence[int]], *, price: float, margin: float
) -> list[Suspect]:
    """Return the columns that may be curved, those that gain most first.

    In linear-Gaussian data, no function of a column that is uncorrelated with the column itself is
    correlated with the residuals of a linear regression. So one product of matrices shows for all
    pairs of columns whether functions of one may explain the other. It uses 4,000 rows at most,
    evenly spread, and 7 functions of each column, and ignores what functions of several columns
    have in common: columns that it finds must be looked at more closely. Numbers that are not
    normal are found too.

    Parameters
    ----------
    rows : Rows
        Of numbers.
    parents : sequence of sequences of int
        The parents of each column in a linear graph.
    price : float
        Of a function, in nats.
    margin : float
        What a column must gain more than that.
    """
    picked = rows.pick(spread(rows.n_rows, _MAX_ROWS))
    columns = _standardize(picked)
    residuals = _residuals(columns, parents)
    n_rows, n_nodes = columns.shape
    gain = np.zeros(n_nodes)
    other = np.arange(n_nodes)
    for first in range(0, n_nodes, _CHUNK):
        functions = _functions(picked[:, first : first + _CHUNK])
        related = residuals.T @ functions.reshape(n_rows, -1) / np.float32(n_rows)
        explained = (related**2).reshape(n_nodes, -1, N_TERMS - 1).cumsum(axis=2)
        for size in _SIZES:
            # The share explained by chance, plus three standard deviations of it.
            chance = (size + 3 * np.sqrt(2 * size)) / n_rows
            surplus = explained[:, :, size - 1].astype(np.float64) - chance
            worth = 0.5 * rows.n_rows * surplus - _SHARE * (size * price + margin)
            at = np.arange(first, first + worth.shape[1])
            worth[at, at - first] = -np.inf
            best = worth.argmax(axis=1)
            found = worth[np.arange(n_nodes), best]
            other = np.where(found > gain, first + best, other)
            gain = np.maximum(gain, found)
    gain += rows.n_rows * _surpluses(picked)
    order = np.argsort(-gain, kind="stable")
    return [Suspect(int(at), int(other[at]), float(gain[at])) for at in order if gain[at] > 0.0]


def _standardize(columns: Floats) -> Floats:
    """Return columns of mean 0 and variance 1; missing values are 0."""
    centered = np.nan_to_num(columns - np.nanmean(columns, axis=0))
    deviation = centered.std(axis=0)
    standard: Floats = centered / np.where(deviation > 0.0, deviation, 1.0)
    return standard


def _residuals(columns: Floats, parents: Sequence[Sequence[int]]) -> Singles:
    """Return the standardised residuals of each column, given its parents."""
    left = columns.copy()
    for node, known in enumerate(parents):
        if len(known):
            design = columns[:, list(known)]
            slopes, *_ = np.linalg.lstsq(design.T @ design, design.T @ columns[:, node])
            left[:, node] -= design @ slopes
    return _standardize(left).astype(np.float32)


def _functions(columns: Floats) -> Singles:
    """Return functions of each column that are uncorrelated with it: (n_rows, n_columns, 7).

    They are Legendre polynomials of degree 2 to 8 of the rank, made orthonormal.
    """
    n_rows, n_columns = columns.shape
    ranks = np.empty(columns.shape, dtype=np.float32)
    places = (2 * np.arange(n_rows, dtype=np.float32) + 1) / n_rows - 1
    np.put_along_axis(ranks, columns.argsort(axis=0), places[:, None], axis=0)
    raw = np.empty((N_TERMS, n_columns, n_rows), dtype=np.float32)
    raw[0] = _standardize(columns).T
    before: Singles = np.ones_like(ranks)
    last: Singles = ranks
    for degree in range(2, N_TERMS + 1):
        made = (2 * degree - 1) * ranks * last - (degree - 1) * before
        before, last = last, made / np.float32(degree)
        raw[degree - 1] = (last - last.mean(axis=0)).T
    # Missing values are ranked last, but say nothing.
    raw[:, np.isnan(columns).T] = 0.0
    inner = np.einsum("kjn,ljn->jkl", raw, raw, optimize=True).astype(np.float64) / n_rows
    inner[:, np.arange(N_TERMS), np.arange(N_TERMS)] += 1e-6
    inverse = np.linalg.inv(np.linalg.cholesky(inner))[:, 1:].astype(np.float32)
    found = inverse @ raw.transpose(1, 0, 2)
    return np.ascontiguousarray(found.transpose(2, 0, 1))


def _surpluses(columns: Floats) -> Floats:
    """Return the negentropies of the columns that are not normal, at most 1; 0 for the others."""
    found = np.zeros(columns.shape[1])
    for node, column in enumerate(columns.T):
        present = np.sort(column[~np.isnan(column)])
        surplus = negentropy(present, _scores(len(present)))
        if surplus > NEGENTROPY / math.sqrt(len(present)):
            found[node] = min(surplus, 1.0)
    return found


@functools.lru_cache(maxsize=4)
def _scores(n_rows: int) -> Floats:
    return normal_scores(np.arange(n_rows, dtype=np.float64))
