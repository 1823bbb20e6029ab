"""The base class of scores, and the registry that finds them by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dsage.data.registry import Registry

Floats = npt.NDArray[np.float64]
Parents = tuple[int, ...]
"""Positions of the parents of a node, in increasing order: the canonical key of every cache."""


class Ceilings(Protocol):
    """Upper bounds of the scores of families in one order of the variables."""

    def of(self, rank: int) -> Floats:
        """Return the bounds of the variable at `rank` in the order.

        Entry r, of n_nodes + 1, is at least its score with any parents among the other variables
        of rank below r.
        """
        ...


class Score(ABC):
    """A decomposable score; larger is better: log-likelihood minus penalty, as in bnlearn.

    The score of a graph is the sum of the scores of its families. A family is a node with its
    parents, given by their positions in `names`. A subclass sets `names` and defines `family`;
    it overrides the other methods if it can answer faster. Callers must not modify the
    returned arrays, which may be cached.

    Attributes
    ----------
    names : tuple of str
        The variables.
    is_approximate : bool
        Whether `additions` and `removals` only approximate the scores of families; the best of
        the removals is exact.
    margin : float or None
        How much more a change may gain than its `quick` score; None, the default, if there are no
        quick scores.
    reach : float or None
        How much the score may fall while a variable moves on in search of a better place in the
        order; None, the default, if it moves through all places.

    Examples
    --------
    >>> class FewestParents(Score):
    ...     names = ("a", "b", "c")
    ...     def family(self, node, parents):
    ...         return 1.0 - len(parents)
    >>> FewestParents().additions(0, (1,)), FewestParents().removals(0, (1,))
    (array([-inf, -inf,  -1.]), array([-inf,   1., -inf]))
    """

    names: tuple[str, ...]
    is_approximate = False
    margin: float | None = None
    reach: float | None = None

    @abstractmethod
    def family(self, node: int, parents: Parents) -> float:
        """Return the score of `node` with exactly these parents; -inf if they are not allowed."""

    def additions(self, node: int, parents: Parents) -> Floats:
        """Return, for every variable, the score of `node` with it as one more parent.

        Shape (n_nodes,); -inf for the node itself, for its parents, and for variables that the
        score does not allow as its parent.
        """
        scores = np.full(len(self.names), -np.inf)
        for other in range(len(self.names)):
            if other != node and other not in parents:
                scores[other] = self.family(node, tuple(sorted((*parents, other))))
        return scores

    def removals(self, node: int, parents: Parents) -> Floats:
        """Return, for every parent, the score of `node` without it; -inf for other variables."""
        scores = np.full(len(self.names), -np.inf)
        for at, parent in enumerate(parents):
            scores[parent] = self.family(node, parents[:at] + parents[at + 1 :])
        return scores

    def growth(self, node: int, parents: Parents) -> tuple[Floats, float]:
        """Return the additions to a family and its score, to find what raises the score.

        Only differences matter: an approximate score may shift both by the same number.
        """
        return self.additions(node, parents), self.family(node, parents)

    def ceilings(self, order: Sequence[int]) -> Ceilings | None:  # noqa: ARG002
        """Return upper bounds in this order of all variables, with which searches skip families.

        None, the default, if there are none.
        """
        return None

    def quick(self, node: int, parents: Parents) -> float:
        """Return about the score of a family, up to a number that depends on the node alone.

        Searches rule out changes by it that lose more than `margin`, before they ask for scores.
        """
        return self.family(node, parents)

    def rough(self) -> Score:
        """Return a cheaper score of the same data, for the start of a search; by default this."""
        return self

    def near(self, parents: Sequence[Parents]) -> Score:  # noqa: ARG002
        """Return the score to use near a graph, given by the parents of each node.

        By default this one. A score that has more terms than it can compute for all families
        chooses the ones that matter there.
        """
        return self

    def overlooked(
        self,
        parents: Sequence[Parents],
        order: Sequence[int],  # noqa: ARG002
        allowed: npt.NDArray[np.bool_],  # noqa: ARG002
        max_parents: int,  # noqa: ARG002
    ) -> Sequence[Parents]:
        """Return the parents of each node of the best graph, with those that the score misses.

        By default none. `order` has parents before their children, and a node may get an earlier
        one as a parent where `allowed`, (n_nodes, n_nodes), permits the edge.
        """
        return parents


SCORES: Registry[Callable[..., Score]] = Registry(
    "score", "the scores", package="dsage.structure.scores"
)
"""The scores by name: functions from data, and their own options, to a :class:`Score`.

Each is registered with ``fits``, the kinds of data that it is for (``"continuous"``,
``"discrete"``, ``"mixed"``), and with ``options``, the names of its options. It receives
:class:`~dsage.structure.Moments` of continuous data, :class:`~dsage.structure.Counts` of discrete
data and a table of typed columns of mixed data; if registered with ``needs_rows=True``, always
such a table.
"""
