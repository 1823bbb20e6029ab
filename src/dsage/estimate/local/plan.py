"""Plans for local values: one value for each row and feature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from dsage._check import check_count, check_member
from dsage.estimate.accumulate.control import (
    MOST_COALITIONS,
    CheapWalk,
    Control,
    draw_units,
)
from dsage.estimate.exact import Enumeration
from dsage.estimate.local.games import as_row_game
from dsage.estimate.options import FIRST_LEVELS
from dsage.estimate.plan import Plan
from dsage.estimate.terms import Outcome, Term
from dsage.estimate.walk import Asking
from dsage.games.base import Floats, Game, Rows
from dsage.games.linear import LinearOutput
from dsage.graphs.separation import Oracle
from dsage.orderings import Orderings

# Number of values that are estimated together; the totals of each take about 100 bytes, and a unit
# needs a few times as much.
_COLUMNS = 1 << 14
# Memory for the risks of an average over all orderings.
_BYTES_EXACT = 1 << 26
# Units of orderings that are added at a time to the mean contributions to coefficients.
_UNITS_AT_ONCE = 64
# To the loop, a chunk of rows is a single row with very many columns.
_ONE_ROW: Rows = np.zeros(1, dtype=np.intp)


class ByRow:
    """A term that does not average over rows: each pair of a row and a feature is a column.

    `control` maps the number of a batch to the surpluses of the first level,
    (n_rows * n_features,). `n_blocks` is 1, or 3 for values followed by their two parts.
    """

    def __init__(
        self,
        term: Term,
        rows: Rows,
        control: Callable[[int], Floats] | None = None,
        n_blocks: int = 1,
    ) -> None:
        self._term, self._rows, self._control = term, rows, control
        self._n_blocks = n_blocks
        self.kind, self.batch_size = term.kind, term.batch_size

    def __call__(self, batch: int, rows: Rows, epoch: int) -> Asking[Outcome]:  # noqa: ARG002
        """Evaluate a batch of orderings on the rows of this term; see :class:`Term`."""
        outcome = yield from self._term(batch, self._rows, epoch)
        n_rows, n_replicates, n_columns = outcome.surplus.shape
        # The values of all rows come first, then their parts, if there are any.
        split = outcome.surplus.reshape(n_rows, n_replicates, self._n_blocks, -1)
        surplus = np.moveaxis(split, 0, 2).reshape(1, n_replicates, n_rows * n_columns)
        control = np.zeros(n_rows * n_columns) if self._control is None else self._control(batch)
        skipped = np.repeat(outcome.n_skipped.reshape(self._n_blocks, 1, -1), n_rows, axis=1)
        return Outcome(surplus, control, skipped.ravel(), [])


class LinearSteps(CheapWalk):
    """Contributions of features to the coefficients, and so to the outputs, of a linear game.

    Called with orderings, it returns them as (n_orderings, n_features, n_columns), with the columns
    that represent the features.
    """

    def __init__(self, game: LinearOutput, oracle: Oracle | None, semantics: str) -> None:
        super().__init__(game.coefficients, game.path_coefficients, oracle, semantics)
        self._game = game
        self.n_columns = game.n_columns

    def mean(self, enumeration: Enumeration) -> Floats:
        """Return the mean over all orderings, (n_features, n_columns)."""
        return -enumeration.values(self._game.coefficients(enumeration.coalitions))

    def outputs(self, added: Floats, rows: Rows) -> Floats:
        """Return contributions to the outputs of some rows, (n_rows * n_features,)."""
        return self._game.outputs(added, rows).T.ravel()

    def variances(self, covariances: Floats, rows: Rows) -> Floats:
        """Return the variances of `outputs`, from the covariances of coefficients."""
        Z = self._game.standardized(rows)
        variances = [((Z @ covariance) * Z).sum(axis=1) for covariance in covariances]
        return np.stack(variances, axis=1).ravel()


class MeanCoefficients:
    """The mean contributions to the coefficients over many orderings, for all rows at once.

    `mean`, (n_features, n_columns), has the mean contribution of each feature, and `spread`, for
    each feature, the sums over units of squares and products around it.
    """

    def __init__(self, steps: LinearSteps, orderings: Orderings, n_features: int) -> None:
        self._steps, self._orderings = steps, orderings
        self.n_units, n_columns = 0, steps.n_columns
        self.mean: Floats = np.zeros((n_features, n_columns))
        self.spread: Floats = np.zeros((n_features, n_columns, n_columns))

    def add(self, n_units: int) -> None:
        """Add some units."""
        units = draw_units(self._steps, self._orderings, self.n_units, n_units)
        mean = units.mean(axis=0)
        off, shift = units - mean, mean - self.mean
        total = self.n_units + n_units
        self.spread += np.einsum("ujf,ujg->jfg", off, off)
        self.spread += np.einsum("jf,jg->jfg", shift, shift) * (self.n_units * n_units / total)
        self.mean = self.mean + shift * (n_units / total)
        self.n_units = total


class RowControl(Control):
    """The mean over orderings of the surpluses of a linear game, on some rows.

    All chunks of rows share the mean contributions to the coefficients; `mean` is the exact one,
    if available.
    """

    def __init__(
        self,
        steps: LinearSteps,
        coefficients: MeanCoefficients,
        orderings: Orderings,
        mean: Floats | None,
        rows: Rows,
    ) -> None:
        self._steps, self._coefficients, self._rows = steps, coefficients, rows
        n_columns = len(rows) * len(coefficients.mean)
        exact = None if mean is None else partial(steps.outputs, mean, rows)
        super().__init__([steps], orderings, n_columns, exact)
        self.at_once = _UNITS_AT_ONCE

    def of_unit(self, unit: int) -> Floats:
        """Return the mean surpluses of a unit of orderings, (n_rows * n_features,)."""
        orders = self._orderings.batch(unit)
        return self._steps.outputs(self._steps(orders).mean(axis=0), self._rows)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to what `state` returned, the shared coefficients included."""
        super().restore(state)
        while self._coefficients.n_units < self._counts[0]:
            self._coefficients.add(self.at_once)

    def prepare(self, *aim: object) -> None:  # noqa: ARG002
        """Compute the exact mean, if there is one. Nothing else: chunks share what is drawn."""
        if self.is_exact:
            _ = self.mean

    def _add(self, level: int) -> None:
        if self._counts[level] == self._coefficients.n_units:
            self._coefficients.add(self.at_once)
        self._counts[level] = self._coefficients.n_units
        self._means[level] = self._steps.outputs(self._coefficients.mean, self._rows)
        self._spreads[level] = self._steps.variances(self._coefficients.spread, self._rows)


