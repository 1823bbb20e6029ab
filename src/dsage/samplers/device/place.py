"""The device on which draws are made, and the noise that is made there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dsage.models.torch_tools import require_torch
from dsage.samplers.checks import Ints
from dsage.samplers.conditioning import DENOMINATOR, GRID, NUMERATOR
from dsage.samplers.noise import SMALLEST, Noise


class Place:
    """A device of PyTorch, and the precision of the draws that are made on it.

    Types shorter than single precision are computed in that, and rounded last. What decides between
    draws, such as a component of a mixture, is computed in double precision: on the device, or on
    the CPU for devices that have none.

    Parameters
    ----------
    device : torch.device or str
        The device.
    dtype : torch.dtype
        The type of the draws.

    Attributes
    ----------
    computed : torch.dtype
        The type in which draws are computed.
    n_bytes : int
        The size of a number of that type.
    near : torch.device
        Where double precision is computed.
    """

    def __init__(self, device: Any, dtype: Any) -> None:  # noqa: ANN401
        torch = require_torch("draws on a device")
        self.device = torch.device(device)
        self.dtype = dtype
        self.computed = dtype if dtype.itemsize >= 4 else torch.float32
        self.n_bytes = int(self.computed.itemsize)
        self.near = torch.device("cpu") if self.device.type == "mps" else self.device

    def send(self, values: npt.ArrayLike) -> Any:  # noqa: ANN401
        """Return an array as a tensor of the same type where double precision is computed.

        The array is read before this returns, without waiting for earlier work of the device.
        """
        torch = require_torch("draws on a device")
        array = np.ascontiguousarray(values)
        # Tensors cannot share read-only memory.
        tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
        return tensor.to(self.near, non_blocking=self.near.type == "cuda")

    def round(self, tensor: Any) -> Any:  # noqa: ANN401
        """Return a tensor on the device, floats in the precision in which draws are computed."""
        if tensor.is_floating_point():
            # Before the copy, which then has half the bytes.
            tensor = tensor.to(self.computed)
        return tensor.to(self.device)


class Copied:
    """A tensor on its way from a device to the CPU, which waits only when it is needed.

    Parameters
    ----------
    tensor : torch.Tensor
        The tensor on the device.
    """

    def __init__(self, tensor: Any) -> None:  # noqa: ANN401
        torch = require_torch("draws on a device")
        self._event = None
        if tensor.device.type != "cuda":
            self._copy = tensor.cpu()
            return
        self._copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        self._copy.copy_(tensor, non_blocking=True)
        self._event = torch.cuda.Event()
        self._event.record(torch.cuda.current_stream(tensor.device))

    def get(self) -> Any:  # noqa: ANN401
        """Wait for the tensor and return it."""
        if self._event is not None:
            self._event.synchronize()
        return self._copy


def send_noise(noise: Noise, rows: Ints, epoch: int, place: Place) -> Any:  # noqa: ANN401
    """Return the noise of rows, (n_rows, n_draws, n_features), in double precision.

    The digits that are flipped are sent, and the net is made of them on the device: as many times
    fewer numbers as a replicate has draws.
    """
    flips, net = noise.parts(rows, epoch)
    uniforms = place.send(flips if net is None else flips.view(np.int64))
    if net is not None:
        uniforms = (uniforms ^ place.send(net.view(np.int64))).double().mul_(SMALLEST)
    n_draws = noise.n_replicates * noise.n_draws
    return uniforms.clamp_(min=SMALLEST).reshape(len(rows), n_draws, noise.n_features)


def to_scores(uniforms: Any) -> Any:  # noqa: ANN401
    """Return :func:`~dsage.samplers.normal_scores` of uniforms in double precision."""
    torch = require_torch("draws on a device")
    tail = torch.minimum(uniforms, 1.0 - uniforms).clamp_(min=2.0**-54)
    s = tail.log_().neg_().sqrt_()
    scores = _polynomial([coefficient / GRID for coefficient in NUMERATOR], s)
    scores = scores.div_(_polynomial(DENOMINATOR, s)).round_()
    return torch.copysign(scores, uniforms - 0.5).mul_(GRID)


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:  # noqa: ANN401
    value = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value.add_(coefficient).mul_(x)
    return value.add_(coefficients[0])
