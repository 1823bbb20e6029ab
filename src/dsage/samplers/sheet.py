"""The scores of samplers, and paired comparisons of them over rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dsage.samplers.checks import Floats, Ints
from dsage.samplers.scorer import PieceScores
from dsage.samplers.splits import Block, Piece

# A difference is clear beyond this many standard errors.
CLEAR = 2.0
# Differences that do not matter: of the MSEv as a share of the variance of the predictions, and of
# the energy score as a share of it.
NEGLIGIBLE_MSEV, NEGLIGIBLE_ENERGY = 0.001, 0.005


class Difference(NamedTuple):
    """A mean paired difference of scores, its standard error, and what is negligible."""

    mean: float
    se: float
    negligible: float

    def is_above(self, n_errors: float) -> bool:
        """Return whether it is larger than `n_errors` standard errors, and not negligible."""
        return self.mean > max(n_errors * self.se, self.negligible)


class Comparison(NamedTuple):
    """One sampler's scores minus another's: of the MSEv (None without a model) and the energy."""

    msev: Difference | None
    energy: Difference

    def is_worse(self, n_errors: float = CLEAR) -> bool:
        """Return whether the first sampler is clearly worse, in the MSEv or in the energy score."""
        return self.is_worse_in_msev(n_errors) or self.energy.is_above(n_errors)

    def is_worse_in_msev(self, n_errors: float = CLEAR) -> bool:
        """Return whether the first sampler's MSEv is clearly higher."""
        return self.msev is not None and self.msev.is_above(n_errors)


class Means(NamedTuple):
    """Mean scores; the MSEv is None without a model."""

    energy: float
    msev: float | None


class _Score:
    """One score of a sampler, block by block, as sums from which means and errors follow.

    `rows` has the weighted mean over coalitions of each row, `steps` the differences between the
    weighted means of neighboring strata of coalitions (see :class:`_Strata`).
    """

    def __init__(self) -> None:
        self.rows: list[Floats] = []
        self.steps: list[Floats] = []

    def add(self, block: Block, strata: list[_Strata], scores: Sequence[Floats]) -> None:
        pairs = list(zip(block.pieces, strata, scores, strict=True))
        self.rows.append(np.concatenate([piece.weights @ each for piece, _, each in pairs]))
        self.steps.append(np.concatenate([at.steps(each.mean(axis=1)) for _, at, each in pairs]))


class _Strata(NamedTuple):
    """The coalitions of a piece as pairs of neighboring strata; none if these are all there are.

    There is one coalition in each stratum of sizes, so that the squared difference between two
    strata that are next to each other estimates the variance within both (Cochran, Sampling
    Techniques, 1977, section 5A.12): sizes as such add nothing.
    """

    low: Ints
    high: Ints
    weights: Floats
    n_rows: int

    @classmethod
    def of(cls, piece: Piece) -> _Strata:
        order = np.argsort(piece.known.sum(axis=1), kind="stable")
        if piece.is_exact or len(order) < 2:
            order = order[:0]
        elif len(order) % 2:
            # The last one is paired with its neighbor as well.
            order = np.append(order, order[-2])
        return cls(order[::2], order[1::2], piece.weights, len(piece.rows))

    def steps(self, means: Floats) -> Floats:
        """Return the differences between strata of weighted means over rows, times the rows."""
        weighted = self.n_rows * self.weights * means
        found: Floats = weighted[self.high] - weighted[self.low]
        return found


