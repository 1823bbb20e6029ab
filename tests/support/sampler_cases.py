"""Every sampler of the package with data that it is for: what the tests of all of them share."""

import functools

import numpy as np
import pandas as pd
import pytest

from dsage import samplers

N_ROWS, N_DRAWS = 23, 5


def uniform_draws(x_known, known, rng):
    return rng.integers(2, size=(len(x_known), (~known).sum()))


# A name, the kind of data, the class and its options. Every sampler of the package is here, once
# for each kind of data that it is for.
CASES = {
    "Marginal-mixed": ("mixed", "Marginal", {}),
    "Marginal-independent": ("mixed", "Marginal", {"joint": False}),
    "Categorical": ("discrete", "Categorical", {"on_unseen": "ignore"}),
    "Categorical-smooth": ("discrete", "Categorical", {"on_unseen": "ignore", "smoothing": 2.0}),
    "Neighbors-continuous": ("continuous", "Neighbors", {}),
    "Neighbors-nearest": ("continuous", "Neighbors", {"n_neighbors": 5}),
    "Neighbors-mixed": ("mixed", "Neighbors", {}),
    "Gaussian": ("continuous", "Gaussian", {}),
    "Gaussian-shrunk": ("continuous", "Gaussian", {"covariance": "ledoit-wolf"}),
    "GaussianCopula": ("continuous", "GaussianCopula", {}),
    "GaussianMixture": ("continuous", "GaussianMixture", {"n_components": 2}),
    "Forest-continuous": ("continuous", "Forest", {"n_trees": 5, "random_state": 0}),
    "Forest-discrete": ("discrete", "Forest", {"n_trees": 5, "random_state": 0}),
    "Forest-mixed": ("mixed", "Forest", {"n_trees": 5, "random_state": 0}),
    "Sequential-continuous": ("continuous", "Sequential", {}),
    "Sequential-discrete": ("discrete", "Sequential", {}),
    "Sequential-mixed": ("mixed", "Sequential", {}),
    "FunctionSampler": ("mixed", "FunctionSampler", {"function": uniform_draws}),
    "Auto-continuous": ("continuous", "Auto", {"n_coalitions": 2, "n_draws": 4}),
    "Auto-mixed": ("mixed", "Auto", {"n_coalitions": 2, "n_draws": 4}),
}


@functools.cache
def data(kind, n_rows=120, seed=0):
    """A pandas frame of dependent columns."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n_rows)
    noise = rng.normal(size=(n_rows, 6))
    if kind == "continuous":
        return pd.DataFrame({f"c{j}": common + noise[:, j] * (j + 1) / 3 for j in range(5)})
    discrete = {
        "colour": pd.Categorical(
            np.array(["blue", "green", "red"])[np.digitize(common + noise[:, 0], [-0.7, 0.7])],
            ["blue", "green", "red"],
        ),
        "flag": common + noise[:, 1] > 0.3,
        "word": np.where(common + noise[:, 2] > 0, "yes", "no"),
    }
    if kind == "discrete":
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
    _, name, options = CASES[case]
    return getattr(samplers, name)(**options)


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
