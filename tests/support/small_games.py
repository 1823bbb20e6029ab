"""Small cases for the tests of the engine: known laws, models and tables of risks."""

import itertools

import numpy as np
import pandas as pd

from dsage import Graph
from dsage.games import Game, LossGame
from dsage.graphs import LinearGaussian
from dsage.models import as_model
from dsage.samplers import BaseSampler, Gaussian
from exact_values import BinaryCase, LinearGaussianCase

NAMES = ["a", "b", "c", "e", "y"]
FEATURES = tuple("abce")
GRAPH = Graph(NAMES, [("a", "b"), ("b", "y"), ("c", "y"), ("y", "e")])
ORACLE = GRAPH.oracle("y")


def gaussian_case(**options):
    """A linear-Gaussian law on the graph above, with the optimal model by default."""
    weights = {("a", "b"): 0.8, ("b", "y"): -0.7, ("c", "y"): 0.5, ("y", "e"): 0.9}
    variances = {"a": 1.0, "b": 0.5, "c": 2.0, "e": 0.4, "y": 0.3}
    return LinearGaussianCase.of(LinearGaussian(GRAPH, weights, variances), "y", **options)


def suboptimal_gaussian_case():
    return gaussian_case(
        weights=[0.9, -0.2, 0.3, 0.4], intercept=0.7, mean=[1.0, -2.0, 0.5, 0.0, 3.0]
    )


def exact_sampler(case, names=FEATURES):
    return Gaussian.from_moments(case.mean[:-1], case.covariance[:-1, :-1], names)


def gaussian_game(case, X, y, *, is_drawn=False, names=FEATURES, **options):
    """The game of a linear model; where it is drawn, nobody is told that it is affine."""
    model = case.predict if is_drawn else as_model(case.predict, "squared_error", affine=True)
    return LossGame(model, exact_sampler(case, names), X, y, loss="squared_error", **options)


def binary_case_of_rows(n_rows, *, seed=3, classifier=None):
    """The law of a table of rows, exactly, and its rows: X, y, and the case."""
    law = BinaryCase.of(GRAPH, "y", np.random.default_rng(seed))
    X, y = law.sample(n_rows, np.random.default_rng(seed + 1))
    joint = np.zeros_like(law.joint)
    np.add.at(joint, (*X.T, y), 1.0 / n_rows)
    return (
        pd.DataFrame(X, columns=FEATURES),
        y,
        BinaryCase(joint, law.classifier if classifier is None else classifier),
    )


class EmpiricalTable(BaseSampler):
    """Draws training rows that agree with what is known: the exact conditionals of a table."""

    def _fit(self, X):
        self._rows = X[np.lexsort(X.T[::-1])]
        self._found = {}

    def _draw(self, X, known, noise):
        draws = np.empty((*noise.shape[:2], int((~known).sum())))
        for row, (x, u) in enumerate(zip(X, noise, strict=True)):
            agree = self._agreeing(x[known], known)
            draws[row] = agree[(u[:, 0] * len(agree)).astype(int)]
        return draws

    def _agreeing(self, values, known):
        key = known.tobytes(), values.tobytes()
        if key not in self._found:
            agree = (self._rows[:, known] == values).all(axis=1)
            self._found[key] = self._rows[agree][:, ~known]
        return self._found[key]


def binary_game(case, table, X, y, **options):
    """The game of a classifier; the sampler draws from the table's own conditionals."""
    sampler = EmpiricalTable(discrete=FEATURES).fit(table)
    model = as_model(case.predict, "cross_entropy", classes=[0, 1])
    return LossGame(model, sampler, X, y, loss="cross_entropy", **options)


class TableGame(Game):
    """A game that is a table: ``table[code of the coalition, row]``, feature j is bit j."""

    def __init__(self, table, names=None):
        self.table = np.asarray(table, dtype=float)
        n_features = int(np.log2(len(self.table)))
        self.feature_names = tuple(names or (f"v{j + 1}" for j in range(n_features)))
        self.n_rows = self.table.shape[1]
        self.asked = []

    def risks(self, known, rows, epoch=0):
        self.asked += [tuple(np.flatnonzero(row).tolist()) for row in known]
        codes = known @ (1 << np.arange(known.shape[1]))
        return self.table[codes][:, rows, None]

    def risk(self, coalition):
        return float(self.table[sum(1 << j for j in coalition)].mean())


def as_table(game):
    """The table of a game without draws, which says the same at once."""
    n_features = len(game.feature_names)
    known = (np.arange(2**n_features)[:, None] >> np.arange(n_features)) % 2 == 1
    return TableGame(game.risks(known, np.arange(game.n_rows))[:, :, 0], game.feature_names)


def additive_table(worth, rng, n_rows=3):
    """Risks that fall by `worth[j]` for every known j, on each row from a level of its own."""
    n_features = len(worth)
    states = np.array(list(itertools.product([0, 1], repeat=n_features)))[:, ::-1]
    return rng.normal(size=n_rows) - (states @ np.asarray(worth))[:, None]
