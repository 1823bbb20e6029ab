"""The rows and targets that a user passes, checked before any work is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage._check import Setting, SharedRowsWarning, Text, refusal, shown, warn
from dsage.data.batches import Batches
from dsage.data.frames import Frame, check_dense, is_frame, open_frame, take_rows
from dsage.data.groups import Groups
from dsage.data.kinds import Kind, check_given_kinds
from dsage.data.layout import Layout, Mask
from dsage.data.portions import encoded_portions
from dsage.data.targets import Array, are_numbers, output_names, values

_SHARED = (
    "X and y are used both to learn the graph and the sampler and to evaluate the model: the "
    "values describe the performance on new rows only if the model was not fitted to these rows."
)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Training rows and evaluation rows, as the user passed them, with their targets."""

    X_train: Any
    y_train: Array
    X_test: Any
    y_test: Array
    # Learned from the training rows, and extended by new categories of the evaluation rows.
    layout: Layout
    target: str  # a name that no feature has
    discrete: tuple[str, ...]  # columns of numbers that are classes
    # Options to learn the same layout again.
    kinds: Mapping[str, str] | None = None
    groups: Mapping[str, Iterable[str]] | None = None
    is_shared: bool = False  # whether the same rows are used to learn and to evaluate
    outputs: tuple[str, ...] = ()  # the columns of the target, if there are several
    # What the caller calls the evaluation rows and their targets.
    named: tuple[str, str] = ("X_test", "y_test")
    # All training rows, if those above are only a sample of rows on disk.
    source: Batches | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The features."""
        return self.layout.names

    def share_missing(self) -> dict[str, float]:
        """Return the share of missing values of each feature, in all rows."""
        counts = np.zeros(len(self.names), dtype=np.intp)
        tables = [(self.X_train, len(self.y_train)), (self.X_test, len(self.y_test))]
        for X, n_rows in tables:
            for matrix in encoded_portions(self.layout, X, n_rows):
                counts += self.layout.is_missing(matrix).sum(axis=0)
        shares = counts / sum(n_rows for _, n_rows in tables)
        return dict(zip(self.names, shares.tolist(), strict=True))

    def training_table(self) -> Any:  # noqa: ANN401
        """Return the training rows with the target as one more column."""
        if self.y_train.ndim != 1:
            condition = "None, or a graph, if the target has several columns"
            advice = "A graph is learned for one target: explain one at a time"
            raise refusal("graph", condition, "learn", advice)
        names = None if is_frame(self.X_train) else self.names
        return Frame(self.X_train, names).with_column(self.target, self.y_train)

    def first_rows(self, n_rows: int = 2) -> Any:  # noqa: ANN401
        """Return the first evaluation rows in the form that the model receives."""
        return self._for_model(np.arange(min(n_rows, len(self.y_test))))

    def some_rows(self, n_rows: int) -> Any:  # noqa: ANN401
        """Return evaluation rows, spread evenly, in the form that the model receives."""
        n_all = len(self.y_test)
        return self._for_model(np.linspace(0, n_all - 1, min(n_rows, n_all)).astype(np.intp))

    def _for_model(self, rows: npt.NDArray[np.intp]) -> Any:  # noqa: ANN401
        return self.layout.decode(self.layout.encode(take_rows(self.X_test, rows)))


def check_inputs(
    X_train: Any,  # noqa: ANN401
    y_train: Any,  # noqa: ANN401
    X_test: Any = None,  # noqa: ANN401
    y_test: Any = None,  # noqa: ANN401
    *,
    target: str | None = None,
    discrete: str | Iterable[str] = (),
    kinds: Mapping[str, str] | None = None,
    groups: Mapping[str, Iterable[str]] | None = None,
    named: tuple[str, str] = ("X_test", "y_test"),
) -> Inputs:
    """Check the rows and targets; errors name the columns.

    Without `X_test` and `y_test`, all rows are used both to learn and to evaluate, with a warning.
    By default the target has the name of `y_train`, or ``"target"``. For `discrete`, `kinds` and
    `groups` see :meth:`dsage.data.layout.Layout.of`. `named` are the caller's names for the
    evaluation rows and their targets, for errors. Warnings name categories and missing values that
    only the evaluation rows have, and columns that look like identifiers.
    """
    is_shared = X_test is None and y_test is None
    rows, targets = named
    if is_shared:
        X_test, y_test = X_train, y_train
        warn(_SHARED, SharedRowsWarning)
    elif X_test is None or y_test is None:
        absent, other = named if X_test is None else named[::-1]
        advice = "Pass both, or neither to use all rows both to learn and to evaluate"
        raise refusal(absent, f"given if {other} is", None, advice, TypeError)
    for name, X in (("X_train", X_train), (rows, X_test)):
        check_dense(X, name)
    if is_frame(X_train) != is_frame(X_test):
        advice = "Pass two data frames with the same columns, or two arrays"
        found = (type(X_train).__name__, type(X_test).__name__)
        raise refusal(f"X_train and {rows}", "of one kind", found, advice, TypeError)
    with name_argument("X_train"):
        frame = Frame(X_train)
    check_given_kinds(kinds, discrete, frame.names)
    members = None if groups is None else Groups(groups, frame.names).members
    with name_argument("X_train"):
        learned = Layout.of(X_train, discrete=discrete, kinds=kinds, groups=members)
    with name_argument(rows):
        layout = learned.extend(X_test)
        n_test = Frame(X_test).n_rows
        misses = _find_missing(layout, X_test, n_test)
    train = _check_target("y_train", y_train, "X_train", X_train, frame.n_rows)
    test = _check_target(targets, y_test, rows, X_test, n_test)
    name = _target_name(target, y_train, layout.names)
    if train.shape[1:] != test.shape[1:]:
        condition = f"of the columns of y_train, whose shape is {train.shape}"
        raise refusal(targets, condition, test.shape, "Pass the same targets for both")
    outputs = () if train.ndim == 1 else output_names(y_train, train.shape[1], name)
    _tell_identifiers(layout)
    _tell_unseen(learned, layout, misses, rows)
    classes = layout.numbers_as_classes
    rows_of_all = X_train, train, X_test, test
    return Inputs(*rows_of_all, layout, name, classes, kinds, members, is_shared, outputs, named)


def _tell_identifiers(layout: Layout) -> None:
    for name, kind in zip(layout.names, layout.kinds, strict=True):
        if kind == Kind.IDENTIFIER:
            value = layout.value_kinds[layout.names.index(name)]
            start = (
                f"Column {name!r} has a different value in every row, like an identifier, and"
                " says nothing about other rows. Leave it out or, if it is not an identifier, say"
                " so with "
            )
            warn(Text([start, Setting("kinds", {name: str(value)}), "."]))


def _find_missing(layout: Layout, X: Any, n_rows: int) -> Mask:  # noqa: ANN401
    """Return which columns have missing values; refuse values that cannot be encoded."""
    misses = np.zeros(len(layout.names), dtype=np.bool_)
    for matrix in encoded_portions(layout, X, n_rows):
        misses |= layout.is_missing(matrix).any(axis=0)
    return misses


def _tell_unseen(learned: Layout, extended: Layout, misses: Mask, rows: str) -> None:
    """Warn of categories and missing values that only the evaluation rows have."""
    for name in extended.names:
        old, new = learned.categories(name), extended.categories(name)
        if further := new[len(old) :]:
            categories = "category" if len(further) == 1 else "categories"
            them = "it, draws ignore it" if len(further) == 1 else "them, draws ignore them"
            warn(
                f"Column {name!r} has {len(further)} {categories} in {rows} that X_train lacks"
                f" ({shown(further)}): nothing is known about {them}."
            )
    only = misses & ~learned.may_miss
    if names := [name for name, flag in zip(extended.names, only, strict=True) if flag]:
        start = f"Column {names[0]!r} has" if len(names) == 1 else f"Columns {shown(names)} have"
        warn(
            f"{start} missing values in {rows}, but none in X_train: nothing is known about them,"
            " draws ignore them."
        )


def _check_target(name: str, y: Any, rows: str, X: Any, n_rows: int) -> Array:  # noqa: ANN401
    with name_argument(name):
        found = values(y)
    if len(found) != n_rows:
        condition = f"of {n_rows} rows, as {rows} is"
        raise refusal(name, condition, len(found), "Pass one target per row")
    _check_order(name, y, rows, X)
    if found.dtype.kind != "O":
        return found
    # Such as a column from which missing values were dropped.
    if pd.api.types.infer_dtype(found, skipna=False) == "boolean":
        return found.astype(np.bool_)
    return found.astype(np.float64) if are_numbers(found) else found


def _check_order(name: str, y: Any, rows: str, X: Any) -> None:  # noqa: ANN401
    """Refuse targets in another order than their rows, if the labels of pandas show it."""
    if not (isinstance(X, pd.DataFrame) and isinstance(y, (pd.Series, pd.DataFrame))):
        return
    if X.index.equals(y.index) or not (X.index.is_unique and y.index.is_unique):
        return
    if X.index.sort_values().equals(y.index.sort_values()):
        advice = f"Their labels are the same, in another order: pass {name}.loc[{rows}.index]"
        raise refusal(name, f"in the order of {rows}", y.index[:3].tolist(), advice)


def _target_name(given: str | None, y: Any, features: tuple[str, ...]) -> str:  # noqa: ANN401
    """Return the given name of the target, its own name, or a name that no feature has."""
    if given is not None and not (isinstance(given, str) and given):
        raise refusal("target", "a name", given, "Pass a string", TypeError)
    own = getattr(y, "name", None)
    if is_frame(y):
        columns = open_frame(y).columns
        own = columns[0] if len(columns) == 1 else None
    named = given or (own if isinstance(own, str) and own else None)
    if named is not None:
        if named in features:
            start = "Drop that column from the features, or name the target with "
            advice = Text([start, Setting("target")])
            condition = "different from the names of the features"
            raise refusal("the name of the target", condition, named, advice)
        return named
    free = "target"
    while free in features:
        free = f"{free}_"
    return free


@contextmanager
def name_argument(name: str) -> Iterator[None]:
    """Add a note to errors that names the argument they are about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        error.add_note(f"This is about {name}.")
        raise
