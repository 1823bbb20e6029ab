"""The samplers that are available by name."""

from __future__ import annotations

from typing import Literal

from dsage.data.registry import Registry
from dsage.samplers.base import BaseSampler

DataKind = Literal["numbers", "classes", "mixed"]

NUMBERS: tuple[DataKind, ...] = ("numbers",)
ANY_DATA: tuple[DataKind, ...] = ("numbers", "classes", "mixed")

SAMPLERS: Registry[type[BaseSampler]] = Registry("sampler", "the samplers", "dsage.samplers")
"""The samplers by name.

A sampler is a class that can be made without arguments, registered with these traits:

fits : tuple of {"numbers", "classes", "mixed"}
    The kinds of data that it can draw: columns of numbers, of classes, or of both.
candidate_for : tuple of {"numbers", "classes", "mixed"}, optional
    The kinds of data for which ``sampler="auto"`` considers it.
complexity : int, optional
    Its place among the candidates. Of those that score alike, the one with the lowest is chosen.
draw_cost : float, default=1.0
    Microseconds to draw one row, per feature: how much is scored depends on it.
call_cost : float, default=20.0
    Microseconds to prepare the draws of a coalition, per feature.
fit_cost : float, optional
    Microseconds to fit to one row, per feature. Without it, the time of a fit is estimated from one
    to a few rows, and whether the sampler is tried depends on the clock.
fit_seconds : float, default=0.0
    Seconds that a fit takes even to few rows.
"""
