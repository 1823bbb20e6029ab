"""Choose the size of a mixture by its likelihood for held-out rows, and fit it several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dsage._random import Streams
from dsage.samplers.checks import Floats, Ints
from dsage.samplers.mix.em import Components, Rows, fit_components, fit_each
from dsage.samplers.mix.impute import fill_from_rows, fill_gaps
from dsage.samplers.mix.margins import Margins, Scale
from dsage.samplers.mix.trees import Trees

SIZES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SCALES = (Scale.STANDARD, Scale.SCORES)
_TEST_SHARE = 0.2
_N_TRIED, _N_FITS = 2, 5  # fits that are averaged for the choice, and in the end
_GROWTH = 1.5  # size of the final fits: averages of mixtures can be finer than single ones
_MIN_ROWS_PER_COMPONENT = 8
_MIN_ROWS = 20  # with fewer rows there is one component
_GAIN = 1e-4  # of the mean log likelihood
_COARSE = 2e-4  # tolerance of fits for the choice
# Fills of the gaps before the choice. If most values are missing, many are needed.
_N_ROUNDS = 6
# Products and sums that the choice, and the final fits, may cost: about a second or two each.
_CHOICE_COST, _FINAL_COST = 1.5e10, 4e10
_STEPS = 30  # of the EM algorithm, on average


class Design(NamedTuple):
    """The choices: the scale of numbers, whether tables form trees, shrinkage, and size."""

    scale: Scale
    has_trees: bool
    shrinkage: float
    size: int


@dataclass(frozen=True, eq=False)
class Fit:
    """A mixture, with the margins of its numbers and the trees of its tables.

    `tried` has the held-out mean log likelihood of each design.
    """

    components: Components
    margins: Margins
    trees: Trees
    design: Design
    tried: dict[Design, float]


def fit_mixture(
    values: Floats,
    states: Ints,
    n_states: tuple[int, ...],
    streams: Streams,
    *,
    size: int | None = None,
    n_fits: int = _N_FITS,
) -> Fit:
    """Fit mixtures to rows, and average them.

    Parameters
    ----------
    values : array of shape (n_rows, n_numbers)
        Numbers; NaN if there is none.
    states : array of shape (n_rows, n_tables)
        States of the table variables.
    n_states : tuple of int
        Their numbers of states.
    streams : Streams
        Seeds.
    size : int, optional
        Number of components; chosen by default.
    n_fits : int
        Number of fits that are averaged.
    """
    n_rows, n_numbers = values.shape
    gaps = _Gaps(values, states, Trees.none(n_states), streams)
    tried: dict[Design, float] = {}
    if size is None and n_rows < _MIN_ROWS:
        size = 1
    if size is None:
        trials = _Trials(gaps.fill(np.arange(n_rows), 0), states, n_states, streams)
        tried, design = trials.found, trials.choose()
        size = round(_GROWTH * design.size) if design.size > 1 else 1
        design = design._replace(size=size)
    else:
        design = Design(Scale.STANDARD, has_trees=False, shrinkage=float(n_numbers), size=size)
    trees = Trees.of(states, n_states) if design.has_trees else Trees.none(n_states)
    margins = Margins.of(values, design.scale)
    used = _affordable(n_rows, n_numbers, trees, size, _FINAL_COST / max(1, n_fits))
    rngs = [streams("mix-final", number) for number in range(n_fits if size > 1 or gaps.any else 1)]
    if used == n_rows and not gaps.any:
        rows = Rows(margins.to_scores(values), states, trees)
        fits = fit_each(rows, size, design.shrinkage, rngs)
    else:
        fits = []
        for number, rng in enumerate(rngs):
            chosen = np.sort(rng.permutation(n_rows)[:used]) if used < n_rows else np.arange(n_rows)
            # Each fit fills the gaps on its own, so that the average knows how uncertain they are.
            full = gaps.fill(chosen, 1 + number)
            some = Rows(margins.to_scores(full), states[chosen], trees)
            fits.append(fit_components(some, size, design.shrinkage, rng))
    return Fit(Components.pool(fits).sort(), margins, trees, design, tried)


def _affordable(n_rows: int, n_numbers: int, trees: Trees, size: int, cost: float) -> int:
    """Return how many rows a fit of this cost can read."""
    n_columns = 1 + n_numbers + n_numbers * (n_numbers + 1) // 2 + sum(trees.n_cells)
    return int(min(n_rows, max(1_000, cost / (4.0 * n_columns * size * _STEPS))))


class _Gaps:
    """Gaps of numbers, and draws for them from a first, coarse mixture."""

    def __init__(self, values: Floats, states: Ints, trees: Trees, streams: Streams) -> None:
        self._values, self._cells, self._streams = values, trees.cells(states), streams
        self.any = bool(np.isnan(values).any())
        if self.any:
            self._learn(states, trees)

    def _learn(self, states: Ints, trees: Trees) -> None:
        """Set a mixture from which gaps are drawn, by fits and fills in turn."""
        rng = self._streams("mix-gaps")
        n_rows, n_numbers = self._values.shape
        size = int(np.clip(n_rows // 100, 1, 8))
        used = _affordable(n_rows, n_numbers, trees, size, _CHOICE_COST / (2 * _N_ROUNDS))
        chosen = np.sort(rng.permutation(n_rows)[:used])
        some = self._values[chosen]
        self._margins = Margins.of(some, Scale.SCORES)
        scores = self._margins.to_scores(some)
        filled = self._margins.to_scores(fill_from_rows(some, rng))
        components: Components | None = None
        for _ in range(_N_ROUNDS):
            rows = Rows(filled, states[chosen], trees)
            components = fit_components(
                rows, size, float(n_numbers), rng, tolerance=_COARSE, start=components
            )
            filled = fill_gaps(components, scores, self._cells[chosen], rng)
            self._components = components

    def fill(self, rows: Ints, number: int) -> Floats:
        """Return the numbers of some rows, their gaps filled by draws of this number."""
        values = self._values[rows]
        if not self.any:
            return values
        rng = self._streams("mix-fill", number)
        scores = self._margins.to_scores(values)
        filled = fill_gaps(self._components, scores, self._cells[rows], rng)
        for at, column in enumerate(values.T):
            gaps = np.isnan(column)
            column[gaps] = self._margins.to_values(filled[gaps, at], at)
        return values


class _Trials:
    """Held-out mean log likelihoods of mixtures of several designs."""

    def __init__(
        self, values: Floats, states: Ints, n_states: tuple[int, ...], streams: Streams
    ) -> None:
        self._streams = streams
        n_rows, n_numbers = values.shape
        none = Trees.none(n_states)
        used = _affordable(n_rows, n_numbers, none, 8, _CHOICE_COST / 24)
        order = streams("mix-split").permutation(n_rows)[:used]
        n_test = max(1, round(_TEST_SHARE * used))
        test, train = order[:n_test], order[n_test:]
        trees = Trees.of(states[train], n_states)
        self._trees = [none, trees] if trees.has_edges else [none]
        self._rows: dict[tuple[Scale, bool], tuple[Rows, Rows, Floats]] = {}
        for scale in SCALES if n_numbers else SCALES[:1]:
            margins = Margins.of(values[train], scale)
            slopes = margins.log_slopes(values[test])
            for each in self._trees:
                self._rows[scale, each.has_edges] = (
                    Rows(margins.to_scores(values[train]), states[train], each),
                    Rows(margins.to_scores(values[test]), states[test], each),
                    slopes,
                )
        most = len(train) // _MIN_ROWS_PER_COMPONENT
        self._sizes = [size for size in SIZES if size == 1 or size <= most]
        self._shrinkages = sorted({float(max(n_numbers, 1)), 1.0}, reverse=True)
        self.found: dict[Design, float] = {}

    def choose(self) -> Design:
        """Return the design with the highest likelihood.

        Every second size is tried for each scale, with and without trees. Then, for the best ones,
        the sizes next to the best, and for these the other shrinkage.
        """
        for scale, has_trees in self._rows:
            self._climb(Design(scale, has_trees, self._shrinkages[0], 1), self._sizes[::2])
        for shrinkage in self._shrinkages:
            best = self._best()
            near = max(0, self._sizes.index(best.size) - 1)
            for size in self._sizes[near : near + 3]:
                self._try(best._replace(shrinkage=shrinkage, size=size))
        return self._best()

    def _best(self) -> Design:
        return max(self.found, key=lambda design: self.found[design])

    def _climb(self, design: Design, sizes: Sequence[int]) -> None:
        """Try sizes in this order until two in a row are no better than the best before."""
        best, n_worse = -np.inf, 0
        for size in sizes:
            found = self._try(design._replace(size=size))
            n_worse = 0 if found > best + _GAIN else n_worse + 1
            best = max(best, found)
            if n_worse == 2:
                return

    def _try(self, design: Design) -> float:
        if design not in self.found:
            known, held, slopes = self._rows[design.scale, design.has_trees]
            n_fits = _N_TRIED if design.size > 1 else 1
            seeds = [self._streams("mix-try", design.size, number) for number in range(n_fits)]
            fits = fit_each(known, design.size, design.shrinkage, seeds, tolerance=_COARSE)
            logs = held.log_densities(Components.pool(fits))
            self.found[design] = float((logs + slopes).mean())
        return self.found[design]
