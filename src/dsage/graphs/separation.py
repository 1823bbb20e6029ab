"""Oracles: which features are separated from the target, and the boundary of a coalition."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from dsage._check import check_known, check_names, check_real, refusal
from dsage.graphs.bits import distinct, pack, unpack
from dsage.graphs.reachability import Reachability

Mask = npt.NDArray[np.bool_]

# Memory of one sweep. Four bit rows per node, and its coalitions and answers as booleans, take less
# than four bytes per node and coalition. Results do not depend on it.
_BYTES_AT_ONCE = 1 << 25
_BASIC = ("feature_names", "separated", "boundary")


def _chunks(n_coalitions: int, n_nodes: int) -> Iterator[slice]:
    """Yield the coalitions of each sweep; bit rows beyond 64 Ki bits gain nothing."""
    size = min(max(_BYTES_AT_ONCE // (4 * max(n_nodes, 1)), 1), 1 << 16)
    for start in range(0, n_coalitions, size):
        yield slice(start, min(start + size, n_coalitions))


class Oracle(ABC):
    """Base class of the oracles, which know what is separated from a target.

    Subclasses define `feature_names`, `separated` and `boundary`. The other members have defaults.
    Objects with these three members that are not subclasses are oracles, too: `as_oracle` adapts
    them.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the columns of `known`."""

    @abstractmethod
    def separated(self, known: Mask) -> Mask:
        """Return which features outside each coalition are separated from the target given it.

        Parameters
        ----------
        known : bool array of shape (n_coalitions, n_features)
            The coalitions.

        Returns
        -------
        bool array of shape (n_coalitions, n_features)
            False for the members of the coalition.
        """

    @abstractmethod
    def boundary(self, known: Mask) -> Mask:
        """Return which members of each coalition form its Markov boundary.

        Parameters
        ----------
        known : bool array of shape (n_coalitions, n_features)
            The coalitions.

        Returns
        -------
        bool array of shape (n_coalitions, n_features)
            A subset of each coalition.
        """

    @property
    def target(self) -> str | None:
        """Name of the target; None if the oracle does not know it."""
        return None

    @property
    def members(self) -> dict[str, tuple[str, ...]] | None:
        """Members of the groups that are the features; None if there are no groups."""
        return None

    def distinct_boundaries(self, known: Mask) -> tuple[Mask, npt.NDArray[np.intp]]:
        """Return the distinct boundaries of coalitions, and which of them belongs to each.

        Parameters
        ----------
        known : bool array of shape (..., n_features)
            The coalitions.

        Returns
        -------
        boundaries : bool array of shape (n_boundaries, n_features)
        place : int array of shape (...)
            Row in `boundaries` of the boundary of each coalition.

        Examples
        --------
        >>> from dsage import Graph
        >>> oracle = Graph(["a", "b", "y"], [("a", "b"), ("b", "y")]).oracle("y")
        >>> oracle.distinct_boundaries(np.array([[True, True], [False, True], [True, False]]))
        (array([[False,  True],
               [ True, False]]), array([0, 0, 1]))
        """
        boundaries = self.boundary(known.reshape(-1, known.shape[-1]))
        first, place = distinct(boundaries)
        return boundaries[first], place.reshape(known.shape[:-1])


def is_oracle(value: object) -> TypeGuard[Oracle]:
    """Return whether an object is an oracle, by its class or by its members."""
    return isinstance(value, Oracle) or all(hasattr(value, name) for name in _BASIC)


def as_oracle(value: object, parameter: str = "oracle") -> Oracle:
    """Return an oracle with all members of the base class; adapt one that has the basic three."""
    if isinstance(value, Oracle):
        return value
    if not is_oracle(value):
        raise refusal(
            parameter,
            "an object with feature_names, separated and boundary",
            type(value).__name__,
            "Make one with graph.oracle(target)",
            TypeError,
        )
    return _Adapter(value)


class _Adapter(Oracle):
    """An oracle made from an object with the basic members, and perhaps some of the others."""

    __slots__ = ("_oracle",)

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(self._oracle.feature_names)

    @property
    def target(self) -> str | None:
        return getattr(self._oracle, "target", None)

    @property
    def members(self) -> dict[str, tuple[str, ...]] | None:
        return getattr(self._oracle, "members", None)

    def separated(self, known: Mask) -> Mask:
        return self._oracle.separated(known)

    def boundary(self, known: Mask) -> Mask:
        return self._oracle.boundary(known)

    def __repr__(self) -> str:
        return repr(self._oracle)


class SeparationOracle(Oracle):
    """The separations that a graph implies between a target and every other node.

    :meth:`dsage.Graph.oracle` makes one. For a coalition S, one pass of Bayes-ball from the target
    given S answers both questions: the features outside S that it does not reach are separated
    from the target given S, and the members of S that it reaches are the Markov boundary M(S), the
    smallest subset of S given which the target is independent of the rest of S.

    Parameters
    ----------
    reachability : Reachability
        The graph, prepared for sweeps.
    node_names : sequence of str
        Nodes of the graph.
    target : str
        The target, one of the nodes.
    feature_names : sequence of str
        The nodes that can be known, in the order of the columns of `known`. All other nodes but
        the target are unobserved.

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
        """Name of the target."""
        return self._target

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the columns of `known`."""
        return self._feature_names

    def separated(self, known: Mask) -> Mask:
        """Return which features outside each coalition are separated from the target given it."""
        known = check_known(known, self._feature_names)
        answer = self._reached(known)
        np.logical_or(answer, known, out=answer)
        return np.logical_not(answer, out=answer)

    def boundary(self, known: Mask) -> Mask:
        """Return which members of each coalition form its Markov boundary."""
        known = check_known(known, self._feature_names)
        answer = self._reached(known)
        return np.logical_and(answer, known, out=answer)

    def _reached(self, known: Mask) -> Mask:
        reached = np.empty(known.shape, dtype=np.bool_)
        for at in _chunks(len(known), self._n_nodes):
            chunk = known[at]
            rows = [0] * self._n_nodes
            for column, row in zip(self._columns, pack(chunk), strict=True):
                rows[column] = row
            rows = self._reachability.reached([self._target_at], rows, len(chunk))
            reached[at] = unpack([rows[column] for column in self._columns], len(chunk))
        return reached

    def __repr__(self) -> str:
        return f"SeparationOracle(target={self._target!r}, n_features={len(self._feature_names)})"


class NoSeparation(Oracle):
    """An oracle that separates nothing, with which d-SAGE is plain SAGE.

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

    def separated(self, known: Mask) -> Mask:
        """Return False everywhere."""
        return np.zeros_like(check_known(known, self._feature_names))

    def boundary(self, known: Mask) -> Mask:
        """Return a copy of the coalitions: every member is in the boundary."""
        return check_known(known, self._feature_names).copy()

    def __repr__(self) -> str:
        return f"NoSeparation(n_features={len(self._feature_names)})"


