"""Partial orders of the features: which ones must be known before which."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from dsage._check import check_member, check_names, check_same_names, refusal
from dsage.graphs.graph import Graph, check_graph
from dsage.graphs.pairs import check_pairs
from dsage.orderings.partial.parts import Part, decompose
from dsage.orderings.positions import as_positions

DIRECTIONS = ("distal", "proximate")
"""Causes before effects, or effects before causes."""


class Order:
    """A partial order of named features: some must come before others.

    With it the values are *asymmetric* (Frye, Rowat & Feige, 2020): means over the orderings that
    respect the order, its linear extensions, all equally likely.

    Parameters
    ----------
    feature_names : iterable of str
        The features.
    pairs : iterable of (str, str), default=()
        ``("a", "b")`` if a comes before b. The order is the transitive closure of the pairs.

    Notes
    -----
    Orders are immutable. Two of them are equal if they order the same features in the same way,
    even if they were made from different pairs.

    Examples
    --------
    >>> order = Order(["a", "b", "c", "e"], [("a", "b"), ("b", "c")])
    >>> order
    Order(4 features: a < b, b < c)
    >>> order.is_consistent(["a", "e", "b", "c"]), order.is_consistent(["c", "a", "b", "e"])
    (True, False)
    >>> order.n_extensions
    4
    """

    def __init__(self, feature_names: Iterable[str], pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._names = check_names(feature_names, "feature_names")
        if not self._names:
            raise refusal("feature_names", "at least one", [], "Name the features")
        before = np.zeros((len(self._names), len(self._names)), dtype=np.bool_)
        for one, other in check_pairs(pairs, self._names, "pairs", "the features"):
            before[one, other] = True
        self._before = _close(before, self._names)
        self._part: Part | None = None

    @classmethod
    def tiers(cls, tiers: Iterable[Iterable[str]]) -> Self:
        """Return the order in which each group of features comes before the next.

        Parameters
        ----------
        tiers : iterable of iterables of str
            The groups; features within a group are unordered. Every feature is in one group.

        Examples
        --------
        >>> Order.tiers([["age", "sex"], ["income"]])
        Order(3 features: age < income, sex < income)
        """
        if isinstance(tiers, str) or not isinstance(tiers, Iterable):
            raise refusal("tiers", "a list of lists", tiers, "Pass [['a', 'b'], ['c']]", TypeError)
        groups = [check_names(tier, "each of tiers") for tier in tiers]
        names = check_names([name for group in groups for name in group], "tiers")
        filled = [group for group in groups if group]
        return cls(names, [pair for two in pairwise(filled) for pair in product(*two)])

    @classmethod
    def from_graph(
        cls,
        graph: Graph,
        features: Iterable[str],
        direction: Literal["distal", "proximate"] = "distal",
    ) -> Self:
        """Return the causal order of features in a graph.

        A feature is a cause of another if a directed path leads from it to the other, through any
        nodes. Bidirected edges order nothing.

        Parameters
        ----------
        graph : Graph
            The graph. A learned graph is one member of its equivalence class; the others have the
            same separations but may have other causes.
        features : iterable of str
            The features, among its nodes.
        direction : {"distal", "proximate"}, default="distal"
            ``"distal"``: causes first, so that root causes get the credit.
            ``"proximate"``: effects first, so that features close to the outcome get it.

        Examples
        --------
        >>> graph = Graph(["a", "b", "y", "c"], [("a", "b"), ("b", "y"), ("y", "c")])
        >>> Order.from_graph(graph, ["a", "b", "c"])
        Order(3 features: a < b, b < c)
        >>> Order.from_graph(graph, ["a", "b", "c"], direction="proximate")
        Order(3 features: b < a, c < b)
        """
        check_graph(graph)
        check_member(direction, DIRECTIONS, "direction", "the directions")
        names = check_names(features, "features")
        for name in names:
            check_member(name, graph.names, "features", "the nodes of the graph")
        among = set(names)
        pairs = [
            (cause, name) if direction == "distal" else (name, cause)
            for name in names
            for cause in graph.ancestors(name)
            if cause in among
        ]
        both = set(pairs)
        for one, other in pairs:
            if (other, one) in both:
                cycle = f"{one} -> {other} -> {one}"
                advice = "Neither comes first: pass the order as pairs, Order(features, pairs)"
                raise refusal("graph", "without a cycle through two features", cycle, advice)
        return cls(names, pairs)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features."""
        return self._names

    @property
    def before(self) -> npt.NDArray[np.bool_]:
        """Whether feature i comes before feature j, (n_features, n_features)."""
        return self._before.copy()

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs of the transitive reduction, which has the fewest pairs."""
        counted = self._before.astype(np.intp)
        direct = self._before & (counted @ counted == 0)
        return tuple((self._names[one], self._names[other]) for one, other in np.argwhere(direct))

    @property
    def n_extensions(self) -> int | None:
        """Number of orderings that respect the order; None if counting is too expensive."""
        return self.part.n_extensions()

    @property
    def part(self) -> Part:
        """The decomposed order, to draw from."""
        if self._part is None:
            self._part = decompose(self._before)
        return self._part

    def is_consistent(self, ordering: Sequence[str] | Sequence[int]) -> bool:
        """Return whether an ordering of all features, by names or positions, respects the order."""
        place = np.argsort(as_positions(ordering, self._names))
        return bool((place[:, None] < place)[self._before].all())

    def arranged(self, feature_names: Iterable[str]) -> Self:
        """Return the same order with its features in the given sequence.

        Examples
        --------
        >>> Order(["a", "b"], [("a", "b")]).arranged(["b", "a"]).feature_names
        ('b', 'a')
        """
        names = check_names(feature_names, "feature_names")
        if names == self._names:
            return self
        check_same_names(names, self._names, "features", "those of the order")
        return type(self)(names, self.pairs)

    def _canonical(self) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
        return frozenset(self._names), frozenset(self.pairs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Order):
            return NotImplemented
        return self._canonical() == other._canonical()

    def __hash__(self) -> int:
        return hash(self._canonical())

    def __reduce__(self) -> tuple[Any, ...]:
        # The ideals are many, and cheaper to list again than to store.
        return type(self), (self._names, self.pairs)

    def __repr__(self) -> str:
        drawn = [f"{one} < {other}" for one, other in self.pairs]
        shown = ", ".join(drawn[:6]) + (", ..." if len(drawn) > 6 else "")
        count = f"{len(self._names)} feature{'s' if len(self._names) != 1 else ''}"
        return f"Order({count}{': ' if shown else ''}{shown})"


def _close(before: npt.NDArray[np.bool_], names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return the transitive closure; refuse a cycle."""
    parents = {at: np.flatnonzero(column).tolist() for at, column in enumerate(before.T)}
    try:
        sequence = list(graphlib.TopologicalSorter(parents).static_order())
    except graphlib.CycleError as error:
        cycle = " < ".join(names[at] for at in error.args[1])
        raise refusal("pairs", "without a cycle", cycle, "Remove one of these pairs") from None
    closed = before.copy()
    for at in sequence:
        closed[:, at] |= closed[:, parents[at]].any(axis=1)
    closed.flags.writeable = False
    return closed
