"""Explanations of small real runs, for tests of what shows or saves them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

from dsage import Graph
from dsage.data.kinds import Kind
from dsage.estimate import SamplerCheck, as_stopping, run
from dsage.games import LossGame
from dsage.games.grouped import Grouped
from dsage.graphs.grouped import GroupedOracle
from dsage.models.resolve import LossSource, ModelInfo
from dsage.result.explanation import Explanation
from dsage.result.run_info import (
    DataInfo,
    EstimateInfo,
    EvaluationInfo,
    LossInfo,
    RunInfo,
    SecondsInfo,
    SessionInfo,
)
from dsage.samplers import Gaussian
from dsage.samplers.info import SamplerInfo, SamplerSource
from dsage.structure.info import GraphInfo, GraphSource

TARGET = "target"


def make_explanation(n_features=3, names=None, *, audited=True, groups=None, seed=0):
    """An explanation of a forest on a chain: each feature causes the next, the last one the target."""
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
    return Explanation(
        estimate=found,
        target=TARGET,
        graph=graph if audited else None,
        edge_strength=_strength(graph, generator) if audited else None,
        sampler_scores=_SCORES,
        groups=None if groups is None else {name: tuple(held) for name, held in groups.items()},
        choices=make_run_info(found, has_graph=audited),
        warnings=("A warning of this run.",),
    )


def with_check(explanation, differences, *, se=0.001, others=("Copula",), are_better=None):
    """The explanation, with made-up differences to other samplers."""
    shape = (len(others), len(explanation.feature_names))
    check = SamplerCheck(
        explanation.feature_names,
        tuple(others),
        tuple(are_better or [False] * len(others)),
        np.broadcast_to(differences, shape).astype(float).copy(),
        np.full(shape, se),
        np.full(shape, 40.0),
        1000,
    )
    return replace(explanation, sampler_check=check)


def _strength(graph, generator):
    share = generator.uniform(0.5, 1.0, len(graph.edges))
    edges = pd.DataFrame(list(graph.edges), columns=["from", "to"])
    return edges.assign(share=share, share_either=np.minimum(share + 0.1, 1.0))


def make_run_info(
    found, *, model="RandomForestRegressor", loss="squared_error", n_rows=64, has_graph=True
):
    """The record of a run that estimated `found`."""
    return RunInfo(
        model=ModelInfo(
            name=model,
            type_name=f"<b>{model}</b>",
            steps=(),
            classes=None,
            packages=("sklearn",),
        ),
        data=DataInfo(
            target=TARGET,
            n_features=len(found.feature_names),
            n_class_features=0,
            class_numbers=(),
            n_groups=None,
            n_rows_train=240,
            n_rows_evaluation=n_rows,
            digest="0123456789abcdef",
            container="pandas",
            kinds=dict.fromkeys(found.feature_names, Kind.NUMBER),
            share_missing=dict.fromkeys(found.feature_names, 0.0),
        ),
        graph=GraphInfo(GraphSource.GIVEN if has_graph else GraphSource.NONE),
        sampler=SamplerInfo("Gaussian", SamplerSource.GIVEN, 0.41, 0.6, None),
        loss=LossInfo(loss, LossSource.GIVEN),
        estimate=EstimateInfo(
            estimand=found.estimand,
            orderings="antithetic",
            is_asymmetric=False,
            n_orderings=found.n_orderings,
            is_exact=found.is_exact,
            stopping="default",
            stopped_because=str(found.reason),
            has_audit=found.audit is not None,
            semantics="boundary",
            first_level="auto",
            exact="auto",
            rows_per_ordering=None,
            cache_bytes=2**28,
            n_draws=8,
            n_replicates=2,
            noise="sobol",
            max_bytes=2**28,
            is_weighted=False,
        ),
        evaluations=EvaluationInfo.of(found),
        seconds=SecondsInfo(graph=0.0, sampler=0.5, estimate=found.seconds, total=found.seconds),
        versions={"dsage": "0.0", "python": "3.12"},
        run=SessionInfo(random_state="0", n_jobs=1, checkpoint=None),
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
