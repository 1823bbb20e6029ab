"""A small table, and options with which a fold takes little time."""

import numpy as np
import pandas as pd

QUICK = {
    "sampler": "gaussian",
    "graph": None,
    "sampler_check": False,
    "random_state": 0,
    "progress": False,
}


def table(n_rows=60, seed=0):
    """Three features, of which the first tells most and the last nothing."""
    generator = np.random.default_rng(seed)
    X = pd.DataFrame(generator.normal(size=(n_rows, 3)), columns=["much", "little", "idle"])
    y = 2.0 * X["much"] + 0.7 * X["little"] + generator.normal(size=n_rows)
    return X, y.rename("outcome")
