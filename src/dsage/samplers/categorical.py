"""Draw from the empirical joint distribution of discrete data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dsage._check import Setting, Text, check_member, check_real, refusal, warn
from dsage.samplers.base import BaseSampler
from dsage.samplers.checks import Floats, Ints, Mask, pick
from dsage.samplers.registry import CLASSES, SAMPLERS

_TABLE = 16  # maximal number of table entries per cell
ON_UNSEEN = ("warn", "ignore", "raise")


@SAMPLERS.register(
    "categorical",
    summary="training rows that agree with what is known",
    fits=CLASSES,
    candidate_for=CLASSES,
    complexity=1,
    draw_cost=0.2,
    call_cost=60.0,
    fit_cost=2.0,
)
@dataclass(kw_only=True, eq=False, repr=False)
class Categorical(BaseSampler):
    """Draw unknown features from the training rows that agree with the known values.

    With n(.) the number of training rows with given values, n in total,

        P(x_unknown | x_known) = (n(x_known, x_unknown) + smoothing n(x_unknown) / n)
                                 / (n(x_known) + smoothing).

    Unknown features are drawn in the order of the columns, each from its conditional given the
    known ones and those drawn before, by inverting its distribution function at its own noise.

    *Back-off.* If no training row agrees with x_known, known features are dropped one at a time
    until one does: first the one that shares the least mutual information with the unknown
    features (the sum over these of the pairwise informations, each minus its bias
    ``(n_categories_i - 1) (n_categories_j - 1) / 2n`` and at least 0), and of equal ones the last
    column. What a row loses depends on that row only. :meth:`n_dropped` counts the features that
    each row loses.

    Parameters
    ----------
    smoothing : float, default=0.0
        Number of pseudo-rows added to those that agree, with the distribution of the unknown
        features in all training rows.
    on_unseen : {"warn", "ignore", "raise"}, default="warn"
        What `draw` does if rows need the back-off; warning and error name the dropped columns.
    discrete, dtype, max_bytes
        As in :class:`~dsage.samplers.base.BaseSampler`. All columns must be discrete.

    Attributes
    ----------
    cells_ : int array of shape (n_cells, n_features)
        The distinct training rows, as codes.
    counts_ : int array of shape (n_cells,)
        The number of training rows of each.
    information_ : array of shape (n_features, n_features)
        The pairwise mutual informations (nats), minus their bias; 0 on the diagonal.

    Examples
    --------
    >>> X = np.array([["a", "x"], ["a", "x"], ["a", "y"], ["b", "z"]])
    >>> sampler = Categorical().fit(X)
    >>> noise = np.array([[[0.5, 0.6], [0.5, 0.7]]])
    >>> draws = sampler.draw(X[:1], np.array([True, False]), noise)
    >>> sampler.layout_.decode(draws[0])
    array([['a', 'x'],
           ['a', 'y']], dtype='<U1')
    """

    smoothing: float = 0.0
    on_unseen: str = "warn"

    def n_dropped(self, X: object, known: Mask) -> Ints:
        """Return how many known features each row loses to the back-off, (n_rows,).

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_features)
            The rows.
        known : bool array of shape (n_features,)
            The coalition.
        """
        rows, known = self._encode(X, known)
        dropped = np.zeros(len(rows), np.intp)
        for some, _, kept in self._match(rows.astype(np.intp), known):
            dropped[some] = int(known.sum()) - len(kept)
        return dropped

    def _fit(self, X: Floats) -> None:
        check_real(self.smoothing, "smoothing", low=0.0, high=1e300)
        check_member(self.on_unseen, ON_UNSEEN, "on_unseen", "the reactions to unseen values")
        if numbers := pick(self.feature_names_, self.n_categories_ == 0):
            remedy = ", bin them, or use a sampler for mixed data"
            advice = Text(["Name these columns with ", Setting("discrete"), remedy])
            raise refusal("X", "made of discrete columns", numbers, advice)
        self.cells_, self.counts_ = np.unique(X.astype(np.intp), axis=0, return_counts=True)
        self.information_ = _information(self.cells_, self.counts_, self.n_categories_)

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:
        unknown = np.flatnonzero(~known)
        uniforms = noise[:, :, unknown]
        drawn = np.empty(uniforms.shape)
        everything = _Sorted(self.cells_, self.counts_, [], unknown) if self.smoothing else None
        dropped = np.zeros(len(known), bool)
        n_dropped = 0
        for rows, (table, matches), kept in self._match(X.astype(np.intp), known):
            if len(kept) < known.sum():
                n_dropped += len(rows)
                dropped |= known
                dropped[kept] = False
            drawn[rows] = self._draw_matches(table, matches, everything, uniforms[rows])
        if n_dropped and self.on_unseen != "ignore":
            self._report(n_dropped, len(X), dropped)
        return drawn

    def _draw_matches(
        self, table: _Sorted, matches: Ints, everything: _Sorted | None, noise: Floats
    ) -> Floats:
        """Return draws for rows from their matches in the table, mixed with the pseudo-rows."""
        if everything is None:
            return table.draw(matches, noise)
        share = (self.smoothing / (self.smoothing + table.totals[matches]))[:, None]
        first = noise[:, :, 0]
        is_pseudo = first < share
        # Given the side on which the first uniform fell, its remainder is uniform again.
        rest = np.where(is_pseudo, first / share, (first - share) / (1.0 - share))
        noise = np.concatenate([rest[:, :, None], noise[:, :, 1:]], axis=2)
        pseudo = everything.draw(np.zeros_like(matches), noise)
        return np.where(is_pseudo[:, :, None], pseudo, table.draw(matches, noise))

    def _match(
        self, codes: Ints, known: Mask
    ) -> Iterator[tuple[Ints, tuple[_Sorted, Ints], list[int]]]:
        """Yield rows, the table and their matches in it, and the known features that were kept."""
        unknown = np.flatnonzero(~known)
        kept = np.flatnonzero(known).tolist()
        shared = self.information_[:, unknown].sum(axis=1)
        left = np.arange(len(codes))
        while len(left):
            table = _Sorted(self.cells_, self.counts_, kept, unknown)
            matches = table.find(codes[left][:, kept])
            found = matches >= 0
            if found.any():
                yield left[found], (table, matches[found]), kept
            left = left[~found]
            if len(left):
                least = min(kept, key=lambda column: (shared[column], -column))
                kept = [column for column in kept if column != least]

    def _report(self, n_dropped: int, n_rows: int, dropped: Mask) -> None:
        columns = ", ".join(map(repr, pick(self.feature_names_, dropped)))
        if self.on_unseen == "raise":
            condition = "a combination that occurs in training"
            got = f"{n_dropped} of {n_rows} rows where it does not"
            advice = f"Drop some of the columns {columns}, or allow that with on_unseen='ignore'"
            raise refusal("known values", condition, got, advice)
        warn(
            f"The known values of {n_dropped} of {n_rows} rows do not occur together in training: "
            f"some of the columns {columns} were dropped for them. n_dropped() counts them, and "
            "on_unseen='ignore' silences this warning."
        )


class _Sorted:
    """Cells sorted by the known and then by the unknown features.

    Cells with the same known values stand together, as one *match* of rows that have them.
    """

    def __init__(self, cells: Ints, counts: Ints, known: Sequence[int], unknown: Ints) -> None:
        columns = [*known, *unknown.tolist()]
        # The last key of lexsort is its primary one.
        order = np.lexsort(cells[:, columns[::-1]].T) if columns else np.arange(len(cells))
        self._cells = cells[order][:, unknown]
        self._sums = np.concatenate([[0.0], np.cumsum(counts[order], dtype=np.float64)])
        head = cells[order][:, list(known)]
        self._is_first = np.ones(len(cells), bool)
        self._is_first[1:] = (head[1:] != head[:-1]).any(axis=1)
        self._starts = np.flatnonzero(self._is_first)
        self._ends = np.append(self._starts[1:], len(cells))
        self._heads = head[self._starts]
        self.totals = self._sums[self._ends] - self._sums[self._starts]

    def find(self, values: Ints) -> Ints:
        """Return the match of each row of known values (n_rows, n_known), or -1 for none."""
        if not values.shape[1]:
            return np.zeros(len(values), np.intp)
        n_matches = len(self._heads)
        _, label = np.unique(np.vstack([self._heads, values]), axis=0, return_inverse=True)
        label = label.reshape(-1)
        match = np.full(int(label.max()) + 1, -1, np.intp)
        match[label[:n_matches]] = np.arange(n_matches)
        return match[label[n_matches:]]

    def draw(self, matches: Ints, noise: Floats) -> Floats:
        """Return codes (n_rows, n_draws, n_unknown) drawn from the match of each row."""
        drawn = np.empty(noise.shape)
        start, end = self._starts[matches][:, None], self._ends[matches][:, None]
        is_first = self._is_first
        for depth in range(noise.shape[2]):
            low = self._sums[start]
            target = low + noise[:, :, depth] * (self._sums[end] - low)
            cell = np.searchsorted(self._sums, target, side="right") - 1
            # Rounding may move a target onto the end of its interval.
            cell = np.clip(cell, start, end - 1)
            codes = self._cells[:, depth]
            drawn[:, :, depth] = codes[cell]
            is_first = is_first | np.append(True, codes[1:] != codes[:-1])
            starts = np.flatnonzero(is_first)
            run = (np.cumsum(is_first) - 1)[cell]
            start, end = starts[run], np.append(starts[1:], len(codes))[run]
        return drawn


def _information(cells: Ints, counts: Ints, n_categories: Ints) -> Floats:
    """Return the mutual information of all pairs of columns, minus its bias, at least 0."""
    n_features = cells.shape[1]
    n_rows = counts.sum()
    entropies = np.zeros((n_features, n_features))
    for i in range(n_features):
        for j in range(i + 1):
            pair = cells[:, i] * n_categories[j] + cells[:, j]
            if n_categories[i] * n_categories[j] > _TABLE * len(cells):
                # A table of all pairs of many categories would be huge, and nearly empty.
                _, pair = np.unique(pair, return_inverse=True)
            joint = np.bincount(pair, weights=counts)
            share = joint[joint > 0] / n_rows
            entropies[i, j] = entropies[j, i] = -(share * np.log(share)).sum()
    single = np.diag(entropies)
    bias = np.outer(n_categories - 1, n_categories - 1) / (2.0 * n_rows)
    information: Floats = np.maximum(single[:, None] + single - entropies - bias, 0.0)
    np.fill_diagonal(information, 0.0)
    return information
