"""Distributions of weighted sums of the features, given the known features of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dsage.samplers.checks import Floats


class SumLaw(NamedTuple):
    """A mixture of normals: the distribution of weighted sums of the features, given a coalition.

    Parameters
    ----------
    shares : array of shape (n_components, n_rows)
        The probabilities of the components given the known features.
    means : array of shape (n_components, n_rows, n_sums)
        The means of the sums.
    covariances : array of shape (n_components, n_sums, n_sums)
        Their covariances, the same for all rows.
    """

    shares: Floats
    means: Floats
    covariances: Floats

    @classmethod
    def normal(cls, means: Floats, covariance: Floats) -> SumLaw:
        """Return a distribution with one component, from means (n_rows, n_sums)."""
        return cls(np.ones((1, len(means))), means[None], covariance[None])
