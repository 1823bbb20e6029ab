"""Whether a learned graph makes an estimate cheaper, known before any evaluation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dsage._random import Streams
from dsage.estimate.options import PlanOptions
from dsage.estimate.walk import separated_steps
from dsage.games.base import Mask, prefixes
from dsage.graphs.separation import Oracle

# Orderings along which the savings are counted.
_ORDERINGS = 8
# Boundaries vary more than the prefixes that they replace, and their draws cannot be made along an
# ordering: they pay off if there are at most this many for one prefix. In
# benchmarks/engine_workloads, runs with 0.24 take half of the time that they take without a graph,
# and runs with 0.38 and 0.46 take longer.
_MOST_BOUNDARIES = 1 / 3
# Skipping changes nothing else, and pays as soon as it saves this share of the prefixes.
_LEAST_SAVED = 0.05


class GraphUse(NamedTuple):
    """The savings from a graph along orderings.

    `share_skipped` is the share of the surpluses that separation sets to zero, `share_evaluated`
    the number of distinct coalitions to evaluate as a share of those without the graph; `pays` says
    whether that makes an estimate cheaper.
    """

    share_skipped: float
    share_evaluated: float
    pays: bool


def measure_use(oracle: Oracle, options: PlanOptions) -> GraphUse:
    """Return the savings from the separations of an oracle in an estimate with some options.

    Examples
    --------
    >>> from dsage import Graph
    >>> chain = Graph(list("abcdefy"), list(zip("abcdef", "bcdefy")))
    >>> measure_use(chain.oracle("y"), PlanOptions(random_state=0)).pays
    True
    >>> fork = Graph(list("abcy"), [("a", "y"), ("b", "y"), ("c", "y")])
    >>> measure_use(fork.oracle("y"), PlanOptions(random_state=0))
    GraphUse(share_skipped=0.0, share_evaluated=1.0, pays=False)
    """
    names = tuple(oracle.feature_names)
    orderings = options.make_orderings(names, Streams(options.random_state))
    n_batches = -(-_ORDERINGS // orderings.batch_size)
    if orderings.n_batches is not None:
        n_batches = min(n_batches, orderings.n_batches)
    orders = np.concatenate([orderings.batch(number) for number in range(n_batches)])
    known = prefixes(orders)
    skipped = separated_steps(oracle, known, orders)
    coalitions = known.reshape(-1, known.shape[-1])
    if options.semantics == "skip":
        is_needed = np.zeros(known.shape[:2], dtype=np.bool_)
        is_needed[:, :-1] |= ~skipped
        is_needed[:, 1:] |= ~skipped
        share = _count_distinct(coalitions[is_needed.ravel()]) / _count_distinct(coalitions)
        pays = share <= 1.0 - _LEAST_SAVED
    else:
        share = _count_distinct(oracle.boundary(coalitions)) / _count_distinct(coalitions)
        pays = share <= _MOST_BOUNDARIES
    return GraphUse(float(skipped.mean()), share, pays)


def _count_distinct(coalitions: Mask) -> int:
    return len(np.unique(np.packbits(coalitions, axis=1), axis=0)) if len(coalitions) else 0
