"""Coalitions in which the features given to draws and to the model may differ."""

from __future__ import annotations

import numpy as np

from dsage.games.base import Floats, Mask
from dsage.models.affine import Affine
from dsage.samplers.base import Sampler


def given(known: Mask, n_features: int) -> Mask:
    """Return the features that draws are given, (n_coalitions, n_features).

    A coalition has one column per feature, or two: those that draws are given, and then those whose
    values the model receives from the row; see :class:`~dsage.games.Game`.
    """
    return known[:, :n_features]


def received(known: Mask, n_features: int) -> Mask:
    """Return the features whose values the model receives, (n_coalitions, n_features)."""
    return known[:, -n_features:]


def expected_output(
    affine: Affine, sampler: Sampler, X: Floats, known: Mask, inputs: Mask
) -> Floats:
    """Return the expected output of an affine model for rows, given one coalition.

    The model receives the values of its `inputs` from the rows.
    """
    more, weights = inputs & ~known, affine.weights
    if more.any():
        weights = np.where(more[:, None], 0.0, weights)
    found = sampler.mean_effects(known, weights)
    if found is None:
        return affine.predict(np.where(inputs, X, sampler.mean(X, known)))
    intercept, effects = found
    if more.any():
        effects = np.where(more[:, None], affine.weights, effects)
    return Affine(affine.intercept + intercept, effects[inputs]).predict(X[:, inputs])
