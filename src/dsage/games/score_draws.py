"""Draws of the scores of several classes, instead of draws of the features."""

from __future__ import annotations

import numpy as np

from dsage._random import Streams
from dsage.games.base import Floats, Rows, mean_within
from dsage.models.link_scores import apply_link
from dsage.samplers.conditioning import exact_factor, grid_scores, lower_factor
from dsage.samplers.noise import Noise
from dsage.samplers.sums import SumLaw

# Draws of scores in place of one draw of features: they cost far less.
_MORE_DRAWS = 4
# Pairs of a row and a draw of its scores that are treated at a time.
_PAIRS_AT_ONCE = 1 << 14


class ScoreDraws:
    """Draws of the differences of K normal scores from the first one, behind a softmax.

    The softmax of K scores depends on K - 1 differences, so that a draw has K - 1 coordinates
    however many features there are.

    Parameters
    ----------
    n_drawn : int
        The number of differences, K - 1.
    """

    def __init__(self, n_drawn: int) -> None:
        self._n_drawn = n_drawn
        self._noises: dict[object, Noise] = {}

    def bytes_per_row(self, noise: Noise) -> int:
        """Return the memory for a row and a coalition."""
        n_draws = _MORE_DRAWS * noise.n_draws * noise.n_replicates
        return 8 * n_draws * 4 * (self._n_drawn + 1)

    def steps(self, rows: Rows, epoch: int, noise: Noise) -> Floats:
        """Return normal scores in steps of the grid, (n_rows, n_draws, n_drawn).

        They have the replicates of the given noise, and more draws.
        """
        own = self._noises.get(noise.key)
        if own is None:
            # Replicates stay independent: no stream of the given noise is used again.
            seed = int(Streams(noise.key[0])("score-draws").integers(2**62))
            own = self._noises[noise.key] = Noise(
                Streams(seed),
                self._n_drawn,
                n_replicates=noise.n_replicates,
                n_draws=_MORE_DRAWS * noise.n_draws,
                kind="sobol" if noise.kind == "sobol" else "independent",
            )
        return grid_scores(own(rows, epoch))

    def means(self, law: SumLaw, steps: Floats, n_replicates: int) -> Floats:
        """Return the mean probabilities (n_rows, n_replicates, n_classes) of a distribution."""
        factors = [exact_factor(_root(covariance)) for covariance in law.covariances]
        n_rows, n_draws, _ = steps.shape
        out = np.zeros((n_rows, n_replicates, self._n_drawn + 1))
        size = max(1, _PAIRS_AT_ONCE // n_draws)
        for first in range(0, n_rows, size):
            here = slice(first, first + size)
            for shares, means, factor in zip(law.shares, law.means, factors, strict=True):
                drawn = steps[here] @ factor
                drawn += means[here, None]
                scores = np.zeros((self._n_drawn + 1, *drawn.shape[:2]))
                scores[1:] = np.moveaxis(drawn, 2, 0)
                predicted = np.moveaxis(apply_link("softmax", scores), 0, 2)
                sets = predicted.reshape(len(drawn), n_replicates, -1, self._n_drawn + 1)
                out[here] += shares[here, None, None] * mean_within(sets, axis=2)
        return out


def _root(covariance: Floats) -> Floats:
    """Return a lower factor of a covariance, which may be singular."""
    scale = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    divisor = np.where(scale > 0, scale, 1.0)
    factor: Floats = lower_factor(covariance / divisor[:, None] / divisor) * scale[:, None]
    return factor
