"""Make orderings from the name of a kind, a partial order or a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dsage._check import check_names, refusal
from dsage._random import Streams
from dsage.orderings.base import KINDS, Orderings
from dsage.orderings.given import Given, Listed
from dsage.orderings.partial.extensions import Extensions
from dsage.orderings.partial.order import Order


def as_orderings(
    kind: str | Order | Orderings | Listed,
    feature_names: Iterable[str],
    streams: Streams,
) -> Orderings:
    """Make orderings from the name of a kind, a partial order or a list.

    Parameters
    ----------
    kind : str, Order, sequence of orderings, or Orderings
        A name in `KINDS`; an `Order` of the features, for orderings that respect it; a list of
        orderings, each by names or by positions; or an object with the members of `Orderings`,
        which is returned as it is.
    feature_names : iterable of str
        Names of the features.
    streams : Streams
        Source of randomness. A batch depends only on it and on its number.

    Examples
    --------
    >>> as_orderings("antithetic", ["a", "b", "c"], Streams(0))
    Antithetic(n_features=3)
    >>> as_orderings([["b", "a", "c"]], ["a", "b", "c"], Streams(0))
    Given(1 orderings, n_features=3)
    >>> as_orderings(Order.tiers([["c"], ["a", "b"]]), ["a", "b", "c"], Streams(0))
    Extensions(Order(3 features: c < a, c < b))
    """
    names = check_names(feature_names, "feature_names")
    if not names:
        raise refusal("feature_names", "at least one", names, "Pass the names of the features")
    if isinstance(kind, str):
        return KINDS[kind](len(names), streams)
    if isinstance(kind, Order):
        return Extensions(kind.arranged(names), streams)
    if isinstance(kind, Orderings):
        if kind.n_features != len(names):
            advice = "Make them for the number of features"
            raise refusal("orderings", f"of {len(names)} features", kind.n_features, advice)
        return kind
    if isinstance(kind, (Sequence, np.ndarray)):
        return Given(kind, names)
    raise refusal(
        "orderings",
        "a kind, an Order, a list or an Orderings",
        kind,
        f"The kinds are {', '.join(KINDS)}",
        TypeError,
    )
