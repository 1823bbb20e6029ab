"""Tables as CSV, with texts that spreadsheets do not run as formulas."""

from __future__ import annotations

import csv
from typing import Any

import pandas as pd

# A spreadsheet runs a cell that starts with one of these.
_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def to_csv(frame: pd.DataFrame, *, is_raw: bool = False) -> str:
    r"""Return a table as CSV, with all digits and without the index.

    A text that starts with ``=``, ``+``, ``-``, ``@``, a tab or a line end gets an apostrophe in
    front, unless it is a number: a spreadsheet would run it as a formula. So do names of columns.
    `is_raw` leaves all texts as they are.

    Examples
    --------
    >>> to_csv(pd.DataFrame({"feature": ["age", "=1+1", "-2"], "value": [1.5, -2.0, 0.0]}))
    "feature,value\nage,1.5\n'=1+1,-2.0\n-2,0.0\n"
    """
    if not is_raw:
        texts = frame.select_dtypes(exclude=["number", "bool", "datetime", "timedelta"])
        frame = frame.assign(**{str(name): texts[name].map(_disarm) for name in texts})
        frame.columns = frame.columns.map(_disarm)
    text = str(frame.to_csv(index=False, lineterminator="\n"))
    if "\r" in text:
        # It ends a line for most readers, but pandas does not quote it.
        text = str(frame.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC))
    return text


def _disarm(cell: Any) -> Any:  # noqa: ANN401
    if not isinstance(cell, str) or not cell.startswith(_STARTS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
