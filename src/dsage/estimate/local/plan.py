"""Plans for local values: one value for each row and feature."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from dsage._check import check_count, check_member
from dsage.estimate.accumulate.control import FIRST_UNIT, MOST_COALITIONS, Control
from dsage.estimate.exact import Enumeration
from dsage.estimate.options import FIRST_LEVELS
from dsage.estimate.plan import Plan
from dsage.estimate.terms import Outcome, Term
from dsage.estimate.walk import Asking, by_feature, separated_steps
from dsage.games.base import Floats, Orders, Rows, prefixes
from dsage.games.boundary import distinct_boundaries
from dsage.games.linear import LinearOutput
from dsage.games.output import OutputGame
from dsage.graphs.separation import Oracle
from dsage.orderings import Orderings

# Number of values that are estimated together; the totals of each take about 100 bytes, and a unit
# needs a few times as much.
_COLUMNS = 1 << 14
# Memory for the risks of an average over all orderings.
_BYTES_EXACT = 1 << 26
# To the loop, a chunk of rows is a single row with very many columns.
_ONE_ROW: Rows = np.zeros(1, dtype=np.intp)


class ByRow:
    """A term that does not average over rows: each pair of a row and a feature is a column.

    Parameters
    ----------
    term : Term
        The term.
    rows : int array
        The rows.
    control : callable, optional
        Maps the number of a batch to the surpluses of the first level, (n_rows * n_features,).
    """

    def __init__(
        self, term: Term, rows: Rows, control: Callable[[int], Floats] | None = None
    ) -> None:
        self._term, self._rows, self._control = term, rows, control
        self.kind, self.batch_size = term.kind, term.batch_size

    def __call__(self, batch: int, rows: Rows, epoch: int) -> Asking[Outcome]:  # noqa: ARG002
        """Evaluate a batch of orderings on the rows of this term; see :class:`Term`."""
        outcome = yield from self._term(batch, self._rows, epoch)
        n_rows, n_replicates, n_features = outcome.surplus.shape
        surplus = np.moveaxis(outcome.surplus, 1, 0).reshape(1, n_replicates, n_rows * n_features)
        control = np.zeros(n_rows * n_features) if self._control is None else self._control(batch)
        return Outcome(surplus, control, np.tile(outcome.n_skipped, n_rows), [])


class LinearSteps:
    """Contributions of features to the coefficients, and so to the outputs, of a linear game.

    Parameters
    ----------
    game : LinearOutput
        The game.
    oracle : Oracle or None
        The separations.
    semantics : {"boundary", "skip"}
        How separated surpluses are treated; see :class:`~dsage.estimate.PlanOptions`.
    """

    def __init__(self, game: LinearOutput, oracle: Oracle | None, semantics: str) -> None:
        self._game, self._oracle = game, oracle
        self._at_boundaries = oracle is not None and semantics == "boundary"

    def __call__(self, orders: Orders) -> Floats:
        """Return the contributions along orderings, (n_orderings, n_features, n_features)."""
        if self._oracle is not None and self._at_boundaries:
            boundaries, place = distinct_boundaries(self._oracle, prefixes(orders))
            return by_feature(np.diff(self._game.coefficients(boundaries)[place], axis=1), orders)
        added = self._game.path_coefficients(orders)
        added[separated_steps(self._oracle, prefixes(orders), orders)] = 0.0
        return by_feature(added, orders)

    def mean(self, enumeration: Enumeration) -> Floats:
        """Return the mean over all orderings, (n_features, n_features)."""
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

    Parameters
    ----------
    steps : LinearSteps
        The contributions of the first level.
    orderings : Orderings
        The orderings.
    n_features : int
        Number of features.

    Attributes
    ----------
    n_units : int
        Number of units so far.
    mean : array of shape (n_features, n_features)
        Mean contribution of each feature.
    spread : array of shape (n_features, n_features, n_features)
        For each feature, the sums over units of squares and products around the mean.
    """

    def __init__(self, steps: LinearSteps, orderings: Orderings, n_features: int) -> None:
        self._steps, self._orderings = steps, orderings
        self.n_units = 0
        self.mean: Floats = np.zeros((n_features, n_features))
        self.spread: Floats = np.zeros((n_features, n_features, n_features))

    def add(self, n_units: int) -> None:
        """Add some units."""
        first = FIRST_UNIT + self.n_units
        orders = [self._orderings.batch(first + unit) for unit in range(n_units)]
        added = self._steps(np.concatenate(orders))
        units = added.reshape(n_units, -1, *added.shape[1:]).mean(axis=1)
        mean = units.mean(axis=0)
        off, shift = units - mean, mean - self.mean
        total = self.n_units + n_units
        self.spread += np.einsum("ujf,ujg->jfg", off, off)
        self.spread += np.einsum("jf,jg->jfg", shift, shift) * (self.n_units * n_units / total)
        self.mean = self.mean + shift * (n_units / total)
        self.n_units = total


