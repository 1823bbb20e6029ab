"""Which features to evaluate further: those whose errors lag behind the errors of others.

The surpluses of all d features along an ordering take d + 1 evaluations, the surplus of a single
one takes two. In most runs a few features keep all others waiting: if the others' errors are far
below what is allowed, units of these few alone cost a fraction. The surpluses of a feature are then
a mean over fewer or more orderings than for another feature; each is unbiased, with its own error.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsage.games.base import Floats, Mask

# Features are evaluated further whose error is at least this share of the worst one, each as a
# multiple of what it may be.
_LAGGING = 0.9
# Units that every feature has at least, and their rows: surpluses of single rows may be skewed, and
# an error that does not show their tail yet would leave a feature behind.
_UNITS_OF_ALL, _ROWS_OF_ALL = 32, 1024
# How many of its own standard errors are added to an error, because it may be too small by chance.
_CAREFUL = 2.0


def find_lagging(
    se: Floats,
    allowed: float | Floats,
    freedoms: npt.NDArray[np.int64],
    n_units: int,
    n_rows: int,
) -> Mask:
    """Return the features to evaluate further, (n_features,).

    Which features lag does not depend on how far they all have to go, but on the ratios of the
    allowed errors only: so a run can be continued to another tolerance as if it had been the first.

    Parameters
    ----------
    se : array of shape (n_features,)
        The standard errors.
    allowed : float or array of shape (n_features,)
        Those that they may have.
    freedoms : int array of shape (n_features,)
        Degrees of freedom of the errors.
    n_units : int
        Number of units so far.
    n_rows : int
        Number of rows of a unit.

    Examples
    --------
    >>> find_lagging(np.array([1.0, 2.0, 0.1]), 0.5, np.array([35, 35, 35]), 36, 64)
    array([False,  True, False])
    >>> find_lagging(np.array([1.0, 2.0, 0.1]), 0.5, np.array([6, 6, 6]), 7, 64)
    array([ True,  True,  True])
    """
    everything = np.ones(len(se), dtype=np.bool_)
    if n_units < _UNITS_OF_ALL or n_units * n_rows < _ROWS_OF_ALL:
        return everything
    limits = np.broadcast_to(allowed, se.shape)
    careful = se * (1.0 + _CAREFUL / np.sqrt(2.0 * freedoms))
    ratios = np.divide(careful, limits, out=np.full_like(se, np.inf), where=limits > 0.0)
    ratios[se == 0.0] = 0.0
    worst = ratios.max()
    if not (np.isfinite(worst) and worst > 0.0):
        return everything
    lagging: Mask = ratios > _LAGGING * worst
    return lagging
