"""Losses by name, and functions as losses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from dsage._check import Setting, Text, check_member, refusal, shown
from dsage.models.losses.base import Array, Curve, Floats, Loss, Output
from dsage.models.losses.names import understand
from dsage.models.losses.registry import LOSSES
from dsage.models.losses.weighted import weigh_classes

_BALANCED = "(balanced)"


@dataclass(frozen=True)
class _FunctionLoss(Loss):
    """A user-defined loss: it sees one prediction at a time, and its result is checked."""

    def __call__(self, y: Array, prediction: Floats) -> Floats:
        losses = np.asarray(self.kernel(y, prediction))
        name = f"the result of the loss {self.name!r}"
        if losses.shape != (len(y),) or losses.dtype.kind not in "fiub":
            condition = f"one number per row, of shape ({len(y)},)"
            found = losses.shape if losses.dtype.kind in "fiub" else losses.dtype
            raise refusal(name, condition, found, "Do not average over rows")
        if not np.isfinite(losses).all():
            odd = f"{int((~np.isfinite(losses)).sum())} rows that are not"
            raise refusal(name, "finite", odd, "Clip the arguments of logarithms and divisions")
        return losses.astype(np.float64, copy=False)

    @property
    def sums_outputs(self) -> bool:
        return False

    def many(self, y: Array, prediction: Floats) -> Floats:
        return np.stack([self(y, one) for one in prediction])


def as_loss(
    loss: str | Callable[..., Any] | Loss,
    *,
    quantile: float | None = None,
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
    output: Output | None = None,
    curve: Curve | None = None,
) -> Loss:
    """Return a loss by its name, or a function as a loss.

    Parameters
    ----------
    loss : str, callable or Loss
        A name:

        - ``"squared_error"``, ``"absolute_error"``: of numbers.
        - ``"pinball"``, with its `quantile`, or ``"pinball(0.9)"``: of numbers.
        - ``"huber(1.35)"``: of numbers; half the square of a difference up to 1.35, linear beyond.
        - ``"poisson"``, ``"gamma"``, ``"tweedie(1.5)"``: deviances of counts and of positive
          numbers, from positive predictions.
        - ``"squared_log_error"``: of numbers above -1, from the logarithm of 1 + number.
        - ``"cross_entropy"``: minus the log of the probability of the class; probabilities below
          2.2e-16 (:data:`EPSILON`) are replaced by that.
        - ``"brier"``: the squared distance of probabilities and class, summed over the classes,
          and halved if there are two classes: then it is ``(p - y) ** 2`` for the second class.
        - ``"linear"``: 1 minus the probability of the class. It is the share of wrong classes of a
          model that draws its class from its probabilities, and needs far fewer draws than
          ``"zero_one"``.
        - ``"zero_one"``: 1 if the most probable class (the first of equals) is wrong. A model
          without probabilities votes, 1 for its class and 0 for the others: the mean over draws is
          the share of votes, and the class with most votes is predicted.
        - ``"hinge"``: of classes, from the scores of `decision_function`.

        Names of scikit-learn's metrics and scorers, and of objectives of XGBoost, such as
        ``"mse"``, ``"neg_log_loss"`` and ``"reg:gamma"``, are accepted, too. A metric that is not a
        mean over rows, such as ``"roc_auc"``, is refused, and the error says what to choose
        instead. For survival times see :func:`dsage.models.ipcw_brier` and
        :func:`dsage.models.cox_likelihood`.

        Or a function ``(y, prediction) -> losses of the rows``.
    quantile : float, optional
        For ``"pinball"``, in (0, 1).
    class_weight : mapping of classes to float, or "balanced", optional
        For ``"cross_entropy"``: factors for the losses of the rows of each class; 1 for classes
        that are not named. ``"balanced"``, or the name ``"cross_entropy(balanced)"``, gives all
        classes the same total weight: n / (k n_c) for k classes, counted in the training rows.
    output : {"value", "probability", "score", "any"}, optional
        For a function: the predictions that it expects. With ``"probability"`` it receives the
        classes as codes, and the probabilities in the model's shape. With ``"any"``, the default,
        it receives `y` unchanged.
    curve : {"linear", "quadratic", "smooth", "kinked", "jump"}, optional
        For a function: its shape as a function of the prediction, see :class:`Loss`. The default,
        ``"kinked"``, is safe unless the loss jumps: standard errors then include the bias that few
        draws may leave. A ``"smooth"`` loss needs fewer draws.

    Examples
    --------
    >>> as_loss("squared_error")(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    array([0., 4.])
    >>> def cubed(y, prediction):
    ...     return abs(y - prediction) ** 3
    >>> as_loss(cubed).name
    'cubed'
    >>> as_loss("neg_mean_absolute_error").name
    'absolute_error'
    >>> as_loss("squared_eror")
    Traceback (most recent call last):
    ValueError: loss must be one of the losses; got 'squared_eror'. Did you mean 'squared_error'?
    """
    if quantile is not None and loss != "pinball":
        raise refusal("quantile", "given for 'pinball' only", quantile, "Leave it out", TypeError)
    for name, given in (("output", output), ("curve", curve)):
        if given is not None and isinstance(loss, (str, Loss)):
            raise refusal(name, "given for a function only", given, "Leave it out", TypeError)
    if isinstance(loss, str) and loss.endswith(_BALANCED) and class_weight is None:
        loss, class_weight = loss.removesuffix(_BALANCED), "balanced"
    if isinstance(loss, (str, Loss)):
        found = loss if isinstance(loss, Loss) else _find_loss(loss, quantile)
        return found if class_weight is None else weigh_classes(found, class_weight)
    if class_weight is not None:
        advice = "Weigh the losses in the function itself"
        raise refusal("class_weight", "given for 'cross_entropy' only", loss, advice, TypeError)
    if not callable(loss) or isinstance(loss, type):
        advice = f"The names are {shown(LOSSES.names())}; a function maps (y, prediction) to losses"
        raise refusal("loss", "a name or a function", loss, advice, TypeError)
    kind = "any" if output is None else output
    check_member(kind, get_args(Output), "output", "the kinds")
    bends = "kinked" if curve is None else curve
    check_member(bends, get_args(Curve), "curve", "the kinds of curves")
    own = getattr(loss, "__name__", type(loss).__name__)
    return _FunctionLoss(own, kind, loss, accepts_soft=True, curve=bends)


def _find_loss(name: str, parameter: float | None) -> Loss:
    parsed = re.fullmatch(r"([\w:]+)\(([0-9.eE+-]+)\)", name)
    if parsed and parameter is None:
        name, parameter = parsed[1], float(parsed[2])
    known = understand(name)
    found = LOSSES[known]
    if isinstance(found, Loss):
        if parameter is not None:
            raise refusal("loss", "one without a parameter", name, f"Choose {known!r}")
        return found
    if parameter is None:
        traits = LOSSES.traits(known)
        example = Setting("loss", f"{known}({traits['example']:g})")
        advice = Text(["Pass a number, such as ", example])
        raise refusal(traits["parameter"], f"given for {known!r}", None, advice, TypeError)
    return found(parameter)
