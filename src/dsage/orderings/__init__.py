"""Orderings of the features: independent units of them, each available by its number.

An estimate is a mean over *units*. A unit is the smallest set of orderings whose mean surplus is an
unbiased replicate that is independent of the other units, so the spread of the units' means gives a
standard error: one ordering, an ordering and its reverse, a Latin square of orderings with or
without the reverse of each, orderings of orthogonal vectors, or a herded set.
"""

from dsage.orderings.base import Orderings
from dsage.orderings.choose import KINDS, as_orderings
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
