"""All prefixes of an ordering of the features, drawn with one Cholesky factor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from dsage._check import check_count, refusal
from dsage.data.layout import Layout
from dsage.data.missing import check_finite
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.conditioning import (
    GRID,
    Normal,
    as_grid,
    check_scores,
    exact_factor,
    lower_factor,
    whiten,
)
from dsage.samplers.latent import Latent
from dsage.samplers.sums import SumLaw

_CHUNK_CELLS = 65_536  # of the arrays that a step reads and writes again and again
_CHUNK_DRAWS = 2_048  # with fewer at a time, calls cost more than what they compute
_FEW_CELLS = 1_024  # of a feature, up to which all features are changed in one call


class Ordering:
    """All prefixes of one ordering, from one Cholesky factor (made by :meth:`Gaussian.ordering`).

    With the columns in the ordering's order, ``S = L L'`` and ``z = L^-1 (x - mean)``, a draw given
    the first k features is ``mean + L [z_1 .. z_k, e_(k+1) .. e_d]`` with e the normal scores of
    noise. Making one more feature known adds ``L_ik (z_k - e_k)`` to each feature i after it: one
    multiplication and one addition per value.

    The distribution is the same as for :meth:`Gaussian.draw`. The draws differ, since L is
    triangular in the order of the ordering here, and in the order of the columns there: the
    prefixes of one ordering are coupled more closely (a feature's noise enters all of them in the
    same way), and coalitions of different orderings less closely.

    Examples
    --------
    >>> from dsage.samplers import Gaussian, normal_scores
    >>> sampler = Gaussian.from_moments([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]])
    >>> ordering = sampler.ordering([1, 0])
    >>> X = np.array([[0.0, 2.0]])
    >>> ordering.whitened(X)
    array([[ 2. , -1.5]])
    >>> scores = normal_scores(np.array([[[0.5, 0.5]]]))
    >>> for n_known, draws in ordering.prefixes(X, scores):
    ...     print(n_known, draws.round(3))
    0 [[[0. 0.]]]
    1 [[[1.2 2. ]]]
    2 [[[0. 2.]]]
    """

    def __init__(self, normal: Normal, layout: Layout, order: Ints) -> None:
        self.order = order
        self._layout = layout
        self.mean = normal.mean
        correlation = normal.correlation[np.ix_(order, order)]
        self.factor: Floats = lower_factor(correlation) * normal.scale[order, None]

    @cached_property
    def _weights(self) -> Floats:
        """The factor in the order of the data."""
        weights = np.zeros_like(self.factor)
        weights[np.ix_(self.order, self.order)] = self.factor
        return weights

    @cached_property
    def _exact_weights(self) -> tuple[Floats, Floats]:
        """Two factors, transposed, whose sum are the weights and whose products are exact.

        They are the leading digits of the weights, and what these round off.
        """
        coarse = exact_factor(self._weights)
        return coarse, exact_factor(self._weights - coarse.T / GRID)

    def whitened(self, X: Any) -> Floats:  # noqa: ANN401
        """Return ``z = L^-1 (x - mean)`` of rows, (n_rows, n_features) in the ordering's order.

        It is 0 for a feature that is determined by the features before it.
        """
        rows = self._layout.encode(X)
        check_finite(rows, self._layout.names)
        return np.ascontiguousarray(self.whiten_encoded(rows).T)

    def whiten_encoded(self, rows: Floats) -> Floats:
        """Return z of encoded rows (n_rows, n_features), (n_features, n_rows); see `whitened`."""
        return self._whiten(rows, len(self.order))

    def sum_laws(self, rows: Floats, weights: Floats) -> Iterator[SumLaw]:
        """Yield the distributions of ``weights' x`` for all proper prefixes, the empty one first.

        With w the weights in the ordering's order, the mean of the sums given the first k features
        is ``w'mean + sum over i <= k of (L'w)_i z_i``, and their covariance is the sum over i > k
        of ``(L'w)_i (L'w)_i'``.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)
            Encoded rows.
        weights : array of shape (n_features, n_sums)
            The weights.
        """
        z = self.whiten_encoded(rows)
        effects = np.einsum("kf,ko->fo", self.factor, weights[self.order])
        products = effects[:, :, None] * effects[:, None, :]
        covariances = np.cumsum(products[::-1], axis=0)[::-1]
        means = np.tile(self.mean @ weights, (len(rows), 1))
        for at, covariance in enumerate(covariances):
            yield SumLaw.normal(means, covariance)
            means = means + z[at][:, None] * effects[at]

    def prefixes(
        self,
        X: Any,  # noqa: ANN401
        scores: Floats,
        lengths: Iterable[int] | None = None,
    ) -> Iterator[tuple[int, Floats]]:
        """Draw the features after each prefix of the ordering, given the prefix.

        One array of draws is updated from prefix to prefix. The draws for a length do not depend on
        the other lengths, nor the draws of a row on the other rows, to the bit. Besides the
        arguments it needs little more than ``8 n_rows n_draws n_features`` bytes, and twice that if
        draws have to be moved to possible values: pass rows in chunks to bound that.

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_features)
            The rows, without missing values. Features in none of the prefixes are ignored.
        scores : array of shape (n_rows, n_draws, n_features)
            ``normal_scores(noise)``, features in the order of the data, for all orderings.
        lengths : iterable of int, optional
            The lengths of the prefixes, ascending; by default all, 0 to n_features.

        Yields
        ------
        n_known : int
            The length of the prefix.
        draws : array of shape (n_rows, n_draws, n_features)
            Features in the order of the data, contiguous; known ones keep their values, others are
            possible ones. A read-only view of an array that the next step changes: use or copy it
            before that.
        """
        rows, wanted = self._read(X, lengths)
        checked = check_scores(scores, *rows.shape)
        z = self._whiten(self._to_scores(rows), max(wanted, default=0))
        return ((length, draws) for length, draws, _ in self._prefixes(rows, z, checked, wanted))

    def latent_prefixes(
        self,
        X: Any,  # noqa: ANN401
        scores: Floats,
        lengths: Iterable[int] | None = None,
    ) -> Iterator[tuple[int, Floats, Latent]]:
        """Draw as `prefixes` does, and also return the normal scores behind the draws.

        The parameters are the same as for `prefixes`; each item also has a :class:`Latent`.
        """
        rows, wanted = self._read(X, lengths)
        z = self._whiten(self._to_scores(rows), max(wanted, default=0))
        centers = np.repeat(self.mean[:, None], len(rows), axis=1)
        # The sums over later features of squared weights, in the ordering's order.
        variances = np.cumsum(self.factor[:, ::-1] ** 2, axis=1)[:, ::-1]
        at = 0
        checked = check_scores(scores, *rows.shape)
        for length, draws, drawn in self._prefixes(rows, z, checked, wanted):
            for step in range(at, length):
                centers += self._weights[:, self.order[step], None] * z[step]
            at, rest = length, self.order[length:]
            spreads = np.sqrt(variances[length:, length]) if len(rest) else np.empty(0)
            yield (
                length,
                draws,
                Latent(rest, drawn[rest], centers[rest, :, None], spreads[:, None, None]),
            )

    def _to_scores(self, rows: Floats) -> Floats:
        """Return the normal variables: the rows themselves."""
        return rows

    def _read(
        self,
        X: Any,  # noqa: ANN401
        lengths: Iterable[int] | None,
    ) -> tuple[Floats, list[int]]:
        """Return rows as a matrix, with zeros for features in none of the prefixes, and lengths."""
        n_features = len(self.order)
        wanted = check_lengths(range(n_features + 1) if lengths is None else lengths, n_features)
        ever_known = self._is_known(max(wanted, default=0))
        rows = self._layout.encode(X, ever_known)
        check_finite(rows, self._layout.names)
        return rows, wanted

    def _is_known(self, length: int) -> Mask:
        known = np.zeros(len(self.order), bool)
        known[self.order[:length]] = True
        return known

    def _prefixes(
        self, rows: Floats, z: Floats, scores: Floats, lengths: list[int]
    ) -> Iterator[tuple[int, Floats, Floats]]:
        """Yield lengths, draws, and the scores (n_features, n_rows, n_draws) behind them.

        `z` are the whitened rows, see `_whiten`.
        """
        possible = self._layout.possible
        # Steps continue from unmoved draws, so the moved ones are copies.
        shown = None if possible.is_free else np.empty((rows.shape[1], *scores.shape[:2]))
        for length, draws in self._steps(rows, z, scores, lengths):
            if shown is None:
                view = draws.transpose(1, 2, 0)
            else:
                np.copyto(shown, draws)
                view = shown.transpose(1, 2, 0)
                possible.snap(view, self._is_known(length))
            view.flags.writeable = False
            yield length, view, draws

    def _steps(
        self, rows: Floats, z: Floats, scores: Floats, lengths: list[int]
    ) -> Iterator[tuple[int, Floats]]:
        """Yield draws (n_features, n_rows, n_draws) for prefixes: one array, changed in place."""
        draws = self._all_unknown(scores)
        at = 0
        for length in lengths:
            self._make_known(draws, rows, z, scores, at, length)
            at = length
            yield length, draws

    def _whiten(self, rows: Floats, length: int) -> Floats:
        """Return z of the first features of the ordering, (length, n_rows)."""
        first = self.order[:length]
        return whiten(self.factor[:length, :length], rows[:, first] - self.mean[first])

    def _all_unknown(self, scores: Floats) -> Floats:
        """Return draws for the empty prefix, (n_features, n_rows, n_draws)."""
        n_rows, n_draws, n_features = scores.shape
        draws = np.empty((n_features, n_rows, n_draws))
        flat = draws.reshape(n_features, -1)
        by_draw = scores.reshape(-1, n_features)
        coarse, fine = self._exact_weights
        for start in range(0, len(by_draw), _CHUNK_DRAWS):
            chunk = slice(start, start + _CHUNK_DRAWS)
            steps = as_grid(by_draw[chunk]).T
            part = coarse.T @ steps
            part += fine.T @ steps
            np.add(part, self.mean[:, None], out=flat[:, chunk])
        return draws

    def _make_known(
        self, draws: Floats, rows: Floats, z: Floats, scores: Floats, start: int, stop: int
    ) -> None:
        """Go from the prefix of length `start` to the one of length `stop`, in place."""
        new, rest = self.order[start:stop], self.order[stop:]
        draws[new] = rows.T[new, :, None]
        n_rows, n_draws = draws.shape[1:]
        size = max(max(_CHUNK_CELLS // (len(new) + 2), _CHUNK_DRAWS) // max(n_draws, 1), 1)
        for first in range(0, n_rows if len(new) else 0, size):
            chunk = slice(first, first + size)
            noise = as_grid(scores[chunk].transpose(2, 0, 1)[new]) * GRID
            change = z[start:stop, chunk, None] - noise
            if change[0].size <= _FEW_CELLS:
                # All features at once: the same products and sums, in fewer calls.
                for member, one in zip(new.tolist(), change, strict=True):
                    draws[rest, chunk] += self._weights[rest, member, None, None] * one
                continue
            product = np.empty(change.shape[1:])
            for feature in rest.tolist():
                target = draws[feature, chunk]
                for weight, one in zip(self._weights[feature, new].tolist(), change, strict=True):
                    if weight:
                        np.multiply(one, weight, out=product)
                        target += product


def check_lengths(lengths: Iterable[int], n_features: int) -> list[int]:
    """Return lengths of prefixes, ascending and at most the number of features."""
    checked = [check_count(length, "lengths", minimum=0) for length in lengths]
    if (longest := max(checked, default=0)) > n_features:
        raise refusal("lengths", f"at most {n_features}", longest, "There are no more features")
    if any(one >= other for one, other in pairwise(checked)):
        raise refusal("lengths", "ascending", checked, "Sort them and drop duplicates")
    return checked
