"""Models as functions from rows to checked predictions, and losses."""

from dsage.models.losses import (
    LOSSES,
    Loss,
    LossReason,
    as_loss,
    choose_loss,
    cox_likelihood,
    huber,
    ipcw_brier,
    pinball,
    tweedie,
)
from dsage.models.model import Model, as_model
from dsage.models.resolve import LossSource, ModelInfo

__all__ = [
    "LOSSES",
    "Loss",
    "LossReason",
    "LossSource",
    "Model",
    "ModelInfo",
    "as_loss",
    "as_model",
    "choose_loss",
    "cox_likelihood",
    "huber",
    "ipcw_brier",
    "pinball",
    "tweedie",
]
