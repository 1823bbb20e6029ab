"""The Gaussian mixture: several modes, conditioned in closed form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import sklearn.mixture

from dsage._check import check_count, check_member, check_shape, refusal, warn
from dsage._random import RandomState, Streams
from dsage.data.missing import check_finite
from dsage.data.pools import single_blas
from dsage.samplers.base import BaseSampler
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.conditioning import (
    TOLERANCE,
    Normal,
    combine,
    grid_scores,
    lanes,
    lower_factor,
    sweep,
)
from dsage.samplers.gaussian import (
    check_covariance,
    estimate,
    layout_of_numbers,
    require_continuous,
    require_rows,
    warn_determined,
)
from dsage.samplers.registry import NUMBERS, SAMPLERS

_TYPES = ("full", "tied", "diag", "spherical")
_FAR = 1e100  # deviations


class _QuietMixture(sklearn.mixture.GaussianMixture):  # type: ignore[misc]
    """A mixture that does not warn if it does not converge; see `has_converged`.

    Only the convergence of the chosen fit matters. Warning filters would apply to all threads.
    """

    @property
    def converged_(self) -> bool:
        return True

    @converged_.setter
    def converged_(self, has_converged: bool) -> None:
        self.has_converged = has_converged


@SAMPLERS.register(
    "mixture",
    summary="a mixture of multivariate normals",
    fits=NUMBERS,
    draw_cost=0.05,
    call_cost=40.0,
    fit_cost=50.0,
    fit_seconds=0.3,
)
@dataclass(kw_only=True, eq=False, repr=False)
class GaussianMixture(BaseSampler):
    """Draw from a mixture of Gaussians, fitted by scikit-learn and conditioned in closed form.

    With weights ``w_c`` and components ``N(m_c, S_c)``, the unknown features given the known ones
    are a mixture of the components' conditionals with weights
    ``r_c proportional to w_c N(x_K; m_c,K, S_c,KK)``.

    The noise u of the **first column** chooses the component, the smallest c with
    ``u <= r_1 + .. + r_c``, in every coalition. If that column is unknown, the remainder of u,
    ``(u - r_1 - .. - r_(c-1)) / r_c``, is uniform again and independent of c, and is used for the
    column itself.

    Columns are standardized before the fit. Constant columns, and columns that are linear functions
    of others, are left out of the fit and reproduced exactly, with a warning that names them.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of components. "auto" minimizes BIC over the fits in which every component has twice
        as many rows as its covariance needs, 2 (n_features + 1) (4 if `covariance_type` is not
        "full"): BIC prefers components that shrink around a few rows. A given number is used as it
        is, with a warning if rows are too few.
    max_components : int, default=8
        The largest number that "auto" tries.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        As in scikit-learn.
    random_state : int, numpy Generator or None, default=0
        Seed of the fit; draws depend on their noise only.
    dtype, max_bytes
        As in :class:`~dsage.samplers.base.BaseSampler`.

    Attributes
    ----------
    weights_, means_, covariances_ : arrays of shapes (n_components,), (n_components, n_features)
        and (n_components, n_features, n_features)
    bic_ : dict from int to float
        BIC by the number of components, if chosen automatically.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> side = rng.choice([-3.0, 3.0], 400)
    >>> X = np.column_stack([side, side]) + rng.standard_normal((400, 2))
    >>> sampler = GaussianMixture().fit(X)
    >>> len(sampler.weights_)
    2
    >>> bool(sampler.mean([[3.0, 0.0]], np.array([True, False]))[0, 1] > 2)
    True
    """

    n_components: int | Literal["auto"] = "auto"
    max_components: int = 8
    covariance_type: Literal["full", "tied", "diag", "spherical"] = "full"
    random_state: RandomState = 0
    discrete: str | Iterable[str] = field(default=(), init=False)

    @classmethod
    def from_parameters(
        cls,
        weights: npt.ArrayLike,
        means: npt.ArrayLike,
        covariances: npt.ArrayLike,
        names: Iterable[str] | None = None,
    ) -> Self:
        """Make a fitted sampler from the parameters of a mixture.

        Parameters
        ----------
        weights : array of shape (n_components,)
            Positive numbers, which are divided by their sum.
        means : array of shape (n_components, n_features)
        covariances : array of shape (n_components, n_features, n_features)
        names : iterable of str, optional
            The features; ``X1, X2, ...`` by default.
        """
        shares = np.array(weights, dtype=np.float64)
        centers = np.array(means, dtype=np.float64)
        spreads = np.array(covariances, dtype=np.float64)
        if shares.ndim != 1 or not ((shares > 0) & np.isfinite(shares)).all():
            raise refusal("weights", "positive numbers", shares, "Pass one per component")
        shape, advice = (len(shares), "n_features", "n_features"), "Pass one per weight"
        check_shape(centers, shape[:2], "means", advice)
        check_shape(spreads, shape, "covariances", advice)
        made = cls(n_components=len(shares))
        made._set_layout(layout_of_numbers(centers, names, "means"))
        for spread in spreads:
            check_covariance(spread, made.feature_names_)
        made._set(shares / shares.sum(), centers, spreads)
        return made

    def _set(self, weights: Floats, means: Floats, covariances: Floats) -> None:
        self.weights_, self.means_, self.covariances_ = weights, means, covariances
        mean = weights @ means
        apart = means - mean
        pooled = np.tensordot(weights, covariances, 1) + (apart.T * weights) @ apart
        self._pooled = Normal(mean, pooled)
        self._components = list(map(Normal, means, covariances))

    def _fit(self, X: Floats) -> None:
        check_member(self.covariance_type, _TYPES, "covariance_type", "the types of covariances")
        require_continuous(self)
        require_rows(X)
        mean, covariance = estimate(X, "empirical")
        whole = Normal(mean, covariance)
        warn_determined(whole, self.feature_names_)
        free = ~whole.determined()
        n_free, scale = int(free.sum()), whole.scale
        weights, means, covariances = self._fit_free((X[:, free] - mean[free]) / scale[free])
        # Every feature as a linear function of the free ones, in standard units.
        extend = np.zeros((len(mean), n_free))
        extend[free] = np.eye(n_free)
        extend[~free], _ = sweep(whole.correlation, free)
        centers = mean + (means @ extend.T) * scale
        units = np.multiply.outer(scale, scale)
        self._set(weights, centers, (extend @ covariances @ extend.T) * units)

    def _fit_free(self, standardized: Floats) -> tuple[Floats, Floats, Floats]:
        """Fit the mixture to linearly independent columns."""
        n_rows, n_free = standardized.shape
        self.bic_: dict[int, float] = {}
        if not n_free:
            return np.ones(1), np.zeros((1, 0)), np.zeros((1, 0, 0))
        seed = int(Streams(self.random_state)("gaussian-mixture").integers(2**31))
        needed = n_free + 1 if self.covariance_type == "full" else 2
        best: Any = None
        for n_components in self._candidates(standardized):
            fitted = _QuietMixture(
                n_components, covariance_type=self.covariance_type, random_state=seed
            )
            # scikit-learn's k-means limits BLAS, too; of limits that threads set on their own, one
            # would outlast them.
            with single_blas():
                fitted.fit(standardized)
            fewest = n_rows * fitted.weights_.min()
            if self.n_components != "auto":
                best = fitted
                if fewest < needed:
                    warn(
                        f"The smallest of {n_components} components has about {fewest:.0f} rows, "
                        f"and its covariance needs {needed}: only its regularization keeps it from "
                        "collapsing. Use fewer components, or another covariance_type."
                    )
            elif n_components == 1 or fewest >= 2 * needed:
                self.bic_[n_components] = float(fitted.bic(standardized))
                if best is None or self.bic_[n_components] < self.bic_[best.n_components]:
                    best = fitted
        if not best.has_converged:
            warn(
                f"The fit of {best.n_components} components did not converge in {best.max_iter} "
                "steps of the EM algorithm. Use fewer components, or check with evaluate()."
            )
        full = _full(best.means_, best.covariances_, self.covariance_type)
        return best.weights_, best.means_, full

    def _candidates(self, standardized: Floats) -> range:
        n_distinct = len(np.unique(standardized, axis=0))
        if self.n_components == "auto":
            most = check_count(self.max_components, "max_components")
            return range(1, min(most, n_distinct) + 1)
        n_components = check_count(self.n_components, "n_components")
        if n_components > n_distinct:
            condition = f"at most {n_distinct}, the distinct rows"
            raise refusal("n_components", condition, n_components, "Use fewer")
        return range(n_components, n_components + 1)

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:
        n_rows, n_draws, n_features = noise.shape
        unknown = np.flatnonzero(~known)
        upper = np.cumsum(self._responsibilities(X, known), axis=0)[:, :, None]
        first = noise[:, :, 0]
        # The last bound is not compared: rounding may leave it below 1.
        chosen = (first > upper[:-1]).sum(axis=0)
        scores = np.take(noise.reshape(-1, n_features), unknown, axis=1)
        if not known[0]:
            scores[:, 0] = _remainder(first, upper[:, :, 0], chosen).ravel()
        scores = grid_scores(scores)
        drawn = np.empty_like(scores)
        rows = np.repeat(np.arange(n_rows), n_draws)
        for number, component in enumerate(self._components):
            at = np.flatnonzero(chosen.ravel() == number)
            if len(at):
                given = component.given(known)
                mean = given.mean(X[:, known])
                drawn[at] = scores[at] @ given.factor + mean[rows[at]]
        return drawn.reshape(n_rows, n_draws, len(unknown))

    def _mean(self, X: Floats, known: Mask) -> Floats:
        shares = self._responsibilities(X, known)
        total = np.zeros((len(X), int((~known).sum())))
        for share, component in zip(shares, self._components, strict=True):
            total += share[:, None] * component.given(known).mean(X[:, known])
        return total

    def responsibilities(self, X: npt.ArrayLike, known: Mask) -> Floats:
        """Return the probability of each component given the known features.

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_features)
        known : bool array of shape (n_features,)

        Returns
        -------
        array of shape (n_rows, n_components)
        """
        rows, known = self._encode(X, known)
        check_finite(rows, self.feature_names_)
        return self._responsibilities(rows, known).T

    def _responsibilities(self, X: Floats, known: Mask) -> Floats:
        """Return the components' probabilities, shape (n_components, n_rows)."""
        independent = _independent(self._pooled.correlation, known)
        scale = self._pooled.scale[independent]
        columns = lanes(X[:, independent])
        logs = np.empty((len(self._components), columns.shape[1]))
        for number, weight in enumerate(self.weights_):
            block = self.covariances_[number][np.ix_(independent, independent)]
            factor = lower_factor(block / scale / scale[:, None], 0.0)
            mean = self.means_[number, independent]
            logs[number] = np.log(weight) + _log_density(columns, mean, scale, factor)
        logs -= logs.max(axis=0)
        shares = np.exp(logs)
        total = np.zeros(columns.shape[1])
        for share in shares:
            total += share
        return (shares / total)[:, : len(X)]

    def _bytes_per_row(self, known: Mask, n_draws: int) -> int:
        # Scores and draws twice each, the choice of components, and the columns of densities.
        n_components = len(self.weights_)
        a_draw = 4 * int((~known).sum()) + n_components + 6
        return 8 * (n_draws * a_draw + (4 + n_components) * len(known))


