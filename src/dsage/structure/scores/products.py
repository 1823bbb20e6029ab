"""Gaussian regressions on leads of numbers and on products of pairs of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dsage.structure.blocks import Blocks, Floats, Ints
from dsage.structure.scores.base import Parents
from dsage.structure.scores.block_gaussian import RIDGE, log_determinant


class ProductRegressions:
    """Regressions on one column a number, on classes, and on products of the numbers.

    The moments are those of the sample of the blocks.

    Parameters
    ----------
    blocks : Blocks
    response : {0, 1}
        Whether numbers are their values or their normal scores, as parents and as children.
    pairs : iterable of pairs of int
        The numbers whose products are used.
    """

    def __init__(self, blocks: Blocks, response: int, pairs: Iterable[tuple[int, int]]) -> None:
        n_nodes = len(blocks.names)
        leads = blocks.responses[response]
        self._blocks = [
            blocks.columns(node) if blocks.is_class[node] else leads[node : node + 1]
            for node in range(n_nodes)
        ]
        made = sorted({(min(pair), max(pair)) for pair in pairs})
        sample = blocks.sample
        products = np.empty((len(sample), len(made)))
        for place, (one, other) in enumerate(made):
            products[:, place] = sample[:, leads[one]] * sample[:, leads[other]]
        products -= products.mean(axis=0)
        deviation = products.std(axis=0)
        products /= np.where(deviation > 0.0, deviation, 1.0)
        self._rows, self._products = blocks, np.asfortranarray(products)
        n_columns = sample.shape[1]
        self._nothing = n_columns + len(made)
        self._pair = np.full((n_nodes, n_nodes), self._nothing, dtype=np.intp)
        for place, (one, other) in enumerate(made):
            self._pair[one, other] = self._pair[other, one] = n_columns + place
        correlation = np.zeros((self._nothing + 1, self._nothing + 1))
        correlation[:n_columns, :n_columns] = (
            blocks.correlation if blocks.scale == 1.0 else sample.T @ sample / len(sample)
        )
        correlation[n_columns:-1, n_columns:-1] = products.T @ products / len(sample)
        correlation[:n_columns, n_columns:-1] = sample.T @ products / len(sample)
        correlation[n_columns:-1, :n_columns] = correlation[:n_columns, n_columns:-1].T
        np.fill_diagonal(correlation, 1.0 + RIDGE)
        self._correlation = correlation
        self.widths = np.array([len(block) for block in self._blocks], dtype=np.intp)
        self._padded = np.full((n_nodes, int(self.widths.max())), self._nothing, dtype=np.intp)
        for node, block in enumerate(self._blocks):
            self._padded[node, : len(block)] = block

    def columns(self, parents: Parents) -> tuple[Ints, int]:
        """Return the columns of the parents, and how many of them, the last ones, are products."""
        own = [column for parent in parents for column in self._blocks[parent].tolist()]
        products = [
            int(self._pair[parent, other])
            for place, parent in enumerate(parents)
            for other in parents[:place]
            if self._pair[parent, other] != self._nothing
        ]
        return np.array([*own, *products], dtype=np.intp), len(products)

    def left(self, response: Ints, columns: Ints) -> float:
        """Return the log determinant of the response's covariance given columns."""
        covariance = self._correlation[np.ix_(response, response)]
        if len(columns):
            rows = self._correlation[columns]
            explained = np.linalg.solve(rows[:, columns], rows[:, response])
            covariance = covariance - rows[:, response].T @ explained
        return float(log_determinant(covariance))

    def left_with(self, response: Ints, parents: Parents) -> tuple[Floats, Ints]:
        """Return the same with each variable as one more parent, and its number of products."""
        known, _ = self.columns(parents)
        new = np.concatenate([self._padded, self._pair[:, list(parents)]], axis=1)
        spread = self._correlation[new[:, :, None], new[:, None, :]]
        covariance = self._correlation[new][:, :, response]
        residual = self._correlation[np.ix_(response, response)]
        if len(known):
            factor = np.linalg.cholesky(self._correlation[np.ix_(known, known)])
            rows = np.linalg.solve(factor, self._correlation[known])
            reached = rows[:, new].transpose(1, 2, 0)
            spread = spread - reached @ reached.transpose(0, 2, 1)
            covariance = covariance - reached @ rows[:, response]
            residual = residual - rows[:, response].T @ rows[:, response]
        is_filler = new == self._nothing
        spread[is_filler[:, :, None] | is_filler[:, None, :]] = 0.0
        node, place = np.nonzero(is_filler)
        spread[node, place, place] = 1.0
        spread[list(parents)] = np.eye(new.shape[1])
        whitener = np.linalg.inv(np.linalg.cholesky(spread + RIDGE * np.eye(new.shape[1])))
        explained = whitener @ covariance
        left = log_determinant(residual - explained.transpose(0, 2, 1) @ explained)
        n_products = (~is_filler[:, self._padded.shape[1] :]).sum(axis=1)
        return left, n_products

    def residuals(self, response: int, columns: Ints) -> Floats:
        """Return the residuals of a response in the thinned rows."""
        n_columns = self._rows.sample.shape[1]
        inner = self._correlation[np.ix_(columns, columns)]
        slopes = np.linalg.solve(inner, self._correlation[columns, response])
        plain = columns < n_columns
        predicted = self._rows.predict(columns[plain], slopes[plain])
        thinned = self._products[:: self._rows.thinning]
        predicted += thinned[:, columns[~plain] - n_columns] @ slopes[~plain]
        return self._rows.thinned[:, response] - predicted
