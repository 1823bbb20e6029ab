"""The Gaussian sampler: conditioning in closed form from means and covariances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.covariance import ledoit_wolf, oas

from dsage._check import check_member, check_names, check_shape, refusal, warn
from dsage.data.layout import Layout
from dsage.samplers.base import BaseSampler, Result, Sampler
from dsage.samplers.checks import Floats, Ints, Mask, pick
from dsage.samplers.conditioning import Normal, as_grid, check_scores, grid_scores
from dsage.samplers.device import DeviceGaussian, DeviceSampler, Place
from dsage.samplers.ordering import Ordering
from dsage.samplers.registry import NUMBERS, SAMPLERS
from dsage.samplers.sums import SumLaw

COVARIANCES = ("empirical", "ledoit-wolf", "oas")


@SAMPLERS.register(
    "gaussian",
    summary="one multivariate normal",
    fits=NUMBERS,
    candidate_for=NUMBERS,
    complexity=1,
    draw_cost=0.02,
    call_cost=10.0,
    fit_cost=0.1,
)
@dataclass(kw_only=True, eq=False, repr=False)
class Gaussian(BaseSampler):
    """Draw from a multivariate normal with the means and covariances of the data.

    Given the known features K, the unknown ones U are normal with

    ``mean_U + B (x_K - mean_K)``, ``B = S_UK S_KK^-1`` and covariance ``S_UU - B S_KU = L L'``.

    A draw adds ``L z`` with z the normal scores of the unknown features' noise and L lower
    triangular in the order of the columns. The scores are rounded to a grid of 1e-6 and L to about
    1e-8 of a standard deviation, so that the product is exact and does not depend on the batch.

    **Singular covariances** (constant, copied or collinear columns, more columns than rows) are
    used unchanged: if the known features explain all of a feature's variance up to a share of
    1e-10, they determine it, and draws reproduce it. `fit` warns and names the columns that the
    columns before them determine.

    Parameters
    ----------
    covariance : {"empirical", "ledoit-wolf", "oas"}, default="empirical"
        The estimate: with divisor n - 1, or shrunk towards independence (of the standardized
        columns, so that units do not matter).
    dtype, max_bytes
        As in :class:`~dsage.samplers.base.BaseSampler`.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
    covariance_ : array of shape (n_features, n_features)

    Examples
    --------
    >>> sampler = Gaussian.from_moments([0.0, 1.0], [[1.0, 0.6], [0.6, 1.0]], ["a", "b"])
    >>> X, known = np.array([[2.0, 0.0]]), np.array([True, False])
    >>> sampler.mean(X, known)
    array([[2. , 2.2]])
    >>> sampler.draw(X, known, np.array([[[0.5, 0.5], [0.5, 0.975]]])).round(3)
    array([[[2.   , 2.2  ],
            [2.   , 3.768]]])
    """

    has_factors = True
    has_latent = True
    covariance: Literal["empirical", "ledoit-wolf", "oas"] = "empirical"
    discrete: str | Iterable[str] = field(default=(), init=False)

    @classmethod
    def from_moments(
        cls, mean: npt.ArrayLike, covariance: npt.ArrayLike, names: Iterable[str] | None = None
    ) -> Self:
        """Make a fitted sampler from means and covariances, such as from a known model.

        Parameters
        ----------
        mean : array of shape (n_features,)
        covariance : array or data frame of shape (n_features, n_features)
            Symmetric and positive semidefinite.
        names : iterable of str, optional
            The features; by default the columns of `covariance`, or ``X1, X2, ...``.
        """
        if names is None and isinstance(covariance, pd.DataFrame):
            names = covariance.columns
        center = np.array(mean, dtype=np.float64)
        matrix = np.array(covariance, dtype=np.float64)
        if center.ndim != 1 or not len(center):
            advice = "Pass one mean per feature"
            raise refusal("mean", "of shape (n_features,)", center.shape, advice)
        made = cls()
        made._set_layout(layout_of_numbers(center, names, "mean"))
        check_covariance(matrix, made.feature_names_)
        made._set(center, (matrix + matrix.T) / 2)
        return made

    def ordering(self, order: Sequence[int] | Ints) -> Ordering:
        """Return an object that draws for all prefixes of an ordering, from one Cholesky factor.

        A prefix costs much less than a `draw` and has the same distribution, see
        :meth:`~dsage.samplers.ordering.Ordering.prefixes`.

        Parameters
        ----------
        order : sequence of int
            The positions of the features, each once.
        """
        return Ordering(self._normal, self.layout_, self._check_order(order))

    def on_device(self, device: Any, dtype: Any) -> DeviceSampler:  # noqa: ANN401
        """Return an object that draws on a device of PyTorch, in the precision of `dtype`."""
        if not self.draws_on_device:
            return Sampler.on_device(self, device, dtype)
        return DeviceGaussian(self._normal, self.layout_, Place(device, dtype))

    def _fit(self, X: Floats) -> None:
        check_member(self.covariance, COVARIANCES, "covariance", "the estimates of a covariance")
        require_continuous(self)
        require_rows(X)
        self._set(*estimate(X, self.covariance))

    def _set(self, mean: Floats, covariance: Floats) -> None:
        self.mean_, self.covariance_ = mean, covariance
        self._normal = Normal(mean, covariance)
        warn_determined(self._normal, self.feature_names_)

    def draw_scores(self, X: Any, known: Mask, scores: Floats) -> Floats:  # noqa: ANN401
        """Draw from normal scores instead of noise: cheaper if noise is used for many coalitions.

        Parameters
        ----------
        X, known
            As for `draw`.
        scores : array of shape (n_rows, n_draws, n_features)
            ``dsage.samplers.normal_scores(noise)``.

        Returns
        -------
        array of shape (n_rows, n_draws, n_features)
            ``draw(X, known, noise)``, to the bit.
        """
        rows, known = self._encode(X, known)
        return self._fill(rows, known, check_scores(scores, *rows.shape), self._write_scores)

    def _write(self, out: Result, rows: Floats, known: Mask, noise: Floats) -> None:
        self._normal.given(known).fill(out, rows, noise, grid_scores)

    def _write_scores(self, out: Result, rows: Floats, known: Mask, noise: Floats) -> None:
        self._normal.given(known).fill(out, rows, noise, as_grid)

    def _mean(self, X: Floats, known: Mask) -> Floats:
        return self._normal.given(known).mean(X[:, known])

    def mean_effects(self, known: Mask, weights: Floats) -> tuple[Floats, Floats] | None:
        """Return the expectation of an affine function; see :meth:`Sampler.mean_effects`."""
        # A subclass may have other means.
        is_own = type(self)._mean is Gaussian._mean and self.has_mean
        return self._normal.regress(known, weights) if is_own else None

    @property
    def has_sums(self) -> bool:  # type: ignore[override]
        """Whether `sum_law` is available: draws are normal, and not moved to possible values."""
        is_own = type(self)._write is Gaussian._write and type(self).draw is BaseSampler.draw
        return is_own and self.is_fitted and self._possible.is_free and not self._has_gaps

    def sum_law(self, rows: Floats, known: Mask, weights: Floats) -> SumLaw:
        """Return the distribution of weighted sums of the features; see :meth:`Sampler.sum_law`."""
        if not self.has_sums:
            return Sampler.sum_law(self, rows, known, weights)
        intercept, effects, covariance = self._normal.regress_sums(known, weights)
        # In a matrix product, the rounding of a row would depend on the other rows.
        given = np.ascontiguousarray(rows[:, known])
        means = intercept + np.einsum("nf,fk->nk", given, effects[known])
        return SumLaw.normal(means, covariance)

    def _bytes_per_row(self, known: Mask, n_draws: int) -> int:
        # The result is written in place: a few copies of a row, and a small chunk of draws.
        return 8 * len(known) * (n_draws + 4)


def estimate(X: Floats, kind: str) -> tuple[Floats, Floats]:
    """Return means and covariances of rows (n_rows, n_features), by the name of an estimate."""
    # Centered at its first row, a constant column is exactly zero, and so is its variance.
    centered = X - X[0]
    shift = centered.mean(axis=0)
    centered -= shift
    mean = X[0] + shift
    variances = (centered**2).sum(axis=0) / (len(X) - 1)
    scale = np.where(variances > 0, np.sqrt(variances), 1.0)
    centered /= scale
    if kind == "empirical":
        correlation = centered.T @ centered / (len(X) - 1)
    else:
        shrink = ledoit_wolf if kind == "ledoit-wolf" else oas
        correlation, _ = shrink(centered, assume_centered=True)
        correlation[variances == 0] = 0.0
        correlation[:, variances == 0] = 0.0
    return mean, correlation * scale[:, None] * scale


def layout_of_numbers(means: Floats, names: Iterable[str] | None, parameter: str) -> Layout:
    """Return the layout of features with finite means (..., n_features), not fitted to data."""
    if not np.isfinite(means).all():
        raise refusal(parameter, "finite", means.tolist(), "Correct these")
    n_features = means.shape[-1]
    checked = [f"X{n + 1}" for n in range(n_features)] if names is None else check_names(names)
    if len(checked) != n_features:
        raise refusal("names", f"{n_features} names", len(checked), "Pass one per feature")
    return Layout.of_numbers(checked)


def require_continuous(sampler: BaseSampler) -> None:
    """Refuse columns of classes."""
    if classes := pick(sampler.feature_names_, sampler.n_categories_ > 0):
        condition = f"of continuous columns for {sampler.name}"
        advice = "These hold classes: use Mix or Neighbors, or leave the columns out"
        raise refusal("X", condition, classes, advice, TypeError)


def require_rows(X: Floats) -> None:
    """Refuse a single row, which has no covariance."""
    if len(X) < 2:
        raise refusal("X", "of at least 2 rows", len(X), "Pass more training rows")


def warn_determined(normal: Normal, names: Sequence[str]) -> None:
    """Warn about features that are constant or determined by the features before them."""
    constant = normal.scale == 0
    determined = normal.determined() & ~constant
    kinds = {"are constant": constant, "follow from the columns before them": determined}
    for what, flags in kinds.items():
        if shown := pick(names, flags):
            more = f" and {len(shown) - 10} more" if len(shown) > 10 else ""
            warn(
                f"The columns {shown[:10]}{more} {what}: the covariance is singular, and draws "
                "reproduce this exactly. To avoid it, leave them out or shrink the covariance."
            )


def check_covariance(matrix: Floats, names: Sequence[str]) -> None:
    """Refuse a matrix that is not a covariance of the named features."""
    n_features = len(names)
    advice = "Pass one row and one column per feature"
    check_shape(matrix, (n_features, n_features), "covariance", advice)
    if bad := pick(names, np.any(~np.isfinite(matrix), axis=0)):
        raise refusal("covariance", "finite", bad, "Correct these")
    scale = np.sqrt(np.abs(matrix.diagonal()))
    divisor = np.where(scale > 0, scale, 1.0)
    correlation = matrix / divisor[:, None] / divisor
    if np.abs(correlation - correlation.T).max() > 1e-8:
        largest = float(np.abs(matrix - matrix.T).max())
        advice = "This is the largest difference of two mirrored entries"
        raise refusal("covariance", "symmetric", largest, advice)
    smallest = float(np.linalg.eigvalsh(correlation)[0])
    if smallest < -1e-8:
        advice = "This is the smallest eigenvalue of its correlations"
        raise refusal("covariance", "positive semidefinite", smallest, advice)
