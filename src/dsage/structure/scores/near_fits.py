"""Logistic regressions of classes that start from those on other columns."""

from __future__ import annotations

from collections import deque

import numpy as np

from dsage.structure.blocks import Blocks, Floats, Ints
from dsage.structure.scores.softmax import softmax_near

# Fits of each class that are remembered.
_N_REMEMBERED = 4


class NearFits:
    """The likelihoods of classes in logistic regressions, each found from a similar one on.

    A search asks for regressions one after the other that differ by one parent. The log odds of the
    regression with the most columns in common, projected on the columns, are a good start.

    Parameters
    ----------
    blocks : Blocks
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._fits: dict[int, deque[tuple[Ints, Floats]]] = {}

    def likelihood(self, node: int, columns: Ints, rows: Floats) -> float:
        """Return the largest log-likelihood of a class given columns of the blocks.

        `rows` are these columns of the sample.
        """
        known = self._fits.setdefault(node, deque(maxlen=_N_REMEMBERED))
        correlation = self._blocks.correlation
        start = None
        if known:
            used, weights = max(known, key=lambda fit: _overlap(fit[0], columns))
            covariances = weights[:, 1:] @ correlation[np.ix_(used, columns)]
            start = np.concatenate([weights[:, :1], covariances], axis=1)
        inner = correlation[np.ix_(columns, columns)]
        value, found = softmax_near(rows, self._blocks.levels[node], inner, start)
        known.append((columns, found))
        return value


def _overlap(used: Ints, columns: Ints) -> int:
    """Return the number of common columns, less those that the others lack."""
    common = len(np.intersect1d(used, columns, assume_unique=True))
    return 3 * common - len(used) - len(columns)
