"""The one loop: evaluate units of orderings on blocks of rows, where they tell most."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd

from dsage._files import Arrays
from dsage.estimate.accumulate.control import Control
from dsage.estimate.accumulate.history import History
from dsage.estimate.accumulate.ledger import Ledger
from dsage.estimate.accumulate.state import nested, part_of, put_back, taken
from dsage.estimate.accumulate.tally import Tally
from dsage.estimate.inference import MIN_UNITS, effective_df
from dsage.estimate.plan import Plan
from dsage.estimate.result import Estimate, TermEstimate, TermKind
from dsage.estimate.terms import Outcome
from dsage.estimate.walk import Asking
from dsage.games.base import Floats, Game, Request
from dsage.games.cached import Cached

_FIRST_UNITS = 8
# What the first level may add to the variance of the others.
_CONTROL_SHARE = 0.2
# Share of the evaluations that an audit may take where it is not part of the estimate, once it has
# some units.
_AUDIT_SHARE = 0.25
# Where nothing else is left to do, an audit ends after so many units.
_ENOUGH_AUDIT = 64
# What the risks of units that are under way together may take, and how often a risk stands there.
_BYTES_AT_ONCE, _COPIES = 1 << 26, 4
_STATE = (
    "_costs",
    "_skipped",
    "_epoch",
    "_epoch_started_at",
    "_pending",
    "_refined_at",
    "_seconds",
)


class Estimation:
    """The state of an estimate: where it stands, and the next step.

    Parameters
    ----------
    game : Game
        The game.
    **options
        As for :class:`~dsage.estimate.Plan`.

    Attributes
    ----------
    plan : Plan
        The plan.
    on_pause : callable
        Is called whenever the state is whole: several times between two looks.
    is_whole : bool
        False while results are being taken in: an interrupt may come just then.
    """

    def __init__(self, game: Game, **options: Any) -> None:  # noqa: ANN401
        self.on_pause: Callable[[], None] = nothing
        self._begin(Plan(game, **options))

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Return the estimation of a plan, at its start."""
        estimation = cls.__new__(cls)
        estimation.on_pause = nothing
        estimation._begin(plan)
        return estimation

    def _begin(self, plan: Plan) -> None:
        self.plan = plan
        self._seconds = 0.0
        self._history = History.empty(plan.n_columns)
        self._tallies = [Tally(plan.shards, plan.n_columns) for _ in plan.terms]
        self._ledger = Ledger(
            plan.shards,
            plan.n_columns,
            plan.game.n_replicates,
            len(plan.terms),
            weights=plan.game.weights,
        )
        self._costs = np.zeros(len(plan.terms), dtype=np.int64)
        self._skipped = np.zeros(plan.n_columns)
        self._noted: list[tuple[int, int, float, int]] = []
        self._epoch = 0
        self._epoch_started_at = 0
        # How many units there were when the first level was last looked after.
        self._refined_at = -1
        self.is_whole = True
        # A term, and how many of its units are still to be evaluated before the next look.
        self._pending = np.zeros(2, dtype=np.int64)

    def steps(self) -> Iterator[Estimate]:
        """Evaluate, and yield what is known, again and again; end where nothing is left to do.

        What is known comes first where there is something already: an estimation can be left, and
        gone on with, and is then what it would have been without a break.
        """
        start = time.perf_counter() - self._seconds
        while True:
            self._finish()
            if self._tallies[0].n_units == 0:
                self._run(0, min(_FIRST_UNITS, len(self.plan.shards)))
            if len(self.plan.terms) == 2 and self._tallies[1].n_units == 0:
                self._run(1, self._first_correction())
            self._refine_control()
            self._seconds = time.perf_counter() - start
            left_at = time.perf_counter()
            known = self.progress()
            self._history = known.history
            yield known
            start += time.perf_counter() - left_at
            term = self._next_term()
            n_left = self._n_left(term)
            if n_left == 0:
                return
            n_units = self._tallies[term].n_units
            self._run(term, min(max(_FIRST_UNITS, n_units // 8), n_left))

    def state(self) -> Arrays:
        """Return where the estimation stands as arrays."""
        parts = {name: taken(part, part.STATE) for name, part in self._stateful().items()}
        noted = np.array(self._noted, dtype=np.float64).reshape(-1, 4)
        own = {**taken(self, _STATE), "_noted": noted}
        history = taken(self._history, History.STATE)
        memory = self.plan.game.state()
        return nested({**parts, "loop": own, "history": history, "memory": memory})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to where an estimation of the same plan stood."""
        self._begin(self.plan)
        for name, part in self._stateful().items():
            put_back(part, part.STATE, part_of(state, name))
        own = part_of(state, "loop")
        put_back(self, _STATE, own)
        self._noted = [
            (int(feature), int(position), surplus, int(n_rows))
            for feature, position, surplus, n_rows in own["_noted"].tolist()
        ]
        history = part_of(state, "history")
        self._history = History(**{name: history[name] for name in History.STATE})
        self.plan.game.restore(part_of(state, "memory"))

    def _stateful(self) -> dict[str, Tally | Ledger | Control]:
        parts: dict[str, Tally | Ledger | Control] = {
            f"tally {term}": tally for term, tally in enumerate(self._tallies)
        }
        parts["ledger"] = self._ledger
        if self.plan.control is not None:
            parts["control"] = self.plan.control
        return parts

    def _first_correction(self) -> int:
        """Return how many units of the correction to begin with; an audit grows with the rest."""
        if self._is_settled:
            return _ENOUGH_AUDIT
        return _FIRST_UNITS if self.plan.estimand == "sage" else 2

    def _n_left(self, term: int) -> int:
        """Return how many units of a term there are yet; very many if there is no end."""
        n_units, n_blocks = self._tallies[term].n_units, len(self.plan.shards)
        if self.plan.orderings.n_batches is not None:
            return self.plan.orderings.n_batches * n_blocks - n_units
        if term == 0 and self._is_settled:
            return 0
        return 1 << 40

    @property
    def _is_settled(self) -> bool:
        """Whether nothing can change the main term: no orderings are sampled, and no draws."""
        return self._is_complete and not self.plan.is_drawn

    @property
    def _is_complete(self) -> bool:
        """Whether the main term has averaged over all orderings on all rows."""
        return self.plan.enumeration is not None and bool(self._tallies[0].counts.all())

    def _run(self, term: int, n_units: int) -> None:
        self._pending[:] = term, min(n_units, self._n_left(term))
        self._finish()

    def _finish(self) -> None:
        """Evaluate what is left of a step, which may have been broken off."""
        while self._pending[1]:
            term, n_left = self._pending.tolist()
            first = self._tallies[term].n_units
            n_blocks = len(self.plan.shards)
            # No further than the end of a pass, after which the noise may be another.
            n_now = min(n_left, self._n_at_once, n_blocks - first % n_blocks)
            self._evaluate(term, [self._placed(first + more) for more in range(n_now)])
            self._pending[1] -= n_now
            if term == 0 and (first + n_now) % n_blocks == 0:
                self._end_pass()
            self.is_whole = True
            self.on_pause()

    def _placed(self, number: int) -> tuple[int, int]:
        """Return the unit of orderings and the block that are evaluated as the number-th."""
        n_pass, place = divmod(number, len(self.plan.shards))
        if self.plan.is_given:
            return n_pass, place
        # Every pass takes the blocks in a random order of its own.
        order = self.plan.streams("passes", n_pass).permutation(len(self.plan.shards))
        return number, int(order[place])

    @property
    def _n_at_once(self) -> int:
        """How many units are under way together: as many as memory allows."""
        rows = max(map(len, self.plan.shards))
        asked = max(term.batch_size for term in self.plan.terms) * (self.plan.n_columns + 1)
        return max(1, _BYTES_AT_ONCE // (_COPIES * 8 * asked * rows * self.plan.game.n_replicates))

    def _evaluate(self, term: int, units: Sequence[tuple[int, int]]) -> None:
        before = self.plan.game.n_distinct
        asking = [
            self.plan.terms[term](unit, self.plan.shards[block], self._epoch)
            for unit, block in units
        ]
        outcomes = _played_together(asking, self.plan.game)
        # Not what was evaluated: that depends on how much the memory holds.
        self._costs[term] += self.plan.game.n_distinct - before
        self.is_whole = False
        for (_, block), outcome in zip(units, outcomes, strict=True):
            value = outcome.surplus.mean(axis=(0, 1))
            self._tallies[term].add(block, value, outcome.control)
            self._ledger.add(term, block, outcome.surplus)
            if term == 0:
                self._skipped += outcome.n_skipped
            n_rows = len(self.plan.shards[block])
            self._noted += [(*note, n_rows) for note in outcome.noted]

    def _end_pass(self) -> None:
        """Take fresh noise where that pays.

        Two passes with the same noise tell how much the orderings alone vary. Then, where no
        coalitions are shared, fresh noise costs nothing; where they are, it is taken when draws,
        not orderings, make most of the error. Where there are no orderings to vary, one pass will
        do.
        """
        n_passes = int(self._tallies[0].counts.min()) - self._epoch_started_at
        is_exact = self.plan.enumeration is not None
        if not self.plan.is_drawn or (n_passes < 2 and not is_exact):
            return
        if self.plan.shares and not is_exact:
            drawn = float(self._ledger.draw_variance(self._estimated).sum())
            ordered = sum(float(self._variance(term).sum()) for term in self._estimated)
            if drawn <= ordered:
                return
        self.plan.game.forget(self._epoch)
        self._epoch += 1
        self._epoch_started_at += n_passes
        self._ledger.next_epoch()
        for tally in self._tallies:
            tally.next_epoch()

    def _next_term(self) -> int:
        """Return the term whose next unit lowers the variance most for its cost."""
        if len(self.plan.terms) == 1:
            return 0
        if self.plan.is_given:
            return int(np.argmin([tally.n_units for tally in self._tallies]))
        main, correction = self._costs
        if self.plan.estimand == "d-sage":
            if self._is_settled:
                return int(self._tallies[1].n_units < _ENOUGH_AUDIT)
            n_main, n_audit = (tally.n_units for tally in self._tallies)
            is_behind = n_audit < min(n_main / 4, _FIRST_UNITS)
            return int(is_behind or correction < _AUDIT_SHARE * (main + correction))
        # Few units may be all alike: no rule trusts them, however small their error seems.
        n_correction = self._tallies[1].n_units
        if self._n_pieces < min(n_correction, MIN_UNITS):
            return 0
        if n_correction < MIN_UNITS:
            return 1
        rates = []
        for term, (tally, cost) in enumerate(zip(self._tallies, self._costs, strict=True)):
            variance = float(self._variance(term).sum())
            if term == 0 and self.plan.enumeration is not None:
                variance += float(self._ledger.draw_variance([0]).sum())
            rates.append(variance / max(cost / tally.n_units, 1.0) / tally.n_units)
        return int(np.argmax(rates))

    @property
    def _n_pieces(self) -> int:
        """Independent pieces that the error of the main term rests on; very many if it has none."""
        main = self._tallies[0]
        if self.plan.enumeration is None:
            return main.n_units
        if not self.plan.is_drawn:
            return 1 << 40
        # Draws of other rows are independent.
        return int(main.counts @ np.array([len(block) for block in self.plan.shards]))

    @property
    def _estimated(self) -> list[int]:
        """The terms that are part of the estimate."""
        return [0, 1] if len(self.plan.terms) == 2 and self.plan.estimand == "sage" else [0]

    def _slope(self) -> float:
        return 0.0 if self.plan.control is None else self._tallies[0].slope

    def _variance(self, term: int) -> Floats:
        """Return the variance of a term over orderings."""
        control, slope = self.plan.control, self._slope()
        own = self._own_variance(term)
        if term == 0 and slope and control is not None:
            return own + slope**2 * control.variance
        return own

    def _own_variance(self, term: int) -> Floats:
        """Return the variance of a term over orderings, were the mean of the control known."""
        tally, drawn = self._tallies[term], self._ledger.draw_variance([term])
        if term == 1:
            return tally.variance(drawn=drawn)
        control, slope = self.plan.control, self._slope()
        gap = None if control is None else tally.mean()[1] - control.mean
        return tally.variance(slope, gap, drawn, is_exact=self.plan.enumeration is not None)

    def _refine_control(self) -> None:
        """Make the first level so precise that it adds little to the error of the others.

        Once for each look, or a run that was left and gone on with would be another.
        """
        control, slope = self.plan.control, self._slope()
        n_units = sum(tally.n_units for tally in self._tallies)
        if control is None or not slope or self._refined_at == n_units:
            return
        self._refined_at = n_units
        rest = float(self._own_variance(0).sum())
        rest += float(self._ledger.draw_variance([0]).sum())
        control.refine(_CONTROL_SHARE * rest / slope**2, self._tallies[0].n_units)

    def progress(self) -> Estimate:
        """Return what is known now."""
        main = self._tallies[0]
        slope = self._slope()
        value, control = main.mean()
        levels = []
        if self.plan.control is not None and slope:
            self._refine_control()
            control_se = np.sqrt(self.plan.control.variance) * abs(slope)
            n_control = self.plan.control.n_orderings
            levels.append(
                TermEstimate(
                    TermKind.FIRST_LEVEL,
                    slope * self.plan.control.mean,
                    control_se,
                    n_control,
                    0,
                )
            )
            value = value - slope * control
        own = self._own_variance(0)
        term = self.plan.terms[0]
        n_orderings, n_units = main.n_units * term.batch_size, main.n_units
        is_exact = self._is_complete and self._estimated == [0]
        if is_exact:
            n_orderings = self.plan.n_all_orderings
            n_units = int(main.counts.min()) * sum(map(len, self.plan.shards))
        elif self._is_complete:
            # The orderings are those of the correction, the only term that samples any.
            n_correction = self._tallies[1].n_units
            n_orderings = n_correction * self.plan.terms[1].batch_size
            n_units = min(n_correction, self._n_pieces)
        elif len(self._estimated) == 2:
            n_correction = self._tallies[1].n_units
            n_units = min(n_units, n_correction)
            n_orderings = max(n_orderings, n_correction * self.plan.terms[1].batch_size)
        n_own = self.plan.n_all_orderings if is_exact else main.n_units * term.batch_size
        own_level = TermEstimate(
            term.kind, value, np.sqrt(own), n_own, int(self._costs[0]), df=float(main.df)
        )
        levels.append(own_level)
        audit = None
        if len(self.plan.terms) == 2:
            audit = self._audit()
            if self.plan.estimand == "sage":
                levels.append(audit)
        variance = sum(self._variance(term) for term in self._estimated)
        known = Estimate(
            feature_names=self.plan.names,
            values=np.sum([level.values for level in levels], axis=0),
            se_orderings=np.sqrt(variance),
            se_draws=self._draw_se(self._estimated),
            se_rows=np.sqrt(self._ledger.row_variance(self._estimated)),
            df=self._df(levels),
            n_orderings=n_orderings,
            n_units=n_units,
            n_evaluated=self.plan.game.n_evaluated,
            n_shared=self.plan.game.n_shared,
            share_skipped=self._share_skipped(),
            terms=tuple(levels),
            audit=audit,
            skipped_surpluses=self._skipped_frame(),
            seconds=self._seconds,
            is_exact=is_exact,
            estimand=self.plan.estimand,
            df_rows=self._ledger.df_rows,
            history=self._history,
        )
        return replace(known, history=self._history.after(known))

    def _draw_se(self, terms: Sequence[int]) -> Floats:
        """Return the standard error from draws; nan where one group of them tells nothing."""
        if not self.plan.tells_errors:
            return np.full(self.plan.n_columns, np.nan)
        return np.sqrt(self._ledger.draw_variance(terms))

    def _df(self, levels: Sequence[TermEstimate]) -> Floats:
        """Return the degrees of freedom of the whole, by Satterthwaite."""
        drawn = self._draw_se(self._estimated) ** 2
        variances = np.stack([*(level.se**2 for level in levels), drawn])
        if not np.isfinite(variances).all():
            return np.ones(self.plan.n_columns)
        return effective_df(variances, [*(level.df for level in levels), self._ledger.df_draws])

    def _share_skipped(self) -> Floats:
        if self.plan.enumeration is not None:
            return self.plan.enumeration.skipped
        n_orderings = self._tallies[0].n_units * self.plan.terms[0].batch_size
        return self._skipped / max(n_orderings, 1)

    def _audit(self) -> TermEstimate:
        tally = self._tallies[1]
        se = np.hypot(np.sqrt(self._own_variance(1)), self._draw_se([1]))
        n_orderings = tally.n_units * self.plan.terms[1].batch_size
        return TermEstimate(
            TermKind.CORRECTION,
            tally.mean()[0],
            se,
            n_orderings,
            int(self._costs[1]),
            df=float(tally.df),
        )

    def _skipped_frame(self) -> pd.DataFrame:
        frame = pd.DataFrame(self._noted, columns=["feature", "position", "surplus", "n_rows"])
        frame["feature"] = [self.plan.names[feature] for feature in frame["feature"]]
        return frame


def _played_together(asking: Sequence[Asking[Outcome]], game: Cached) -> list[Outcome]:
    """Return what several computations give; what they ask for is evaluated together."""
    done: dict[int, Outcome] = {}
    answers: dict[int, Floats | None] = dict.fromkeys(range(len(asking)))
    while answers:
        requests: dict[int, Request] = {}
        for number, answer in answers.items():
            try:
                # Sending None starts a generator.
                requests[number] = asking[number].send(answer)  # type: ignore[arg-type]
            except StopIteration as end:
                done[number] = end.value
        answers = dict(zip(requests, game.answers(list(requests.values())), strict=True))
    return [done[number] for number in range(len(asking))]


def nothing() -> None:
    """Do nothing."""
