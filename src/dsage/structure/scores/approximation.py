"""Gaussian regressions on basis functions of the parents, from moments alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dsage._check import check_real
from dsage.structure.blocks import N_TERMS, Blocks, Floats, Ints
from dsage.structure.scores.base import Parents, Score
from dsage.structure.scores.block_gaussian import BlockRegressions
from dsage.structure.scores.penalized import default_gamma

# Numbers of functions of each parent that compete, in addition to the parent itself.
_TERMS = (4, N_TERMS)
# Families whose scores are remembered: those that were grown last.
_MAX_VALUES = 4_096


def default_penalty(n_rows: int) -> float:
    """Return the factor of the penalty: 0.7 up to 1,000 rows, 1 from 10,000, log-linear between.

    Functions cost several coefficients. With few rows, the full price would leave out edges, and
    make false separations.

    >>> [round(default_penalty(n_rows), 2) for n_rows in (500, 1_000, 3_000, 10_000, 1_000_000)]
    [0.7, 0.7, 0.84, 1.0, 1.0]
    """
    return min(max(0.7 + 0.3 * (math.log10(max(1, n_rows)) - 3), 0.7), 1.0)


def _default_gamma(blocks: Blocks) -> float:
    """Return gamma: 1 for numbers alone, whose effects are seldom too weak to be found."""
    if not blocks.is_class.any():
        return 1.0
    return 0.0 if blocks.is_class.all() else default_gamma(blocks.n_rows)


class Variant(NamedTuple):
    """Regressions on the same functions of all parents: of one response, or of each of several."""

    regressions: BlockRegressions
    response: Ints
    offsets: Floats
    each: bool


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
            gamma = _default_gamma(blocks)
        check_real(gamma, "gamma", low=0.0, high=1.0)
        self.names = blocks.names
        self.blocks = blocks
        self.penalty = penalty
        self.price = penalty * math.log(blocks.n_rows) / 2
        self.extra = penalty * gamma * math.log(max(2, len(self.names)))
        self._n_responses = np.where(blocks.is_class, blocks.widths, 1).tolist()
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
                # A number as it is here, or a class: all of them are in blocks.
                np.empty(0, dtype=np.intp),
            )
            for place, name in enumerate(("value", "score"))
            if np.isfinite(blocks.offsets[place]).any()
        }
        if not blocks.is_class.all():
            responses = blocks.responses[:, ~blocks.is_class].ravel()
            for n_terms in _TERMS:
                columns = [blocks.columns(node, n_terms) for node in nodes]
                made[str(n_terms)] = BlockRegressions(blocks.correlation, columns, responses)
        self.regressions = made
        self.variants = [self._variants(node) for node in nodes]
        self._values: dict[tuple[int, Parents], list[Floats]] = {}
        # By the number of responses, the part of a score that does not depend on the data.
        self._bases: dict[int, Floats] = {}

    def _variants(self, node: int) -> list[Variant]:
        blocks, made = self.blocks, self.regressions
        if blocks.is_class[node]:
            columns, offsets = blocks.columns(node), np.zeros(1)
            return [Variant(every, columns, offsets, each=False) for every in made.values()]
        used = [place for place in (0, 1) if blocks.offsets[place, node] > -np.inf]
        places = [("value", [0]), ("score", [1]), *((str(n_terms), used) for n_terms in _TERMS)]
        return [
            Variant(made[name], blocks.responses[at, node], blocks.offsets[at, node], each=True)
            for name, at in places
            if set(at) <= set(used)
        ]

    def family(self, node: int, parents: Parents) -> float:
        """Return the score of the best regression of `node` on these parents."""
        return max(float(values.max()) for values in self.values(node, parents))

    def values(self, node: int, parents: Parents) -> list[Floats]:
        """Return the scores of the regressions of each variant, one for each response."""
        known = self._values.get((node, parents))
        if known is not None:
            return known
        lefts = [
            regressions.left(response, parents, each=each)
            for regressions, response, _, each in self.variants[node]
        ]
        return self._keep(node, parents, lefts)

    def _keep(self, node: int, parents: Parents, lefts: Sequence[Floats]) -> list[Floats]:
        """Return the scores for log determinants of residual covariances, and remember them."""
        found = []
        for variant, left in zip(self.variants[node], lefts, strict=True):
            fit, base = self.scale(variant.regressions.n_known(parents), len(parents), node)
            found.append(variant.offsets + base - fit * left)
        if len(self._values) >= _MAX_VALUES:
            self._values.clear()
        self._values[node, parents] = found
        return found

    def scale(self, n_known: int, n_parents: int, node: int) -> tuple[float, float]:
        """Return numbers a and b, such that the score is b - a left."""
        n_rows, n_responses = self.blocks.n_rows, self._n_responses[node]
        degrees = n_rows - 1 - n_known
        if degrees <= 0:
            return 0.0, -math.inf
        fit = 0.5 * n_rows * n_responses * math.log(2 * math.pi * n_rows / degrees)
        cost = self.price * n_responses * (n_known + 2) + self.extra * n_parents
        return 0.5 * n_rows, -fit - 0.5 * n_responses * degrees - cost

    def additions(self, node: int, parents: Parents) -> Floats:
        """Return, for every variable, the score of `node` with it as one more parent."""
        return self.growth(node, parents)[0]

    def growth(self, node: int, parents: Parents) -> tuple[Floats, float]:
        """Return the additions to a family, and its score."""
        best = np.full(len(self.names), -np.inf)
        lefts = []
        for regressions, response, offsets, each in self.variants[node]:
            left, alone = regressions.grown(response, parents, each=each)
            lefts.append(alone)
            n_known = regressions.n_known(parents)
            if regressions.width is None:
                n_each = (n_known + regressions.widths)[:, None]
                worth = self.worth(left, n_each, len(parents) + 1, node)
            else:
                # In place: all variables cost the same.
                fit, base = self.scale(n_known + regressions.width, len(parents) + 1, node)
                worth = np.multiply(left, -fit, out=left)
                worth += base
            worth += offsets
            for column in worth.T:
                np.maximum(best, column, out=best)
        best[[node, *parents]] = -np.inf
        return best, max(float(each.max()) for each in self._keep(node, parents, lefts))

    def removals(self, node: int, parents: Parents) -> Floats:
        """Return, for every parent, the score of `node` without it; -inf for other variables."""
        scores = np.full(len(self.names), -np.inf)
        if not parents:
            return scores
        best = np.full(len(parents), -np.inf)
        for variant in self.variants[node]:
            left = variant.regressions.left_without(variant.response, parents, each=variant.each)
            widths = variant.regressions.widths[list(parents)]
            n_known = (widths.sum() - widths)[:, None]
            worth = self.worth(left, n_known, len(parents) - 1, node)
            np.maximum(best, (worth + variant.offsets).max(axis=1), out=best)
        scores[list(parents)] = best
        return scores

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
        left = variant.regressions.left_with(variant.response, parents)[:, 0]
        n_known = variant.regressions.n_known(parents) + variant.regressions.widths
        scores = self.worth(left, n_known, len(parents) + 1, node) + variant.offsets[0]
        alone = float(self.values(node, parents)[0][0])
        scores[[node, *parents]] = alone
        straight: Floats = np.maximum(scores, alone)
        return straight

    def worth(self, left: Floats, n_known: Ints, n_parents: int, node: int) -> Floats:
        """Return scores, for log determinants of residual covariances, without offsets."""
        n_responses = self._n_responses[node]
        bases = self._bases.get(n_responses)
        if bases is None or len(bases) <= n_known.max(initial=0):
            bases = self._bases[n_responses] = self._bases_of(n_responses, int(n_known.max()))
        worth: Floats = left * (-0.5 * self.blocks.n_rows)
        worth += bases[n_known] - self.extra * n_parents
        return worth

    def _bases_of(self, n_responses: int, n_known: int) -> Floats:
        """Return the scores of residuals of unit covariance given 0, 1, ... columns."""
        n_rows = self.blocks.n_rows
        known = np.arange(max(n_known, int(self.blocks.widths.sum())) + 1)
        degrees = n_rows - 1 - known
        fit = -0.5 * n_rows * n_responses * np.log(2 * np.pi * n_rows / np.maximum(degrees, 1))
        fit -= 0.5 * n_responses * degrees + self.price * n_responses * (known + 2)
        return np.where(degrees > 0, fit, -np.inf)
