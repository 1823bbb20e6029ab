"""Losses of single rows: what a model is judged by.

A loss says what it needs of the model (`output`), turns the user's target into what it computes
with (:meth:`Loss.target`), refuses predictions that cannot be meant (:meth:`Loss.check`), and then
maps rows to losses. Predictions that reach it are means over draws, so a class is never averaged:
losses of classes take probabilities.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier, is_regressor

from dsage._check import Setting, Text, check_member, check_real, refusal
from dsage.data.columns import shown
from dsage.data.targets import are_numbers, check_prediction, codes, numbers, probabilities, values
from dsage.models.boosters import as_booster
from dsage.models.torch_module import ends_in
from dsage.models.torch_tools import is_module

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Kernel = Callable[[Array, Floats], Floats]
Output = Literal["value", "probability", "any"]

EPSILON = float(np.finfo(np.float64).eps)
"""Probabilities below this, 2.2e-16, count as this in the cross entropy: no loss exceeds 36.04."""


@dataclass(frozen=True)
class Loss:
    """A loss of single rows; :func:`as_loss` makes one.

    Attributes
    ----------
    name : str
        Its name, such as ``"squared_error"`` or ``"pinball(0.9)"``, or that of the function.
    output : {"value", "probability", "any"}
        What the model has to give: numbers (n_rows,); probabilities (n_rows, n_classes), where
        (n_rows,) is the probability of the second of two classes; or whatever the function takes.
    accepts_votes : bool
        Whether a model that gives classes will do: each draw then votes for one class.
    accepts_soft : bool
        Whether the target may be probabilities (n_rows, n_classes).

    Examples
    --------
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

    def __call__(self, y: Array, prediction: Floats) -> Floats:
        """Return the loss of each row.

        Parameters
        ----------
        y : array of shape (n_rows,) or (n_rows, n_classes)
            What :meth:`target` made.
        prediction : array of shape (n_rows,) or (n_rows, n_classes)
            Predictions, or means of predictions over draws.

        Returns
        -------
        array of shape (n_rows,)
        """
        if len(prediction) != len(y):
            raise _unequal("prediction", len(prediction), "y", len(y))
        if self.output == "probability" and prediction.ndim == 1:
            prediction = _both_classes(prediction)
        return self.kernel(y, prediction)

    def many(self, y: Array, prediction: Floats) -> Floats:
        """Return the loss of each row for several predictions of the same rows.

        Parameters
        ----------
        y : array of shape (n_rows,) or (n_rows, n_classes)
            What :meth:`target` made.
        prediction : array of shape (n_predictions, n_rows) or (n_predictions, n_rows, n_classes)
            The first axis is free: coalitions, draws, ...

        Returns
        -------
        array of shape (n_predictions, n_rows)
        """
        if prediction.ndim < 2 or prediction.shape[1] != len(y):
            raise refusal(
                "prediction",
                f"of shape (n_predictions, {len(y)}) or (n_predictions, {len(y)}, n_classes)",
                prediction.shape,
                "Put what varies first and the rows second",
            )
        if self.output == "probability" and prediction.ndim == 2:
            prediction = _both_classes(prediction)
        return self.kernel(y, prediction)

    def target(
        self,
        y: Any,  # noqa: ANN401
        classes: Sequence[Any] | Array | None = None,
        n_classes: int | None = None,
    ) -> Array:
        """Return the user's target as what the loss computes with.

        Numbers become floats, class labels become their positions in `classes`. A matrix
        (n_rows, n_classes) of probabilities is a soft target of cross entropy and Brier loss. A
        function given as a loss receives labels as they are, unless it asked for probabilities.

        Parameters
        ----------
        y : array, list, series or data frame of n_rows
            The target.
        classes : sequence, optional
            The classes in the order of the model's columns; the sorted labels of `y` by default.
        n_classes : int, optional
            Number of the model's columns, to be compared with where `classes` is not known.
        """
        array = values(y)
        if self.output == "any":
            return array
        if self.output == "value":
            if array.ndim != 1:
                raise refusal(
                    "y",
                    f"of shape (n_rows,) for {self.name}",
                    array.shape,
                    "Explain one output at a time, with its column of y",
                )
            return numbers(array, self.name)
        if array.ndim == 1:
            return codes(array, classes, n_classes)
        if not self.accepts_soft:
            raise refusal(
                "y",
                f"class labels, of shape (n_rows,), for {self.name}",
                array.shape,
                "Give labels; only cross_entropy and brier take probabilities as a target",
            )
        n_columns = n_classes if classes is None else len(classes)
        return probabilities(numbers(array, self.name), n_columns)

    def check(
        self, prediction: npt.ArrayLike, classes: Sequence[Any] | Array | None = None
    ) -> Floats:
        """Return a model's output as floats, or say why this loss cannot use it.

        Parameters
        ----------
        prediction : array of shape (n_rows,) or (n_rows, n_classes)
            The model's output for some rows.
        classes : sequence, optional
            The classes, one a column.
        """
        return check_prediction(prediction, self.name, self.output, classes)

    def target_for(
        self,
        prediction: Floats,
        y: Any = None,  # noqa: ANN401
        classes: Sequence[Any] | Array | None = None,
    ) -> Array:
        """Return the target that goes with a model's output, once both are checked.

        Without `y` the model's own output is the target: what is explained then is how the model
        comes to its predictions, not how good they are (Shapley effects, for squared error).
        """
        prediction = self.check(prediction, classes)
        if y is None:
            if self.output != "probability":
                return prediction
            matrix = prediction if prediction.ndim == 2 else _both_classes(prediction)
            return matrix if self.accepts_soft else matrix.argmax(axis=1)
        n_classes = None
        if self.output == "probability":
            n_classes = prediction.shape[1] if prediction.ndim == 2 else 2
        target = self.target(y, classes, n_classes)
        if len(target) != len(prediction):
            raise _unequal("y", len(target), "X", len(prediction))
        return target


