"""The result of an estimation of local values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from dsage.data.frames import Frame, is_frame, take_rows
from dsage.estimate.accumulate.balance import divide
from dsage.estimate.inference import intervals, simultaneous_intervals
from dsage.estimate.reasons import StopReason
from dsage.estimate.result import MATTERS, Finished, WithErrors
from dsage.games.base import Floats, Mask, Rows

# Values add up if what they leave is at most this share of the prediction.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RowAudit:
    """The effect of separation: the values with a graph minus without, by row and feature.

    Attributes
    ----------
    differences, se, df : arrays of shape (n_rows, n_features)
        The estimated differences, their standard errors and the degrees of freedom of these.
    """

    differences: Floats
    se: Floats
    df: Floats

    def take(self, rows: Rows) -> RowAudit:
        """Return the audit of some rows, by position."""
        return RowAudit(self.differences[rows], self.se[rows], self.df[rows])

    def matters(self, values: Floats, confidence: float = 0.95) -> Mask:
        """Return which differences are significantly above 2 % of the range of the values.

        The tests are simultaneous for all rows and features.
        """
        low, high = simultaneous_intervals(
            self.differences.ravel(), self.se.ravel(), confidence, df=self.df.ravel()
        )
        threshold = MATTERS * float(np.ptp(values))
        found: Mask = ((low > threshold) | (high < -threshold)).reshape(self.differences.shape)
        return found


@dataclass(frozen=True, eq=False)
class RowParts:
    """The direct and the indirect parts of causal values, which add up to them.

    Attributes
    ----------
    direct, indirect : arrays of shape (n_rows, n_features)
        What the value itself adds, and what setting the feature changes of the others.
    se_direct, se_indirect : arrays of shape (n_rows, n_features)
        Their standard errors from orderings and draws.
    """

    direct: Floats
    indirect: Floats
    se_direct: Floats
    se_indirect: Floats

    def take(self, rows: Rows) -> RowParts:
        """Return the parts of some rows, by position."""
        return RowParts(*(array[rows] for array in vars(self).values()))

    def shifted(self, shift: Floats) -> RowParts:
        """Return parts whose sums have changed: the change is divided by their variances."""
        direct, indirect = self.se_direct**2, self.se_indirect**2
        total = direct + indirect
        share = np.divide(direct, total, out=np.ones_like(total), where=total > 0)
        return replace(
            self,
            direct=self.direct + share * shift,
            indirect=self.indirect + (1 - share) * shift,
        )


@dataclass(frozen=True, eq=False)
class LocalEstimate(WithErrors, Finished):
    """Estimated local values with their errors.

    Attributes
    ----------
    feature_names : tuple of str
        The features.
    values : array of shape (n_rows, n_features)
        Mean contribution of each feature to the prediction of each row, over orderings; for losses,
        how much it reduces the loss.
    se_orderings, se_draws : arrays of shape (n_rows, n_features)
        Standard errors from the choice of orderings and from draws; more computing reduces them.
        Local values concern single rows, so the choice of rows causes no error.
    df : array of shape (n_rows, n_features)
        Degrees of freedom of `se`, for the intervals.
    base_value : float or array of shape (n_rows,)
        The mean prediction if no feature is known; for losses, the loss of each row if none is.
    predictions : array of shape (n_rows,)
        The model's output for each row; for losses, the loss of each row.
    data : data frame or array of shape (n_rows, n_features)
        The rows as passed.
    n_orderings : int
        Fewest orderings behind the values of any row.
    n_evaluated, n_shared : int
        Pairs of a coalition and a row that were evaluated, and that were reused.
    share_skipped : array of shape (n_features,)
        Share of the orderings in which the surplus of the feature is zero by separation.
    seconds : float
        Time spent.
    is_exact : bool
        Whether all orderings were enumerated.
    reason : StopReason or None
        Why the estimation ended.
    is_loss : bool
        Whether losses are explained.
    estimand : {"d-sage", "sage", "causal"}
        Whether separation was used without a correction, or features were set.
    audit : RowAudit or None
        What separation changes, if that was estimated.
    parts : RowParts or None
        The direct and indirect parts of causal values.

    Examples
    --------
    >>> zeros = np.zeros((1, 2))
    >>> local = LocalEstimate(
    ...     ("a", "b"), np.array([[3.0, -1.0]]), zeros, zeros, zeros + np.inf, 0.5, np.array([2.5]),
    ...     np.array([[1.0, 0.0]]), 2, 4, 0, np.zeros(2), 0.1, True,
    ... )
    >>> local.to_frame()[["row", "feature", "value", "se"]]
       row feature  value   se
    0    0       a    3.0  0.0
    1    0       b   -1.0  0.0
    >>> local.unexplained
    array([0.])
    """

    feature_names: tuple[str, ...]
    values: Floats
    se_orderings: Floats
    se_draws: Floats
    df: Floats
    base_value: float | Floats
    predictions: Floats
    data: Any = field(metadata={"is_saved": False})
    n_orderings: int
    n_evaluated: int
    n_shared: int
    share_skipped: Floats
    seconds: float
    is_exact: bool
    reason: StopReason | None = None
    is_loss: bool = False
    estimand: str = "sage"
    audit: RowAudit | None = None
    parts: RowParts | None = None

    @property
    def unexplained(self) -> Floats:
        """The residual of each row, (n_rows,): prediction - base value - sum of values.

        Values of losses reduce them, so there the sum is added. Without an oracle, only draws
        cause it. With an oracle, it also contains the effect of features that are irrelevant for
        the target given the others.
        """
        sums = self.values.sum(axis=1)
        left: Floats = self.predictions - self.base_value + (sums if self.is_loss else -sums)
        return left

    def balanced(self) -> LocalEstimate:
        """Return the estimate with values that add up exactly, if only errors prevent it.

        Plain values of predictions add up to the prediction minus the base value, except for
        errors of draws. The remainder is divided among them in proportion to their variances,
        which is optimal for independent errors; if all of these are zero, in proportion to the
        squares of the values. Values with an oracle, and those of losses, are
        returned unchanged.
        """
        if self.estimand == "d-sage" or self.is_loss:
            return self
        variances = self.se**2
        # Draws may agree by chance, so that no value has an error, and yet they do not add up.
        size = np.maximum(np.abs(self.predictions), np.abs(self.base_value))
        is_off = (variances.sum(axis=1) == 0) & (np.abs(self.unexplained) > _ROUNDING * size)
        has_values = (self.values != 0).any(axis=1, keepdims=True)
        variances[is_off] = np.where(has_values, self.values**2, 1.0)[is_off]
        shift = divide(self.unexplained, variances, variances.sum(axis=1))
        parts = None if self.parts is None else self.parts.shifted(shift)
        return replace(self, values=self.values + shift, parts=parts)

    def take(self, rows: Rows) -> LocalEstimate:
        """Return the estimate of some rows, by position."""
        base, audit = self.base_value, self.audit
        return replace(
            self,
            values=self.values[rows],
            se_orderings=self.se_orderings[rows],
            se_draws=self.se_draws[rows],
            df=self.df[rows],
            base_value=base if isinstance(base, float) else base[rows],
            predictions=self.predictions[rows],
            data=take_rows(self.data, rows),
            audit=None if audit is None else audit.take(rows),
            parts=None if self.parts is None else self.parts.take(rows),
        )

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return value, error and interval of each row and feature.

        Parameters
        ----------
        confidence : float, default=0.95
            Coverage probability of the interval of a *single* value.

        Returns
        -------
        pandas.DataFrame
            Columns ``row`` (its number), ``feature``, ``value``, ``se``, ``lower``, ``upper``, and
            for causal values ``direct``, ``indirect``, ``se_direct``, ``se_indirect``.
        """
        n_rows, n_features = self.values.shape
        values, se = self.values.ravel(), self.se.ravel()
        lower, upper = intervals(values, se, confidence, df=self.df.ravel())
        return pd.DataFrame(
            {
                "row": np.repeat(np.arange(n_rows), n_features),
                "feature": np.tile(np.array(self.feature_names, dtype=object), n_rows),
                "value": values,
                "se": se,
                "lower": lower,
                "upper": upper,
                **(
                    {}
                    if self.parts is None
                    else {n: a.ravel() for n, a in vars(self.parts).items()}
                ),
            }
        )

    def to_shap(self) -> Any:  # noqa: ANN401
        """Return the values as a ``shap.Explanation``, for the plots of shap (extra ``shap``).

        Its base values are all `base_value`.

        Returns
        -------
        shap.Explanation
            With `values`, `base_values`, `data` and `feature_names`.
        """
        try:
            from shap import Explanation  # noqa: PLC0415
        except ImportError as error:
            raise ImportError(
                "LocalEstimate.to_shap needs shap; install it with: pip install 'dsage[shap]'."
            ) from error
        data = self.data
        if is_frame(data):
            data = Frame(data, self.feature_names).matrix()
        return Explanation(
            values=self.values,
            base_values=np.broadcast_to(self.base_value, len(self.values)).copy(),
            data=np.asarray(data),
            feature_names=list(self.feature_names),
        )
