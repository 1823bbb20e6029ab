"""Models as the package sees them: predictions of frames and arrays, and the losses of these."""

from dsage.models.losses import LOSSES, Loss, as_loss, choose_loss, pinball
from dsage.models.model import Model, as_model

__all__ = ["LOSSES", "Loss", "Model", "as_loss", "as_model", "choose_loss", "pinball"]
