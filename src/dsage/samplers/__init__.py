"""Conditional samplers: draws of unknown features given known ones, as pure functions of noise."""

from dsage.samplers.base import BaseSampler, Sampler, check_sampler
from dsage.samplers.categorical import Categorical
from dsage.samplers.function import FunctionSampler
from dsage.samplers.marginal import Marginal
from dsage.samplers.neighbors import Neighbors

__all__ = [
    "BaseSampler",
    "Categorical",
    "FunctionSampler",
    "Marginal",
    "Neighbors",
    "Sampler",
    "check_sampler",
]
