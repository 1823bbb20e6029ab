"""The state of an object as named arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dsage._files import Arrays


def taken(owner: object, attributes: Sequence[str]) -> Arrays:
    """Return attributes, arrays or numbers, as arrays.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> owner = SimpleNamespace(count=3, sums=np.zeros(2))
    >>> taken(owner, ["count", "sums"])
    {'count': array(3), 'sums': array([0., 0.])}
    """
    return {name: np.array(getattr(owner, name)) for name in attributes}


def put_back(owner: object, attributes: Sequence[str], state: Mapping[str, Any]) -> None:
    """Set attributes to what they were when `taken`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> owner = SimpleNamespace(count=0, sums=np.ones(2))
    >>> put_back(owner, ["count", "sums"], {"count": np.array(3), "sums": np.zeros(2)})
    >>> owner.count, owner.sums
    (3, array([0., 0.]))
    """
    for name in attributes:
        value = np.asarray(state[name])
        setattr(owner, name, value.copy() if value.ndim else value.item())


def nested(parts: Mapping[str, Mapping[str, Any]]) -> Arrays:
    """Return the arrays of several parts under names of the form ``part/name``."""
    return {f"{part}/{name}": value for part, own in parts.items() for name, value in own.items()}


def part_of(state: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Return the arrays of one part of what `nested` gave."""
    start = f"{part}/"
    return {name[len(start) :]: value for name, value in state.items() if name.startswith(start)}
