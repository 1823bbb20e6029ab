"""Plans for local values: what is estimated is one value for each row and feature."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Literal, Self

import numpy as np

from dsage._check import check_count, check_member
from dsage.estimate.control import MOST_COALITIONS, Control, distinct_boundaries
from dsage.estimate.exact import Enumeration
from dsage.estimate.plan import LEVELS, Plan
from dsage.estimate.terms import Outcome, Term
from dsage.estimate.walk import Asking, by_feature, prefixes, separated_steps
from dsage.games.base import Floats, Orders, Rows
from dsage.games.linear import LinearOutput
from dsage.games.output import OutputGame
from dsage.graphs.separation import Oracle

# So many values are estimated together: what the loop keeps of each takes some 100 bytes, and what
# a unit of orderings needs a few times more.
_COLUMNS = 1 << 14
# What the risks may take that an average over all orderings needs at once.
_BYTES_EXACT = 1 << 26
# To the loop, all rows together are one row with very many columns.
_ONE_ROW: Rows = np.zeros(1, dtype=np.intp)


class ByRow:
    """A term whose rows are not averaged over: each pair of a row and a feature is a column.

    Parameters
    ----------
    term : Term
        The term.
    rows : int array
        The rows.
    control : callable, optional
        From the number of a unit to the surpluses of the cheap game, (n_rows * n_features,).
    """

    def __init__(
        self, term: Term, rows: Rows, control: Callable[[int], Floats] | None = None
    ) -> None:
        self._term, self._rows, self._control = term, rows, control
        self.name, self.unit_size = term.name, term.unit_size

    def __call__(self, unit: int, rows: Rows, epoch: int) -> Asking[Outcome]:  # noqa: ARG002
        """Give what a unit gives on the rows of this term; see :class:`Term`."""
        outcome = yield from self._term(unit, self._rows, epoch)
        n_rows, n_groups, n_features = outcome.surplus.shape
        surplus = np.moveaxis(outcome.surplus, 1, 0).reshape(1, n_groups, n_rows * n_features)
        control = np.zeros(n_rows * n_features) if self._control is None else self._control(unit)
        return Outcome(surplus, control, np.tile(outcome.n_skipped, n_rows), [])


class LinearSteps:
    """Surpluses of a linear output on some rows: see :class:`~dsage.estimate.control.MeanWalk`.

    Parameters
    ----------
    game : LinearOutput
        The game.
    oracle : Oracle or None
        What is separated.
    semantics : {"boundary", "skip"}
        What becomes of surpluses that are.
    rows : int array
        The rows.
    """

    def __init__(
        self, game: LinearOutput, oracle: Oracle | None, semantics: str, rows: Rows
    ) -> None:
        self._game, self._oracle, self._rows = game, oracle, rows
        self._at_boundaries = oracle is not None and semantics == "boundary"

    def __call__(self, orders: Orders) -> Floats:
        """Return the surpluses along orderings, (n_orderings, n_rows * n_features)."""
        n_orderings, n_features = orders.shape
        added = by_feature(self._added(orders), orders).reshape(-1, n_features)
        outputs = self._game.outputs(added, self._rows).reshape(n_orderings, n_features, -1)
        return np.moveaxis(outputs, 1, 2).reshape(n_orderings, -1)

    def _added(self, orders: Orders) -> Floats:
        """Return what each step adds to the coefficients, (n_orderings, d, d)."""
        if self._oracle is not None and self._at_boundaries:
            boundaries, place = distinct_boundaries(self._oracle, orders)
            return np.diff(self._game.coefficients(boundaries)[place], axis=1)
        added = self._game.path_coefficients(orders)
        added[separated_steps(self._oracle, prefixes(orders), orders)] = 0.0
        return added

    def mean(self, enumeration: Enumeration) -> Floats:
        """Return the mean over all orderings, (n_rows * n_features,)."""
        coefficients = self._game.coefficients(enumeration.coalitions)
        outputs = self._game.outputs(-enumeration.values(coefficients), self._rows)
        return outputs.T.ravel()


class LocalPlan(Plan):
    """The terms of an estimate of local values.

    The columns of the loop are pairs of a row and a feature. Rows are done in parts, see `parts`:
    a part is a plan of its own, on all of whose rows a unit of orderings is evaluated at once.

    Parameters
    ----------
    game : OutputGame
        The game.
    levels : {"auto", "none"}, default="auto"
        Whether to use the cheap game as a first level.
    rows_per_ordering : int, optional
        Rows of a part. By default as many as have some 16,000 values together.
    **options
        As for :class:`~dsage.estimate.Plan`. There is no audit.
    """

    def __init__(
        self,
        game: OutputGame,
        *,
        levels: Literal["auto", "none"] = "auto",
        rows_per_ordering: int | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        check_member(levels, LEVELS, "levels", "the kinds of levels")
        super().__init__(game, levels="none", audit=False, **options)
        if rows_per_ordering is not None:
            check_count(rows_per_ordering, "rows_per_ordering")
        self._rows_a_part = rows_per_ordering or max(1, _COLUMNS // len(self.names))
        # All orderings at once vary by draws alone, which the cheap game has none of.
        self._cheap = None
        if levels == "auto" and not self.is_given and self.enumeration is None:
            self._cheap = game.linear_game()
            self._all = self._enumerate("auto", has_control=True)

    def parts(self) -> list[Self]:
        """Return the plans of the parts of the rows, in their order."""
        size = self._rows_a_part
        if self.enumeration is not None:
            n_bytes = 8 * self.enumeration.n_coalitions * self.game.n_groups
            size = min(size, max(1, _BYTES_EXACT // n_bytes))
        n_parts = -(-self.game.n_rows // size)
        return [self._on(rows) for rows in np.array_split(np.arange(self.game.n_rows), n_parts)]

    def _on(self, rows: Rows) -> Self:
        plan = copy(self)
        plan.blocks = [_ONE_ROW]
        plan.n_columns = len(rows) * len(self.names)
        main, *others = self.terms
        control = None
        if self._cheap is not None:
            walk = LinearSteps(self._cheap, self.oracle, self._semantics, rows)
            is_few = self._all is not None and self._all.n_coalitions <= MOST_COALITIONS
            mean = walk.mean(self._all) if self._all is not None and is_few else None
            plan.control = Control(walk, self.orderings, plan.n_columns, mean)

            def control(unit: int) -> Floats:
                surpluses: Floats = walk(self.orderings.block(unit)).mean(axis=0)
                return surpluses

        plan.terms = [ByRow(main, rows, control), *(ByRow(term, rows) for term in others)]
        return plan