class LocalPlan(Plan):
    """The terms of an estimate of local values, see :func:`~dsage.estimate.run_local`.

    The columns of the loop are pairs of a row and a feature. Rows are processed in chunks, see
    `chunks`: each has its own plan, which evaluates a batch of orderings on all its rows.

    Attributes
    ----------
    row_game : RowGame
        What is explained of each row.
    rows : int array
        The rows of a chunk; all rows before they are divided.
    """

    def __init__(
        self,
        game: Game,
        *,
        first_level: Literal["auto", "none"] = "auto",
        rows_per_ordering: int | None = None,
        audit: bool = False,
        **options: Any,  # noqa: ANN401
    ) -> None:
        check_member(first_level, FIRST_LEVELS, "first_level", "the choices")
        self.row_game = as_row_game(game)
        super().__init__(self.row_game.game, first_level="none", audit=audit, **options)
        self._own_first_level = first_level
        self.rows: Rows = np.arange(self.game.n_rows)
        if rows_per_ordering is not None:
            check_count(rows_per_ordering, "rows_per_ordering")
        n_each = len(self.names) * (1 + self.n_outputs)
        self._chunk_size = rows_per_ordering or max(1, _COLUMNS // n_each)
        # With all orderings, only draws vary, and the first level has none.
        has_control = first_level == "auto" and not self.is_given and self.enumeration is None
        cheap = self.row_game.linear_game() if has_control else None
        self._row_control = None if cheap is None else self._prepare_control(cheap)

    @property
    def described(self) -> dict[str, str]:
        """The options that change the estimate and have a name, and the rows of the chunk."""
        own = {"first_level": self._own_first_level, "rows": f"{self.rows[0]} to {self.rows[-1]}"}
        return {**super().described, **own}

    def _prepare_control(self, cheap: LinearOutput) -> Callable[[Rows], RowControl]:
        """Return a function that makes the first level of some rows."""
        steps = LinearSteps(cheap, self.oracle, self.options.semantics)
        found = self._enumerate("auto", has_control=True)
        is_few = found is not None and found.n_coalitions <= MOST_COALITIONS
        mean = steps.mean(found) if found is not None and is_few else None
        coefficients = MeanCoefficients(steps, self.orderings, len(self.names))
        return partial(RowControl, steps, coefficients, self.orderings, mean)

    def chunks(self) -> list[Self]:
        """Return the plans of the chunks of rows, in order."""
        size = self._chunk_size
        if self.enumeration is not None:
            n_bytes = 8 * self.enumeration.n_coalitions * self.game.n_replicates
            size = min(size, max(1, _BYTES_EXACT // n_bytes))
        n_rows = self.game.n_rows
        return list(map(self._make_chunk, np.array_split(np.arange(n_rows), -(-n_rows // size))))

    def _make_chunk(self, rows: Rows) -> Self:
        plan = copy(self)
        plan.rows = rows
        plan.shards = plan.audit_shards = [_ONE_ROW]
        n_blocks = 1 + self.n_outputs
        plan.n_columns = n_blocks * len(rows) * len(self.names)
        control = None if self._row_control is None else self._row_control(rows)
        plan.control = control
        main, *others = self.terms
        own = ByRow(main, rows, None if control is None else control.of_unit, n_blocks)
        plan.terms = [own, *(ByRow(term, rows) for term in others)]
        return plan
