"""Losses of single rows: what a model is judged by; each file adds its own to the registry."""

from dsage.models.losses.base import LOSSES, Loss, register
from dsage.models.losses.choose import LossReason, choose_loss, decide_loss, gives_classes
from dsage.models.losses.find import as_loss
from dsage.models.losses.numeric import pinball
from dsage.models.losses.probabilistic import EPSILON

__all__ = [
    "EPSILON",
    "LOSSES",
    "Loss",
    "LossReason",
    "as_loss",
    "choose_loss",
    "decide_loss",
    "gives_classes",
    "pinball",
    "register",
]
