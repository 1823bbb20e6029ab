"""Missing values and unseen categories, for samplers that support neither.

Missing classes are a category like any other. Missing numbers are gaps: most samplers can neither
learn from them, nor draw them, nor condition on them. For these samplers, gaps of training rows are
filled, another sampler, ``"mix"``, draws which draws are missing, and values that cannot be
conditioned on are left out of the coalition of their row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dsage._check import record_warnings
from dsage._random import Streams
from dsage.data.frames import is_frame
from dsage.data.layout import Layout
from dsage.samplers.checks import Floats, Ints, Mask

if TYPE_CHECKING:
    from dsage.samplers.base import BaseSampler, Result

# A gap is filled by the first of this many draws that is not missing.
_N_TRIES = 16
_CHUNK = 1024  # rows that are filled at a time
_N_PATTERNS = 256  # patterns of gaps that are filled on their own
_DIGITS = 2.0**16
_EXACT = 2.0**53


def read_rows(layout: Layout, X: Any, known: Mask) -> Floats:  # noqa: ANN401
    """Return rows as a matrix (n_rows, n_features), unknown columns as 0.

    Categories that training lacks, and missing values of a class that had none, get codes from
    ``layout.n_categories`` on, as ``layout.extend(X)`` has them.
    """
    if is_frame(X) or layout.kind == "numpy":
        return layout.extend(X, known).encode(X, known)
    array = np.asarray(X)
    if array.dtype.kind not in "iuf" or array.shape[1:] != known.shape:
        return layout.encode(X, known)
    is_new = known & (layout.n_categories > 0) & (array >= layout.n_categories)
    is_new &= (array < _EXACT) & (array == np.floor(array))
    if not is_new.any():
        return layout.encode(array, known)
    rows = layout.encode(np.where(is_new, 0.0, array), known)
    rows[is_new] = array[is_new]
    return rows


def split_by_pattern(usable: Mask, known: Mask) -> Iterator[tuple[Ints | slice, Mask]]:
    """Yield rows with the features among the known ones on which these rows can be conditioned.

    `usable` has shape (n_rows, n_features). All rows come at once, as a slice, if all known
    values can be used.
    """
    if not (known & ~usable).any():
        yield slice(None), known
        return
    packed = np.packbits(usable[:, known], axis=1)
    _, first, pattern = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(pattern.ravel(), kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(pattern.ravel()))[:-1])
    for row, rows in zip(first, parts, strict=True):
        yield rows, known & usable[row]


def other_uniforms(noise: npt.NDArray[np.float64]) -> Floats:
    """Return uniforms from the later binary digits of uniforms, nearly independent of them.

    If a uniform decided whether a draw is missing, it would not be uniform given that decision.
    The first 16 digits are left out: the others depend on the uniform only to 2e-5.
    """
    # Half a step, so that the middle stays the middle.
    rest = noise * _DIGITS + 0.5
    rest -= np.floor(rest)
    return np.clip(rest, 2.0**-54, 1.0 - 2.0**-53, out=rest)


class Gaps:
    """Missing numbers of training rows: how to fill them, and which draws are missing.

    Which unknown numbers are missing is drawn jointly, given all that is known: values, and that
    some are missing. The values of those that are present are drawn by the sampler, which learned
    them from filled rows, given the values that are known.
    """

    def __init__(self, layout: Layout, X: Floats, max_bytes: int) -> None:
        from dsage.samplers.registry import SAMPLERS  # noqa: PLC0415

        self._columns = np.flatnonzero(np.isnan(X).any(axis=0))
        self._never: Mask = np.all(np.isnan(X), axis=0)
        self._copies = layout.copies
        self._mix: BaseSampler = SAMPLERS["mix"]().set_params(random_state=0, max_bytes=max_bytes)
        # The sampler itself warns of its columns.
        with record_warnings(show=False):
            self._mix.fit_encoded(layout, X)

    def fill(self, X: Floats) -> Floats:
        """Return training rows whose gaps are drawn given the values that are present.

        The gaps of a row are drawn together, for the patterns of gaps that are most frequent. In
        rows with other patterns, they are drawn given the columns without gaps, and then once more,
        one after the other, given all other columns. A column without any values is 0.
        """
        filled = X.copy()
        filled[:, self._never] = 0.0
        absent = np.isnan(filled)
        rng = Streams(0)("gaps")
        everything = np.arange(len(X))
        patterns = [
            (everything[rows], known)
            for rows, known in split_by_pattern(~absent, np.ones(X.shape[1], bool))
            if not known.all()
        ]
        patterns.sort(key=lambda each: -len(each[0]))
        for rows, known in patterns[:_N_PATTERNS]:
            self._fill(filled, rows, known, np.flatnonzero(~known), rng)
        if others := [rows for rows, _ in patterns[_N_PATTERNS:]]:
            self._fill_others(filled, np.concatenate(others), absent, rng)
        for copy, original in self._copies.items():
            filled[:, copy] = filled[:, original]
        return filled

    def _fill_others(self, X: Floats, rows: Ints, absent: Mask, rng: np.random.Generator) -> None:
        gaps: Mask = np.any(absent, axis=0)
        present = X[rows]
        self._fill(X, rows, ~gaps, np.flatnonzero(gaps), rng)
        X[rows] = np.where(absent[rows], X[rows], present)
        for column in np.flatnonzero(gaps):
            some = rows[absent[rows, column]]
            self._fill(X, some, np.arange(len(gaps)) != column, np.array([column]), rng)

    def _fill(
        self, X: Floats, rows: Ints, known: Mask, columns: Ints, rng: np.random.Generator
    ) -> None:
        """Replace columns in some rows by draws that are present, given the known columns."""
        for start in range(0, len(rows), _CHUNK):
            some = rows[start : start + _CHUNK]
            noise = np.maximum(rng.random((len(some), _N_TRIES, len(known))), 2.0**-54)
            given = np.where(known, X[some], 0.0)
            drawn = self._mix.draw_encoded(given, known, noise)[:, :, columns]
            values = _first_present(drawn)
            for column, new in zip(columns, values.T, strict=True):
                left = np.isnan(new)
                present = X[~np.isnan(X[:, column]), column]
                new[left] = rng.choice(present, int(left.sum()))
            X[np.ix_(some, columns)] = values

    def hide(self, draws: Result, rows: Floats, known: Mask, noise: Floats) -> None:
        """Make those draws (n_rows, n_draws, n_features) missing that are, given what is known."""
        at = self._columns[~known[self._columns]]
        if len(at):
            others = self._mix.draw_encoded(rows, known, other_uniforms(noise))
            is_missing = np.isnan(others[:, :, at]) | self._never[at]
            draws[:, :, at] = np.where(is_missing, np.nan, draws[:, :, at])


def _first_present(draws: Floats) -> Floats:
    """Return the first draw (n_rows, n_columns) in which all columns are present.

    If there is none, each column is filled with its first value that is present, if any.
    """
    absent = np.isnan(draws)
    together = np.argmin(absent.any(axis=2), axis=1)[:, None, None]
    alone = np.argmin(absent, axis=1)[:, None, :]
    first = np.take_along_axis(draws, together, axis=1)[:, 0]
    other: Floats = np.take_along_axis(draws, alone, axis=1)[:, 0]
    return np.where(np.any(np.isnan(first), axis=1)[:, None], other, first)
