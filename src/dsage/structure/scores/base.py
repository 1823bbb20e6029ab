"""What every search asks of a score."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

Parents = tuple[int, ...]
"""Positions of the parents of a node, in increasing order: the canonical key of every cache."""


class Score(Protocol):
    """A decomposable score, larger is better: log-likelihood minus penalty, as in bnlearn.

    The score of a graph is the sum of its families' scores. A family is a node with its parents,
    given by their positions in `names`. Answers must not be changed by the caller: they may be
    cached.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        ...

    def family(self, node: int, parents: Parents) -> float:
        """Return the score of `node` with exactly these parents."""
        ...

    def additions(self, node: int, parents: Parents) -> npt.NDArray[np.float64]:
        """Return for every variable the score of `node` with it as one more parent.

        Shape (n_nodes,); -inf for the node itself, for its parents, and for variables that the
        score does not allow as its parent.
        """
        ...

    def removals(self, node: int, parents: Parents) -> npt.NDArray[np.float64]:
        """Return for every parent the score of `node` without it; -inf for all other variables."""
        ...
