"""The rows of a :class:`RowExplanation` in a file: numbers and times as arrays, others as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import record_warnings
from dsage._files import Arrays
from dsage.data.frames import Frame
from dsage.data.layout import Layout
from dsage.result.row_values import Label

_UTC = "UTC"


@dataclass(frozen=True)
class SavedColumn:
    """A column of a table in a file.

    `texts` are its values, with None for missing ones; `texts` is None if the values are an array.
    `zone` is the time zone of times.
    """

    name: str
    is_class: bool
    texts: tuple[str | None, ...] | None
    zone: str | None


def save_table(rows: Any, layout: Layout, arrays: Arrays) -> tuple[SavedColumn, ...]:  # noqa: ANN401
    """Return the columns of rows; their numbers and times go to `arrays`."""
    frame, is_missing = Frame(rows, layout.names), layout.is_missing(layout.encode(rows))
    found = []
    for at, name in enumerate(layout.names):
        values, is_class = _to_pandas(frame.column(name)), bool(layout.n_categories[at])
        array, zone = _to_array(values)
        texts = None
        if array is None:
            cells = zip(values.tolist(), is_missing[:, at], strict=True)
            texts = tuple(None if missing else str(value) for value, missing in cells)
        else:
            arrays[f"table/{at}"] = array
        found.append(SavedColumn(name, is_class, texts, zone))
    return tuple(found)


def load_table(
    columns: Sequence[SavedColumn], names: Sequence[Any], arrays: Arrays
) -> tuple[pd.DataFrame, Layout]:
    """Return rows as a pandas data frame, with labels `names`, and their layout."""
    made: dict[str, Any] = {}
    for at, column in enumerate(columns):
        if column.texts is not None:
            made[column.name] = pd.Series(list(column.texts), dtype=object)
            continue
        array = arrays[f"table/{at}"]
        if array.dtype.kind not in "iufmM" or array.shape != (len(names),):
            raise ValueError(f"the column {column.name!r} has another type or length")
        series: Any = pd.Series(array)
        if column.zone is not None:
            series = series.dt.tz_localize(_UTC).dt.tz_convert(column.zone)
        made[column.name] = series
    frame = pd.DataFrame(made)
    if len(frame) != len(names):
        raise ValueError("the columns have different lengths")
    discrete = [each.name for each in columns if each.is_class and each.texts is None]
    with record_warnings(show=False):
        layout = Layout.of(frame, discrete=discrete)
    # Labels with several levels are tuples, which pandas would turn into a MultiIndex.
    labels = pd.Index(list(names), dtype=object, tupleize_cols=False)
    return frame.set_axis(labels.infer_objects(), axis=0), layout


def save_names(names: Sequence[Any]) -> list[Label]:
    """Return labels of rows that JSON can store: numbers and text; others as text."""
    plain = [name.item() if isinstance(name, np.generic) else name for name in names]
    return [name if isinstance(name, (str, bool, int, float)) else str(name) for name in plain]


def _to_pandas(values: Any) -> pd.Series[Any]:  # noqa: ANN401
    if isinstance(values, pd.Series):
        return values.reset_index(drop=True)
    return pd.Series(values.to_pandas() if hasattr(values, "to_pandas") else values)


def _to_array(values: pd.Series[Any]) -> tuple[np.ndarray[Any, Any] | None, str | None]:
    """Return numbers and times as an array, with the zone of times; None for anything else."""
    dtype = values.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        return values.dt.tz_convert(_UTC).dt.tz_localize(None).to_numpy(), str(dtype.tz)
    if pd.api.types.is_datetime64_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        return values.to_numpy(), None
    if not pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        return None, None
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf":
        return values.to_numpy(), None
    # Decimals, and nullable numbers.
    return values.to_numpy(dtype=np.float64, na_value=np.nan), None
