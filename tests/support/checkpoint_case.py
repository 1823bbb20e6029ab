"""A run that is checkpointed, here or, as a program, in a process of its own that can be killed.

As a program: checkpoint_case.py PATH N_ORDERINGS SECONDS_A_LOOK.
"""

import functools
import sys
import time
import warnings

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from dsage import Graph
from dsage.estimate import Checkpoint, run
from dsage.games import LossGame
from dsage.samplers import Gaussian

NAMES = ("X1", "X2", "X3", "X4")
ORACLE = Graph([*NAMES, "y"], [("X1", "X2"), ("X2", "y"), ("X3", "y"), ("y", "X4")]).oracle("y")
OPTIONS = {"oracle": ORACLE, "exact": "never", "estimand": "sage", "random_state": 0}


def data(seed=0):
    generator = np.random.default_rng(seed)
    a, c = generator.normal(size=(2, 400))
    b = a + generator.normal(size=400)
    y = b + np.sin(2 * c) + 0.3 * generator.normal(size=400)
    return np.column_stack([a, b, c, y + generator.normal(size=400)]), y


@functools.cache
def forest(n_trees):
    return RandomForestRegressor(n_trees, random_state=0).fit(*data())


def game(n_rows=200, *, seed=0, n_trees=6, noise=0, **options):
    X, y = data(seed)
    sampler = Gaussian().fit(X)
    return LossGame(forest(n_trees), sampler, X[:n_rows], y[:n_rows], random_state=noise, **options)


class Slow:
    """A rule that takes its time at each look, and then looks at the number of orderings."""

    def __init__(self, n_orderings, seconds=0.0):
        self.n_orderings, self.seconds, self.n_looks = n_orderings, seconds, 0

    def reason(self, progress):
        self.n_looks += 1
        time.sleep(self.seconds)
        return "enough" if progress.n_orderings >= self.n_orderings else None


def result(n_orderings, path=None, seconds=0.0, **changed):
    checkpoint = None if path is None else Checkpoint(path, every=0.0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Skipping by separation")
        return run(
            changed.pop("game", None) or game(),
            stopping=Slow(n_orderings, seconds),
            checkpoint=checkpoint,
            **{**OPTIONS, **changed},
        )


if __name__ == "__main__":
    result(int(sys.argv[2]), sys.argv[1], float(sys.argv[3]))
