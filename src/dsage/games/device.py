"""Mean predictions of a PyTorch module for Gaussian draws, both made on the module's device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dsage._check import refusal
from dsage.data.layout import Layout
from dsage.games.base import Floats, Mask
from dsage.models.affine import column_precision
from dsage.models.torch_module import TorchPredictor
from dsage.models.torch_tools import module_place, require_torch
from dsage.samplers.base import Sampler
from dsage.samplers.device import DeviceOrdering, DeviceRows


class ModuleModel(Protocol):
    """What is asked of a model; :class:`~dsage.models.Model` has it."""

    @property
    def name(self) -> str:
        """How errors call it."""
        ...

    @property
    def predictor(self) -> TorchPredictor | None:
        """What calls the module; None where the model is something else."""
        ...

    def check_means(self, means: Floats, n_outputs: tuple[int, ...]) -> Floats:
        """Return means (..., *n_outputs) as the game wants them, once they are checked."""
        ...


class DeviceMeans:
    """The mean predictions of a module over groups of draws, computed on its device.

    Draws are made there, predictions too, and only the means come back: ``n_draws * n_features``
    times fewer numbers.

    Parameters
    ----------
    model : ModuleModel
        The model that a module was made.
    sampler : Sampler
        A fitted sampler that draws on a device.
    n_replicates : int
        Groups of draws; those of a group stand side by side.
    """

    def __init__(self, model: ModuleModel, sampler: Sampler, n_replicates: int) -> None:
        if model.predictor is None:
            raise refusal(
                "model",
                "a module of PyTorch for predictions on its device",
                model.name,
                "Give other models to a game, which calls them",
                TypeError,
            )
        self._model = model
        self._predictor: TorchPredictor = model.predictor
        self._sampler = sampler
        self._n_groups = n_replicates

    def load(self, X: Any, scores: Floats) -> LoadedMeans:  # noqa: ANN401
        """Send rows and their normal scores to the device, see :meth:`DeviceGaussian.load`."""
        # Asked for each time: modules can be moved.
        place = module_place(self._predictor.module)
        return LoadedMeans(self, self._sampler.on_device(*place).load(X, scores))

    def of(self, draws: Any) -> Floats:  # noqa: ANN401
        """Return the mean predictions of draws (n_coalitions, n_rows, n_draws, n_features).

        Parameters
        ----------
        draws : tensor
            On the device.

        Returns
        -------
        array of shape (n_coalitions, n_rows, n_replicates), or (..., n_outputs)
            The outputs have an axis of their own where there are several.
        """
        torch = require_torch("DeviceMeans")
        output = self._predictor.on_device(draws.reshape(-1, draws.shape[-1]))
        if output.ndim == 2 and output.shape[1] == 1:
            output = output[:, 0]
        # Apple's devices have no double precision.
        output = output.to(torch.float32 if output.device.type == "mps" else torch.float64)
        grouped = output.reshape(*draws.shape[:2], self._n_groups, -1, *output.shape[1:])
        # As everywhere: rounding makes no mean of equal values differ from them.
        low, high = torch.aminmax(grouped, dim=3)
        means = torch.clamp(grouped.mean(dim=3), low, high)
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
        """Return what gives the means of prefixes of an ordering."""
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
    model: Any,  # noqa: ANN401
    sampler: Sampler,
    layout: Layout,
    n_replicates: int,
) -> DeviceMeans | None:
    """Return what computes mean predictions on a module's device; None where the CPU draws.

    Parameters
    ----------
    model : object
        The model. Where it is a :class:`ModuleModel`, its predictor says where draws are wanted.
    sampler : Sampler
        The fitted sampler.
    layout : Layout
        The columns as the model sees them. On the way to it, draws of integers are rounded, and so
        are draws in double precision for columns in single: a device does neither.
    n_replicates : int
        Groups of draws.

    Raises
    ------
    TypeError
        Where draws are wanted on the device, and cannot be made there.
    """
    predictor = getattr(model, "predictor", None)
    if predictor is None or predictor.draws == "host":
        return None
    if predictor.draws == "auto" and module_place(predictor.module)[0].type == "cpu":
        return None
    lacking = _lacking(predictor, sampler, layout)
    if lacking is None:
        return DeviceMeans(model, sampler, n_replicates)
    if predictor.draws == "auto":
        return None
    condition, value = lacking
    advice = "Or leave draws='module' out: draws are then made on the CPU"
    raise refusal(f"draws='module' of {predictor.name}", condition, value, advice, TypeError)


def _lacking(
    predictor: TorchPredictor, sampler: Sampler, layout: Layout
) -> tuple[str, object] | None:
    """Return what is wanted for draws on a device, and what is there instead."""
    if not sampler.draws_on_device:
        return "used with a sampler that draws on a device, such as Gaussian", sampler.name
    precision = column_precision(layout)
    needed = 1 if predictor.is_single else 2
    short = [layout.names[at] for at in np.flatnonzero(precision < needed)]
    if short:
        return "used with columns of floats, no shorter than the module's", short
    return None
