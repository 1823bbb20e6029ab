"""Orderings of a kind, that keep an order, from a list, or as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dsage._check import check_member, check_names, refusal
from dsage._random import Streams
from dsage.orderings.base import Orderings
from dsage.orderings.given import Given
from dsage.orderings.herded import Herded
from dsage.orderings.latin import Balanced, Stratified
from dsage.orderings.orthogonal import Orthogonal
from dsage.orderings.partial.extensions import Extensions
from dsage.orderings.partial.order import Order
from dsage.orderings.plain import Antithetic, Uniform

_CLASSES: dict[str, Callable[[int, Streams], Orderings]] = {
    "uniform": Uniform,
    "antithetic": Antithetic,
    "stratified": Stratified,
    "balanced": Balanced,
    "orthogonal": Orthogonal,
    "herding": Herded,
}
KINDS = tuple(_CLASSES)
"""The kinds of orderings that have a name."""


def as_orderings(
    kind: str
    | Order
    | Sequence[Sequence[str] | Sequence[int]]
    | npt.NDArray[np.integer]
    | Orderings,
    feature_names: Iterable[str],
    streams: Streams,
) -> Orderings:
    """Return orderings of a kind, that keep an order, from a list, or as they are.

    Parameters
    ----------
    kind : str, Order, sequence of orderings, or Orderings
        ``"uniform"``, ``"antithetic"``, ``"stratified"``, ``"balanced"``, ``"orthogonal"`` or
        ``"herding"``; or an `Order` of the features, in whatever sequence; or a list of orderings,
        each by names or by positions; or an object that has the members of `Orderings`.
    feature_names : iterable of str
        Names of the features.
    streams : Streams
        Where the randomness comes from; an ordering depends on it and its number alone.

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
        raise refusal("feature_names", "at least one", names, "There is nothing to order")
    if isinstance(kind, str):
        check_member(kind, KINDS, "orderings", "the kinds of orderings")
        return _CLASSES[kind](len(names), streams)
    if isinstance(kind, Order):
        return Extensions(kind.arranged(names), streams)
    if isinstance(kind, Orderings):
        if kind.n_features != len(names):
            raise refusal(
                "orderings", f"of {len(names)} features", kind.n_features, "Make them anew"
            )
        return kind
    if isinstance(kind, (Sequence, np.ndarray)):
        return Given(kind, names)
    raise refusal(
        "orderings",
        "a kind, an Order, a list of orderings or an Orderings",
        kind,
        "See KINDS",
        TypeError,
    )
