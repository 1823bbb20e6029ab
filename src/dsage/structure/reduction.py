"""Take out the columns that carry no information of their own, and put them back afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dsage._check import message
from dsage.graphs import Graph
from dsage.structure.constraints import Constraints
from dsage.structure.counts import Counts
from dsage.structure.data import Table
from dsage.structure.degeneracies import Degeneracies, degeneracies
from dsage.structure.moments import Moments


class Reduction:
    """The data that a search can trust, and what was left out of them.

    A constant is independent of everything: it is left out and comes back isolated. Of a group of
    copies (up to shift and scale) one is kept and comes back as the only parent of the others.
    No score can decide between copies. Given the kept one, the others add nothing, and the graph
    says so; without it they stay connected to all that it is connected to, so that no separation
    is invented.

    Parameters
    ----------
    data : Table, Moments or Counts
        The data.
    constraints : Constraints
        What is known of the graph of all columns.

    Attributes
    ----------
    data : Table, Moments or Counts
        The columns to search with.
    constraints : Constraints
        What is known of their graph.
    warnings : tuple of str
        What the user has to know.

    Examples
    --------
    >>> rows = [[1.0, 2.0, 7.0], [3.0, 6.0, 7.0], [4.0, 8.0, 7.0]]
    >>> moments = Moments.from_array(rows, ["a", "b", "c"])
    >>> reduction = Reduction(moments, Constraints(list("abc")))
    >>> reduction.data.names
    ('a',)
    >>> reduction.restored(Graph(["a"], []))
    Graph(3 nodes, 1 edge: a -> b)
    """

    def __init__(self, data: Table | Moments | Counts, constraints: Constraints) -> None:
        found = _degeneracies(data)
        kept_of = {group: _kept(group, constraints) for group in found.duplicated}
        self._names = data.names
        self._copies = [
            (kept, name) for group, kept in kept_of.items() for name in group if name != kept
        ]
        left_out = {*found.constant, *(copy for _, copy in self._copies)}
        kept_names = [name for name in data.names if name not in left_out]
        self.data = data.select(kept_names) if left_out else data
        self.constraints = constraints.select(kept_names) if left_out else constraints
        self.warnings = tuple(_warnings(found, kept_of, data))

    def restored(self, graph: Graph) -> Graph:
        """Return the graph with the columns that were left out, in the order of the data."""
        return Graph(self._names, [*graph.edges, *self._copies])


def _degeneracies(data: Table | Moments | Counts) -> Degeneracies:
    if isinstance(data, Table) and data.continuous:
        return degeneracies(Moments.from_table(data.select(data.continuous)))
    if isinstance(data, Moments):
        return degeneracies(data)
    return Degeneracies((), (), (), too_few_rows=False)


def _kept(group: Sequence[str], constraints: Constraints) -> str:
    """Return the first of a group of copies that may cause all others."""
    at = {name: constraints.names.index(name) for name in group}
    for name in group:
        others = [at[other] for other in group if other != name]
        if constraints.max_parents and constraints.allowed[at[name], others].all():
            return name
    raise ValueError(
        message(
            "the constraints",
            "such that one of several copies may be the parent of the others",
            list(group),
            "Drop all but one of these columns: they are the same up to shift and scale",
        )
    )


def _warnings(
    found: Degeneracies,
    kept_of: dict[tuple[str, ...], str],
    data: Table | Moments | Counts,
) -> Iterable[str]:
    if found.constant:
        yield f"These columns are constant and stay isolated in the graph: {_list(found.constant)}."
    for group, kept in kept_of.items():
        copies = [name for name in group if name != kept]
        yield (
            f"These columns are copies of {kept!r} up to shift and scale, and become its children: "
            f"{_list(copies)}. Keep one of them only, unless you want them to share its value."
        )
    for name, others in found.determined:
        yield (
            f"{name!r} is a linear function of {_list(others)}. Several graphs explain such data "
            "equally well; one of them is learned. Consider dropping one of these columns."
        )
    if found.too_few_rows:
        yield (
            f"There are {data.n_rows} rows for {len(data.names)} columns: too few to tell which "
            "columns depend on which. Expect missing edges, and so false separations."
        )


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return f"{shown}, and {len(names) - 10} more" if len(names) > 10 else shown
