"""Maximum a posteriori fits of a mixture of Gaussians times tables, by the EM algorithm.

Component k has weight ``w_k`` and the density ``N(z; m_k, S_k)`` times the product over table
variables b of ``T_kb[state of b | state of its parent]``. Its logarithm is linear in the columns
``1, z_i, z_i z_j, indicators of cells``, so that the densities of all rows and components are one
matrix product, and so are the sums that the next parameters need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

import numpy as np

from dsage.samplers.checks import Floats, Ints
from dsage.samplers.mix.trees import Trees

_CHUNK_BYTES, _KEPT_BYTES = 2**25, 2**27
# Gain of the mean log likelihood, per variable, at which the algorithm stops.
TOLERANCE = 2e-5
_MAX_STEPS = 60
# Variance added to each number, as a share of its variance: keeps covariances invertible.
FLOOR = 1e-5
_TINY = 1e-300
_WEIGHT_PRIOR = 1e-3  # rows


@dataclass(frozen=True, eq=False)
class Components:
    """The parameters of a mixture.

    Parameters
    ----------
    weights : array of shape (n_components,)
    means : array of shape (n_components, n_numbers)
    covariances : array of shape (n_components, n_numbers, n_numbers)
    tables : tuple of arrays of shape (n_components, n_parent_states, n_states)
        One per table variable; those without a parent have one parent state.
    """

    weights: Floats
    means: Floats
    covariances: Floats
    tables: tuple[Floats, ...]

    def __len__(self) -> int:
        return len(self.weights)

    @classmethod
    def pool(cls, fits: Sequence[Components]) -> Self:
        """Return the average of mixtures, which has the components of all."""
        together = cls.concatenate(fits)
        return replace(together, weights=together.weights / len(fits))

    @classmethod
    def concatenate(cls, fits: Sequence[Components]) -> Self:
        """Return the components of several mixtures, one after the other, unchanged."""
        return cls(
            np.concatenate([fit.weights for fit in fits]),
            np.concatenate([fit.means for fit in fits]),
            np.concatenate([fit.covariances for fit in fits]),
            tuple(np.concatenate(tables) for tables in zip(*(f.tables for f in fits), strict=True)),
        )

    def split(self, n_parts: int) -> list[Self]:
        """Return mixtures of equal size whose components stand one after the other."""
        size = len(self) // n_parts
        return [
            type(self)(
                self.weights[at],
                self.means[at],
                self.covariances[at],
                tuple(table[at] for table in self.tables),
            )
            for at in (slice(size * part, size * (part + 1)) for part in range(n_parts))
        ]

    def sort(self) -> Self:
        """Return the components along the first principal axis of their means and tables.

        Similar components are neighbors then, and equal noise chooses similar ones in different
        coalitions.
        """
        flat = [table.reshape(len(self), -1) for table in self.tables]
        places = np.concatenate([self.means, *flat], axis=1)
        places -= places.mean(axis=0)
        _, _, axes = np.linalg.svd(places, full_matrices=False)
        order = np.argsort(places @ axes[0], kind="stable") if len(axes) else np.arange(len(self))
        return type(self)(
            self.weights[order],
            self.means[order],
            self.covariances[order],
            tuple(table[order] for table in self.tables),
        )

    def coefficients(self) -> Floats:
        """Return log densities as linear functions of the columns, (n_components, n_columns)."""
        n_numbers = self.means.shape[1]
        above = _above(n_numbers)
        inverse = np.linalg.inv(np.linalg.cholesky(self.covariances))
        precision = inverse.transpose(0, 2, 1) @ inverse
        slopes = (precision @ self.means[:, :, None])[:, :, 0]
        start = np.log(self.weights) - 0.5 * (slopes * self.means).sum(axis=1)
        start += np.log(np.diagonal(inverse, axis1=1, axis2=2)).sum(axis=1)
        start -= 0.5 * n_numbers * np.log(2.0 * np.pi)
        squares = -precision[:, above[0], above[1]] * np.where(above[0] == above[1], 0.5, 1.0)
        logs = [np.log(np.maximum(t, _TINY)).reshape(len(self), -1) for t in self.tables]
        return np.concatenate([start[:, None], slopes, squares, *logs], axis=1)


@cache
def _above(n: int) -> tuple[Ints, Ints]:
    """Return the rows and columns of the entries of a matrix on and above its diagonal."""
    return np.triu_indices(n)


class Rows:
    """Complete rows as the columns of the module's linear functions, made in chunks.

    Parameters
    ----------
    Z : array of shape (n_rows, n_numbers)
        The numbers.
    states : array of shape (n_rows, n_tables)
        The states of the table variables.
    trees : Trees
        Their parents and numbers of states.
    """

    def __init__(self, Z: Floats, states: Ints, trees: Trees) -> None:
        self.Z, self.states, self.trees = Z, states, trees
        self._cells, self._n_cells = trees.cells(states), trees.n_cells
        n_numbers = Z.shape[1]
        n_products = n_numbers * (n_numbers + 1) // 2
        self.n_columns = 1 + n_numbers + n_products + sum(self._n_cells)
        # Rows that are read at a time.
        self.step = max(1, min(len(Z), _CHUNK_BYTES // (8 * self.n_columns)))
        self._kept: Floats | None = None
        if 8 * self.n_columns * len(Z) <= _KEPT_BYTES:
            self._kept = self._make(slice(None))

    def __len__(self) -> int:
        return len(self.Z)

    def chunks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield chunks of rows, with their columns as (n_columns, n_rows)."""
        for start in range(0, len(self), self.step):
            at = slice(start, min(start + self.step, len(self)))
            yield at, self._make(at) if self._kept is None else self._kept[:, at]

    def _make(self, at: slice) -> Floats:
        numbers = np.ascontiguousarray(self.Z[at].T)
        n_numbers, n_rows = numbers.shape
        out = np.zeros((self.n_columns, n_rows))
        out[0] = 1.0
        out[1 : 1 + n_numbers] = numbers
        first = 1 + n_numbers
        for number in range(n_numbers):
            last = first + n_numbers - number
            np.multiply(numbers[number], numbers[number:], out=out[first:last])
            first = last
        rows = np.arange(n_rows)
        for table, n_cells in enumerate(self._n_cells):
            out[first + self._cells[at, table], rows] = 1.0
            first += n_cells
        return out

    def log_densities(self, components: Components) -> Floats:
        """Return the log densities of all rows, (n_rows,)."""
        coefficients = components.coefficients()
        total = np.empty(len(self))
        for at, columns in self.chunks():
            logs = coefficients @ columns
            top = logs.max(axis=0)
            total[at] = top + np.log(np.exp(logs - top).sum(axis=0))
        return total

    def pooled_tables(self) -> list[Floats]:
        """Return the tables of one component, (n_parent_states, n_states), smoothed by margins."""
        found = []
        for node, n_states in enumerate(self.trees.n_states):
            margin = np.bincount(self.states[:, node], minlength=n_states) / max(1, len(self))
            counts = np.bincount(self._cells[:, node], minlength=self._n_cells[node])
            table = counts.reshape(-1, n_states)
            found.append((table + margin) / (table.sum(axis=1, keepdims=True) + 1.0))
        return found

    def features(self, limit: int) -> Floats:
        """Return the columns in which a fit starts from clusters: numbers and scaled indicators."""
        parts = [self.Z]
        for column, n_states in zip(self.states.T, self.trees.n_states, strict=True):
            if n_states <= limit:
                indicators = np.eye(n_states)[column]
                spread = float(np.sqrt(indicators.var(axis=0).sum()))
                parts.append(indicators / max(spread, 1e-9))
        return np.concatenate(parts, axis=1)