class Sheet:
    """The scores of all samplers, block by block.

    A sampler that was dropped early has fewer blocks than the others; two are compared on the
    blocks that both have. Standard errors are over rows, and over coalitions if these are a
    sample.
    """

    def __init__(self) -> None:
        self._strata: list[list[_Strata]] = []
        self._at: list[Ints] = []
        # The steps of a score that is 1 for all coalitions.
        self._units: list[Floats] = []
        self._energy: dict[str, _Score] = {}
        self._msev: dict[str, _Score] = {}
        # Comparisons computed from the current blocks; a rule asks for them repeatedly.
        self._compared: dict[tuple[str, str], Comparison] = {}
        self._means: dict[str, Means] = {}
        self._places: dict[int, tuple[Ints, Ints]] = {}

    def add(self, name: str, block: Block, scores: list[PieceScores]) -> None:
        """Add the scores of a sampler on its next block."""
        energy = self._energy.setdefault(name, _Score())
        number = len(energy.rows)
        if number == len(self._at):
            strata = [_Strata.of(piece) for piece in block.pieces]
            self._strata.append(strata)
            self._at.append(block.at)
            ones = [each.steps(np.ones(len(each.weights))) for each in strata]
            self._units.append(np.concatenate(ones))
        strata = self._strata[number]
        energy.add(block, strata, [each.energy for each in scores])
        msev = [each.msev for each in scores if each.msev is not None]
        if len(msev) == len(scores):
            self._msev.setdefault(name, _Score()).add(block, strata, msev)
        self._means.pop(name, None)
        self._compared = {pair: each for pair, each in self._compared.items() if name not in pair}

    def __contains__(self, name: str) -> bool:
        return name in self._energy

    def n_rows(self, name: str) -> int:
        """Return the number of rows that a sampler was scored on."""
        return len(self._place(len(self._energy[name].rows))[1])

    def compare(self, name: str, other: str) -> Comparison:
        """Return the scores of one sampler minus another's, on their common blocks."""
        if (name, other) not in self._compared:
            self._compared[name, other] = self._compare(name, other)
        return self._compared[name, other]

    def _compare(self, name: str, other: str) -> Comparison:
        negligible = NEGLIGIBLE_ENERGY * abs(self.mean(other).energy)
        msev = None
        if name in self._msev and other in self._msev:
            msev = self._subtract(self._msev[name], self._msev[other], NEGLIGIBLE_MSEV)
        energy = self._subtract(self._energy[name], self._energy[other], negligible)
        return Comparison(msev, energy)

    def mean(self, name: str) -> Means:
        """Return the mean scores of a sampler over all its rows."""
        if name not in self._means:
            msev = self._msev.get(name)
            self._means[name] = Means(
                self._mean(self._energy[name]), None if msev is None else self._mean(msev)
            )
        return self._means[name]

    def _mean(self, score: _Score) -> float:
        return float(self._row_means(np.concatenate(score.rows), len(score.rows)).mean())

    def _subtract(self, one: _Score, other: _Score, negligible: float) -> Difference:
        """Return the mean difference of two scores on their common blocks, and its error."""
        n_blocks = min(len(one.rows), len(other.rows))
        rows, steps = (
            np.concatenate(ours[:n_blocks]) - np.concatenate(theirs[:n_blocks])
            for ours, theirs in ((one.rows, other.rows), (one.steps, other.steps))
        )
        of_rows = self._row_means(rows, n_blocks)
        mean = float(of_rows.mean())
        variance = float(of_rows.var(ddof=1)) / len(of_rows) if len(of_rows) > 1 else math.inf
        steps = (steps - mean * np.concatenate(self._units[:n_blocks])) / len(rows)
        return Difference(mean, math.sqrt(variance + float(steps @ steps)), negligible)

    def _row_means(self, values: Floats, n_blocks: int) -> Floats:
        """Return the mean of each row, which may have several values."""
        place, counts = self._place(n_blocks)
        means: Floats = np.bincount(place, values) / counts
        return means

    def _place(self, n_blocks: int) -> tuple[Ints, Ints]:
        """Return the position of each value of the first blocks among the rows, and counts."""
        if n_blocks not in self._places:
            _, place = np.unique(np.concatenate(self._at[:n_blocks]), return_inverse=True)
            self._places[n_blocks] = place, np.bincount(place)
        return self._places[n_blocks]
