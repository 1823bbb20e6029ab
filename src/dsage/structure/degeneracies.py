"""Variables without information: constants, copies, linear functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack, solve_triangular

from dsage._check import check_real
from dsage.structure.counts import Counts
from dsage.structure.moments import Moments


@dataclass(frozen=True)
class Degeneracies:
    """The causes of a singular, or nearly singular, covariance matrix.

    Attributes
    ----------
    constant : tuple of str
        Variables that do not vary.
    duplicated : tuple of tuple of str
        Groups of variables that are copies of each other, up to shift and scale, or up to the
        names of their categories.
    determined : tuple of (str, tuple of str)
        Variables that are linear functions of others, and these others. Constants, and all but
        the first of each group of duplicates, are ignored.
    too_few_rows : bool
        Whether there are at most as many rows as variables. Then some variables are necessarily
        linear functions of others, and `determined` is left empty.

    Notes
    -----
    An object with nothing to report is false: ``if degeneracies(moments): ...``.
    """

    constant: tuple[str, ...]
    duplicated: tuple[tuple[str, ...], ...]
    determined: tuple[tuple[str, tuple[str, ...]], ...]
    too_few_rows: bool

    def __or__(self, other: Degeneracies) -> Degeneracies:
        """Return the degeneracies of two sets of variables together."""
        return Degeneracies(
            self.constant + other.constant,
            self.duplicated + other.duplicated,
            self.determined + other.determined,
            too_few_rows=self.too_few_rows or other.too_few_rows,
        )

    def __bool__(self) -> bool:
        return bool(self.constant or self.duplicated or self.determined or self.too_few_rows)


def degeneracies(moments: Moments, *, tolerance: float = 1e-10) -> Degeneracies:
    """Name the variables that are constant, duplicated, or linear functions of others.

    A variable is constant if its standard deviation is at most the rounding error of its mean. Two
    variables are duplicates if ``1 - r^2 <= tolerance`` for their correlation r. A variable is
    determined if ``1 - R^2 <= tolerance`` given the variables that the pivoted Cholesky
    factorization of the correlations, which takes the least explained one next, took before it.

    Parameters
    ----------
    moments : Moments
        The moments of the data.
    tolerance : float, default=1e-10
        The share of the variance that must be left unexplained. In double precision this share is
        accurate to about 1e-13 for a million rows.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(50, 2))
    >>> X = np.column_stack([rows, rows[:, 0] * 2 + 1, rows.sum(axis=1), np.ones(50)])
    >>> found = degeneracies(Moments.from_array(X, ["a", "b", "a2", "sum", "one"]))
    >>> found.constant, found.duplicated, found.determined
    (('one',), (('a', 'a2'),), (('sum', ('a', 'b')),))
    """
    check_real(tolerance, "tolerance", above=0.0, high=1.0)
    names = moments.names
    constant = moments.is_constant
    correlation = moments.correlation
    groups = _group_copies((1 - correlation**2 <= tolerance) & ~constant & ~constant[:, None])
    copies = {node for group in groups for node in group[1:]}
    kept = [node for node in np.flatnonzero(~constant).tolist() if node not in copies]
    too_few_rows = moments.n_rows <= len(names)
    found = [] if too_few_rows else _find_determined(correlation[np.ix_(kept, kept)], tolerance)
    return Degeneracies(
        constant=tuple(names[node] for node in np.flatnonzero(constant)),
        duplicated=tuple(tuple(names[node] for node in group) for group in groups),
        determined=tuple(
            (names[kept[node]], tuple(names[kept[other]] for other in others))
            for node, others in found
        ),
        too_few_rows=too_few_rows,
    )


def discrete_degeneracies(counts: Counts) -> Degeneracies:
    """Name discrete variables that are constant, or copies up to the names of categories."""
    constant = [name for name, n in zip(counts.names, counts.n_categories, strict=True) if n < 2]
    groups: dict[bytes, list[str]] = {}
    for name, codes in zip(counts.names, counts.rows.T, strict=True):
        if name not in constant:
            # Numbered in the order of their first occurrence, copies have the same codes.
            _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
            renumbered = np.argsort(np.argsort(first))[inverse]
            groups.setdefault(renumbered.tobytes(), []).append(name)
    duplicated = tuple(tuple(group) for group in groups.values() if len(group) > 1)
    return Degeneracies(tuple(constant), duplicated, (), too_few_rows=False)


def _group_copies(same: npt.NDArray[np.bool_]) -> list[list[int]]:
    """Return the groups of at least two, ordered by their first members."""
    grouped: set[int] = set()
    groups = []
    for node in range(len(same)):
        members = [other for other in np.flatnonzero(same[node]).tolist() if other not in grouped]
        if node not in grouped and len(members) > 1:
            groups.append(members)
            grouped.update(members)
    return groups


def _find_determined(
    correlation: npt.NDArray[np.float64], tolerance: float
) -> list[tuple[int, list[int]]]:
    n_nodes = len(correlation)
    if not n_nodes:
        return []
    factor, pivots, rank, _ = lapack.dpstrf(correlation, lower=1, tol=tolerance)
    order = (pivots - 1).tolist()
    if rank == n_nodes:
        return []
    weights = solve_triangular(factor[:rank, :rank], factor[rank:, :rank].T, lower=True, trans=1)
    # Rounding leaves weights of about the square root of the unexplained share.
    relevant = np.abs(weights) > np.sqrt(tolerance)
    found = [
        (order[rank + column], sorted(order[row] for row in np.flatnonzero(relevant[:, column])))
        for column in range(n_nodes - rank)
    ]
    return sorted(found)
