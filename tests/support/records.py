"""Records of small real runs, for what shows or keeps them."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

from dsage import Graph
from dsage.estimate import as_stopping, run
from dsage.games import LossGame
from dsage.games.grouped import Grouped
from dsage.graphs.grouped import GroupedOracle
from dsage.result.choices import Choices
from dsage.result.record import Record
from dsage.samplers import Gaussian

TARGET = "target"


def make_record(n_features=3, names=None, *, audited=True, groups=None, seed=0, kind=Record):
    """A record of a forest on a chain: each feature causes the next, the last one the target."""
    names = [f"feature {number}" for number in range(n_features)] if names is None else list(names)
    generator = np.random.default_rng(seed)
    X = np.cumsum(generator.normal(size=(240, len(names))), axis=1)
    X /= np.sqrt(np.arange(1, len(names) + 1))
    y = X[:, -1] + 0.5 * X[:, 0] + generator.normal(size=240)
    frame = pd.DataFrame(X, columns=names)
    model = RandomForestRegressor(5, min_samples_leaf=10, random_state=seed).fit(frame, y)
    chain = list(itertools.pairwise(names))
    graph = Graph([*names, TARGET], [*chain, (names[-1], TARGET)])
    game = LossGame(model, Gaussian().fit(frame), frame[:64], y[:64], random_state=seed)
    oracle = graph.oracle(TARGET, features=names) if audited else None
    if groups is not None:
        game = Grouped(game, groups)
        oracle = None if oracle is None else GroupedOracle(oracle, groups)
    found = run(
        game,
        oracle=oracle,
        estimand="sage" if audited else "d-sage",
        exact="never",
        stopping=as_stopping(n_orderings=40),
        random_state=seed,
    )
    return kind(
        estimate=found,
        target=TARGET,
        graph=graph if audited else None,
        edge_strength=_strength(graph, generator) if audited else None,
        sampler_scores=_SCORES,
        groups=None if groups is None else {name: tuple(held) for name, held in groups.items()},
        choices=_choices(found, audited),
        warnings=("A warning of this run.",),
    )


def _strength(graph, generator):
    share = generator.uniform(0.5, 1.0, len(graph.edges))
    edges = pd.DataFrame(list(graph.edges), columns=["from", "to"])
    return edges.assign(share=share, share_either=np.minimum(share + 0.1, 1.0))


def _choices(found, audited):
    return Choices(
        {
            "model": {"name": "RandomForestRegressor"},
            "data": {"rows_train": 240, "rows_evaluation": 64, "target": TARGET},
            "graph": {"source": "given" if audited else None},
            "sampler": {"name": "Gaussian", "reason": "It was given.", "energy_score": 0.41},
            "loss": {"name": "squared_error"},
            "estimate": {"estimand": found.estimand, "stopped_because": str(found.reason)},
            "evaluations": {
                "made": found.n_evaluated,
                "shared": found.n_shared,
                "share_skipped": float(found.share_skipped.mean()),
            },
            "seconds": {"total": found.seconds},
            "versions": {"dsage": "0.0"},
            "run": {"random_state": 0, "n_jobs": 1},
        }
    )


_SCORES = pd.DataFrame(
    {
        "sampler": ["Gaussian", "Neighbors", "Marginal"],
        "energy_score": [0.41, 0.43, 0.6],
        "difference": [0.0, 0.02, 0.19],
        "se": [0.0, 0.01, 0.02],
        "fit_seconds": [0.1, 0.2, 0.0],
        "draw_seconds": [0.1, 0.2, 0.0],
        "error": ["", "", ""],
        "warnings": ["", "", ""],
    }
)
