"""Random models with known graphs, with the kinds of dependence that occur in real tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dsage.graphs import Graph, LinearGaussian, random_dag, random_linear_gaussian

Floats = npt.NDArray[np.float64]
Case = tuple[str, Graph, str, pd.DataFrame]
Columns = dict[str, npt.NDArray[Any]]

SMALL = ((10, 2), (10, 3), (10, 4), (20, 2), (20, 3), (20, 4), (20, 2))
"""Number of nodes and degree of the seven graphs of each kind."""


def linear(model: LinearGaussian, n_rows: int, seed: int) -> pd.DataFrame:
    """Draw from the linear-Gaussian model itself."""
    return model.sample(n_rows, random_state=seed)


def skewed(model: LinearGaussian, n_rows: int, seed: int) -> pd.DataFrame:
    """Transform every variable by a monotone map after drawing: lognormal margins."""
    return np.exp(model.sample(n_rows, random_state=seed))


def non_linear(model: LinearGaussian, n_rows: int, seed: int) -> pd.DataFrame:
    """Let every cause act through a tanh, twice as steep as the linear effect."""
    rng = np.random.default_rng(seed)
    graph = model.graph
    values: dict[str, Floats] = {}
    for name in graph.topological_order():
        noise = rng.standard_normal(n_rows) * np.sqrt(model.error_variances[name])
        effects = (
            model.weights[parent, name] * np.tanh(2 * values[parent])
            for parent in graph.parents(name)
        )
        values[name] = noise + sum(effects)
    return pd.DataFrame(values)[list(graph.names)]


def _curve(rng: np.random.Generator) -> Callable[[Floats], Floats]:
    """Return a random smooth function, not monotone: waves, bumps and parabolas."""
    kind = rng.integers(3)
    shift, sign = rng.uniform(-1, 1), rng.choice([-1.0, 1.0])
    if kind == 0:
        rate = rng.uniform(1.2, 2.2)
        return lambda x: sign * np.sin(rate * x + shift)
    if kind == 1:
        return lambda x: sign * 1.5 * np.exp(-((x - 0.5 * shift) ** 2))
    return lambda x: sign * 0.5 * np.clip((x - 0.5 * shift) ** 2, 0, 6)


def _bend(rng: np.random.Generator) -> Callable[[Floats], Floats]:
    """Return a random strictly monotone function."""
    kind = rng.integers(3)
    if kind == 0:
        return lambda x: np.exp(0.8 * x)
    if kind == 1:
        return lambda x: np.cbrt(x) + 0.2 * x
    return np.sinh


def _standard(x: Floats) -> Floats:
    return (x - x.mean()) / max(float(x.std()), 1e-12)


def _skewed_noise(rng: np.random.Generator, n_rows: int) -> Floats:
    return rng.gamma(2.0, 1.0, n_rows) / np.sqrt(2.0) - np.sqrt(2.0)


def additive(graph: Graph, n_rows: int, seed: int) -> pd.DataFrame:
    """Add functions that are not monotone, and normal noise."""
    rng, values = np.random.default_rng(seed), {}
    for name in graph.topological_order():
        effects = [
            rng.uniform(0.7, 1.3) * _curve(rng)(values[parent]) for parent in graph.parents(name)
        ]
        values[name] = _standard(sum(effects) + 0.6 * rng.standard_normal(n_rows))
    return pd.DataFrame(values)[list(graph.names)]


def post_non_linear(graph: Graph, n_rows: int, seed: int) -> pd.DataFrame:
    """Bend sums of functions with skewed noise by a monotone function."""
    rng, values = np.random.default_rng(seed), {}
    for name in graph.topological_order():
        effects = [
            rng.uniform(0.7, 1.3) * _curve(rng)(values[parent]) for parent in graph.parents(name)
        ]
        inner = _standard(sum(effects) + 0.6 * _skewed_noise(rng, n_rows))
        values[name] = _standard(_bend(rng)(inner))
    return pd.DataFrame(values)[list(graph.names)]


def mixed(graph: Graph, n_rows: int, seed: int) -> pd.DataFrame:
    """Draw numbers and classes: two in five have 2 to 4 levels, drawn by a softmax."""
    rng = np.random.default_rng(seed)
    values: Columns = {}
    for name in graph.topological_order():
        is_class = rng.random() < 0.4
        n_levels = int(rng.integers(2, 5)) if is_class else 1
        signal = np.zeros((n_rows, n_levels))
        for parent in graph.parents(name):
            column = values[parent]
            for level in range(n_levels):
                if column.dtype.kind == "U":
                    labels, codes = np.unique(column, return_inverse=True)
                    signal[:, level] += rng.normal(0, 1.0, len(labels))[codes]
                else:
                    signal[:, level] += rng.uniform(0.7, 1.3) * _curve(rng)(column)
        if is_class:
            noisy = 1.5 * signal + rng.normal(0, 0.3, n_levels) + rng.gumbel(size=signal.shape)
            values[name] = np.array([f"c{level}" for level in range(n_levels)])[noisy.argmax(1)]
        else:
            values[name] = _standard(signal[:, 0] + 0.6 * _skewed_noise(rng, n_rows))
    return pd.DataFrame(values)[list(graph.names)]


def mixed_frame(graph: Graph) -> pd.DataFrame:
    """Draw 10,000 rows of numbers and classes."""
    return mixed(graph, 10_000, len(graph))


def interactions(graph: Graph, n_rows: int, seed: int) -> pd.DataFrame:
    """Add linear effects, products of pairs of parents, and normal noise."""
    rng, values = np.random.default_rng(seed), {}
    for name in graph.topological_order():
        parents = [values[parent] for parent in graph.parents(name)]
        total = sum(rng.choice([-1, 1]) * rng.uniform(0.4, 1.0) * x for x in parents)
        for place, x in enumerate(parents):
            for other in parents[:place]:
                total = total + rng.choice([-1, 1]) * rng.uniform(0.4, 1.0) * x * other
        values[name] = _standard(total + 0.7 * rng.standard_normal(n_rows))
    return pd.DataFrame(values)[list(graph.names)]


def spread(graph: Graph, n_rows: int, seed: int) -> pd.DataFrame:
    """Add curved effects, and noise whose spread depends on the parents."""
    rng, values = np.random.default_rng(seed), {}
    for name in graph.topological_order():
        total, scale = np.zeros(n_rows), np.zeros(n_rows)
        for parent in graph.parents(name):
            total = total + rng.uniform(0.7, 1.3) * _curve(rng)(values[parent])
            scale = scale + rng.uniform(-0.5, 0.5) * values[parent]
        noise = 0.6 * np.exp(np.clip(scale, -1.5, 1.5)) * rng.standard_normal(n_rows)
        values[name] = _standard(total + noise)
    return pd.DataFrame(values)[list(graph.names)]


KINDS: dict[str, Callable[[Graph, int, int], pd.DataFrame]] = {
    "additive, not monotone": additive,
    "post-non-linear, skewed noise": post_non_linear,
    "mixed numbers and classes": mixed,
    "interactions of parents": interactions,
    "spread depends on parents": spread,
}
"""Models of a graph, by what they are."""


def small_cases(
    draw: Callable[[Graph, int, int], pd.DataFrame], n_rows: int, first: int = 0
) -> Iterator[Case]:
    """Yield the seven graphs of 10 and 20 nodes with data; `first` numbers the first of them."""
    for number, (n_nodes, degree) in enumerate(SMALL, first):
        graph = random_dag(n_nodes, degree, random_state=5000 + number)
        yield (
            f"small {number}",
            graph,
            choose_target(graph, number),
            draw(graph, n_rows, 7000 + number),
        )


def choose_target(graph: Graph, number: int) -> str:
    """Return a random node that has neighbours."""
    joined = [name for name in graph.names if graph.markov_blanket(name)]
    return joined[int(np.random.default_rng(number).integers(len(joined)))]


def fresh_models(**options: Any) -> Iterator[tuple[LinearGaussian, str]]:  # noqa: ANN401
    """Yield 36 random linear models: three for each of the paper's sizes and degrees."""
    number = 0
    for n_nodes in (10, 20, 50, 100):
        for degree in (2, 3, 4):
            for _ in range(3):
                graph = random_dag(n_nodes, degree, random_state=1000 + number)
                model = random_linear_gaussian(graph, random_state=2000 + number, **options)
                yield model, choose_target(graph, number)
                number += 1


def fresh_cases(
    draw: Callable[[LinearGaussian, int, int], pd.DataFrame],
    n_rows: int,
    **options: Any,  # noqa: ANN401
) -> Iterator[Case]:
    """Yield the 36 models with data."""
    for number, (model, target) in enumerate(fresh_models(**options)):
        yield f"fresh {number}", model.graph, target, draw(model, n_rows, 3000 + number)
