"""Fill the gaps of numbers by draws from a mixture, given everything else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.mix.em import Components


def patterns(gaps: Mask) -> Iterator[tuple[Mask, Ints]]:
    """Yield the distinct lines of a mask, and the rows that have each."""
    if not len(gaps):
        return
    packed = np.packbits(gaps, axis=1)
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    inverse = inverse.ravel()
    order = np.argsort(inverse, kind="stable")
    ends = np.cumsum(np.bincount(inverse))
    for number, row in enumerate(first):
        start = ends[number - 1] if number else 0
        yield gaps[row], order[start : ends[number]]


def fill_from_rows(values: Floats, rng: np.random.Generator) -> Floats:
    """Return numbers whose gaps are filled by present values of the same column, at random."""
    filled = values.copy()
    for column in filled.T:
        gaps = np.isnan(column)
        present = column[~gaps]
        column[gaps] = rng.choice(present, int(gaps.sum())) if len(present) else 0.0
    return filled


def fill_gaps(
    components: Components, scores: Floats, cells: Ints, rng: np.random.Generator
) -> Floats:
    """Return scores whose gaps are filled by draws given the other scores and cells of tables."""
    filled = scores.copy()
    logs = np.tile(np.log(components.weights), (len(scores), 1))
    for table, column in zip(components.tables, cells.T, strict=True):
        flat = table.reshape(len(components), -1)
        logs += np.log(np.maximum(flat[:, column].T, 1e-300))
    for gaps, rows in patterns(np.isnan(scores)):
        if gaps.any():
            filled[np.ix_(rows, gaps)] = _fill(components, scores[rows], gaps, logs[rows], rng)
    return filled


def _fill(
    components: Components, scores: Floats, gaps: Mask, logs: Floats, rng: np.random.Generator
) -> Floats:
    """Return draws for the gaps of rows that all have the same."""
    there = np.flatnonzero(~gaps)
    order = np.concatenate([there, np.flatnonzero(gaps)])
    n_there = len(there)
    covariances = components.covariances[:, order[:, None], order]
    factors = np.linalg.cholesky(covariances)
    centered = scores[:, None, there] - components.means[:, there]
    inverse = np.linalg.inv(factors[:, :n_there, :n_there])
    white = np.einsum("kij,rkj->rki", inverse, centered)
    slopes = np.log(np.diagonal(inverse, axis1=1, axis2=2)).sum(axis=1)
    total = logs - 0.5 * (white**2).sum(axis=2) + slopes
    shares = np.exp(total - total.max(axis=1, keepdims=True))
    bounds = np.cumsum(shares, axis=1)
    u = rng.random((len(scores), 1)) * bounds[:, -1:]
    chosen = np.minimum((u > bounds).sum(axis=1), len(components) - 1)
    noise = rng.standard_normal((len(scores), int(gaps.sum())))
    both = np.concatenate([white[np.arange(len(scores)), chosen], noise], axis=1)
    drawn = np.einsum("rij,rj->ri", factors[chosen][:, n_there:, :], both)
    filled: Floats = components.means[chosen][:, order[n_there:]] + drawn
    return filled
