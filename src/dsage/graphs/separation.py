"""Answer which features are separated from the target, and which form a coalition's boundary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dsage._check import check_known, check_names, check_real, refusal
from dsage.graphs.bits import pack, unpack
from dsage.graphs.reachability import Reachability

# Memory of one sweep: four bit rows a node, and its coalitions and answers as booleans, are less
# than four bytes for each node and coalition. Answers do not depend on it.
_BYTES_AT_ONCE = 1 << 25


def _blocks(n_coalitions: int, n_nodes: int) -> Iterator[slice]:
    """Yield the coalitions of one sweep after the other; rows beyond 64 Ki bits gain nothing."""
    size = min(max(_BYTES_AT_ONCE // (4 * max(n_nodes, 1)), 1), 1 << 16)
    for start in range(0, n_coalitions, size):
        yield slice(start, min(start + size, n_coalitions))


@runtime_checkable
class Oracle(Protocol):
    """What d-SAGE asks about a target: any object with these three members will do."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the columns of `known`."""
        ...

    def separated(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Tell which features outside each coalition are separated from the target given it."""
        ...

    def boundary(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Tell which members of each coalition form its Markov boundary."""
        ...


class SeparationOracle:
    """The separations that a graph implies between a target and every other node.

    Made by :meth:`dsage.Graph.oracle`. For a coalition S, one pass of Bayes-ball from the target
    given S finds both answers: the features outside S that it does not reach are separated from
    the target given S, and the members of S that it reaches are the Markov boundary M(S), the
    smallest subset of S given which the target is independent of the rest of S.

    Parameters
    ----------
    reachability : Reachability
        The graph, ready for sweeps.
    node_names : sequence of str
        Its nodes.
    target : str
        The node that the questions are about.
    feature_names : sequence of str
        The nodes that may be known, in the order of the columns of `known`. Nodes that are
        neither the target nor a feature are unobserved.

    Examples
    --------
    >>> import numpy as np
    >>> from dsage import Graph
    >>> oracle = Graph(["a", "b", "y", "c"], [("a", "b"), ("b", "y"), ("y", "c")]).oracle("y")
    >>> oracle.feature_names
    ('a', 'b', 'c')
    >>> known = np.array([[False, False, False], [False, True, False], [True, True, True]])
    >>> oracle.separated(known)
    array([[False, False, False],
           [ True, False, False],
           [False, False, False]])
    >>> oracle.boundary(known)
    array([[False, False, False],
           [False,  True, False],
           [False,  True,  True]])
    """

    __slots__ = ("_columns", "_feature_names", "_n_nodes", "_reachability", "_target", "_target_at")

    def __init__(
        self,
        reachability: Reachability,
        node_names: Sequence[str],
        target: str,
        feature_names: Sequence[str],
    ) -> None:
        position = {name: index for index, name in enumerate(node_names)}
        self._reachability = reachability
        self._n_nodes = len(node_names)
        self._target = target
        self._target_at = position[target]
        self._feature_names = tuple(feature_names)
        self._columns = [position[name] for name in feature_names]

    @property
    def target(self) -> str:
        """Name of the node that the questions are about."""
        return self._target

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the columns of `known`."""
        return self._feature_names

    def separated(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Tell which features outside each coalition are separated from the target given it.

        Parameters
        ----------
        known : bool array of shape (n_coalitions, n_features)
            The coalitions.

        Returns
        -------
        bool array of shape (n_coalitions, n_features)
            False for the members of the coalition.
        """
        known = check_known(known, self._feature_names)
        answer = self._reached(known)
        np.logical_or(answer, known, out=answer)
        return np.logical_not(answer, out=answer)

    def boundary(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Tell which members of each coalition form its Markov boundary.

        Parameters
        ----------
        known : bool array of shape (n_coalitions, n_features)
            The coalitions.

        Returns
        -------
        bool array of shape (n_coalitions, n_features)
            A subset of each coalition.
        """
        known = check_known(known, self._feature_names)
        answer = self._reached(known)
        return np.logical_and(answer, known, out=answer)

    def _reached(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        reached = np.empty(known.shape, dtype=np.bool_)
        for rows_at in _blocks(len(known), self._n_nodes):
            block = known[rows_at]
            rows = [0] * self._n_nodes
            for column, row in zip(self._columns, pack(block), strict=True):
                rows[column] = row
            rows = self._reachability.reached([self._target_at], rows, len(block))
            answers = [rows[column] for column in self._columns]
            reached[rows_at] = unpack(answers, len(block))
        return reached

    def __repr__(self) -> str:
        return f"SeparationOracle(target={self._target!r}, n_features={len(self._feature_names)})"


class NoSeparation:
    """The oracle that never separates anything: with it d-SAGE is plain SAGE.

    Parameters
    ----------
    feature_names : iterable of str
        Names of the features.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = NoSeparation(["a", "b"])
    >>> oracle.separated(np.array([[True, False]])), oracle.boundary(np.array([[True, False]]))
    (array([[False, False]]), array([[ True, False]]))
    """

    __slots__ = ("_feature_names",)

    def __init__(self, feature_names: Sequence[str]) -> None:
        self._feature_names = check_names(feature_names, "feature_names")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the columns of `known`."""
        return self._feature_names

    def separated(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return False everywhere."""
        return np.zeros_like(check_known(known, self._feature_names))

    def boundary(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return a copy of the coalitions: every member belongs to the boundary."""
        return check_known(known, self._feature_names).copy()

    def __repr__(self) -> str:
        return f"NoSeparation(n_features={len(self._feature_names)})"


class Consensus:
    """Several oracles asked together: separated only where enough of them agree.

    A graph that was learned from data may be wrong. Graphs learned from resamples of the data
    disagree where it is, and this oracle is cautious there.

    Parameters
    ----------
    oracles : sequence of Oracle
        At least one; all with the same features in the same order.
    share : float, default=0.9
        A feature is separated where at least this share of the oracles says so. A member of a
        coalition belongs to the boundary unless at least this share drops it.

    Examples
    --------
    >>> import numpy as np
    >>> from dsage import Graph
    >>> chain = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")]).oracle("y")
    >>> fork = Graph(["a", "b", "y"], [("a", "y"), ("b", "y")]).oracle("y")
    >>> known = np.array([[False, True]])
    >>> chain.separated(known), Consensus([chain, fork]).separated(known)
    (array([[ True, False]]), array([[False, False]]))
    >>> Consensus([chain, fork], share=0.5).separated(known)
    array([[ True, False]])
    """

    __slots__ = ("_oracles", "_share")

    def __init__(self, oracles: Sequence[Oracle], share: float = 0.9) -> None:
        if not isinstance(oracles, Sequence):
            raise refusal(
                "oracles", "a list of oracles", oracles, "Put the oracle into a list", TypeError
            )
        self._oracles = tuple(oracles)
        self._share = check_real(share, "share", above=0.0, high=1.0)
        if not self._oracles:
            raise refusal("oracles", "at least one", [], "Make one with graph.oracle(target)")
        for number, oracle in enumerate(self._oracles):
            if not isinstance(oracle, Oracle):
                raise refusal(
                    "oracles",
                    "objects with feature_names, separated and boundary",
                    oracle,
                    "Make one with graph.oracle(target)",
                    TypeError,
                )
            target = getattr(oracle, "target", None)
            if target is not None and self.target not in (None, target):
                raise refusal(
                    "oracles",
                    f"about the same target, {self.target!r}",
                    target,
                    f"That is oracle {number}",
                )
            if tuple(oracle.feature_names) != self.feature_names:
                raise refusal(
                    "oracles",
                    f"over the same features in the same order, {self.feature_names!r}",
                    tuple(oracle.feature_names),
                    f"That is oracle {number}; pass features= to graph.oracle",
                )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the columns of `known`."""
        return tuple(self._oracles[0].feature_names)

    @property
    def target(self) -> str | None:
        """Name of the node that the questions are about, if the oracles know it."""
        targets = (getattr(oracle, "target", None) for oracle in self._oracles)
        return next((target for target in targets if target is not None), None)

    def separated(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Tell which features at least the share of the oracles separates, given each coalition."""
        return self._agreed(known, lambda oracle, block: oracle.separated(block))

    def boundary(self, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Tell which members of each coalition fewer than the share of the oracles drops."""
        known = check_known(known, self.feature_names)
        dropped = self._agreed(known, lambda oracle, block: block & ~oracle.boundary(block))
        return np.logical_and(known, np.logical_not(dropped, out=dropped), out=dropped)

    def _agreed(
        self,
        known: npt.NDArray[np.bool_],
        vote: Callable[[Oracle, npt.NDArray[np.bool_]], npt.NDArray[np.bool_]],
    ) -> npt.NDArray[np.bool_]:
        known = check_known(known, self.feature_names)
        # 0.9 * 10 must need nine votes, whatever the rounding of the product.
        needed = math.ceil(self._share * len(self._oracles) - 1e-9)
        agreed = np.empty(known.shape, dtype=np.bool_)
        for rows_at in _blocks(len(known), len(self.feature_names)):
            block = known[rows_at]
            votes = np.zeros(block.shape, dtype=np.int32)
            for oracle in self._oracles:
                votes += vote(oracle, block)
            agreed[rows_at] = votes >= needed
        return agreed

    def __repr__(self) -> str:
        return f"Consensus({len(self._oracles)} oracles, share={self._share:g})"
