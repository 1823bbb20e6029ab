"""All prefixes of an ordering of the features, drawn with one Cholesky factor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, message
from dsage._frame import Layout
from dsage.samplers.base import Floats
from dsage.samplers.conditioning import (
    Normal,
    as_grid,
    check_scores,
    combine,
    exact_factor,
    lanes,
    lower_factor,
)


class Ordering:
    """All prefixes of one ordering, from one Cholesky factor (made by :meth:`Gaussian.ordering`).

    With the columns in the ordering's order, ``S = L L'`` and ``z = L^-1 (x - mean)``, a draw given
    the first k features is ``mean + L [z_1 .. z_k, e_(k+1) .. e_d]`` with e the normal scores of
    noise. The distribution is that of :meth:`Gaussian.draw`; the draws are others, since here L is
    triangular in the ordering's order and there in that of the columns: the prefixes of one
    ordering are coupled more closely (a feature's noise enters in one way in all of them), and
    coalitions of different orderings less.

    Examples
    --------
    >>> from dsage.samplers.conditioning import normal_scores
    >>> from dsage.samplers.gaussian import Gaussian
    >>> sampler = Gaussian.from_moments([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]])
    >>> ordering = sampler.ordering([1, 0])
    >>> X = np.array([[0.0, 2.0]])
    >>> ordering.whitened(X)
    array([[ 2. , -1.5]])
    >>> scores = normal_scores(np.array([[[0.5, 0.5]]]))
    >>> ordering.draw(1, X, ordering.whitened(X), scores)
    array([[[1.2, 2. ]]])
    """

    def __init__(self, normal: Normal, layout: Layout, order: npt.NDArray[np.intp]) -> None:
        self.order = order
        self._layout = layout
        self._mean = normal.mean[order]
        correlation = normal.correlation[np.ix_(order, order)]
        self.factor: Floats = lower_factor(correlation) * normal.scale[order, None]
        self._exact = exact_factor(self.factor)

    def whitened(self, X: Any) -> Floats:  # noqa: ANN401
        """Return ``z = L^-1 (x - mean)`` of rows, (n_rows, n_features) in the ordering's order.

        It is 0 for a feature that the features before it determine.
        """
        rows = self._layout.encode(X)[:, self.order]
        centred = lanes(rows - self._mean)
        z = np.zeros_like(centred)
        for at, pivot in enumerate(self.factor.diagonal()):
            if pivot > 0:
                known = combine(self.factor[at : at + 1, :at], z[:at])[0]
                z[at] = (centred[at] - known) / pivot
        return np.ascontiguousarray(z[:, : len(rows)].T)

    def draw(
        self,
        n_known: int,
        X: Any,  # noqa: ANN401
        whitened: Floats,
        scores: Floats,
    ) -> Floats:
        """Draw the features after the first `n_known` of the ordering, given these.

        Parameters
        ----------
        n_known : int
            Length of the prefix, 0 to n_features.
        X : data frame or array of shape (n_rows, n_features)
            The rows, columns in the order of the data.
        whitened : array of shape (n_rows, n_features)
            ``whitened(X)``.
        scores : array of shape (n_rows, n_draws, n_features)
            ``normal_scores(noise)``, features in the order of the data. They serve all orderings.

        Returns
        -------
        array of shape (n_rows, n_draws, n_features)
            Features in the order of the data; known ones keep their values.
        """
        n_known = check_count(n_known, "n_known", minimum=0)
        n_features = len(self.order)
        if n_known > n_features:
            raise ValueError(
                message("n_known", f"at most {n_features}", n_known, "That is the number of them")
            )
        first, rest = self.order[:n_known], self.order[n_known:]
        known = np.zeros(n_features, bool)
        known[first] = True
        rows = self._layout.encode(X, known)
        scores = check_scores(scores, len(rows), n_features)
        n_rows, n_draws, _ = scores.shape
        drawn = np.empty((n_rows, n_draws, n_features))
        drawn[...] = rows[:, None, :]
        if n_known < n_features:
            columns = lanes(whitened[:, :n_known])
            shift = combine(self.factor[n_known:, :n_known], columns)[:, :n_rows].T
            flat = np.take(scores.reshape(-1, n_features), rest, axis=1)
            part = (as_grid(flat) @ self._exact[n_known:, n_known:]).reshape(
                n_rows, n_draws, len(rest)
            )
            part += (self._mean[n_known:] + shift)[:, None, :]
            drawn[:, :, rest] = part
        return drawn
