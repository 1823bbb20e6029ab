"""A distribution of mixed data whose conditionals are known: a benchmark for samplers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri

from dsage._check import check_count
from dsage._random import RandomState, Streams
from dsage.data.layout import Layout
from dsage.samplers.base import Sampler
from dsage.samplers.checks import Floats, Ints, Mask, check_coalition, check_noise


class ClusteredGaussian(Sampler):
    """A cluster, numbers that are Gaussian given the cluster, and a class that depends on it.

    ``P(g) N(x; mean_g, covariance_g) P(c | g)``; the columns are ``cluster``, ``x1, x2, ...`` and
    ``child``. Every conditional distribution is known: of the cluster by Bayes' rule, then of
    the numbers and the class given the cluster. It is itself a sampler, the best possible
    one for rows drawn from it.

    Parameters
    ----------
    weights : array of shape (n_clusters,)
        Probabilities of the clusters.
    means : array of shape (n_clusters, n_numbers)
        Means of the numbers.
    covariances : array of shape (n_clusters, n_numbers, n_numbers)
        Their covariances.
    child : array of shape (n_clusters, n_classes)
        Probabilities of the classes in each cluster.

    Examples
    --------
    >>> truth = ClusteredGaussian.random(3, 2, random_state=0)
    >>> X = truth.sample(5, random_state=0)
    >>> list(X.columns)
    ['cluster', 'x1', 'x2', 'child']
    >>> truth.draw(X, np.zeros(4, dtype=bool), np.full((5, 10, 4), 0.5)).shape
    (5, 10, 4)
    """

    layout_: Layout
    feature_names_: tuple[str, ...]

    def __init__(
        self,
        weights: npt.ArrayLike,
        means: npt.ArrayLike,
        covariances: npt.ArrayLike,
        child: npt.ArrayLike,
    ) -> None:
        self.weights = np.asarray(weights, np.float64)
        self.means = np.asarray(means, np.float64)
        self.covariances = np.asarray(covariances, np.float64)
        self.child = np.asarray(child, np.float64)
        n_clusters, n_numbers = self.means.shape
        self.feature_names_ = ("cluster", *[f"x{j + 1}" for j in range(n_numbers)], "child")
        self._categories = {
            "cluster": [f"g{k}" for k in range(n_clusters)],
            "child": [f"c{k}" for k in range(self.child.shape[1])],
        }
        first = self._frame(np.zeros((1, len(self.feature_names_))))
        numbers = dict.fromkeys(self.feature_names_[1:-1], "number")
        self.layout_ = Layout.of(first, kinds=numbers)
        self.n_categories_ = self.layout_.n_categories

    @classmethod
    def random(
        cls,
        n_clusters: int,
        n_numbers: int,
        n_classes: int = 3,
        *,
        spread: float = 1.5,
        random_state: RandomState = None,
    ) -> Self:
        """Return a random one whose cluster means have the standard deviation `spread`."""
        check_count(n_clusters, "n_clusters")
        check_count(n_numbers, "n_numbers")
        rng = Streams(random_state)("grouped-gaussian")
        factors = rng.standard_normal((n_clusters, n_numbers, n_numbers + 2))
        covariances = factors @ factors.transpose(0, 2, 1) / (n_numbers + 2)
        return cls(
            rng.dirichlet(np.full(n_clusters, 5.0)),
            spread * rng.standard_normal((n_clusters, n_numbers)),
            covariances,
            rng.dirichlet(np.full(n_classes, 0.5), n_clusters),
        )

    def sample(self, n_rows: int, random_state: RandomState = None) -> pd.DataFrame:
        """Draw rows (n_rows, n_features), classes as categories."""
        check_count(n_rows, "n_rows")
        noise = Streams(random_state)("grouped-rows").random((n_rows, 1, len(self.feature_names_)))
        nothing = np.zeros(len(self.feature_names_), dtype=bool)
        return self._frame(self._draw(np.zeros(noise[:, 0].shape), nothing, noise)[:, 0])

    def fit(self, X: object) -> Self:  # noqa: ARG002
        """Return self: there is nothing to learn."""
        return self

    def draw(self, X: Any, known: Mask, noise: Floats) -> Floats:  # noqa: ANN401
        """Draw from the true conditional distribution, as :class:`Sampler` does."""
        known = check_coalition(known, self.feature_names_)
        rows = self.layout_.encode(X, known)
        return self._draw(rows, known, check_noise(noise, len(rows), len(known)))

    def _draw(self, X: Floats, known: Mask, noise: Floats) -> Floats:
        cluster = self._draw_clusters(X, known, noise[:, :, 0])
        draws = np.repeat(X[:, None], noise.shape[1], axis=1)
        draws[:, :, 0] = cluster
        given, numbers = np.flatnonzero(known[1:-1]), np.flatnonzero(~known[1:-1])
        for k, covariance in enumerate(self.covariances):
            row, draw = np.nonzero(cluster == k)
            if len(numbers) and len(row):
                across = covariance[np.ix_(given, numbers)]
                slopes = np.linalg.solve(covariance[np.ix_(given, given)], across)
                rest = covariance[np.ix_(numbers, numbers)]
                rest = rest - covariance[np.ix_(numbers, given)] @ slopes
                normals = ndtri(noise[row, draw][:, 1 + numbers])
                drawn = normals @ np.linalg.cholesky(rest).T + self.means[k, numbers]
                drawn += (X[row][:, 1 + given] - self.means[k, given]) @ slopes
                draws[row[:, None], draw[:, None], 1 + numbers] = drawn
        if not known[-1]:
            cumulative = np.cumsum(self.child, axis=1)[cluster][:, :, :-1]
            draws[:, :, -1] = (noise[:, :, -1:] > cumulative).sum(axis=2)
        return draws

    def _draw_clusters(self, X: Floats, known: Mask, noise: Floats) -> Ints:
        if known[0]:
            return np.repeat(X[:, :1].astype(np.intp), noise.shape[1], axis=1)
        logs = np.tile(np.log(self.weights), (len(X), 1))
        given = np.flatnonzero(known[1:-1])
        for k, covariance in enumerate(self.covariances):
            block = covariance[np.ix_(given, given)]
            centered = X[:, 1 + given] - self.means[k, given]
            z = np.linalg.solve(np.linalg.cholesky(block), centered.T)
            logs[:, k] -= 0.5 * (z**2).sum(axis=0) + 0.5 * np.linalg.slogdet(block)[1]
            if known[-1]:
                logs[:, k] += np.log(self.child[k, X[:, -1].astype(np.intp)])
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        cumulative = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
        clusters: Ints = (noise[:, :, None] > cumulative[:, None, :-1]).sum(axis=2)
        return clusters

    def _frame(self, matrix: Floats) -> pd.DataFrame:
        frame = pd.DataFrame(matrix, columns=list(self.feature_names_))
        for name, categories in self._categories.items():
            frame[name] = pd.Categorical.from_codes(frame[name].astype(int), pd.Index(categories))
        return frame
