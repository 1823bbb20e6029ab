"""Test a graph's independences of the target, and restore edges if the data reject them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr
from scipy.stats import chi2

from dsage.graphs import Graph
from dsage.structure.blocks import N_TERMS, Blocks, Floats, Ints
from dsage.structure.constraints import Constraints
from dsage.structure.result import Rejection

# The probability that an edge is restored although all independences hold.
_LEVEL = 0.01
# An edge is not restored if it explains a smaller share of the target's residual variance.
_NEGLIGIBLE = 0.02
# Least share of the spread of a product that the known columns must leave unexplained.
_SPREAD_LEFT = 0.05
# Rows for each column that is known.
_ROWS_PER_COLUMN = 10
# Intervals of a parent on which functions are constant.
_MAX_STEPS = 64


class Known(NamedTuple):
    """Functions of the parents, to regress on them."""

    basis: Floats  # (n_rows, n_known): orthonormal columns
    n_folds: int

    def residuals(self, columns: Floats) -> Floats:
        """Return the residuals of columns; of regressions on the other folds, if there are any.

        With the rows Q of a fold, what the regression on all rows leaves of it, e, becomes
        ``(I - Q Q')^-1 e = e + Q (I - Q'Q)^-1 Q'e``.
        """
        left: Floats = columns - self.basis @ (self.basis.T @ columns)
        for fold in range(self.n_folds):
            rows = self.basis[fold :: self.n_folds]
            # Effects that the other folds do not determine, such as of a rare level, remain.
            inner = np.linalg.pinv(np.eye(rows.shape[1]) - rows.T @ rows, 1e-6, hermitian=True)
            own = left[fold :: self.n_folds]
            left[fold :: self.n_folds] = own + rows @ (inner @ (rows.T @ own))
        return left

    @property
    def share_left(self) -> float:
        """The share of rows that the regressions do not use up."""
        return 1.0 if self.n_folds else max(0.0, 1.0 - self.basis.shape[1] / len(self.basis))


def reject_claims(
    graph: Graph,
    blocks: Blocks,
    target: str,
    constraints: Constraints | None = None,
    *,
    n_folds: int = 0,
) -> tuple[Rejection, ...]:
    """Return the edges between the target and other variables that the graph lacks.

    A DAG implies that each variable is independent of its non-descendants, given its parents.
    This is tested for the target and each variable that is not next to it, with the
    generalised covariance measure (Shah & Peters, 2020) of regressions on blocks: the later of the
    two, and the basis functions of the other, are regressed on the basis functions of the parents
    and on products of two parents. Their residuals must be uncorrelated, whatever their
    spread. With d variables, an independence is rejected if p < 0.01 / d, so that the probability
    of restoring a false edge is about 1 %. With many rows, imperfect regressions would be rejected
    too: edges that explain less than 2 % of the residual variance are not restored, and rejections
    are tested again with functions of the parents that are constant between quantiles, which can
    follow steep functions.

    Two variables may matter only together, and escape all of these tests. So products of two
    non-descendants of the target are tested in the same way, each at 0.01 over the number of
    products.

    Parameters
    ----------
    graph : Graph
        A DAG over the variables of `blocks`.
    blocks : Blocks
    target : str
    constraints : Constraints, optional
        Edges that these forbid are not returned.
    n_folds : int, default=0
        Number of folds into which the rows are split for the regressions, so that each row is
        predicted from other folds. With 0, regressions use all rows, which is more exact: with a
        column for every ten rows, regressions on folds reject true independences four times too
        often.
    """
    names = blocks.names
    place = {name: node for node, name in enumerate(names)}
    below = set(graph.descendants(target))
    near = {target, *graph.parents(target), *graph.children(target)}
    found: list[Rejection] = []
    level = _LEVEL / max(1, len(names) - 1)
    earlier = [name for name in names if name not in near and name not in below]
    claims = [(target, earlier)]
    claims += [(name, [target]) for name in names if name in below and name not in near]
    for child, tails in claims:
        parents = sorted(place[parent] for parent in graph.parents(child))
        if not tails:
            continue
        known = _known(blocks, parents, n_folds)
        rejected = _rejected(blocks, place[child], tails, known, level)
        if rejected:
            # Steep functions of the parents look like functions of what depends on them.
            known = _known(blocks, parents, n_folds, stepped=True)
            again = [each.tail for each in rejected]
            found += _rejected(blocks, place[child], again, known, level)
    parents = sorted(place[parent] for parent in graph.parents(target))
    pairs = _test_pairs(blocks, place[target], parents, earlier, _known(blocks, parents, n_folds))
    if pairs:
        known = _known(blocks, parents, n_folds, stepped=True)
        confirmed = _test_pairs(blocks, place[target], parents, earlier, known)
        found += [each for each in confirmed if each.tail in {other.tail for other in pairs}]
    kept = {
        (each.tail, each.head): each
        for each in found
        if constraints is None or constraints.allowed[place[each.tail], place[each.head]]
    }
    return tuple(kept.values())


def add_edges(graph: Graph, rejections: Sequence[Rejection]) -> Graph:
    """Return the graph with the edges that it lacks."""
    if not rejections:
        return graph
    edges = [*graph.edges, *((each.tail, each.head) for each in rejections)]
    return Graph(graph.names, edges, graph.bidirected, graph.indicators)


def _test_pairs(
    blocks: Blocks, target: int, parents: Sequence[int], earlier: Sequence[str], known: Known
) -> list[Rejection]:
    """Return the edges of variables that matter to the target only together."""
    place = {name: node for node, name in enumerate(blocks.names)}
    own = _unexplained(blocks, target, known)
    nodes = [*parents, *(place[name] for name in earlier)]
    columns = np.array([column for node in nodes for column in _lead(blocks, node)], dtype=np.intp)
    owner = np.array([node for node in nodes for _ in _lead(blocks, node)], dtype=np.intp)
    is_parent = np.isin(owner, parents)
    squares = own**2
    smallest: dict[int, float] = {}
    n_tests = 0
    for at in range(len(columns)):
        # Products of two parents are known.
        others = np.flatnonzero((owner != owner[at]) & ~(is_parent & is_parent[at]))
        others = others[others > at]
        if not len(others):
            continue
        n_tests += own.shape[1] * len(others)
        products = blocks.sample[:, [columns[at]]] * blocks.sample[:, columns[others]]
        if not known.n_folds:
            # `own` is orthogonal to what is known, so that residuals of products are needed for
            # spreads alone: most products are far from an edge, whatever their spreads are.
            least = _SPREAD_LEFT * _NEGLIGIBLE * len(own) * (squares.T @ products**2)
            is_near = ((own.T @ products) ** 2 > least).any(axis=0)
            others, products = others[is_near], products[:, is_near]
        products = known.residuals(products)
        statistic = ((own.T @ products) ** 2 / np.maximum(squares.T @ products**2, 1e-12)).max(
            axis=0
        )
        for other, p_value in zip(others, _p_values(statistic, 1, len(own)), strict=True):
            for node in (int(owner[at]), int(owner[other])):
                smallest[node] = min(smallest.get(node, 1.0), float(p_value))
    return [
        Rejection(name, blocks.names[target], smallest[place[name]])
        for name in earlier
        if smallest.get(place[name], 1.0) < _LEVEL / max(1, n_tests)
    ]


def _rejected(
    blocks: Blocks, child: int, tails: Sequence[str], known: Known, level: float
) -> list[Rejection]:
    """Return the tails that explain the child beyond the known columns."""
    p_values = _test(blocks, child, tails, known)
    made = (
        Rejection(tail, blocks.names[child], each)
        for tail, each in zip(tails, p_values, strict=True)
    )
    return [each for each in made if each.p_value < level]


def _known(blocks: Blocks, parents: list[int], n_folds: int, *, stepped: bool = False) -> Known:
    """Return orthonormal columns that span functions of the parents, and of pairs of them.

    There is a column for ten rows at most, so that many parents have fewer functions each. With
    `stepped`, functions that are constant between quantiles of a parent are among them.
    """
    n_rows = len(blocks.sample)
    room = max(1, n_rows // _ROWS_PER_COLUMN)
    n_terms = N_TERMS
    while n_terms > 1 and room <= sum(len(blocks.columns(each, n_terms)) for each in parents):
        n_terms //= 2
    columns = [blocks.sample[:, blocks.columns(parent, n_terms)] for parent in parents]
    if stepped:
        columns += _steps(blocks, parents, room - sum(each.shape[1] for each in columns))
    for one, other in itertools.combinations(parents, 2):
        first, second = (blocks.sample[:, _lead(blocks, each)] for each in (one, other))
        columns.append((first[:, :, None] * second[:, None, :]).reshape(n_rows, -1))
    plain = np.column_stack([np.ones(n_rows), *columns])[:, :room]
    basis, triangle, _ = qr(plain, mode="economic", pivoting=True, check_finite=False)
    size = np.abs(triangle.diagonal())
    return Known(np.asarray(basis[:, size > 1e-6 * size[0]]), n_folds)


def _steps(blocks: Blocks, parents: list[int], room: int) -> list[Floats]:
    """Return indicators of the intervals between quantiles of numbers, in about half the room."""
    numbers = [parent for parent in parents if not blocks.is_class[parent]]
    n_steps = min(_MAX_STEPS, room // (2 * max(1, len(numbers))))
    made = []
    for parent in numbers:
        values = blocks.sample[:, blocks.responses[1, parent]]
        inner = np.quantile(values, np.arange(1, n_steps) / max(1, n_steps))
        steps = np.searchsorted(inner, values)
        made.append((steps[:, None] == np.arange(1, n_steps)).astype(np.float64))
    return made


def _lead(blocks: Blocks, node: int) -> Ints:
    return blocks.columns(node, 1)


def _test(blocks: Blocks, child: int, tails: Sequence[str], known: Known) -> Iterator[float]:
    """Yield the p-value of each tail: whether its functions explain more of the child."""
    own = _unexplained(blocks, child, known)
    for tail in tails:
        columns = blocks.columns(blocks.names.index(tail))
        other = known.residuals(blocks.sample[:, columns])
        yield covariance_test(own, other, known.share_left)


def covariance_test(one: Floats, other: Floats, share_left: float) -> float:
    """Return the p-value of the generalised covariance measure of residuals."""
    n_rows = len(one)
    products = (one[:, :, None] * other[:, None, :]).reshape(n_rows, -1)
    mean = products.mean(axis=0)
    spread = products.T @ products / n_rows - np.outer(mean, mean)
    statistic = n_rows * float(mean @ np.linalg.pinv(spread, hermitian=True) @ mean)
    # Regressions use up rows.
    statistic *= share_left
    return float(_p_values(np.array(statistic), products.shape[1], n_rows))


def _p_values(statistic: Floats, n_degrees: int, n_rows: int) -> Floats:
    """Return p-values; 1 if so little is explained that imperfect regressions may be the cause."""
    is_small = statistic < _NEGLIGIBLE * n_rows
    return np.where(is_small, 1.0, chi2.sf(statistic, n_degrees))


def _unexplained(blocks: Blocks, node: int, known: Known) -> Floats:
    """Return the residuals of a variable: of its indicators, or of its value or its score.

    Of the two, the one whose regression has the higher likelihood: the parents act on it more
    nearly by a sum of functions, and so the regression is less wrong.
    """
    if blocks.is_class[node]:
        return known.residuals(blocks.sample[:, blocks.columns(node)])
    responses = blocks.responses[:, node]
    left = known.residuals(blocks.sample[:, responses])
    spread = np.maximum((left**2).mean(axis=0), 1e-12)
    likelihood = blocks.offsets[:, node] - 0.5 * blocks.n_rows * np.log(spread)
    return left[:, [int(likelihood.argmax())]]
