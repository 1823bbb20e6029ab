"""A table of the columns of a data set: their kinds, and what is unusual about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import record_warnings, shown
from dsage.data.frames import Frame
from dsage.data.kinds import Kind
from dsage.data.layout import Layout

Floats = npt.NDArray[np.float64]

# Longer texts are cut.
_WIDTH = 32
_N_EXAMPLES = 3
_ZEROS, _MIDNIGHT = re.compile(r"\.0+$"), re.compile(r"[T ]00:00:00$")


def describe(
    data: Any,  # noqa: ANN401
    *,
    discrete: str | Iterable[str] = (),
    kinds: Mapping[str, str] | None = None,
    groups: Mapping[str, Iterable[str]] | None = None,
) -> pd.DataFrame:
    """Return the kind of each column of a data set, and a short description.

    Parameters
    ----------
    data : data frame (pandas, polars, pyarrow) or array of shape (n_rows, n_columns)
        The rows.
    discrete : str or iterable of str, default=()
        Columns of numbers that are classes.
    kinds : dict of str to str, optional
        The kinds of columns that would be guessed wrong, as for :func:`dsage.explain`.
    groups : dict of str to list of str, optional
        Groups of columns, as for :func:`dsage.explain`.

    Returns
    -------
    pandas.DataFrame
        One line per column, with its `name`, `kind` (see :class:`Kind`), `dtype`, number of
        `distinct` values that are present, share of values that are `missing`, its `values`
        (smallest and largest, or the most frequent ones), and `remarks`: whether it is constant,
        a copy, one of several columns of zeros and ones that stand for a class, or looks like an
        identifier, and what else it may be.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [31.5, None, 54.0], "sex": ["f", "m", "f"], "unit": "cm"})
    >>> describe(frame)[["name", "kind", "missing", "values"]]
       name      kind   missing        values
    0   age     codes  0.333333    31.5 to 54
    1   sex     class  0.000000          f, m
    2  unit  constant  0.000000            cm
    """
    frame = Frame(data)
    with record_warnings(show=False):
        layout = Layout.of(data, discrete=discrete, kinds=kinds, groups=groups)
    matrix = layout.encode(data)
    is_missing = layout.is_missing(matrix)
    given = {*layout.numbers_as_classes, *(kinds or {})}
    lines = []
    for at, name in enumerate(layout.names):
        present = matrix[~is_missing[:, at], at]
        lines.append(
            {
                "name": name,
                "kind": str(layout.kinds[at]),
                "dtype": _name_dtype(frame, name),
                "distinct": len(np.unique(present)),
                "missing": float(is_missing[:, at].mean()) if len(matrix) else 0.0,
                "values": _show_values(layout, at, present),
                "remarks": "; ".join(_remarks(layout, at, is_given=name in given)),
            }
        )
    columns = ["name", "kind", "dtype", "distinct", "missing", "values", "remarks"]
    return pd.DataFrame(lines, columns=columns)


def _name_dtype(frame: Frame, name: str) -> str:
    column = frame.column(name)
    return str(column.type if hasattr(column, "type") else column.dtype)


def _show_values(layout: Layout, at: int, present: Floats) -> str:
    """Return the smallest and the largest value, or the most frequent ones."""
    if not len(present):
        return ""
    codes, counts = np.unique(present, return_counts=True)
    if layout.n_categories[at]:
        ends = codes[np.argsort(-counts, kind="stable")]
        more = ", ..." if len(ends) > _N_EXAMPLES else ""
        return ", ".join(_decode(layout, at, ends[:_N_EXAMPLES])) + more
    ends = codes[[0, -1]] if len(codes) > 1 else codes
    return " to ".join(_decode(layout, at, ends))


def _decode(layout: Layout, at: int, values: Floats) -> list[str]:
    """Return values of a column as text."""
    column = layout.decode_column(layout.names[at], values)
    plain = column.to_pylist() if hasattr(column, "to_pylist") else column
    texts = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in plain]
    if layout.value_kinds[at] == Kind.TIME:
        texts = [_MIDNIGHT.sub("", _ZEROS.sub("", text)).replace("T", " ") for text in texts]
    return [_cut(text) for text in texts]


def _cut(text: str) -> str:
    # Texts of broken files may hold half a letter, which no table can.
    whole = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return whole if len(whole) <= _WIDTH else f"{whole[: _WIDTH - 3]}..."


def _remarks(layout: Layout, at: int, *, is_given: bool) -> list[str]:
    kind, value_kind = layout.kinds[at], layout.value_kinds[at]
    found = []
    if kind == Kind.CONSTANT:
        found.append("all values are missing" if layout.may_miss[at] else "a single value")
    if at in layout.copies:
        found.append(f"copy of {layout.names[layout.copies[at]]!r}")
    if kind == Kind.IDENTIFIER:
        advice = f"leave it out, or say that it is {value_kind!s}"
        found.append(f"a different value in every row: {advice}")
    for each in layout.exclusive:
        if at in each.columns:
            others = [layout.names[other] for other in each.columns if other != at]
            found.append(f"one-hot with {shown(others)}")
    if kind == Kind.CODES and not is_given and not found:
        found.append("may be a number or a class: guessed from its few values")
    if surprise := layout.surprises[at]:
        found.append(surprise)
    return found
