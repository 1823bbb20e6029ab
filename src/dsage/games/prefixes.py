"""What is known along one ordering: draws for chunks of its prefixes, and expected outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dsage.games.base import Floats, Rows
from dsage.games.draw_control import DrawControl
from dsage.models.affine import Affine
from dsage.samplers.interface import LatentPrefixes, Prefixes
from dsage.samplers.ordering import Ordering


def expect_prefixes(affine: Affine, ordering: Ordering, order: Rows, X: Floats) -> Floats:
    """Return the outputs of an affine model for all proper prefixes, (n_features, n_rows, ...).

    With ``S = L L'`` in the ordering's order and ``z = L^-1 (x - mean)``, the expected output given
    the first k features is ``a + w'mean + sum over i <= k of (L'w)_i z_i``: all prefixes need one
    factor and a cumulative sum.
    """
    start = affine.intercept + ordering.mean @ affine.weights
    effects = np.einsum("kf,ko->fo", ordering.factor, affine.weights[order])
    values = np.zeros((len(order) + 1, len(X), effects.shape[1]))
    shifts = ordering.whitened(X).T[:, :, None] * effects[:, None, :]
    np.cumsum(shifts, axis=0, out=values[1:])
    values += start
    return values[:-1]


def draw_chunks(
    ordering: Prefixes, X: Floats, scores: Floats, chunks: Sequence[Rows]
) -> Iterator[Floats]:
    """Yield the draws for chunks of prefixes of an ordering, given by their lengths."""
    drawn = ordering.prefixes(X, scores, _all_lengths(chunks))
    for at in chunks:
        draws = np.empty((len(at), *scores.shape))
        for each in draws:
            each[...] = next(drawn)[1]
        yield draws


def draw_noisy(
    control: DrawControl,
    ordering: LatentPrefixes,
    X: Floats,
    scores: Floats,
    chunks: Sequence[Rows],
    outputs: Rows | None,
) -> Iterator[tuple[Floats, Floats]]:
    """Yield the draws for chunks of prefixes, and the noise that a control knows in each."""
    drawn = ordering.latent_prefixes(X, scores, _all_lengths(chunks))
    for at in chunks:
        draws, noise = np.empty((len(at), *scores.shape)), []
        for each in draws:
            _, each[...], latent = next(drawn)
            noise.append(control.noise(latent, outputs))
        yield draws, np.stack(noise)


def _all_lengths(chunks: Sequence[Rows]) -> list[int]:
    return [length for at in chunks for length in at.tolist()]
