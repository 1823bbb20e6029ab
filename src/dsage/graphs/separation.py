"""Oracles: which features are separated from the target, and the boundary of a coalition."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from dsage._check import (
    check_known,
    check_member,
    check_members,
    check_names,
    check_real,
    refusal,
)
from dsage.graphs.bits import distinct, pack, unpack

Mask = npt.NDArray[np.bool_]

# Memory of one sweep. Four bit rows per node, and its coalitions and answers as booleans, take less
# than four bytes per node and coalition. Results do not depend on it.
_BYTES_AT_ONCE = 1 << 25
_BASIC = ("feature_names", "separated", "boundary")
_ADVICE = "Make one with graph.oracle(target)"
_OF_GRAPH = "the nodes of the graph"


def _chunks(n_coalitions: int, n_nodes: int) -> Iterator[slice]:
    """Yield the coalitions of each sweep; bit rows beyond 64 Ki bits gain nothing."""
    size = min(max(_BYTES_AT_ONCE // (4 * max(n_nodes, 1)), 1), 1 << 16)
    for start in range(0, n_coalitions, size):
        yield slice(start, min(start + size, n_coalitions))


class Oracle(ABC):
    """Base class of the oracles, which know which features are separated from a target.

    Subclasses set `feature_names` and define `separated` and `boundary`. Objects with these three
    members that are not subclasses are oracles, too: `as_oracle` adapts them.

    Attributes
    ----------
    feature_names : tuple of str
        Names of the features, in the order of the columns of `known`.
    target : str or None
        Name of the target; None, the default, if the oracle does not know it.
    members : dict from str to tuple of str, or None
        Members of the groups that are the features; None, the default, without groups.
    is_of_graph : bool
        Whether these are the separations of one graph, a compositional graphoid; False by default.
    """

    feature_names: tuple[str, ...]
    target: str | None = None
    members: dict[str, tuple[str, ...]] | None = None
    is_of_graph: bool = False

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

        The arguments and the result are those of `separated`.
        """

    def reached(self, known: Mask) -> Mask:
        """Return which features the target reaches given each coalition, inside it and outside.

        These are the members of its boundary, and the other features that are not separated. The
        arguments and the result are those of `separated`.
        """
        return self.boundary(known) | ~(self.separated(known) | known)

    def distinct_boundaries(self, known: Mask) -> tuple[Mask, npt.NDArray[np.intp]]:
        """Return the distinct boundaries of coalitions, and which boundary each coalition has.

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
        condition = "an object with feature_names, separated and boundary"
        raise refusal(parameter, condition, type(value).__name__, _ADVICE, TypeError)
    return _Adapter(value)


class _Adapter(Oracle):
    """An oracle made from an object with the basic members, and perhaps some of the others."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.feature_names = tuple(oracle.feature_names)
        self.target = getattr(oracle, "target", None)
        self.members = getattr(oracle, "members", None)

    def separated(self, known: Mask) -> Mask:
        return self._oracle.separated(known)

    def boundary(self, known: Mask) -> Mask:
        return self._oracle.boundary(known)

    def __repr__(self) -> str:
        return repr(self._oracle)


class Sweep(Protocol):
    """A graph, prepared to find which nodes are reached from others, for many coalitions."""

    def reached(self, sources: Iterable[int], known: Sequence[int], width: int) -> list[int]:
        """Return, per node, the bit row of the coalitions under which it is reached."""


