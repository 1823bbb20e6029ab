"""Draws made on a device of PyTorch, so that they need not be copied to it."""

from dsage.samplers.device.gaussian import DeviceCopula, DeviceGaussian
from dsage.samplers.device.mix import DeviceMix
from dsage.samplers.device.paths import DevicePaths, DeviceRows, DeviceSampler
from dsage.samplers.device.place import Place, send_noise, to_scores

__all__ = [
    "DeviceCopula",
    "DeviceGaussian",
    "DeviceMix",
    "DevicePaths",
    "DeviceRows",
    "DeviceSampler",
    "Place",
    "send_noise",
    "to_scores",
]