@dataclass(frozen=True)
class _FunctionLoss(Loss):
    """A loss that the user wrote: its result is checked, and it sees one prediction at a time."""

    def __call__(self, y: Array, prediction: Floats) -> Floats:
        losses = np.asarray(self.kernel(y, prediction))
        if losses.shape != (len(y),) or losses.dtype.kind not in "fiub":
            raise refusal(
                f"the result of the loss {self.name!r}",
                f"one number a row, of shape ({len(y)},)",
                losses.shape if losses.dtype.kind in "fiub" else losses.dtype,
                "Do not average over rows",
            )
        if not np.isfinite(losses).all():
            raise refusal(
                f"the result of the loss {self.name!r}",
                "finite",
                f"{int((~np.isfinite(losses)).sum())} rows that are not",
                "Clip what it takes logarithms of, or divides by",
            )
        return losses.astype(np.float64, copy=False)

    def many(self, y: Array, prediction: Floats) -> Floats:
        return np.stack([self(y, one) for one in prediction])


def _unequal(one: str, n_one: int, other: str, n_other: int) -> Exception:
    advice = "Give as many rows of both, in the same order"
    return refusal(one, f"of {n_other} rows, as {other} is", n_one, advice)


def _both_classes(second: Floats) -> Floats:
    return np.stack((1.0 - second, second), axis=-1)


def _squared_error(y: Array, prediction: Floats) -> Floats:
    difference: Floats = prediction - y
    return difference * difference


def _absolute_error(y: Array, prediction: Floats) -> Floats:
    distances: Floats = np.abs(prediction - y)
    return distances


@dataclass(frozen=True)
class _Pinball:
    quantile: float

    def __call__(self, y: Array, prediction: Floats) -> Floats:
        difference = y - prediction
        losses: Floats = np.maximum(self.quantile * difference, (self.quantile - 1) * difference)
        return losses