class Consensus(Oracle):
    """A vote of oracles: a feature is separated only where enough of them agree.

    A graph that was learned from data may be wrong. Graphs learned from resamples of the data
    disagree where it is uncertain, and there this oracle is cautious.

    Parameters
    ----------
    oracles : sequence of Oracle
        At least one; all with the same features in the same order.
    share : float, default=0.9
        A feature is separated if at least this share of the oracles separates it. A member of a
        coalition is in the boundary unless at least this share drops it.

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
        self._oracles = tuple(as_oracle(oracle, "each of oracles") for oracle in oracles)
        self._share = check_real(share, "share", above=0.0, high=1.0)
        if not self._oracles:
            raise refusal("oracles", "at least one", [], "Make one with graph.oracle(target)")
        for number, oracle in enumerate(self._oracles):
            if oracle.target is not None and oracle.target != self.target:
                raise refusal(
                    "oracles",
                    f"about the same target, {self.target!r}",
                    oracle.target,
                    f"See oracle {number}",
                )
            if tuple(oracle.feature_names) != self.feature_names:
                raise refusal(
                    "oracles",
                    f"over the same features in the same order, {self.feature_names!r}",
                    tuple(oracle.feature_names),
                    f"See oracle {number}, and pass features= to graph.oracle",
                )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the columns of `known`."""
        return tuple(self._oracles[0].feature_names)

    @property
    def target(self) -> str | None:
        """Name of the target; None if no oracle knows it."""
        targets = (oracle.target for oracle in self._oracles)
        return next((target for target in targets if target is not None), None)

    def separated(self, known: Mask) -> Mask:
        """Return which features enough oracles separate from the target given each coalition."""
        return self._agree(known, lambda oracle, chunk: oracle.separated(chunk))

    def boundary(self, known: Mask) -> Mask:
        """Return which members of each coalition too few oracles drop."""
        known = check_known(known, self.feature_names)
        dropped = self._agree(known, lambda oracle, chunk: chunk & ~oracle.boundary(chunk))
        return np.logical_and(known, np.logical_not(dropped, out=dropped), out=dropped)

    def _agree(self, known: Mask, vote: Callable[[Oracle, Mask], Mask]) -> Mask:
        known = check_known(known, self.feature_names)
        # 0.9 * 10 must need nine votes, whatever the rounding of the product.
        needed = math.ceil(self._share * len(self._oracles) - 1e-9)
        agreed = np.empty(known.shape, dtype=np.bool_)
        for at in _chunks(len(known), len(self.feature_names)):
            votes = np.zeros(known[at].shape, dtype=np.int32)
            for oracle in self._oracles:
                votes += vote(oracle, known[at])
            agreed[at] = votes >= needed
        return agreed

    def __repr__(self) -> str:
        return f"Consensus({len(self._oracles)} oracles, share={self._share:g})"
