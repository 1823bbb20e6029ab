"""Gaussian regressions on leads of numbers, on classes, and on products of pairs of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from dsage.structure.blocks import Blocks, Floats, Ints
from dsage.structure.scores.base import Parents
from dsage.structure.scores.block_gaussian import (
    RIDGE,
    covariance_without,
    inverse_factor,
    log_determinant,
    solve_covariance,
)

Pair = tuple[int, int]

# Columns of products that are considered at most, and indicators of a class in a product.
_MAX_PRODUCTS, _MAX_INDICATORS = 1_000, 4
# Sets of parents whose columns are remembered.
_MAX_KNOWN = 10_000


def parent_pairs(blocks: Blocks, parents: Sequence[Parents]) -> list[Pair]:
    """Return the pairs of parents of a variable: two numbers, or a number and a class."""
    pairs = (pair for of_node in parents for pair in itertools.combinations(of_node, 2))
    return _usable(blocks, pairs)


def near_pairs(blocks: Blocks, parents: Sequence[Parents]) -> list[Pair]:
    """Return the pairs of variables with a common neighbour; all pairs if they are few."""
    every = _usable(blocks, itertools.combinations(range(len(blocks.names)), 2))
    if _count(blocks, every)[-1] <= _MAX_PRODUCTS // 2:
        return every
    near: list[set[int]] = [set(of_node) for of_node in parents]
    for node, of_node in enumerate(parents):
        for parent in of_node:
            near[parent].add(node)
    around = (itertools.combinations(sorted(each), 2) for each in sorted(near, key=len))
    found = _usable(blocks, itertools.chain.from_iterable(around))
    return list(itertools.compress(found, _count(blocks, found)[1:] <= _MAX_PRODUCTS))


def _usable(blocks: Blocks, pairs: Iterable[Pair]) -> list[Pair]:
    """Return distinct pairs of two numbers, or of a number and a class of few levels."""
    is_class = blocks.is_class
    is_fine = ~is_class | (blocks.widths <= _MAX_INDICATORS)
    return [
        (one, other)
        for one, other in dict.fromkeys(pairs)
        if is_fine[one] and is_fine[other] and not (is_class[one] and is_class[other])
    ]


def _count(blocks: Blocks, pairs: Sequence[Pair]) -> Ints:
    """Return the number of columns of the products of the first 0, 1, 2, ... pairs."""
    widths = np.where(blocks.is_class, blocks.widths, 1)
    sizes = [int(widths[one] * widths[other]) for one, other in pairs]
    return np.cumsum([0, *sizes], dtype=np.intp)


class ProductRegressions:
    """Regressions on one column a number, on classes, and on products of two of them.

    The moments are computed from the sample of the blocks.

    Parameters
    ----------
    blocks : Blocks
    response : {0, 1}
        Whether numbers are their values or their normal scores, as parents and as children.
    pairs : iterable of pairs of int
        The variables whose products are used: of two numbers, or of a number with the indicators
        of a class.

    Attributes
    ----------
    widths : int array of shape (n_nodes,)
        The number of columns of each variable, without products.
    """

    def __init__(self, blocks: Blocks, response: int, pairs: Iterable[Pair]) -> None:
        n_nodes = len(blocks.names)
        leads = blocks.responses[response]
        used = [
            blocks.columns(node) if blocks.is_class[node] else leads[node : node + 1]
            for node in range(n_nodes)
        ]
        self.widths = np.array([len(block) for block in used], dtype=np.intp)
        # Only these columns of the blocks are used. Here they are numbered by variable.
        self._plain = np.concatenate(used)
        self._place = np.full(blocks.sample.shape[1], -1, dtype=np.intp)
        self._place[self._plain] = np.arange(len(self._plain))
        self._blocks = [self._place[block] for block in used]
        made = sorted({(min(pair), max(pair)) for pair in pairs})
        sizes = [int(self.widths[one] * self.widths[other]) for one, other in made]
        ends = np.cumsum(sizes, dtype=np.intp)
        self._rows = blocks
        self._products = _multiply(blocks.sample, [(used[one], used[other]) for one, other in made])
        self._n_plain = len(self._plain)
        self._nothing = self._n_plain + self._products.shape[1]
        # The columns of each pair, filled up with one that nothing depends on.
        shape = (n_nodes, n_nodes, max(sizes, default=1))
        self._pair = np.full(shape, self._nothing, dtype=np.intp)
        for (one, other), size, end in zip(made, sizes, ends.tolist(), strict=True):
            self._pair[one, other, :size] = self._n_plain + np.arange(end - size, end)
            self._pair[other, one] = self._pair[one, other]
        self._correlation = self._correlate()
        self._columns: dict[Parents, tuple[Ints, int]] = {}
        self._padded = np.full((n_nodes, int(self.widths.max())), self._nothing, dtype=np.intp)
        for node, block in enumerate(self._blocks):
            self._padded[node, : len(block)] = block

    def _correlate(self) -> Floats:
        sample, products = self._rows.sample[:, self._plain], self._products
        n_plain, is_whole = self._n_plain, self._rows.scale == 1.0
        correlation = np.zeros((self._nothing + 1, self._nothing + 1))
        correlation[:n_plain, :n_plain] = (
            self._rows.correlation[np.ix_(self._plain, self._plain)]
            if is_whole
            else sample.T @ sample / len(sample)
        )
        correlation[n_plain:-1, n_plain:-1] = products.T @ products / len(sample)
        correlation[:n_plain, n_plain:-1] = sample.T @ products / len(sample)
        correlation[n_plain:-1, :n_plain] = correlation[:n_plain, n_plain:-1].T
        np.fill_diagonal(correlation, 1.0 + RIDGE)
        return correlation

    def columns(self, parents: Parents) -> tuple[Ints, int]:
        """Return the columns of the parents, and how many of them, the last ones, are products.

        They have the numbers that other methods take.
        """
        found = self._columns.get(parents)
        if found is None:
            own = [self._blocks[parent] for parent in parents]
            at = np.array(parents, dtype=np.intp)
            above, before = _below(len(parents))
            products = self._pair[at[above], at[before]].ravel()
            products = products[products != self._nothing]
            columns = np.concatenate([np.empty(0, dtype=np.intp), *own, products])
            if len(self._columns) >= _MAX_KNOWN:
                self._columns.clear()
            found = self._columns[parents] = columns, len(products)
        return found

    def left(self, response: Ints, columns: Ints) -> float:
        """Return the log determinant of the response's covariance given columns."""
        response = self._place[response]
        covariance = self._correlation[response[:, None], response]
        if len(columns):
            reached = self._correlation[columns[:, None], response]
            inner = self._correlation[columns[:, None], columns]
            covariance = covariance - reached.T @ solve_covariance(inner, reached)
        return float(log_determinant(covariance))

    def left_with(self, response: Ints, parents: Parents) -> tuple[Floats, Ints]:
        """Return the same with each variable as one more parent, and its number of products."""
        known, _ = self.columns(parents)
        at, response = list(parents), self._place[response]
        new = np.concatenate(
            [self._padded, self._pair[:, at].reshape(len(self._blocks), -1)], axis=1
        )
        is_filler = new == self._nothing
        spread = self._correlation[new[:, :, None], new[:, None, :]]
        covariance = self._correlation[new[:, :, None], response]
        residual = self._correlation[response[:, None], response]
        if len(known):
            # Columns that fill up are correlated with nothing.
            inverse = inverse_factor(self._correlation[known[:, None], known])
            wanted = np.concatenate([new.ravel(), response])
            # Whole rows first, then columns: faster than single entries.
            rows = inverse @ self._correlation[known].take(wanted, axis=1)
            reached = rows[:, : new.size].reshape(-1, *new.shape).transpose(1, 2, 0)
            own = rows[:, new.size :]
            spread -= reached @ reached.transpose(0, 2, 1)
            covariance -= reached @ own
            residual = residual - own.T @ own
        # The same column several times is several independent columns.
        spread *= ~(is_filler[:, :, None] | is_filler[:, None, :])
        size = np.arange(new.shape[1])
        spread[:, size, size] += is_filler + RIDGE
        spread[at] = np.eye(new.shape[1])
        explained = np.linalg.solve(spread, covariance)
        left = log_determinant(residual - covariance.transpose(0, 2, 1) @ explained)
        n_products = new.shape[1] - self._padded.shape[1]
        return left, n_products - is_filler[:, self._padded.shape[1] :].sum(axis=1)

    def left_without(self, response: Ints, parents: Parents) -> tuple[Floats, Ints]:
        """Return the same without each of the parents, and the number of products left."""
        known, _ = self.columns(parents)
        response = self._place[response]
        # Each column has one owner, or two.
        size = len(parents)
        first = np.repeat(np.arange(size), self.widths[list(parents)])
        n_plain = len(first)
        later, earlier = _below(size)
        at = np.array(parents, dtype=np.intp)
        n_each = (self._pair[at[later], at[earlier]] != self._nothing).sum(axis=1)
        one = np.concatenate([first, np.repeat(later, n_each)])
        other = np.concatenate([first, np.repeat(earlier, n_each)])
        groups = np.arange(size)[:, None]
        is_taken = (one == groups) | (other == groups)
        n_taken = is_taken.sum(axis=1)
        places = np.full((size, int(n_taken.max())), len(known), dtype=np.intp)
        places[np.arange(places.shape[1]) < n_taken[:, None]] = np.nonzero(is_taken)[1]
        left = covariance_without(
            self._correlation[known[:, None], known],
            self._correlation[known[:, None], response],
            self._correlation[response[:, None], response],
            places,
        )
        return log_determinant(left), len(known) - n_plain - is_taken[:, n_plain:].sum(axis=1)

    def residuals(self, response: int, columns: Ints) -> Floats:
        """Return the residuals of a response in the thinned rows."""
        inner = self._correlation[np.ix_(columns, columns)]
        slopes = np.linalg.solve(inner, self._correlation[columns, self._place[response]])
        plain = columns < self._n_plain
        predicted = self._rows.predict(self._plain[columns[plain]], slopes[plain])
        thinned = self._products[:: self._rows.thinning]
        predicted += thinned[:, columns[~plain] - self._n_plain] @ slopes[~plain]
        return self._rows.thinned[:, response] - predicted

    def rows_of(self, columns: Ints) -> tuple[Floats, Floats]:
        """Return columns in the rows of the sample, and their correlation."""
        plain = columns < self._n_plain
        made = np.empty((len(self._products), len(columns)))
        made[:, plain] = self._rows.sample[:, self._plain[columns[plain]]]
        made[:, ~plain] = self._products[:, columns[~plain] - self._n_plain]
        return made, self._correlation[np.ix_(columns, columns)]


@functools.lru_cache(maxsize=64)
def _below(size: int) -> tuple[Ints, Ints]:
    """Return the places of pairs: the later one, and the earlier one."""
    later, earlier = np.tril_indices(size, -1)
    return later, earlier


def _multiply(sample: Floats, pairs: list[tuple[Ints, Ints]]) -> Floats:
    """Return the standardised products of each column of one block with each of the other."""
    columns = [(int(each), int(other)) for pair in pairs for each in pair[0] for other in pair[1]]
    products = np.empty((len(sample), len(columns)), order="F")
    for place, (one, other) in enumerate(columns):
        made = sample[:, one] * sample[:, other]
        made -= made.mean()
        products[:, place] = made / (float(made.std()) or 1.0)
    return products
