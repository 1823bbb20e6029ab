"""Mean predictions of a PyTorch module for Gaussian draws, computed on the module's device."""

from __future__ import annotations

from typing import Any

import numpy as np

from dsage._check import refusal
from dsage.data.layout import Layout
from dsage.games.base import Floats
from dsage.games.predictor import Predictor
from dsage.models.affine import column_precision
from dsage.models.torch_module import TorchPredictor
from dsage.models.torch_tools import module_place, require_torch
from dsage.samplers.base import Sampler
from dsage.samplers.device import DeviceRows


class DeviceMeans:
    """The mean predictions of a module over replicates of draws, computed on its device.

    Draws and predictions stay on the device; only the means come back, ``n_draws * n_features``
    times fewer numbers. The draws of a replicate are adjacent.
    """

    def __init__(self, model: Predictor, sampler: Sampler, n_replicates: int) -> None:
        if model.predictor is None:
            advice = "Pass other models to a game, which calls them"
            raise refusal("model", "a PyTorch module on a device", model.name, advice, TypeError)
        self._model, self._predictor = model, model.predictor
        self._sampler, self._n_replicates = sampler, n_replicates

    def load(self, X: Any, scores: Floats) -> DeviceRows:  # noqa: ANN401
        """Send rows and their normal scores to the device; see :meth:`DeviceGaussian.load`."""
        # Looked up each time: modules can be moved.
        return self._sampler.on_device(*module_place(self._predictor.module)).load(X, scores)

    def of(self, draws: Any) -> Floats:  # noqa: ANN401
        """Return the means (n_coalitions, n_rows, n_replicates, ...) of draws on the device.

        The draws are a tensor (n_coalitions, n_rows, n_draws, n_features). Several outputs have an
        axis of their own.
        """
        torch = require_torch("DeviceMeans")
        output = self._predictor.on_device(draws.reshape(-1, draws.shape[-1]))
        if output.ndim == 2 and output.shape[1] == 1:
            output = output[:, 0]
        # Apple's devices have no double precision.
        output = output.to(torch.float32 if output.device.type == "mps" else torch.float64)
        replicates = output.reshape(*draws.shape[:2], self._n_replicates, -1, *output.shape[1:])
        # As for NumPy arrays, the mean of equal values is exactly their value.
        low, high = torch.aminmax(replicates, dim=3)
        means = torch.clamp(replicates.mean(dim=3), low, high)
        return self._model.check_means(means.cpu().double().numpy(), tuple(output.shape[1:]))


def device_means(
    model: Predictor,
    sampler: Sampler,
    layout: Layout,
    n_replicates: int,
    *,
    is_usable: bool = True,
) -> DeviceMeans | None:
    """Return an object that computes means on a module's device; None where the CPU draws.

    Raises a TypeError where the module asks for draws on the device that cannot be made there. The
    layout has the columns as the model sees them; `is_usable` says whether draws can depend on all
    values of the rows.
    """
    predictor = model.predictor
    if predictor is None or predictor.draws == "host":
        return None
    if predictor.draws == "auto" and module_place(predictor.module)[0].type == "cpu":
        return None
    obstacle = _find_obstacle(predictor, sampler, layout)
    if obstacle is None and not is_usable:
        obstacle = ("used with rows whose missing values occur in training", "others")
    if obstacle is None:
        return DeviceMeans(model, sampler, n_replicates)
    if predictor.draws == "auto":
        return None
    advice = "Leave draws='module' out to draw on the CPU"
    raise refusal(f"draws='module' of {predictor.name}", *obstacle, advice, TypeError)


def _find_obstacle(
    predictor: TorchPredictor, sampler: Sampler, layout: Layout
) -> tuple[str, object] | None:
    """Return the condition for draws on a device that is not met, and what is there instead.

    The CPU rounds draws of integer columns, and draws of single precision columns to that
    precision; a device does neither.
    """
    if not sampler.draws_on_device:
        if moved := _moved(sampler):
            return "used with columns whose draws need not be whole numbers or codes", moved
        return "used with a sampler that draws on a device, such as Gaussian", sampler.name
    needed = 1 if predictor.is_single else 2
    short = [layout.names[at] for at in np.flatnonzero(column_precision(layout) < needed)]
    if short:
        return "used with columns of floats, no shorter than the module's", short
    return None


def _moved(sampler: Sampler) -> list[str]:
    """Return the columns whose draws are moved to possible values."""
    if sampler.layout_ is None:
        return []
    possible = sampler.layout_.possible
    together = {int(column) for each in possible.exclusive for column in each.columns}
    return [sampler.layout_.names[at] for at in sorted(together | possible.columns.keys())]