def _log_density(columns: Floats, mean: Floats, scale: Floats, factor: Floats) -> Floats:
    """Return normal log densities of columns (n_features, n_lanes), up to a constant.

    `factor` is the factor of the covariance in units of `scale`.
    """
    z = np.zeros_like(columns)
    total = np.zeros(columns.shape[1])
    # Otherwise a component without spread in a direction would be certain wherever possible.
    pivots = np.maximum(factor.diagonal(), np.sqrt(TOLERANCE))
    for at, pivot in enumerate(pivots):
        # Clipped where squares would overflow and all densities be zero.
        ends = mean[at] - _FAR * scale[at], mean[at] + _FAR * scale[at]
        centered = (np.clip(columns[at], *ends) - mean[at]) / scale[at]
        z[at] = (centered - combine(factor[at : at + 1, :at], z[:at])[0]) / pivot
        total -= 0.5 * z[at] ** 2 + np.log(pivot)
    return total


def _independent(correlation: Floats, known: Mask) -> Ints:
    """Return the known features that do not follow from the known ones before them."""
    at = np.flatnonzero(known)
    free = lower_factor(correlation[np.ix_(at, at)], TOLERANCE).diagonal() > 0
    return at[free]


def _remainder(u: Floats, upper: Floats, chosen: Ints) -> Floats:
    """Return the remainder of uniforms (n_rows, n_draws) after the choice of a component."""
    bounds = np.concatenate([np.zeros((1, upper.shape[1])), upper])
    rows = np.arange(upper.shape[1])[:, None]
    low, high = bounds[chosen, rows], bounds[chosen + 1, rows]
    # A component without probability is chosen by rounding only.
    width = np.where(high > low, high - low, 1.0)
    left: Floats = np.clip((u - low) / width, 0.0, 1.0)
    return left


def _full(means: Floats, covariances: Floats, covariance_type: str) -> Floats:
    n_components, n_features = means.shape
    if covariance_type == "full":
        return covariances
    if covariance_type == "tied":
        return np.tile(covariances, (n_components, 1, 1))
    diagonals = covariances if covariance_type == "diag" else covariances[:, None]
    full: Floats = np.eye(n_features) * diagonals[:, None, :]
    return full
