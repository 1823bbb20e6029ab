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
from dsage.data.natives import append, are_equal, take
from dsage.data.storage import Floats, Storage, all_missing, no_missing, own_dtype

Codes = npt.NDArray[np.intp]


def sorted_positions(values: Sequence[Any]) -> list[int]:
    """Return the positions of the values in sorted order, by text if they are not comparable."""
    positions = range(len(values))
    try:
        return sorted(positions, key=values.__getitem__)
    except TypeError:
        return sorted(positions, key=lambda position: repr(values[position]))


def sort_labels(labels: Sequence[Any]) -> list[Any]:
    """Return sorted labels, by text if they are not comparable."""
    return [labels[position] for position in sorted_positions(labels)]


def factorize(native: Any, name: str) -> tuple[Codes, pd.Index[Any]]:  # noqa: ANN401
    """Return codes of a column, -1 for missing values, and the sorted values that occur."""
    try:
        codes, found = pd.factorize(to_values(native))
    except TypeError as error:
        raise _not_a_class(name, error) from None
    order = sorted_positions(list(found))
    # The last entry is for the code -1.
    rank = np.full(len(order) + 1, -1, dtype=np.intp)
    rank[order] = np.arange(len(order))
    # Objects stay objects, also if all of them are strings.
    are_objects = getattr(found, "dtype", None) == np.dtype(object)
    labels: pd.Index[Any] = pd.Index(found, dtype=object) if are_objects else pd.Index(found)
    return rank[codes], labels[order]


def to_values(native: Any) -> Any:  # noqa: ANN401
    """Return a column as an array of NumPy or a series of pandas."""
    # pandas knows the codes of its categories, and its own missing values.
    if isinstance(native, (np.ndarray, pd.Series)):
        return native
    if hasattr(dtype := own_dtype(native), "index_type"):
        # pyarrow itself ignores missing values of dictionaries here.
        native = native.cast(dtype.value_type)
    series = nw.from_native(native, series_only=True)
    if str(series.dtype).endswith("128"):
        return np.array([*series.to_list(), None], object)[:-1]
    if series.dtype.is_integer() and series.null_count():
        # NumPy has no missing integers: they would become floats.
        absent = series.is_null().to_numpy()
        return pd.Series(pd.arrays.IntegerArray(series.fill_null(0).to_numpy(), absent.copy()))
    return series.to_numpy()


@dataclass(frozen=True)
class Categories(Storage):
    """The categories of a class column, in the order of their codes.

    If there are missing values, they are a category, the last one that was seen in training.
    """

    native: Any  # an array of the column's library, in the column's dtype
    labels: pd.Index[Any]  # the same without missing values, to look values up
    missing_code: int = -1
    is_ordered: bool = False

    @classmethod
    def of(cls, native: Any, name: str) -> Self:  # noqa: ANN401
        """Return the categories that the dtype declares, or else the sorted values that occur."""
        declared = _declared_categories(native, name)
        if declared is not None:
            array, labels, is_ordered = declared
            if not _has_missing(native):
                return cls(array, labels, is_ordered=is_ordered)
            return cls(append(array, [None]), labels, len(labels), is_ordered)
        codes, labels = factorize(native, name)
        # The first row of each category, and at the end of missing values.
        first = np.empty(len(labels) + 1, np.intp)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        is_missing = bool((codes < 0).any())
        chosen = take(native, first if is_missing else first[:-1])
        missing_code = len(labels) if is_missing else -1
        return cls(getattr(chosen, "array", chosen), labels, missing_code)

    @property
    def n_categories(self) -> int:  # type: ignore[override]
        """The number of categories, including the one of missing values."""
        return len(self.labels) + (self.missing_code >= 0)

    def encode(self, native: Any, name: str) -> Floats:  # noqa: ANN401
        """Return the codes of a column; refuse unseen categories."""
        found, values = self._find(native, name)
        if (found < 0).any():
            absent = np.asarray(pd.isna(values))
            if unseen := list(pd.unique(pd.Series(values)[(found < 0) & ~absent])):
                value = unseen[0] if len(unseen) == 1 else unseen[:6]
                condition = "made of the categories seen in training"
                advice = (
                    f"They are {shown(list(self.labels))}; leave these rows out,"
                    " or use layout.extend(X)"
                )
                raise refusal(f"column {name!r}", condition, value, advice)
            if self.missing_code < 0:
                raise no_missing(name)
        return self._codes_of_labels()[found].astype(np.float64)

    def decode(self, values: npt.NDArray[Any], name: str, container: str) -> Any:  # noqa: ANN401
        """Return the categories of codes as an array of the column's library."""
        taken = take(self.native, self.check_codes(values, name))
        if container == "pandas" and str(taken.dtype) == "object":
            # A data frame would make strings of objects that are all strings.
            return pd.Series(np.asarray(taken), dtype=object)
        return taken

    def extended(self, native: Any, name: str, *, may_miss: bool) -> Self:  # noqa: ANN401, ARG002
        """Return the categories, followed by the new ones of this column, sorted."""
        found, values = self._find(native, name)
        if (found >= 0).all():
            return self
        absent = np.asarray(pd.isna(values))
        unseen = sort_labels(list(pd.unique(pd.Series(values)[(found < 0) & ~absent])))
        needs_missing = bool(absent.any()) and self.missing_code < 0
        if not unseen and not needs_missing:
            return self
        missing = [pd.Series(values)[absent].iloc[0]] if needs_missing else []
        labels = self.labels.append(_index_like(self.labels, unseen)) if unseen else self.labels
        missing_code = self.n_categories + len(unseen) if needs_missing else self.missing_code
        try:
            array = append(self.native, [*unseen, *missing])
        # Every library has its own errors.
        except Exception as error:
            advice = f"Convert it to the type it had: {error}"
            condition = "made of values of the type it had in training"
            raise refusal(f"column {name!r}", condition, unseen[:6], advice, TypeError) from error
        return type(self)(array, labels, missing_code, self.is_ordered)

    def check_codes(self, values: npt.NDArray[Any], name: str) -> Codes:
        """Return codes as whole numbers after checking that they are codes of categories."""
        good = (values >= 0) & (values < self.n_categories) & (values == np.floor(values))
        if not good.all():
            bad = float(values[np.argmin(good)])
            condition = f"codes, whole numbers from 0 to {self.n_categories - 1}"
            advice = "Encode the data with the layout first"
            raise refusal(f"column {name!r} of the matrix", condition, bad, advice)
        return values.astype(np.intp)

    def _find(self, native: Any, name: str) -> tuple[Codes, Any]:  # noqa: ANN401
        """Return the positions of values among the labels, -1 if they are not; and the values."""
        if isinstance(native, pd.Series) and isinstance(native.dtype, pd.CategoricalDtype):
            if native.cat.categories.equals(self.labels):
                return native.cat.codes.to_numpy().astype(np.intp), native
            native = native.astype(native.cat.categories.dtype)
        if all_missing(native):
            return np.full(len(native), -1, np.intp), np.asarray(pd.Series(to_values(native)))
        values = to_values(native)
        try:
            return self.labels.get_indexer(values), values
        except TypeError as error:
            raise _not_a_class(name, error) from None

    def _codes_of_labels(self) -> Codes:
        """Return the code of each label; at the end that of missing values, for position -1."""
        codes = np.arange(len(self.labels) + 1)
        if self.missing_code >= 0:
            codes[self.missing_code :] += 1
            codes[-1] = self.missing_code
        return codes


