"""Mean predictions of trees over the rows of a marginal sampler, exact and without predictions."""

from __future__ import annotations

import numpy as np

from dsage.games.base import Floats, Mask, Rows
from dsage.games.exact_means import ExactMeans
from dsage.models.leaves import Leaves

# Conditions of training rows that a coalition may ask for: more take longer than predictions.
_MOST_CONDITIONS = 30_000_000


class LeafMeans(ExactMeans):
    """The means of a model's predictions over all training rows, given the known features.

    With known features from an evaluation row x and the others from a training row b, a leaf is
    reached if x meets its conditions on known features and b those on the others. So

        mean over b of f(x_S, b) = intercept
            + sum over leaves l of value_l [x meets l on S] (share of b that meet l outside of S)

    which takes two comparisons of integers for each leaf: conditions are bits.

    Parameters
    ----------
    leaves : Leaves
        The leaves of the model.
    background : array of shape (n_training, n_features)
        The training rows.
    matrix : array of shape (n_rows, n_features)
        The evaluation rows.
    """

    def __init__(self, leaves: Leaves, background: Floats, matrix: Floats) -> None:
        self._leaves = leaves
        self._met, self._background = leaves.met(matrix), leaves.met(background)

    @staticmethod
    def pays(leaves: Leaves, n_background: int, n_rows: int, max_bytes: int) -> bool:
        """Whether the conditions of all rows are few enough to be kept and compared."""
        n_leaves, size = len(leaves.values), leaves.all_bits.itemsize
        fits = (n_background + n_rows) * n_leaves * size <= max_bytes
        return fits and n_background * n_leaves <= _MOST_CONDITIONS

    def means(self, known: Mask, rows: Rows) -> Floats:
        """Return the means (n_coalitions, n_rows, n_outputs)."""
        leaves, met = self._leaves, self._met[rows]
        found = np.empty((len(known), len(rows), leaves.n_outputs))
        for coalition, out in zip(known, found, strict=True):
            bits = leaves.known_bits(coalition)
            share = ((self._background | bits) == leaves.all_bits).mean(axis=0)
            is_reached = (met & bits) == bits
            for output, value in enumerate(leaves.values.T):
                # In a matrix product, the rounding of a row would depend on the other rows.
                sums = np.where(is_reached, value * share, 0.0).sum(axis=1)
                out[:, output] = leaves.intercept[output] + sums
        return found
