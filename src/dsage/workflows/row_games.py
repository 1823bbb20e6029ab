"""The parts of an explanation of single rows: rows, outputs and their games."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
import pandas as pd

from dsage._check import refusal, shown
from dsage.data.frames import Frame, take_rows
from dsage.data.groups import Groups
from dsage.data.inputs import Inputs, check_inputs, name_argument
from dsage.data.layout import Layout
from dsage.data.targets import values as target_values
from dsage.games import Game, GameOptions, Grouped, LossGame, OutputGame
from dsage.models.model import Model
from dsage.models.resolve import ResolvedModel
from dsage.result.row_values import Label
from dsage.samplers.base import Sampler

# With fewer rows to explain, the first level is learned from this many training rows.
_N_BACKGROUND = 512
# More outputs are explained only if one of them is named.
_MOST_OUTPUTS = 20


def check_rows(
    X_train: Any,  # noqa: ANN401
    y_train: Any,  # noqa: ANN401
    rows: Any,  # noqa: ANN401
    y_rows: Any,  # noqa: ANN401
    *,
    is_loss: bool,
    **columns: Any,  # noqa: ANN401
) -> Inputs:
    """Return the checked rows and targets; errors name the argument and the column.

    If targets are neither given nor needed, targets of training rows are used as placeholders:
    only their kind matters.
    """
    if rows is None:
        advice = "Pass a data frame or an array with the columns of X_train"
        raise refusal("rows", "the rows to explain", None, advice, TypeError)
    if is_loss and y_rows is None:
        advice = "Pass the targets of the rows, or explain predictions"
        raise refusal("y_rows", "given for values='loss'", None, advice, TypeError)
    with name_argument("rows"):
        n_rows = Frame(rows).n_rows
    if n_rows == 0:
        raise refusal("rows", "at least one row", 0, "Pass some rows, such as X_test.iloc[:5]")
    if y_rows is None:
        with name_argument("y_train"):
            known = target_values(y_train)
        y_rows = np.resize(known, (n_rows, *known.shape[1:]))
    return check_inputs(X_train, y_train, rows, y_rows, named=("rows", "y_rows"), **columns)


def find_row_names(rows: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """Return the labels of rows, or their numbers, starting at 0."""
    if isinstance(rows, pd.DataFrame):
        return tuple(rows.index.tolist())
    return tuple(range(Frame(rows).n_rows))


def find_outputs(model: Model, output: Label | None, inputs: Inputs) -> tuple[Label | None, ...]:
    """Return the outputs to explain: the named one, the second of two classes, or all."""
    if model.classes is not None:
        labels = model.classes.tolist()
        if output is not None:
            if output not in labels:
                condition = f"one of the classes of {model.name}"
                raise refusal("output", condition, output, f"They are {shown(labels)}")
            return (labels[labels.index(output)],)
        return (labels[1],) if len(labels) == 2 else _all_outputs(model, labels)
    predicted = model.predict(inputs.first_rows())
    if output is not None or predicted.ndim == 1:
        # The game refuses an output that the model does not have.
        return (output,)
    return _all_outputs(model, list(range(predicted.shape[1])))


def _all_outputs(model: Model, labels: list[Label]) -> tuple[Label, ...]:
    if len(labels) > _MOST_OUTPUTS:
        condition = f"one of the {len(labels)} outputs of {model.name}"
        raise refusal("output", condition, None, f"Name one, such as output={labels[0]!r}")
    return tuple(labels)


class RowGames:
    """Makes the games of a run, which share model, sampler, rows and noise."""

    def __init__(
        self,
        resolved: ResolvedModel,
        sampler: Sampler,
        inputs: Inputs,
        options: GameOptions,
        groups: Groups | None,
    ) -> None:
        self._resolved, self._sampler = resolved, sampler
        self._inputs, self._options, self._groups = inputs, options, groups
        self._has_background = len(inputs.y_test) < _N_BACKGROUND

    @property
    def layout(self) -> Layout:
        """The columns of the rows."""
        return self._inputs.layout

    def without_background(self) -> Self:
        """Return games whose first level is learned from the rows to explain alone.

        A sampler that was fitted elsewhere may not know all categories of the training rows.
        """
        games = copy(self)
        games._has_background = False
        return games

    def n_draws(self, *, is_loss: bool) -> int:
        """Return the number of draws for each row and coalition."""
        default = self._resolved.loss.n_draws() if is_loss else OutputGame.n_draws_default
        return self._options.with_draws(default).n_draws or default

    def of_output(self, output: Label | None) -> Game:
        """Return the game of an output."""
        background = None
        if self._has_background:
            n_train = len(self._inputs.y_train)
            size = min(n_train, _N_BACKGROUND)
            some = np.linspace(0, n_train - 1, size).astype(np.intp)
            background = take_rows(self._inputs.X_train, some)
        game = OutputGame(
            self._resolved.model,
            self._sampler,
            self._inputs.X_test,
            output=output,
            background=background,
            **vars(self._options),
        )
        return self._group(game)

    def of_losses(self) -> Game:
        """Return the game of the losses."""
        inputs = self._inputs
        rows = inputs.X_test, inputs.y_test
        loss = self._resolved.loss
        game = LossGame(
            self._resolved.model, self._sampler, *rows, loss=loss, **vars(self._options)
        )
        return self._group(game)

    def _group(self, game: Game) -> Game:
        return game if self._groups is None else Grouped(game, self._groups.members)