def _not_a_class(name: str, error: TypeError) -> Exception:
    advice = f"Convert it or leave it out: {error}"
    return refusal("the columns", "numbers or classes", name, advice, TypeError)


def _index_like(labels: pd.Index[Any], values: list[Any]) -> pd.Index[Any]:
    """Return further labels, of the dtype of the others if they fit into it."""
    objects: pd.Index[Any] = pd.Index(values, dtype=object)
    try:
        made: pd.Index[Any] = pd.Index(values, dtype=labels.dtype)
    except (TypeError, ValueError):
        return objects
    # Numbers would become texts among texts.
    return made if are_equal(list(made), values) else objects


def _has_missing(native: Any) -> bool:  # noqa: ANN401
    if isinstance(native, (np.ndarray, pd.Series)):
        return bool(np.asarray(pd.isna(native)).any())
    return bool(nw.from_native(native, series_only=True).null_count())


def _declared_categories(native: Any, name: str) -> tuple[Any, pd.Index[Any], bool] | None:  # noqa: ANN401
    """Return the categories that the dtype declares, as an array and as labels; and their order."""
    if isinstance(native, np.ndarray):
        both = np.array([False, True])
        return (both, pd.Index(both), False) if native.dtype == np.bool_ else None
    dtype = own_dtype(native)
    if isinstance(dtype, pd.CategoricalDtype):
        every = pd.Categorical.from_codes(np.arange(len(dtype.categories)), dtype=dtype)
        return every, dtype.categories, bool(dtype.ordered)
    series = nw.from_native(native, series_only=True)
    if series.dtype == nw.Boolean:
        labels = pd.Index([False, True])
        if isinstance(native, pd.Series):
            return pd.Series(labels, dtype=dtype).array, labels, False
        booleans = nw.new_series("", [False, True], backend=series.implementation)
        return booleans.to_native(), labels, False
    if isinstance(series.dtype, nw.Enum):
        categories = list(series.dtype.categories)
        return type(native)(categories, dtype=dtype), pd.Index(categories), True
    if hasattr(native, "unify_dictionaries") and hasattr(dtype, "index_type"):
        whole = native.unify_dictionaries().combine_chunks()
        chunk = whole.chunk(0) if hasattr(whole, "chunks") else whole
        labels = pd.Index(chunk.dictionary.to_pandas())
        if labels.hasnans or not labels.is_unique:
            condition = "a dictionary of distinct values that are present"
            value, advice = labels.tolist()[:6], "Make it again: dictionary_encode() of its values"
            raise refusal(f"column {name!r}", condition, value, advice)
        indices = np.arange(len(chunk.dictionary), dtype=str(dtype.index_type))
        array = type(chunk).from_arrays(indices, chunk.dictionary, ordered=dtype.ordered)
        return array, labels, bool(dtype.ordered)
    return None
