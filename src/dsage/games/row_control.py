"""A control of draws of training rows: the part of their noise that an additive function has."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from dsage.data.portions import row_slices
from dsage.games.additive_terms import AdditiveTerms
from dsage.games.base import Floats, Mask, Rows
from dsage.games.draw_control import DIGITS, LEAST_EXPLAINED, ROWS_PER_COEFFICIENT
from dsage.games.functions import Functions
from dsage.samplers.base import Sampler

# Functions of a number, as many as the rows determine.
_N_FUNCTIONS = (4, 3, 2, 1)
# Mixed rows per feature, and in total.
_ROWS_PER_FEATURE, _FEWEST_ROWS, _MOST_ROWS = 128, 1024, 1 << 13
# Ratio to what chance explains from which on a term is kept: a feature that the model does not use
# must not get any noise.
_CLEARLY = 8.0
# Memory of the terms of all training rows: more would take longer than they save.
_MOST_BYTES = 2**24


class RowControl:
    """An additive function of the features, with its mean over all training rows.

    A marginal sampler takes the unknown features U of a draw from a training row b. If the model's
    output is about ``g(x) = sum over j of g_j(x_j)``, most of the noise of its mean over a few
    draws is that of ``sum over j in U of g_j(b_j)``, whose mean over all training rows is known.
    The difference of the two has mean zero, and is subtracted. This adds no bias, however bad
    the approximation is.

    Parameters
    ----------
    sampler : Sampler
        A marginal sampler, with `equal_rows`.
    terms : array of shape (n_features, n_outputs, n_training)
        The functions of the features of all training rows, less their means.
    """

    def __init__(self, sampler: Sampler, terms: Floats) -> None:
        self._sampler, self._terms = sampler, terms

    @staticmethod
    def count_rows(n_features: int) -> int:
        """Return the number of mixed rows to which a control is fitted."""
        return min(max(_FEWEST_ROWS, _ROWS_PER_FEATURE * n_features), _MOST_ROWS)

    @staticmethod
    def fits(n_background: int, n_features: int, n_outputs: int) -> bool:
        """Whether the terms of all training rows are few enough to be kept."""
        return 8 * n_background * n_features * n_outputs <= _MOST_BYTES

    @classmethod
    def fit(
        cls, sampler: Sampler, mixed: Floats, outputs: Floats, n_categories: npt.NDArray[np.intp]
    ) -> Self | None:
        """Fit to mixed rows; None if all outputs depend too much on interactions.

        Parameters
        ----------
        sampler : Sampler
            A marginal sampler, with `equal_rows`.
        mixed : array of shape (n_rows, n_features)
            Rows that have features of two rows, classes as codes, as the model gets them.
        outputs : array of shape (n_rows, n_outputs)
            The model's output for them.
        n_categories : int array of shape (n_features,)
            The number of categories of each feature; 0 for numbers.
        """
        background = sampler.equal_rows
        n_rows, variance = len(mixed), outputs.var(axis=0)
        functions = _choose_functions(mixed, n_categories)
        if background is None or functions is None or not variance.any():
            return None
        additive = AdditiveTerms(functions, mixed, outputs)
        fitted = additive(mixed)
        rest = outputs - additive.mean - fitted.sum(axis=0).T
        left = np.square(rest).sum(axis=0) / (n_rows - functions.n_columns)
        is_explained = left < (1.0 - LEAST_EXPLAINED) * variance
        if not is_explained.any():
            return None
        by_chance = left * additive.n_columns[:, None] / n_rows
        is_kept = is_explained & (fitted.var(axis=2) > _CLEARLY * by_chance)
        portions = row_slices(len(background), 8 * functions.n_columns * outputs.shape[1])
        terms = np.concatenate([additive(background[some]) for some in portions], axis=2)
        terms -= terms.mean(axis=2, keepdims=True)
        # Last digits, which may depend on the threads of a model, are dropped.
        unit = DIGITS * np.sqrt(np.where(is_explained, variance, 1.0))[:, None]
        return cls(sampler, np.where(is_kept[:, :, None], np.rint(terms / unit) * unit, 0.0))

    def noise(self, known: Mask, noise: Floats, outputs: Rows | None = None) -> Floats:
        """Return the noise of draws, (n_coalitions, n_rows, n_draws, n_outputs).

        Parameters
        ----------
        known : bool array of shape (n_coalitions, n_features)
            The features that do not come from training rows.
        noise : array of shape (n_rows, n_draws, n_features)
            The noise behind the draws.
        outputs : int array of shape (n_rows,), optional
            The number of one output for each row. Then the noise of these outputs is returned,
            (n_coalitions, n_rows, n_draws).
        """
        picked = self._sampler.pick_rows(noise)
        is_small = self._terms.shape[2] <= picked.size
        terms = self._terms if is_small else self._terms[:, :, picked]
        total = np.zeros((len(known), *terms.shape[1:]))
        # One after the other, so that sums do not depend on the number of rows.
        for is_known, term in zip(known.T, terms, strict=True):
            total[~is_known] += term
        if outputs is None:
            return np.moveaxis(total[:, :, picked] if is_small else total, 1, 3)
        if is_small:
            return total[:, outputs[:, None], picked]
        return total[:, outputs, np.arange(len(picked))]


def _choose_functions(rows: Floats, n_categories: npt.NDArray[np.intp]) -> Functions | None:
    """Return functions of the features, as many as rows determine; None if that is too few."""
    widest = Functions.fit(rows, n_categories, _N_FUNCTIONS[0])
    for n_functions in _N_FUNCTIONS:
        functions = widest.first(n_functions)
        if ROWS_PER_COEFFICIENT * functions.n_columns <= len(rows):
            return functions
    return None
