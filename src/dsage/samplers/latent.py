"""The normal scores behind draws, and their laws given what is known."""

from __future__ import annotations

from typing import NamedTuple

from dsage.samplers.checks import Floats, Ints


class Latent(NamedTuple):
    """Scores that are normal given what is known: what draws for a prefix were made of.

    The law of `scores` is ``N(centers, spreads^2)``, each given the rows' known features, so that
    the expectation of every function of a single score is an integral in one dimension.

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
