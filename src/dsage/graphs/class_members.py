"""The members of a Markov equivalence class: how many there are, all of them, or a sample.

The undirected edges of a CPDAG form chordal components that can be directed independently of each
other. A direction of a component has exactly one source. Once the source is chosen, some further
edges follow, and the rest forms smaller components (He, Jia & Yu, 2015). So members are counted,
listed and drawn, each with the same probability, by recursion over sources.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np

from dsage._check import check_count
from dsage.graphs.equivalence import CPDAG
from dsage.graphs.graph import Graph

Edge = tuple[str, str]
Component = frozenset[str]


class ClassMembers:
    """The DAGs of a Markov equivalence class.

    Parameters
    ----------
    cpdag : CPDAG
        The class.

    Examples
    --------
    >>> from dsage.graphs import cpdag
    >>> chain = Graph(list("abc"), [("a", "b"), ("b", "c")])
    >>> members = ClassMembers(cpdag(chain))
    >>> len(members)
    3
    >>> for member in members:
    ...     print(member)
    Graph(3 nodes, 2 edges: a -> b, b -> c)
    Graph(3 nodes, 2 edges: b -> a, b -> c)
    Graph(3 nodes, 2 edges: b -> a, c -> b)
    """

    def __init__(self, cpdag: CPDAG) -> None:
        self._cpdag = cpdag
        self._place = {name: at for at, name in enumerate(cpdag.names)}
        self._near: dict[str, set[str]] = {name: set() for name in cpdag.names}
        for pair in cpdag.undirected:
            one, other = sorted(pair)
            self._near[one].add(other)
            self._near[other].add(one)
        self._parts = self._components(set(cpdag.names))
        self._rooted: dict[tuple[Component, str], tuple[list[Edge], list[Component]]] = {}
        self._sizes: dict[Component, int] = {}

    @property
    def n_members(self) -> int:
        """The number of members, however large; `len` is limited."""
        return math.prod(self._size(part) for part in self._parts)

    def __len__(self) -> int:
        return self.n_members

    def __iter__(self) -> Iterator[Graph]:
        for edges in product(*(list(self._all(part)) for part in self._parts)):
            yield self._graph(edge for some in edges for edge in some)

    def draw(self, rng: np.random.Generator) -> Graph:
        """Return a member, drawn with equal probabilities."""
        return self._graph(edge for part in self._parts for edge in self._draw_part(part, rng))

    def some(self, most: int, rng: np.random.Generator) -> list[Graph]:
        """Return all members if there are at most this many, and otherwise a sample of this size.

        The members of a sample are drawn independently, with equal probabilities.
        """
        if self.n_members <= check_count(most, "most"):
            return list(self)
        return [self.draw(rng) for _ in range(most)]

    def _graph(self, edges: Iterable[Edge]) -> Graph:
        return Graph(self._cpdag.names, [*self._cpdag.directed, *edges])

    def _sort(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=self._place.__getitem__)

    def _components(
        self, nodes: set[str], edges: set[frozenset[str]] | None = None
    ) -> list[Component]:
        """Return the sets of at least two nodes that undirected edges connect.

        `edges` are the edges to consider, by default all between the nodes.
        """
        found, left = [], self._sort(nodes)
        seen: set[str] = set()
        for start in left:
            if start in seen:
                continue
            members, waiting = {start}, [start]
            while waiting:
                node = waiting.pop()
                for near in self._near[node] & nodes:
                    is_open = edges is None or frozenset((node, near)) in edges
                    if is_open and near not in members:
                        members.add(near)
                        waiting.append(near)
            seen |= members
            if len(members) > 1:
                found.append(frozenset(members))
        return found

    def _size(self, part: Component) -> int:
        if part not in self._sizes:
            self._sizes[part] = sum(self._size_from(part, root) for root in part)
        return self._sizes[part]

    def _size_from(self, part: Component, root: str) -> int:
        return math.prod(self._size(each) for each in self._split(part, root)[1])

    def _all(self, part: Component) -> Iterator[list[Edge]]:
        for root in self._sort(part):
            edges, rest = self._split(part, root)
            for chosen in product(*(list(self._all(each)) for each in rest)):
                yield [*edges, *(edge for some in chosen for edge in some)]

    def _draw_part(self, part: Component, rng: np.random.Generator) -> list[Edge]:
        roots = self._sort(part)
        sizes = [self._size_from(part, root) for root in roots]
        shares = np.array([size / sum(sizes) for size in sizes])
        edges, rest = self._split(part, roots[int(rng.choice(len(roots), p=shares / shares.sum()))])
        return [*edges, *(edge for each in rest for edge in self._draw_part(each, rng))]

    def _split(self, part: Component, root: str) -> tuple[list[Edge], list[Component]]:
        """Return the edges that follow from the source of a component, and the rest."""
        key = part, root
        if key not in self._rooted:
            self._rooted[key] = self._follow(part, root)
        return self._rooted[key]

    def _follow(self, part: Component, root: str) -> tuple[list[Edge], list[Component]]:
        edges: list[Edge] = []
        rest: list[Component] = []
        inner, done = {root}, {root}
        while inner:
            # The next nodes, by their distance from the source; edges lead away from it.
            outer = {near for node in inner for near in self._near[node] & part} - done
            for node in self._sort(inner):
                edges += [(node, near) for near in self._sort(self._near[node] & outer)]
            between = {
                frozenset((one, other)) for one in outer for other in self._near[one] & outer
            }
            has_changed = True
            while has_changed:
                has_changed = False
                for pair in sorted(between, key=sorted):
                    for one, other in (self._sort(pair), self._sort(pair)[::-1]):
                        # An edge into one of them only must not make a new collider.
                        into = [tail for tail, head in edges if head == one]
                        if any(tail not in self._near[other] for tail in into if tail != other):
                            edges.append((one, other))
                            between.discard(pair)
                            has_changed = True
                            break
            rest += self._components(outer, between)
            done |= outer
            inner = outer
        return edges, rest
