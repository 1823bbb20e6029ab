"""The problems on which samplers are compared, by name."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from scipy.special import expit

from benchmarks.sampler_problems import (
    Column,
    Columns,
    Floats,
    LogNormal,
    NormalMixture,
    Problem,
    softmax,
)


def _next_class(at: int, n_classes: int = 3) -> Callable[[Columns], Floats]:
    """Return the distribution of a class that is mostly the one before it."""
    return lambda seen: softmax(
        *[2.0 * (seen[at] == c) + 0.4 * ((seen[at] + 1) % n_classes == c) for c in range(n_classes)]
    )


def problems() -> dict[str, Callable[[], Problem]]:
    """Return how to make each problem, by name."""
    return {
        "linear, 8 columns": linear,
        "skewed, 6 columns": skewed,
        "clusters, 5 columns": clusters_5,
        "clusters, 20 columns": clusters_20,
        "curved, 4 columns": curved,
        "curved, 5 columns": bent,
        "mixed, linear, 5 columns": mixed_linear,
        "mixed with interactions, 5 columns": mixed,
        "a discrete network, 6 columns": network,
        "a chain of 10 classes": chain,
        "informative missingness, 5 columns": incomplete,
    }


def linear() -> Problem:
    """Return eight numbers, each a linear function of those before it."""
    weights = 0.5 * np.tril(np.random.default_rng(0).normal(size=(8, 8)), -1)
    factor = np.linalg.inv(np.eye(8) - weights)
    return NormalMixture(
        np.ones(1),
        np.zeros((1, 8)),
        (factor @ factor.T)[None],
        lambda X: (
            X[..., 0]
            + X[..., 2]
            + 1.5 * np.maximum(X[..., 3], 0)
            + np.sin(X[..., 5])
            + 0.5 * X[..., 6] * X[..., 7]
        ),
    )


def skewed() -> Problem:
    """Return six positive numbers whose logarithms are normal."""
    parts = np.random.default_rng(1).normal(size=(6, 6))
    covariance = parts @ parts.T + 0.3 * np.eye(6)
    scale = np.sqrt(np.diag(covariance))

    def model(rows: Floats) -> Floats:
        X = np.maximum(rows, 0)  # some samplers draw negative numbers
        outputs: Floats = (
            np.log1p(X[..., 0])
            + 0.3 * np.minimum(X[..., 1], 4)
            + 0.5 * np.sqrt(X[..., 2]) * (X[..., 3] > 1)
            + 0.2 * np.minimum(X[..., 5], 5)
        )
        return outputs

    normal = covariance / np.outer(scale, scale)
    return LogNormal(np.ones(1), np.zeros((1, 6)), normal[None], model)


def clusters_5() -> Problem:
    """Return three normal clusters of five numbers."""
    rng = np.random.default_rng(1)
    means, parts = 2 * rng.normal(size=(3, 5)), 0.6 * rng.normal(size=(3, 5, 5))
    covariances = parts @ parts.transpose(0, 2, 1) + 0.2 * np.eye(5)
    return NormalMixture(
        np.array([0.4, 0.35, 0.25]),
        means,
        covariances,
        lambda X: (
            X[..., 0]
            + 1.5 * np.maximum(X[..., 1], 0)
            + np.sin(X[..., 2])
            + 0.3 * X[..., 3] * X[..., 4]
        ),
    )


def clusters_20() -> Problem:
    """Return four normal clusters of twenty numbers."""
    rng = np.random.default_rng(2)
    means, parts = 1.5 * rng.normal(size=(4, 20)), 0.3 * rng.normal(size=(4, 20, 20))
    covariances = parts @ parts.transpose(0, 2, 1) + 0.3 * np.eye(20)
    return NormalMixture(
        np.full(4, 0.25),
        means,
        covariances,
        lambda X: (
            0.5 * X[..., :8].sum(axis=-1)
            + 1.5 * np.maximum(X[..., 8], 0)
            + np.sin(X[..., 9])
            + 0.3 * X[..., 10] * X[..., 11]
        ),
    )


def curved() -> Problem:
    """Return a parabola, a sine and a product."""
    columns = [
        Column(lambda _: 0.0, 1.0),
        Column(lambda seen: seen[0] ** 2 - 1, 0.4),
        Column(lambda seen: np.sin(2 * seen[0]), 0.3),
        Column(lambda seen: 0.7 * seen[1] * seen[2] + 0.3 * seen[0], 0.4),
    ]
    return Problem(
        columns,
        lambda X: (
            X[..., 0]
            + X[..., 1]
            + 2 * np.maximum(X[..., 2], 0)
            + 0.8 * X[..., 3]
            + 0.4 * X[..., 0] * X[..., 3]
        ),
    )


def bent() -> Problem:
    """Return an absolute value, an exponential, a cosine and a product."""
    columns = [
        Column(lambda _: 0.0, 1.0),
        Column(lambda seen: 1.5 * np.abs(seen[0]), 0.3),
        Column(lambda seen: np.exp(0.6 * seen[0]), 0.25),
        Column(lambda seen: np.cos(2 * seen[1]), 0.3),
        Column(lambda seen: seen[2] * seen[3], 0.5),
    ]
    return Problem(
        columns,
        lambda X: (
            0.5 * X[..., 0] ** 2 + X[..., 1] + np.tanh(X[..., 2]) + X[..., 3] + 0.5 * X[..., 4]
        ),
    )


def mixed_linear() -> Problem:
    """Return numbers and classes that are linear and logistic in each other."""
    columns = [
        Column(lambda _: np.array([0.5, 0.3, 0.2])),
        Column(lambda seen: np.array([-1.0, 0.5, 1.5])[seen[0].astype(int)], 1.0),
        Column(
            lambda seen: 0.8 * seen[1] + np.array([0.0, 0.7, -0.5])[seen[0].astype(int)],
            0.8,
        ),
        Column(lambda seen: softmax(0 * seen[1], 0.8 * seen[1] - 0.9 * seen[2])),
        Column(lambda seen: 0.5 * seen[2] - 0.6 * seen[1] + 0.8 * seen[3], 0.7),
    ]
    return Problem(
        columns,
        lambda X: (
            X[..., 1] + 1.5 * np.maximum(X[..., 2], 0) + (X[..., 0] == 2) + X[..., 3] * X[..., 4]
        ),
    )


def mixed() -> Problem:
    """Return numbers and classes whose dependences differ by class."""
    columns = [
        Column(lambda _: np.array([0.5, 0.3, 0.2])),
        Column(lambda seen: np.array([-1.0, 0.5, 2.0])[seen[0].astype(int)], 0.8),
        Column(lambda seen: softmax(0 * seen[1], 1.5 * seen[1] * np.where(seen[0] == 1, -1, 1))),
        Column(lambda seen: np.where(seen[2] == 1, seen[1], -seen[1]) + 0.5 * seen[0], 0.5),
        Column(lambda seen: 0.6 * seen[3] + np.where(seen[0] == 2, 1.0, -0.5), 0.6),
    ]
    return Problem(
        columns,
        lambda X: (
            X[..., 1]
            + 2.0 * (X[..., 0] == 2)
            + X[..., 3] * np.where(X[..., 2] == 1, 1.0, -0.5)
            + 0.5 * X[..., 4]
        ),
    )


def network() -> Problem:
    """Return six classes, some with two parents."""
    columns = [
        Column(lambda _: np.array([0.6, 0.4])),
        Column(lambda seen: softmax(0 * seen[0], 1.2 * seen[0] - 0.6, 0.5 - 1.5 * seen[0])),
        Column(
            lambda seen: softmax(
                0 * seen[0], np.where(seen[0] == 1, 1.5, -1) * np.where(seen[1] == 1, -1, 1)
            )
        ),
        Column(lambda seen: softmax(0 * seen[1], seen[1] - 1, 0.8 * (seen[2] == 0))),
        Column(lambda seen: softmax(0 * seen[3], 2.0 * (seen[3] == 1) - 1.5 * (seen[2] == 1))),
        Column(lambda seen: softmax(0 * seen[4], np.where(seen[4] == seen[0], 1.2, -1.2))),
    ]
    return Problem(
        columns,
        lambda X: (
            X[..., 0]
            + 1.5 * (X[..., 1] == 2)
            + 1.2 * X[..., 2] * X[..., 4]
            + 1.0 * (X[..., 3] == 1)
            + 0.7 * X[..., 5]
        ),
    )


def chain() -> Problem:
    """Return ten classes, each mostly the one before it."""
    first = Column(lambda _: np.array([0.4, 0.35, 0.25]))
    return Problem(
        [first, *[Column(_next_class(at)) for at in range(9)]],
        lambda X: (
            1.0 * (X[..., 0] == 1)
            + 1.2 * (X[..., 2] == 2)
            + 0.6 * X[..., 4]
            + 1.0 * (X[..., 6] == 0)
            + 0.5 * X[..., 8]
            + 1.0 * (X[..., 9] == X[..., 3])
        ),
    )


def incomplete() -> Problem:
    """Return numbers that are missing where others are high, or with a class."""
    columns = [
        Column(lambda _: 0.0, 1.0),
        Column(
            lambda seen: 0.8 * seen[0], 0.6, lambda seen: 0.02 + 0.7 * expit(2.5 * seen[0] - 0.5)
        ),
        Column(lambda seen: softmax(0 * seen[0], seen[0] + 0.8 * seen[1])),
        Column(
            lambda seen: 0.7 * seen[1] - 0.5 * seen[2],
            0.7,
            lambda seen: 0.05 + 0.5 * (seen[2] == 1),
        ),
        Column(lambda seen: 0.6 * seen[3] + 0.4 * seen[0], 0.6),
    ]
    return Problem(
        columns,
        lambda X: (
            np.where(np.isnan(X[..., 1]), 1.5, X[..., 1])
            + np.where(np.isnan(X[..., 3]), -1.2, X[..., 3])
            + X[..., 2]
            + 0.5 * X[..., 4] * X[..., 0]
        ),
    )


def fresh_problems() -> dict[str, Callable[[], Problem]]:
    """Return how to make random problems that no setting of a sampler was chosen on, by name."""
    return {
        **{f"random clusters {k}": functools.partial(random_clusters, 100 + k) for k in range(3)},
        **{f"random curves {k}": functools.partial(random_curves, 200 + k) for k in range(3)},
        **{f"random mixed {k}": functools.partial(random_mixed, 300 + k) for k in range(3)},
    }


def random_clusters(seed: int) -> Problem:
    """Return two to five normal clusters of six numbers, of random sizes, places and shapes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    parts = rng.uniform(0.3, 0.8, size=(n, 1, 1)) * rng.normal(size=(n, 6, 6))
    return NormalMixture(
        rng.dirichlet(np.full(n, 4.0)),
        1.5 * rng.normal(size=(n, 6)),
        parts @ parts.transpose(0, 2, 1) + 0.2 * np.eye(6),
        _random_model(rng, 6),
    )