class RowControl(Control):
    """The mean over orderings of the surpluses of a linear game, on some rows.

    Parameters
    ----------
    steps : LinearSteps
        The contributions of the first level.
    coefficients : MeanCoefficients
        The mean contributions to the coefficients, shared by all chunks of rows.
    orderings : Orderings
        The orderings.
    mean : array of shape (n_features, n_features) or None
        The exact mean contributions to the coefficients, if available.
    rows : int array
        The rows.
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
        exact = None if mean is None else steps.outputs(mean, rows)
        super().__init__(self.surpluses, orderings, n_columns, exact)

    def surpluses(self, orders: Orders) -> Floats:
        """Return the surpluses along orderings, (n_orderings, n_rows * n_features)."""
        return np.stack([self._steps.outputs(each, self._rows) for each in self._steps(orders)])

    def of_unit(self, unit: int) -> Floats:
        """Return the mean surpluses of a unit of orderings, (n_rows * n_features,)."""
        orders = self._orderings.batch(unit)
        return self._steps.outputs(self._steps(orders).mean(axis=0), self._rows)

    def _add(self, n_units: int) -> None:
        if self.n_units == self._coefficients.n_units:
            self._coefficients.add(n_units)
        self.n_units = self._coefficients.n_units
        self.mean = self._steps.outputs(self._coefficients.mean, self._rows)
        self._spread = self._steps.variances(self._coefficients.spread, self._rows)


class LocalPlan(Plan):
    """The terms of an estimate of local values.

    The columns of the loop are pairs of a row and a feature. Rows are processed in chunks, see
    `chunks`: each is a plan of its own, which evaluates a batch of orderings on all its rows.

    Parameters
    ----------
    game : OutputGame
        The game.
    first_level : {"auto", "none"}, default="auto"
        Whether to use the linear game as a first level.
    rows_per_ordering : int, optional
        Rows per chunk. By default as many as have about 16,000 values together.
    **options
        As for :class:`~dsage.estimate.Plan`. There is no audit.
    """

    def __init__(
        self,
        game: OutputGame,
        *,
        first_level: Literal["auto", "none"] = "auto",
        rows_per_ordering: int | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        check_member(first_level, FIRST_LEVELS, "first_level", "the choices")
        super().__init__(game, first_level="none", audit=False, **options)
        if rows_per_ordering is not None:
            check_count(rows_per_ordering, "rows_per_ordering")
        self._chunk_size = rows_per_ordering or max(1, _COLUMNS // len(self.names))
        # With all orderings, only draws vary, and the first level has none.
        has_control = first_level == "auto" and not self.is_given and self.enumeration is None
        self._row_control = self._prepare_control(game.linear_game()) if has_control else None

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
        n_chunks = -(-self.game.n_rows // size)
        return [
            self._make_chunk(rows) for rows in np.array_split(np.arange(self.game.n_rows), n_chunks)
        ]

    def _make_chunk(self, rows: Rows) -> Self:
        plan = copy(self)
        plan.shards = [_ONE_ROW]
        plan.n_columns = len(rows) * len(self.names)
        control = None if self._row_control is None else self._row_control(rows)
        plan.control = control
        main, *others = self.terms
        plan.terms = [
            ByRow(main, rows, None if control is None else control.of_unit),
            *(ByRow(term, rows) for term in others),
        ]
        return plan
