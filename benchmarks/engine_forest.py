"""Compare the time to an error for a forest with plain SAGE and the paper's algorithm.

Run: python -m benchmarks.engine
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cache
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

from benchmarks.table import markdown
from dsage import learn_graph
from dsage.datasets import paper_graph
from dsage.estimate import Estimate, NOrderings, Stopping, Tolerance, run
from dsage.games import LossGame
from dsage.games.base import Floats
from dsage.graphs.separation import Oracle
from dsage.samplers import Gaussian

Section = tuple[str, str]
SHARD = 64
Split = tuple[pd.DataFrame, pd.Series, pd.DataFrame, pd.Series]

PLAIN: dict[str, Any] = {
    "first_level": "none",
    "exact": "never",
    "orderings": "uniform",
    "audit": False,
}


@dataclass(frozen=True)
class Sizes:
    """Sizes of the benchmark: rows, trees, and orderings of the alternatives."""

    n_train: int = 8_000
    n_rows: int = 2_000
    n_trees: int = 100
    n_draws: int = 10
    tolerance: float = 0.01
    n_seeds: int = 6
    fippy_graph: str = "dag_m(2)"
    fippy_orderings: int = 1
    linear_orderings: int = 400
    sage_graphs: tuple[str, ...] = ("dag_sm(2)", "dag_sm(3)")
    plain_orderings: int = 9
    plain_passes: int = 2
    dsage_graphs: tuple[str, ...] = ("dag_s(2)", "dag_sm(2)", "dag_m(2)")
    skip_orderings: int = 17
    memory_rows: int = 20_000
    memory_budgets: tuple[int, ...] = (2**24, 2**26, 2**28)


TINY = Sizes(
    n_train=300,
    n_rows=100,
    n_trees=5,
    tolerance=0.2,
    n_seeds=3,
    fippy_graph="dag_s(2)",
    linear_orderings=20,
    sage_graphs=("dag_s(2)",),
    plain_orderings=3,
    dsage_graphs=("dag_s(2)",),
    skip_orderings=3,
    memory_rows=2_000,
    memory_budgets=(2**20, 2**22),
)


def split(name: str, sizes: Sizes) -> Split:
    """Return training and evaluation rows of one of the paper's models."""
    model = paper_graph(name)
    data = model.sample(sizes.n_train + sizes.n_rows, random_state=0)
    X, y = data.drop(columns=model.target), data[model.target]
    n = sizes.n_train
    return X.iloc[:n], y.iloc[:n], X.iloc[n:], y.iloc[n:]


class TimedForest(RandomForestRegressor):
    """A forest that measures the processor time of its predictions."""

    spent = 0.0

    def predict(self, X: pd.DataFrame) -> Floats:
        """Predict."""
        start = process_time()
        predicted: Floats = super().predict(X)
        self.spent += process_time() - start
        return predicted


@dataclass(frozen=True, eq=False)
class Problem:
    """A forest, rows to evaluate it on, a sampler, and a learned graph."""

    name: str
    forest: TimedForest
    X: pd.DataFrame
    y: pd.Series
    sampler: Gaussian
    oracle: Oracle
    seconds_learned: float


@dataclass(frozen=True, eq=False)
class Measurement:
    """A run, its processor time, and the time spent in the model."""

    problem: str
    way: str
    result: Estimate
    seconds: float
    inside: float
    n_predicted: int


@dataclass
class Log:
    """All runs, for the table of overheads."""

    runs: list[Measurement] = field(default_factory=list)


LOG = Log()


@cache
def problem(name: str, sizes: Sizes) -> Problem:
    """Fit a forest and learn a graph, both from the training rows."""
    X_train, y_train, X, y = split(name, sizes)
    forest = TimedForest(n_estimators=sizes.n_trees, min_samples_leaf=5, random_state=0)
    forest.fit(X_train, y_train)
    start = process_time()
    graph = learn_graph(X_train.assign(**{str(y_train.name): y_train}))
    oracle = graph.oracle(str(y_train.name), features=X.columns)
    learned = process_time() - start
    return Problem(name, forest, X, y, Gaussian().fit(X_train), oracle, learned)


