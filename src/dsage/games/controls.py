"""Choose a control of the draws along orderings, by what the sampler tells about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from dsage._random import Streams
from dsage.games.base import Floats
from dsage.games.draw_control import DrawControl
from dsage.games.prefixes import Control
from dsage.games.quadratic_control import QuadraticControl
from dsage.samplers.base import Sampler
from dsage.samplers.interface import LatentPrefixes, ProjectedPrefixes
from dsage.samplers.noise import Noise

# Draws to which a control is fitted, and the epoch of their noise, which no estimate reaches.
_N_DRAWS, _EPOCH = 1 << 12, (1 << 40) + 1


def fit_control(
    sampler: Sampler,
    row: Floats,
    streams: Streams,
    predict: Callable[[Floats], Floats],
    *,
    corrects_means: bool,
) -> Control | None:
    """Return a control, fitted to draws with no feature known; None if there is none that pays.

    Parameters
    ----------
    sampler : Sampler
        A sampler that draws along orderings.
    row : array of shape (1, n_features)
        Any row.
    streams : Streams
        The game's random numbers.
    predict : callable
        From drawn rows to outputs, (n_rows, n_outputs).
    corrects_means : bool
        Whether the noise is subtracted from mean predictions; otherwise losses are corrected.
    """
    n_features, n_scores = row.shape[1], sampler.n_scores
    is_possible = DrawControl.count_harmonics(n_features, _N_DRAWS) > 0
    if not sampler.has_latent:
        # Quadratic functions follow probabilities too badly to correct losses by their slopes.
        is_possible = n_scores > 0 and corrects_means
    if not is_possible:
        return None
    noise = Noise(streams, n_features, n_replicates=1, n_draws=_N_DRAWS)
    given = row, sampler.prepare(noise(np.zeros(1, dtype=np.intp), _EPOCH))
    ordering = sampler.ordering(np.arange(n_features))
    if sampler.has_latent:
        _, draws, latent = next(cast(LatentPrefixes, ordering).latent_prefixes(*given, [0]))
        return DrawControl.fit(latent.scores[:, 0], predict(draws[0]))
    every = np.eye(n_scores)
    _, draws, sums = next(cast(ProjectedPrefixes, ordering).projected_prefixes(*given, every, [0]))
    return QuadraticControl.fit(sums.drawn[:, 0].T, predict(draws[0]))