def random_curves(seed: int) -> Problem:
    """Return five numbers, each a sum of random curves of one or two numbers before it."""
    rng = np.random.default_rng(seed)
    curves = (np.tanh, np.sin, np.abs, lambda x: np.exp(-(x**2)), lambda x: x)

    def column(at: int) -> Column:
        parents = rng.choice(at, size=min(at, int(rng.integers(1, 3))), replace=False)
        chosen = [curves[int(k)] for k in rng.integers(len(curves), size=len(parents))]
        effects = rng.choice([-1, 1], size=len(parents)) * rng.uniform(0.7, 1.5, size=len(parents))

        def given(seen: Columns) -> Floats:
            terms = [
                effect * curve(1.5 * seen[parent])
                for effect, curve, parent in zip(effects, chosen, parents, strict=True)
            ]
            return np.sum(terms, axis=0)

        return Column(given, float(rng.uniform(0.3, 0.6)))

    columns = [Column(lambda _: 0.0, 1.0), *[column(at) for at in range(1, 5)]]
    return Problem(columns, _random_model(rng, 5))


def random_mixed(seed: int) -> Problem:
    """Return classes and numbers in turn; a class follows from numbers, and shifts later ones."""
    rng = np.random.default_rng(seed)

    def of_class(at: int) -> Column:
        slopes = rng.normal(size=(3, at))
        return Column(
            lambda seen: softmax(
                *[sum(b * x for b, x in zip(row, seen, strict=True)) for row in slopes]
            )
        )

    def of_number(at: int) -> Column:
        slopes, shifts = rng.normal(size=at) * 0.7, rng.normal(size=3)

        def given(seen: Columns) -> Floats:
            linear = sum(b * x for b, x in zip(slopes, seen, strict=True))
            return np.asarray(linear + shifts[seen[0].astype(int)])

        return Column(given, float(rng.uniform(0.5, 0.9)))

    columns = [Column(lambda _: np.array([0.5, 0.3, 0.2]))]
    columns += [of_number(at) if at % 2 else of_class(at) for at in range(1, 5)]
    return Problem(columns, _random_model(rng, 5))


def _random_model(rng: np.random.Generator, d: int) -> Callable[[Floats], Floats]:
    """Return a model with linear terms, a kink, a wave and a product of random columns."""
    slopes, at = rng.normal(size=d), rng.permutation(d)
    return lambda X: (
        X @ slopes
        + 1.5 * np.maximum(X[..., at[0]], 0)
        + np.sin(X[..., at[1]])
        + 0.5 * X[..., at[2]] * X[..., at[3]]
    )