def measure(
    at: Problem,
    way: str,
    stopping: Stopping,
    game: dict[str, Any],
    options: dict[str, Any],
    seed: int = 0,
) -> Measurement:
    """Construct a game and run it."""
    at.forest.spent = 0.0
    start = process_time()
    played = LossGame(at.forest, at.sampler, at.X, at.y, random_state=seed, **game)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run(played, stopping=stopping, random_state=seed, **options)
    took = process_time() - start
    done = Measurement(at.name, way, result, took, at.forest.spent, played.n_predicted)
    LOG.runs.append(done)
    return done


@dataclass(frozen=True)
class Extrapolation:
    """The cost of a run if it had reached a given error."""

    passes: float
    seconds: float
    seconds_by_sum: float


def extrapolate(done: Measurement, n_passes: float, reached: Floats) -> Extrapolation:
    """Extrapolate a run of some passes over the rows to given standard errors.

    With new draws in each pass, the variance is that of one pass divided by their number. The
    variance of one pass is that between orderings with the same draws, plus that of the draws.
    The estimate of the latter is a lower bound, because part of it may have averaged out already.
    """
    one = n_passes * done.result.se_orderings**2 + done.result.se_draws**2
    passes = float(one.max() / reached.max() ** 2)
    by_sum = float(one.sum() / (reached**2).sum())
    each = done.seconds / n_passes
    return Extrapolation(passes, passes * each, by_sum * each)


def draws(sizes: Sizes) -> dict[str, Any]:
    """Return options for independent draws."""
    return {"n_draws": sizes.n_draws, "n_replicates": sizes.n_draws, "noise": "independent"}


def percent(se: Floats, values: Floats) -> str:
    """Return the largest standard error as a share of the range."""
    return f"{100 * se.max() / np.ptp(values):.2f} %"


def fast_runs(at: Problem, estimand: str, sizes: Sizes) -> tuple[Floats, Floats, list[str]]:
    """Run dsage with several seeds; return mean values, standard errors, and table cells."""
    options = {"oracle": at.oracle, "estimand": estimand, "audit": False}
    rule = Tolerance(sizes.tolerance)
    runs = [measure(at, estimand, rule, {}, options, seed) for seed in range(sizes.n_seeds)]
    values = np.array([done.result.values for done in runs])
    se: Floats = np.sqrt(np.mean([done.result.se**2 for done in runs], axis=0))
    honesty = np.sqrt((se**2).sum() / values.var(axis=0, ddof=1).sum())
    seconds = [done.seconds + at.seconds_learned for done in runs]
    cells = [f"{np.mean(seconds):.2f}", f"{min(seconds):.1f} to {max(seconds):.1f}"]
    cells += [f"{np.mean([done.n_predicted for done in runs]) / 1e3:,.0f}"]
    return values.mean(axis=0), se, [*cells, percent(se, values.mean(axis=0)), f"{honesty:.2f}"]


