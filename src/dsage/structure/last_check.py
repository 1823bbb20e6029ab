"""Test what a graph claims about the target, and put edges back where the data reject it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import qr
from scipy.stats import chi2

from dsage.graphs import Graph
from dsage.structure.blocks import Blocks, Floats, Ints
from dsage.structure.constraints import Constraints
from dsage.structure.result import Rejection

# The probability that an edge is put back although all claims are true.
_LEVEL = 0.01
# Rows for each column that is known.
_ROWS_PER_COLUMN = 10


def reject_claims(
    graph: Graph, blocks: Blocks, target: str, constraints: Constraints | None = None
) -> tuple[Rejection, ...]:
    """Return the edges between the target and other variables that the graph lacks.

    A DAG claims that each variable is independent of those before it, given its parents. This is
    tested for the target and each variable that is not next to it, in the order of the graph, with
    the generalised covariance measure (Shah & Peters, 2020) of regressions on blocks: the later of
    the two, and the basis functions of the other, are regressed on the basis functions of the
    parents and on products of two parents. Their residuals must be uncorrelated, whatever their
    spread. With d variables, a claim is rejected if p < 0.01 / d, so that the probability to put
    back an edge that is not there is about 1 %.

    Parameters
    ----------
    graph : Graph
        A DAG over the variables of `blocks`.
    blocks : Blocks
    target : str
    constraints : Constraints, optional
        Edges that these forbid are not returned.
    """
    names = blocks.names
    place = {name: node for node, name in enumerate(names)}
    rank = {name: number for number, name in enumerate(graph.topological_order())}
    children = {name for name in names if target in graph.parents(name)}
    others = [
        name
        for name in names
        if name != target and name not in children and name not in graph.parents(target)
    ]
    found = []
    earlier = [name for name in others if rank[name] < rank[target]]
    claims = [(target, earlier)]
    claims += [(name, [target]) for name in others if rank[name] > rank[target]]
    for child, tails in claims:
        parents = sorted(place[parent] for parent in graph.parents(child))
        if not tails:
            continue
        known = _known(blocks, parents)
        for tail, p_value in zip(tails, _test(blocks, place[child], tails, known), strict=True):
            is_allowed = constraints is None or constraints.allowed[place[tail], place[child]]
            if is_allowed and p_value < _LEVEL / max(1, len(names) - 1):
                found.append(Rejection(tail, child, p_value))
    return tuple(found)


def add_edges(graph: Graph, rejections: Sequence[Rejection]) -> Graph:
    """Return the graph with the edges that it lacks."""
    if not rejections:
        return graph
    edges = [*graph.edges, *((each.tail, each.head) for each in rejections)]
    return Graph(graph.names, edges, graph.bidirected, graph.indicators)


def _known(blocks: Blocks, parents: list[int]) -> Floats:
    """Return orthonormal columns that span functions of the parents, and of pairs of them."""
    n_rows = len(blocks.sample)
    room = max(1, n_rows // _ROWS_PER_COLUMN)
    columns = [blocks.sample[:, blocks.columns(parent)] for parent in parents]
    for one, other in itertools.combinations(parents, 2):
        first, second = (blocks.sample[:, _lead(blocks, each)] for each in (one, other))
        columns.append((first[:, :, None] * second[:, None, :]).reshape(n_rows, -1))
    plain = np.column_stack([np.ones(n_rows), *columns])[:, :room]
    basis, triangle, _ = qr(plain, mode="economic", pivoting=True, check_finite=False)
    size = np.abs(triangle.diagonal())
    return np.asarray(basis[:, size > 1e-6 * size[0]])


def _lead(blocks: Blocks, node: int) -> Ints:
    return blocks.columns(node, 1)


def _test(blocks: Blocks, child: int, tails: Sequence[str], known: Floats) -> Iterator[float]:
    """Yield the p-value of each tail: whether its functions tell more about the child."""
    n_rows = len(known)
    responses = (
        blocks.columns(child)
        if blocks.is_class[child]
        else np.unique(blocks.responses[np.isfinite(blocks.offsets[:, child]), child])
    )
    own = _residuals(blocks.sample[:, responses], known)
    for tail in tails:
        columns = blocks.columns(blocks.names.index(tail))
        other = _residuals(blocks.sample[:, columns], known)
        p_values = []
        # The two responses of a number are tested one by one, the indicators of a class at once.
        parts = [own] if blocks.is_class[child] else [own[:, [at]] for at in range(own.shape[1])]
        for part in parts:
            products = (part[:, :, None] * other[:, None, :]).reshape(n_rows, -1)
            mean = products.mean(axis=0)
            spread = products.T @ products / n_rows - np.outer(mean, mean)
            statistic = n_rows * float(mean @ np.linalg.pinv(spread, hermitian=True) @ mean)
            # Regressions use up rows.
            statistic *= max(0.0, 1.0 - known.shape[1] / n_rows)
            p_values.append(float(chi2.sf(statistic, products.shape[1])))
        yield min(1.0, len(p_values) * min(p_values))


def _residuals(columns: Floats, known: Floats) -> Floats:
    left: Floats = columns - known @ (known.T @ columns)
    return left
