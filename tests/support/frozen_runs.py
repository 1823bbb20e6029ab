"""Small runs of every kind, whose numbers must not change.

``python tests/support/frozen_runs.py`` prints them as JSON. A change of one of them is either a
mistake, or a repair that the changelog tells.
"""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import version

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_info

import dsage
from dsage.estimate import as_stopping, run_local
from dsage.games import LossGame, OutputGame
from dsage.graphs import cpdag
from dsage.orderings import Order
from dsage.samplers import Gaussian, choose_sampler
from dsage.structure import stability


@cache
def _diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


@cache
def _wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X.iloc[order, :7].reset_index(drop=True), y.iloc[order].reset_index(drop=True)


@cache
def _mixed():
    """Numbers and classes, made from a seed."""
    rng = np.random.default_rng(1)
    n_rows = 400
    a = rng.normal(size=n_rows)
    color = np.array(["blue", "green", "red"])[rng.integers(0, 3, n_rows)]
    b = a + (color == "red") + 0.5 * rng.normal(size=n_rows)
    size = np.where(b + rng.normal(size=n_rows) > 0.5, "large", "small")
    count = rng.poisson(np.exp(0.3 * a))
    y = b + (size == "large") + 0.2 * count + 0.3 * rng.normal(size=n_rows)
    frame = pd.DataFrame({"a": a, "color": color, "b": b, "size": size, "count": count})
    return frame, pd.Series(y, name="y")


@cache
def _linear():
    X, y = _diabetes()
    return LinearRegression().fit(X[:300], y[:300])


@cache
def _forest():
    X, y = _diabetes()
    return RandomForestRegressor(10, max_depth=5, random_state=0).fit(X[:300], y[:300])


@cache
def _mixed_model():
    X, y = _mixed()
    encode = make_column_transformer((OneHotEncoder(), ["color", "size"]), remainder="passthrough")
    model = make_pipeline(encode, RandomForestRegressor(5, max_depth=4, random_state=0))
    return model.fit(X[:300], y[:300])


@cache
def _classifier():
    X, y = _wine()
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:120], y[:120])


def _explain(model, data, n_train, **options):
    X, y = data
    # The numbers of the comparison of samplers are not among the frozen ones.
    quick = {"random_state": 0, "progress": False, "sampler_check": False}
    options = {**quick, "n_orderings": 16, **options}
    graph = options.pop("graph", "auto")
    options.pop("n_resamples", None)
    options["graph"] = _graph(X[:n_train], y[:n_train], graph) if isinstance(graph, str) else graph
    explanation = dsage.explain(
        model, X[:n_train], y[:n_train], X[n_train:], y[n_train:], **options
    )
    found = explanation.estimate
    numbers = {
        "values": found.values,
        "se_orderings": found.se_orderings,
        "se_draws": found.se_draws,
        "se_rows": found.se_rows,
        "share_skipped": found.share_skipped,
        "counts": [found.n_evaluated, found.n_shared, found.n_units, float(found.n_orderings)],
        "p_values": explanation.to_frame()["p_value"].to_numpy(),
    }
    if found.audit is not None:
        numbers["audit"] = found.audit.values
        numbers["audit_se"] = found.audit.se
    if explanation.graph is not None:
        numbers["edges"] = _edges(explanation.graph)
    return numbers


def _graph(X, y, method):
    """Learn the graph with the score that was the default when the runs were frozen."""
    table = X.assign(**{y.name: y})
    is_linear = y.name == "target" and len(np.unique(y)) > 3
    score, discrete = (
        ("ebic", ()) if is_linear else ("bic", (y.name,) if y.name == "target" else ())
    )
    return dsage.learn_graph(table, method=method, score=score, discrete=discrete, random_state=0)


def _edges(graph):
    """Return the edges of the equivalence class: within it, rounding decides on a direction."""
    names, found = list(graph.names), cpdag(graph)
    undirected = [tuple(sorted(edge, key=names.index)) for edge in found.undirected]
    edges = [*sorted(found.directed), *sorted(undirected)]
    return [float(names.index(end)) for edge in edges for end in edge]


