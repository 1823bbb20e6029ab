"""Remove columns that add no information before a search, and restore them after it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

import numpy as np

from dsage._check import refusal
from dsage.data.rows import Rows
from dsage.graphs import Graph
from dsage.structure.constraints import Constraints
from dsage.structure.counts import Counts
from dsage.structure.degeneracies import Degeneracies, degeneracies, discrete_degeneracies
from dsage.structure.moments import Moments
from dsage.structure.source import Data

# A discrete column with more categories than this and fewer than two rows for each is an
# identifier.
_MAX_RARE_CATEGORIES = 50

_NONE = Degeneracies((), (), (), too_few_rows=False)


class Reduction:
    """The columns to search, without constants and copies.

    A constant is independent of everything: it is left out and restored as an isolated node. Of a
    group of copies (up to shift and scale, or up to the names of categories) one is kept and
    restored as the only parent of the others. No score can decide between copies. Given the kept
    one, the others add nothing; without it they stay connected to everything that it is connected
    to, so that no false separation arises. The copy that the constraints restrict least is kept.
    With `keep_all`, nothing is left out. `data` is None if no column is left to search. The
    `indicators` of missing values are columns that the user does not have, and cannot drop. The
    columns in `merged` have lost categories; if they are constant, another warning says so.
    """

    def __init__(
        self,
        data: Data,
        constraints: Constraints,
        *,
        keep_all: bool = False,
        indicators: Mapping[str, tuple[str, ...]] | None = None,
        merged: Container[str] = (),
    ) -> None:
        found = _NONE if keep_all else _find_degeneracies(data)
        kept_of = {group: _choose_copy(group, constraints) for group in found.duplicated}
        self._names, self._indicators = data.names, dict(indicators or {})
        self._copies = [
            (kept, name) for group, kept in kept_of.items() for name in group if name != kept
        ]
        left_out = {*found.constant, *(copy for _, copy in self._copies)}
        names = [name for name in data.names if name not in left_out]
        self.data: Data | None = data
        self.constraints = constraints
        if left_out:
            self.data = data.select(names) if names else None
            self.constraints = constraints.select(names, given=self._copies)
        self.warnings = tuple(_warnings(found, kept_of, data, self._indicators, merged))

    def restore(self, graph: Graph) -> Graph:
        """Return the graph with all columns, in the order of the data."""
        edges = [*graph.edges, *self._copies]
        return Graph(self._names, edges, indicators=self._indicators)


def _find_degeneracies(data: Data) -> Degeneracies:
    if isinstance(data, Moments):
        return degeneracies(data)
    found = _NONE
    if isinstance(data, Rows) and data.continuous:
        found |= degeneracies(Moments.from_table(data.select(data.continuous)))
    if isinstance(data, Counts) or data.discrete:
        counts = data if isinstance(data, Counts) else Counts.from_table(data.select(data.discrete))
        _check_categories(counts)
        found |= discrete_degeneracies(counts)
    return found


def most_categories(n_rows: int) -> float:
    """Return the largest number of categories that a graph can be learned with."""
    return max(_MAX_RARE_CATEGORIES, n_rows / 2)


def _check_categories(counts: Counts) -> None:
    """Refuse columns with hardly any repeated category: their tables are as large as the data."""
    most = most_categories(counts.n_rows)
    if rare := [
        name for name, n in zip(counts.names, counts.n_categories, strict=True) if n > most
    ]:
        advice = "They have more categories than half the rows: drop or convert these columns"
        raise refusal("the discrete columns", "of classes that recur", rare, advice)


def _choose_copy(group: Sequence[str], constraints: Constraints) -> str:
    """Return the first copy that may have every edge that any copy may have."""
    at = [constraints.names.index(name) for name in group]
    outside = np.setdiff1d(np.arange(len(constraints.names)), at)
    allowed = constraints.allowed
    for name, node in zip(group, at, strict=True):
        others = [other for other in at if other != node]
        is_freest = all(
            (allowed[node, outside] >= allowed[other, outside]).all()
            and (allowed[outside, node] >= allowed[outside, other]).all()
            for other in others
        )
        if is_freest and constraints.max_parents and allowed[node, others].all():
            return name
    condition = "such that one of several copies may have all edges of the others, and cause them"
    advice = "Keep one of these columns: they carry the same information"
    raise refusal("the constraints", condition, list(group), advice)


def _warnings(
    found: Degeneracies,
    kept_of: dict[tuple[str, ...], str],
    data: Data,
    indicators: Container[str],
    merged: Container[str],
) -> Iterator[str]:
    if constant := [name for name in found.constant if name not in merged]:
        yield f"These columns are constant and stay isolated in the graph: {_list(constant)}."
    for group, kept in kept_of.items():
        if copies := [name for name in group if name != kept and name not in indicators]:
            yield (
                f"These columns are copies of {kept!r} up to shift and scale, or the names of "
                f"categories, and become its children: {_list(copies)}. Consider dropping them."
            )
    for name, others in found.determined:
        if name in indicators:
            continue
        yield (
            f"{name!r} is a linear function of {_list(others)}. Several graphs explain such data "
            "equally well, and one of them is learned. Consider dropping one of these columns."
        )
    if found.too_few_rows:
        yield (
            f"There are {data.n_rows} rows for {len(data.names)} columns: too few to learn which "
            "columns depend on each other. Expect missing edges, and so false separations."
        )


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return f"{shown}, and {len(names) - 10} more" if len(names) > 10 else shown