def _cross_entropy(y: Array, prediction: Floats) -> Floats:
    if y.ndim == 1:
        chosen: Floats = np.clip(prediction[..., np.arange(len(y)), y], EPSILON, 1.0)
        return -np.log(chosen)
    entropies: Floats = -(y * np.log(np.clip(prediction, EPSILON, 1.0))).sum(axis=-1)
    return entropies


def _zero_one(y: Array, prediction: Floats) -> Floats:
    wrong: npt.NDArray[np.bool_] = prediction.argmax(axis=-1) != y
    return wrong.astype(np.float64)


def _brier(y: Array, prediction: Floats) -> Floats:
    n_classes = prediction.shape[-1]
    certain = y if y.ndim == 2 else y[:, None] == np.arange(n_classes)
    difference = prediction - certain
    sums: Floats = np.einsum("...k,...k->...", difference, difference)
    return sums / 2 if n_classes == 2 else sums


_NAMED = {
    "squared_error": Loss("squared_error", "value", _squared_error),
    "absolute_error": Loss("absolute_error", "value", _absolute_error),
    "cross_entropy": Loss("cross_entropy", "probability", _cross_entropy, accepts_soft=True),
    "zero_one": Loss("zero_one", "probability", _zero_one, accepts_votes=True),
    "brier": Loss("brier", "probability", _brier, accepts_soft=True),
}

LOSSES = (*_NAMED, "pinball")
"""The names that :func:`as_loss` knows."""

# What the same losses are called elsewhere.
_SYNONYMS = {
    "squared_error": ("mse", "mean_squared_error", "l2"),
    "absolute_error": ("mae", "mean_absolute_error", "l1"),
    "cross_entropy": ("log_loss", "logloss", "nll"),
    "zero_one": ("accuracy", "error_rate", "misclassification"),
    "pinball": ("quantile",),
}


def pinball(quantile: float) -> Loss:
    """Return the pinball loss, whose best prediction is a quantile.

    Examples
    --------
    >>> pinball(0.9)(np.array([1.0, 1.0]), np.array([0.0, 2.0]))
    array([0.9, 0.1])
    """
    checked = check_real(quantile, "quantile", above=0.0, high=np.nextafter(1.0, 0.0))
    return Loss(f"pinball({checked:g})", "value", _Pinball(checked))


def as_loss(
    loss: str | Callable[..., Any] | Loss,
    *,
    quantile: float | None = None,
    output: Output | None = None,
) -> Loss:
    """Return a loss by its name, or make one of a function.

    Parameters
    ----------
    loss : str, callable or Loss
        A name:

        - ``"squared_error"``, ``"absolute_error"``: of numbers.
        - ``"pinball"``, with its `quantile`, or ``"pinball(0.9)"``: of numbers.
        - ``"cross_entropy"``: minus the log of the probability of the class, where probabilities
          below 2.2e-16 (:data:`EPSILON`) count as that.
        - ``"brier"``: the squared distance of probabilities and class, summed over the classes,
          and halved where there are two: then it is ``(p - y) ** 2`` for the second class.
        - ``"zero_one"``: 1 where the most probable class (the first of equals) is the wrong one.
          A model without probabilities gives its votes, 1 for its class and 0 for the others: the
          mean over draws is the share of votes, and the class with most votes is predicted.

        Or a function ``(y, prediction) -> losses of the rows``.
    quantile : float, optional
        For ``"pinball"``, in (0, 1).
    output : {"value", "probability", "any"}, optional
        For a function: what it takes. With ``"probability"`` it receives the classes as codes,
        and the probabilities in the shape that the model gives. The default is ``"any"``: it
        receives `y` as it is.

    Examples
    --------
    >>> as_loss("squared_error")(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    array([0., 4.])
    >>> def cubed(y, prediction):
    ...     return abs(y - prediction) ** 3
    >>> as_loss(cubed).name
    'cubed'
    >>> as_loss("mse")
    Traceback (most recent call last):
    ValueError: loss must be one of the losses; got 'mse'. Did you mean 'squared_error'?
    """
    is_name = isinstance(loss, str)
    if quantile is not None and loss != "pinball":
        raise refusal("quantile", "given for 'pinball' only", quantile, "Leave it out", TypeError)
    if output is not None and (is_name or isinstance(loss, Loss)):
        raise refusal("output", "given for a function only", output, "Leave it out", TypeError)
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        return _by_name(loss, quantile)
    if not callable(loss) or isinstance(loss, type):
        raise refusal(
            "loss",
            "a name or a function",
            loss,
            f"The names are {shown(LOSSES)}; a function maps (y, prediction) to losses",
            TypeError,
        )
    kind = check_member(
        "any" if output is None else output, ("value", "probability", "any"), "output", "the kinds"
    )
    name = getattr(loss, "__name__", type(loss).__name__)
    return _FunctionLoss(name, kind, loss, accepts_soft=True)  # type: ignore[arg-type]