def fit_components(
    rows: Rows,
    n_components: int,
    shrinkage: float,
    rng: np.random.Generator,
    *,
    tolerance: float = TOLERANCE,
    start: Components | None = None,
) -> Components:
    """Fit a mixture to complete rows.

    The covariance of a component is ``(scatter + a W) / (n_k + a)`` with a the `shrinkage`, in
    rows, and W the pooled covariance within components. Its tables are ``(counts + pooled table) /
    (n_k + 1)``, for each state of the parent.

    Parameters
    ----------
    rows : Rows
        The rows.
    n_components : int
        Number of components.
    shrinkage : float
        Number of rows that the pooled covariance counts for.
    rng : numpy Generator
        For the start.
    tolerance : float
        Gain of the mean log likelihood, per variable, at which the algorithm stops.
    start : Components, optional
        Start from these; by default from clusters.
    """
    if start is not None:
        return _Together(rows, n_components, shrinkage, tolerance).refine([start])[0]
    return fit_each(rows, n_components, shrinkage, [rng], tolerance=tolerance)[0]


def fit_each(
    rows: Rows,
    n_components: int,
    shrinkage: float,
    rngs: Sequence[np.random.Generator],
    *,
    tolerance: float = TOLERANCE,
) -> list[Components]:
    """Fit a mixture from each of several starts, see :func:`fit_components`.

    Steps of several fits are computed together, so that the columns are read once for all of them.
    """
    together = _Together(rows, n_components, shrinkage, tolerance)
    features = rows.features(_START_STATES)
    starts = [
        together.to_components(_first_sums(rows, features, n_components, rng)) for rng in rngs
    ]
    at_once = max(1, _CHUNK_BYTES // (8 * n_components * rows.step))
    found: list[Components] = []
    for first in range(0, len(starts), at_once):
        found += together.refine(starts[first : first + at_once])
    return found


class _Together:
    """Fits of one size to the same rows."""

    def __init__(self, rows: Rows, size: int, shrinkage: float, tolerance: float) -> None:
        self._rows, self._size, self._shrinkage = rows, size, shrinkage
        self._pooled = rows.pooled_tables()
        self._enough = tolerance * (rows.Z.shape[1] + rows.states.shape[1])

    def refine(self, starts: Sequence[Components]) -> list[Components]:
        """Continue each fit until its likelihood hardly grows."""
        found = list(starts)
        running, last = list(range(len(starts))), np.full(len(starts), -np.inf)
        components = Components.concatenate(starts)
        for _ in range(_MAX_STEPS):
            sums, total = self._sums(components.coefficients())
            components = self.to_components(sums)
            total /= len(self._rows)
            is_over = total - last[running] < self._enough
            last[running] = total
            if not is_over.any():
                continue
            for number, part in zip(running, components.split(len(running)), strict=True):
                found[number] = part
            running = [number for number, ends in zip(running, is_over, strict=True) if not ends]
            if not running:
                return found
            components = Components.concatenate([found[number] for number in running])
        for number, part in zip(running, components.split(len(running)), strict=True):
            found[number] = part
        return found

    def _sums(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the expected sums of the columns by component, and log likelihoods by fit."""
        sums, size = np.zeros_like(coefficients), self._size
        total = np.zeros(len(coefficients) // size)
        for _, columns in self._rows.chunks():
            flat = coefficients @ columns
            logs = flat.reshape(len(total), size, -1)
            top = logs.max(axis=1, keepdims=True)
            logs -= top
            shares = np.exp(logs, out=logs)
            norm = shares.sum(axis=1, keepdims=True)
            shares /= norm
            total += (top + np.log(norm)).sum(axis=(1, 2))
            sums += flat @ columns.T
        return sums, total

    def to_components(self, sums: Floats) -> Components:
        """Return the parameters that maximize the posterior given expected sums of the columns."""
        n_numbers, size = self._rows.Z.shape[1], self._size
        n_fits = len(sums) // size
        above = _above(n_numbers)
        sizes = sums[:, 0] + 1e-12
        priors = (sizes + _WEIGHT_PRIOR).reshape(n_fits, size)
        weights = (priors / priors.sum(axis=1, keepdims=True)).reshape(-1)
        means = sums[:, 1 : 1 + n_numbers] / sizes[:, None]
        first = 1 + n_numbers + len(above[0])
        scatter = np.zeros((len(sums), n_numbers, n_numbers))
        products = sums[:, 1 + n_numbers : first]
        scatter[:, above[0], above[1]] = scatter[:, above[1], above[0]] = products
        scatter -= sizes[:, None, None] * means[:, :, None] * means[:, None, :]
        pooled = scatter.reshape(n_fits, size, n_numbers, n_numbers).sum(axis=1)
        pooled /= sizes.reshape(n_fits, size).sum(axis=1)[:, None, None]
        shrunk = scatter + np.repeat(self._shrinkage * pooled, size, axis=0)
        covariances = shrunk / (sizes + self._shrinkage)[:, None, None] + FLOOR * np.eye(n_numbers)
        tables = []
        for table in self._pooled:
            counts = sums[:, first : first + table.size].reshape(-1, *table.shape)
            tables.append((counts + table) / (counts.sum(axis=2, keepdims=True) + 1.0))
            first += table.size
        return Components(weights, means, covariances, tuple(tables))


_START_ROWS, _START_STEPS, _START_STATES = 5_000, 5, 64


def _first_sums(
    rows: Rows, features: Floats, n_components: int, rng: np.random.Generator
) -> Floats:
    """Return the sums of the columns in clusters of the rows, found by k-means."""
    labels = np.full(len(rows), -1)
    chosen = np.arange(len(rows))
    if len(rows) > _START_ROWS:
        chosen = np.sort(rng.choice(len(rows), _START_ROWS, replace=False))
    labels[chosen] = _cluster(features[chosen], n_components, rng)
    sums = np.zeros((n_components, rows.n_columns))
    for at, columns in rows.chunks():
        belongs = labels[at] == np.arange(n_components)[:, None]
        sums += belongs.astype(np.float64) @ columns.T
    return sums


def _cluster(features: Floats, n_clusters: int, rng: np.random.Generator) -> Ints:
    """Return the cluster of each row, by a few steps of k-means from spread-out centers."""
    n_rows = len(features)
    if n_clusters == 1 or not features.shape[1]:
        return np.asarray(np.arange(n_rows) % n_clusters, np.intp)
    squares = (features**2).sum(axis=1)
    centers = features[rng.integers(n_rows, size=n_clusters)]
    nearest = np.full(n_rows, np.inf)
    for number in range(n_clusters):
        if number and (total := nearest.sum()) > 0.0:
            chosen = np.searchsorted(np.cumsum(nearest), rng.random() * total)
            centers[number] = features[min(int(chosen), n_rows - 1)]
        center = centers[number]
        apart = np.maximum(squares - 2.0 * features @ center + center @ center, 0.0)
        nearest = np.minimum(nearest, apart)
    for _ in range(_START_STEPS):
        distances = (centers**2).sum(axis=1) - 2.0 * features @ centers.T
        labels: Ints = np.argmin(distances, axis=1)
        belongs = (labels[:, None] == np.arange(n_clusters)).astype(np.float64)
        counts = belongs.sum(axis=0)
        means = belongs.T @ features / np.maximum(counts, 1.0)[:, None]
        centers = np.where(counts[:, None] > 0, means, centers)
    return labels
