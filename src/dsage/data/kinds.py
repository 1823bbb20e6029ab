"""The kind of a column: what its values are, by a rule that the user can override.

The dtype and the values of the training rows decide. With n rows and k distinct values that are
present:

==================  ======================================================================
boolean             booleans
time                dates, dates with times, durations and times of day
ordered class       a category type that declares an order
class               strings, other categories and other objects
codes               numbers with k = 2, or with k <= 10 and k <= n / 10
integer             other numbers that are all whole
number              other numbers
==================  ======================================================================

Then these take precedence:

==================  ======================================================================
constant            one value and no missing values, or only missing values
copy                equal to an earlier column, missing values included
identifier          classes, or whole numbers that fill at least half of their range, that
                    are different in each of 20 rows or more
==================  ======================================================================

``kinds={"zip": "class"}`` overrides the rule: numbers may be of the kinds number, integer, codes,
class and ordered class; strings, booleans and categories of the kinds class and ordered class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from dsage._check import check_member, check_members, refusal

Floats = npt.NDArray[np.float64]

_MAX_CODES = 10
_ROWS_PER_CODE = 10
_EXAMPLE = "For example, kinds={'zip': 'class'}"
# With this many rows, values are hardly all different by chance.
_MIN_IDENTIFIED = 20
# Identifiers fill at least this share of their range, even if some rows were held out.
_FILLED = 0.5


class Kind(StrEnum):
    """What the values of a column are; see the module for the rule."""

    NUMBER = "number"
    INTEGER = "integer"
    CODES = "codes"
    BOOLEAN = "boolean"
    CLASS = "class"
    ORDERED_CLASS = "ordered class"
    TIME = "time"
    CONSTANT = "constant"
    COPY = "copy"
    IDENTIFIER = "identifier"


CLASSES = (Kind.CLASS, Kind.ORDERED_CLASS)

_CHOICES = {
    "number": (Kind.NUMBER, Kind.INTEGER, Kind.CODES, *CLASSES),
    "boolean": (Kind.BOOLEAN, *CLASSES),
    "class": CLASSES,
    "time": (Kind.TIME,),
}


SAYABLE = tuple(str(kind) for kind in (*_CHOICES["number"], Kind.BOOLEAN, Kind.TIME))
"""The kinds that a user can say a column to be."""


def choices(holds: str, *, is_boolean: bool = False) -> tuple[Kind, ...]:
    """Return the kinds that a user may give a column; `holds` is what its dtype holds."""
    return _CHOICES["boolean" if is_boolean else holds]


def check_given_kinds(
    kinds: Mapping[str, str] | None, discrete: str | Iterable[str], names: tuple[str, ...]
) -> dict[str, Kind]:
    """Return the kinds that the user gives, by column; `discrete` is short for class."""
    if not isinstance(kinds or {}, Mapping):
        raise refusal("kinds", "a dict of columns and kinds", kinds, _EXAMPLE, TypeError)
    columns = "the columns of the data"
    given = dict.fromkeys(check_members(discrete, names, "discrete", columns), Kind.CLASS)
    for name, kind in (kinds or {}).items():
        check_member(name, names, "kinds", columns)
        found = Kind(check_member(kind, SAYABLE, f"kinds[{name!r}]", "the kinds"))
        if name in given and found not in CLASSES:
            advice = f"Take {name!r} out of one of the two"
            raise refusal(f"kinds[{name!r}]", "a class, as discrete= says", str(found), advice)
        given[name] = found
    return given


def is_code(n_distinct: int, n_rows: int) -> bool:
    """Return whether numbers with this few distinct values in this many rows are codes."""
    return n_distinct == 2 or (n_distinct <= _MAX_CODES and n_distinct * _ROWS_PER_CODE <= n_rows)


def guess_number(values: Floats, n_rows: int) -> tuple[Kind, Floats]:
    """Return the kind of numbers without missing ones, and the distinct values if they are few."""
    # Usually a few rows show that values are many; sorting all of them would be slow.
    if len(values) > 4096 and len(np.unique(values[:1024])) > _MAX_CODES:
        distinct = values[:0]
    else:
        distinct = np.unique(values)
        if len(distinct) and is_code(len(distinct), n_rows):
            return Kind.CODES, distinct
    return (Kind.INTEGER if len(values) and is_whole(values) else Kind.NUMBER), distinct


def is_whole(values: Floats) -> bool:
    """Return whether all numbers are whole."""
    head = values[:256]
    return bool((head == np.rint(head)).all() and (values == np.rint(values)).all())


def is_identifier(values: Floats, kind: Kind) -> bool:
    """Return whether present values, numbers or codes of classes, are different in every row."""
    n_values = len(values)
    if n_values < _MIN_IDENTIFIED or kind not in (*CLASSES, Kind.INTEGER):
        return False
    if kind == Kind.INTEGER and n_values < _FILLED * (values.max() - values.min() + 1.0):
        return False
    return len(np.unique(values)) == n_values
