"""The base class of losses.

A loss declares which output of the model it needs (`output`), converts the user's target
(:meth:`Loss.target`), refuses unusable predictions (:meth:`Loss.check`), and maps rows to losses.
Predictions are means over draws, so losses of classes take probabilities: classes have no mean.

To add a loss, write a kernel in a new file of this package and decorate it with
:func:`~dsage.models.losses.registry.register`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dsage._check import check_shape, refusal
from dsage.data.targets import check_prediction, codes, numbers, probabilities, values
from dsage.models.losses.bounds import Bound

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Kernel = Callable[[Array, Floats], Floats]
"""Maps a target (n_rows,) and predictions (..., n_rows[, n_classes]) to losses (..., n_rows)."""

Output = Literal["value", "probability", "score", "any"]

Curve = Literal["linear", "quadratic", "smooth", "kinked", "jump"]
"""How a loss bends as a function of the prediction, see :class:`Loss`."""

Derivatives = Callable[[Array, Floats], tuple[Floats, Floats]]
"""Maps what a kernel takes to the first and second derivatives by each prediction.

The results have the shape of the predictions. Mixed derivatives by two classes must be zero.
"""

# Draws for each risk, unless the user sets them; and for a tolerance below 1 %, at which the bias
# of few draws would be noticeable. Measured: benchmarks/results/losses.md.
_N_DRAWS: dict[str, tuple[int, int]] = {
    "linear": (8, 8),
    "quadratic": (8, 8),
    "smooth": (16, 32),
    "kinked": (32, 32),
    "jump": (128, 128),
}
_SMALL_TOLERANCE = 0.01


@dataclass(frozen=True)
class Loss:
    """A loss of single rows; :func:`as_loss` returns one.

    Attributes
    ----------
    name : str
        Its name, such as ``"squared_error"`` or ``"pinball(0.9)"``, or that of the function.
    output : {"value", "probability", "score", "any"}
        What the model has to predict: numbers (n_rows,), or (n_rows, n_outputs) if the target has
        several columns, over which the loss is summed; probabilities (n_rows, n_classes), where
        (n_rows,) is the probability of the second of two classes; scores of the classes, as
        `decision_function` returns them, (n_rows, n_classes), where (n_rows,) is the score of the
        second of two classes; or whatever the function takes.
    kernel : callable
        Maps a checked target and predictions to losses, see :data:`Kernel`.
    accepts_votes : bool
        Whether a model may predict classes: each draw then votes for one class.
    accepts_soft : bool
        Whether the target may be probabilities (n_rows, n_classes).
    curve : {"linear", "quadratic", "smooth", "kinked", "jump"}
        Its shape as a function of the prediction. A prediction from few draws has a random error,
        which makes the loss biased. The shape determines the bias: none for a linear loss; one that
        the jackknife removes exactly (quadratic) or up to a small rest (smooth); and a larger rest
        if the slope (kinked) or the loss itself (jump) is not continuous. This rest becomes part of
        the standard errors.
    derivatives : callable or None
        The derivatives of a smooth loss, see :data:`Derivatives`: the bias is then estimated from
        the second one, which varies less than the jackknife.
    lowest : float or None
        For a loss that is infinite if the class has probability zero: smaller probabilities are
        replaced by this one. If a mean over few draws is smaller, it is computed again with more
        draws.
    target_bound, prediction_bound : Bound or None
        Lower bounds of targets and predictions, if the loss is not defined for all numbers.

    Examples
    --------
    >>> from dsage.models import as_loss
    >>> loss = as_loss("cross_entropy")
    >>> prediction = loss.check([[0.25, 0.75], [0.5, 0.5]], classes=["no", "yes"])
    >>> y = loss.target(["yes", "no"], classes=["no", "yes"])
    >>> y
    array([1, 0])
    >>> loss(y, prediction).round(3)
    array([0.288, 0.693])
    """

    name: str
    output: Output
    kernel: Kernel = field(repr=False)
    accepts_votes: bool = False
    accepts_soft: bool = False
    curve: Curve = "kinked"
    derivatives: Derivatives | None = field(default=None, repr=False)
    lowest: float | None = None
    target_bound: Bound | None = None
    prediction_bound: Bound | None = None

    @property
    def is_of_classes(self) -> bool:
        """Whether the target is classes, of which the model predicts probabilities or scores."""
        return self.output in ("probability", "score")

    def fitted_to(self, y: Array) -> Loss:  # noqa: ARG002
        """Return the loss with parameters from the training targets; here, the loss itself."""
        return self

    def n_draws(self, tolerance: float | None = None) -> int:
        """Return the number of draws for each risk that suits the loss.

        Parameters
        ----------
        tolerance : float, optional
            The standard error that is wanted, as a share of the range of the values.

        Examples
        --------
        >>> from dsage.models import as_loss
        >>> as_loss("cross_entropy").n_draws(), as_loss("cross_entropy").n_draws(0.005)
        (16, 32)
        """
        is_small = tolerance is not None and tolerance < _SMALL_TOLERANCE
        return _N_DRAWS[self.curve][is_small]

    def too_low(self, y: Array, prediction: Floats) -> npt.NDArray[np.bool_]:
        """Return where the probability of a class that the target has is below `lowest`.

        Parameters
        ----------
        y, prediction
            As for :meth:`many`.

        Returns
        -------
        bool array of shape (n_predictions, n_rows)
        """
        low = np.less(self.expand(prediction), self.lowest or 0.0)
        found: npt.NDArray[np.bool_] = (
            low[:, np.arange(len(y)), y] if y.ndim == 1 else np.any(low & (y > 0), axis=-1)
        )
        return found

    def expand(self, prediction: Floats) -> Floats:
        """Return predictions as :meth:`many` takes them with all classes, if they have classes."""
        return self._with_classes(prediction) if prediction.ndim == 2 else prediction

    def _with_classes(self, second: Floats) -> Floats:
        """Return predictions for both classes from those for the second; numbers unchanged."""
        if self.output == "probability":
            return _add_first_class(second)
        # Half of a score on either side: the difference of the classes is the score.
        return np.stack((-second / 2, second / 2), axis=-1) if self.output == "score" else second

    def bend(self, y: Array, prediction: Floats) -> tuple[Floats, Floats]:
        """Return the first and second derivatives of a smooth loss by each prediction.

        Parameters
        ----------
        y, prediction
            As for :meth:`many`.

        Returns
        -------
        first, second : arrays
            Of the shape of the predictions, with all classes.
        """
        if self.derivatives is None:
            condition = "one with derivatives"
            raise refusal("loss", condition, self.name, "Use the jackknife", TypeError)
        if not (self.sums_outputs and y.ndim == 2):
            return self.derivatives(y, self.expand(prediction))
        parts = [self.derivatives(y[:, at], prediction[..., at]) for at in range(y.shape[1])]
        first, second = (np.stack(each, axis=-1) for each in zip(*parts, strict=True))
        return first, second

    def __call__(self, y: Array, prediction: Floats) -> Floats:
        """Return the loss of each row.

        Parameters
        ----------
        y : array of shape (n_rows,) or (n_rows, n_classes)
            The target as :meth:`target` returns it.
        prediction : array of shape (n_rows,) or (n_rows, n_classes)
            Predictions, or means of predictions over draws.

        Returns
        -------
        array of shape (n_rows,)
        """
        if len(prediction) != len(y):
            raise _unequal_rows("prediction", len(prediction), "y", len(y))
        if prediction.ndim == 1:
            prediction = self._with_classes(prediction)
        return self._losses(y, prediction)

    def _losses(self, y: Array, prediction: Floats) -> Floats:
        """Return the losses (..., n_rows) of predictions with all classes or outputs."""
        if self.prediction_bound is not None:
            self.prediction_bound.check_prediction(prediction, self.name)
        if self.sums_outputs and y.ndim == 2:
            summed: Floats = self.by_output(y, prediction).sum(axis=-1)
            return summed
        return self.kernel(y, prediction)

    @property
    def is_unbounded(self) -> bool:
        """Whether the loss is defined for all numbers.

        Mean predictions may then be corrected for the noise of draws, which can move them out of
        the range of the model's own predictions.
        """
        return self.output == "value" and self.prediction_bound is None

    def by_output(self, y: Array, prediction: Floats) -> Floats:
        """Return the loss of each row and output; the loss of a row is the sum over its outputs.

        Parameters
        ----------
        y : array of shape (n_rows, n_outputs)
            A target of several columns.
        prediction : array of shape (..., n_rows, n_outputs)
            Predictions.

        Returns
        -------
        array of shape (..., n_rows, n_outputs)

        Examples
        --------
        >>> from dsage.models import as_loss
        >>> loss, y = as_loss("squared_error"), np.array([[0.0, 1.0]])
        >>> loss.by_output(y, np.array([[2.0, 4.0]])), loss(y, np.array([[2.0, 4.0]]))
        (array([[4., 9.]]), array([13.]))
        """
        losses = [self.kernel(y[:, at], prediction[..., at]) for at in range(y.shape[1])]
        return np.stack(losses, axis=-1)

    def many(self, y: Array, prediction: Floats) -> Floats:
        """Return the loss of each row for several predictions of the same rows.

        Parameters
        ----------
        y : array of shape (n_rows,) or (n_rows, n_classes)
            The target as :meth:`target` returns it.
        prediction : array of shape (n_predictions, n_rows) or (n_predictions, n_rows, n_columns)
            Predictions along the first axis: of coalitions, of draws, ...

        Returns
        -------
        array of shape (n_predictions, n_rows)
        """
        if prediction.ndim < 2 or prediction.shape[1] != len(y):
            shapes = f"(n_predictions, {len(y)}) or (n_predictions, {len(y)}, n_classes)"
            advice = "Put predictions along the first axis, rows along the second"
            raise refusal("prediction", f"of shape {shapes}", prediction.shape, advice)
        return self._losses(y, self.expand(prediction))

    @property
    def sums_outputs(self) -> bool:
        """Whether the target may have several columns, whose losses are summed."""
        return self.output == "value"

    def target(
        self,
        y: Any,  # noqa: ANN401
        classes: Sequence[Any] | Array | None = None,
        n_classes: int | None = None,
    ) -> Array:
        """Return the user's target in the form that the loss computes with.

        Numbers become floats, in one column or several, class labels their positions in `classes`.
        A loss that accepts soft targets also takes a matrix (n_rows, n_classes) of probabilities. A
        function passed as a loss receives labels unchanged, unless its output is
        ``"probability"``.

        Parameters
        ----------
        y : array, list, series or data frame of n_rows
            The target.
        classes : sequence, optional
            The classes in the order of the model's columns; the sorted labels of `y` by default.
        n_classes : int, optional
            Number of the model's columns, to compare with if `classes` is unknown.
        """
        array = values(y)
        if self.output == "any":
            return array
        if self.output == "value":
            if not self.sums_outputs:
                advice = f"{self.name} takes one target: explain one output at a time"
                check_shape(array, ("n_rows",), "y", advice)
            target = numbers(array, self.name)
            if self.target_bound is not None:
                self.target_bound.check_target(target, self.name)
            return target
        if array.ndim == 1:
            return codes(array, classes, n_classes)
        if not self.accepts_soft:
            condition = f"class labels, of shape (n_rows,), for {self.name}"
            raise refusal("y", condition, array.shape, "This loss takes no probabilities as y")
        n_columns = n_classes if classes is None else len(classes)
        return probabilities(numbers(array, self.name), n_columns)

    def check(
        self,
        prediction: npt.ArrayLike,
        classes: Sequence[Any] | Array | None = None,
        n_outputs: int | None = None,
    ) -> Floats:
        """Return a model's output as floats; refuse output that this loss cannot use.

        Parameters
        ----------
        prediction : array of shape (n_rows,) or (n_rows, n_classes)
            The model's output for some rows.
        classes : sequence, optional
            The classes, one per column.
        n_outputs : int, optional
            Number of columns of a target of numbers, if it has several.
        """
        if n_outputs is not None and self.output == "value":
            array = np.asarray(prediction)
            advice = "Predict one column for each column of y, or pass the column that it predicts"
            check_shape(array, ("n_rows", n_outputs), f"prediction for {self.name}", advice)
            flat = check_prediction(array.reshape(-1), self.name, self.output, classes)
            checked = flat.reshape(array.shape)
        else:
            checked = check_prediction(prediction, self.name, self.output, classes)
        if self.prediction_bound is not None:
            self.prediction_bound.check_prediction(checked, self.name)
        return checked

    def target_for(
        self,
        prediction: Floats,
        y: Any = None,  # noqa: ANN401
        classes: Sequence[Any] | Array | None = None,
    ) -> Array:
        """Check a model's output and the target, and return the target.

        Without `y` the model's own output is the target: the values then explain how the model
        comes to its predictions, not how good they are (Shapley effects, for squared error).
        """
        given = None if y is None else values(y)
        n_outputs = given.shape[1] if given is not None and given.ndim == 2 else None
        prediction = self.check(prediction, classes, n_outputs if self.sums_outputs else None)
        if given is None:
            if not self.is_of_classes:
                return prediction
            matrix = prediction if prediction.ndim == 2 else self._with_classes(prediction)
            return matrix if self.accepts_soft else matrix.argmax(axis=1)
        n_classes = None
        if self.is_of_classes:
            n_classes = prediction.shape[1] if prediction.ndim == 2 else 2
        target = self.target(given, classes, n_classes)
        if len(target) != len(prediction):
            raise _unequal_rows("y", len(target), "X", len(prediction))
        return target


def _unequal_rows(one: str, n_one: int, other: str, n_other: int) -> Exception:
    advice = "Pass the same rows for both, in the same order"
    return refusal(one, f"of {n_other} rows, as {other} is", n_one, advice)


def _add_first_class(second: Floats) -> Floats:
    """Return the probabilities of both classes from those of the second."""
    return np.stack((1.0 - second, second), axis=-1)
