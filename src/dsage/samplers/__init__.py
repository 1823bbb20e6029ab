"""Conditional samplers: draws of unknown features given known ones, as pure functions of noise."""

from dsage.samplers.base import BaseSampler, Sampler, check_sampler

__all__ = ["BaseSampler", "Sampler", "check_sampler"]
