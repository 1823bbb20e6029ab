"""Race candidates: score few rows first, drop hopeless candidates, and continue with the rest."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsage._check import make_bar, record_warnings
from dsage.data.frames import take_rows
from dsage.samplers import costs
from dsage.samplers.base import Sampler
from dsage.samplers.rules import give_up, is_settled
from dsage.samplers.scorer import Scorer
from dsage.samplers.sheet import Sheet
from dsage.samplers.splits import Block, Part
from dsage.samplers.training import Training

# The share of the budget that is planned by count: machines differ, and the clock must not decide.
_PLANNED = 0.7
# The clock ends a race that takes this many times as long as it may.
_LATE = 2.0
# The share of the time that counts while the processor is not busy with the race.
_IDLE = 0.2
# The share of the plan that a fit leaves for the rows that decide.
_RESERVED = 0.2
# The share of the plan up to which more rows are scored: candidates that are tied then stay so.
_TIED = 0.5
# Rows of a trial fit that estimates the time of a whole fit, if nothing else is known.
_TRIAL_ROWS = 100
# The share of a run that the choice may take, if that is longer than the budget.
_SHARE = 0.1


@dataclass(frozen=True)
class Budget:
    """How long a race may take.

    Parameters
    ----------
    seconds : float
        Seconds that it may always take. How much is scored is planned by count, for less than this;
        the clock only ends a race whose model or samplers are slower than planned for.
    n_predicted : int
        Rows that the model will predict at least, after the choice. The race may take a tenth of
        the time for that.
    """

    seconds: float = 2.0
    n_predicted: int = 0


@dataclass(eq=False)
class Contender:
    """A candidate, and what became of it.

    `stays` marks a sampler that is never dropped, `is_reference` one that only shows what others
    gain. `fitted` is a sampler that is used without fitting it again.
    """

    name: str
    sampler: Sampler
    stays: bool = False
    is_reference: bool = False
    fitted: Sampler | None = None
    fit_seconds: float = 0.0
    draw_seconds: float = 0.0
    error: str = ""
    verdict: str = ""
    warnings: list[str] = field(default_factory=list)
    fits: dict[int, Sampler] = field(default_factory=dict)

    @property
    def is_able(self) -> bool:
        """Whether it was tried, and did not fail."""
        return not self.error and bool(self.fits)


class _Watch:
    """The time since its creation: processor time, or a fifth of the elapsed time if that is more.

    Processor time is of this thread only, and does not depend on other threads and processes;
    elapsed time shows when a model waits for something.
    """

    def __init__(self) -> None:
        self._used, self._start = time.thread_time(), time.perf_counter()

    def seconds(self) -> float:
        used, passed = time.thread_time() - self._used, time.perf_counter() - self._start
        return max(min(used, passed), _IDLE * passed)


class Race:
    """Scores candidates block by block, until one is clearly best or the budget is spent.

    Decisions on how much to score are made from counts: rows, draws, features, and the costs with
    which samplers are registered. So the same seed gives the same choice on any machine, unless the
    clock ends the race (`is_cut`), which happens if something takes far longer than planned.

    Parameters
    ----------
    contenders : sequence of Contender
        The candidates, simplest first.
    scorer : Scorer
        Scores a sampler on a block.
    parts : sequence of Part
        Rows to fit to.
    blocks : iterable of Block
        The blocks to score, in this order; made as needed.
    budget : Budget
        How long it may take.

    Attributes
    ----------
    sheet : Sheet
        The scores.
    running : list of Contender
        The candidates that were not dropped, simplest first.
    planned : float
        The seconds that all of it takes by count.
    is_cut : bool
        Whether the clock ended the race.
    """

    def __init__(
        self,
        contenders: Sequence[Contender],
        scorer: Scorer,
        parts: Sequence[Part],
        blocks: Iterable[Block],
        budget: Budget,
    ) -> None:
        self.contenders, self.sheet, self.is_cut = contenders, Sheet(), False
        self.running: list[Contender] = []
        self._scorer, self._parts = scorer, parts
        self._training = [Training(part.train) for part in parts]
        self._others = iter(blocks)
        self._first = next(self._others)
        self._budget, self._watch = budget, _Watch()
        self.planned = 0.0

    def run(self, *, progress: bool = False) -> None:
        """Score the candidates."""
        first = self._first
        order = sorted(self.contenders, key=lambda each: self._cost(each, first))
        for contender in make_bar(iterable=order, desc="scoring samplers", disable=not progress):
            if self._may_try(contender, first):
                self._score(contender, first)
        running = self._give_up(self._able())
        while len(running) > 1 and not self._is_settled(running):
            block = next(self._others, None)
            if block is None or sum(self._cost(each, block) for each in running) > self._left(
                _TIED
            ):
                break
            if self._is_late():
                self.is_cut = True
                break
            for contender in running:
                self._score(contender, block)
            running = self._give_up([each for each in running if each.is_able])
        self.running = running

    def _able(self) -> list[Contender]:
        return [each for each in self.contenders if each.is_able and not each.is_reference]

    def _left(self, share: float = 1.0) -> float:
        """Return the seconds that are left of a share of the plan."""
        return share * _PLANNED * self._budget.seconds - self.planned

    def _is_late(self) -> bool:
        """Return whether the race has taken far longer than it may, by the clock."""
        n_predicted, seconds = self._scorer.n_predicted, self._scorer.predict_seconds
        run = self._budget.n_predicted * seconds / max(n_predicted, 1)
        limit = max(_LATE * self._budget.seconds, _SHARE * run)
        return self._watch.seconds() > limit

    def _fit_cost(self, contender: Contender, part: Part) -> float | None:
        if contender.fitted is not None:
            return 0.0
        return costs.fit_seconds(contender.sampler, part.n_train, self._first.n_features)

    def _cost(self, contender: Contender, block: Block) -> float:
        """Return the seconds to score a candidate on a block, by count."""
        n_calls, n_drawn = block.n_coalitions, block.n_pairs * self._scorer.n_draws
        cost = costs.draw_seconds(contender.sampler, n_calls, n_drawn, block.n_features)
        if self._scorer.has_model:
            cost += costs.predict_seconds(n_drawn)
        if block.part not in contender.fits:
            cost += self._fit_cost(contender, self._parts[block.part]) or 0.0
        return cost

    def _may_try(self, contender: Contender, block: Block) -> bool:
        """Return whether there is time for a candidate; if not, its verdict says why."""
        is_first = not self._able()
        if is_first or contender.stays or contender.is_reference:
            return True
        part = self._parts[block.part]
        known = self._fit_cost(contender, part)
        fit = self._measure_fit(contender, part) if known is None else known
        # In folds it is fitted once for each; the cost has the first of these fits, if it is known.
        whole = len(self._parts) * fit + self._cost(contender, block) - (known or 0.0)
        if whole > self._left() - _RESERVED * _PLANNED * self._budget.seconds:
            contender.verdict = f"not tried: it would take about {whole:.2g} s"
            return False
        if self._is_late():
            self.is_cut = True
            contender.verdict = "not tried: the time was up"
            return False
        return True

    def _measure_fit(self, contender: Contender, part: Part) -> float:
        """Return the seconds of a fit, by the clock: from one to a few of the rows."""
        n_trial = min(_TRIAL_ROWS, part.n_train)
        rows = take_rows(part.train, np.arange(n_trial))
        start = time.perf_counter()
        with record_warnings(show=False):
            try:
                contender.sampler.clone().fit(rows)
            except Exception:
                return 0.0  # the fit to all rows says what is wrong
        return (time.perf_counter() - start) * part.n_train / n_trial

    def _score(self, contender: Contender, block: Block) -> None:
        """Fit a candidate if that is not done, and score it on a block; note how it failed."""
        self.planned += self._cost(contender, block)
        start = between = time.perf_counter()
        # All candidates warn about the same columns; the chosen one warns the user.
        with record_warnings(show=False) as caught:
            try:
                fitted = self._fit(contender, block.part)
                between = time.perf_counter()
                scores = self._scorer(fitted, block)
            # A model may fail in any way on draws that it cannot take.
            except Exception as error:
                contender.error = f"{type(error).__name__}: {error}"
                contender.verdict = "failed"
                return
        contender.fit_seconds += between - start
        contender.draw_seconds += time.perf_counter() - between
        contender.warnings = list(dict.fromkeys([*contender.warnings, *map(str, caught)]))
        self.sheet.add(contender.name, block, scores)

    def _fit(self, contender: Contender, part: int) -> Sampler:
        if part not in contender.fits:
            fitted = contender.fitted
            if fitted is None:
                fitted = contender.sampler.clone().fit_training(self._training[part])
            contender.fits[part] = fitted
        return contender.fits[part]

    def _give_up(self, running: list[Contender]) -> list[Contender]:
        """Return the candidates that may still be chosen."""
        names = [each.name for each in running]
        kept = [each.name for each in running if each.stays]
        hopeless = give_up(self.sheet, names, kept)
        if len(hopeless) == len(names):
            return running
        for each in running:
            if each.name in hopeless:
                each.verdict = f"dropped after {self.sheet.n_rows(each.name)} rows"
        return [each for each in running if each.name not in hopeless]

    def _is_settled(self, running: Sequence[Contender]) -> bool:
        staying = [each.name for each in running if each.stays]
        return is_settled(self.sheet, [each.name for each in running], staying)


def name_contenders(named: dict[str, Sampler], **traits: Any) -> list[Contender]:  # noqa: ANN401
    """Return contenders of samplers, by name."""
    return [Contender(name, sampler, **traits) for name, sampler in named.items()]
