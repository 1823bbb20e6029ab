"""The main loop: evaluate units of orderings where they lower the variance most."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from dsage._files import Arrays, arrays_under, nest_arrays
from dsage.data.pools import single_blas
from dsage.estimate.accumulate.control import Control
from dsage.estimate.accumulate.history import History
from dsage.estimate.assemble import assemble
from dsage.estimate.clock import Clock, TimeUpError
from dsage.estimate.inference import MIN_UNITS
from dsage.estimate.narrowing import find_lagging
from dsage.estimate.plan import Plan
from dsage.estimate.result import Estimate
from dsage.estimate.terms import Outcome, Sampled
from dsage.estimate.totals import Totals
from dsage.estimate.walk import Asking
from dsage.games.base import Floats, Game, Mask, Request
from dsage.games.cached import Cached

_FIRST_UNITS = 8
# Units without which there are no errors.
_FEWEST_UNITS = 2
# Largest variance of the first level, as a share of the variance of the other terms.
_CONTROL_SHARE = 0.2
# Number of features up to which the first level is so cheap, next to draws, that it is always made
# so precise.
_FEW_FEATURES = 32
# Largest share of the evaluations for an audit that is not part of the estimate, after its first
# units.
_AUDIT_SHARE, _FIRST_AUDIT = 0.15, 16
# Largest number of units of such an audit, as a multiple of the units of the main term.
_MOST_AUDIT = 16
# Units of an audit when nothing else is left to evaluate.
_ENOUGH_AUDIT = 64
# Memory for the risks of units that are evaluated together, and the number of copies of each risk.
_BYTES_AT_ONCE, _COPIES = 1 << 26, 4
# Least cost of another pass as a share of the cost of an epoch so far: the cost of the walks if all
# coalitions are in memory. Without this minimum, the same noise would then be kept for ever.
_PASS_SHARE = 0.02
# Numbers that belong to the state of an estimation.
_STATE = ("epoch", "epoch_started_at", "epoch_cost", "pass_cost", "refined_at")


class Estimation:
    """The state of an estimation, which can be continued at any time.

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
    on_pause : callable or None
        Called whenever the state is consistent, which is several times between two looks.
    on_piece : callable or None
        Called between pieces of the evaluations, if these are not parallel.
    goal : callable or None
        Maps an estimate to the standard errors that its features may have, as far as their ratios
        matter. If it is given, features that are ahead of others are not evaluated further until
        the others have caught up: one surplus of a feature takes two evaluations, and the surpluses
        of all features take as many as there are features.
    clock : Clock
        The time of the estimation, which may have a limit.
    is_whole : bool
        False while results are being added up, when an interrupt leaves the state inconsistent.
    """

    def __init__(self, game: Game, **options: Any) -> None:  # noqa: ANN401
        start = time.perf_counter()
        self._begin(Plan(game, **options))
        self.clock.seconds = time.perf_counter() - start

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Return an estimation of a plan, at its start."""
        estimation = cls.__new__(cls)
        estimation._begin(plan)
        return estimation

    def _begin(self, plan: Plan) -> None:
        self.plan = plan
        self.on_pause: Callable[[], None] | None = None
        self.on_piece: Callable[[], None] | None = None
        self.goal: Callable[[Estimate], float | Floats] | None = None
        self.is_whole = True
        self.clock = Clock()
        self._totals = Totals(plan)
        self._history = History.empty(plan.n_values)
        self._epoch = 0
        self._epoch_started_at = 0
        # Costs of the main term when the epoch began, and when the last pass ended.
        self._epoch_cost = self._pass_cost = 0
        # The number of units when the first level was last refined.
        self._refined_at = -1
        # A term, and the number of its units that are left to evaluate before the next look.
        self._pending = np.zeros(2, dtype=np.int64)
        # The features that these units evaluate.
        self._wanted: Mask = np.ones(plan.n_columns, dtype=np.bool_)

    def steps(self) -> Iterator[Estimate]:
        """Evaluate and yield the current estimate, until nothing is left to evaluate.

        An estimation that was started before yields its current estimate first. Breaks change
        nothing: a continued estimation has the results of one without a break. If the clock has a
        limit, the last estimate uses the units that were complete when the time was up.
        """
        self.clock.start()
        tallies = self._totals.tallies
        while True:
            try:
                self._finish()
                if tallies[0].n_units == 0:
                    self._run(0, min(_FIRST_UNITS, len(self.plan.shards)))
                if len(self.plan.terms) == 2 and tallies[1].n_units == 0:
                    self._run(1, self._first_correction())
                self._refine_control()
            except TimeUpError:
                self.clock.stop()
                self.clock.is_cut = True
                yield self.progress()
                return
            self.clock.stop()
            estimate = self.progress()
            self._history = estimate.history
            yield estimate
            self.clock.start()
            term = self._next_term()
            n_left = self._n_left(term)
            if n_left == 0:
                return
            more = max(_FIRST_UNITS, tallies[term].n_units // 8)
            freedoms = self._totals.tallies[0].freedoms
            self._wanted[:] = True
            if self.goal is not None and self.plan.can_narrow:
                allowed = self.goal(estimate)
                n_rows = min(len(shard) for shard in self.plan.shards)
                self._wanted[:] = find_lagging(estimate.se, allowed, freedoms, self.n_units, n_rows)
            self._pending[:] = term, min(more, n_left)

    def progress(self) -> Estimate:
        """Return the current estimate."""
        self._refine_control()
        return assemble(self._totals, self._history, self.clock.seconds)

    @property
    def n_units(self) -> int:
        """Number of units of the main term."""
        return self._totals.tallies[0].n_units

    @property
    def most_pieces(self) -> int | None:
        """Independent pieces after which nothing is left of the main term; None without an end."""
        if self.plan.orderings.n_batches is not None:
            return self.plan.orderings.n_batches * len(self.plan.shards)
        is_exact = self.plan.enumeration is not None and not self.plan.is_drawn
        return self.plan.game.n_rows if is_exact else None

    @property
    def n_epochs(self) -> float:
        """Number of independent sets of draws behind the estimate, on average over the rows."""
        return self._totals.ledger.n_epochs

    def state(self) -> Arrays:
        """Return the state as named arrays."""
        own = {name: vars(self)[f"_{name}"] for name in (*_STATE, "pending", "wanted")}
        own["seconds"] = self.clock.seconds
        parts: dict[str, Mapping[str, Any]] = {
            "totals": self._totals.state(),
            "loop": own,
            "history": vars(self._history),
        }
        copied = {name: np.array(value) for name, value in nest_arrays(parts).items()}
        return {**copied, **nest_arrays({"memory": self.plan.game.state()})}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to the state of an estimation of the same plan."""
        kept = {name: vars(self)[name] for name in ("on_pause", "on_piece", "goal", "clock")}
        self._begin(self.plan)
        vars(self).update(kept)
        self._totals.restore(arrays_under(state, "totals"))
        own = arrays_under(state, "loop")
        vars(self).update({f"_{name}": own[name].item() for name in _STATE})
        self.clock.seconds = own["seconds"].item()
        self._pending[...] = own["pending"]
        self._wanted[...] = own["wanted"]
        self._history = History(**arrays_under(state, "history"))
        self.plan.game.restore(arrays_under(state, "memory"))

    def _first_correction(self) -> int:
        """Return the number of units of the correction to begin with; an audit grows later."""
        if self._is_settled:
            return _ENOUGH_AUDIT
        return _FIRST_UNITS if self.plan.estimand == "sage" else 2

    def _n_left(self, term: int) -> int:
        """Return the number of units of a term that are left; very many if there is no end."""
        n_units, n_shards = self._totals.tallies[term].n_units, len(self.plan.shards_of(term))
        if self.plan.orderings.n_batches is not None:
            return self.plan.orderings.n_batches * n_shards - n_units
        if term == 0 and self._is_settled:
            return 0
        return 1 << 40

    @property
    def _is_settled(self) -> bool:
        """Whether nothing can change the main term: it samples neither orderings nor draws."""
        return self._totals.is_complete and not self.plan.is_drawn

    def _run(self, term: int, n_units: int) -> None:
        self._pending[:] = term, min(n_units, self._n_left(term))
        self._finish()

    def _finish(self) -> None:
        """Evaluate the rest of a step, which may have been interrupted."""
        while self._pending[1]:
            term, n_left = self._pending.tolist()
            first = self._totals.tallies[term].n_units
            n_shards = len(self.plan.shards_of(term))
            n_now = min(n_left, self._n_at_once)
            if self.plan.is_drawn:
                # No further than the end of a pass, after which the noise may change.
                n_now = min(n_now, n_shards - first % n_shards)
            n_now = min(n_now, self.clock.n_in_time(term, self._n_needed(term)))
            self._evaluate(term, [self._place(term, first + more) for more in range(n_now)])
            self._pending[1] -= n_now
            if term == 0 and (first + n_now) % n_shards == 0:
                self._end_pass()
            self.is_whole = True
            if self.on_pause is not None:
                self.on_pause()

    def _place(self, term: int, number: int) -> tuple[int, int]:
        """Return the batch of orderings and the shard of a unit."""
        n_shards = len(self.plan.shards_of(term))
        n_pass, place = divmod(number, n_shards)
        if self.plan.is_given:
            return n_pass, place
        # Every pass visits the shards in its own random order.
        order = self.plan.streams("passes", n_pass).permutation(n_shards)
        return number, int(order[place])

    @property
    def _n_at_once(self) -> int:
        """Number of units that are evaluated together: as many as memory allows."""
        rows = max(map(len, self.plan.shards))
        asked = max(term.batch_size for term in self.plan.terms) * (self.plan.n_columns + 1)
        return max(1, _BYTES_AT_ONCE // (_COPIES * 8 * asked * rows * self.plan.game.n_replicates))

    def _evaluate(self, term: int, units: Sequence[tuple[int, int]]) -> None:
        before, shards = self.plan.game.n_distinct, self.plan.shards_of(term)
        given = [(batch, shards[shard], self._epoch) for batch, shard in units]
        played = self.plan.terms[term]
        if term == 0 and isinstance(played, Sampled) and not self._wanted.all():
            asking = [played(*each, self._wanted.copy()) for each in given]
        else:
            asking = [played(*each) for each in given]
        with self.clock.measure(term, len(units), self._n_needed(term)) as watch:
            self.plan.jobs.on_piece = partial(self._look_at, watch)
            if self.plan.control is not None:
                n_more = 0 if term else len(units)
                self.plan.jobs.meanwhile = partial(self._prepare_control, self.plan.control, n_more)
            try:
                outcomes = _play_together(asking, self.plan.game)
            finally:
                self.plan.jobs.on_piece = self.plan.jobs.meanwhile = None
        # Not the number of evaluations, which depends on the size of the memory.
        self._totals.costs[term] += self.plan.game.n_distinct - before
        self.is_whole = False
        for (_, shard), outcome in zip(units, outcomes, strict=True):
            self._totals.add(term, shard, outcome)

    def _n_needed(self, term: int) -> int:
        """Return the number of units of a term without which the estimate has no errors."""
        if term not in self._totals.estimated:
            return 0
        return max(_FEWEST_UNITS - self._totals.tallies[term].n_units, 0)

    def _look_at(self, watch: Callable[[int, int], None], n_done: int, n_pieces: int) -> None:
        """Check the clock, and let the user interrupt, between two pieces of evaluations."""
        if self.on_piece is not None:
            self.on_piece()
        watch(n_done, n_pieces)

    def _end_pass(self) -> None:
        """Draw fresh noise if that pays off.

        Two passes with the same noise show how much the orderings alone vary. After them, fresh
        noise is free if orderings share no coalitions. If they do, it is drawn once it lowers the
        error more for its cost. If all orderings are enumerated, one pass is enough.
        """
        totals = self._totals
        n_passes = int(totals.tallies[0].counts.min()) - self._epoch_started_at
        is_exact = self.plan.enumeration is not None
        last, self._pass_cost = self._pass_cost, int(totals.costs[0])
        if not self.plan.is_drawn or (n_passes < 2 and not is_exact):
            return
        if self.plan.shares and not is_exact and self._keeps_noise(n_passes, last):
            return
        self.plan.game.forget(self._epoch)
        self._epoch += 1
        self._epoch_started_at += n_passes
        self._epoch_cost = self._pass_cost
        totals.next_epoch()

    def _keeps_noise(self, n_passes: int, last: int) -> bool:
        """Return whether another pass with the same noise lowers the error more for its cost.

        An epoch of k passes has the variance ``V / k + D``, with V from the orderings of a pass and
        D from the draws, and the cost C. Another pass costs as much as the last one at most, c,
        since it finds some coalitions in memory, but not nothing. So the noise is kept if
        variance times cost falls: ``(V / (k + 1) + D) (C + c) < (V / k + D) C``.
        """
        totals, k = self._totals, n_passes
        n_epochs, all_passes = self._epoch + 1, int(totals.tallies[0].counts.min())
        drawn = n_epochs * float(totals.ledger.draw_variance(totals.estimated).sum())
        varied = sum(float(totals.variance(term).sum()) for term in totals.estimated)
        ordered = varied * all_passes / k
        cost = self._pass_cost - self._epoch_cost
        more = max(self._pass_cost - last, _PASS_SHARE * cost)
        ahead = (ordered * k / (k + 1) + drawn) * (cost + more)
        return ahead < (ordered + drawn) * cost

    def _next_term(self) -> int:
        """Return the term whose next unit lowers the variance most for its cost."""
        if len(self.plan.terms) == 1:
            return 0
        totals = self._totals
        n_main, n_correction = (tally.n_units for tally in totals.tallies)
        if self.plan.is_given:
            return int(n_correction < n_main)
        main, correction = totals.costs
        if self.plan.estimand == "d-sage":
            if self._is_settled:
                return int(n_correction < _ENOUGH_AUDIT)
            is_behind = n_correction < min(n_main / 2, _FIRST_AUDIT)
            is_cheap = correction < _AUDIT_SHARE * (main + correction)
            # If almost nothing is separated, units of an audit cost nothing.
            return int(is_behind or (is_cheap and n_correction < _MOST_AUDIT * n_main))
        # The errors of few units may be far too small, so no rule trusts them.
        if totals.n_pieces < min(n_correction, MIN_UNITS):
            return 0
        if n_correction < MIN_UNITS:
            return 1
        rates = []
        for term, (tally, cost) in enumerate(zip(totals.tallies, totals.costs, strict=True)):
            variance = float(totals.variance(term).sum())
            if term == 0 and self.plan.enumeration is not None:
                variance += float(totals.draw_variance(0).sum())
            rates.append(variance / max(cost / tally.n_units, 1.0) / tally.n_units)
        return int(np.argmax(rates))

    def _refine_control(self) -> None:
        """Make the first level so precise that it adds little to the error of the other terms.

        This happens once per look; otherwise a resumed run would differ. If the time is up, it is
        less precise, and made so when the estimation continues.
        """
        control, n_units = self.plan.control, sum(each.n_units for each in self._totals.tallies)
        if control is None or not self._totals.slope or self._refined_at == n_units:
            return
        # Some of it may have been computed alongside other processes, with one thread.
        with single_blas():
            bound, rate = self._find_aim()
            is_done = control.refine(bound, self.n_units, self.clock.is_over, rate, self._wanted)
        if is_done:
            self._refined_at = n_units

    def _prepare_control(self, control: Control, n_more: int, is_over: Callable[[], bool]) -> None:
        """Compute the first level as far as it will be needed after more units."""
        n_main = self.n_units
        if control.is_exact:
            control.prepare(is_over)
        elif n_main and self._totals.slope:
            bound, rate = self._find_aim()
            # Variances fall with the number of units.
            bound *= n_main / (n_main + n_more)
            control.prepare(is_over, bound, n_main + n_more, rate, self._wanted)

    def _find_aim(self) -> tuple[float, float]:
        """Return the variance that the first level may have, and the rate.

        The rate is what a second of the main term takes away from the variance.
        """
        totals, wanted = self._totals, self._wanted
        rest = float(totals.own_variance(0)[wanted].sum())
        rest += float(totals.draw_variance(0)[wanted].sum())
        rest /= totals.slope**2
        rate = 0.0
        is_cheap = len(self.plan.names) <= _FEW_FEATURES and self.plan.is_drawn
        if not (is_cheap and wanted.all()):
            seconds = self.plan.seconds_a_unit * min(2.0 * float(wanted.mean()), 1.0)
            rate = rest / self.n_units / seconds
        return _CONTROL_SHARE * rest, rate


def _play_together(asking: Sequence[Asking[Outcome]], game: Cached) -> list[Outcome]:
    """Return the outcomes of several units, whose requests are evaluated together."""
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
