"""Row by row: what is left of the noise of draws, and how much the rows differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dsage._files import Arrays
from dsage.games.base import Floats, Mask, Rows

_MAX_BYTES = 2**27


class Ledger:
    """Sums of surpluses by row and by group of draws, for the terms of one estimate.

    Within an epoch a row has the same noise in all orderings, so the error that draws leave does
    not fall with orderings. But rows have independent noise, and so have groups and epochs: the
    variance between the groups of a row, after the mean over orderings, tells that error.

    Rows differ, which only more rows can help: that is the variance between rows, less what
    orderings and draws add to it.

    Parameters
    ----------
    blocks : sequence of int arrays
        The rows of each block.
    n_features, n_replicates, n_terms : int
        Features, groups of draws, and terms that are added up.
    max_bytes : int
        Where more would be needed, every k-th block stands for all.
    weights : array, optional
        Weights of the rows by their numbers, with mean one, where surpluses are weighted.
    """

    def __init__(
        self,
        blocks: Sequence[Rows],
        n_features: int,
        n_replicates: int,
        n_terms: int,
        max_bytes: int = _MAX_BYTES,
        weights: Floats | None = None,
    ) -> None:
        self._n_rows = sum(map(len, blocks))
        n_bytes = 8 * self._n_rows * n_terms * (n_features * (n_replicates + 3 + 2 * n_terms) + 3)
        n_tracked = max(1, len(blocks) * max_bytes // n_bytes)
        step = -(-len(blocks) // n_tracked)
        tracked = list(range(0, len(blocks), step))
        stops = np.cumsum([len(blocks[block]) for block in tracked])
        self._at = {
            block: slice(int(stop) - len(blocks[block]), int(stop))
            for block, stop in zip(tracked, stops, strict=True)
        }
        n_rows = int(stops[-1])
        self._weights = np.ones(n_rows)
        if weights is not None:
            self._weights = weights[np.concatenate([blocks[block] for block in tracked])]
        self._n_replicates = n_replicates
        self._counts = np.zeros((n_terms, n_rows))
        # Units of the open epoch, and all units less one for each epoch that has any.
        self._epoch_counts = np.zeros((n_terms, n_rows))
        self._freedom = np.zeros((n_terms, n_rows))
        self._replicates = np.zeros((n_terms, n_rows, n_replicates, n_features))
        # Variances between the groups of each unit of the open epoch, summed over units.
        self._spread = np.zeros((n_terms, n_rows, n_features))
        self._sums = np.zeros((n_terms, n_rows, n_features))
        # Sums of squares; in closed epochs around the mean of the epoch.
        self._squares = np.zeros((n_terms, n_rows, n_features))
        # Sums over closed epochs of the covariances of terms between groups, row by row.
        self._closed = np.zeros((n_terms, n_terms, n_rows, n_features))
        # What draws leave in a group, as it is asked for several times; None where it is not known.
        self._left_in_replicate: Floats | None = None

    def state(self) -> Arrays:
        """Return the sums by name, without copying."""
        return {
            "counts": self._counts,
            "epoch_counts": self._epoch_counts,
            "freedom": self._freedom,
            "replicates": self._replicates,
            "spread": self._spread,
            "sums": self._sums,
            "squares": self._squares,
            "closed": self._closed,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to the sums that `state` returned."""
        self._left_in_replicate = None
        for name, own in self.state().items():
            own[...] = state[name]

    def add(self, term: int, block: int, surplus: Floats) -> None:
        """Add what a unit gives on a block: (n_rows, n_replicates, n_features)."""
        at = self._at.get(block)
        if at is None:
            return
        self._left_in_replicate = None
        self._counts[term, at] += 1
        self._freedom[term, at] += self._epoch_counts[term, at] > 0
        self._epoch_counts[term, at] += 1
        self._replicates[term, at] += surplus
        mean = surplus.mean(axis=1)
        if self._n_replicates > 1:
            self._spread[term, at] += surplus.var(axis=1, ddof=1)
        self._sums[term, at] += mean
        self._squares[term, at] += mean * mean

    def next_epoch(self) -> None:
        """Let the noise from now on be independent of that before."""
        self._left_in_replicate = None
        self._closed += self._covariances()
        for term in range(len(self._squares)):
            self._squares[term] -= self._explained(term)
        self._replicates[:] = 0.0
        self._spread[:] = 0.0
        self._epoch_counts[:] = 0

    def _explained(self, term: int) -> Floats:
        """Return what the means of the open epoch take from the sums of squares, row by row."""
        sums = self._replicates[term].mean(axis=1)
        explained: Floats = sums * sums / np.maximum(self._epoch_counts[term], 1.0)[:, None]
        return explained

    def _covariances(self) -> Floats:
        """Return the covariances of terms between groups in the open epoch, row by row.

        Draws act on some orderings more than on others. What of this is left in the mean over N
        units varies with the orderings, and is part of their error; so it is taken off here. With
        Q the sum over units of the variance between groups, and V that of the groups' sums,
        ``N (V - Q) / (N - 1)`` is free of it.
        """
        if self._n_replicates == 1:
            return np.zeros_like(self._closed)
        off = self._replicates - self._replicates.mean(axis=2, keepdims=True)
        covariances: Floats = np.einsum("srgf,trgf->strf", off, off) / (self._n_replicates - 1)
        for term, counts in enumerate(self._epoch_counts):
            several = counts > 1
            scale = (counts[several] / (counts[several] - 1))[:, None]
            own = covariances[term, term]
            own[several] = scale * (own[several] - self._spread[term, several])
        return covariances

    def draw_variance(self, terms: Sequence[int]) -> Floats:
        """Return the variance that draws leave in a sum of terms, each a mean over its rows."""
        total = np.zeros(self._sums.shape[-1])
        for s, t, covariance in self._left(terms):
            total += covariance.sum(axis=0) / (self._n_used(s) * self._n_used(t))
        # The tracked rows stand for all.
        return np.maximum(total, 0.0) * (self._n_rows / self._counts.shape[1])

    @property
    def df_draws(self) -> float:
        """Degrees of freedom of `draw_variance`: rows and epochs times groups less one."""
        n_drawn = float((self._counts[0] - self._freedom[0]).sum())
        n_drawn *= self._n_rows / self._counts.shape[1]
        return max(n_drawn * (self._n_replicates - 1), 1.0)

    def row_variance(self, terms: Sequence[int]) -> Floats:
        """Return the variance that the choice of the rows leaves in their mean."""
        visited = self._visited(terms)
        n_features = self._sums.shape[-1]
        if visited.sum() < 2:
            return np.full(n_features, np.nan)
        rows = np.zeros((int(visited.sum()), n_features))
        noise = np.zeros(n_features)
        for term in terms:
            count = self._counts[term][visited][:, None]
            rows += self._sums[term][visited] / count
            # Within epochs: what their noise adds is told by the draws, and counted there.
            freedom = float(self._freedom[term][visited].sum())
            if freedom:
                spread = (self._squares[term] - self._explained(term))[visited].sum(axis=0)
                noise += np.maximum(spread, 0.0) / freedom * float((1.0 / count).mean())
        # A mean of weighted rows is a ratio: a heavy row tells nothing by its weight alone.
        weights = self._weights[visited]
        rows -= np.outer(weights - 1.0, rows.sum(axis=0) / max(weights.sum(), 1e-300))
        spread_of_rows = rows.var(axis=0, ddof=1)
        drawn = sum(covariance[visited].mean(axis=0) for *_, covariance in self._left(terms))
        left: Floats = np.maximum(spread_of_rows - noise - drawn, 0.0)
        return left / self._n_rows

    @property
    def df_rows(self) -> float:
        """Degrees of freedom of `row_variance`: one less than the rows that weights leave."""
        weights = self._weights
        share = float(weights.sum() ** 2 / max((weights**2).sum(), 1e-300)) / len(weights)
        return max(share * self._n_rows - 1.0, 1.0)

    def _visited(self, terms: Sequence[int]) -> Mask:
        visited: Mask = np.asarray((self._counts[list(terms)] > 0).all(axis=0))
        return visited

    def _left(self, terms: Sequence[int]) -> Iterator[tuple[int, int, Floats]]:
        """Yield pairs of terms with the covariances that draws leave in them, row by row."""
        if self._left_in_replicate is None:
            self._left_in_replicate = (self._closed + self._covariances()) / self._n_replicates
        for s in terms:
            for t in terms:
                both = self._counts[s] * self._counts[t]
                yield (
                    s,
                    t,
                    self._left_in_replicate[s, t] / np.where(both > 0, both, np.inf)[:, None],
                )

    def _n_used(self, term: int) -> float:
        """Return how many rows a term used, from the share of the tracked ones that it did."""
        return max(float((self._counts[term] > 0).mean()) * self._n_rows, 1.0)
