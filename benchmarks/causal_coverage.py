"""Coverage of the intervals of causal values, their parts, and flows: part of benchmarks.causal.

The distributions and the exact values come from the folder of the tests.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dsage import Graph
from dsage.estimate import intervals, run
from dsage.estimate.running.stopping import NOrderings
from dsage.flow import FlowGame, Network, estimate_flow, fit_mechanisms
from dsage.flow.blocks import Column
from dsage.games import LossGame
from dsage.games.base import Floats
from dsage.models import as_loss, as_model
from dsage.samplers import Gaussian, Interventional, Marginal

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
worlds = import_module("interventional_world")
flows = import_module("exact_flows")

FEATURES = ["a", "b", "c"]
WEIGHTS = np.array([1.2, -0.4, 0.8])
COLUMNS = ("values", "direct", "indirect")
Rows = tuple[pd.DataFrame, Floats]


class Law(NamedTuple):
    """A law with a model: rows, games, and exact values of rows or, for None, the population."""

    name: str
    sample: Callable[[int, np.random.Generator], Rows]
    game: Callable[..., LossGame]
    values: Callable[[Rows | None], Floats]


@dataclass(frozen=True, eq=False)
class Setting:
    """What is estimated: the law, the number of rows, in words and in options of the run."""

    law: Law
    n_rows: int
    words: str
    options: dict[str, Any] = field(default_factory=dict)


def linear_law(name: str, weights: dict[tuple[str, str], float], names: Sequence[str]) -> Law:
    """Return linear structural equations with a linear model, which is evaluated on draws."""
    hidden = tuple(each for each in names if each == "h")
    world = worlds.LinearWorld(tuple(names), weights, hidden)
    seen = Gaussian.from_moments(np.zeros(4), world.covariance([*FEATURES, "y"]), [*FEATURES, "y"])
    sampler = Interventional(sampler=seen, graph=world.graph, target="y")
    sampler.fit(world.sample(30, np.random.default_rng(0))[FEATURES])

    def sample(n_rows: int, rng: np.random.Generator) -> Rows:
        table = world.sample(n_rows, rng)
        return table[FEATURES], table["y"].to_numpy()

    def game(X: pd.DataFrame, y: Floats, seed: int) -> LossGame:
        model = as_model(lambda rows: np.asarray(rows) @ WEIGHTS, "squared_error", affine=False)
        return LossGame(model, sampler, X, y, n_draws=4, random_state=seed)

    def values(data: Rows | None) -> Floats:
        if data is not None:
            return world.values(FEATURES, WEIGHTS, data[0].to_numpy(), data[1])
        moments = world.covariance([*FEATURES, "y"])

        def risk(fixed: frozenset[int], inputs: frozenset[int]) -> float:
            # Means are linear in the row: those of unit rows are their coefficients.
            effects = world.mean_under(FEATURES, fixed, np.eye(3))
            at = sorted(inputs)
            effects[:, at] = np.eye(3)[:, at]
            left = np.append(-effects @ WEIGHTS, 1.0)
            return float(left @ moments @ left)

        return worlds.brute_force(risk, 3)

    return Law(name, sample, game, values)


def discrete_law() -> Law:
    """Return a network of binary variables; all interventional distributions are enumerated."""
    rng = np.random.default_rng(1)
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("d", "c")]
    world = worlds.DiscreteWorld.random(Graph(list("abcd"), edges), rng)
    table = world.population()
    X, y = table[FEATURES], table["d"].astype(int).to_numpy()
    predictions = rng.random((2, 2, 2))
    sampler = Interventional(sampler=worlds.Frequencies(), graph=world.graph, target="d")
    sampler.fit(X, table["d"])

    def model(rows: pd.DataFrame) -> Floats:
        return predictions[tuple(np.asarray(rows[name]).astype(int) for name in FEATURES)]

    def sample(n_rows: int, rng: np.random.Generator) -> Rows:
        some = rng.integers(len(X), size=n_rows)
        return X.iloc[some].reset_index(drop=True), y[some]

    def game(rows: pd.DataFrame, target: Floats, seed: int) -> LossGame:
        own = {"loss": "squared_error", "n_draws": 8, "random_state": seed}
        return LossGame(model, sampler, rows, target, **own)

    def values(data: Rows | None) -> Floats:
        rows, target = (X, y) if data is None else data
        return world.values(predictions, FEATURES, rows.to_numpy(), target)

    return Law("discrete network", sample, game, values)


def settings() -> tuple[list[Setting], list[Setting]]:
    """Return the settings for values of fixed rows, and for those of the population."""
    into_y = {("a", "y"): 1.0, ("b", "y"): -0.5, ("c", "y"): 0.7}
    chain = linear_law("chain", {("a", "b"): 0.8, ("b", "c"): -0.6} | into_y, "abcy")
    effect = {("a", "y"): 1.0, ("b", "y"): 0.5, ("y", "c"): 0.9, ("a", "b"): 0.6}
    through = linear_law("effect of the target", effect, "abyc")
    hidden = {("h", "a"): 1.0, ("h", "c"): 1.3, ("a", "b"): 0.8, ("b", "c"): 0.5} | into_y
    door = linear_law("hidden common cause", hidden, "habcy")
    discrete = discrete_law()
    never = {"exact": "never", "rows_per_ordering": 16, "stopping": NOrderings(66)}
    plain = never | {"first_level": "none"}
    all_ = {"exact": "always"}
    of_rows = [
        Setting(chain, 48, "sampled", never),
        Setting(chain, 48, "sampled, no first level", plain),
        Setting(chain, 48, "all", all_),
        Setting(through, 48, "sampled", never),
        Setting(door, 48, "sampled", never),
        Setting(discrete, 32, "all", all_),
    ]
    some = {"exact": "never", "rows_per_ordering": 50, "stopping": NOrderings(64)}
    of_all = [
        Setting(chain, 200, "sampled", some),
        Setting(through, 200, "all", all_),
        Setting(discrete, 120, "all", all_),
    ]
    return of_rows, of_all


def simulate(at: Setting, n_runs: int, *, has_new_rows: bool) -> list[list[str]]:
    """Return the lines of a setting: coverage, errors and bias of values and of both parts."""
    off, se, half = [], [], []
    data = at.law.sample(at.n_rows, np.random.default_rng(at.n_rows))
    truth = at.law.values(None if has_new_rows else data)
    for seed in range(n_runs):
        if has_new_rows:
            data = at.law.sample(at.n_rows, np.random.default_rng([seed, 1]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = run(at.law.game(*data, seed), random_state=seed, **at.options)
        parts = found.parts
        if parts is None:
            raise RuntimeError("causal values have parts")
        values = np.stack([found.values, *parts.values])
        errors, df = np.stack([found.se, *parts.se]), np.stack([found.df, *parts.df])
        if has_new_rows:
            errors = np.hypot(errors, np.stack([found.se_rows, *parts.se_rows]))
            df = np.full_like(errors, at.n_rows - 1.0)
        low, high = intervals(values.ravel(), errors.ravel(), df=df.ravel())
        off.append(values - truth)
        se.append(errors)
        half.append(((high - low) / 2).reshape(values.shape))
    label = [at.law.name, str(at.n_rows), at.words]
    arrays = np.array(off), np.array(se), np.array(half)
    return [
        [*label, name, *summarize(*(each[:, number] for each in arrays))]
        for number, name in enumerate(COLUMNS)
    ]


def summarize(off: Floats, se: Floats, half: Floats) -> list[str]:
    """Return runs, coverage, error / spread and bias, from arrays of shape (n_runs, n_values).

    Values that are exactly zero in every run, by rule, do not count.
    """
    spread = off.std(axis=0, ddof=1)
    varies = spread > 1e-9
    if not varies.any():
        return [str(len(off)), "exact", "-", "-"]
    off, se, half, spread = off[:, varies], se[:, varies], half[:, varies], spread[varies]
    covered = (np.abs(off) <= half + 1e-12).mean(axis=1)
    error = covered.std(ddof=1) / np.sqrt(len(off))
    ratio = np.sqrt((se**2).mean(axis=0)) / spread
    bias = np.abs(off.mean(axis=0) / spread).max() * np.sqrt(len(off))
    return [
        str(len(off)),
        f"{100 * covered.mean():.1f} -+ {100 * error:.1f}",
        f"{ratio.min():.2f} to {ratio.max():.2f}",
        f"{bias:.1f}",
    ]


FLOW_SLOPES = {"a": {}, "b": {"a": 0.8}, "c": {"a": 0.5, "b": -0.6}}
FLOW_WEIGHTS = {"a": 1.0, "b": 1.0, "c": 0.5}


def _flow_rows(n_rows: int, seed: Sequence[int]) -> tuple[pd.DataFrame, Floats]:
    rng = np.random.default_rng(seed)
    columns: dict[str, Floats] = {}
    for node, slopes in FLOW_SLOPES.items():
        noise = rng.normal(size=n_rows)
        columns[node] = noise + sum(slope * columns[p] for p, slope in slopes.items())
    X = pd.DataFrame(columns)
    return X, (X["a"] + X["b"] + rng.normal(size=n_rows)).to_numpy()


def _weigh(X: Any) -> Floats:  # noqa: ANN401
    return np.asarray(X) @ np.array(list(FLOW_WEIGHTS.values()))


def simulate_flows(sources: str, n_rows: int, n_runs: int) -> list[list[str]]:
    """Return the coverage of flows along edges, for the rows and for the population."""
    names, is_set = list(FLOW_SLOPES), sources == "do"
    train = _flow_rows(4000, [1])[0].to_numpy()
    edges = [(p, node) for node, slopes in FLOW_SLOPES.items() for p in slopes]
    graph = Graph([*names, "y"], [*edges, *((name, "y") for name in names)])
    network = Network(graph, names, "y", is_set=is_set)
    columns = [Column(each, False) for each in train.T]
    made = fit_mechanisms(columns, network.parents, has_order=[False] * 3, whole=[None] * 3)
    slopes, middle = _least_squares(train, names)
    exact = partial(_exact_flows, slopes=slopes, middle=middle, is_set=is_set)
    ends = [network.names(edge)[1:] for edge in network.listed]
    of_all = exact(*_flow_rows(200_000, [2]), ends=ends)
    loss, sampler = as_loss("squared_error"), Marginal().fit(train)
    off, se, off_all, se_all = [], [], [], []
    for seed in range(n_runs):
        X, y = _flow_rows(n_rows, [seed, 3])
        matrix = X.to_numpy()
        game = FlowGame(
            as_model(_weigh, loss), sampler, matrix, y, network=network, mechanisms=made,
            values=matrix, loss=loss, random_state=seed,
        )  # fmt: skip
        found = estimate_flow(game, NOrderings(24), seed=seed).edges
        off.append(found.values - exact(X, y, ends=ends))
        se.append(found.se)
        off_all.append(found.values - of_all)
        se_all.append(np.hypot(found.se, found.se_rows))
    # Twelve pairs of passes; rows.
    degrees = {"these rows": 11.0, "population": n_rows - 1.0}
    both = {"these rows": (off, se), "population": (off_all, se_all)}
    lines = []
    for name, lists in both.items():
        error, own = np.array(lists[0]), np.array(lists[1])
        half = [intervals(np.zeros(len(each)), each, df=degrees[name])[1] for each in own]
        lines.append([sources, str(n_rows), name, *summarize(error, own, np.array(half))])
    return lines


def _least_squares(
    train: Floats, names: Sequence[str]
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Return the slopes that the mechanisms learn, and the means of their noise."""
    slopes: dict[str, dict[str, float]] = {}
    middle: dict[str, float] = {}
    for at, (node, parents) in enumerate(FLOW_SLOPES.items()):
        x, y = train[:, [names.index(each) for each in parents]], train[:, at]
        found = np.linalg.lstsq(x - x.mean(axis=0), y - y.mean(), rcond=None)[0]
        slopes[node] = dict(zip(parents, found, strict=True))
        middle[node] = float(y.mean() - x.mean(axis=0) @ found)
    return slopes, middle


def _exact_flows(
    X: pd.DataFrame,
    y: Floats,
    *,
    slopes: dict[str, dict[str, float]],
    middle: dict[str, float],
    is_set: bool,
    ends: Sequence[tuple[str, str]],
) -> Floats:
    noise = {
        node: X[node].to_numpy() - sum(b * X[p].to_numpy() for p, b in own.items())
        for node, own in slopes.items()
    }
    found = flows.Linear(slopes, noise, middle, FLOW_WEIGHTS, y, is_set=is_set).flows()
    return np.array([found.get(each, 0.0) for each in ends])
