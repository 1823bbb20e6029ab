"""Mean predictions of trees over the rows of a marginal sampler, exact and without predictions."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dsage.games.base import Floats, Mask, Rows
from dsage.games.exact_means import ExactMeans
from dsage.models.leaves import Bits, Leaves

Words = npt.NDArray[np.uint64]

# Conditions of training rows that a coalition may ask for: more take longer than predictions.
_MOST_CONDITIONS = 30_000_000
# Pairs of a leaf and an evaluation row that are treated at a time: they stay in the cache.
_PAIRS_AT_ONCE = 1 << 16
# Sums of fewer bits than a double has are exact.
_BITS = 52


class LeafMeans(ExactMeans):
    """The means of a model's predictions over all training rows, given the known features.

    With known features from an evaluation row x and the others from a training row b, a leaf is
    reached if x meets its conditions on known features and b those on the others. So

        mean over b of f(x_S, b) = intercept
            + sum over leaves l of value_l [x meets l on S] (share of b that meet l outside of S)

    which takes a comparison of integers for each leaf and row x: conditions are bits. One more
    known feature changes only the terms of leaves with a condition on it. The terms are rounded to
    multiples of a tiny number, so that their sums are exact: they do not depend on the order of
    the terms, nor on other rows.

    Parameters
    ----------
    leaves : Leaves
        The leaves of the model.
    background : array of shape (n_training, n_features)
        The training rows.
    matrix : array of shape (n_rows, n_features)
        The evaluation rows.
    """

    has_paths = True

    def __init__(self, leaves: Leaves, background: Floats, matrix: Floats) -> None:
        self._leaves = leaves
        # By row, as units of an estimate have rows of their own.
        self._unmet: Bits = np.ascontiguousarray((leaves.all_bits ^ leaves.met(matrix)).T)
        self._n_background = len(background)
        exponents = np.frexp(np.abs(leaves.values).max(axis=0, initial=0.0))[1]
        n_bits = _BITS - math.ceil(math.log2(len(leaves.values) + 1))
        self._unit: Floats = np.ldexp(1.0, np.maximum(exponents - n_bits, -1000))
        self._values = leaves.values / self._unit
        met = leaves.met(background)
        # The leaves with a condition on each feature, its bit, and the training rows that meet it.
        self._places: list[Rows] = []
        self._bits: list[Bits] = []
        self._meeting: list[Words] = []
        for feature in range(matrix.shape[1]):
            places, slots = np.nonzero(leaves.feature == feature)
            bits: Bits = (np.uint64(1) << slots.astype(np.uint64)).astype(met.dtype)
            self._places.append(places)
            self._bits.append(bits)
            self._meeting.append(_pack(met[places] & bits[:, None] != 0))
        self._everyone = _pack(np.ones((1, len(background)), dtype=np.bool_))
        most = max(map(len, self._places), default=1)
        self._rows_at_once = max(1, _PAIRS_AT_ONCE // max(most, 1))

    @staticmethod
    def pays(leaves: Leaves, n_background: int, n_rows: int, max_bytes: int) -> bool:
        """Whether the conditions of all rows are few enough to be kept and compared."""
        n_leaves, size = len(leaves.values), leaves.all_bits.itemsize
        fits = (n_background + n_rows) * n_leaves * size <= max_bytes
        return fits and n_background * n_leaves <= _MOST_CONDITIONS

    def means(self, known: Mask, rows: Rows) -> Floats:
        """Return the means (n_coalitions, n_rows, n_outputs)."""
        leaves, unmet = self._leaves, self._unmet[rows]
        found = np.empty((len(known), len(rows), leaves.n_outputs))
        for coalition, out in zip(known, found, strict=True):
            meeting = np.repeat(self._everyone, len(leaves.values), axis=0)
            for feature in np.flatnonzero(~coalition):
                meeting[self._places[feature]] &= self._meeting[feature]
            terms = self._terms(slice(None), _count(meeting))
            bits = leaves.known_bits(coalition)
            for some in self._portions(len(rows)):
                out[some] = ((unmet[some] & bits) == 0) @ terms.T
        return self._scale(found)

    def path_means(self, order: Rows, rows: Rows) -> Floats:
        """Return the means (n_features, n_rows, n_outputs) of all proper prefixes."""
        start, steps = self._terms_along(order)
        added = np.zeros((len(order), len(rows), self._leaves.n_outputs))
        added[0] = start
        for some in self._portions(len(rows)):
            unmet = np.ascontiguousarray(self._unmet[rows[some]].T)
            known = np.zeros((len(unmet), 1), dtype=unmet.dtype)
            for feature, (before, after), out in zip(order, steps, added[1:], strict=False):
                places = self._places[feature]
                own, bits = unmet.take(places, axis=0), known[places]
                removed = before @ ((own & bits) == 0)
                bits |= self._bits[feature][:, None]
                known[places] = bits
                out[some] = (after @ ((own & bits) == 0) - removed).T
        return self._scale(np.cumsum(added, axis=0, out=added))

    def _terms_along(self, order: Rows) -> tuple[Floats, list[tuple[Floats, Floats]]]:
        """Return the sum of all terms with nothing known, and what changes along an ordering.

        For each feature but the last, these are the terms (n_outputs, n_changed) of its leaves
        before and after it becomes known, for rows that meet their conditions.
        """
        meeting = np.repeat(self._everyone, len(self._values), axis=0)
        steps: list[tuple[Floats, Floats]] = []
        for feature in order[::-1]:
            places = self._places[feature]
            own = meeting[places]
            after = self._terms(places, _count(own))
            own &= self._meeting[feature]
            meeting[places] = own
            steps.append((self._terms(places, _count(own)), after))
        return self._terms(slice(None), _count(meeting)).sum(axis=1), steps[:0:-1]

    def _terms(self, places: Rows | slice, counts: npt.NDArray[np.intp]) -> Floats:
        """Return the terms (n_outputs, n_leaves), in units, of leaves that some rows meet."""
        terms: Floats = np.rint(self._values[places].T * (counts / self._n_background))
        return terms

    def _scale(self, sums: Floats) -> Floats:
        """Return sums of terms, in units, as means, in place."""
        sums *= self._unit
        sums += self._leaves.intercept
        return sums

    def _portions(self, n_rows: int) -> Iterator[slice]:
        for first in range(0, n_rows, self._rows_at_once):
            yield slice(first, first + self._rows_at_once)


def _pack(which: Mask) -> Words:
    """Return rows (n_rows, n_columns) of bits as integers (n_rows, n_words)."""
    packed = np.packbits(which, axis=1)
    n_bytes = -(-packed.shape[1] // 8) * 8
    padded = np.zeros((len(packed), n_bytes), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)


def _count(words: Words) -> npt.NDArray[np.intp]:
    """Return the number of bits in each row of integers."""
    counts: npt.NDArray[np.intp] = np.bitwise_count(words).sum(axis=1, dtype=np.intp)
    return counts
