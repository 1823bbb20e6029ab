"""The normal scores behind draws, and their distributions given the known features."""

from __future__ import annotations

from typing import NamedTuple

from dsage.samplers.checks import Floats, Ints


class Latent(NamedTuple):
    """The scores behind the draws for a prefix; they are normal given the known features.

    The distribution of `scores` is ``N(centers, spreads^2)``, each given the rows' known
    features, so the expectation of any function of a single score is a one-dimensional integral.

    Parameters
    ----------
    variables : int array of shape (n_unknown,)
        The latent variables, by number; a sampler has the same ones in all orderings.
    scores : array of shape (n_unknown, n_rows, n_draws)
        Their drawn values. They belong to the draws of the prefix, and may be changed with them by
        the next step: use them before that.
    centers : array of shape (n_unknown, n_rows, 1) or (n_unknown, n_rows, n_draws)
        Their conditional means.
    spreads : array of shape (n_unknown, 1, 1) or (n_unknown, n_rows, n_draws)
        Their conditional standard deviations.
    """

    variables: Ints
    scores: Floats
    centers: Floats
    spreads: Floats
