"""Orderings that respect a partial order, all equally likely."""

from __future__ import annotations

import numpy as np

from dsage._check import refusal
from dsage._random import Streams
from dsage.orderings.base import Positions, Unbounded
from dsage.orderings.partial.order import Order


class Extensions(Unbounded):
    """Uniform linear extensions of an order; a batch is one of them and its mirrored partner.

    The order is decomposed into unordered parts, whose extensions are shuffled, and parts that
    follow each other. A part that cannot be decomposed is drawn exactly through its ideals or, if
    it has more than 200,000 of them, by the chain of Bubley and Dyer, run until the total variation
    distance to the uniform distribution is provably below 0.001. The partner reverses all shuffles:
    without any pairs it is the reverse, as in `Antithetic`; with tiers, each tier is reversed.

    Parameters
    ----------
    order : Order
        The order to respect.
    streams : Streams
        Source of randomness.

    Examples
    --------
    >>> orderings = Extensions(Order.tiers([["a", "b"], ["c"]]), Streams(0))
    >>> orderings.batch(0)
    array([[0, 1, 2],
           [1, 0, 2]])
    """

    batch_size = 2
    """Number of orderings in a batch."""

    def __init__(self, order: Order, streams: Streams) -> None:
        if not isinstance(order, Order):
            raise refusal(
                "order", "an Order", order, "Make one with Order(names, pairs)", TypeError
            )
        super().__init__(len(order.feature_names), streams)
        self.order = order

    @property
    def is_exact(self) -> bool:
        """Whether the orderings are exactly uniform."""
        return self.order.part.is_exact

    def batch(self, number: int) -> Positions:
        """Return batch `number`, (2, n_features)."""
        return np.stack(self.order.part.draw(self._generator(number)))

    def __repr__(self) -> str:
        return f"Extensions({self.order!r})"
