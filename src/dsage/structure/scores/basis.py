"""Scores of non-linear and mixed data: regressions on basis functions of the parents."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dsage._check import check_real
from dsage.data.table import Table
from dsage.structure.blocks import N_TERMS, Blocks, Floats, Ints
from dsage.structure.counts import Counts
from dsage.structure.scores.base import SCORES, Parents, Score
from dsage.structure.scores.block_gaussian import BlockRegressions
from dsage.structure.scores.cached import CachedScore
from dsage.structure.scores.dirichlet import BDeu
from dsage.structure.scores.discrete import DiscreteLikelihood
from dsage.structure.scores.noise import shape_gain
from dsage.structure.scores.penalized import default_gamma
from dsage.structure.scores.products import ProductRegressions
from dsage.structure.scores.softmax import softmax_likelihood

# Functions of each parent that compete, beside the parent itself.
_TERMS = (4, N_TERMS)
# Products of pairs of numbers that are considered at most.
_MAX_PAIRS = 1_000


@SCORES.register(
    "basis",
    summary="extended BIC of non-linear regressions on basis functions, for numbers and classes",
    fits=("continuous", "discrete", "mixed"),
    options=("penalty", "gamma"),
    needs_rows=True,
)
def _basis(table: Table, *, penalty: float | None = None, gamma: float | None = None) -> Score:
    """Charge ``log(n_rows) / 2`` per coefficient and ``gamma log(n_nodes)`` per parent."""
    return BasisScore(table, Blocks.from_table(table), penalty=penalty, gamma=gamma)


def default_penalty(n_rows: int) -> float:
    """Return the factor of the penalty: 0.7 up to 1,000 rows, 1 from 10,000, log-linear between.

    Functions cost several coefficients. With few rows, the full price would leave out edges, and
    make false separations.

    >>> [round(default_penalty(n_rows), 2) for n_rows in (500, 1_000, 3_000, 10_000, 1_000_000)]
    [0.7, 0.7, 0.84, 1.0, 1.0]
    """
    return min(max(0.7 + 0.3 * (math.log10(max(1, n_rows)) - 3), 0.7), 1.0)


class _Variant(NamedTuple):
    """A regression of one response on the same functions of all parents."""

    regressions: BlockRegressions
    response: Ints
    offset: float


class Approximation(Score):
    """Gaussian regressions on basis functions, from moments alone.

    The family of a node is the best of several regressions: of the number itself or of its normal
    score, if the number is not normal; on each parent itself, its normal score, or 4 or 8 basis
    functions of it. The indicators of a class are regressed as if they were normal. With n rows,
    q responses, K columns of k parents and their residual covariance S,

        family = -n/2 log det S - q K log(n) / 2 - k gamma log(n_nodes) + offset

    up to constants; the offset makes densities of scores densities of values.
    """

    def __init__(
        self, blocks: Blocks, *, penalty: float | None = None, gamma: float | None = None
    ) -> None:
        penalty = default_penalty(blocks.n_rows) if penalty is None else penalty
        check_real(penalty, "penalty", low=0.0, high=np.finfo(np.float64).max)
        if gamma is None:
            gamma = 0.0 if blocks.is_class.all() else default_gamma(blocks.n_rows)
        check_real(gamma, "gamma", low=0.0, high=1.0)
        self.names = blocks.names
        self.blocks = blocks
        self.penalty = penalty
        self.price = penalty * math.log(blocks.n_rows) / 2
        self.extra = penalty * gamma * math.log(max(2, len(self.names)))
        nodes = range(len(self.names))
        made = {
            name: BlockRegressions(
                blocks.correlation,
                [
                    blocks.columns(node)
                    if blocks.is_class[node]
                    else blocks.responses[place, node : node + 1]
                    for node in nodes
                ],
            )
            for place, name in enumerate(("value", "score"))
            if np.isfinite(blocks.offsets[place]).any()
        }
        if not blocks.is_class.all():
            for n_terms in _TERMS:
                columns = [blocks.columns(node, n_terms) for node in nodes]
                made[str(n_terms)] = BlockRegressions(blocks.correlation, columns)
        self.regressions = made
        self.variants = [self._variants(node) for node in nodes]

    def _variants(self, node: int) -> list[_Variant]:
        blocks, made = self.blocks, self.regressions
        if blocks.is_class[node]:
            return [_Variant(each, blocks.columns(node), 0.0) for each in made.values()]
        variants = []
        for place, name in enumerate(("value", "score")):
            offset = float(blocks.offsets[place, node])
            if offset > -np.inf:
                response = blocks.responses[place, node : node + 1]
                used = [name, *(str(n_terms) for n_terms in _TERMS)]
                variants += [_Variant(made[key], response, offset) for key in used]
        return variants

    def family(self, node: int, parents: Parents) -> float:
        """Return the score of the best regression of `node` on these parents."""
        return max(self.value(variant, parents) for variant in self.variants[node])

    def additions(self, node: int, parents: Parents) -> Floats:
        """Return, for every variable, the score of `node` with it as one more parent."""
        best = np.full(len(self.names), -np.inf)
        for variant in self.variants[node]:
            left = variant.regressions.left_with(variant.response, parents)
            n_known = variant.regressions.n_known(parents) + variant.regressions.widths
            worth = self.worth(left, n_known, len(parents) + 1, variant.response)
            np.maximum(best, worth + variant.offset, out=best)
        best[[node, *parents]] = -np.inf
        return best

    def best(self, node: int, parents: Parents) -> Floats:
        """Return the scores with each variable as one more parent; in its own place, with none."""
        scores = self.additions(node, parents)
        scores[[node, *parents]] = self.family(node, parents)
        return scores

    def straight(self, node: int, parents: Parents) -> Floats:
        """Return the same for the linear regression of the number itself."""
        if self.blocks.offsets[0, node] == -np.inf:
            return np.full(len(self.names), -np.inf)
        variant = self.variants[node][0]
        left = variant.regressions.left_with(variant.response, parents)
        n_known = variant.regressions.n_known(parents) + variant.regressions.widths
        scores = self.worth(left, n_known, len(parents) + 1, variant.response) + variant.offset
        alone = self.value(variant, parents)
        scores[[node, *parents]] = alone
        return np.maximum(scores, alone)

    def value(self, variant: _Variant, parents: Parents) -> float:
        """Return the score of one regression."""
        left = variant.regressions.left(variant.response, parents)
        n_known = variant.regressions.n_known(parents)
        return (
            self.worth_of_one(left, n_known, len(parents), len(variant.response)) + variant.offset
        )

    def worth_of_one(self, left: float, n_known: int, n_parents: int, n_responses: int) -> float:
        """Return the same as `worth` for one regression."""
        n_rows = self.blocks.n_rows
        degrees = n_rows - 1 - n_known
        if degrees <= 0:
            return -math.inf
        fit = -0.5 * n_rows * (left + n_responses * math.log(2 * math.pi * n_rows / degrees))
        cost = self.price * n_responses * (n_known + 2) + self.extra * n_parents
        return fit - 0.5 * n_responses * degrees - cost

    def worth(self, left: Floats, n_known: Ints, n_parents: int, response: Ints) -> Floats:
        """Return scores, for log determinants of residual covariances, without offsets."""
        n_rows, n_responses = self.blocks.n_rows, len(response)
        degrees = n_rows - 1 - n_known
        inside = np.maximum(degrees, 1)
        fit = -0.5 * n_rows * (left + n_responses * np.log(2 * np.pi * n_rows / inside))
        fit = fit - 0.5 * n_responses * degrees
        cost = self.price * n_responses * (n_known + 2) + self.extra * n_parents
        worth: Floats = np.where(degrees > 0, fit - cost, -np.inf)
        return worth


class BasisScore(Score):
    """Non-linear regressions on basis functions of the parents, for numbers and classes.

    :class:`Approximation` says which functions of the parents a regression uses, and which moves
    are promising. The score of a family is more exact: residuals of a number may have any smooth
    density, see :func:`~dsage.structure.scores.noise.shape_gain`, a class has the likelihood of a
    multinomial logistic regression, or of a table of frequencies if that is better and all parents
    are classes. These need rows: at most 20,000, evenly spread, each of which then stands for
    several.

    Parameters
    ----------
    table : Table
        The rows.
    blocks : Blocks
        Their blocks.
    penalty : float, optional
        A factor of the penalty; see :func:`default_penalty`.
    gamma : float, optional
        As for ``"ebic"``, but 0 if all variables are classes.
    """

    is_approximate = True

    def __init__(
        self,
        table: Table,
        blocks: Blocks,
        *,
        penalty: float | None = None,
        gamma: float | None = None,
    ) -> None:
        self._blocks = blocks
        self.names = self._blocks.names
        self._near = Approximation(self._blocks, penalty=penalty, gamma=gamma)
        self._tables = _make_tables(table, self._near.price) if table.discrete else ()
        self._n_categories = {
            node: len(table.codes(name)[1])
            for node, name in enumerate(self.names)
            if name in table.discrete
        }
        self._place = {name: place for place, name in enumerate(table.discrete)}
        # Regressions of values and of scores, if products of parents are considered.
        self._products: dict[int, ProductRegressions] = {}
        self._families: dict[tuple[int, Parents], float] = {}

    def rough(self) -> Score:
        """Return the approximation by Gaussian regressions."""
        return CachedScore(self._near)

    def near(self, parents: Sequence[Parents]) -> Score:
        """Return the score with products of pairs of parents, if they explain anything.

        Pairs are those of variables with a common neighbour in the graph, all of them if they are
        few.
        """
        pairs = self._pairs(parents)
        if not pairs:
            return self
        made = copy.copy(self)
        made._families = {}
        made._products = {
            place: ProductRegressions(self._blocks, place, pairs)
            for place in (0, 1)
            if np.isfinite(self._blocks.offsets[place, ~self._blocks.is_class]).any()
        }
        is_better = any(
            made._near_family(node, of_node) > self._near_family(node, of_node)
            for node, of_node in enumerate(parents)
            if len(of_node) > 1
        )
        return made if is_better else self

    def family(self, node: int, parents: Parents) -> float:
        """Return the score of `node` with exactly these parents."""
        found = self._families.get((node, parents))
        if found is None:
            is_class = self._blocks.is_class[node]
            found = self._of_class(node, parents) if is_class else self._of_number(node, parents)
            self._families[node, parents] = found
        return found

    def additions(self, node: int, parents: Parents) -> Floats:
        """Return, for every variable, the score with it as one more parent, approximately."""
        near = self._near.additions(node, parents)
        for place, products in self._products_of(node):
            response = self._blocks.responses[place, node : node + 1]
            left, n_products = products.left_with(response, parents)
            _, n_before = products.columns(parents)
            n_known = products.widths[list(parents)].sum() + products.widths
            worth = self._worth(left, n_known, n_products + n_before, len(parents) + 1, response)
            np.maximum(near, worth + self._blocks.offsets[place, node], out=near)
        near += self._shift(node, parents)
        if self._blocks.is_class[node]:
            # No likelihood of classes exceeds 1.
            np.minimum(near, -self._near.extra * (len(parents) + 1), out=near)
        near[[node, *parents]] = -np.inf
        return near

    def removals(self, node: int, parents: Parents) -> Floats:
        """Return, for every parent, the score without it: exactly for the best one.

        No other is larger.
        """
        scores = np.full(len(self.names), -np.inf)
        if not parents:
            return scores
        fewer = {parent: parents[:at] + parents[at + 1 :] for at, parent in enumerate(parents)}
        shift = self._shift(node, parents)
        for parent, others in fewer.items():
            scores[parent] = self._near_family(node, others) + shift
        best = max(parents, key=scores.__getitem__)
        exact = self.family(node, fewer[best])
        np.minimum(scores, np.nextafter(exact, -np.inf), out=scores)
        scores[best] = exact
        return scores

    # Families

    def _shift(self, node: int, parents: Parents) -> float:
        """Return by how much the approximation of a family is too low."""
        exact, near = self.family(node, parents), self._near_family(node, parents)
        return exact - near if math.isfinite(exact) and math.isfinite(near) else 0.0

    def _near_family(self, node: int, parents: Parents) -> float:
        value = self._near.family(node, parents)
        for place, products in self._products_of(node):
            value = max(value, self._with_products(node, parents, place, products)[0])
        return value

    def _products_of(self, node: int) -> list[tuple[int, ProductRegressions]]:
        """Return the regressions with products for a number, and the response of each."""
        if self._blocks.is_class[node]:
            return []
        usable = self._blocks.offsets[:, node] > -np.inf
        return [(place, products) for place, products in self._products.items() if usable[place]]

    def _with_products(
        self, node: int, parents: Parents, place: int, products: ProductRegressions
    ) -> tuple[float, Ints]:
        """Return the score of the regression on products too, and its columns."""
        response = self._blocks.responses[place, node : node + 1]
        columns, n_products = products.columns(parents)
        left = np.array(products.left(response, columns))
        n_plain = np.array(len(columns) - n_products)
        worth = self._worth(left, n_plain, np.array(n_products), len(parents), response)
        return float(worth) + float(self._blocks.offsets[place, node]), columns

    def _worth(
        self, left: Floats, n_plain: Ints, n_products: Ints, n_parents: int, response: Ints
    ) -> Floats:
        """Charge products more: there are many to choose from."""
        known = n_plain + n_products
        plain = self._near.worth(left, known, n_parents, response)
        worth: Floats = plain - n_products * math.log(max(2, len(self.names)))
        return worth

    def _of_number(self, node: int, parents: Parents) -> float:
        """Return the best of the responses, each with the density of its residuals."""
        best = -math.inf
        near, blocks = self._near, self._blocks
        products = dict(self._products_of(node))
        for place in (0, 1):
            response = int(blocks.responses[place, node])
            used = [each for each in near.variants[node] if each.response[0] == response]
            if not used:
                continue
            values = [near.value(variant, parents) for variant in used]
            at = int(np.argmax(values))
            value = values[at]
            residuals = blocks.thinned[:, response]
            if parents:
                columns, slopes = used[at].regressions.slopes(response, parents)
                residuals = residuals - blocks.predict(columns, slopes)
            if place in products:
                other, columns = self._with_products(node, parents, place, products[place])
                if other > value:
                    value = other
                    residuals = products[place].residuals(response, columns)
            if node in blocks.absent:
                residuals = residuals[~blocks.absent[node]]
            stands_for = blocks.n_rows / len(blocks.thinned)
            best = max(best, value + stands_for * shape_gain(residuals))
        return best

    def _of_class(self, node: int, parents: Parents) -> float:
        """Return the likelihood of a class in a logistic regression or a table, less its price."""
        blocks, near = self._blocks, self._near
        levels = blocks.levels[node]
        n_levels = int(levels.max(initial=0)) + 1
        values = [near.value(variant, parents) for variant in near.variants[node]]
        variant = near.variants[node][int(np.argmax(values))]
        columns = variant.regressions.columns(parents)
        price = near.penalty * math.log(len(levels)) / 2
        correlation = blocks.correlation[np.ix_(columns, columns)]
        likelihood = softmax_likelihood(blocks.sample[:, columns], levels, correlation)
        cost = price * (n_levels - 1) * (len(columns) + 1)
        value = blocks.scale * (likelihood - cost) - near.extra * len(parents)
        is_whole = self._n_categories.get(node) == n_levels
        if self._tables and is_whole and all(self.names[at] in self._place for at in parents):
            place = [self._place[self.names[parent]] for parent in parents]
            own = self._place[self.names[node]]
            of_tables = [each.family(own, tuple(sorted(place))) for each in self._tables]
            value = max(value, max(of_tables) - near.extra * len(parents))
        return value

    # Products

    def _pairs(self, parents: Sequence[Parents]) -> list[tuple[int, int]]:
        numbers = np.flatnonzero(~self._blocks.is_class).tolist()
        if len(numbers) * (len(numbers) - 1) // 2 <= _MAX_PAIRS // 2:
            return list(itertools.combinations(numbers, 2))
        found: dict[tuple[int, int], None] = {}
        near: list[set[int]] = [set(of_node) for of_node in parents]
        for node, of_node in enumerate(parents):
            for parent in of_node:
                near[parent].add(node)
        by_size = sorted(near, key=len)
        for around in by_size:
            usable = sorted(node for node in around if not self._blocks.is_class[node])
            found.update(dict.fromkeys(itertools.combinations(usable, 2)))
        return list(itertools.islice(found, _MAX_PAIRS))


def _make_tables(table: Table, price: float) -> tuple[Score, ...]:
    """Return scores of the classes by tables of frequencies: BIC, and BDeu for sparse tables."""
    counts = Counts.from_table(table.select(table.discrete))
    return DiscreteLikelihood(counts, penalty=price), BDeu(counts)
