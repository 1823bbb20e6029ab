"""Losses of single rows; each file adds its own to the registry."""

from dsage.models.losses.base import Loss
from dsage.models.losses.choose import LossReason, choose_loss, decide_loss, gives_classes
from dsage.models.losses.find import as_loss
from dsage.models.losses.numeric import huber, pinball
from dsage.models.losses.positive import tweedie
from dsage.models.losses.probabilistic import EPSILON
from dsage.models.losses.registry import LOSSES, register
from dsage.models.losses.survival import cox_likelihood, ipcw_brier

__all__ = [
    "EPSILON",
    "LOSSES",
    "Loss",
    "LossReason",
    "as_loss",
    "choose_loss",
    "cox_likelihood",
    "decide_loss",
    "gives_classes",
    "huber",
    "ipcw_brier",
    "pinball",
    "register",
    "tweedie",
]
