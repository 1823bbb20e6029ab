"""Which sampler is chosen: paired comparisons over rows, and the rule that reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dsage.samplers.checks import Floats, Ints
from dsage.samplers.scorer import PieceScores
from dsage.samplers.splits import Block, Piece

# A difference is clear beyond this many standard errors: at the end, and while more rows may come.
_CLEAR, _HOPELESS = 2.0, 3.0
# Differences that do not matter: of the MSEv as a share of the variance of the predictions, and of
# the energy score as a share of it.
NEGLIGIBLE_MSEV, NEGLIGIBLE_ENERGY = 0.001, 0.005
# Nothing is given up on fewer rows.
_FEWEST_ROWS = 30


class Difference(NamedTuple):
    """A mean paired difference of scores, its standard error, and what is negligible."""

    mean: float
    se: float
    negligible: float

    def is_above(self, n_errors: float) -> bool:
        """Return whether it is larger than so many standard errors, and not negligible."""
        return self.mean > max(n_errors * self.se, self.negligible)


class Comparison(NamedTuple):
    """One sampler's scores minus another's: of the MSEv (None without a model) and the energy."""

    msev: Difference | None
    energy: Difference

    def is_worse(self, n_errors: float = _CLEAR) -> bool:
        """Return whether the first sampler is clearly worse, in the MSEv or in the energy score."""
        return self.is_worse_in_msev(n_errors) or self.energy.is_above(n_errors)

    def is_worse_in_msev(self, n_errors: float = _CLEAR) -> bool:
        """Return whether the first sampler's MSEv is clearly higher."""
        return self.msev is not None and self.msev.is_above(n_errors)


class Means(NamedTuple):
    """Mean scores; the MSEv is None without a model."""

    energy: float
    msev: float | None


class Sheet:
    """The scores of all samplers, block by block.

    A sampler that was given up early has fewer blocks than the others; two are compared on the
    blocks that both have. Standard errors are over rows, and over coalitions where these are a
    sample.
    """

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._found: dict[str, list[list[PieceScores]]] = {}
        # What has been computed from the present blocks; a rule asks for the same again and again.
        self._compared: dict[tuple[str, str], Comparison] = {}
        self._means: dict[str, Means] = {}

    def add(self, name: str, block: Block, scores: list[PieceScores]) -> None:
        """Add the scores of a sampler on its next block."""
        own = self._found.setdefault(name, [])
        if len(own) == len(self._blocks):
            self._blocks.append(block)
        own.append(scores)
        self._means.pop(name, None)
        self._compared = {pair: each for pair, each in self._compared.items() if name not in pair}

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def n_rows(self, name: str) -> int:
        """Return the number of rows that a sampler was scored on."""
        n_blocks = len(self._found[name])
        return len(np.unique(np.concatenate([block.at for block in self._blocks[:n_blocks]])))

    def compare(self, name: str, other: str) -> Comparison:
        """Return the scores of one sampler minus those of another, on their common blocks."""
        if (name, other) not in self._compared:
            self._compared[name, other] = self._compare(name, other)
        return self._compared[name, other]

    def _compare(self, name: str, other: str) -> Comparison:
        pairs = list(zip(self._found[name], self._found[other], strict=False))
        energy, msev = (
            [
                [_subtract(one[at], two[at]) for one, two in zip(ours, theirs, strict=True)]
                for ours, theirs in pairs
            ]
            for at in (0, 1)
        )
        negligible = NEGLIGIBLE_ENERGY * abs(self.mean(other).energy)
        return Comparison(
            self._summarize(msev, NEGLIGIBLE_MSEV), self._of_numbers(energy, negligible)
        )

    def mean(self, name: str) -> Means:
        """Return the mean scores of a sampler over all its rows."""
        if name not in self._means:
            self._means[name] = self._mean(name)
        return self._means[name]

    def _mean(self, name: str) -> Means:
        energy, msev = (
            self._summarize([[piece[at] for piece in block] for block in self._found[name]])
            for at in (0, 1)
        )
        return Means(
            math.nan if energy is None else energy.mean, None if msev is None else msev.mean
        )

    def _summarize(
        self, blocks: list[list[Floats | None]], negligible: float = 0.0
    ) -> Difference | None:
        """Return mean and standard error of matrices of scores; None if there are none."""
        numbers = [[piece for piece in block if piece is not None] for block in blocks]
        if any(len(some) < len(block) for some, block in zip(numbers, blocks, strict=True)):
            return None
        return self._of_numbers(numbers, negligible)

    def _of_numbers(
        self, blocks: Sequence[Sequence[Floats | None]], negligible: float
    ) -> Difference:
        """Return mean and standard error of matrices of scores, those of the first blocks."""
        at = np.concatenate([block.at for block in self._blocks[: len(blocks)]])
        pieces = [
            (piece, values)
            for block, found in zip(self._blocks, blocks, strict=False)
            for piece, values in zip(block.pieces, found, strict=True)
            if values is not None
        ]
        rows = _row_means(np.concatenate([piece.weights @ each for piece, each in pieces]), at)
        mean = float(rows.mean())
        variance = float(rows.var(ddof=1)) / len(rows) if len(rows) > 1 else math.inf
        for piece, each in pieces:
            if piece.is_exact:
                continue
            share = len(piece.rows) / len(at)
            variance += share**2 * _coalition_variance(piece, each.mean(axis=1) - mean)
        return Difference(mean, math.sqrt(variance), negligible)


