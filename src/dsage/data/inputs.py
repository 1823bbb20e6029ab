"""The rows and targets that a user passes, checked before any work is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dsage._check import Setting, Text, check_members, refusal
from dsage.data.frames import Frame, check_dense, is_frame, open_frame, take_rows
from dsage.data.layout import Layout
from dsage.data.targets import Array, are_numbers, values

_TARGET = "target"


@dataclass(frozen=True, eq=False)
class Inputs:
    """Training rows and evaluation rows with their targets.

    Attributes
    ----------
    X_train, X_test : data frames or arrays
        The features, as the user passed them.
    y_train, y_test : arrays
        The targets.
    layout : Layout
        The columns.
    target : str
        The name of the target, which no feature has.
    discrete : tuple of str
        Columns of numbers that are classes.
    """

    X_train: Any
    y_train: Array
    X_test: Any
    y_test: Array
    layout: Layout
    target: str
    discrete: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The features."""
        return self.layout.names

    def training_table(self) -> Any:  # noqa: ANN401
        """Return the training rows with the target as one more column."""
        if self.y_train.ndim != 1:
            raise refusal(
                "graph",
                "None, or a graph, if the target has several columns",
                "learn",
                "A graph is learned for one target: explain one at a time",
            )
        names = None if is_frame(self.X_train) else self.names
        return Frame(self.X_train, names).with_column(self.target, self.y_train)

    def first_rows(self, n_rows: int = 2) -> Any:  # noqa: ANN401
        """Return some evaluation rows in the form that the model receives."""
        rows = take_rows(self.X_test, np.arange(min(n_rows, len(self.y_test))))
        return self.layout.decode(self.layout.encode(rows))


def check_inputs(
    X_train: Any,  # noqa: ANN401
    y_train: Any,  # noqa: ANN401
    X_test: Any,  # noqa: ANN401
    y_test: Any,  # noqa: ANN401
    *,
    target: str | None = None,
    discrete: str | Iterable[str] = (),
) -> Inputs:
    """Check the rows and targets; errors name the columns.

    Parameters
    ----------
    X_train, X_test : data frames or arrays of shape (n_rows, n_features)
        Rows to learn from, and rows to evaluate on.
    y_train, y_test : arrays of shape (n_rows,)
        Their targets.
    target : str, optional
        Name of the target; by default that of `y_train`, or ``"target"``.
    discrete : str or iterable of str, default=()
        Columns of numbers that are classes.

    Examples
    --------
    >>> X = pd.DataFrame({"age": [31.0, 54.0], "bmi": [22.0, 27.0]})
    >>> inputs = check_inputs(X, [1.0, 2.0], X, [1.0, 2.0])
    >>> inputs.names, inputs.target
    (('age', 'bmi'), 'target')
    """
    for name, X in (("X_train", X_train), ("X_test", X_test)):
        check_dense(X, name)
    if is_frame(X_train) != is_frame(X_test):
        advice = "Pass two data frames with the same columns, or two arrays"
        kinds = (type(X_train).__name__, type(X_test).__name__)
        raise refusal("X_train and X_test", "of one kind", kinds, advice, TypeError)
    with name_argument("X_train"):
        layout = Layout.of(X_train, discrete=discrete)
        n_train = len(layout.encode(X_train))
    with name_argument("X_test"):
        n_test = len(layout.encode(X_test))
    targets = []
    for name, X, y, n_rows in (
        ("y_train", X_train, y_train, n_train),
        ("y_test", X_test, y_test, n_test),
    ):
        with name_argument(name):
            found = values(y)
        if found.dtype.kind == "O" and are_numbers(found):
            found = found.astype(np.float64)
        if len(found) != n_rows:
            raise refusal(
                name,
                f"of {n_rows} rows, as X{name[1:]} is",
                len(found),
                "Pass one target per row",
            )
        _check_order(name, X, y)
        targets.append(found)
    named = _target_name(target, y_train, layout.names)
    classes = check_members(discrete, layout.names, "discrete", "the columns of the data")
    return Inputs(X_train, targets[0], X_test, targets[1], layout, named, classes)


def _check_order(name: str, X: Any, y: Any) -> None:  # noqa: ANN401
    """Refuse targets in another order than their rows, as far as pandas' labels show it."""
    if not (isinstance(X, pd.DataFrame) and isinstance(y, (pd.Series, pd.DataFrame))):
        return
    if X.index.equals(y.index) or not (X.index.is_unique and y.index.is_unique):
        return
    if X.index.sort_values().equals(y.index.sort_values()):
        rows = f"X{name[1:]}"
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
            advice = Text(
                ["Drop that column from the features, or name the target with ", Setting("target")]
            )
            raise refusal("the target", "named unlike the features", named, advice)
        return named
    free = _TARGET
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