def _by_name(name: str, quantile: float | None) -> Loss:
    if found := re.fullmatch(r"pinball\(([0-9.eE+-]+)\)", name):
        return pinball(float(found[1]))
    if name == "pinball":
        if quantile is None:
            raise refusal(
                "quantile", "given for 'pinball'", None, "Give one, such as quantile=0.9", TypeError
            )
        return pinball(quantile)
    for meant, synonyms in _SYNONYMS.items():
        if name in synonyms:
            advice = f"Did you mean {meant!r}?"
            raise refusal("loss", "one of the losses", name, advice)
    return _NAMED[check_member(name, LOSSES, "loss", "the losses")]


def gives_classes(model: object) -> bool:
    """Tell whether a model is a classifier: scikit-learn says so, or it has `predict_proba`.

    A native booster is one if its objective is. A module of PyTorch is none, whatever methods it
    has: it is called like a function.
    """
    if is_module(model):
        return False
    model = as_booster(model)
    kind = _kind(model)
    return kind == "classifier" if kind else hasattr(model, "predict_proba")


def _kind(model: object) -> str:
    """Return ``"classifier"`` or ``"regressor"`` where scikit-learn's tags say so, else nothing."""
    kind: str = getattr(model, "_estimator_type", None) or ""
    if hasattr(model, "__sklearn_tags__"):
        # A mixin alone, without the base whose tags it extends, has none.
        with contextlib.suppress(AttributeError):
            kind = "classifier" if is_classifier(model) else "regressor" * is_regressor(model)
    return kind


def choose_loss(model: object, y: Any = None) -> Loss:  # noqa: ANN401
    """Return the loss that suits a model: cross entropy for classes, squared error for numbers.

    Classes are given by a classifier, or by a function where the target is not made of numbers, and
    by a module of PyTorch whose last layer is ``Softmax``, or ``Sigmoid`` if the target has two
    values. A regressor gives numbers, whatever the target is.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> choose_loss(LinearRegression()).name, choose_loss(LogisticRegression()).name
    ('squared_error', 'cross_entropy')
    """
    model = as_booster(model)
    if gives_classes(model):
        if not hasattr(model, "predict_proba"):
            raise refusal(
                "model",
                "a classifier with predict_proba where no loss is given",
                type(model).__name__,
                Text(
                    [
                        "Wrap it in sklearn.calibration.CalibratedClassifierCV, or choose ",
                        Setting("loss", "zero_one"),
                    ]
                ),
                TypeError,
            )
        return _NAMED["cross_entropy"]
    if _kind(model) == "regressor":
        return _NAMED["squared_error"]
    last = ends_in(model)
    is_binary = last == "Sigmoid" and y is not None and len(set(values(y).ravel().tolist())) == 2
    if last == "Softmax" or is_binary:
        return _NAMED["cross_entropy"]
    if y is None or are_numbers(values(y)):
        return _NAMED["squared_error"]
    return _NAMED["cross_entropy"]
