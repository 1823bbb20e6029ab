"""Mean predictions of affine scores behind a link, if the distribution of the scores is known.

Given the known features of a row, a sampler of normals makes the scores of a linear model normal,
with means and covariances in closed form. For a single score the mean prediction is a
one-dimensional integral, which is computed to ten digits; for more, scores are drawn instead of the
features.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from dsage.games.base import Floats, Mask, Rows
from dsage.games.exact_means import ExactMeans
from dsage.games.score_draws import ScoreDraws
from dsage.models.normal_links import expected_outputs
from dsage.models.scores import AffineScores
from dsage.samplers.base import Sampler
from dsage.samplers.interface import Prefixes, SumPrefixes
from dsage.samplers.noise import Noise
from dsage.samplers.recent import Recent
from dsage.samplers.sums import SumLaw


class _Laws:
    """The distributions of a model's scores for rows, by coalition or along orderings."""

    def __init__(
        self, sampler: Sampler, matrix: Floats, intercept: Floats, weights: Floats
    ) -> None:
        self._sampler, self._matrix = sampler, matrix
        self._intercept, self._weights = intercept, weights
        self.has_paths = sampler.has_orderings
        # Long orderings come in pieces of few rows, one after the other.
        self._last: Recent[Prefixes] = Recent(1)

    def of(self, known: Mask, rows: Rows) -> SumLaw:
        """Return the distribution given a coalition."""
        return self._shift(self._sampler.sum_law(self._matrix[rows], known, self._weights))

    def along(self, order: Rows, rows: Rows) -> Iterator[SumLaw]:
        """Yield the distributions given all proper prefixes of an ordering."""
        ordering = self._last.get(order.tobytes(), lambda: self._sampler.ordering(order))
        laws = cast(SumPrefixes, ordering).sum_laws(self._matrix[rows], self._weights)
        return map(self._shift, laws)

    def _shift(self, law: SumLaw) -> SumLaw:
        return law._replace(means=law.means + self._intercept)


class NormalMeans(ExactMeans):
    """The means of a link of one score, which is normal given known features, without draws.

    Parameters
    ----------
    scores : AffineScores
        The score of the model, with a logistic or an exponential link.
    sampler : Sampler
        A sampler with `has_sums`.
    matrix : array of shape (n_rows, n_features)
        The evaluation rows.
    """

    has_cheap_rows = True

    def __init__(self, scores: AffineScores, sampler: Sampler, matrix: Floats) -> None:
        affine = scores.affine
        self._laws = _Laws(sampler, matrix, affine.intercept, affine.weights)
        self._link, self._output = scores.link, scores.output
        self.has_paths = self._laws.has_paths

    def means(self, known: Mask, rows: Rows) -> Floats:
        """Return the means (n_coalitions, n_rows, n_outputs)."""
        return self._expect([self._laws.of(each, rows) for each in known])

    def path_means(self, order: Rows, rows: Rows) -> Floats:
        """Return the means (n_features, n_rows, n_outputs) of all proper prefixes."""
        return self._expect(list(self._laws.along(order, rows)))

    def _expect(self, laws: list[SumLaw]) -> Floats:
        """Return the means (n_laws, n_rows, n_outputs)."""
        total: Floats = np.zeros(())
        for number in range(len(laws[0].shares)):
            centers = np.stack([law.means[number, :, 0] for law in laws])
            variances = np.array([law.covariances[number, 0, 0] for law in laws])
            shares = np.stack([law.shares[number] for law in laws])
            means = expected_outputs(self._link, centers, variances)
            total = total + shares[:, :, None] * means
        return total if self._output is None else total[:, :, [self._output]]


class NormalDraws:
    """The means of the probabilities of several classes over draws of their scores.

    Parameters
    ----------
    scores : AffineScores
        The scores of the model, with softmax as their link.
    sampler : Sampler
        A sampler with `has_sums`.
    matrix : array of shape (n_rows, n_features)
        The evaluation rows.
    """

    def __init__(self, scores: AffineScores, sampler: Sampler, matrix: Floats) -> None:
        affine = scores.affine
        intercept = affine.intercept[1:] - affine.intercept[:1]
        weights = affine.weights[:, 1:] - affine.weights[:, :1]
        self._laws = _Laws(sampler, matrix, intercept, weights)
        self._draws, self._output = ScoreDraws(len(intercept)), scores.output
        self.has_paths = self._laws.has_paths

    def bytes_per_row(self, noise: Noise) -> int:
        """Return the memory for a row and a coalition."""
        return self._draws.bytes_per_row(noise)

    def means(self, known: Mask, rows: Rows, epoch: int, noise: Noise) -> Floats:
        """Return the means (n_coalitions, n_rows, n_replicates, n_outputs)."""
        steps = self._draws.steps(rows, epoch, noise)
        laws = (self._laws.of(each, rows) for each in known)
        return np.stack([self._mean(law, steps, noise) for law in laws])

    def path_means(
        self, order: Rows, rows: Rows, epoch: int, noise: Noise, needed: Mask
    ) -> Iterator[tuple[int, Floats]]:
        """Yield the lengths of needed prefixes, and means (n_rows, n_replicates, n_outputs)."""
        steps = self._draws.steps(rows, epoch, noise)
        for length, law in enumerate(self._laws.along(order, rows)):
            if needed[length]:
                yield length, self._mean(law, steps, noise)

    def _mean(self, law: SumLaw, steps: Floats, noise: Noise) -> Floats:
        """Return the means (n_rows, n_replicates, n_outputs)."""
        means = self._draws.means(law, steps, noise.n_replicates)
        return means if self._output is None else means[:, :, [self._output]]
