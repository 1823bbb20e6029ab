"""Mean predictions of scores behind a link over all rows of a marginal sampler."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dsage.games.base import Floats, Mask, Rows
from dsage.games.exact_means import ExactMeans
from dsage.models.link_scores import Scores

# Lookups for one more known feature of a row: more take longer than predictions of a few draws.
_MOST_LOOKUPS = 1 << 15
# Pairs of an evaluation row and a training row that are treated at a time.
_PAIRS_AT_ONCE = 1 << 13


class ScoreMeans(ExactMeans):
    """The means of a model's predictions over all training rows, given the known features.

    With known features from an evaluation row x and the others from a training row b, the mean of
    ``link(scores of (x_S, b))`` over b is exact: see :class:`~dsage.models.scores.Scores`.

    Parameters
    ----------
    scores : Scores
        The scores of the model.
    background : array of shape (n_training, n_features)
        The training rows.
    matrix : array of shape (n_rows, n_features)
        The evaluation rows.
    """

    has_paths = True

    def __init__(self, scores: Scores, background: Floats, matrix: Floats) -> None:
        self._scores, self._matrix = scores, matrix
        self._background = scores.encode(background)
        self.cost = len(background) * (scores.n_scores + scores.n_steps)
        self._n_at_once = max(1, _PAIRS_AT_ONCE // len(background))

    @staticmethod
    def pays(scores: Scores, n_background: int) -> bool:
        """Whether all training rows take no longer than predictions of draws."""
        return n_background * (scores.n_steps + 2) <= _MOST_LOOKUPS

    def means(self, known: Mask, rows: Rows) -> Floats:
        """Return the means (n_coalitions, n_rows, n_outputs)."""
        parts = []
        for some in self._portions(rows):
            x = self._scores.encode(self._matrix[some])
            found = [self._scores.means(each, x, self._background) for each in known]
            parts.append(np.stack(found))
        return np.concatenate(parts, axis=1)

    def path_means(self, order: Rows, rows: Rows) -> Floats:
        """Return the means (n_features, n_rows, n_outputs) of all proper prefixes."""
        parts = []
        for some in self._portions(rows):
            x = self._scores.encode(self._matrix[some])
            parts.append(self._scores.path_means(order, x, self._background))
        return np.concatenate(parts, axis=1)

    def _portions(self, rows: Rows) -> Iterator[Rows]:
        for first in range(0, len(rows), self._n_at_once):
            yield rows[first : first + self._n_at_once]
