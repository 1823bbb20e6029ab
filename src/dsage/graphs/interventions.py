"""How the variables of a graph are drawn one after the other, also if some of them are set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dsage._check import check_names, refusal, shown
from dsage.data.groups import Groups
from dsage.graphs.graph import Graph, check_graph

Mask = npt.NDArray[np.bool_]


class Mechanism(NamedTuple):
    """The variables that a variable depends on, by position: features first, then the target.

    `given` are its parents and, if hidden common causes connect it to variables that come before
    it, these variables and their parents. `natural` marks variables that are used with the values
    that they would have had if they had not been set.
    """

    node: int
    given: tuple[int, ...]
    natural: tuple[bool, ...]


class Interventions:
    """The order in which variables are drawn under ``do(X_S = x_S)``, each from its mechanism.

    The variables that are not set are drawn one after the other, each given its parents: the
    truncated factorization. Bidirected edges divide the variables into *districts*. The members of
    a district are drawn jointly: each also given the members before it and their parents (Tian &
    Pearl, 2002), at the values that these would have had if they had not been set.

    Parameters
    ----------
    graph : Graph
        A graph without directed cycles. Nodes that are neither features nor the target are hidden:
        they are projected out.
    features : iterable of str
        The features, which can be set.
    target : str, optional
        The target. It is never set. It is drawn if a feature depends on it, and otherwise left out.

    Attributes
    ----------
    features : tuple of str
    target : str or None
        The target if a feature depends on it, otherwise None.
    names : tuple of str
        The features and, if it is drawn, the target.
    graph : Graph
        The graph of `names`, without hidden nodes.
    mechanisms : tuple of Mechanism
        One for each of the names, causes before effects.

    Notes
    -----
    All interventions on features are identified if, and only if, no directed edge from a feature
    joins two members of one district; see the documentation, "Method". Other graphs are refused.

    Examples
    --------
    >>> graph = Graph(["rain", "wet", "slip"], [("rain", "wet"), ("wet", "slip")])
    >>> interventions = Interventions(graph, ["rain", "wet"], "slip")
    >>> interventions.names, interventions.mechanisms[1].given
    (('rain', 'wet'), (0,))
    >>> Interventions(Graph(["a", "b"], [("a", "b")], [("a", "b")]), ["a", "b"])
    Traceback (most recent call last):
    ValueError: graph must be one in which the effect of every feature is identified; got 'a -> b'.
    Hidden common causes, too, connect the two: leave one of them out, or the bidirected edge.
    """

    def __init__(self, graph: Graph, features: Iterable[str], target: str | None = None) -> None:
        self.features = check_names(features, "features")
        graph = check_graph(graph)
        wanted = [*self.features, *([] if target is None else [target])]
        if absent := [name for name in wanted if name not in graph]:
            advice = f"It has {shown(graph.names)}: add the nodes, or leave the features out"
            raise refusal("graph", "one with all features and the target", absent, advice)
        if not graph.is_acyclic:
            advice = "These nodes are causes of each other: remove an edge, or leave features out"
            raise refusal(
                "graph",
                "one without directed cycles for causal values",
                [list(cycle) for cycle in graph.cycles],
                advice,
            )
        graph = project(graph, wanted)
        if target is not None and not set(graph.descendants(target)) & set(self.features):
            graph, target = project(graph, self.features), None
        self.target, self.graph = target, graph
        self.names = (*self.features, *([] if target is None else [target]))
        self.mechanisms = tuple(self._find_mechanisms())

    def _find_mechanisms(self) -> Iterable[Mechanism]:
        position = {name: at for at, name in enumerate(self.names)}
        districts = _districts(self.graph, self.names)
        self._check_identified(districts)
        before: list[str] = []
        for name in self.graph.topological_order():
            before.append(name)
            others = _find_connected(name, self.graph, set(before)) - {name}
            given = set(others).union(*map(self.graph.parents, [name, *others])) - {name}
            places = sorted(position[each] for each in given)
            natural = tuple(self.names[at] in others for at in places)
            yield Mechanism(position[name], tuple(places), natural)

    def _check_identified(self, districts: dict[str, frozenset[str]]) -> None:
        for tail, head in self.graph.edges:
            if tail != self.target and districts[tail] is districts[head]:
                between = sorted(districts[tail] - {tail, head}, key=self.names.index)
                way = f" by way of {between}" if between else ""
                condition = "one in which the effect of every feature is identified"
                advice = (
                    f"Hidden common causes, too, connect the two{way}: leave one of them out, or "
                    "the bidirected edge"
                )
                raise refusal("graph", condition, f"{tail} -> {head}", advice)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.features)

    def reduced(self, fixed: Mask, inputs: Mask) -> Mask:
        """Return the set features that change the distribution of other features.

        Let the features `fixed` be set, and let U be the features outside `inputs`. A fixed feature
        without an open directed path to a member of U does not change the distribution of U, and is
        left out; a path is open if none of its inner nodes is set.

        Parameters
        ----------
        fixed, inputs : bool arrays of shape (n_coalitions, n_features)
            The features that are set, and the features whose values the model receives from the
            row, which include the former.

        Returns
        -------
        bool array of shape (n_coalitions, n_features)

        Examples
        --------
        >>> chain = Graph(["a", "b", "c"], [("a", "b"), ("b", "c")])
        >>> known = np.array([[True, True, False]])
        >>> Interventions(chain, ["a", "b", "c"]).reduced(known, known)
        array([[False,  True, False]])
        """
        n_coalitions, n_names = len(fixed), len(self.names)
        # Whether a value, as it was set and as it would have been otherwise, changes the
        # distribution of U.
        actual = np.zeros((n_names, n_coalitions), dtype=np.bool_)
        natural = np.zeros_like(actual)
        for node, given, are_natural in reversed(self.mechanisms):
            matters = natural[node]
            if node < self.n_features:
                matters = matters | (~fixed[:, node] & (actual[node] | ~inputs[:, node]))
            else:
                matters = matters | actual[node]
            for each, is_natural in zip(given, are_natural, strict=True):
                (natural if is_natural else actual)[each] |= matters
        return fixed & actual[: self.n_features].T


class GroupedInterventions:
    """Interventions on groups of features; see :class:`Interventions`."""

    def __init__(self, interventions: Interventions | GroupedInterventions, groups: Groups) -> None:
        self._inner, self._groups = interventions, groups

    def reduced(self, fixed: Mask, inputs: Mask) -> Mask:
        """Return the groups with a member that changes the distribution of other features."""
        expanded = self._groups.expanded
        return self._groups.touched(self._inner.reduced(expanded(fixed), expanded(inputs)))


def project(graph: Graph, names: Sequence[str]) -> Graph:
    """Return the graph over some of the nodes, in which the others are hidden (Verma, 1993).

    A path of directed edges through hidden nodes becomes an edge, and a hidden common cause a
    bidirected edge.

    Examples
    --------
    >>> graph = Graph(["h", "a", "b", "c"], [("h", "a"), ("h", "b"), ("b", "c")])
    >>> project(graph, ["a", "c"])
    Graph(2 nodes, 0 edges, 1 bidirected: a <-> c)
    """
    children = {name: set(graph.children(name)) for name in graph.names}
    parents = {name: set(graph.parents(name)) for name in graph.names}
    spouses: dict[str, set[str]] = {name: set() for name in graph.names}
    for one, other in graph.bidirected:
        spouses[one].add(other)
        spouses[other].add(one)
    for hidden in [name for name in graph.names if name not in set(names)]:
        below, above, beside = children.pop(hidden), parents.pop(hidden), spouses.pop(hidden)
        for name in above:
            children[name] = (children[name] | below) - {hidden}
        for name in below:
            parents[name] = (parents[name] | above) - {hidden}
            spouses[name] |= (below | beside) - {name}
        for name in beside:
            spouses[name] = (spouses[name] | below) - {hidden, name}
    edges = [(name, child) for name in names for child in children[name]]
    both = [(name, other) for name in names for other in spouses[name]]
    return Graph(names, edges, both)


def _districts(graph: Graph, names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the district of each node: itself and all nodes connected by bidirected edges."""
    found: dict[str, frozenset[str]] = {}
    for name in names:
        if name not in found:
            members = frozenset(_find_connected(name, graph, set(graph.names)))
            found |= dict.fromkeys(members, members)
    return found


def _find_connected(start: str, graph: Graph, among: set[str]) -> set[str]:
    """Return the nodes that bidirected edges connect to `start`, through nodes in `among`."""
    spouses: dict[str, list[str]] = {}
    for one, other in graph.bidirected:
        if one in among and other in among:
            spouses.setdefault(one, []).append(other)
            spouses.setdefault(other, []).append(one)
    found, left = {start}, [start]
    while left:
        new = [each for each in spouses.get(left.pop(), []) if each not in found]
        found.update(new)
        left += new
    return found
