"""Losses of survival times, some of which are censored.

The target has two columns: the time, and whether the event was observed then (1) or the row was
censored (0). Both losses are computed row by row. Quantities that depend on other rows (the
censoring distribution, the baseline hazard) are estimated once, from training rows, so that risks
of coalitions are means over rows, as for every loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import check_real, check_shape, refusal
from dsage.data.targets import numbers, values
from dsage.models.losses.base import Array, Floats, Loss

__all__ = ["SurvivalLoss", "cox_likelihood", "ipcw_brier"]

_COLUMNS = "Pass two columns, the time and whether the event was observed then (1) or not (0)"


@dataclass(frozen=True)
class Steps:
    """A step function of time: `start` before the first time, then a height from each time on."""

    times: tuple[float, ...]
    heights: tuple[float, ...]
    start: float

    def __call__(self, at: Floats, *, before: bool = False) -> Floats:
        """Return the heights at times; with `before`, the heights just before them."""
        position = np.searchsorted(np.array(self.times), at, side="left" if before else "right")
        found: Floats = np.array((self.start, *self.heights))[position]
        return found


Prepare = Callable[[Floats, npt.NDArray[np.bool_]], Array]
"""Maps times (n_rows,) and events (n_rows,) to what a kernel takes, (n_rows, 2)."""


def _as_columns(time: Floats, event: npt.NDArray[np.bool_]) -> Array:
    return np.stack([time, event.astype(np.float64)], axis=1)


@dataclass(frozen=True)
class SurvivalLoss(Loss):
    """A loss of times and events, which `prepare` turns into what the kernel takes."""

    prepare: Prepare = _as_columns
    is_probability: bool = False

    @property
    def sums_outputs(self) -> bool:
        """False: the two columns of the target are one outcome."""
        return False

    def target(
        self,
        y: Any,  # noqa: ANN401
        classes: Sequence[Any] | Array | None = None,  # noqa: ARG002
        n_classes: int | None = None,  # noqa: ARG002
    ) -> Array:
        """Return what the kernel takes, (n_rows, 2), from times and events (n_rows, 2)."""
        prepared: Array = self.prepare(*_check_times(y, self.name))
        return prepared

    def target_for(
        self,
        prediction: Floats,
        y: Any = None,  # noqa: ANN401
        classes: Sequence[Any] | Array | None = None,
    ) -> Array:
        """Return the target; there must be one."""
        if y is None:
            raise refusal("y", f"given for {self.name}", None, _COLUMNS, TypeError)
        return super().target_for(prediction, y, classes)

    def check(
        self,
        prediction: npt.ArrayLike,
        classes: Sequence[Any] | Array | None = None,
        n_outputs: int | None = None,
    ) -> Floats:
        """Return predictions, one a row; probabilities where the loss takes them."""
        found = super().check(prediction, classes, n_outputs)
        if self.is_probability and found.size and not (found.min() >= 0 and found.max() <= 1):
            odd = float(found.min() if found.min() < 0 else found.max())
            advice = "Predict the probability that the event comes after the horizon"
            raise refusal("prediction", f"in [0, 1] for {self.name}", odd, advice)
        return found


def _check_times(y: Any, name: str) -> tuple[Floats, npt.NDArray[np.bool_]]:  # noqa: ANN401
    """Return times and events from a target of two columns."""
    array = values(y)
    check_shape(array, ("n_rows", 2), "y", f"{_COLUMNS}, for {name}")
    both = numbers(array, name)
    if not np.isin(both[:, 1], (0, 1)).all():
        odd = float(both[~np.isin(both[:, 1], (0, 1)), 1][0])
        raise refusal("the events, the second column of y,", "0 or 1", odd, _COLUMNS)
    return both[:, 0], both[:, 1] == 1


def _ipcw_kernel(y: Array, prediction: Floats) -> Floats:
    difference: Floats = prediction - y[:, 0]
    return y[:, 1] * difference * difference


@dataclass(frozen=True)
class _Weigh:
    """Whether the event comes after the horizon, and the weight of the row."""

    horizon: float
    uncensored: Steps

    def __call__(self, time: Floats, event: npt.NDArray[np.bool_]) -> Array:
        is_after = time > self.horizon
        is_known = is_after | event
        at = np.where(is_after, self.uncensored(np.full(len(time), self.horizon)), 1.0)
        at = np.where(is_after, at, self.uncensored(time, before=True))
        # Rows that were censored before the horizon have weight zero.
        weights = np.divide(1.0, at, out=np.zeros(len(time)), where=is_known & (at > 0))
        return np.stack([is_after.astype(np.float64), weights], axis=1)


def ipcw_brier(horizon: float, y_train: Any) -> Loss:  # noqa: ANN401
    """Return the Brier score of survival beyond a horizon, with weights that account for censoring.

    With S the predicted probability that the event comes after the horizon h, a row of time t has
    the loss ``(1 - S) ** 2 / G(h)`` if t > h, and ``S ** 2 / G(t-)`` if its event came by then. G
    is the probability of not being censored until then (Graf et al., 1999). Rows that were censored
    before the horizon have weight zero; the weights of the other rows make up for them.

    Parameters
    ----------
    horizon : float
        The time h.
    y_train : array or data frame of shape (n_rows, 2)
        Times and events (1 observed, 0 censored) from which the Kaplan-Meier estimate of G is made.

    Returns
    -------
    Loss
        For a model that returns S, (n_rows,), and targets of shape (n_rows, 2) as `y_train`.

    Examples
    --------
    >>> y = np.array([[1.0, 1], [2.0, 0], [3.0, 1], [4.0, 1]])
    >>> loss = ipcw_brier(2.5, y)
    >>> loss(loss.target(y), np.full(4, 0.5)).round(3)
    array([0.25 , 0.   , 0.375, 0.375])
    """
    high = np.finfo(np.float64).max
    checked = check_real(horizon, "horizon", low=-high, high=high)
    name = f"ipcw_brier({checked:g})"
    time, event = _check_times(y_train, name)
    uncensored = _kaplan_meier(time, event)
    if uncensored(np.array([checked]))[0] <= 0:
        condition = "a time beyond which some rows are observed"
        raise refusal("horizon", condition, checked, f"The last time is {time.max():g}")
    return SurvivalLoss(
        name,
        "value",
        _ipcw_kernel,
        curve="quadratic",
        prepare=_Weigh(checked, uncensored),
        is_probability=True,
    )


def _kaplan_meier(time: Floats, event: npt.NDArray[np.bool_]) -> Steps:
    """Return the probability of not being censored until a time; events come before censoring."""
    times = np.unique(time[~event])
    at_risk = np.array([(time > at).sum() + ((time == at) & ~event).sum() for at in times])
    censored = np.array([((time == at) & ~event).sum() for at in times])
    left = np.cumprod(1 - censored / np.maximum(at_risk, 1))
    return Steps(tuple(times.tolist()), tuple(left.tolist()), 1.0)


def _cox_kernel(y: Array, prediction: Floats) -> Floats:
    losses: Floats = y[:, 0] * np.exp(prediction) - y[:, 1] * prediction
    return losses


def _bend_cox(y: Array, prediction: Floats) -> tuple[Floats, Floats]:
    expected: Floats = y[:, 0] * np.exp(prediction)
    return expected - y[:, 1], expected


@dataclass(frozen=True)
class _Expose:
    """The baseline hazard that a row was exposed to, and whether its event was observed."""

    hazard: Steps

    def __call__(self, time: Floats, event: npt.NDArray[np.bool_]) -> Array:
        return np.stack([self.hazard(time), event.astype(np.float64)], axis=1)


def cox_likelihood(y_train: Any, log_risk: npt.ArrayLike) -> Loss:  # noqa: ANN401
    """Return minus the log-likelihood of proportional hazards with a fixed baseline.

    The loss of a row with time t, event d and predicted log-risk f is ``H(t) exp(f) - d f``, with H
    the cumulative baseline hazard of Breslow, estimated once from training rows and the model's
    predictions for them. It is minus the log-likelihood, up to terms that do not depend on
    predictions.

    Cox's *partial* likelihood is not a mean over rows: the loss of a row depends on the predictions
    of all rows that are at risk then. With a fixed baseline, each row has its own loss.

    Parameters
    ----------
    y_train : array or data frame of shape (n_rows, 2)
        Times and events (1 observed, 0 censored).
    log_risk : array of shape (n_rows,)
        The model's predictions for these rows.

    Returns
    -------
    Loss
        For a model that returns log-risks, and targets of shape (n_rows, 2) as `y_train`.

    Examples
    --------
    >>> y = np.array([[1.0, 1], [2.0, 0], [3.0, 1]])
    >>> loss = cox_likelihood(y, np.zeros(3))
    >>> loss(loss.target(y), np.zeros(3)).round(3)
    array([0.333, 0.333, 1.333])
    """
    name = "cox_likelihood"
    time, event = _check_times(y_train, name)
    risks = np.asarray(log_risk, dtype=np.float64)
    check_shape(risks, (len(time),), "log_risk", "Pass one prediction per row of y_train")
    if not event.any():
        raise refusal("y_train", "of some observed events", "none", "A baseline needs events")
    times, deaths = np.unique(time[event], return_counts=True)
    at_risk = np.array([np.exp(risks[time >= at]).sum() for at in times])
    hazard = Steps(tuple(times.tolist()), tuple(np.cumsum(deaths / at_risk).tolist()), 0.0)
    return SurvivalLoss(
        name, "value", _cox_kernel, curve="smooth", derivatives=_bend_cox, prepare=_Expose(hazard)
    )
