"""Separations and boundaries of features that represent several nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dsage._check import check_known, check_member, check_members, check_names, refusal
from dsage.graphs.separation import Oracle, as_oracle

Mask = npt.NDArray[np.bool_]

Pairs = Sequence[tuple[str, str]]

_OF_GRAPH = "the nodes of the graph"


class PartsOracle(Oracle):
    """An oracle about features that represent several nodes each, from one about the nodes.

    A number with missing values has two nodes, itself and an indicator of its missing values, which
    several numbers may share. To know a feature is to know all its nodes. With U the nodes of a
    coalition S, let R be what Bayes-ball from the target Y reaches given U: the Markov boundary
    M(U), and the nodes outside U that are not separated from Y. Then the features of S with a node
    in R form the boundary of S, and those outside S without a node in R are separated.

    Parameters
    ----------
    oracle : Oracle
        The oracle about the nodes.
    parts : mapping of str to iterables of str
        The nodes of each feature, in the order of the columns of `known`. Nodes may be shared.
        Nodes of no feature are never known.

    Notes
    -----
    Why this is right if `oracle` answers for a graph: separation in a graph is a compositional
    graphoid. Let N(j) be the nodes of feature j.

    *Separation.* If no node of N(j) is reached, then ``Y _||_ N(j) - U | U`` (composition), so j
    adds nothing: Theorem 1. If a node outside U is reached, j is not separated (decomposition). If
    only shared nodes, which are already known, are reached, j adds nothing either, but does not
    count as separated: if features a and b consisted of one shared node only, each would be
    separated given the other, so the boundaries of {a}, {a, b} and {b} would have to be one set.

    *Boundaries.* Let B be the features of S with a node in M = M(U), and U(B) their nodes, so M is
    in U(B) and U(B) in U. ``Y _||_ U - M | M`` gives ``Y _||_ U - U(B) | U(B)`` (weak union), so
    for an optimal model ``v(B) = v(S)``: Theorem 1. Without shared nodes it is the smallest such
    set; see :class:`GroupedOracle`.

    *Both agree.* If j is separated given S, then M(U + N(j)) = M(U), which has no node of j: the
    boundary stays. If the boundary stays when j joins, M(U + N(j)) has no node of j, so it is
    M(U), and nothing of N(j) is reached given U (weak union).

    Examples
    --------
    >>> from dsage import Graph
    >>> nodes = ["age", "age is missing", "sex", "y"]
    >>> graph = Graph(nodes, [("age is missing", "y"), ("sex", "age")])
    >>> oracle = PartsOracle(graph.oracle("y"), {"age": ["age", "age is missing"], "sex": ["sex"]})
    >>> oracle.separated(np.array([[False, False], [False, True]]))
    array([[False,  True],
           [False, False]])
    >>> oracle.boundary(np.array([[True, True], [False, True]]))
    array([[ True, False],
           [False, False]])
    """

    def __init__(self, oracle: Oracle, parts: Mapping[str, Iterable[str]]) -> None:
        self.oracle = as_oracle(oracle)
        if not isinstance(parts, Mapping):
            raise refusal("parts", "a dict of lists of nodes", parts, "Name each", TypeError)
        self.feature_names = check_names(parts, "parts")
        self.target = self.oracle.target
        self.is_of_graph = self.oracle.is_of_graph
        position = {name: at for at, name in enumerate(self.oracle.feature_names)}
        nodes = [self._positions(name, parts[name], position) for name in self.feature_names]
        sizes = np.array([len(each) for each in nodes], dtype=np.intp)
        self._nodes = np.array([node for each in nodes for node in each], dtype=np.intp)
        self._starts = np.cumsum(sizes) - sizes
        # The features, one for each entry of the nodes.
        self._owners = np.repeat(np.arange(len(nodes)), sizes)

    @staticmethod
    def _positions(name: str, nodes: Iterable[str], position: Mapping[str, int]) -> list[int]:
        parameter = f"parts[{name!r}]"
        found = check_names(nodes, parameter)
        if not found:
            raise refusal(parameter, "at least one node", [], "Leave the feature out")
        return [position[check_member(node, [*position], parameter, "the nodes")] for node in found]

    def separated(self, known: Mask) -> Mask:
        """Return which features outside each coalition have no node that the target reaches."""
        known = check_known(known, self.feature_names)
        return ~(self.reached(known) | known)

    def boundary(self, known: Mask) -> Mask:
        """Return which features of each coalition have a node in its Markov boundary."""
        known = check_known(known, self.feature_names)
        return self.reached(known) & known

    def reached(self, known: Mask) -> Mask:
        """Return which features have a node that the target reaches given each coalition."""
        nodes = np.zeros((len(known), len(self.oracle.feature_names)), dtype=np.bool_)
        for node, owner in zip(self._nodes, self._owners, strict=True):
            nodes[:, node] |= known[:, owner]
        reached = self.oracle.reached(nodes)[:, self._nodes]
        touched: Mask = np.logical_or.reduceat(reached, self._starts, axis=1)
        return touched

    def __repr__(self) -> str:
        return f"PartsOracle({self.oracle!r}, n_features={len(self.feature_names)})"


def check_indicators(
    indicators: Mapping[str, Iterable[str]] | None, names: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return indicators of missing values after checking that they refer to other nodes."""
    given: object = {} if indicators is None else indicators
    if not isinstance(given, Mapping):
        advice = "For example, indicators={'age is missing': ['age']}"
        raise refusal("indicators", "a dict of lists of nodes", given, advice, TypeError)
    found = {}
    for name, nodes in given.items():
        check_member(name, names, "indicators", _OF_GRAPH)
        parameter = f"indicators[{name!r}]"
        found[name] = check_members(nodes, names, parameter, _OF_GRAPH)
        if odd := [node for node in found[name] if node in given]:
            advice = "An indicator has no missing values itself"
            raise refusal(parameter, "without indicators", odd, advice)
    return found


def with_indicators(
    features: Sequence[str], indicators: Mapping[str, Sequence[str]], besides: str
) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each feature: itself, and its indicators that are not features."""
    hidden = [name for name in indicators if name not in {besides, *features}]
    return {
        name: (name, *(each for each in hidden if name in indicators[each])) for name in features
    }


def with_whole_values(
    names: Sequence[str], edges: Pairs, bidirected: Pairs, parts: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, ...], list[tuple[str, str]], list[tuple[str, str]]]:
    """Return a graph with another node for the values of each feature, whether missing or not.

    Causes and effects of a feature with missing values are those of its values, which are not
    observed; what is recorded depends on them and on the indicators. So a feature separates its
    causes from its effects only if it is never missing, as in the data: in rows in which it is
    missing, they depend on each other.

    Parameters
    ----------
    names : sequence of str
        The nodes.
    edges, bidirected : sequence of (str, str)
        The edges of the graph.
    parts : mapping of str to sequences of str
        The nodes of each feature: itself, and its indicators.

    Returns
    -------
    names, edges, bidirected
        With new nodes behind the others.
    """
    indicators = {name: nodes[1:] for name, nodes in parts.items() if len(nodes) > 1}
    whole: dict[str, str] = {}
    for name in indicators:
        new = f"{name}*"
        while new in names or new in whole.values():
            new += "*"
        whole[name] = new

    def moved(pairs: Pairs) -> list[tuple[str, str]]:
        return [(whole.get(one, one), whole.get(other, other)) for one, other in pairs]

    recorded = [(node, name) for name, several in indicators.items() for node in several]
    recorded += [(node, name) for name, node in whole.items()]
    return (*names, *whole.values()), [*moved(edges), *recorded], moved(bidirected)
