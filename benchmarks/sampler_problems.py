"""Tables whose conditional distributions are known, to measure the errors of samplers.

A problem is a network: each column has a distribution given the columns before it, a normal with a
mean that depends on them, or a class with probabilities that do; a number may be missing with a
probability that depends on them. The expectation of a model's output given some of the columns is
found by likelihood weighting: columns are simulated in their order, known ones are set, and each
simulation has the weight of what was set. Problems of classes alone are enumerated, and mixtures of
normals are conditioned in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import qmc

from dsage.samplers.base import Sampler

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Columns = list[Floats]

N_ROWS = 200
N_SIMULATED = 32_768
N_DRAWS = 128  # in two groups
N_ORDERINGS = 12
EXACT_UP_TO = 6  # columns


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
            drawn = given + column.deviation * rng.standard_normal(shape)
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
        groups = []
        for _ in range(2):
            means = np.empty(len(rows))
            for start in range(0, len(rows), 10):
                some = rows[start : start + 10]
                shape = (len(some), N_SIMULATED // 2)
                simulated, logs = self._simulate(shape, rng, some, known)
                weights = np.exp(logs - logs.max(axis=1, keepdims=True))
                outputs = weights * self.model(simulated)
                means[start : start + 10] = outputs.sum(axis=1) / weights.sum(axis=1)
            groups.append(means)
        return groups[0], groups[1]

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
                half = rng.standard_normal((1_280 // self.d, int(unknown.sum())))
                draws = np.empty((len(rows), 2 * len(half), self.d))
                draws[:, :, known] = rows[:, None, known]
                draws[:, :, unknown] = center[:, None] + np.concatenate([half, -half]) @ factor.T
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


class Exam:
    """The exact values of a problem, on which samplers are examined.

    The values are SAGE values of squared error over all coalitions, up to six columns, or along 12
    orderings, the same ones for truth and sampler.
    """

    def __init__(self, problem: Problem, seed: int = 123) -> None:
        self.problem = problem
        rng = np.random.default_rng(seed)
        self.rows = problem.sample(N_ROWS, seed)
        self.target = problem.model(self.rows) + 0.3 * rng.standard_normal(N_ROWS)
        self._orders = None
        if problem.d > EXACT_UP_TO:
            half = [rng.permutation(problem.d) for _ in range(N_ORDERINGS // 2)]
            self._orders = [*half, *[order[::-1] for order in half]]
        self._coalitions = self._find_coalitions()
        self._risks = {
            each: self._risk(*problem.expected(self.rows, np.array(each), seed + at))
            for at, each in enumerate(self._coalitions)
        }
        self.values = self._shapley(self._risks)

    def _find_coalitions(self) -> list[tuple[bool, ...]]:
        d = self.problem.d
        if self._orders is None:
            return [tuple(bool(code >> at & 1) for at in range(d)) for code in range(2**d)]
        found = set()
        for order in self._orders:
            for length in range(d + 1):
                known = np.zeros(d, bool)
                known[order[:length]] = True
                found.add(tuple(known.tolist()))
        return sorted(found)

    def _risk(self, first: Floats, second: Floats) -> float:
        return float(((self.target - first) * (self.target - second)).mean())

    def _shapley(self, risks: dict[tuple[bool, ...], float]) -> Floats:
        d = self.problem.d
        values = np.zeros(d)
        if self._orders is not None:
            for order in self._orders:
                known = np.zeros(d, bool)
                for feature in order:
                    before = risks[tuple(known.tolist())]
                    known[feature] = True
                    values[feature] += before - risks[tuple(known.tolist())]
            return values / len(self._orders)
        for feature in range(d):
            others = [each for each in range(d) if each != feature]
            for size in range(d):
                weight = 1 / (d * math.comb(d - 1, size))
                for chosen in combinations(others, size):
                    known = np.zeros(d, bool)
                    known[list(chosen)] = True
                    before = risks[tuple(known.tolist())]
                    known[feature] = True
                    values[feature] += weight * (before - risks[tuple(known.tolist())])
        return values

    def grade(self, sampler: Sampler, seed: int = 7) -> tuple[float, float]:
        """Return the largest error of a value, in % of their range, and MSEv / variance."""
        rng = np.random.default_rng(seed)
        outputs = self.problem.model(self.rows)
        encoded = self.problem.to_frame(self.rows)
        risks, errors = {}, []
        for each in self._coalitions:
            known = np.array(each)
            if known.all():
                risks[each] = self._risk(outputs, outputs)
                continue
            draws = sampler.draw(encoded, known, _noise(rng, self.problem.d))
            predicted = self.problem.model(draws)
            first = predicted[:, : N_DRAWS // 2].mean(axis=1)
            second = predicted[:, N_DRAWS // 2 :].mean(axis=1)
            risks[each] = self._risk(first, second)
            errors.append(((outputs - first) * (outputs - second)).mean())
        off = np.abs(self._shapley(risks) - self.values).max()
        return 100 * float(off / np.ptp(self.values)), float(np.mean(errors) / outputs.var())


def _noise(rng: np.random.Generator, d: int) -> Floats:
    """Return two independent quasi-random groups of uniforms, shifted at random for each row."""
    groups = []
    for _ in range(2):
        net = qmc.Sobol(d, rng=rng).random(N_DRAWS // 2)
        groups.append((net + rng.random((N_ROWS, 1, d))) % 1.0)
    return np.clip(np.concatenate(groups, axis=1), 1e-12, 1 - 1e-12)
