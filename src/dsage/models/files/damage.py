"""What the checks of model files share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

MAX_FEATURES = 1_000_000
"""More features than a table of dsage can have; predictions need memory for each."""
MAX_OUTPUTS = 10_000
"""The same for outputs, such as classes."""
# The libraries walk through trees by recursion.
_MAX_DEPTH = 10_000


class DamagedModelError(ValueError):
    """A file is not a whole model; the message says where."""


def check_tree(left: Ints, right: Ints, of: str) -> Ints:
    """Return the depth of each node of a binary tree, -1 for nodes that are not part of it.

    `left` and `right` are the children of each node, -1 for leaves; the root is node 0. Whatever
    is not a tree is refused: children that do not exist, cycles, nodes with two parents.
    """
    n_nodes = len(left)
    depth = np.full(n_nodes, -1, dtype=np.int64)
    here = np.zeros(1, dtype=np.int64)
    n_seen, level = 0, 0
    while len(here):
        if ((here < 0) | (here >= n_nodes)).any():
            raise DamagedModelError(f"{of} refers to a node that does not exist")
        n_seen += len(here)
        # In a cycle, nodes would be seen again and again.
        if n_seen > n_nodes or (depth[here] >= 0).any() or len(np.unique(here)) != len(here):
            raise DamagedModelError(f"{of} is not a tree")
        if level > _MAX_DEPTH:
            raise DamagedModelError(f"{of} is deeper than {_MAX_DEPTH:,} nodes")
        depth[here] = level
        inner = here[(left[here] != -1) | (right[here] != -1)]
        here = np.concatenate([left[inner], right[inner]])
        level += 1
    return depth


def check_range(values: Any, low: float, high: float, what: str) -> Ints:  # noqa: ANN401
    """Return whole numbers in [low, high) as an array."""
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if array.dtype.kind not in "biu":
        raise DamagedModelError(f"{what} does not consist of whole numbers")
    if array.min() < low or array.max() >= high:
        raise DamagedModelError(f"{what} is out of range")
    return array.astype(np.int64)
