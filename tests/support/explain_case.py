"""Small data for `explain`, so small that a run takes a fraction of a second."""

import numpy as np
import pandas as pd

from dsage.estimate import enumerate_boundaries
from dsage.games import LossGame
from dsage.graphs import NoSeparation
from dsage.samplers import Gaussian

# Options of runs with the comparison of samplers, and of those whose test is not about it.
CHECKED = {"progress": False, "random_state": 0}
QUIET = {**CHECKED, "sampler_check": False}
# All orderings, as there are few features, and nothing tried before: of runs whose test is not
# about the estimate.
SHORT = {"exact": "always", "first_level": "none", **QUIET}


def chain(n_rows=300, seed=0):
    """A causes b causes c; the target is caused by c; d is noise."""
    generator = np.random.default_rng(seed)
    a = generator.normal(size=n_rows)
    b = a + 0.5 * generator.normal(size=n_rows)
    c = b + 0.5 * generator.normal(size=n_rows)
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "d": generator.normal(size=n_rows)})
    return frame, pd.Series(2 * c + generator.normal(size=n_rows), name="y")


def exact_values(model, rows, graph=None, sampler=None):
    """All coalitions, without the engine."""
    sampler = Gaussian().fit(rows[0]) if sampler is None else sampler
    game = LossGame(model, sampler, rows[2], rows[3], random_state=0)
    names = list(rows[0].columns)
    oracle = NoSeparation(names) if graph is None else graph.oracle("y", features=names)
    enumeration = enumerate_boundaries(oracle)
    risks = game.risks(enumeration.coalitions, np.arange(game.n_rows)).mean(axis=(1, 2))
    return enumeration.values(risks)


def mixed(n_rows=240, seed=0):
    generator = np.random.default_rng(seed)
    colour = generator.choice(["red", "green", "blue"], n_rows)
    size = generator.normal(size=n_rows) + (colour == "red")
    heavy = size + generator.normal(size=n_rows) > 0.5
    X = pd.DataFrame({"colour": colour, "size": size, "is_new": generator.random(n_rows) < 0.5})
    return X, np.where(heavy, "heavy", "light")
