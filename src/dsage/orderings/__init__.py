"""Orderings of the features, in independent batches that are available by number.

A *batch* is the smallest set of orderings whose mean surplus is unbiased and independent of the
other batches, so that the spread of the batches' means gives a standard error: one ordering, an
ordering and its reverse, a Latin square of orderings, and so on. `KINDS` has them by name.
"""

from dsage.orderings.base import KINDS, Orderings
from dsage.orderings.choose import as_orderings
from dsage.orderings.given import Given
from dsage.orderings.herded import Herded
from dsage.orderings.latin import Balanced, Stratified
from dsage.orderings.orthogonal import Orthogonal
from dsage.orderings.partial.extensions import Extensions
from dsage.orderings.partial.order import Order
from dsage.orderings.plain import Antithetic, Uniform

__all__ = [
    "KINDS",
    "Antithetic",
    "Balanced",
    "Extensions",
    "Given",
    "Herded",
    "Order",
    "Orderings",
    "Orthogonal",
    "Stratified",
    "Uniform",
    "as_orderings",
]
