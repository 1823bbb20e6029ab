"""The average over the orderings that keep a partial order, exactly.

With e(.) the number of orderings of a set of features that keep the order,

    phi_j = sum over ideals S without j, S + j an ideal, of e(S) e(rest) / e(all) (L(S) - L(S + j)),

where the rest is the complement of S + j. The weight is the share of the orderings that pass
through S and continue with j. Without order, it is the weight of the Shapley average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, check_member, refusal
from dsage.estimate.exact import SEMANTICS, Enumeration, Semantics
from dsage.graphs.separation import Oracle
from dsage.orderings import Order
from dsage.orderings.partial.ideals import MOST_IDEALS, chances, distinct, levels_of


class _Steps(NamedTuple):
    """All ideals and the steps between them.

    ideals : bool array of shape (n_ideals, n_features)
    before, after, feature : int arrays of shape (n_steps,)
        The ideals before and after a step, and the added feature.
    share : float array of shape (n_steps,)
        Share of the orderings that take the step.
    """

    ideals: npt.NDArray[np.bool_]
    before: npt.NDArray[np.intp]
    after: npt.NDArray[np.intp]
    feature: npt.NDArray[np.intp]
    share: npt.NDArray[np.float64]


def enumerate_extensions(
    oracle: Oracle,
    order: Order,
    *,
    semantics: Semantics = "boundary",
    max_coalitions: int | None = None,
    max_ideals: int = MOST_IDEALS,
) -> Enumeration | None:
    """Return the exact average over all orderings that keep an order, or None if it is too large.

    Parameters
    ----------
    oracle : Oracle
        The separations; `NoSeparation` for plain SAGE.
    order : Order
        An order of the same features.
    semantics : {"boundary", "skip"}, default="boundary"
        Values at boundaries, or the paper's Algorithm 1: values at the actual coalitions, and zero
        for separated surpluses.
    max_coalitions : int, optional
        Largest number of coalitions whose risks may be needed.
    max_ideals : int, default=200_000
        Largest number of ideals, the coalitions that orderings may pass through.

    Returns
    -------
    Enumeration or None

    Examples
    --------
    >>> from dsage.graphs import NoSeparation
    >>> order = Order(["a", "b", "c"], [("a", "b")])
    >>> enumeration = enumerate_extensions(NoSeparation(["a", "b", "c"]), order)
    >>> enumeration.n_coalitions  # not {b} and {b, c}, which lack a
    6
    """
    check_member(semantics, SEMANTICS, "semantics", "the semantics")
    if max_coalitions is not None:
        check_count(max_coalitions, "max_coalitions")
    check_count(max_ideals, "max_ideals")
    if not isinstance(order, Order):
        raise refusal("order", "an Order", order, "Make one with Order(names, pairs)", TypeError)
    steps = _steps(order.arranged(oracle.feature_names).before, max_ideals)
    if steps is None:
        return None
    if semantics == "skip":
        separated = oracle.separated(steps.ideals)[steps.before, steps.feature]
        used = np.zeros(len(steps.ideals), dtype=np.bool_)
        used[0] = True  # the risk of the empty coalition is always used
        used[steps.before[~separated]] = True
        used[steps.after[~separated]] = True
        coalitions, place = steps.ideals[used], np.cumsum(used) - 1
    else:
        boundaries = oracle.boundary(steps.ideals)
        first, place = distinct(boundaries)
        coalitions = boundaries[first]
        separated = place[steps.before] == place[steps.after]
    if max_coalitions is not None and len(coalitions) > max_coalitions:
        return None
    return _collect(steps, ~separated, coalitions, place)


def _steps(before: npt.NDArray[np.bool_], max_ideals: int) -> _Steps | None:
    levels = levels_of(before, max_ideals)
    if levels is None:
        return None
    passing, share = np.ones(1), []
    starts = np.cumsum([0, *(len(level.ideals) for level in levels)])
    for level, chance in zip(levels, chances(levels), strict=False):
        share.append(passing[level.source] * chance)
        passing = _sum_by(level.target, share[-1], 0)
    return _Steps(
        np.concatenate([level.ideals for level in levels]),
        np.concatenate(
            [start + level.source for start, level in zip(starts, levels, strict=False)]
        ),
        np.concatenate(
            [start + level.target for start, level in zip(starts[1:], levels, strict=False)]
        ),
        np.concatenate([level.feature for level in levels]),
        np.concatenate(share),
    )


def _collect(
    steps: _Steps,
    live: npt.NDArray[np.bool_],
    coalitions: npt.NDArray[np.bool_],
    place: npt.NDArray[np.intp],
) -> Enumeration:
    """Collect the shares of the live steps by the coalitions before and after them."""
    n_coalitions, n_features = coalitions.shape
    feature, share = steps.feature[live], steps.share[live]
    cells = n_features * n_coalitions
    row = feature * n_coalitions
    coefficients = _sum_by(row + place[steps.before[live]], share, cells)
    coefficients -= _sum_by(row + place[steps.after[live]], share, cells)
    skipped = _sum_by(steps.feature[~live], steps.share[~live], n_features)
    return Enumeration(coalitions, coefficients.reshape(n_features, n_coalitions), skipped)


def _sum_by(
    at: npt.NDArray[np.intp], weights: npt.NDArray[np.float64], size: int
) -> npt.NDArray[np.float64]:
    return np.bincount(at, weights=weights, minlength=size).astype(np.float64, copy=False)
