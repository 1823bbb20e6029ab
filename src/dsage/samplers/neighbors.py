"""Draw training rows that are near the known values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist

from dsage._check import check_count, check_real, refusal, warn
from dsage._random import Streams
from dsage.data.possible import Possible
from dsage.samplers.base import BaseSampler
from dsage.samplers.checks import Floats, Ints, Mask, pick, warn_of_copies
from dsage.samplers.conditioning import lower_factor, whiten
from dsage.samplers.inversion import draw_positions
from dsage.samplers.neighbor_paths import Distances, NeighborsOrdering
from dsage.samplers.recent import Recent
from dsage.samplers.registry import ANY_DATA, SAMPLERS

# Pairs of training rows from which the scale of Gower's distance is estimated; the relative
# standard error of a mean of squares is then about 2 %.
_N_PAIRS = 4096
# In units of a feature's spread. Farther out, rounding of squared distances hides the nearest row.
_FAR = 1e6
_CACHE_BYTES = 2**25  # of the coordinates of training rows in orderings that were used last


@SAMPLERS.register(
    "neighbors",
    summary="training rows near the known values",
    fits=ANY_DATA,
    candidate_for=ANY_DATA,
    complexity=5,
    draw_cost=0.5,
    call_cost=20.0,
    fit_cost=0.2,
)
@dataclass(kw_only=True, eq=False, repr=False)
class Neighbors(BaseSampler):
    """Draw the unknown features of a training row that is near the known values.

    Training row i is drawn with probability proportional to

        exp(-D_i^2 / (2 bandwidth^2)),

    where D_i is its distance from the given row on the known features, and all unknown features
    are copied from it: the empirical approach of Aas, Jullum and Loland (2021). D is Mahalanobis'
    distance if all features are continuous. Otherwise it is Gower's: the mean over the known
    features of ``|x - x_i| / range`` for continuous and of ``[x != x_i]`` for discrete ones. Both
    are divided by their root mean square between two random training rows, so that random rows
    are at distance 1, for any coalition.

    Row i is found by inverting the distribution function at the noise of the *first* feature,
    whether it is known or not, with training rows in the order of their first principal
    component: coalitions that share noise draw similar rows. A row far from all training rows
    gets the nearest of them, since the smallest distance is subtracted. Values are clipped at 1e6
    standard deviations (with Gower's distance, ranges) from the mean.

    Constant columns, and directions in which training rows do not vary (copies of columns, more
    columns than rows), are left out of Mahalanobis' distance; `fit` warns and names the columns.
    Gower's distance leaves out constant columns and counts each copy, with a warning.

    Parameters
    ----------
    bandwidth : float or "scott", default="scott"
        Standard deviation of the kernel in units of D; larger values are nearer to the marginal
        distribution. ``"scott"`` is Scott's rule for the k known features together,
        ``n_rows^(-1 / (k + 4)) / sqrt(2 k)``: the square root turns standard deviations of a
        feature into units of D. With Gower's distance it is half of that: Gower's distance adds
        differences, not their squares, so that a single mismatch counts less among many features.
    n_neighbors : int, optional
        Draw only from this many nearest training rows (and ties of the last); by default from all.
    discrete, dtype, max_bytes
        As in :class:`~dsage.samplers.base.BaseSampler`.

    Attributes
    ----------
    rows_ : array of shape (n_rows, n_features)
        The training rows, in the order of their first principal component.

    Examples
    --------
    >>> X = np.column_stack([np.arange(100.0), np.arange(100.0) % 7.0])
    >>> sampler = Neighbors(bandwidth=0.001).fit(X)
    >>> noise = np.full((1, 1, 2), 0.5)
    >>> sampler.draw(np.array([[30.0, 0.0]]), np.array([True, False]), noise)
    array([[[30.,  2.]]])
    """

    bandwidth: float | str = "scott"
    n_neighbors: int | None = None

    def _fit(self, X: Floats) -> None:
        if self.bandwidth != "scott":
            if isinstance(self.bandwidth, str):
                raise refusal("bandwidth", '"scott" or a number', self.bandwidth, "Pass a float")
            check_real(self.bandwidth, "bandwidth", above=0.0, high=1e150)
        if self.n_neighbors is not None:
            check_count(self.n_neighbors, "n_neighbors")
        self._center = X.mean(axis=0)
        is_constant = np.ptp(X, axis=0) == 0.0
        spread = np.where(is_constant, np.inf, X.std(axis=0))
        standard = (X - self._center) / spread
        self._correlation = standard.T @ standard / len(X)
        vectors = np.linalg.eigh(self._correlation)[1]
        self.rows_ = X[np.argsort(standard @ vectors[:, -1], kind="stable")]
        self._is_discrete = self.n_categories_ > 0
        if self._is_discrete.any():
            spread = np.where(is_constant, np.inf, np.ptp(X, axis=0))
            self._products = _pair_products(self.rows_, spread, self._is_discrete)
            warn_of_copies(X, self.layout_, "All count in Gower's distance: leave the copies out.")
        else:
            self._warn_of_degeneracy(is_constant)
        self._scale = 1.0 / spread
        self._recent: Recent[Distances] = Recent(max(1, _CACHE_BYTES // self.rows_.nbytes))

    @property
    def _possible(self) -> Possible:
        return self.layout_.possible.together

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:
        return self.rows_[:, ~known][draw_positions(self._weights(X, known), noise[:, :, 0])]

    def ordering(self, order: Sequence[int] | Ints) -> NeighborsOrdering:
        """Return an object that draws for all prefixes of an ordering of the features.

        A feature that becomes known adds one term to the distances from all training rows.

        Parameters
        ----------
        order : sequence of int
            The positions of the features, each once.
        """
        positions = self._check_order(order)
        make = self._gower_along if self._is_discrete.any() else self._mahalanobis_along
        distances = self._recent.get(positions.tobytes(), partial(make, positions))
        return NeighborsOrdering(self.rows_, self.layout_, positions, distances, self._kernel)

    def prepare(self, noise: Floats) -> Floats:
        """Return the noise itself, which `ordering` takes."""
        return noise

    def _mean(self, X: Floats, known: Mask) -> Floats:
        weights = self._weights(X, known)
        # A matrix product may round a row differently in another batch; row sums do not.
        sums = [(weights * values).sum(axis=1) for values in self.rows_.T[~known]]
        means: Floats = np.stack(sums, axis=1) / weights.sum(axis=1)[:, None]
        return means

    def _bytes_per_row(self, known: Mask, n_draws: int) -> int:
        return 4 * 8 * len(self.rows_) + super()._bytes_per_row(known, n_draws)

    def _weights(self, X: Floats, known: Mask) -> Floats:
        """Return the weights (n_rows, n training rows), the largest of each row being 1."""
        n_known = int(known.sum())
        if not n_known:
            return np.ones((len(X), len(self.rows_)))
        squares = self._gower(X, known) if self._is_discrete.any() else self._mahalanobis(X, known)
        return self._kernel(squares, n_known, 1.0, squares)

    def _kernel(self, squares: Floats, n_known: int, mean_square: float, out: Floats) -> Floats:
        """Write the weights for squared distances, the largest of each row being 1, into `out`."""
        if not n_known:
            out.fill(1.0)
            return out
        bandwidth = self._scott(n_known) if isinstance(self.bandwidth, str) else self.bandwidth
        np.subtract(squares, squares.min(axis=1, keepdims=True), out=out)
        if self.n_neighbors is not None and self.n_neighbors < len(self.rows_):
            last = self.n_neighbors - 1
            farthest = np.partition(out, last, axis=1)[:, last]
            out[out > farthest[:, None]] = np.inf
        out /= -2.0 * bandwidth**2 * mean_square
        weights: Floats = np.exp(out, out=out)
        return weights

    def _scott(self, n_known: int) -> float:
        rule = float(len(self.rows_) ** (-1.0 / (n_known + 4)) / np.sqrt(2.0 * n_known))
        return rule / 2.0 if self._is_discrete.any() else rule

    def _mahalanobis(self, X: Floats, known: Mask) -> Floats:
        """Return the squared distances, whose mean over pairs of training rows is 1."""
        values, vectors = np.linalg.eigh(self._correlation[np.ix_(known, known)])
        kept = values > _negligible(values)
        whitening = vectors[:, kept] / np.sqrt(2.0 * kept.sum() * values[kept])
        scale = self._scale[known]
        rows = ((self.rows_[:, known] - self._center[known]) * scale) @ whitening
        standard = (_near(X, self._center, self._scale)[:, known] - self._center[known]) * scale
        # Sums in a fixed order, so that a row is the same in any batch.
        white = np.zeros((len(X), rows.shape[1]))
        for position, direction in enumerate(whitening):
            white += standard[:, position, None] * direction
        return cdist(white, rows, "sqeuclidean") if kept.any() else np.zeros((len(X), len(rows)))

    def _mahalanobis_along(self, order: Ints) -> Distances:
        """Return the distances on the prefixes of an ordering.

        With ``S = L L'`` in the ordering's order, a feature adds the square of the difference in
        its coordinate of ``L^-1 (x - mean)``.
        """
        factor = lower_factor(self._correlation[np.ix_(order, order)])
        n_kept = np.cumsum(factor.diagonal() > 0)
        measure = partial(self._whiten, order, factor)
        return Distances(
            measure=measure,
            coordinates=measure(self.rows_, len(order)),
            is_class=np.zeros(len(order), bool),
            is_squared=True,
            mean_squares=2.0 * np.append(1, np.maximum(n_kept, 1)),
        )

    def _whiten(self, order: Ints, factor: Floats, X: Floats, length: int) -> Floats:
        first = order[:length]
        centered = (_near(X, self._center, self._scale)[:, first] - self._center[first]) * (
            self._scale[first]
        )
        return whiten(factor[:length, :length], centered)

    def _gower_along(self, order: Ints) -> Distances:
        """Return the distances on the prefixes of an ordering."""
        products = np.cumsum(np.cumsum(self._products[np.ix_(order, order)], axis=0), axis=1)
        squares = np.append(0.0, products.diagonal())
        measure = partial(self._in_ranges, order)
        return Distances(
            measure=measure,
            coordinates=measure(self.rows_, len(order)),
            is_class=self._is_discrete[order],
            is_squared=False,
            mean_squares=np.where(squares > 0.0, squares, 1.0),
        )

    def _in_ranges(self, order: Ints, X: Floats, length: int) -> Floats:
        scaled = np.where(self._is_discrete, X, _near(X, self._center, self._scale) * self._scale)
        return np.ascontiguousarray(scaled[:, order[:length]].T)

    def _gower(self, X: Floats, known: Mask) -> Floats:
        numbers = np.flatnonzero(known & ~self._is_discrete)
        classes = np.flatnonzero(known & self._is_discrete)
        total = np.zeros((len(X), len(self.rows_)))
        # cdist is many times faster if rows are contiguous.
        if len(numbers):
            x, rows = (
                np.ascontiguousarray(table[:, numbers] * self._scale[numbers])
                for table in (_near(X, self._center, self._scale), self.rows_)
            )
            total += cdist(x, rows, "cityblock")
        if len(classes):
            x, rows = (np.ascontiguousarray(table[:, classes]) for table in (X, self.rows_))
            total += cdist(x, rows, "hamming") * len(classes)
        mean_square = self._products[np.ix_(known, known)].sum()
        total *= total
        total /= mean_square if mean_square > 0.0 else 1.0
        return total

    def _warn_of_degeneracy(self, is_constant: Mask) -> None:
        values, vectors = np.linalg.eigh(self._correlation)
        null = vectors[:, values <= _negligible(values)]
        involved = is_constant | (np.abs(null) > 1e-6).any(axis=1)
        if names := pick(self.feature_names_, involved):
            warn(
                f"The columns {names} are constant or determine one another: distances leave out "
                "the directions in which training rows do not vary."
            )


def _near(X: Floats, center: Floats, scale: Floats) -> Floats:
    """Clip rows to where squared distances are precise; constant columns are not clipped."""
    with np.errstate(divide="ignore"):
        reach = np.where(scale > 0, _FAR / scale, np.inf)
    return np.clip(X, center - reach, center + reach)


def _negligible(eigenvalues: Floats) -> float:
    """Return the size below which eigenvalues of a correlation matrix are rounding errors."""
    return float(1e-10 * max(1.0, eigenvalues[-1]))


def _pair_products(rows: Floats, ranges: Floats, is_discrete: Mask) -> Floats:
    """Return ``E[g_j g_k]`` of the summands g of Gower's distance between random rows."""
    generator = Streams(0)("neighbors-pairs")
    one, other = generator.integers(len(rows), size=(2, _N_PAIRS))
    difference = np.abs(rows[one] - rows[other])
    parts = np.where(is_discrete, difference > 0.0, difference / ranges)
    products: Floats = parts.T @ parts / _N_PAIRS
    return products
