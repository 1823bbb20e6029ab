"""Sums by row: the error from draws, and the variance between rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dsage._files import Arrays
from dsage.games.base import Floats, Mask, Rows
from dsage.samplers.checks import Ints

MAX_BYTES = 2**26
"""Memory of a ledger."""
_STATE = ("counts", "epoch_counts", "freedom", "replicates", "spread", "sums", "squares", "closed")


class Ledger:
    """Sums of surpluses by row and replicate, for the terms of one estimate.

    Within an epoch a row has the same noise in all orderings, so the error from draws does not fall
    with the number of orderings. But rows, replicates and epochs have independent noise: the
    variance between the replicates of a row, after averaging over orderings, estimates that error.

    The error from the choice of rows is estimated by the variance between rows, minus the parts of
    it that orderings and draws cause.

    Beyond `max_bytes`, only every k-th shard is tracked and represents all. The weights of the rows
    have mean one.
    """

    def __init__(
        self,
        shards: Sequence[Rows],
        n_features: int,
        n_replicates: int,
        n_terms: int,
        max_bytes: int = MAX_BYTES,
        weights: Floats | None = None,
    ) -> None:
        self._n_rows = sum(map(len, shards))
        n_bytes = 8 * self._n_rows * n_terms * (n_features * (n_replicates + 3 + 2 * n_terms) + 3)
        n_tracked = max(1, len(shards) * max_bytes // n_bytes)
        step = -(-len(shards) // n_tracked)
        tracked = list(range(0, len(shards), step))
        stops = np.cumsum([len(shards[shard]) for shard in tracked])
        self._at = {
            shard: slice(int(stop) - len(shards[shard]), int(stop))
            for shard, stop in zip(tracked, stops, strict=True)
        }
        n_rows = int(stops[-1])
        self._weights = np.ones(n_rows)
        if weights is not None:
            self._weights = weights[np.concatenate([shards[shard] for shard in tracked])]
        self._n_replicates = n_replicates
        # The shard of each row, among the tracked ones.
        self._number = {shard: number for number, shard in enumerate(tracked)}
        self._shards = np.repeat(np.arange(len(tracked)), [len(shards[at]) for at in tracked])
        # Units of each shard that had the feature.
        self._counts = np.zeros((n_terms, len(tracked), n_features))
        # Those of the open epoch; and all units, minus one for each epoch that has any.
        self._epoch_counts = np.zeros((n_terms, len(tracked), n_features))
        self._freedom = np.zeros((n_terms, len(tracked), n_features))
        self._replicates = np.zeros((n_terms, n_rows, n_replicates, n_features))
        # Variances between the replicates of each unit of the open epoch, summed over units.
        self._spread = np.zeros((n_terms, n_rows, n_features))
        self._sums = np.zeros((n_terms, n_rows, n_features))
        # Sums of squares; in closed epochs around the mean of the epoch.
        self._squares = np.zeros((n_terms, n_rows, n_features))
        # Covariances of terms between replicates, summed over closed epochs, by row.
        self._closed = np.zeros((n_terms, n_terms, n_rows, n_features))
        # Covariances of one replicate in all epochs; None if they have to be recomputed.
        self._covariance: Floats | None = None

    def state(self) -> Arrays:
        """Return the sums by name, without copying."""
        return {name: vars(self)[f"_{name}"] for name in _STATE}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to the sums that `state` returned."""
        self._covariance = None
        for name, own in self.state().items():
            own[...] = state[name]

    def add(self, term: int, shard: int, surplus: Floats, wanted: Mask | None = None) -> None:
        """Add the surpluses of a unit on a shard, (n_rows, n_replicates, n_features).

        With `wanted`, only for these features.
        """
        rows = self._at.get(shard)
        if rows is None:
            return
        self._covariance = None
        number = self._number[shard]
        at = slice(None) if wanted is None else np.flatnonzero(wanted)
        surplus = surplus[..., at]
        self._counts[term, number, at] += 1
        self._freedom[term, number, at] += self._epoch_counts[term, number, at] > 0
        self._epoch_counts[term, number, at] += 1
        self._replicates[term, rows][..., at] += surplus
        mean = surplus.mean(axis=1)
        if self._n_replicates > 1:
            self._spread[term, rows][:, at] += surplus.var(axis=1, ddof=1)
        self._sums[term, rows][:, at] += mean
        self._squares[term, rows][:, at] += mean * mean

    def _by_row(self, counts: Floats, rows: slice | Ints = slice(None)) -> Floats:
        """Return counts of shards, (n_shards, n_features), as counts of some of their rows."""
        return counts[self._shards[rows]]

    def next_epoch(self) -> None:
        """Treat the noise from now on as independent of the noise before."""
        self._covariance = None
        rows = self._visited_rows()
        self._closed[:, :, rows] += self._covariances(rows)
        for term in range(len(self._squares)):
            self._squares[term] -= self._explained(term)
        self._replicates[:] = 0.0
        self._spread[:] = 0.0
        self._epoch_counts[:] = 0

    def _explained(self, term: int) -> Floats:
        """Return the part of the sums of squares that the open epoch's means explain."""
        sums = self._replicates[term].mean(axis=1)
        explained: Floats = sums * sums / self._by_row(np.maximum(self._epoch_counts[term], 1.0))
        return explained

    def _visited_rows(self) -> slice | Ints:
        """Return the rows of the shards that any unit has visited: of very many, a run sees few."""
        is_visited: Mask = np.asarray((self._counts > 0).any(axis=(0, 2)))
        return slice(None) if is_visited.all() else np.flatnonzero(is_visited[self._shards])

    def _covariances(self, rows: slice | Ints) -> Floats:
        """Return the covariances of terms between replicates in the open epoch, by row.

        Draws affect some orderings more than others. This interaction varies with the orderings and
        is part of their error, so it is removed here. With Q the sum over the N units of the
        variance between replicates, and V the variance of the replicates' sums,
        ``N (V - Q) / (N - 1)`` is free of it.
        """
        if self._n_replicates == 1:
            return np.zeros_like(self._closed[:, :, rows])
        replicates = self._replicates[:, rows]
        off = replicates - replicates.mean(axis=2, keepdims=True)
        covariances: Floats = np.einsum("srgf,trgf->strf", off, off) / (self._n_replicates - 1)
        for term, by_shard in enumerate(self._epoch_counts):
            counts = self._by_row(by_shard, rows)
            several = counts > 1
            scale = counts / np.where(several, counts - 1, 1.0)
            own = covariances[term, term]
            np.copyto(own, scale * (own - self._spread[term, rows]), where=several)
        return covariances

    def draw_variance(self, terms: Sequence[int]) -> Floats:
        """Return the variance from draws of a sum of terms, each a mean over its rows."""
        total = np.zeros(self._sums.shape[-1])
        for s, t, covariance in self._pairs(terms):
            total += covariance.sum(axis=0) / (self._n_used(s) * self._n_used(t))
        # The tracked rows represent all.
        return np.maximum(total, 0.0) * (self._n_rows / len(self._shards))

    @property
    def df_draws(self) -> Floats:
        """Degrees of freedom of `draw_variance` of the first term, for each feature.

        A row has one for each epoch and replicate but one, ``k_r``. As draws change some rows much
        more than others, the variance has fewer than all rows together: by Satterthwaite's formula
        ``(sum of V_r)^2 / sum of V_r^2 / k_r`` for rows with variances ``V_r``. The square of an
        estimated variance is too large by a factor of ``1 + 2 / k_r`` on average.
        """
        epochs = self._counts[0] - self._freedom[0]
        own = self._by_row(epochs * (self._n_replicates - 1), self._visited_rows())
        scale = self._n_rows / len(self._shards)
        most = np.maximum(own.sum(axis=0) * scale, 1.0)
        _, _, variances = next(self._pairs([0]))
        # Relative to the largest, as squares of large numbers overflow.
        largest = np.abs(variances).max(axis=0, initial=0.0)
        variances = variances / np.where(largest > 0, largest, 1.0)
        squares = np.divide(variances**2, own + 2.0, out=np.zeros_like(own), where=own > 0)
        total, squares = np.maximum(variances.sum(axis=0), 0.0), squares.sum(axis=0)
        found = np.divide(scale * total**2, squares, out=most.copy(), where=squares > 0)
        df: Floats = np.clip(found, 1.0, most)
        return df

    @property
    def n_epochs(self) -> float:
        """Number of epochs that a row was evaluated in, on average over rows that were."""
        n_epochs = (self._counts[0] - self._freedom[0]).max(axis=1)[self._shards]
        n_epochs = n_epochs[n_epochs > 0]
        return float(n_epochs.mean()) if len(n_epochs) else 0.0

    def row_variance(self, terms: Sequence[int]) -> Floats:
        """Return the variance of the mean from the choice of the rows."""
        of_shards = np.asarray((self._counts[list(terms)] > 0).all(axis=(0, 2)))
        visited: Mask = of_shards[self._shards]
        n_features = self._sums.shape[-1]
        if visited.sum() < 2:
            return np.full(n_features, np.nan)
        rows = np.zeros((int(visited.sum()), n_features))
        noise = np.zeros(n_features)
        for term in terms:
            count = self._by_row(self._counts[term])[visited]
            rows += self._sums[term][visited] / count
            # Within epochs: the variance of their noise is part of the variance of the draws.
            freedom = self._by_row(self._freedom[term])[visited].sum(axis=0)
            if freedom.any():
                spread = (self._squares[term] - self._explained(term))[visited].sum(axis=0)
                shares = np.ascontiguousarray(1.0 / count.T).mean(axis=1)
                known = np.maximum(spread, 0.0) / np.maximum(freedom, 1.0) * shares
                noise += np.where(freedom > 0, known, 0.0)
        # A weighted mean is a ratio, so the weights alone must not add to the variance.
        weights = self._weights[visited]
        rows -= np.outer(weights - 1.0, rows.sum(axis=0) / max(weights.sum(), 1e-300))
        spread_of_rows = rows.var(axis=0, ddof=1)
        among = visited[self._visited_rows()]
        drawn = sum(covariance[among].mean(axis=0) for *_, covariance in self._pairs(terms))
        left: Floats = np.maximum(spread_of_rows - noise - drawn, 0.0)
        return left / self._n_rows

    @property
    def df_rows(self) -> float:
        """Degrees of freedom of `row_variance`: the effective number of rows minus one."""
        weights = self._weights
        share = float(weights.sum() ** 2 / max((weights**2).sum(), 1e-300)) / len(weights)
        return max(share * self._n_rows - 1.0, 1.0)

    def _pairs(self, terms: Sequence[int]) -> Iterator[tuple[int, int, Floats]]:
        """Yield pairs of terms with their covariances from draws, by visited row."""
        rows = self._visited_rows()
        if self._covariance is None:
            closed = self._closed[:, :, rows]
            self._covariance = (closed + self._covariances(rows)) / self._n_replicates
        for s in terms:
            for t in terms:
                both = self._counts[s] * self._counts[t]
                both = self._by_row(np.where(both > 0, both, np.inf), rows)
                yield s, t, self._covariance[s, t] / both

    def _n_used(self, term: int) -> Floats:
        """Return the number of rows a term used for each feature, from the tracked rows."""
        n_rows = np.bincount(self._shards, minlength=self._counts.shape[1])
        share = n_rows @ (self._counts[term] > 0) / len(self._shards)
        n_used: Floats = np.maximum(share * self._n_rows, 1.0)
        return n_used
