"""Tables whose conditional distributions are known, to measure the errors of samplers.

A problem is a network: each column has a distribution given the columns before it, a normal with a
mean that depends on them, or a class with probabilities that do; a number may be missing with a
probability that depends on them. The expectation of a model's output given some of the columns is
found by likelihood weighting: columns are simulated in their order, known ones are set to their
values, and each simulation is weighted by the likelihood of these values. The first unknown number,
on which the others depend, is simulated with twice its standard deviation and in strata, with
weights, so that rows in the tails have enough simulations. Problems of classes alone are
enumerated, and mixtures of normals are conditioned in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri
from scipy.stats import qmc

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Columns = list[Floats]

# Simulations of a row, in each of two groups; more where fewer count, as their weights are uneven.
N_SIMULATED, N_MORE, N_COUNT = 1_024, 16_384, 50
_WIDE = 2.0  # times the deviation of the first unknown number: its simulations reach the tails


@dataclass(frozen=True)
class Column:
    """A column given those before it: a normal mean with a deviation, or probabilities."""

    given: Callable[[Columns], Any]
    deviation: float | None = None  # None for a class
    missing: Callable[[Columns], Any] | None = None

    @property
    def is_class(self) -> bool:
        """Whether the column is a class."""
        return self.deviation is None


def softmax(*logits: Any) -> Floats:  # noqa: ANN401
    """Return probabilities, the classes along the last axis."""
    stacked = np.stack(np.broadcast_arrays(*logits), -1)
    raised = np.exp(stacked - stacked.max(axis=-1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return shares


class Problem:
    """A network of columns, and a model of them."""

    def __init__(self, columns: Sequence[Column], model: Callable[[Floats], Floats]) -> None:
        self.columns, self.model = list(columns), model
        self.d = len(self.columns)
        self.is_class = np.array([column.is_class for column in self.columns])
        self._joint: tuple[Floats, Floats] | None = None

    def sample(self, n_rows: int, seed: int) -> Floats:
        """Return rows, classes as codes."""
        nothing = np.zeros(self.d, bool)
        rows, _ = self._simulate((n_rows,), np.random.default_rng(seed), None, nothing)
        return rows

    def to_frame(self, rows: Floats) -> pd.DataFrame:
        """Return rows as a data frame."""
        columns = {}
        for at, column in enumerate(self.columns):
            x = rows[:, at]
            columns[f"x{at + 1}"] = pd.Categorical(x.astype(int)) if column.is_class else x
        return pd.DataFrame(columns)

    def _simulate(
        self, shape: tuple[int, ...], rng: np.random.Generator, rows: Floats | None, known: Mask
    ) -> tuple[Floats, Floats]:
        """Return simulated rows with known columns set, and the logarithms of their weights."""
        latent: Columns = []
        seen: Columns = []
        weights = np.zeros(shape)
        is_first = rows is not None
        for at, column in enumerate(self.columns):
            given = np.asarray(column.given(latent))
            value = None
            if rows is not None and known[at]:
                value = np.broadcast_to(rows[:, None, at] if len(shape) > 1 else rows[:, at], shape)
            if column.deviation is None:
                shares = np.broadcast_to(given, (*shape, given.shape[-1]))
                if value is None:
                    u = rng.random(shape)[..., None]
                    value = (u > np.cumsum(shares, -1)[..., :-1]).sum(-1).astype(float)
                else:
                    chosen = np.take_along_axis(shares, value.astype(int)[..., None], -1)
                    weights = weights + np.log(np.maximum(chosen[..., 0], 1e-300))
                latent.append(value)
                seen.append(value)
                continue
            if value is None and is_first:
                strata = (np.arange(shape[-1]) + rng.random(shape)) / shape[-1]
                scores = _WIDE * ndtri(rng.permuted(strata, axis=-1))
                weights = weights - 0.5 * scores**2 * (1 - _WIDE**-2)
                is_first = False
            else:
                scores = rng.standard_normal(shape)
            drawn = given + column.deviation * scores
            if column.missing is None:
                if value is not None:
                    weights = weights - 0.5 * ((value - given) / column.deviation) ** 2
                latent.append(drawn if value is None else value)
                seen.append(latent[-1])
                continue
            share = np.broadcast_to(column.missing(latent), shape)
            if value is None:
                latent.append(drawn)
                seen.append(np.where(rng.random(shape) < share, np.nan, drawn))
                continue
            gone = np.isnan(value)
            filled = np.where(gone, drawn, value)
            density = -0.5 * ((filled - given) / column.deviation) ** 2
            weights = weights + np.where(gone, np.log(share), np.log1p(-share) + density)
            latent.append(filled)
            seen.append(value)
        return np.stack(seen, axis=-1), weights

    def expected(self, rows: Floats, known: Mask, seed: int) -> tuple[Floats, Floats]:
        """Return two independent estimates of the model's mean output given known columns."""
        if known.all():
            exact = self.model(rows)
            return exact, exact
        if self.is_class.all():
            exact = self._enumerate(rows, known)
            return exact, exact
        rng = np.random.default_rng(seed)
        first, second = (self._weigh(rows, known, rng, N_SIMULATED) for _ in range(2))
        few = np.flatnonzero(np.minimum(first[1], second[1]) < N_COUNT)
        for means, _ in (first, second):
            means[few], _ = self._weigh(rows[few], known, rng, N_MORE)
        return first[0], second[0]

    def _weigh(
        self, rows: Floats, known: Mask, rng: np.random.Generator, n_simulated: int
    ) -> tuple[Floats, Floats]:
        """Return weighted means of the model's outputs, and how many simulations count."""
        means, counts = np.empty((2, len(rows)))
        step = max(1, 2**17 // n_simulated)
        for start in range(0, len(rows), step):
            at = slice(start, start + step)
            shape = (len(rows[at]), n_simulated)
            simulated, logs = self._simulate(shape, rng, rows[at], known)
            weights = np.exp(logs - logs.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            means[at] = (weights * self.model(simulated)).sum(axis=1)
            counts[at] = 1 / (weights**2).sum(axis=1)
        return means, counts

    def _enumerate(self, rows: Floats, known: Mask) -> Floats:
        if self._joint is None:
            shown = self.sample(1, 0)
            parts = [shown[:, at] for at in range(self.d)]
            sizes = [np.shape(c.given(parts[:at]))[-1] for at, c in enumerate(self.columns)]
            grid = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1)
            flat = grid.reshape(-1, self.d).astype(float)
            everything = np.ones(self.d, bool)
            _, logs = self._simulate((len(flat),), np.random.default_rng(0), flat, everything)
            self._joint = np.exp(logs).reshape(sizes), self.model(flat).reshape(sizes)
        shares, outputs = self._joint
        axes = tuple(np.flatnonzero(~known).tolist())
        total = (shares * outputs).sum(axis=axes, keepdims=True)
        mean = total / shares.sum(axis=axes, keepdims=True)
        at = tuple(np.where(known[j], rows[:, j], 0).astype(int) for j in range(self.d))
        found: Floats = mean[at]
        return found


class NormalMixture(Problem):
    """A mixture of normals, and a model of its columns."""

    def __init__(
        self, weights: Floats, means: Floats, covariances: Floats, model: Callable[[Floats], Floats]
    ) -> None:
        self.weights, self.means, self.covariances, self.model = weights, means, covariances, model
        self.d = means.shape[1]
        self.is_class = np.zeros(self.d, bool)
        self.columns = [Column(lambda _: 0.0, 1.0)] * self.d

    def sample(self, n_rows: int, seed: int) -> Floats:
        """Return rows."""
        rng = np.random.default_rng(seed)
        chosen = rng.choice(len(self.weights), n_rows, p=self.weights)
        factors = np.linalg.cholesky(self.covariances)
        noise = rng.standard_normal((n_rows, self.d))
        rows: Floats = self.means[chosen] + np.einsum("nij,nj->ni", factors[chosen], noise)
        return rows

    def expected(self, rows: Floats, known: Mask, seed: int) -> tuple[Floats, Floats]:
        """Return two independent estimates of the model's mean output given known columns."""
        if known.all():
            exact = self.model(rows)
            return exact, exact
        rng = np.random.default_rng(seed)
        unknown = ~known
        logs, parts = [], []
        for weight, mean, covariance in zip(
            self.weights, self.means, self.covariances, strict=True
        ):
            off = rows[:, known] - mean[known]
            inner = covariance[np.ix_(known, known)]
            slopes = np.linalg.solve(inner, covariance[np.ix_(known, unknown)]).T
            distance = (off * np.linalg.solve(inner, off.T).T).sum(axis=1)
            logs.append(math.log(weight) - 0.5 * (distance + np.linalg.slogdet(inner)[1]))
            left = (
                covariance[np.ix_(unknown, unknown)] - slopes @ covariance[np.ix_(known, unknown)]
            )
            parts.append((mean[unknown] + off @ slopes.T, np.linalg.cholesky(left)))
        shares = np.exp(np.array(logs) - np.max(logs, axis=0))
        shares /= shares.sum(axis=0)
        groups = []
        for _ in range(2):
            total = np.zeros(len(rows))
            for share, (center, factor) in zip(shares, parts, strict=True):
                net = qmc.Sobol(int(unknown.sum()), rng=rng).random(32)
                shifted = (net + rng.random((len(rows), 1, net.shape[1]))) % 1.0
                noise = ndtri(np.clip(shifted, 1e-12, 1 - 1e-12)) @ factor.T
                draws = np.empty((len(rows), 2 * len(net), self.d))
                draws[:, :, known] = rows[:, None, known]
                draws[:, : len(net), unknown] = center[:, None] + noise
                draws[:, len(net) :, unknown] = center[:, None] - noise
                total += share * self.model(draws).mean(axis=1)
            groups.append(total)
        return groups[0], groups[1]


class LogNormal(NormalMixture):
    """Columns whose logarithms are a mixture of normals, and a model of them."""

    def sample(self, n_rows: int, seed: int) -> Floats:
        """Return rows."""
        rows: Floats = np.exp(super().sample(n_rows, seed))
        return rows

    def expected(self, rows: Floats, known: Mask, seed: int) -> tuple[Floats, Floats]:
        """Return two independent estimates of the model's mean output given known columns."""
        of_logarithms = NormalMixture(
            self.weights, self.means, self.covariances, lambda X: self.model(np.exp(X))
        )
        return of_logarithms.expected(np.log(rows), known, seed)
