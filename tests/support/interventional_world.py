"""Structural models whose interventional distributions are known, and values by brute force."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dsage import Graph
from dsage.samplers import BaseSampler


def brute_force(risk, n_features, orders=None):
    """Values, direct and indirect parts, as means over orderings of ``risk(fixed, inputs)``."""
    found = np.zeros((3, n_features))
    orders = list(orders or itertools.permutations(range(n_features)))
    for order in orders:
        for at, feature in enumerate(order):
            before, after = frozenset(order[:at]), frozenset(order[: at + 1])
            first, between, last = risk(before, before), risk(before, after), risk(after, after)
            found[:, feature] += first - last, first - between, between - last
    return found / len(orders)


@dataclass(eq=False)
class LinearWorld:
    """Linear structural equations with hidden variables: ``v = W v + e``, all means zero."""

    names: tuple[str, ...]
    weights: dict[tuple[str, str], float]
    hidden: tuple[str, ...] = ()

    @property
    def graph(self):
        """The graph of all variables, the hidden ones included."""
        return Graph(self.names, list(self.weights))

    @property
    def matrix(self):
        """Entry [i, j]: what a unit of j adds to i."""
        W = np.zeros((len(self.names), len(self.names)))
        for (cause, effect), weight in self.weights.items():
            W[self.names.index(effect), self.names.index(cause)] = weight
        return W

    def covariance(self, of, fixed=()):
        """The covariance of some variables if others are set; noise has unit variance."""
        W, noise = self.matrix, np.ones(len(self.names))
        for name in fixed:
            W[self.names.index(name)] = noise[self.names.index(name)] = 0.0
        total = np.linalg.inv(np.eye(len(self.names)) - W)
        at = [self.names.index(name) for name in of]
        return ((total * noise) @ total.T)[np.ix_(at, at)]

    def sample(self, n_rows, rng):
        noise = rng.normal(size=(n_rows, len(self.names)))
        values = noise @ np.linalg.inv(np.eye(len(self.names)) - self.matrix).T
        return pd.DataFrame(values, columns=list(self.names)).drop(columns=list(self.hidden))

    def mean_under(self, features, fixed, X):
        """Means of the features (n_rows, n_features) if some of them are set to their values."""
        W = self.matrix.copy()
        start = np.zeros((len(X), len(self.names)))
        for at in fixed:
            place = self.names.index(features[at])
            W[place] = 0.0
            start[:, place] = X[:, at]
        means = start @ np.linalg.inv(np.eye(len(self.names)) - W).T
        return means[:, [self.names.index(name) for name in features]]

    def values(self, features, weights, X, y, orders=None):
        """Values and parts of the linear model with these weights, for squared error."""

        def risk(fixed, inputs):
            means = self.mean_under(features, fixed, X)
            at = sorted(inputs)
            means[:, at] = X[:, at]
            return float(((y - means @ weights) ** 2).mean())

        return brute_force(risk, len(features), orders)


class Frequencies(BaseSampler):
    """The frequencies of training rows of classes: exact if these are those of a population."""

    def _fit(self, X):
        self._X = X.copy()

    def _draw(self, X, known, noise):
        n_rows, n_draws, n_features = noise.shape
        drawn = np.repeat(X, n_draws, axis=0)
        uniforms = noise.reshape(-1, n_features)
        given = known.copy()
        for feature in np.flatnonzero(~known):
            kinds, place = np.unique(drawn[:, given], axis=0, return_inverse=True)
            for number, kind in enumerate(kinds):
                alike = self._X[(self._X[:, given] == kind).all(axis=1), feature]
                values, counts = np.unique(alike, return_counts=True)
                at = place.reshape(-1) == number
                shares = np.cumsum(counts) / counts.sum()
                drawn[at, feature] = values[np.searchsorted(shares, uniforms[at, feature])]
            given[feature] = True
        return drawn.reshape(n_rows, n_draws, n_features)[:, :, ~known]


QUARTERS = 4


@dataclass(eq=False)
class DiscreteWorld:
    """Binary variables, each with probabilities of a quarter, a half or three given its parents.

    A table with ``4 ** n_variables`` rows has exactly the frequencies of the population.
    """

    graph: Graph
    tables: dict[str, np.ndarray]

    @classmethod
    def random(cls, graph, rng):
        tables = {
            name: rng.integers(1, QUARTERS, size=(2,) * len(graph.parents(name))) / QUARTERS
            for name in graph.names
        }
        return cls(graph, tables)

    def chance(self, name, values):
        """The probability of a variable's value given the values of all."""
        one = float(self.tables[name][tuple(values[each] for each in self.graph.parents(name))])
        return one if values[name] else 1 - one

    def law(self, fixed):
        """All assignments with positive probability if some variables are set, by enumeration."""
        names = self.graph.names
        found = []
        for each in itertools.product((0, 1), repeat=len(names)):
            values = dict(zip(names, each, strict=True))
            if any(values[name] != value for name, value in fixed.items()):
                continue
            free = [name for name in names if name not in fixed]
            found.append((values, math.prod(self.chance(name, values) for name in free)))
        return found

    def population(self):
        """A table with the exact frequencies."""
        rows = []
        for values, chance in self.law({}):
            count = chance * QUARTERS ** len(self.graph.names)
            assert count == round(count)
            rows += [values] * round(count)
        return pd.DataFrame(rows).astype("category")

    def expected(self, model, features, row, fixed, inputs):
        """The expectation of a model, a table of predictions, under an intervention."""
        law = self.law({features[at]: int(row[at]) for at in fixed})
        return sum(
            chance
            * model[
                tuple(
                    int(row[at]) if at in inputs else values[name]
                    for at, name in enumerate(features)
                )
            ]
            for values, chance in law
        )

    def values(self, model, features, X, y, orders=None):
        """Values and parts of a model for squared error on given rows."""
        known = {}

        def predict(row, fixed, inputs):
            key = tuple(int(row[at]) for at in sorted(inputs)), fixed, inputs
            if key not in known:
                known[key] = self.expected(model, features, row, fixed, inputs)
            return known[key]

        def risk(fixed, inputs):
            predicted = np.array([predict(row, fixed, inputs) for row in X])
            return float(((y - predicted) ** 2).mean())

        return brute_force(risk, len(features), orders)


def random_dag(n_nodes, share, rng):
    """A random DAG over nodes named by letters."""
    names = [chr(ord("a") + at) for at in range(n_nodes)]
    order = rng.permutation(n_nodes)
    edges = [
        (names[order[one]], names[order[other]])
        for one in range(n_nodes)
        for other in range(one + 1, n_nodes)
        if rng.random() < share
    ]
    return Graph(names, edges)


def grid(n_columns):
    """Noise that meets each combination of quarters once, (1, 4 ** n_columns, n_columns)."""
    quarters = (np.arange(QUARTERS) + 0.5) / QUARTERS
    return np.array(list(itertools.product(quarters, repeat=n_columns)))[None]
