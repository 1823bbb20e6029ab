"""Mean predictions of a PyTorch module for Gaussian draws, computed on the module's device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage._check import refusal
from dsage.data.layout import Layout
from dsage.games.base import Floats, Mask
from dsage.games.predictor import Predictor
from dsage.models.affine import column_precision
from dsage.models.torch_module import TorchPredictor
from dsage.models.torch_tools import module_place, require_torch
from dsage.samplers.base import Sampler
from dsage.samplers.device import DeviceGaussian, DeviceOrdering, DeviceRows
from dsage.samplers.gaussian import Gaussian


class DeviceMeans:
    """The mean predictions of a module over replicates of draws, computed on its device.

    Draws and predictions stay on the device; only the means come back, ``n_draws * n_features``
    times fewer numbers.

    Parameters
    ----------
    model : Predictor
        The model of a module.
    sampler : Gaussian
        A fitted sampler.
    n_replicates : int
        Number of replicates; the draws of one are adjacent.
    """

    def __init__(self, model: Predictor, sampler: Gaussian, n_replicates: int) -> None:
        if model.predictor is None:
            raise refusal(
                "model",
                "a PyTorch module for predictions on its device",
                model.name,
                "Pass other models to a game, which calls them",
                TypeError,
            )
        self._model = model
        self._predictor: TorchPredictor = model.predictor
        self._sampler = sampler
        self._n_replicates = n_replicates

    def load(self, X: Any, scores: Floats) -> LoadedMeans:  # noqa: ANN401
        """Send rows and their normal scores to the device; see :meth:`DeviceGaussian.load`."""
        # Looked up each time: modules can be moved.
        place = module_place(self._predictor.module)
        return LoadedMeans(self, DeviceGaussian(self._sampler, *place).load(X, scores))

    def of(self, draws: Any) -> Floats:  # noqa: ANN401
        """Return the mean predictions of draws (n_coalitions, n_rows, n_draws, n_features).

        Parameters
        ----------
        draws : tensor
            On the device.

        Returns
        -------
        array of shape (n_coalitions, n_rows, n_replicates), or (..., n_outputs)
            The outputs have their own axis where there are several.
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


class LoadedMeans:
    """Mean predictions for rows that are on the device (made by :meth:`DeviceMeans.load`)."""

    def __init__(self, means: DeviceMeans, rows: DeviceRows) -> None:
        self._means = means
        self._rows = rows

    def coalitions(self, known: Mask) -> Floats:
        """Return the means (n_coalitions, n_rows, n_replicates, ...) of coalitions."""
        return self._means.of(self._rows.draw(known))

    def ordering(self, order: Sequence[int] | npt.NDArray[np.intp]) -> LoadedOrdering:
        """Return an object that computes the means of prefixes of an ordering."""
        return LoadedOrdering(self._means, self._rows.ordering(order))


class LoadedOrdering:
    """Mean predictions along an ordering (made by :meth:`LoadedMeans.ordering`)."""

    def __init__(self, means: DeviceMeans, ordering: DeviceOrdering) -> None:
        self._means = means
        self._ordering = ordering

    def prefixes(self, lengths: Sequence[int] | npt.NDArray[np.intp]) -> Floats:
        """Return the means (n_lengths, n_rows, n_replicates, ...) of prefixes, shortest first."""
        return self._means.of(self._ordering.draw(lengths))


def device_means(
    model: Predictor,
    sampler: Sampler,
    layout: Layout,
    n_replicates: int,
) -> DeviceMeans | None:
    """Return an object that computes means on a module's device; None where the CPU draws.

    Parameters
    ----------
    model : Predictor
        The model. Its `predictor`, if any, says where to draw.
    sampler : Sampler
        The fitted sampler.
    layout : Layout
        The columns as the model sees them. The CPU rounds draws of integer columns, and draws of
        single precision columns to that precision; a device does neither.
    n_replicates : int
        Number of replicates.

    Raises
    ------
    TypeError
        Where draws are requested on the device but cannot be made there.
    """
    predictor = model.predictor
    if predictor is None or predictor.draws == "host":
        return None
    if predictor.draws == "auto" and module_place(predictor.module)[0].type == "cpu":
        return None
    obstacle = _find_obstacle(predictor, sampler, layout)
    if obstacle is None:
        return DeviceMeans(model, sampler, n_replicates)  # type: ignore[arg-type]
    if predictor.draws == "auto":
        return None
    condition, value = obstacle
    advice = "Leave draws='module' out to draw on the CPU"
    raise refusal(f"draws='module' of {predictor.name}", condition, value, advice, TypeError)


def _find_obstacle(
    predictor: TorchPredictor, sampler: Sampler, layout: Layout
) -> tuple[str, object] | None:
    """Return the condition for draws on a device that is not met, and what is there instead."""
    if not isinstance(sampler, Gaussian):
        return "used with a Gaussian sampler", type(sampler).__name__
    precision = column_precision(layout)
    needed = 1 if predictor.is_single else 2
    short = [layout.names[at] for at in np.flatnonzero(precision < needed)]
    if short:
        return "used with columns of floats, no shorter than the module's", short
    return None
