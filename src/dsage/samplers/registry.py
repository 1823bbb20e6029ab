"""The samplers that can be asked for by name."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from dsage.data.registry import Registry
from dsage.samplers.base import BaseSampler

DataKind = Literal["numbers", "classes", "mixed"]

NUMBERS: tuple[DataKind, ...] = ("numbers",)
CLASSES: tuple[DataKind, ...] = ("classes",)
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
"""


def data_kind(n_categories: npt.NDArray[np.intp]) -> DataKind:
    """Return the kind of columns with these numbers of categories (0 for numbers).

    Examples
    --------
    >>> data_kind(np.array([0, 3]))
    'mixed'
    """
    is_class = n_categories > 0
    return "numbers" if not is_class.any() else "classes" if is_class.all() else "mixed"


def candidate_names(kind: DataKind) -> list[str]:
    """Return the names of the candidates of the automatic choice, simplest first.

    Examples
    --------
    >>> candidate_names("mixed")
    ['sequential', 'neighbors', 'forest']
    """
    traits = {name: SAMPLERS.traits(name) for name in SAMPLERS}
    names = [name for name in SAMPLERS if kind in traits[name].get("candidate_for", ())]
    return sorted(names, key=lambda name: traits[name]["complexity"])
