"""Weighted sums of the scores behind draws, and their distributions given the known features."""

from __future__ import annotations

from typing import NamedTuple

from dsage.samplers.checks import Floats


class Projected(NamedTuple):
    """Sums of the scores behind the draws for a prefix; each is a mixture of normals.

    Parameters
    ----------
    drawn : array of shape (n_sums, n_rows, n_draws)
        The sums for the draws.
    shares : array of shape (n_rows, n_components)
        The probabilities of the components given the rows' known features.
    means : array of shape (n_sums, n_rows, n_components)
        The means of the sums given the known features and the component. The next step changes
        them: use them before that.
    variances : array of shape (n_sums, n_rows, n_components) or (n_sums, 1, n_components)
        Their variances.
    """

    drawn: Floats
    shares: Floats
    means: Floats
    variances: Floats
