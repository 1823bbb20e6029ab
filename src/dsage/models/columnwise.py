"""What a scikit-learn transformer makes of encoded rows, without a data frame for each call.

What a transformer of classes, such as a one-hot encoder, makes of a column is a table by code. It
is filled once. A transformer of numbers is called with arrays.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from dsage.data.layout import Layout
from dsage.data.portions import as_slice
from dsage.models.affine import column_precision
from dsage.models.calling import sklearn_name

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

# Classes of scikit-learn, by name, each of whose results depends on a single column.
_BY_COLUMN = frozenset(("OrdinalEncoder", "SimpleImputer", "TargetEncoder"))
# The precision of columns of floats in double precision.
_DOUBLE = 2
# Memory of the table of a class.
_MOST_BYTES = 1 << 25


class Part(Protocol):
    """Some columns of a transformed row, as a function of encoded rows."""

    def write(self, X: Floats, out: Floats) -> None:
        """Write the columns for encoded rows into `out`, (n_rows, n_columns)."""


class Tables(NamedTuple):
    """Columns that each depend on one class: for each class, a row for each code."""

    start: Floats  # (n_columns,), the values of columns that depend on none
    # The class, its columns, and their values by code, (n_codes, n_columns).
    tables: tuple[tuple[int, slice | Ints, Floats], ...]
    is_complete: bool  # whether every column depends on a class

    def write(self, X: Floats, out: Floats) -> None:
        """Write the rows of the codes, one table next to the other."""
        if not self.is_complete:
            out[:] = self.start
        for position, columns, values in self.tables:
            out[:, columns] = values.take(X[:, position].astype(np.intp), axis=0)


class Numbers(NamedTuple):
    """What a transformer makes of numbers that it gets as an array; None keeps them.

    With a `layout`, these are columns that are not plain floats: they are rounded as for the model.
    """

    columns: slice | Ints
    transformer: Any
    layout: Layout | None

    def write(self, X: Floats, out: Floats) -> None:
        """Write what the transformer makes of the columns."""
        own = X[:, self.columns]
        # Some transformers change their input in place.
        out[:] = self.transform(own if self.transformer is None else own.copy())

    def transform(self, own: Floats) -> Floats:
        """Return what the transformer makes of its columns, which it may change."""
        if self.layout is not None:
            own = self.layout.encode(self.layout.decode(own))
        return own if self.transformer is None else dense(self.transformer.transform(own))


class Frames(NamedTuple):
    """What a transformer makes of columns that it gets in the container of the training data."""

    positions: Ints
    transformer: Any
    layout: Layout

    def write(self, X: Floats, out: Floats) -> None:
        """Write what the transformer makes of the columns."""
        out[:] = dense(self.transformer.transform(self.layout.decode(X[:, self.positions])))


class Placed(NamedTuple):
    """A part, and the place of its columns in the result."""

    columns: slice
    part: Part


def read_transformer(transformer: Any, width: int, layout: Layout) -> list[Placed] | None:  # noqa: ANN401
    """Return the parts of what a fitted transformer returns; None if it is not known.

    A column transformer has a part for each of its transformers. `width` is the number of columns
    that the transformer returns; ``"passthrough"`` returns all columns as they are.
    """
    if sklearn_name(transformer) != "ColumnTransformer":
        part = _read_block(transformer, np.arange(len(layout.names)), layout)
        return None if part is None else [Placed(slice(0, width), part)]
    if transformer.transformer_weights:
        return None
    parts: list[Placed] = []
    for label, own, columns in transformer.transformers_:
        place = transformer.output_indices_[label]
        # Transformers without columns have no place in the result.
        if place.start == place.stop:
            continue
        positions = _find_positions(columns, layout)
        part = None if positions is None else _read_block(own, positions, layout)
        if part is None:
            return None
        parts.append(Placed(place, part))
    return parts


def dense(rows: Any) -> Floats:  # noqa: ANN401
    """Return the result of a transformer as an array of floats."""
    return np.asarray(rows.toarray() if issparse(rows) else rows, dtype=np.float64)


def forget_names(estimator: Any) -> Any:  # noqa: ANN401
    """Return a copy of an estimator of scikit-learn that takes arrays: it knows no column names."""
    name = sklearn_name(estimator)
    if name is None or not hasattr(estimator, "feature_names_in_"):
        return estimator
    made = copy.copy(estimator)
    if name == "Pipeline":
        made.steps = [(label, forget_names(step)) for label, step in estimator.steps]
    else:
        del made.feature_names_in_
    return made


def has_names_inside(estimator: Any) -> bool:  # noqa: ANN401
    """Return whether estimators inside of a fitted one know column names, and so warn of arrays."""
    for value in getattr(estimator, "__dict__", {}).values():
        several = value.values() if isinstance(value, dict) else value
        for each in several if isinstance(value, (dict, list, tuple)) else [value]:
            # Some come with a name.
            inner = each[1] if isinstance(each, tuple) and len(each) > 1 else each
            is_estimator = hasattr(inner, "get_params") or sklearn_name(inner) is not None
            if is_estimator and (hasattr(inner, "feature_names_in_") or has_names_inside(inner)):
                return True
    return False


def _find_positions(columns: Any, layout: Layout) -> Ints | None:  # noqa: ANN401
    """Return the positions of columns that are given by name or number; None if they are not."""
    if isinstance(columns, slice):
        is_of_numbers = all(type(end) in (int, type(None)) for end in (columns.start, columns.stop))
        return np.arange(len(layout.names))[columns] if is_of_numbers else None
    if isinstance(columns, str) or not hasattr(columns, "__len__"):
        return None
    if all(isinstance(each, str) for each in columns):
        is_known = set(columns) <= set(layout.names)
        return np.array([layout.names.index(each) for each in columns]) if is_known else None
    found = np.asarray(columns)
    if found.dtype.kind == "b" and len(found) == len(layout.names):
        return np.flatnonzero(found)
    return found.astype(np.intp) if found.dtype.kind in "iu" else None


def _read_block(transformer: Any, positions: Ints, layout: Layout) -> Part | None:  # noqa: ANN401
    """Return what a transformer makes of some columns; None if it is not of scikit-learn."""
    own = layout.select(positions.tolist())
    are_classes = own.n_categories > 0
    is_plain = bool((column_precision(own) == _DOUBLE).all())
    is_kept = isinstance(transformer, str) and transformer == "passthrough"
    if not are_classes.any() and (is_kept or _takes_arrays(transformer, is_plain=is_plain)):
        taking = None if is_kept else forget_names(transformer)
        return Numbers(as_slice(positions), taking, None if is_plain else own)
    if is_kept or sklearn_name(transformer) is None:
        return None
    if are_classes.all() and _is_by_column(transformer):
        tables = _fill_tables(transformer, positions, own)
        if tables is not None:
            return tables
    return Frames(positions, transformer, own)


def _takes_arrays(transformer: Any, *, is_plain: bool) -> bool:  # noqa: ANN401
    """Return whether a transformer makes the same of an array of numbers as of a data frame."""
    name = sklearn_name(transformer)
    if name == "Pipeline":
        return all(_takes_arrays(step, is_plain=is_plain) for _, step in transformer.steps)
    if has_names_inside(transformer):
        return False
    if name == "FunctionTransformer":
        # Functions of integers may overflow.
        is_known = transformer.func is None or isinstance(transformer.func, np.ufunc)
        return is_plain and is_known
    return name not in (None, "ColumnTransformer", "FeatureUnion")


def _is_by_column(transformer: Any) -> bool:  # noqa: ANN401
    """Return whether each result of a transformer depends on one column, by its type."""
    name = sklearn_name(transformer)
    if name == "Pipeline":
        return all(_is_by_column(step) for _, step in transformer.steps)
    if name == "OneHotEncoder":
        # It would warn of categories that are declared and do not occur.
        handles = transformer.handle_unknown
        return handles == "error" or (transformer.drop is None and handles != "warn")
    return name in _BY_COLUMN


def _fill_tables(transformer: Any, positions: Ints, layout: Layout) -> Tables | None:  # noqa: ANN401
    """Return the results of a transformer for all codes; None if there are too many."""
    start = dense(transformer.transform(layout.decode(np.zeros((1, len(positions))))))[0]
    if 8 * int(layout.n_categories.max()) * len(start) > _MOST_BYTES:
        return None
    tables = []
    for at, n_codes in enumerate(layout.n_categories.tolist()):
        codes = np.zeros((n_codes, len(positions)))
        codes[:, at] = np.arange(n_codes)
        found = dense(transformer.transform(layout.decode(codes)))
        is_same = (found == found[0]) | (np.isnan(found) & np.isnan(found[0]))
        columns = np.flatnonzero(~is_same.all(axis=0))
        values = np.ascontiguousarray(found[:, columns])
        tables.append((int(positions[at]), as_slice(columns), values))
    n_columns = sum(values.shape[1] for _, _, values in tables)
    return Tables(start, tuple(tables), n_columns == len(start))
