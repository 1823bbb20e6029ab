"""The running totals of an estimation: sums for each term, and the variances they imply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dsage._files import Arrays, arrays_under, nest_arrays
from dsage.estimate.accumulate.balance import MOST_FEATURES, Adjustment, Balance
from dsage.estimate.accumulate.control import Control
from dsage.estimate.accumulate.ledger import MAX_BYTES, Ledger
from dsage.estimate.accumulate.tally import Tally
from dsage.estimate.plan import Plan
from dsage.estimate.terms import Outcome
from dsage.games.base import Floats


class Totals:
    """The sums over all units evaluated so far."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        n_terms = len(plan.terms)
        self.tallies = [Tally(plan.shards_of(term), plan.n_columns) for term in range(n_terms)]
        # Of the terms that are part of the estimate, and of an audit that is not.
        self.ledger = self._make_ledger(0, len(self.estimated))
        is_audited = plan.is_audited_only
        self.audit_ledger = self._make_ledger(1, 1, MAX_BYTES // 2) if is_audited else None
        # What makes values add up if features have different numbers of units.
        self.balance: Balance | None = None
        if plan.can_narrow and plan.n_columns <= MOST_FEATURES:
            self.balance = Balance(plan.shards, plan.n_columns, plan.n_replicates)
        self._total: tuple[float, float] | None = None
        # Distinct pairs of a coalition and a row that each term was the first to need.
        self.costs = np.zeros(len(plan.terms), dtype=np.int64)
        # Surpluses of the main term that are zero by separation, and, from an audit, their feature,
        # position, mean and number of rows.
        self.skipped = np.zeros(plan.n_columns)
        self.noted: list[tuple[int, int, float, int]] = []

    def _make_ledger(self, term: int, n_terms: int, max_bytes: int = MAX_BYTES) -> Ledger:
        plan = self.plan
        shards, weights = plan.shards_of(term), plan.game.weights
        return Ledger(shards, plan.n_columns, plan.n_replicates, n_terms, max_bytes, weights)

    def _ledger_of(self, term: int) -> tuple[Ledger, int]:
        """Return the ledger of a term, and the number of the term in it."""
        if term == 1 and self.audit_ledger is not None:
            return self.audit_ledger, 0
        return self.ledger, term

    def add(self, term: int, shard: int, outcome: Outcome) -> None:
        """Add the outcome of a unit on a shard."""
        surplus, wanted = outcome.surplus, outcome.wanted
        self.tallies[term].add(shard, surplus.mean(axis=(0, 1)), outcome.control, wanted)
        ledger, number = self._ledger_of(term)
        ledger.add(number, shard, surplus, wanted)
        if term == 0:
            self.skipped += outcome.n_skipped
            if self.balance is not None:
                self.balance.add(shard, surplus, outcome.control, wanted)
        n_rows = len(self.plan.shards_of(term)[shard])
        self.noted += [(*note, n_rows) for note in outcome.noted]

    def next_epoch(self) -> None:
        """Treat the noise from now on as independent of the noise before."""
        self.ledger.next_epoch()
        if self.audit_ledger is not None:
            self.audit_ledger.next_epoch()
        if self.balance is not None:
            self.balance.next_epoch()
        for tally in self.tallies:
            tally.next_epoch()

    @property
    def is_complete(self) -> bool:
        """Whether the main term has averaged over all orderings on all rows."""
        return self.plan.enumeration is not None and bool(self.tallies[0].counts.all())

    @property
    def estimated(self) -> list[int]:
        """The terms that are part of the estimate."""
        return [0] if len(self.plan.terms) == 1 or self.plan.is_audited_only else [0, 1]

    @property
    def n_pieces(self) -> int:
        """Independent pieces behind the error of the main term; very many if it has no error."""
        main = self.tallies[0]
        if self.plan.enumeration is None:
            return main.n_units
        if not self.plan.is_drawn:
            return 1 << 40
        # The draws of different rows are independent.
        return int(main.counts @ np.array([len(shard) for shard in self.plan.shards]))

    @property
    def slope(self) -> float:
        """The slope of the main term on the first level; 0 without one."""
        return 0.0 if self.plan.control is None else self.tallies[0].slope

    def variance(self, term: int) -> Floats:
        """Return the variance of a term over orderings."""
        control, slope = self.plan.control, self.slope
        own = self.own_variance(term)
        if term == 0 and slope and control is not None:
            return own + slope**2 * control.variance
        return own

    def own_variance(self, term: int) -> Floats:
        """Return the variance of a term over orderings, if the first level had no error."""
        tally, drawn = self.tallies[term], self.draw_variance(term)
        if term == 1:
            return tally.variance(drawn=drawn)
        control = self.plan.control
        gap = None if control is None else tally.mean()[1] - control.mean
        return tally.variance(self.slope, gap, drawn, is_exact=self.plan.enumeration is not None)

    def adjustment(self) -> Adjustment | None:
        """Return what makes the values of the main term add up; None if they do."""
        if self.balance is None:
            return None
        drawn = self.draw_variance(0)
        own = self.own_variance(0) + drawn
        control = self.plan.control
        cheap = 0.0 if control is None else self.slope * float(control.mean.sum())
        return self.balance.adjust(self.slope, own, drawn, cheap, self._find_total)

    def _find_total(self) -> tuple[float, float] | None:
        """Return the sum of the values and its error, if it is known apart from orderings."""
        if self.plan.oracle is not None:
            # The values at boundaries add up to what these tell.
            return None
        if self._total is None:
            self._total = self.plan.game.known_total()
        return self._total

    def draw_variance(self, term: int) -> Floats:
        """Return the variance of a term from draws."""
        ledger, number = self._ledger_of(term)
        return ledger.draw_variance([number])

    def draw_se(self, term: int | None = None) -> Floats:
        """Return the standard error from draws, of the estimate or of a term.

        It is NaN if a single replicate does not allow an estimate.
        """
        if not self.plan.tells_errors:
            return np.full(self.plan.n_columns, np.nan)
        if term is None:
            return np.sqrt(self.ledger.draw_variance(self.estimated))
        return np.sqrt(self.draw_variance(term))

    def state(self) -> Arrays:
        """Return the totals by name, without copying."""
        noted = np.array(self.noted, dtype=np.float64).reshape(-1, 4)
        parts = {name: part.state() for name, part in self._parts().items()}
        parts["terms"] = {"costs": self.costs, "skipped": self.skipped, "noted": noted}
        return nest_arrays(parts)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to the totals that `state` returned."""
        for name, part in self._parts().items():
            part.restore(arrays_under(state, name))
        terms = arrays_under(state, "terms")
        self.costs[...] = terms["costs"]
        self.skipped[...] = terms["skipped"]
        self.noted = [
            (int(feature), int(position), surplus, int(n_rows))
            for feature, position, surplus, n_rows in terms["noted"].tolist()
        ]

    def _parts(self) -> dict[str, Tally | Ledger | Control | Balance]:
        parts: dict[str, Tally | Ledger | Control | Balance] = {
            f"tally_{term}": tally for term, tally in enumerate(self.tallies)
        }
        parts["ledger"] = self.ledger
        if self.audit_ledger is not None:
            parts["audit_ledger"] = self.audit_ledger
        if self.balance is not None:
            parts["balance"] = self.balance
        if self.plan.control is not None:
            parts["control"] = self.plan.control
        return parts
