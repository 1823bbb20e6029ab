"""Moments of blocks: the basis columns that stand for each variable, and their correlations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from dsage.data.basis import NumberBasis, merge_levels
from dsage.data.table import Table, normal_scores
from dsage.structure.moments import Running

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

N_TERMS = 8
"""Basis functions of a number."""

RESPONSES = ("value", "score")
"""What a number is as a child: itself or its normal score."""

# Rows that are kept for likelihoods that moments do not give, and their memory.
_MAX_SAMPLE, _SAMPLE_BYTES, _MAX_THINNED = 20_000, 128 * 2**20, 4_000
# Rows that functions are fitted to.
_MAX_FITTED = 1 << 16
# A margin is not normal if its negentropy exceeds this over the root of the number of rows.
_NEGENTROPY = 1.5
# Numbers with equal values have no density; with a smaller squared correlation of values and
# scores, they are taken as scores.
_STRAIGHT = 0.8


@dataclass(frozen=True, eq=False)
class Blocks:
    """Correlations of the basis columns of all variables, and some of their rows.

    Columns are numbered by variable: variable v has the columns ``starts[v] .. starts[v] +
    widths[v] - 1``, which are its indicators if it is a class, its basis functions otherwise. The
    responses of numbers follow: the value of variable v is column ``responses[0, v]``, its normal
    score ``responses[1, v]``. All columns are standardised.

    Attributes
    ----------
    names : tuple of str
        The variables.
    n_rows : int
        The number of rows.
    is_class : bool array of shape (n_nodes,)
    starts, widths : int arrays of shape (n_nodes,)
    responses : int array of shape (2, n_nodes)
        For a class, the first of its indicators.
    offsets : array of shape (2, n_nodes)
        What is added to the log-likelihood of a response, so that those of both responses are
        densities of the value; -inf if it is not to be used.
    correlation : array of shape (n_columns, n_columns)
    sample : array of shape (n_sample, n_columns)
        The columns for some of the rows.
    levels : dict of int to int array of shape (n_sample,)
        The levels of each class in these rows.
    absent : dict of int to bool array of shape (n_sample,)
        Which values of a number are missing in the thinned rows, if any are.
    """

    names: tuple[str, ...]
    n_rows: int
    is_class: npt.NDArray[np.bool_]
    starts: Ints
    widths: Ints
    responses: Ints
    offsets: Floats
    correlation: Floats
    sample: Floats
    levels: dict[int, Ints]
    absent: dict[int, npt.NDArray[np.bool_]]

    @classmethod
    def from_table(cls, table: Table) -> Self:
        """Compute the blocks of typed columns, in chunks."""
        maker = _Maker(table)
        return cls(
            table.names,
            table.n_rows,
            maker.is_class,
            maker.starts,
            maker.widths,
            maker.responses,
            maker.offsets,
            *maker.moments(),
            maker.sampled_levels(),
            maker.sampled_gaps(),
        )

    @property
    def scale(self) -> float:
        """How many rows one row of the sample stands for."""
        return self.n_rows / len(self.sample)

    def columns(self, node: int, n_terms: int = N_TERMS) -> Ints:
        """Return the columns of a variable, at most `n_terms` of a number."""
        width = int(self.widths[node])
        width = width if self.is_class[node] else min(width, n_terms)
        return np.arange(self.starts[node], self.starts[node] + width)

    @property
    def thinning(self) -> int:
        """The step from one thinned row to the next, in the sample."""
        return -(-len(self.sample) // _MAX_THINNED)

    @cached_property
    def thinned(self) -> Floats:
        """Fewer rows of the sample: enough for the density of residuals."""
        return np.asfortranarray(self.sample[:: self.thinning])

    def predict(self, columns: Ints, slopes: Floats) -> Floats:
        """Return sums of columns, times slopes, in the thinned rows."""
        predicted = np.zeros(len(self.thinned))
        for run in np.split(np.arange(len(columns)), np.flatnonzero(np.diff(columns) != 1) + 1):
            if len(run):
                first = int(columns[run[0]])
                predicted += self.thinned[:, first : first + len(run)] @ slopes[run]
        return predicted


class _Maker:
    """The columns of the blocks, made of the rows."""

    def __init__(self, table: Table) -> None:
        self._table = table
        names, n_rows = table.names, table.n_rows
        self.is_class = np.array([name in set(table.discrete) for name in names], dtype=np.bool_)
        self._levels = {
            node: merge_levels(table.codes(name)[0])
            for node, name in enumerate(names)
            if self.is_class[node]
        }
        self.offsets = np.zeros((2, len(names)))
        self._bases: dict[int, NumberBasis] = {}
        fitted = self._take(_spread(n_rows, _MAX_FITTED))
        self._add_binary(fitted)
        self._places = {table.continuous.index(names[node]): node for node in self._numbers()}
        for place, node in self._places.items():
            self._fit(node, fitted[:, place])
        sizes = {node: int(levels.max(initial=0)) for node, levels in self._levels.items()}
        sizes |= {node: basis.weights.shape[1] for node, basis in self._bases.items()}
        self.widths = np.array([sizes[node] for node in range(len(names))], dtype=np.intp)
        self.starts = np.cumsum(self.widths) - self.widths
        n_functions = int(self.widths.sum())
        self.responses = np.stack([self.starts, self.starts])
        for number, node in enumerate(self._numbers()):
            self.responses[:, node] = n_functions + 2 * number + np.arange(2)
        self._n_columns = n_functions + 2 * len(self._bases)

    def _add_binary(self, fitted: Floats) -> None:
        """Take numbers with two values, such as indicators of missing values, for classes."""
        columns = self._table.continuous
        few = [
            place
            for place in range(len(columns))
            if not np.isnan(fitted[:, place]).any() and len(np.unique(fitted[:, place])) <= 2
        ]
        if not few:
            return
        whole = np.concatenate([chunk[:, few] for chunk in self._table.numbers()])
        for at, place in enumerate(few):
            values, codes = np.unique(whole[:, at], return_inverse=True)
            if len(values) <= 2 and not np.isnan(values).any():
                node = self._table.names.index(columns[place])
                self._levels[node] = merge_levels(codes)
                self.is_class[node] = True

    def _numbers(self) -> list[int]:
        return [int(node) for node in np.flatnonzero(~self.is_class)]

    def _fit(self, node: int, values: Floats) -> None:
        """Fit the functions of a number, and decide what it is as a child."""
        present = values[~np.isnan(values)]
        score = normal_scores(present)
        surplus = _negentropy(present, score)
        if math.isinf(surplus):
            straight = float(np.corrcoef(present, score)[0, 1]) ** 2
            is_scored = straight < _STRAIGHT
            self.offsets[:, node] = (-np.inf, 0.0) if is_scored else (0.0, -np.inf)
        else:
            is_scored = surplus > _NEGENTROPY / math.sqrt(len(present))
            share = len(present) / max(1, len(values))
            self.offsets[1, node] = self._table.n_rows * share * surplus if is_scored else -np.inf
        leads = ("score", "value") if is_scored else ("value",)
        self._bases[node] = NumberBasis.fit(values, N_TERMS, leads=leads)

    def moments(self) -> tuple[Floats, Floats]:
        """Return the correlations of all columns, and the standardised columns of the sample."""
        rows_of_sample = self._sampled()
        sample = self._design(self._take(rows_of_sample), rows_of_sample)
        running = Running(tuple(str(column) for column in range(self._n_columns)))
        if len(sample) == self._table.n_rows:
            running.add(sample.copy())
        else:
            at = 0
            for numbers in self._chunks():
                rows = slice(at, at + len(numbers))
                running.add(self._design(numbers, rows))
                at = rows.stop
        _, _, mean, scatter = running.result()
        deviation = np.sqrt(np.maximum(scatter.diagonal() / self._table.n_rows, 0.0))
        deviation[deviation == 0.0] = 1.0
        correlation = scatter / self._table.n_rows / np.outer(deviation, deviation)
        np.fill_diagonal(correlation, 1.0)
        sample -= mean
        sample /= deviation
        # Blocks of columns are contiguous.
        return correlation, np.asfortranarray(sample)

    def sampled_levels(self) -> dict[int, Ints]:
        """Return the levels of classes in the rows of the sample."""
        return {node: levels[self._sampled()] for node, levels in self._levels.items()}

    def sampled_gaps(self) -> dict[int, npt.NDArray[np.bool_]]:
        """Return where numbers are missing in the thinned rows of the sample."""
        rows = self._sampled()
        absent = np.isnan(self._take(rows[:: -(-len(rows) // _MAX_THINNED)]))
        return {node: absent[:, at] for at, node in self._places.items() if absent[:, at].any()}

    def _sampled(self) -> Ints:
        most = max(1, _SAMPLE_BYTES // (8 * max(1, self._n_columns)))
        return _spread(self._table.n_rows, min(_MAX_SAMPLE, most))

    def _chunks(self) -> Iterator[Floats]:
        """Yield the numbers in chunks whose basis columns have bounded memory."""
        step = max(1, _SAMPLE_BYTES // (16 * max(1, self._n_columns)))
        for chunk in self._table.numbers():
            for start in range(0, len(chunk), step):
                yield chunk[start : start + step]

    def _take(self, rows: Ints) -> Floats:
        """Return some rows of the numbers; they are in increasing order."""
        parts, at = [], 0
        for chunk in self._table.numbers():
            inside = rows[(rows >= at) & (rows < at + len(chunk))] - at
            parts.append(chunk[inside])
            at += len(chunk)
        return np.concatenate(parts) if parts else np.empty((len(rows), 0))

    def _design(self, numbers: Floats, rows: slice | Ints) -> Floats:
        design = np.empty((len(numbers), self._n_columns))
        for node, levels in self._levels.items():
            place = slice(self.starts[node], self.starts[node] + self.widths[node])
            columns = np.arange(1, int(self.widths[node]) + 1)
            design[:, place] = levels[rows][:, None] == columns
        for at, node in self._places.items():
            functions, value, score = self._bases[node].evaluate(numbers[:, at])
            design[:, self.starts[node] : self.starts[node] + self.widths[node]] = functions
            design[:, self.responses[0, node]] = value
            design[:, self.responses[1, node]] = score
        return design


def _spread(n_rows: int, most: int) -> Ints:
    """Return at most so many rows, evenly spread."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, most).round().astype(np.intp)


def _negentropy(values: Floats, score: Floats) -> float:
    """Return how much lower the entropy of standardised values is than that of a normal variable.

    Both entropies are estimated by spacings of 2 sqrt(n) ranks, so that they have the same bias;
    inf if too many values are equal.
    """
    deviation = float(values.std())
    step = 2 * max(1, round(math.sqrt(len(values))))
    if deviation == 0.0 or len(values) <= step:
        return math.inf
    ordered = np.sort(values) / deviation
    normal = np.sort(score) / float(score.std())
    spacings = ordered[step:] - ordered[:-step]
    if not (spacings > 0.0).all():
        return math.inf
    return float(np.log(normal[step:] - normal[:-step]).mean() - np.log(spacings).mean())
