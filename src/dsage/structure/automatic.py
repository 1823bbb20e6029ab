"""Choose between the linear and the basis score by what the data show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dsage.data.rows import Rows
from dsage.structure.blocks import Blocks
from dsage.structure.constraints import Constraints
from dsage.structure.scores.approximation import Approximation
from dsage.structure.scores.base import SCORES, Parents, Score
from dsage.structure.scores.basis import BasisScore
from dsage.structure.scores.choose import choose_score, score_name
from dsage.structure.searches.local import tabu
from dsage.structure.source import Data, kind_of


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
    """
    kind = kind_of(data)
    table = source.select(data.names) if isinstance(source, Rows) else None
    name = score_name(score, kind, has_rows=table is not None)
    given = {option: value for option, value in options.items() if value is not None}
    if table and score == "auto" and kind == "continuous" and set(given) <= {"penalty", "gamma"}:
        return choose_for_numbers(data, table, constraints, **given)
    if table and name == "basis" and set(given) <= {"penalty", "gamma"}:
        blocks = Blocks.from_table(table)
        return ChosenScore(BasisScore(table, blocks, **given), name, blocks)
    needs_rows = SCORES.traits(name).get("needs_rows")
    return ChosenScore(choose_score(table if table and needs_rows else data, name, **given), name)


def choose_for_numbers(
    data: Data,
    table: Rows,
    constraints: Constraints,
    **options: Any,  # noqa: ANN401
) -> ChosenScore:
    """Return the extended BIC where it is as good as the basis score, which is chosen otherwise.

    The parents of each node come from a tabu search with the extended BIC. A node is curved if
    basis functions of its parents, its normal score, or basis functions of one more parent explain
    it better than a linear regression with at most one more parent, by 2 log(n_nodes) more than
    the penalty. In linear-Gaussian data no node is, whatever its parents are.

    Parameters
    ----------
    data : Moments
        The moments of the columns.
    table : Rows
        Their rows.
    constraints : Constraints
    **options
        ``penalty`` and ``gamma`` of both scores.
    """
    linear = choose_score(data, "ebic", **options)
    blocks = Blocks.from_table(table)
    near = Approximation(blocks, **options)
    graph = tabu(linear, constraints).graph
    place = {name: node for node, name in enumerate(linear.names)}
    margin = 2.0 * np.log(max(2, len(place)))
    curved = []
    for name, node in place.items():
        parents: Parents = tuple(sorted(place[parent] for parent in graph.parents(name)))
        straight, best = near.straight(node, parents), near.best(node, parents)
        if (best > straight + margin).any():
            curved.append(name)
    if not curved:
        return ChosenScore(linear, "ebic", blocks, ())
    return ChosenScore(BasisScore(table, blocks, **options), "basis", blocks, tuple(curved))
