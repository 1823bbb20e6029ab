"""Draws and predictions for chunks of the prefixes of an ordering, and expected outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from dsage.games.base import Floats, Mask, Rows
from dsage.models.affine import Affine
from dsage.samplers.interface import Prefixes
from dsage.samplers.ordering import Ordering


def expect_prefixes(affine: Affine, ordering: Ordering, order: Rows, X: Floats) -> Floats:
    """Return the outputs of an affine model for all proper prefixes, (n_features, n_rows, ...).

    The rows X are encoded.

    With ``S = L L'`` in the ordering's order and ``z = L^-1 (x - mean)``, the expected output given
    the first k features is ``a + w'mean + sum over i <= k of (L'w)_i z_i``: all prefixes need one
    factor and a cumulative sum.
    """
    start = affine.intercept + ordering.mean @ affine.weights
    effects = np.einsum("kf,ko->fo", ordering.factor, affine.weights[order])
    values = np.zeros((len(order) + 1, len(X), effects.shape[1]))
    shifts = ordering.whiten_encoded(X)[:, :, None] * effects[:, None, :]
    np.cumsum(shifts, axis=0, out=values[1:])
    values += start
    return values[:-1]


class Control(Protocol):
    """What is known of the noise in predictions for draws, which has mean zero."""

    def draw(
        self,
        ordering: Prefixes,
        X: Floats,
        noise: Floats,
        lengths: Sequence[int],
        outputs: Rows | None,
    ) -> Iterator[tuple[Floats, Floats]]:
        """Yield the draws of prefixes, and the noise in predictions for them that is known."""
        ...


def draw_prefixes(
    ordering: Prefixes,
    X: Floats,
    scores: Floats,
    chunks: Sequence[Rows],
    control: Control | None,
    outputs: Rows | None,
) -> Iterator[tuple[Floats, Floats | None]]:
    """Yield the draws of each prefix in chunks of their lengths, and the noise a control knows.

    The noise is of one output for each row, or of all. Draws are valid until the next prefix is
    drawn.
    """
    lengths = [length for at in chunks for length in at.tolist()]
    if control is not None:
        yield from control.draw(ordering, X, scores, lengths, outputs)
        return
    for _, draws in ordering.prefixes(X, scores, lengths):
        yield draws, None


def ask_prefixes(
    drawn: Iterator[tuple[Floats, Floats | None]],
    chunks: Sequence[Rows],
    order: Rows,
    ask: Callable[[Floats, Mask | None], Floats],
    *,
    is_direct: bool,
) -> Iterator[tuple[Floats, Floats | None]]:
    """Yield the predictions for chunks of drawn prefixes, and the noise that a control knows.

    A model is called once per chunk. With `is_direct`, predictions need no call of a model, so each
    prefix is predicted at once, and its draws are not copied: `ask` is then also told which
    features are known, and so the same in all draws for a row.
    """
    position = np.argsort(order)
    for at in chunks:
        parts, noises = [], []
        for length in at.tolist():
            draws, noise = next(drawn)
            parts.append(ask(draws[None], position < length)[0] if is_direct else draws.copy())
            if noise is not None:
                noises.append(noise)
        predicted = np.stack(parts) if is_direct else ask(np.stack(parts), None)
        yield predicted, np.stack(noises) if noises else None
