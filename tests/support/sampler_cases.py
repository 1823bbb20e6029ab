"""Every sampler of the package with data that it fits, for the tests of all of them."""

import functools

import numpy as np
import pandas as pd
import pytest

from dsage import Graph
from dsage.samplers import (
    SAMPLERS,
    Auto,
    FunctionSampler,
    Gaussian,
    Interventional,
    Mix,
    Sequential,
)

N_ROWS, N_DRAWS = 23, 5


def uniform_draws(x_known, known, rng):
    return rng.integers(2, size=(len(x_known), (~known).sum()))


# Options that keep the tests quick and silent; a sampler that is not here is made without any.
OPTIONS = {
    "mixture": {"n_components": 2},
}
# Other options of registered samplers: a name, the kind of data and the options.
VARIANTS = {
    "marginal-independent": ("marginal", "mixed", {"joint": False}),
    "neighbors-nearest": ("neighbors", "numbers", {"n_neighbors": 5}),
    "gaussian-shrunk": ("gaussian", "numbers", {"covariance": "ledoit-wolf"}),
}
NUMBERS_GRAPH = Graph(
    [f"c{j}" for j in range(5)], [("c2", "c0"), ("c0", "c1"), ("c2", "c1"), ("c1", "c4")]
)
CONFOUNDED = Graph(NUMBERS_GRAPH.names, NUMBERS_GRAPH.edges, [("c0", "c4"), ("c2", "c3")])
MIXED_GRAPH = Graph(
    ["height", "colour", "flag", "word", "count", "weight"],
    [("colour", "height"), ("height", "flag"), ("colour", "flag"), ("flag", "count")],
    [("word", "weight")],
)
QUICK_CHOICE = {"n_coalitions": 2, "n_draws": 4, "test_share": 0.5, "max_rows": 60}
# Samplers without a name: the kind of data, the class and its options.
UNNAMED = {
    "function": ("mixed", FunctionSampler, {"function": uniform_draws}),
    "auto-numbers": ("numbers", Auto, QUICK_CHOICE),
    "auto-mixed": ("mixed", Auto, QUICK_CHOICE),
    "interventional-gaussian": (
        "numbers",
        Interventional,
        {"sampler": Gaussian(), "graph": NUMBERS_GRAPH},
    ),
    "interventional-confounded": (
        "numbers",
        Interventional,
        {"sampler": Gaussian(), "graph": CONFOUNDED},
    ),
    "interventional-mix": ("mixed", Interventional, {"sampler": Mix(), "graph": MIXED_GRAPH}),
    "interventional-sequential": (
        "mixed",
        Interventional,
        {"sampler": Sequential(), "graph": MIXED_GRAPH},
    ),
}


def _named_case(name, kind, options):
    seed = {"random_state": 0} if "random_state" in SAMPLERS[name]().get_params() else {}
    return kind, SAMPLERS[name], seed | OPTIONS.get(name, {}) | options


# The kind of data, the class and its options. Every registered sampler is here for each kind of
# data that it fits.
CASES = {
    f"{name}-{kind}": _named_case(name, kind, {})
    for name in SAMPLERS
    for kind in SAMPLERS.traits(name)["fits"]
}
CASES |= {case: _named_case(*variant) for case, variant in VARIANTS.items()}
CASES |= UNNAMED


@functools.cache
def data(kind, n_rows=120, seed=0):
    """A pandas frame of dependent columns."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n_rows)
    noise = rng.normal(size=(n_rows, 6))
    if kind == "numbers":
        return pd.DataFrame({f"c{j}": common + noise[:, j] * (j + 1) / 3 for j in range(5)})
    discrete = {
        "colour": pd.Categorical(
            np.array(["blue", "green", "red"])[np.digitize(common + noise[:, 0], [-0.7, 0.7])],
            ["blue", "green", "red"],
        ),
        "flag": common + noise[:, 1] > 0.3,
        "word": np.where(common + noise[:, 2] > 0, "yes", "no"),
    }
    if kind == "classes":
        return pd.DataFrame(discrete)
    return pd.DataFrame(
        {
            "height": common + 0.5 * noise[:, 3],
            **discrete,
            "count": np.rint(3 * common + noise[:, 4]).astype(int),
            "weight": np.exp(0.5 * common + 0.3 * noise[:, 5]),
        }
    )


def make(case):
    _, kind, options = CASES[case]
    return kind(**options)


@functools.cache
def fitted(case):
    return make(case).fit(data(CASES[case][0]))


def rows_of(case):
    return data(CASES[case][0]).iloc[:N_ROWS]


def noise_for(case, seed=1, n_rows=N_ROWS):
    n_features = fitted(case).n_features_
    return np.random.default_rng(seed).uniform(1e-9, 1 - 1e-9, (n_rows, N_DRAWS, n_features))


def coalitions(case):
    n_features = fitted(case).n_features_
    masks = [[True] * n_features, [False] * n_features]
    masks += np.random.default_rng(5).random((4, n_features)).__lt__(0.5).tolist()
    masks += [[j == 0 for j in range(n_features)], [j != 0 for j in range(n_features)]]
    return [np.array(mask) for mask in masks]


every = pytest.mark.parametrize("case", CASES)
