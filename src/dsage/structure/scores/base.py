"""What every search asks of a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

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


class Ceilings(Protocol):
    """Upper bounds of the scores of families in one order of the variables."""

    def of(self, rank: int) -> npt.NDArray[np.float64]:
        """Return the bounds of the variable at `rank` in the order.

        Entry r, of n_nodes + 1, is at least its score with any parents among the other variables
        of rank below r.
        """
        ...


@runtime_checkable
class Bounded(Protocol):
    """What a score may have beside: searches then leave out what cannot be best."""

    def ceilings(self, order: Sequence[int]) -> Ceilings | None:
        """Return upper bounds in this order of all variables; None where there are none."""
        ...
