"""A control of the draws: noise of mean predictions that can be computed, and is subtracted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self, cast

import numpy as np

from dsage.games.base import Floats, Rows
from dsage.samplers.checks import Ints
from dsage.samplers.interface import LatentPrefixes, Prefixes
from dsage.samplers.latent import Latent

# Harmonics of a variable, and the length of their period in standard deviations.
_HARMONICS, _PERIOD = 4, 9.0
# Cells in which the waves are interpolated. This damps them by known factors, which their
# expectations include; the rest has at least this many waves in a period, and is zero on
# average.
_N_CELLS = 1 << 10
ROWS_PER_COEFFICIENT = 8
"""Least number of drawn rows per coefficient: with fewer, coefficients would add noise."""
LEAST_EXPLAINED = 0.25
"""Share of the output's variance from which on a control saves more than its evaluation costs."""
DIGITS = 1e-9
"""Precision of the coefficients, as a share of the output's standard deviation."""
RIDGE = 2.0
"""What is added to the sums of squares of the columns."""


class DrawControl:
    """An additive function of the normal scores behind draws, with known conditional expectations.

    The model's output is approximated by a sum over variables of

        h(z) = a_0 z + sum over q of (a_q cos(q w z) + b_q sin(q w z)),

    with z the standardized score. Given what is known z is normal, ``N(m, s^2)``, so that

        E[h(z)] = a_0 m + sum over q of exp(-(q w s)^2 / 2) (a_q cos(q w m) + b_q sin(q w m)).

    The mean over draws of ``h(z) - E[h(z)]`` is noise of mean zero. Mean predictions have much the
    same noise, and are better estimated without it. This adds no bias, however bad the
    approximation is.

    Parameters
    ----------
    means, scales : arrays of shape (n_variables,)
        What standardizes the scores.
    linear : array of shape (n_outputs, n_variables)
        The coefficients a_0.
    waves : array of shape (n_outputs, 2, n_harmonics, n_variables)
        The coefficients of cosines and of sines.
    """

    def __init__(self, means: Floats, scales: Floats, linear: Floats, waves: Floats) -> None:
        self._means, self._scales = means, scales
        self._linear, self._waves = linear, waves
        # The functions of each output and variable over a period around the mean, and their rises
        # from cell to cell.
        z: Floats = _PERIOD / _N_CELLS * (np.arange(_N_CELLS + 1.0) - _N_CELLS / 2)
        tables = _sum_waves(np.moveaxis(waves, 0, 2)[..., None], _FREQUENCY * z)
        tables += linear[..., None] * z
        self._tables = tables.ravel()
        # The end of a period is the beginning of the next one.
        self._rises = np.diff(tables, append=tables[..., -1:]).ravel()
        # What spreads do to the waves in expectation, and what interpolation does.
        q = np.arange(1, waves.shape[2] + 1)[:, None, None, None]
        self._exponents: Floats = -0.5 * (_FREQUENCY * q) ** 2
        self._dampings: Floats = np.sinc(q / _N_CELLS) ** 2
        # From scores to places in the tables.
        self._rates = (_N_CELLS / _PERIOD) / scales
        self._shifts = _N_CELLS / 2 - means * self._rates

    @staticmethod
    def count_harmonics(n_variables: int, n_rows: int) -> int:
        """Return the number of harmonics that `n_rows` rows determine; 0 for no control."""
        room = n_rows // (ROWS_PER_COEFFICIENT * max(n_variables, 1))
        return max(min((room - 1) // 2, _HARMONICS), 0) if n_variables else 0

    @classmethod
    def fit(cls, scores: Floats, outputs: Floats) -> Self | None:
        """Fit to drawn rows; None if all outputs depend too much on other things.

        Parameters
        ----------
        scores : array of shape (n_variables, n_rows)
            The normal scores behind rows that were drawn with no feature known.
        outputs : array of shape (n_rows, n_outputs)
            The model's output for them.
        """
        n_variables, n_rows = scores.shape
        n_harmonics = cls.count_harmonics(n_variables, n_rows)
        if not n_harmonics:
            return None
        means, scales = scores.mean(axis=1), scores.std(axis=1)
        scales = np.where(scales > 0, scales, 1.0)
        z = (scores - means[:, None]) / scales[:, None]
        angles = _FREQUENCY * np.arange(1, n_harmonics + 1)[:, None, None] * z
        columns = np.concatenate([z[None], np.cos(angles), np.sin(angles)]).reshape(-1, n_rows)
        columns -= columns.mean(axis=1, keepdims=True)
        centered = outputs - outputs.mean(axis=0)
        moments = columns @ columns.T / n_rows
        moments[np.diag_indices(len(moments))] += RIDGE / n_rows
        slopes = np.linalg.solve(moments, columns @ centered / n_rows)
        left = ((centered - columns.T @ slopes) ** 2).sum(axis=0) / (n_rows - len(columns))
        variance = (centered**2).mean(axis=0)
        is_explained = left < (1.0 - LEAST_EXPLAINED) * variance
        if not is_explained.any():
            return None
        # Last digits, which may depend on the threads of a model, are dropped.
        unit = DIGITS * np.sqrt(np.where(is_explained, variance, 1.0))
        slopes = np.where(is_explained, np.rint(slopes / unit) * unit, 0.0)
        by_output = slopes.T.reshape(len(slopes.T), 2 * n_harmonics + 1, n_variables)
        waves = by_output[:, 1:].reshape(-1, 2, n_harmonics, n_variables)
        return cls(means, scales, by_output[:, 0], waves)

    def draw(
        self,
        ordering: Prefixes,
        X: Floats,
        noise: Floats,
        lengths: Sequence[int],
        outputs: Rows | None,
    ) -> Iterator[tuple[Floats, Floats]]:
        """Yield the draws of prefixes, and the noise in predictions for them that is known.

        See `noise`. Draws are valid until the next prefix is drawn.
        """
        drawing, chosen = cast(LatentPrefixes, ordering), self._choose(outputs)
        for _, draws, latent in drawing.latent_prefixes(X, noise, lengths):
            yield draws, self._find_noise(latent, chosen)

    def noise(self, latent: Latent, outputs: Rows | None = None) -> Floats:
        """Return ``h - E[h]`` of draws, (n_rows, n_draws, n_outputs).

        With `outputs`, the number of one output for each row, return the noise of these outputs,
        (n_rows, n_draws).
        """
        return self._find_noise(latent, self._choose(outputs))

    def _choose(self, outputs: Rows | None) -> _Chosen | list[_Chosen]:
        """Return the functions of the outputs of the rows, or of each output."""
        if outputs is None:
            return [self._functions(np.array([number])) for number in range(len(self._linear))]
        return self._functions(outputs)

    def _functions(self, outputs: Rows) -> _Chosen:
        """Return the functions of an output for each row, or for all rows."""
        n_variables = self._linear.shape[1]
        first = (outputs * n_variables + np.arange(n_variables)[:, None]) * (_N_CELLS + 1)
        waves = np.ascontiguousarray(np.moveaxis(self._waves[outputs], 0, -1))
        return _Chosen(self._linear[outputs].T[..., None], waves[..., None], first[..., None])

    def _find_noise(self, latent: Latent, chosen: _Chosen | list[_Chosen]) -> Floats:
        if isinstance(chosen, list):
            return np.stack([self._find_noise(latent, each) for each in chosen], axis=-1)
        at = latent.variables
        total: Floats = self._look_up(at, chosen, latent.scores).sum(axis=0)
        means, scales = self._means[at, None, None], self._scales[at, None, None]
        centers, spreads = (latent.centers - means) / scales, latent.spreads / scales
        damping = np.exp(self._exponents * spreads**2) * self._dampings
        expected = _sum_waves(chosen.waves[:, :, at] * damping, _FREQUENCY * centers)
        expected += chosen.linear[at] * centers
        # Unlike a sum, it adds in the same order if there is only one row.
        total -= expected.cumsum(axis=0)[-1]
        return total

    def _look_up(self, at: Ints, chosen: _Chosen, scores: Floats) -> Floats:
        """Return the functions at scores (n_variables, n_rows, n_draws), interpolated in tables."""
        place = scores * self._rates[at, None, None]
        place += self._shifts[at, None, None]
        turns = None
        if place.min() < 0.0 or place.max() >= _N_CELLS:
            # For the scores of other rows, this changes nothing.
            turns = np.floor(place / _N_CELLS)
            place -= turns * _N_CELLS
        cells = place.astype(np.intp)
        place -= cells
        cells += chosen.first[at]
        place *= self._rises.take(cells)
        place += self._tables.take(cells)
        if turns is not None:
            place += chosen.linear[at] * (_PERIOD * turns)
        return place


class _Chosen(NamedTuple):
    """The functions of one output for each row, or for all: (..., n_variables, n_rows or 1, 1)."""

    linear: Floats
    waves: Floats
    first: Ints


_FREQUENCY = 2.0 * np.pi / _PERIOD


def _sum_waves(coefficients: Floats, angles: Floats) -> Floats:
    """Return the sum over q of ``a_q cos(q t) + b_q sin(q t)``, by Clenshaw's recurrence.

    The coefficients a and b have shape (2, n_harmonics, ...), q is from 1 on.
    """
    cosine, sine = np.cos(angles), np.sin(angles)
    after = ahead = np.zeros((2, *np.broadcast_shapes(coefficients.shape[2:], cosine.shape)))
    double = 2.0 * cosine
    for each in coefficients.swapaxes(0, 1)[::-1]:
        ahead, after = each + double * ahead - after, ahead
    total: Floats = ahead[0] * cosine - after[0] + ahead[1] * sine
    return total
