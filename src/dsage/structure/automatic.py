"""Choose between the linear and the basis score, depending on the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dsage.data.pools import single_blas
from dsage.data.rows import Rows
from dsage.structure.blocks import Blocks
from dsage.structure.constraints import Constraints
from dsage.structure.scores.approximation import Approximation
from dsage.structure.scores.base import SCORES, Parents, Score
from dsage.structure.scores.basis import BasisScore
from dsage.structure.scores.choose import choose_score, score_name
from dsage.structure.screening import Suspect, find_suspects
from dsage.structure.searches.local import tabu
from dsage.structure.source import Data, kind_of

# With more columns, only some of them are examined closely.
_MAX_COLUMNS, _MAX_CLOSE = 100, 48


class ChosenScore(NamedTuple):
    """A score, its name, and the columns that decided."""

    score: Score
    name: str
    blocks: Blocks | None = None
    curved: tuple[str, ...] | None = None  # those that a linear regression does not explain best


def find_score(
    score: str,
    data: Data,
    source: Data,
    constraints: Constraints,
    options: Mapping[str, Any],
    target: str | None = None,
) -> ChosenScore:
    """Return the score of the columns to search.

    Parameters
    ----------
    score : str
        Its name, or ``"auto"``.
    data : Data
        The columns to search, or their sufficient statistics.
    source : Data
        The rows, if there are any.
    constraints : Constraints
    options : mapping
        Options of the score; None for a default.
    target : str, optional
        The column whose separations matter.
    """
    kind = kind_of(data)
    table = source.select(data.names) if isinstance(source, Rows) else None
    name = score_name(score, kind, has_rows=table is not None)
    given = {option: value for option, value in options.items() if value is not None}
    if table and score == "auto" and kind == "continuous" and set(given) <= {"penalty", "gamma"}:
        return choose_for_numbers(data, table, constraints, target, **given)
    if table and name == "basis" and set(given) <= {"penalty", "gamma"}:
        blocks = Blocks.from_table(table)
        return ChosenScore(BasisScore(table, blocks, target=target, **given), name, blocks)
    needs_rows = SCORES.traits(name).get("needs_rows")
    return ChosenScore(choose_score(table if table and needs_rows else data, name, **given), name)


def choose_for_numbers(
    data: Data,
    table: Rows,
    constraints: Constraints,
    target: str | None = None,
    **options: Any,  # noqa: ANN401
) -> ChosenScore:
    """Return the extended BIC if it is as good as the basis score, and the basis score otherwise.

    The parents of each node come from a tabu search with the extended BIC. A node is curved if
    basis functions of its parents, its normal score, or basis functions of one more parent explain
    it better than a linear regression with at most one more parent, by 2 log(n_nodes) more than
    the penalty. In linear-Gaussian data no node is, whatever its parents are.

    With more than 100 columns, the moments of all basis functions would take longer than the
    search. So correlations of residuals with functions find the nodes that may be curved, see
    :func:`~dsage.structure.screening.find_suspects`, and the most promising ones, with at most 48
    columns together, decide.

    Parameters
    ----------
    data : Moments
        The moments of the columns.
    table : Rows
        Their rows.
    constraints : Constraints
    target : str, optional
        The column whose separations matter.
    **options
        ``penalty`` and ``gamma`` of both scores.
    """
    linear = choose_score(data, "ebic", **options)
    with single_blas():
        graph = tabu(linear, constraints).graph
    place = {name: node for node, name in enumerate(linear.names)}
    parents = [tuple(sorted(place[parent] for parent in graph.parents(name))) for name in place]
    margin = 2.0 * math.log(max(2, len(place)))
    if len(place) <= _MAX_COLUMNS:
        blocks = Blocks.from_table(table)
        curved = _curved(blocks, range(len(place)), parents, margin, options)
        if not curved:
            return ChosenScore(linear, "ebic", blocks, ())
        basis = BasisScore(table, blocks, target=target, **options)
        return ChosenScore(basis, "basis", blocks, curved)
    price = math.log(data.n_rows) / 2
    close = _close_look(find_suspects(table, parents, price=price, margin=margin), parents)
    curved = ()
    if close:
        chosen = sorted({node for group in close.values() for node in group})
        local = {node: at for at, node in enumerate(chosen)}
        blocks = Blocks.from_table(table.select([linear.names[node] for node in chosen]))
        known = [tuple(local[each] for each in parents[node] if each in local) for node in chosen]
        curved = _curved(blocks, [local[node] for node in close], known, margin, options)
    if not curved:
        return ChosenScore(linear, "ebic", None, ())
    blocks = Blocks.from_table(table)
    return ChosenScore(BasisScore(table, blocks, target=target, **options), "basis", blocks, curved)


def _close_look(
    suspects: Sequence[Suspect], parents: Sequence[Parents]
) -> dict[int, tuple[int, ...]]:
    """Return the suspects to examine, each with all columns that it needs."""
    taken: set[int] = set()
    close: dict[int, tuple[int, ...]] = {}
    for suspect in suspects:
        group = suspect.node, suspect.other, *parents[suspect.node]
        if len(taken.union(group)) <= _MAX_CLOSE:
            close[suspect.node] = group
            taken.update(group)
    return close


def _curved(
    blocks: Blocks,
    nodes: Iterable[int],
    parents: Sequence[Parents],
    margin: float,
    options: Mapping[str, Any],
) -> tuple[str, ...]:
    """Return the names of those nodes that linear regressions do not explain best."""
    near = Approximation(blocks, **options)
    with single_blas():
        return tuple(
            blocks.names[node]
            for node in nodes
            if (near.best(node, parents[node]) > near.straight(node, parents[node]) + margin).any()
        )
