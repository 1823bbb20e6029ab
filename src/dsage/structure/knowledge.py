"""A user's prior knowledge about causes, checked before a graph is learned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dsage._check import refusal
from dsage.graphs import Graph
from dsage.structure.constraints import Constraints, Edges


@dataclass(frozen=True)
class Knowledge:
    """Tiers, forbidden and required edges of a graph that is to be learned.

    Attributes
    ----------
    tiers : tuple of tuples of str
        Groups of variables in temporal order: no variable causes one of an earlier group.
    forbidden, required : tuple of (str, str)
        Edges that the graph must not, or must, have.

    Examples
    --------
    >>> known = Knowledge.read(["age", "dose", "y"], tiers=[["age"], ["dose"], ["y"]])
    >>> known.allows(Graph(["age", "dose", "y"], [("dose", "age")]))
    False
    """

    tiers: tuple[tuple[str, ...], ...] = ()
    forbidden: tuple[tuple[str, str], ...] = ()
    required: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(
        cls,
        names: Sequence[str],
        *,
        tiers: Iterable[Iterable[str]] | None = None,
        forbidden: Edges = (),
        required: Edges = (),
    ) -> Knowledge:
        """Return the knowledge about variables after checking it."""
        given = [] if tiers is None else list(tiers)
        if isinstance(tiers, str) or any(isinstance(tier, str) for tier in given):
            advice = "Pass the groups in temporal order, such as [['age', 'sex'], ['income']]"
            raise refusal("tiers", "a list of lists of names", tiers, advice, TypeError)
        made = cls(
            tuple(tuple(tier) for tier in given),
            tuple((one, other) for one, other in forbidden),
            tuple((one, other) for one, other in required),
        )
        Constraints(names, tiers=made.tiers, forbidden=made.forbidden, required=made.required)
        return made

    def __bool__(self) -> bool:
        return bool(self.tiers or self.forbidden or self.required)

    def options(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the options of a search among some of the variables; empty if nothing is known."""
        if not self:
            return {}
        among = set(names)
        return {
            "tiers": [[name for name in tier if name in among] for tier in self.tiers],
            "forbidden": [edge for edge in self.forbidden if set(edge) <= among],
            "required": [edge for edge in self.required if set(edge) <= among],
        }

    def allows(self, graph: Graph) -> bool:
        """Return whether a graph agrees with the knowledge."""
        constraints = Constraints(graph.names, **self.options(graph.names))
        matrix = graph.to_adjacency().to_numpy()
        is_missing = (constraints.required & ~matrix).any()
        return not (is_missing or (matrix & ~constraints.allowed).any())
