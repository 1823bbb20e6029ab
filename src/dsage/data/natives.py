"""Arrays and series of the libraries of data frames: taking values, and appending some."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage.data.storage import library


def take(values: Any, positions: npt.NDArray[np.intp]) -> Any:  # noqa: ANN401
    """Return the values at some positions, in the same kind of array."""
    if hasattr(values, "gather"):
        return values.gather(positions)
    if str(getattr(values, "type", "")) == "string_view":
        # pyarrow cannot take from these.
        plain = values.cast(library("pyarrow").large_string())
        return plain.take(positions).cast(values.type)
    return values.take(positions)


def are_equal(some: list[Any], others: list[Any]) -> bool:
    """Return whether values are equal, or both missing; a number and its text are not."""
    pairs = zip(some, others, strict=True)
    return all(
        (bool(pd.isna(one)) and bool(pd.isna(other))) if _is_missing(other) else one == other
        for one, other in pairs
    )


def _is_missing(value: Any) -> bool:  # noqa: ANN401
    return bool(np.ndim(value) == 0 and pd.isna(value))


def append(array: Any, values: list[Any]) -> Any:  # noqa: ANN401
    """Return an array of any library with further values, which may be missing ones.

    Categories that the dtype does not declare are added to it. A dtype of NumPy that cannot hold
    the values becomes one that can.
    """
    if isinstance(array, pd.Categorical):
        return _append_categories(array, values)
    if isinstance(array, np.ndarray):
        return _append_numpy(array, values)
    if isinstance(array, pd.api.extensions.ExtensionArray):
        return _append_pandas(array, values)
    if hasattr(array, "gather"):
        return _append_polars(array, values)
    return _append_arrow(array, values)


def _append_categories(array: pd.Categorical[Any], values: list[Any]) -> pd.Categorical[Any]:
    new = [value for value in values if not _is_missing(value)]
    extended = array.add_categories(new) if new else array
    codes = np.array([-1 if _is_missing(value) else 0 for value in values], np.intp)
    codes[codes == 0] = len(array.categories) + np.arange(len(new))
    every = np.concatenate([np.asarray(array.codes, np.intp), codes])
    return pd.Categorical.from_codes(every, dtype=extended.dtype)


def _append_numpy(array: npt.NDArray[Any], values: list[Any]) -> npt.NDArray[Any]:
    further = np.array(values)
    if array.dtype.kind in "OUS" or further.dtype.kind == "O" or array.dtype.kind == "b":
        has_text = array.dtype.kind == further.dtype.kind and array.dtype.kind in "US"
        further = further if has_text else np.array([*values, None], object)[:-1]
    return np.concatenate([array, further])


def _append_pandas(array: Any, values: list[Any]) -> Any:  # noqa: ANN401
    series = pd.Series(array)
    objects = pd.Series(np.array([*values, None], object)[:-1], dtype=object)
    if isinstance(series.dtype, np.dtype):
        further: pd.Series[Any] = objects.infer_objects()
        fits = series.dtype.kind in "iuf" and further.dtype.kind in "iuf"
    else:
        further = pd.Series(values, dtype=series.dtype)
        fits = are_equal(further.tolist(), values)
    if not fits:
        series, further = series.astype(object), objects
    return pd.concat([series, further], ignore_index=True).array


def _append_polars(series: Any, values: list[Any]) -> Any:  # noqa: ANN401
    polars = library("polars")
    dtype = series.dtype
    plain = [None if _is_missing(value) else value for value in values]
    if isinstance(dtype, polars.Enum):
        new = [value for value in plain if value is not None]
        dtype = polars.Enum([*dtype.categories, *new])
        return polars.Series(series.name, [*series, *plain], dtype=dtype)
    return polars.concat([series, polars.Series(series.name, plain, dtype=dtype)])


def _append_arrow(array: Any, values: list[Any]) -> Any:  # noqa: ANN401
    arrow = library("pyarrow")
    plain = [None if _is_missing(value) else value for value in values]
    if not hasattr(array.type, "index_type"):
        further = arrow.array(plain, array.type)
        chunks = getattr(array, "chunks", None)
        return arrow.chunked_array([*(chunks or ([array] if chunks is None else [])), further])
    new = [value for value in plain if value is not None]
    old, n_old = array.dictionary, len(array.dictionary)
    places = iter(range(n_old, n_old + len(new)))
    indices = array.indices.to_pylist() + [None if v is None else next(places) for v in plain]
    index_type = array.type.index_type
    if n_old + len(new) > 2 ** (index_type.bit_width - 1):
        index_type = arrow.int32()
    return arrow.DictionaryArray.from_arrays(
        arrow.array(indices, index_type),
        arrow.concat_arrays([old, arrow.array(new, old.type)]),
        ordered=array.type.ordered,
    )