def _diabetes_runs() -> dict[str, Callable[[], dict]]:
    def of(model, **options):
        return lambda: _explain(model(), _diabetes(), 300, **options)

    pairs = Order.tiers([["age", "sex"], ["bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]])
    groups = {"body": ["age", "sex", "bmi"], "serum": ["s1", "s2", "s3", "s4", "s5", "s6"]}
    short = {"sampler": "gaussian", "n_resamples": 0}
    return {
        "linear": of(_linear, sampler="gaussian", n_resamples=3),
        "linear, to a tolerance": of(_linear, n_orderings=None, tolerance=0.05, **short),
        "linear, sage": of(_linear, estimand="sage", **short),
        "linear, exact": of(_linear, exact="always", **short),
        "linear, numpy noise": of(_linear, noise="independent", sampler="copula", graph=None),
        "forest": of(_forest, **short),
        "forest, no graph": of(_forest, graph=None, sampler="copula"),
        "forest, skip": of(_forest, semantics="skip", **short),
        "forest, sage": of(_forest, estimand="sage", **short),
        "forest, no first level": of(_forest, first_level="none", **short),
        "forest, groups": of(_forest, groups=groups, **short),
        "forest, order": of(_forest, orderings=pairs, graph="hc", **short),
        "forest, balanced": of(_forest, orderings="balanced", graph=None, sampler="mixture"),
        "forest, stratified": of(_forest, orderings="stratified", graph=None, sampler="gaussian"),
        "forest, uniform": of(_forest, orderings="uniform", graph="boss", sampler="gaussian"),
        "forest, marginal": of(_forest, graph=None, sampler="marginal", loss="absolute_error"),
        "forest, two jobs": of(_forest, n_jobs=2, **short),
        "forest, weights": of(
            _forest, sample_weight=np.linspace(1, 2, 142), rows_per_ordering=20, **short
        ),
        "forest, chosen sampler": of(_forest, graph=None, n_orderings=4),
    }


def _class_runs() -> dict[str, Callable[[], dict]]:
    def of(**options):
        return lambda: _explain(_classifier(), _wine(), 120, n_resamples=0, **options)

    return {
        "classes, cross entropy": of(sampler="gaussian"),
        "classes, brier": of(sampler="gaussian", loss="brier", graph=None),
        "classes, zero-one": of(sampler="copula", loss="zero_one", graph="tabu"),
    }


def _mixed_runs() -> dict[str, Callable[[], dict]]:
    def of(**options):
        return lambda: _explain(_mixed_model(), _mixed(), 300, n_orderings=4, **options)

    return {
        "mixed, mix": of(sampler="mix", n_resamples=2),
        "mixed, neighbors": of(sampler="neighbors", graph=None),
        "mixed, sequential": of(sampler="sequential", graph=None),
        "mixed, marginal": of(sampler="marginal", graph=None),
        "mixed, chosen sampler": of(graph=None),
    }


def _games(model) -> tuple[LossGame, Gaussian]:
    X, y = _diabetes()
    sampler = Gaussian().fit(X[:300])
    return LossGame(model, sampler, X[300:360], y[300:360], random_state=0), sampler


def _compared():
    from dsage.estimate import compare_games

    first, second = _games(_linear())[0], _games(_forest())[0]
    rule = as_stopping(n_orderings=16)
    found = compare_games(first, second, stopping=rule, random_state=0).difference
    return {"values": found.values, "se": found.se, "se_rows": found.se_rows}


def _local():
    X, _ = _diabetes()
    sampler = Gaussian().fit(X[:300])
    game = OutputGame(_forest(), sampler, X[300:310], random_state=0)
    found = run_local(game, stopping=as_stopping(n_orderings=8), random_state=0)
    return {"values": found.values.ravel(), "se": found.se.ravel()}


def _learned(data, **options):
    X, y = data
    table = X.assign(y=np.asarray(y))

    def learn():
        graph = dsage.learn_graph(table, **options)
        score = {key: options[key] for key in ("score", "discrete") if key in options}
        return {"edges": _edges(graph), "score": [dsage.score_graph(graph, table, **score)]}

    return learn


def _stable():
    X, y = _diabetes()
    frame = stability(X.assign(y=y), 5, score="ebic", random_state=0).to_frame()
    return {"share": frame["share"].to_numpy(), "share_either": frame["share_either"].to_numpy()}


def _sampler_scores():
    X, _ = _mixed()
    scores = choose_sampler(X, random_state=0).scores
    return {"energy_score": scores["energy_score"].to_numpy()}


def _other_runs() -> dict[str, Callable[[], dict]]:
    X, y = _mixed()
    classes = X[["color", "size"]].assign(many=X["count"].astype(str)), (y > 0).astype(str)
    runs = {
        "compared games": _compared,
        "local values": _local,
        "resampled graphs": _stable,
        "sampler scores": _sampler_scores,
        "graph, mixed": _learned(_mixed(), score="bic"),
    }
    for method in ("auto", "tabu", "hc", "boss"):
        runs[f"graph, {method}"] = _learned(
            _diabetes(), method=method, score="ebic", random_state=0
        )
    for score in ("bic", "aic", "bge"):
        runs[f"graph, {score}"] = _learned(_diabetes(), score=score, method="hc")
    for score in ("bic", "bdeu", "k2"):
        runs[f"graph, classes, {score}"] = _learned(classes, score=score, method="hc")
    return runs


def runs() -> dict[str, Callable[[], dict]]:
    """Return the runs by name; each gives arrays of numbers by name."""
    return {**_diabetes_runs(), **_class_runs(), **_mixed_runs(), **_other_runs()}


def numbers_of(run: Callable[[], dict]) -> dict[str, list[str]]:
    """Return the numbers of a run as texts that keep every bit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run()
    return {
        name: [float(value).hex() for value in np.asarray(values, dtype=float).ravel()]
        for name, values in found.items()
    }


def machine() -> dict[str, object]:
    """Return what the last bits depend on: libraries, and the processor that they compute for."""
    return {
        "processor": platform.machine(),
        # Since Python 3.12 the built-in sum of floats rounds otherwise.
        "python": ".".join(platform.python_version_tuple()[:2]),
        "blas": sorted(
            {str(each.get("architecture")) for each in threadpool_info() if "blas" in str(each)}
        ),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "pandas")},
    }


if __name__ == "__main__":
    frozen = {"machine": machine(), "runs": {name: numbers_of(run) for name, run in runs().items()}}
    print(json.dumps(frozen, indent=1))  # noqa: T201