def forest_rows(sizes: Sizes, estimand: str) -> list[list[str]]:
    """Compare the time to an error with plain SAGE, or with the paper's algorithm."""
    table = []
    for name in sizes.sage_graphs if estimand == "sage" else sizes.dsage_graphs:
        at = problem(name, sizes)
        values, se, cells = fast_runs(at, estimand, sizes)
        n_shards = -(-len(at.X) // SHARD)
        kind, n_orderings = "plain", sizes.plain_orderings
        options = PLAIN
        if estimand == "d-sage":
            kind, n_orderings = "skip", sizes.skip_orderings
            options = PLAIN | {"oracle": at.oracle, "semantics": "skip"}
        whole = options | {"rows_per_ordering": len(at.X)}
        rivals = [
            (f"{kind}, all rows", whole, n_orderings, 1),
            (
                f"{kind}, {SHARD} rows",
                options | {"rows_per_ordering": SHARD},
                sizes.plain_passes * n_shards,
                n_shards,
            ),
        ]
        for way, rival, n_done, n_parts in rivals:
            slow = measure(at, way, NOrderings(n_done), draws(sizes), rival)
            n_passes = slow.result.n_orderings / n_parts
            needed = extrapolate(slow, n_passes, se)
            ours = float(cells[0])
            off = ((slow.result.values - values) ** 2).sum()
            both = (slow.result.se**2 + se**2 / sizes.n_seeds).sum()
            line = [name, way, *cells, f"{n_passes:.1f}", f"{slow.seconds:.0f}"]
            line += [percent(slow.result.se, values), f"{needed.passes:,.0f}"]
            line += [f"{needed.seconds:,.0f}", f"{needed.seconds / ours:,.0f} x"]
            line += [
                f"{needed.seconds_by_sum / ours:,.0f} x",
                f"{np.sqrt(off / both):.1f}",
            ]
            table.append(line)
    return table


HEADER = [
    *("graph", "against", "dsage, s", "shortest to longest", "thousand predictions", "error"),
    *("error / spread", "passes run", "in s", "its error", "passes needed", "in s"),
    *("ratio", "by sum", "differs by"),
]


def about_forest(sizes: Sizes, what: str) -> str:
    """Describe the tables of forests."""
    return (
        f"{what} A random forest of {sizes.n_trees} trees (`min_samples_leaf=5`) with "
        f"{sizes.n_train:,} training rows and {sizes.n_rows:,} evaluation rows. The first columns "
        "show the processor time of dsage on one thread until the largest standard error "
        f"(orderings and draws) is {100 * sizes.tolerance:g} % of the range, averaged over "
        f"{sizes.n_seeds} seeds and including the time to learn the graph from the training rows. "
        "*Error / spread* is the ratio of the standard errors to the standard deviation over "
        "seeds; ideally it is 1. The rival runs in the same loop with uniform orderings, no first "
        f"level and {sizes.n_draws} independent draws, for a few passes over the rows (one pass is "
        f"an ordering evaluated on all rows), with all rows or shards of {SHARD} rows per "
        "ordering. The passes and the time it needs to reach the same error are **extrapolated**: "
        "the variance is inversely proportional to the number of passes, each with new draws. "
        "With few passes, the largest of several errors tends to be overestimated; therefore *by "
        "sum* compares the times to reach the same sum of squared errors. *Differs by* is the "
        "difference between the rival's values and our mean values in standard errors of both, as "
        "root of the sums of squares over features; it is about 1 if both estimate the same."
    )


def sage(sizes: Sizes) -> list[Section]:
    """Compare SAGE with plain SAGE."""
    return [(about_forest(sizes, "**SAGE.**"), markdown(HEADER, forest_rows(sizes, "sage")))]


def dsage(sizes: Sizes) -> list[Section]:
    """Compare d-SAGE with the paper's algorithm."""
    what = '**d-SAGE** and the paper\'s Algorithm 1 (`semantics="skip"`) with the same graph.'
    return [(about_forest(sizes, what), markdown(HEADER, forest_rows(sizes, "d-sage")))]


def overhead() -> list[Section]:
    """Compare the time of the runs with the time spent in the model."""
    table = []
    for key in dict.fromkeys((done.problem, done.way) for done in LOG.runs):
        runs = [done for done in LOG.runs if (done.problem, done.way) == key]
        took, inside = (sum(getattr(run, name) for run in runs) for name in ("seconds", "inside"))
        each = 1e6 * inside / sum(done.n_predicted for done in runs)
        table.append([*key, f"{took:.2f}", f"{inside:.2f}", f"{took / inside:.3f}", f"{each:.1f}"])
    text = "Overhead: ratio of the processor time of the runs above to that of `forest.predict`."
    header = ["graph", "way", "s", "inside predict, s", "ratio", "µs per prediction"]
    return [(text, markdown(header, table))]
