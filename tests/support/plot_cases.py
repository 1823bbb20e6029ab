"""Explanations with made-up numbers, for plots."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pandas as pd

from dsage import Graph
from dsage.estimate import Estimate, TermEstimate, TermKind
from dsage.estimate.accumulate.history import History
from dsage.result.explanation import Explanation
from explanations import make_run_info

LATIN = "the mean of the daily maximum temperature over the seven days before the visit, at the station nearest to the patient's home"
SCRIPTS = (
    "μέση_θερμοκρασία",
    "средняя температура",
    "平均气温与湿度",
    "متوسط درجة الحرارة",
    "🌡️ 🦠 $x_{1",
    "$\\frac{a}$",
)


def long_names(n_features):
    """Names of 120 characters or more."""
    return [f"{number} {LATIN}" for number in range(n_features)]


def foreign_names(n_features):
    """Names in other scripts, and such as a formula might have."""
    return [f"{number} {SCRIPTS[number % len(SCRIPTS)]}" for number in range(n_features)]


def plain_names(n_features):
    return [f"feature {number}" for number in range(n_features)]


def made_up(
    names,
    *,
    estimand="d-sage",
    audited=True,
    seed=0,
    loss="squared_error",
    model="Forest",
    **changes,
):
    """An explanation whose numbers are drawn, with an audit that matters for the first feature."""
    names = tuple(names)
    n_features = len(names)
    generator = np.random.default_rng(seed)
    skipped = np.linspace(0.0, 1.0, n_features) if n_features > 1 else np.array([0.5])
    values = (generator.gamma(0.5, size=n_features) + 0.01) * (skipped < 1)
    se = (0.02 + 0.02 * values) * (skipped < 1)
    looks = np.array([8, 16, 32, 64, 128])
    wander = generator.normal(size=(5, n_features)) * se * np.sqrt(128 / looks)[:, None]
    wander[-1] = 0.0
    history = History(
        looks,
        looks * 300,
        looks / 10.0,
        values + wander,
        np.hypot(se, 0.001) * np.sqrt(128 / looks)[:, None],
    )
    main = TermEstimate(TermKind.SAMPLED, values, se, 128, 30_000, df=127.0)
    difference = np.where(np.arange(n_features) == 0, 0.5, 0.01) * values
    correction = TermEstimate(
        TermKind.CORRECTION, difference, np.full(n_features, 0.004), 64, 900, df=63.0
    )
    found = Estimate(
        feature_names=names,
        values=values,
        se_orderings=se,
        se_draws=np.full(n_features, 0.001),
        se_rows=(0.05 + 0.1 * values) * (skipped < 1),
        df=np.full(n_features, 127.0),
        n_orderings=128,
        n_units=128,
        n_evaluated=38_400,
        n_shared=100,
        share_skipped=skipped if audited else np.zeros(n_features),
        terms=(main, correction) if audited and estimand == "sage" else (main,),
        audit=correction if audited else None,
        skipped_surpluses=_skipped(names, skipped, generator)
        if audited
        else _skipped(names, skipped * 0, generator),
        seconds=12.0,
        is_exact=False,
        estimand=estimand,
        history=history,
        df_rows=500.0,
    )
    found = dataclasses.replace(found, **changes)
    edges = [*itertools.pairwise(names), (names[-1], "target")]
    edges += [(name, "target") for name in names[: n_features // 4]]
    graph = Graph([*names, "target"], edges)
    strength = pd.DataFrame(graph.edges, columns=["from", "to"])
    share = generator.uniform(0.2, 1.0, len(strength))
    return Explanation(
        estimate=found,
        target="target",
        graph=graph if audited else None,
        edge_strength=strength.assign(share=share, share_either=share) if audited else None,
        sampler_scores=None,
        groups=None,
        choices=make_run_info(found, model=model, loss=loss),
        warnings=(),
    )


def _skipped(names, share, generator):
    lines = [
        (name, 1, float(surplus), 64)
        for name, part in zip(names, share, strict=True)
        for surplus in 0.02 * generator.standard_t(3, size=round(30 * part))
    ]
    return pd.DataFrame(lines, columns=["feature", "position", "surplus", "n_rows"])
