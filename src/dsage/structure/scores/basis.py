"""Scores of non-linear and mixed data: regressions on basis functions of the parents."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dsage.data.rows import Rows
from dsage.structure.blocks import Blocks, Floats, Ints
from dsage.structure.counts import Counts
from dsage.structure.scores.approximation import Approximation
from dsage.structure.scores.base import SCORES, Parents, Score
from dsage.structure.scores.block_gaussian import BlockRegressions
from dsage.structure.scores.cached import CachedScore
from dsage.structure.scores.dirichlet import BDeu
from dsage.structure.scores.discrete import DiscreteLikelihood
from dsage.structure.scores.logistic import LogisticRegressions
from dsage.structure.scores.near_fits import NearFits
from dsage.structure.scores.noise import shape_gain
from dsage.structure.scores.overlooked import OverlookedEdges
from dsage.structure.scores.products import Pair, ProductRegressions, near_pairs, parent_pairs
from dsage.structure.scores.softmax import softmax_likelihood

# With at most this many rows, regressions of indicators do not show what a class depends on.
_FEW_ROWS = 2_000
# Multiplications for the regressions of a class with many rows, of which residuals are tested.
_MOST_WORK = 1e9
# The effect of a parent is clear if the approximation gains this much per row.
_CLEAR = 0.05
# What the score may fall on the way to a better order: for a few weak edges, and for each row. With
# many rows, better orders are further away.
_REACH, _FEW_REACH, _MANY_REACH = 20.0, 0.05, 0.4
# Among numbers, what the approximation loses for each row by another order, at least, if the score
# does: densities of residuals make up for less.
_LOST = 0.1


@SCORES.register(
    "basis",
    summary="extended BIC of non-linear regressions on basis functions, for numbers and classes",
    fits=("continuous", "discrete", "mixed"),
    options=("penalty", "gamma"),
    needs_rows=True,
)
def _basis(table: Rows, *, penalty: float | None = None, gamma: float | None = None) -> Score:
    """Charge ``log(n_rows) / 2`` per coefficient and ``gamma log(n_nodes)`` per parent."""
    return BasisScore(table, Blocks.from_table(table), penalty=penalty, gamma=gamma)


class BasisScore(Score):
    """Non-linear regressions on basis functions of the parents, for numbers and classes.

    :class:`Approximation` says which functions of the parents a regression uses, and which moves
    are promising. The score of a family is more exact: residuals of a number may have any smooth
    density, see :func:`~dsage.structure.scores.noise.shape_gain`, a class has the likelihood of a
    multinomial logistic regression, or of a table of frequencies if that is better and all parents
    are classes. These need rows: at most 20,000, evenly spread, each of which then represents
    several. With at most 2,000 rows, logistic regressions themselves choose the number of functions
    of each parent of a class, and say which further parents are promising; see
    :class:`~dsage.structure.scores.logistic.LogisticRegressions`.

    Parameters
    ----------
    table : Rows
        The rows, in memory or on disk.
    blocks : Blocks
        Their blocks.
    penalty : float, optional
        A factor of the penalty; see :func:`~dsage.structure.scores.approximation.default_penalty`.
    gamma : float, optional
        As for ``"ebic"`` if there are numbers and classes, 1 for numbers alone, 0 for classes.
    target : str, optional
        The variable near which overlooked edges are added more readily; if it is not among the
        variables, none.
    """

    is_approximate = True

    def __init__(
        self,
        table: Rows,
        blocks: Blocks,
        *,
        penalty: float | None = None,
        gamma: float | None = None,
        target: str | None = None,
    ) -> None:
        self._blocks = blocks
        self.names = self._blocks.names
        self._target = self.names.index(target) if target in self.names else None
        self._near = Approximation(self._blocks, penalty=penalty, gamma=gamma)
        self._tables: tuple[Score, ...] = ()
        # The number of rows that one counted row represents: 1 unless too many are distinct.
        self._table_scale = 1.0
        if table.discrete:
            counts = Counts.from_table(table.select(table.discrete))
            # BIC, and BDeu for sparse tables.
            price = self._near.penalty * math.log(counts.n_rows) / 2
            self._tables = DiscreteLikelihood(counts, penalty=price), BDeu(counts)
            self._table_scale = table.n_rows / counts.n_rows
        self._n_categories = {
            node: len(table.categories(name))
            for node, name in enumerate(self.names)
            if name in table.discrete
        }
        self._place = {name: place for place, name in enumerate(table.discrete)}
        # Regressions of values and of scores, if products of parents are considered.
        self._products: dict[int, ProductRegressions] = {}
        self._with: dict[tuple[int, Parents, int], float] = {}
        self._families: dict[tuple[int, Parents], float] = {}
        # The likelihoods of classes have no smooth density in them: a number that is explained
        # less exactly than a class would seem to be its cause.
        self._is_sharp = bool(blocks.is_class.any())
        # Approximations of classes are coarse.
        self.margin = None if self._is_sharp else _LOST * blocks.n_rows
        if self._is_sharp and not blocks.is_class.all():
            share = _FEW_REACH if len(blocks.sample) <= _FEW_ROWS else _MANY_REACH
            self.reach = _REACH + share * blocks.n_rows
        is_short = len(blocks.sample) <= _FEW_ROWS
        is_mixed = self._is_sharp and not blocks.is_class.all()
        # Whoever sets the penalty decides what is found.
        self._adds_overlooked = penalty is None and (
            is_mixed or (is_short and not blocks.is_class.any())
        )
        self._starts = NearFits(blocks)
        self._logistics: LogisticRegressions | None = None
        if is_short and is_mixed:
            self._logistics = self._make_logistics()

    def quick(self, node: int, parents: Parents) -> float:
        """Return the approximation of a family."""
        return self._near_family(node, parents)

    def rough(self) -> Score:
        """Return the approximation by Gaussian regressions."""
        return CachedScore(self._near)

    def near(self, parents: Sequence[Parents]) -> Score:
        """Return the score with products of pairs of parents, if they explain something clearly.

        A child must gain more than 4 log(n_nodes): products cost time, and if effects are additive,
        chance gains little. Pairs are of variables with a common neighbour in the graph, or of all
        variables if they are few: two numbers, or a number and a class.
        """
        together = parent_pairs(self._blocks, parents)
        if not together:
            return self
        # These products alone decide; most data need none.
        made = self._with_pairs(together)
        is_better = any(
            made._is_better(self, node, of_node)
            for node, of_node in enumerate(parents)
            if len(of_node) > 1
        )
        return self._with_pairs(near_pairs(self._blocks, parents)) if is_better else self

    def overlooked(
        self,
        parents: Sequence[Parents],
        order: Sequence[int],
        allowed: npt.NDArray[np.bool_],
        max_parents: int,
    ) -> Sequence[Parents]:
        """Return the parents of each node, with those that tests demand.

        With at most 2,000 rows, or in tables of numbers and classes near the target, and unless a
        penalty was given.
        """
        if not self._adds_overlooked:
            return parents
        logistics = self._logistics
        if logistics is None and self._blocks.is_class.any():
            # Only their residuals are needed.
            logistics = self._make_logistics(_MOST_WORK)
        tests = OverlookedEdges(self._blocks, logistics, self._target)
        return tests.find(parents, order, allowed, max_parents)

    def _make_logistics(self, *most_work: float) -> LogisticRegressions:
        price = self._near.penalty * math.log(len(self._blocks.sample)) / 2
        return LogisticRegressions(self._blocks, price, *most_work)

    def _is_better(self, other: BasisScore, node: int, parents: Parents) -> bool:
        """Return whether products explain a variable clearly better."""
        margin = 4.0 * math.log(max(2, len(self.names)))
        if self._near_family(node, parents) <= other._near_family(node, parents) + margin:
            return False
        # A sum of effects on log odds looks like products in a regression of indicators.
        is_class = bool(self._blocks.is_class[node])
        return not is_class or self.family(node, parents) > other.family(node, parents) + margin

    def _with_pairs(self, pairs: Sequence[Pair]) -> BasisScore:
        """Return the score with products of these pairs."""
        made = copy.copy(self)
        made._families, made._with = {}, {}
        made._products = {
            place: ProductRegressions(self._blocks, place, pairs)
            for place in (0, 1)
            if np.isfinite(self._blocks.offsets[place, ~self._blocks.is_class]).any()
        }
        return made

    def family(self, node: int, parents: Parents) -> float:
        """Return the score of `node` with exactly these parents."""
        found = self._families.get((node, parents))
        if found is None:
            is_class = self._blocks.is_class[node]
            found = self._of_class(node, parents) if is_class else self._of_number(node, parents)
            self._families[node, parents] = found
        return found

    def growth(self, node: int, parents: Parents) -> tuple[Floats, float]:
        """Return the approximations of the additions and of the family."""
        logistics = self._regressions_of(node)
        if logistics is not None:
            return self._growth_of_class(logistics, node, parents)
        near, family = self._near.growth(node, parents)
        self._raise_by_products(near, node, parents)
        near[[node, *parents]] = -np.inf
        return near, self._raised_by_products(family, node, parents)

    def _growth_of_class(
        self, logistics: LogisticRegressions, node: int, parents: Parents
    ) -> tuple[Floats, float]:
        """Return the same for a class with few rows, from its logistic regression."""
        family = self.family(node, parents)
        near = np.full(len(self.names), -np.inf)
        self._raise_by_products(near, node, parents)
        near += self._shift(node, parents, self._near_family(node, parents))
        gains = self._blocks.scale * logistics.gains(node, parents) - self._near.extra
        np.maximum(near, family + gains, out=near)
        near[[node, *parents]] = -np.inf
        return near, family

    def _raise_by_products(self, near: Floats, node: int, parents: Parents) -> None:
        """Raise the approximations of additions where products explain more."""
        for place, products in self._products_of(node):
            response = self._responses(node, place)
            left, n_products = products.left_with(response, parents)
            _, n_before = products.columns(parents)
            n_known = products.widths[list(parents)].sum() + products.widths
            worth = self._worth(left, n_known, n_products + n_before, len(parents) + 1, node)
            np.maximum(near, worth + self._blocks.offsets[place, node], out=near)

    def additions(self, node: int, parents: Parents) -> Floats:
        """Return, for every variable, the score with it as one more parent, approximately."""
        near, family = self.growth(node, parents)
        near += self._shift(node, parents, family)
        if self._blocks.is_class[node]:
            # No likelihood of classes exceeds 1.
            np.minimum(near, -self._near.extra * (len(parents) + 1), out=near)
        near[[node, *parents]] = -np.inf
        return near

    def removals(self, node: int, parents: Parents) -> Floats:
        """Return, for every parent, the score without it: exactly for the best one.

        No other is larger. Nothing is computed exactly if the best one clearly explains a part of
        the variable.
        """
        scores = self._near.removals(node, parents)
        if not parents:
            return scores
        at = list(parents)
        for place, products in self._products_of(node):
            response = self._responses(node, place)
            left, n_products = products.left_without(response, parents)
            widths = products.widths[at]
            worth = self._worth(left, widths.sum() - widths, n_products, len(at) - 1, node)
            scores[at] = np.maximum(scores[at], worth + self._blocks.offsets[place, node])
        near = self._near_family(node, parents)
        scores[at] += self._shift(node, parents, near)
        whole = self.family(node, parents)
        logistics = self._regressions_of(node)
        if logistics is not None:
            lost = self._blocks.scale * logistics.losses(node, parents) - self._near.extra
            scores[at] = whole - lost
        best = max(parents, key=scores.__getitem__)
        if np.isfinite(whole) and whole - scores[best] > _CLEAR * self._blocks.n_rows:
            return scores
        exact = self.family(node, tuple(parent for parent in parents if parent != best))
        np.minimum(scores, np.nextafter(exact, -np.inf), out=scores)
        scores[best] = exact
        return scores

    # Families

    def _shift(self, node: int, parents: Parents, near: float) -> float:
        """Return by how much the approximation of a family is too low."""
        exact = self.family(node, parents)
        return exact - near if math.isfinite(exact) and math.isfinite(near) else 0.0

    def _near_family(self, node: int, parents: Parents) -> float:
        return self._raised_by_products(self._near.family(node, parents), node, parents)

    def _raised_by_products(self, value: float, node: int, parents: Parents) -> float:
        """Return the approximation of a family, with products if they explain more."""
        for place, products in self._products_of(node):
            value = max(value, self._with_products(node, parents, place, products)[0])
        return value

    def _products_of(self, node: int) -> list[tuple[int, ProductRegressions]]:
        """Return the regressions with products for a variable, and the response of each."""
        usable = self._blocks.offsets[:, node] > -np.inf
        return [(place, products) for place, products in self._products.items() if usable[place]]

    def _responses(self, node: int, place: int) -> Ints:
        """Return the columns of a variable as a child."""
        if self._blocks.is_class[node]:
            return self._blocks.columns(node)
        return self._blocks.responses[place, node : node + 1]

    def _with_products(
        self, node: int, parents: Parents, place: int, products: ProductRegressions
    ) -> tuple[float, Ints]:
        """Return the score of the regression on products too, and its columns."""
        columns, n_products = products.columns(parents)
        key = node, parents, place
        value = self._with.get(key)
        if value is None:
            left = products.left(self._responses(node, place), columns)
            fit, base = self._near.scale(len(columns), len(parents), node)
            price = len(self._responses(node, 0)) * math.log(max(2, len(self.names)))
            offset = float(self._blocks.offsets[place, node])
            value = self._with[key] = base - fit * left - n_products * price + offset
        return value, columns

    def _worth(
        self, left: Floats, n_plain: Ints, n_products: Ints, n_parents: int, node: int
    ) -> Floats:
        """Charge products more: there are many to choose from."""
        plain = self._near.worth(left, n_plain + n_products, n_parents, node)
        n_responses = len(self._responses(node, 0))
        worth: Floats = plain - n_responses * n_products * math.log(max(2, len(self.names)))
        return worth

    def _of_number(self, node: int, parents: Parents) -> float:
        """Return the best of the responses, each with the density of its residuals."""
        return max(self._by_response(node, parents))

    def _by_response(self, node: int, parents: Parents) -> list[float]:
        """Return the scores of a number for its value and for its normal score."""
        near, blocks = self._near, self._blocks
        products = dict(self._products_of(node))
        # The best regression of each response.
        best: dict[int, tuple[float, BlockRegressions]] = {}
        for variant, scores in zip(near.variants[node], near.values(node, parents), strict=True):
            for own, value in zip(variant.response.tolist(), scores.tolist(), strict=True):
                if own not in best or value > best[own][0]:
                    best[own] = value, variant.regressions
        left = self._residuals(parents, {own: made for own, (_, made) in best.items()})
        results = [-math.inf, -math.inf]
        for place, response in enumerate(blocks.responses[:, node].tolist()):
            if response not in best:
                continue
            value, residuals = best[response][0], left[response]
            if place in products:
                other, columns = self._with_products(node, parents, place, products[place])
                if other > value:
                    value = other
                    residuals = products[place].residuals(response, columns)
            if node in blocks.absent:
                residuals = residuals[~blocks.absent[node]]
            stands_for = blocks.n_rows / len(blocks.thinned)
            results[place] = value + stands_for * shape_gain(residuals, sharp=self._is_sharp)
        return results

    def _residuals(
        self, parents: Parents, regressions: Mapping[int, BlockRegressions]
    ) -> dict[int, Floats]:
        """Return the residuals of responses in the thinned rows, each of its regression."""
        thinned = self._blocks.thinned
        if not parents:
            return {response: thinned[:, response] for response in regressions}
        left = {}
        for each in dict.fromkeys(regressions.values()):
            own = np.array([response for response, used in regressions.items() if used is each])
            columns, slopes = each.slopes(own, parents)
            predicted = self._blocks.predict(columns, slopes)
            for at, response in enumerate(own.tolist()):
                left[response] = thinned[:, response] - predicted[:, at]
        return left

    def _of_class(self, node: int, parents: Parents) -> float:
        """Return the likelihood of a class in a logistic regression or a table, less its price."""
        blocks, near = self._blocks, self._near
        values = [float(scores[0]) for scores in near.values(node, parents)]
        best = max(values)
        logistics = self._regressions_of(node)
        if logistics is not None:
            worth = logistics.best(node, parents).worth
            value = blocks.scale * worth - near.extra * len(parents)
        else:
            value = self._of_variants(node, parents, values)
        for place, products in self._products_of(node):
            worth, columns = self._with_products(node, parents, place, products)
            if worth > best:
                made, n_products = products.rows_of(columns), products.columns(parents)[1]
                value = max(value, self._logistic(node, parents, *made, n_products))
        n_levels = int(blocks.levels[node].max(initial=0)) + 1
        is_whole = self._n_categories.get(node) == n_levels
        if self._tables and is_whole and all(self.names[at] in self._place for at in parents):
            known = tuple(sorted(self._place[self.names[parent]] for parent in parents))
            own = self._place[self.names[node]]
            of_tables = [each.family(own, known) for each in self._tables]
            of_table = self._table_scale * max(of_tables)
            value = max(value, of_table - near.extra * len(parents))
        return value

    def _regressions_of(self, node: int) -> LogisticRegressions | None:
        """Return the regressions that choose functions parent by parent, if they are used."""
        if self._logistics is None or not self._blocks.is_class[node]:
            return None
        return self._logistics if self._logistics.is_cheap(node) else None

    def _of_variants(self, node: int, parents: Parents, values: list[float]) -> float:
        """Return the best of several numbers of functions; with many rows, the one of `values`."""
        variants = self._near.variants[node]
        if len(self._blocks.sample) > _FEW_ROWS:
            variants = [variants[int(np.argmax(values))]]
        value = -math.inf
        # Of parents that are classes, all variants have the same columns.
        tried = [each.regressions.columns(parents) for each in variants]
        for columns in {each.tobytes(): each for each in tried}.values():
            rows = self._blocks.sample[:, columns]
            worth = self._starts.likelihood(node, columns, rows)
            value = max(value, self._less_price(worth, node, parents, rows.shape[1]))
        return value

    def _logistic(
        self,
        node: int,
        parents: Parents,
        rows: Floats,
        correlation: Floats,
        n_products: int = 0,
    ) -> float:
        """Return the likelihood of a class in a logistic regression, less its price."""
        likelihood = softmax_likelihood(rows, self._blocks.levels[node], correlation)
        return self._less_price(likelihood, node, parents, rows.shape[1], n_products)

    def _less_price(
        self, likelihood: float, node: int, parents: Parents, n_columns: int, n_products: int = 0
    ) -> float:
        """Return the likelihood of a class less the price of its coefficients and parents."""
        blocks, near = self._blocks, self._near
        levels = blocks.levels[node]
        price = near.penalty * math.log(len(levels)) / 2
        cost = price * (n_columns + 1) + n_products * math.log(max(2, len(self.names)))
        n_free = int(levels.max(initial=0))
        value: float = blocks.scale * (likelihood - n_free * cost) - near.extra * len(parents)
        return value