def _subtract(one: Floats | None, other: Floats | None) -> Floats | None:
    return None if one is None or other is None else one - other


def _coalition_variance(piece: Piece, off: Floats) -> float:
    """Return the variance of a mean over coalitions, of which each size has its share.

    There is one coalition in each stratum of sizes, so that the squared difference between two
    strata that are next to each other estimates the variance within both (Cochran, Sampling
    Techniques, 1977, section 5A.12): sizes as such add nothing.
    """
    if len(off) < 2:
        return 0.0
    terms = (piece.weights * off)[np.argsort(piece.known.sum(axis=1), kind="stable")]
    if len(terms) % 2:
        # The last one is paired with its neighbor as well.
        terms = np.append(terms, terms[-2])
    steps = np.diff(terms)[::2]
    return float(steps @ steps)


def _row_means(values: Floats, at: Ints) -> Floats:
    """Return the mean of each row, which may have several values."""
    _, place = np.unique(at, return_inverse=True)
    means: Floats = np.bincount(place, values) / np.bincount(place)
    return means


class Ranking(NamedTuple):
    """What the rule made of the scores.

    `leader` has the lowest energy score of those that are not out, `chosen` is the simplest as good
    as it, `out` are clearly worse in the MSEv than `lowest`, which has the lowest one (None without
    a model).
    """

    chosen: str
    leader: str
    lowest: str | None
    out: tuple[str, ...]


def rank(sheet: Sheet, names: Sequence[str]) -> Ranking:
    """Choose one of the samplers, given simplest first.

    1. A sampler is out if its MSEv is clearly above the lowest one: by more than two paired
       standard errors, and by more than 0.1 % of the variance of the predictions.
    2. Of the others, the one with the lowest energy score leads.
    3. The simplest of them is chosen whose MSEv and energy score are both within one paired
       standard error of the leader's, or off by a negligible amount (0.1 % of the variance, and
       0.5 % of the score).

    Without a model the first step falls away, and the third concerns the energy score alone.
    """
    by_msev = {}
    for name in names:
        against = sheet.compare(name, names[0]).msev
        if against is not None:
            by_msev[name] = against.mean
    lowest = min(by_msev, key=by_msev.__getitem__) if by_msev else None
    out: tuple[str, ...] = ()
    if lowest is not None:
        out = tuple(n for n in names if sheet.compare(n, lowest).is_worse_in_msev())
    left = [name for name in names if name not in out]
    leader = min(left, key=lambda name: sheet.compare(name, left[0]).energy.mean)
    chosen = next(n for n in left if n == leader or not sheet.compare(n, leader).is_worse(1.0))
    return Ranking(chosen, leader, lowest, out)


def give_up(sheet: Sheet, names: Sequence[str], kept: Sequence[str] = ()) -> list[str]:
    """Return the samplers that will not be chosen, whatever more rows may show.

    A sampler is hopeless if its MSEv is more than three standard errors above that of another, or
    its energy score is, and its MSEv is not lower than the other's. Those in `kept` stay.
    """
    hopeless = []
    for name in names:
        if name in kept or sheet.n_rows(name) < _FEWEST_ROWS:
            continue
        for other in names:
            if other == name:
                continue
            against = sheet.compare(name, other)
            no_gain = against.msev is None or against.msev.mean >= -against.msev.negligible
            if against.is_worse_in_msev(_HOPELESS) or (
                no_gain and against.energy.is_above(_HOPELESS)
            ):
                hopeless.append(name)
                break
    return hopeless


def is_settled(sheet: Sheet, names: Sequence[str], staying: Sequence[str] = ()) -> bool:
    """Return whether more rows can change nothing that matters.

    All are as good as each other; or a sampler that stays in any case is told from all others.
    """
    if len(staying) == 1:
        others = [name for name in names if name not in staying]
        if all(_are_apart(sheet, staying[0], other) for other in others):
            return True
    return all(_are_alike(sheet.compare(name, names[0])) for name in names[1:])


def _are_apart(sheet: Sheet, name: str, other: str) -> bool:
    if sheet.n_rows(name) < _FEWEST_ROWS:
        return False
    both = sheet.compare(name, other), sheet.compare(other, name)
    return any(each.is_worse(_HOPELESS) for each in both)


def _are_alike(against: Comparison) -> bool:
    return all(
        abs(difference.mean) + _CLEAR * difference.se <= difference.negligible
        for difference in (against.msev, against.energy)
        if difference is not None
    )


def rivals(sheet: Sheet, name: str, others: Sequence[str]) -> list[str]:
    """Return the samplers that are not clearly worse than `name`, the best energy score first."""
    alike = [each for each in others if not sheet.compare(each, name).is_worse()]
    return sorted(alike, key=lambda each: sheet.compare(each, name).energy.mean)
