"""A small world in which values are missing, and that says something; everything is known exactly.

Three features have three levels each, or are missing: numbers a and b, and a class c. The joint
distribution is a -> b -> y <- c, where the arrows are about what is recorded, missing or not: b is
missing more often where a is, and the target y depends on whether b and c are missing.
"""

import itertools
import math

import numpy as np
import pandas as pd

from dsage import Graph
from dsage.data.layout import Layout
from given import all_coalitions

NAMES = ("a", "b", "c")
GRAPH = Graph(["a", "b", "c", "y"], [("a", "b"), ("b", "y"), ("c", "y")])
LEVELS = {"a": (0.0, 1.0, 2.0, np.nan), "b": (0.0, 1.0, 2.0, np.nan), "c": ("u", "v", "w", None)}
# The last state is that of missing values.
P_A = np.array([0.3, 0.2, 0.2, 0.3])
P_B = np.array(
    [[0.6, 0.2, 0.1, 0.1], [0.2, 0.5, 0.2, 0.1], [0.1, 0.2, 0.6, 0.1], [0.1, 0.2, 0.2, 0.5]]
)
P_C = np.array([0.3, 0.3, 0.2, 0.2])
MEAN_B = np.array([-1.0, 0.0, 1.0, 2.5])
MEAN_C = np.array([0.0, 0.5, 1.0, -2.0])
STATES = np.array(list(itertools.product(range(4), repeat=3)))
P_STATES = P_A[STATES[:, 0]] * P_B[STATES[:, 0], STATES[:, 1]] * P_C[STATES[:, 2]]
EVERY = all_coalitions(3)


def frame_of(states):
    """Rows of a data frame from states (n_rows, 3)."""
    columns = {
        name: np.array(LEVELS[name], dtype=object)[each]
        for name, each in zip(NAMES, states.T, strict=True)
    }
    numbers = {name: columns[name].astype(float) for name in ("a", "b")}
    classes = pd.Categorical(columns["c"], categories=["u", "v", "w"])
    return pd.DataFrame({**numbers, "c": classes})


def states_of(frame):
    """The states (n_rows, 3) of the rows of a data frame."""
    numbers = frame[["a", "b"]].fillna(3.0).astype(int)
    codes = frame["c"].cat.codes.replace(-1, 3)
    return np.column_stack([numbers, codes])


def remembered(model):
    """A fitted model as a function that looks up its predictions of all states."""
    predictions = model.predict(frame_of(STATES))

    def predict(frame):
        return predictions[states_of(frame) @ [16, 4, 1]]

    return predict


def sample(n_rows, seed):
    """States, rows and targets; the first 64 rows have every state."""
    rng = np.random.default_rng(seed)
    states = STATES[rng.choice(64, size=n_rows, p=P_STATES)]
    states[:64] = STATES[: min(64, n_rows)]
    y = MEAN_B[states[:, 1]] + MEAN_C[states[:, 2]] + 0.5 * rng.normal(size=n_rows)
    return states, frame_of(states), pd.Series(y, name="y")


def conditional(known):
    """The probabilities of all states given the known features of each, (64, 64)."""
    same = (STATES[:, None, known] == STATES[None, :, known]).all(axis=2)
    chances = same * P_STATES
    return chances / chances.sum(axis=1, keepdims=True)


def expected(predict, states):
    """What a model predicts that knows a coalition, exactly: (8 coalitions, n_rows)."""
    predictions = predict(frame_of(STATES))
    at = states @ [16, 4, 1]
    return np.stack([(conditional(known) @ predictions)[at] for known in EVERY])


def shapley(worth):
    """Shapley values of the worth of all coalitions, (8, ...) -> (3, ...)."""
    place = {tuple(known): at for at, known in enumerate(EVERY.tolist())}
    values = np.zeros((3, *np.shape(worth)[1:]))
    for feature in range(3):
        for known in EVERY[~EVERY[:, feature]]:
            size = int(known.sum())
            share = math.factorial(size) * math.factorial(2 - size) / math.factorial(3)
            larger = known.copy()
            larger[feature] = True
            values[feature] += share * (worth[place[tuple(larger)]] - worth[place[tuple(known)]])
    return values


def sage(predict, states, y, oracle=None):
    """The exact SAGE values of squared error on these rows; d-SAGE, with an oracle."""
    risks = ((np.asarray(y) - expected(predict, states)) ** 2).mean(axis=1)
    if oracle is not None:
        place = {tuple(known): at for at, known in enumerate(EVERY.tolist())}
        risks = risks[[place[tuple(each)] for each in oracle.boundary(EVERY).tolist()]]
    return shapley(-risks)


class ExactSampler:
    """Draws from the exact conditional distribution, missing values among them."""

    def fit(self, X):
        self.layout_ = Layout.of(X)
        self.feature_names_ = self.layout_.names
        return self

    def draw(self, X, known, noise):
        X = np.asarray(X, dtype=float)
        states = np.where(np.isnan(X), 3, X).astype(int)
        at = np.where(known, states, 0) @ [16, 4, 1]
        cumulative = conditional(known)[at].cumsum(axis=1)
        # One uniform chooses the states of all unknown features.
        uniform = noise[:, :, int(np.argmin(known))]
        chosen = (uniform[:, :, None] > cumulative[:, None, :-1]).sum(axis=2)
        drawn = STATES[chosen].astype(float)
        drawn[:, :, :2][drawn[:, :, :2] == 3] = np.nan
        drawn[:, :, known] = X[:, None, known]
        return drawn