class SeparationOracle(Oracle):
    """The separations that a graph implies between a target and every other node.

    :meth:`dsage.Graph.oracle` and :meth:`dsage.graphs.PartialGraph.oracle` make one. For a
    coalition S, one pass of Bayes-ball from the target given S answers both questions: the features
    outside S that it does not reach are separated from the target given S, and the members of S
    that it reaches are the Markov boundary M(S), the smallest subset of S given which the target is
    independent of the rest of S.

    Parameters
    ----------
    reachability : Reachability or PossibleReachability
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

    is_of_graph = True

    def __init__(
        self,
        reachability: Sweep,
        node_names: Sequence[str],
        target: str,
        feature_names: Sequence[str],
    ) -> None:
        position = {name: index for index, name in enumerate(node_names)}
        self._reachability = reachability
        self._n_nodes = len(node_names)
        self.target = target
        self._target_at = position[target]
        self.feature_names = tuple(feature_names)
        self._columns = [position[name] for name in feature_names]

    def separated(self, known: Mask) -> Mask:
        """Return which features outside each coalition are separated from the target given it."""
        known = check_known(known, self.feature_names)
        answer = self.reached(known)
        np.logical_or(answer, known, out=answer)
        return np.logical_not(answer, out=answer)

    def boundary(self, known: Mask) -> Mask:
        """Return which members of each coalition form its Markov boundary."""
        known = check_known(known, self.feature_names)
        answer = self.reached(known)
        return np.logical_and(answer, known, out=answer)

    def reached(self, known: Mask) -> Mask:
        """Return which features the target reaches given each coalition, inside it and outside."""
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
        return f"SeparationOracle(target={self.target!r}, n_features={len(self.feature_names)})"


def check_features(
    target: str, features: Iterable[str] | None, nodes: Sequence[str]
) -> tuple[str, ...]:
    """Return the features of an oracle about `target`: by default all other nodes."""
    check_member(target, nodes, "target", _OF_GRAPH)
    if features is None:
        return tuple(name for name in nodes if name != target)
    checked = check_names(features, "features")
    for name in checked:
        check_member(name, nodes, "features", _OF_GRAPH)
    if target in checked:
        raise refusal("features", "without the target", target, "Drop the target")
    return checked


def are_separated(
    sweep: Sweep,
    nodes: Sequence[str],
    x: str | Iterable[str],
    y: str | Iterable[str],
    given: str | Iterable[str],
) -> bool:
    """Return whether two sets of nodes are separated given a third one."""
    sets = {
        parameter: check_members(names, nodes, parameter, _OF_GRAPH)
        for parameter, names in (("x", x), ("y", y), ("given", given))
    }
    for one, other in (("x", "y"), ("x", "given"), ("y", "given")):
        if common := [name for name in sets[one] if name in sets[other]]:
            advice = "Remove these from one of them"
            raise refusal(f"{one} and {other}", "disjoint", common, advice)
    position = {name: at for at, name in enumerate(nodes)}
    known = [0] * len(nodes)
    for name in sets["given"]:
        known[position[name]] = 1
    reached = sweep.reached([position[name] for name in sets["x"]], known, 1)
    return not any(reached[position[name]] for name in sets["y"])


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

    def __init__(self, feature_names: Sequence[str]) -> None:
        self.feature_names = check_names(feature_names, "feature_names")

    def separated(self, known: Mask) -> Mask:
        """Return False everywhere."""
        return np.zeros_like(check_known(known, self.feature_names))

    def boundary(self, known: Mask) -> Mask:
        """Return a copy of the coalitions: every member is in the boundary."""
        return check_known(known, self.feature_names).copy()

    def __repr__(self) -> str:
        return f"NoSeparation(n_features={len(self.feature_names)})"


class Consensus(Oracle):
    """A vote of oracles: a feature is separated only where enough of them agree.

    A graph that was learned from data may be wrong. Where it is uncertain, graphs learned from
    resamples of the data disagree, and this oracle does not separate.

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

    def __init__(self, oracles: Sequence[Oracle], share: float = 0.9) -> None:
        if not isinstance(oracles, Sequence):
            raise refusal("oracles", "a list", oracles, "Put the oracle into a list", TypeError)
        self._oracles = tuple(as_oracle(oracle, "each of oracles") for oracle in oracles)
        self._share = check_real(share, "share", above=0.0, high=1.0)
        if not self._oracles:
            raise refusal("oracles", "at least one", [], _ADVICE)
        targets = [oracle.target for oracle in self._oracles if oracle.target is not None]
        self.target = targets[0] if targets else None
        self.feature_names = tuple(self._oracles[0].feature_names)
        for target in targets:
            if target != self.target:
                condition = f"about the same target, {self.target!r}"
                raise refusal("oracles", condition, target, "Leave out oracles of other targets")
        for number, oracle in enumerate(self._oracles):
            names = tuple(oracle.feature_names)
            if names != self.feature_names:
                condition = f"over the same features in the same order, {self.feature_names!r}"
                advice = f"See oracle {number}, and pass features= to graph.oracle"
                raise refusal("oracles", condition, names, advice)

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
