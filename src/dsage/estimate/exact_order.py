"""The average over the orderings that keep a partial order, exactly.

With e(.) the number of orderings of a set of features that keep the order,

    phi_j = sum over ideals S without j, S + j an ideal, of e(S) e(rest) / e(all) (L(S) - L(S + j)),

where the rest is the complement of S + j. The weight is the share of the orderings that pass
through S and continue with j. Without order, it is the weight of the Shapley average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dsage._check import check_count, check_member, refusal
from dsage.estimate.exact import SEMANTICS, Enumeration, Positions, Semantics
from dsage.games.base import Floats, Mask
from dsage.graphs.separation import Oracle, as_oracle
from dsage.orderings import Order
from dsage.orderings.partial.ideals import MOST_IDEALS, chances, ranks_of


class Steps(NamedTuple):
    """All ideals, (n_ideals, n_features), and the steps between them.

    Of each step, the ideals before and after it, the added feature, and the share of the orderings
    that take it.
    """

    ideals: Mask
    before: Positions
    after: Positions
    feature: Positions
    share: Floats


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
    steps = all_steps(order.arranged(oracle.feature_names).before, max_ideals)
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
        coalitions, place = as_oracle(oracle).distinct_boundaries(steps.ideals)
        separated = place[steps.before] == place[steps.after]
    if max_coalitions is not None and len(coalitions) > max_coalitions:
        return None
    return _collect(steps, ~separated, coalitions, place)


def all_steps(order: Mask, max_ideals: int) -> Steps | None:
    """Return all steps between ideals of an order, or None if there are too many ideals."""
    ranks = ranks_of(order, max_ideals)
    if ranks is None:
        return None
    passing, share = np.ones(1), []
    starts = np.cumsum([0, *(len(rank.ideals) for rank in ranks)])
    for rank, chance in zip(ranks, chances(ranks), strict=False):
        share.append(passing[rank.source] * chance)
        passing = _sum_by(rank.target, share[-1], 0)
    before = [start + rank.source for start, rank in zip(starts, ranks, strict=False)]
    after = [start + rank.target for start, rank in zip(starts[1:], ranks, strict=False)]
    ideals, features = [rank.ideals for rank in ranks], [rank.feature for rank in ranks]
    return Steps(*map(np.concatenate, (ideals, before, after, features, share)))


def _collect(steps: Steps, live: Mask, coalitions: Mask, place: Positions) -> Enumeration:
    """Collect the shares of the live steps by the coalitions before and after them."""
    n_coalitions, n_features = coalitions.shape
    feature, share = steps.feature[live], steps.share[live]
    cells = n_features * n_coalitions
    row = feature * n_coalitions
    coefficients = _sum_by(row + place[steps.before[live]], share, cells)
    coefficients -= _sum_by(row + place[steps.after[live]], share, cells)
    skipped = _sum_by(steps.feature[~live], steps.share[~live], n_features)
    return Enumeration(coalitions, coefficients.reshape(n_features, n_coalitions), skipped)


def _sum_by(at: Positions, weights: Floats, size: int) -> Floats:
    return np.bincount(at, weights=weights, minlength=size).astype(np.float64, copy=False)
