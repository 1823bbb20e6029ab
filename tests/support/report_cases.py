"""Explanations with made-up numbers, for reports: many features, odd names, odd numbers."""

import math

import numpy as np
import pandas as pd

from dsage.estimate import Estimate, StopKind, StopReason, TermEstimate, TermKind
from dsage.estimate.accumulate.history import History
from dsage.graphs import Graph, random_dag
from dsage.result.explanation import Explanation
from explanations import make_run_info

SCRIPT = "</script><script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(1)>"
ODD_NAMES = [
    SCRIPT,
    IMAGE,
    '"quotes"',
    "{{ data }}",
    "{{x}}",
    "Größe",
    "年齢",
    "دخل الأسرة",
    "a" * 120,
]
N_LOOKS = 6


def synthetic_explanation(n_features=100, *, names=None, with_graph=True, seed=0, **changes):
    """An explanation with the sizes and shapes of a real one; `changes` are of the estimate."""
    generator = np.random.default_rng(seed)
    names = [f"feature_{number}" for number in range(n_features)] if names is None else list(names)
    n_features = len(names)
    values = generator.exponential(size=n_features) / np.arange(1, n_features + 1)
    values[-1:] *= 1 if n_features < 4 else -0.1
    se = np.full(n_features, 0.004)
    share_skipped = generator.uniform(size=n_features) if with_graph else np.zeros(n_features)
    audit = TermEstimate(
        TermKind.CORRECTION, generator.normal(scale=0.02, size=n_features), se, 100, 1000, 30.0
    )
    estimate = {
        "feature_names": tuple(names),
        "values": values,
        "se_orderings": se,
        "se_draws": np.zeros(n_features),
        "se_rows": np.full(n_features, 0.02),
        "df": np.full(n_features, 40.0),
        "n_orderings": 1000,
        "n_units": 500,
        "n_evaluated": 123_456,
        "n_shared": 654_321,
        "share_skipped": share_skipped,
        "terms": (TermEstimate(TermKind.SAMPLED, values, se, 1000, 100_000, 40.0),),
        "audit": audit if with_graph else None,
        "skipped_surpluses": pd.DataFrame(
            {"feature": [], "position": [], "surplus": [], "n_rows": []}
        ),
        "seconds": 12.5,
        "is_exact": False,
        "estimand": "d-sage",
        "history": _history(values, se, generator),
        "reason": StopReason(StopKind.ORDERINGS, {"n": 1000, "is_all": False}),
        **changes,
    }
    graph = _graph(names, seed) if with_graph else None
    found = Estimate(**estimate)
    return Explanation(
        estimate=found,
        target="target",
        graph=graph,
        edge_strength=None if graph is None else _strength(graph, generator),
        sampler_scores=_scores(),
        groups=None,
        choices=make_run_info(found, n_rows=200, has_graph=with_graph),
        warnings=(),
    )


def _graph(names, seed):
    drawn = random_dag(len(names) + 1, 2, random_state=seed)
    renamed = dict(zip(drawn.names, [*names, "target"], strict=True))
    return Graph(list(renamed.values()), [(renamed[a], renamed[b]) for a, b in drawn.edges])


def _history(values, se, generator):
    widths = 2.0 ** np.arange(N_LOOKS)[::-1]
    looks = values + widths[:, None] * se * generator.normal(size=(N_LOOKS, len(values)))
    looks[-1] = values
    errors = widths[:, None] * se
    errors[0] = math.nan
    steps = np.arange(1, N_LOOKS + 1)
    return History(steps, 20_000 * steps, steps * 2.0, looks, errors)


def _strength(graph, generator):
    edges = pd.DataFrame(list(graph.edges), columns=["from", "to"])
    share = generator.uniform(0.3, 1.0, len(edges))
    return edges.assign(share=share, share_either=np.minimum(share + 0.1, 1.0))


def _scores():
    return pd.DataFrame(
        {
            "sampler": ["Gaussian", "Mix", "Marginal"],
            "energy_score": [0.41, math.nan, 0.6],
            "difference": [0.0, math.nan, 0.19],
            "se": [0.0, math.nan, 0.02],
            "fit_seconds": [0.1, math.nan, 0.0],
            "draw_seconds": [0.1, math.nan, 0.0],
            "error": ["", "ValueError: it failed", ""],
            "warnings": ["", math.nan, ""],
        }
    )
