"""Draw one variable given those that its mechanism depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from dsage._check import record_warnings
from dsage.data.layout import Layout
from dsage.samplers.base import BaseSampler, Sampler
from dsage.samplers.checks import Floats
from dsage.samplers.conditioning import TOLERANCE, Normal, normal_scores


class Drawer(Protocol):
    """Draws one variable given others, as a pure function of noise."""

    def draw(self, given: Sequence[Floats], noise: Floats) -> Floats:
        """Return draws (n_rows, n_draws).

        Parameters
        ----------
        given : sequence of arrays of shape (n_rows, 1) or (n_rows, n_draws)
            The variables that it depends on, in order; one value per row, or one per draw.
        noise : array of shape (n_rows, n_draws)
            Uniforms in (0, 1).
        """
        ...


class LinearDrawer:
    """A regression on the other variables plus normal noise, from means and covariances.

    Attributes
    ----------
    intercept, spread : float
        The intercept, and the standard deviation of the noise.
    slopes : array of shape (n_given,)
    """

    def __init__(self, mean: Floats, covariance: Floats, node: int, given: Sequence[int]) -> None:
        family = [*given, node]
        normal = Normal(mean[family], covariance[np.ix_(family, family)])
        known = np.arange(len(family)) < len(given)
        last = np.zeros((len(family), 1))
        last[-1] = 1.0
        intercept, slopes = normal.regress(known, last)
        self.intercept, self.slopes = float(intercept[0]), slopes[:-1, 0]
        variance = float(covariance[node, node])
        left = variance - float(self.slopes @ covariance[list(given), node])
        self.spread = float(np.sqrt(left)) if left > TOLERANCE * variance else 0.0

    def draw(self, given: Sequence[Floats], noise: Floats) -> Floats:
        """Return draws (n_rows, n_draws); see :class:`Drawer`."""
        drawn = self.spread * normal_scores(noise)
        drawn += self.intercept
        # One after the other: in a matrix product, rounding would depend on the batch.
        for slope, values in zip(self.slopes.tolist(), given, strict=True):
            drawn += slope * values
        return drawn


class SampledDrawer:
    """A separate sampler, fitted to the variable and those that it depends on.

    The variable is the first column: samplers that choose a component, or a row, do so by the noise
    of that column.
    """

    def __init__(
        self,
        sampler: Sampler,
        layout: Layout,
        matrix: Floats,
        node: int,
        given: Sequence[int],
        max_bytes: int,
    ) -> None:
        family = [node, *given]
        part, own = sampler.for_part(), layout.select(family)
        # All columns together were fitted before, and their warnings shown.
        with record_warnings(show=False):
            if isinstance(part, BaseSampler):
                part.max_bytes = max_bytes
                self._sampler: Sampler = part.fit_encoded(own, matrix[:, family])
            else:
                self._sampler = part.fit(own.decode(matrix[:, family]))
        self._known = np.arange(len(family)) > 0

    def draw(self, given: Sequence[Floats], noise: Floats) -> Floats:
        """Return draws (n_rows, n_draws); see :class:`Drawer`."""
        n_rows, n_draws = noise.shape
        if any(values.shape[1] > 1 for values in given) and n_draws > 1:
            # Each draw is a separate row.
            flat = [np.broadcast_to(values, noise.shape).reshape(-1, 1) for values in given]
            return self.draw(flat, noise.reshape(-1, 1)).reshape(n_rows, n_draws)
        rows = np.concatenate([np.zeros((n_rows, 1)), *given], axis=1)
        whole = np.full((n_rows, n_draws, rows.shape[1]), 0.5)
        whole[:, :, 0] = noise
        return self._sampler.draw_rows(rows, self._known, whole)[:, :, 0]
