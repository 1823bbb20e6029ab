"""The categories of a class column: which ones there are, their order, and their codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import refusal, shown

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


def sorted_positions(values: Sequence[Any]) -> list[int]:
    """Return the positions of the values in sorted order; by their text if they do not compare."""
    positions = range(len(values))
    try:
        return sorted(positions, key=values.__getitem__)
    except TypeError:
        return sorted(positions, key=lambda position: repr(values[position]))


def sort_labels(labels: Sequence[Any]) -> list[Any]:
    """Return labels sorted, by their text if they do not compare."""
    return [labels[position] for position in sorted_positions(labels)]


def factorize(native: Any, name: str) -> tuple[Codes, pd.Index[Any]]:  # noqa: ANN401
    """Return codes of a column, -1 for missing values, and the sorted values that occur."""
    try:
        codes, found = pd.factorize(to_values(native))
    except TypeError as error:
        advice = f"Convert it: {error}"
        raise refusal("the columns", "numbers or classes", name, advice, TypeError) from None
    order = sorted_positions(list(found))
    # The last entry is for the code -1.
    rank = np.full(len(order) + 1, -1, dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank[codes], pd.Index(found)[order]


def to_values(native: Any) -> Any:  # noqa: ANN401
    """Return a column as an array of NumPy or a series of pandas."""
    # pandas knows the codes of its categories, and its own missing values.
    if isinstance(native, (np.ndarray, pd.Series)):
        return native
    return nw.from_native(native, series_only=True).to_numpy()


@dataclass(frozen=True)
class Categories:
    """The categories of a class column, in the order of their codes."""

    native: Any  # an array of the column's library, in the column's dtype
    labels: pd.Index[Any]  # the same, to look values up

    @classmethod
    def of(cls, native: Any, name: str) -> Self:  # noqa: ANN401
        """Return the categories that the dtype declares, or else the sorted values that occur."""
        declared = _declared_categories(native)
        if declared is not None:
            return cls(*declared)
        codes, labels = factorize(native, name)
        rows = np.flatnonzero(codes >= 0)[::-1]
        first = np.empty(len(labels), np.intp)
        # Rows are written last to first, so that the first row of each category stays.
        first[codes[rows]] = rows
        chosen = _take(native, first)
        return cls(getattr(chosen, "array", chosen), labels)

    def __len__(self) -> int:
        return len(self.labels)

    def encode(self, native: Any, name: str) -> Floats:  # noqa: ANN401
        """Return the codes of a column, NaN for missing values; refuse unseen categories."""
        if isinstance(native, pd.Series) and isinstance(native.dtype, pd.CategoricalDtype):
            if native.cat.categories.equals(self.labels):
                codes = native.cat.codes.to_numpy().astype(np.float64)
                codes[codes < 0] = np.nan
                return codes
            native = native.astype(native.cat.categories.dtype)
        values = to_values(native)
        codes = self.labels.get_indexer(values).astype(np.float64)
        if (codes < 0).any():
            absent = np.asarray(pd.isna(values))
            if unseen := list(pd.unique(pd.Series(values)[(codes < 0) & ~absent])):
                found = unseen[0] if len(unseen) == 1 else unseen[:6]
                condition = "made of the categories seen in training"
                advice = f"They are {shown(list(self.labels))}; leave these rows out"
                raise refusal(f"column {name!r}", condition, found, advice)
            codes[absent] = np.nan
        return codes

    def decode(self, codes: Codes) -> Any:  # noqa: ANN401
        """Return the categories of codes as an array of the column's library."""
        return _take(self.native, codes)


def _declared_categories(native: Any) -> tuple[Any, pd.Index[Any]] | None:  # noqa: ANN401
    """Return the categories that the dtype itself declares, in its library and as labels."""
    if isinstance(native, np.ndarray):
        both = np.array([False, True])
        return (both, pd.Index(both)) if native.dtype == np.bool_ else None
    dtype = native.type if hasattr(native, "type") else native.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        every = pd.Categorical.from_codes(np.arange(len(dtype.categories)), dtype=dtype)
        return every, dtype.categories
    series = nw.from_native(native, series_only=True)
    if series.dtype == nw.Boolean:
        labels = pd.Index([False, True])
        if isinstance(native, pd.Series):
            return pd.Series(labels, dtype=dtype).array, labels
        booleans = nw.new_series("", [False, True], backend=series.implementation)
        return booleans.to_native(), labels
    if isinstance(series.dtype, nw.Enum):
        categories = list(series.dtype.categories)
        return type(native)(categories, dtype=dtype), pd.Index(categories)
    if hasattr(native, "unify_dictionaries") and hasattr(dtype, "index_type"):
        whole = native.unify_dictionaries().combine_chunks()
        chunk = whole.chunk(0) if hasattr(whole, "chunks") else whole
        indices = np.arange(len(chunk.dictionary), dtype=str(dtype.index_type))
        array = type(chunk).from_arrays(indices, chunk.dictionary, ordered=dtype.ordered)
        return array, pd.Index(chunk.dictionary.to_pandas())
    return None


def _take(values: Any, positions: Codes) -> Any:  # noqa: ANN401
    return values.gather(positions) if hasattr(values, "gather") else values.take(positions)
