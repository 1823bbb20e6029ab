"""Orderings that keep a partial order, all equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import refusal
from dsage._random import Streams
from dsage.orderings.base import Unbounded
from dsage.orderings.partial.order import Order


class Extensions(Unbounded):
    """Linear extensions of an order, uniform: a unit is one of them and its mirrored partner.

    The order is taken apart into parts that have nothing to do with each other, whose orderings
    are shuffled, and parts that come one after the other. What cannot be taken apart is drawn
    through its ideals, exactly; or, where it has more than 200,000 of them, by the chain of Bubley
    and Dyer, run until the total variation distance to the uniform law is below 0.001 by proof.
    The partner takes all shuffles backwards: without any pairs, it is the reverse, and the units
    are like those of `Antithetic`; with tiers, each tier is reversed.

    Parameters
    ----------
    order : Order
        The order.
    streams : Streams
        Where the randomness comes from.

    Examples
    --------
    >>> orderings = Extensions(Order.tiers([["a", "b"], ["c"]]), Streams(0))
    >>> orderings.batch(0)
    array([[0, 1, 2],
           [1, 0, 2]])
    """

    __slots__ = ("_order",)

    def __init__(self, order: Order, streams: Streams) -> None:
        _require_order(order)
        super().__init__(len(order.feature_names), streams)
        self._order = order

    @property
    def order(self) -> Order:
        """The order that is kept."""
        return self._order

    @property
    def batch_size(self) -> int:
        """Number of orderings in a unit: 2."""
        return 2

    @property
    def is_exact(self) -> bool:
        """Whether the orderings are exactly uniform, not only nearly."""
        return self._order.part.is_exact

    def batch(self, number: int) -> npt.NDArray[np.intp]:
        """Return unit `number` as an array (2, n_features)."""
        return np.stack(self._order.part.draw(self._generator(number)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._order, self._streams)

    def __repr__(self) -> str:
        return f"Extensions({self._order!r})"


def _require_order(order: object) -> None:
    if not isinstance(order, Order):
        advice = "Make one with Order(feature_names, pairs)"
        raise refusal("order", "an Order", order, advice, TypeError)
