"""Moments of blocks: the basis columns that represent each variable, and their correlations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from dsage.data.basis import NumberBasis, is_heavy, level_places
from dsage.data.pools import single_blas
from dsage.data.rows import Rows, spread
from dsage.data.table import normal_scores
from dsage.structure.moments import Running

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

N_TERMS = 8
"""Basis functions of a number."""

RESPONSES = ("value", "score")
"""The forms of a number as a child: itself or its normal score."""

# Rows that are kept for likelihoods that moments do not give, and their memory.
_MAX_SAMPLE, _SAMPLE_BYTES, _MAX_THINNED = 20_000, 128 * 2**20, 4_000
# Bytes of the basis columns of a chunk of rows.
_CHUNK_BYTES = 32 * 2**20
# Rows that functions are fitted to.
_MAX_FITTED = 1 << 16
NEGENTROPY = 1.5
"""A margin is not normal if its negentropy exceeds this over the root of the number of rows."""

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
        Constants that are added to the log-likelihoods of a response, so that both are densities of
        the value; -inf if a response is not to be used.
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
    def from_table(cls, rows: Rows, *, correlate: bool = True) -> Self:
        """Compute the blocks of typed columns, in memory or on disk, in chunks.

        Functions of numbers are fitted to 65,536 rows at most, evenly spread. Another pass gives
        the correlations and the sample, so that memory does not grow with the number of rows. With
        many columns, correlations take most of the time; without `correlate`, the array is empty.
        """
        with single_blas():
            maker = _Maker(rows)
        return cls(
            rows.names,
            rows.n_rows,
            maker.is_class,
            maker.starts,
            maker.widths,
            maker.responses,
            maker.offsets,
            *maker.result(correlate=correlate),
        )

    @property
    def scale(self) -> float:
        """The number of rows that one row of the sample represents."""
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
        """Return sums of columns, times slopes, in the thinned rows.

        Shape (n_thinned,), and (n_thinned, n_responses) for slopes of several responses.
        """
        predicted = np.zeros((len(self.thinned), *slopes.shape[1:]))
        # Blocks of columns are read in place.
        ends = [*(np.flatnonzero(np.diff(columns) != 1) + 1).tolist(), len(columns)]
        start = 0
        for end in ends if len(columns) else ():
            first = int(columns[start])
            predicted += self.thinned[:, first : first + end - start] @ slopes[start:end]
            start = end
        return predicted


class _Maker:
    """The columns of the blocks, made from the rows."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        names, n_rows = rows.names, rows.n_rows
        self.is_class = np.array([name in set(rows.discrete) for name in names], dtype=np.bool_)
        # The level of each code of a class, and the values of numbers that are classes.
        self._levels = {
            names.index(name): level_places(rows.frequencies(name)) for name in rows.discrete
        }
        self._binary: dict[int, Floats] = {}
        self.offsets = np.zeros((2, len(names)))
        self._bases: dict[int, NumberBasis] = {}
        # The functions at the rows that they were fitted to, if these are all rows.
        self._made: dict[int, tuple[Floats, Floats, Floats]] = {}
        fitted = rows.pick(spread(n_rows, _MAX_FITTED))
        self._add_binary(fitted)
        places = {names.index(name): place for place, name in enumerate(rows.continuous)}
        self._places = {node: places[node] for node in self._numbers()}
        for node, place in self._places.items():
            self._fit(node, fitted[:, place])
        sizes = {node: self._n_levels(node) - 1 for node in self._levels}
        sizes |= {node: basis.weights.shape[1] for node, basis in self._bases.items()}
        self.widths = np.array([sizes[node] for node in range(len(names))], dtype=np.intp)
        self.starts = np.cumsum(self.widths) - self.widths
        n_functions = int(self.widths.sum())
        self.responses = np.stack([self.starts, self.starts])
        for number, node in enumerate(self._numbers()):
            self.responses[:, node] = n_functions + 2 * number + np.arange(2)
        self._n_columns = n_functions + 2 * len(self._bases)
        most = max(1, _SAMPLE_BYTES // (8 * max(1, self._n_columns)))
        self._sampled = spread(n_rows, min(_MAX_SAMPLE, most))

    def _n_levels(self, node: int) -> int:
        """Return the number of levels that occur."""
        if node in self._binary:
            return len(self._binary[node])
        occurs = self._rows.frequencies(self._rows.names[node]) > 0
        return int(self._levels[node][occurs].max(initial=0)) + 1

    def _add_binary(self, fitted: Floats) -> None:
        """Take numbers with two values, such as indicators of missing values, for classes."""
        columns = self._rows.continuous
        found = {
            place: values
            for place in range(len(columns))
            if not np.isnan(fitted[:, place]).any()
            and len(values := np.unique(fitted[:, place])) <= 2
        }
        counts = {place: np.zeros(len(values), dtype=np.intp) for place, values in found.items()}
        if not found:
            return
        for chunk in self._rows.numbers():
            for place, values in found.items():
                counts[place] += (chunk[:, [place]] == values).sum(axis=0)
        for place, values in found.items():
            # Other values may occur in rows that were not read.
            if counts[place].sum() == self._rows.n_rows:
                node = self._rows.names.index(columns[place])
                self._levels[node], self._binary[node] = level_places(counts[place]), values
                self.is_class[node] = True

    def _numbers(self) -> list[int]:
        return [int(node) for node in np.flatnonzero(~self.is_class)]

    def _fit(self, node: int, values: Floats) -> None:
        """Fit the functions of a number, and decide what it is as a child."""
        present = values[~np.isnan(values)]
        score = normal_scores(present)
        surplus = negentropy(present, score)
        if math.isinf(surplus):
            straight = float(np.corrcoef(present, score)[0, 1]) ** 2
            is_scored = straight < _STRAIGHT
            self.offsets[:, node] = (-np.inf, 0.0) if is_scored else (0.0, -np.inf)
        else:
            is_scored = surplus > NEGENTROPY / math.sqrt(len(present))
            share = len(present) / max(1, len(values))
            self.offsets[1, node] = self._rows.n_rows * share * surplus if is_scored else -np.inf
        leads: tuple[str, ...] = ("score", "value") if is_scored else ("value",)
        if is_scored and is_heavy(present):
            # A few rows far outside, which neither ranks nor values show.
            leads = (*leads, "tail")
        self._bases[node], made = NumberBasis.fit_evaluate(values, N_TERMS, leads=leads)
        if len(values) == self._rows.n_rows <= _MAX_SAMPLE:
            self._made[node] = made

    def result(
        self, *, correlate: bool
    ) -> tuple[Floats, Floats, dict[int, Ints], dict[int, npt.NDArray[np.bool_]]]:
        """Return correlations, the sample, its levels, and what is missing in its thinned rows.

        All of them come from one pass over the rows.
        """
        running = Running(tuple(str(column) for column in range(self._n_columns)))
        n_sampled = len(self._sampled)
        sample = np.empty((n_sampled, self._n_columns), order="F")
        numbers = np.empty((n_sampled, len(self._rows.continuous)))
        levels = np.empty((n_sampled, len(self._levels)), dtype=np.intp)
        at = 0
        for chunk, codes in self._chunks():
            first, last = np.searchsorted(self._sampled, [at, at + len(chunk)])
            inside, place = self._sampled[first:last] - at, slice(first, last)
            found = self._find_levels(chunk, codes)
            numbers[place], levels[place] = chunk[inside], found[inside]
            if correlate:
                design = self._design(chunk, found, np.arange(at, at + len(chunk)))
                sample[place] = design if len(inside) == len(chunk) else design[inside]
                running.add(design)
                # Before the next one is made.
                del design
            else:
                sample[place] = self._design(chunk[inside], found[inside], at + inside)
            at += len(chunk)
        if correlate:
            n_rows = self._rows.n_rows
            # With many columns these arrays are large, so there are few of them at a time.
            _, _, mean, correlation = running.result()
            del running
            correlation /= n_rows
            deviation = np.sqrt(np.maximum(correlation.diagonal(), 0.0))
            deviation[deviation == 0.0] = 1.0
            for at, own in enumerate(deviation):
                correlation[at] /= own * deviation
            np.fill_diagonal(correlation, 1.0)
        else:
            mean, deviation = sample.mean(axis=0), sample.std(axis=0)
            deviation[deviation == 0.0] = 1.0
            correlation = np.empty((0, 0))
        sample -= mean
        sample /= deviation
        absent = np.isnan(numbers[:: -(-len(numbers) // _MAX_THINNED)])
        gaps = {
            node: absent[:, place] for node, place in self._places.items() if absent[:, place].any()
        }
        of_classes = {node: levels[:, at].copy() for at, node in enumerate(self._levels)}
        # Blocks of columns are contiguous.
        return correlation, np.asfortranarray(sample), of_classes, gaps

    def _chunks(self) -> Iterator[tuple[Floats, Ints]]:
        """Yield the rows in chunks whose basis columns have bounded memory."""
        if self._rows.n_rows == len(self._sampled):
            # The sample is in memory anyway, and one chunk is the same for all sources.
            parts = list(self._rows.batches())
            yield (
                np.concatenate([part[0] for part in parts]),
                np.concatenate([part[1] for part in parts]),
            )
            return
        step = max(1, _CHUNK_BYTES // (8 * max(1, self._n_columns)))
        for numbers, codes in self._rows.batches():
            for start in range(0, len(numbers), step):
                yield numbers[start : start + step], codes[start : start + step]

    def _find_levels(self, numbers: Floats, codes: Ints) -> Ints:
        """Return the levels of classes, in the order of `_levels`."""
        levels = np.empty((len(numbers), len(self._levels)), dtype=np.intp)
        names = self._rows.names
        for at, (node, places) in enumerate(self._levels.items()):
            if node in self._binary:
                column = numbers[:, self._rows.continuous.index(names[node])]
                found = np.searchsorted(self._binary[node], column)
            else:
                found = codes[:, self._rows.discrete.index(names[node])]
            levels[:, at] = places[found]
        return levels

    def _design(self, numbers: Floats, levels: Ints, rows: Ints) -> Floats:
        # Column by column in memory, as they are written and read.
        design = np.empty((len(numbers), self._n_columns), order="F")
        for at, node in enumerate(self._levels):
            place = slice(self.starts[node], self.starts[node] + self.widths[node])
            columns = np.arange(1, int(self.widths[node]) + 1)
            design[:, place] = levels[:, [at]] == columns
        for node, at in self._places.items():
            made = self._made.get(node)
            if made is None:
                made = self._bases[node].evaluate(numbers[:, at])
            functions, value, score = (
                each[rows] if node in self._made and len(rows) < len(each) else each
                for each in made
            )
            design[:, self.starts[node] : self.starts[node] + self.widths[node]] = functions
            design[:, self.responses[0, node]] = value
            design[:, self.responses[1, node]] = score
        return design


def negentropy(values: Floats, score: Floats) -> float:
    """Return how much lower the entropy of standardised values is than a normal variable's.

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
