"""A forest: the time to an error against plain orderings and the paper's algorithm, and overhead.

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
BLOCK = 64
Split = tuple[pd.DataFrame, pd.Series, pd.DataFrame, pd.Series]

PLAIN: dict[str, Any] = {
    "first_level": "none",
    "exact": "never",
    "orderings": "uniform",
    "audit": False,
}


@dataclass(frozen=True)
class Sizes:
    """How much is measured: rows, trees, and the orderings of what we compare with."""

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
    """Return rows of one of the paper's models: for training, and for evaluation."""
    model = paper_graph(name)
    data = model.sample(sizes.n_train + sizes.n_rows, random_state=0)
    X, y = data.drop(columns=model.target), data[model.target]
    n = sizes.n_train
    return X.iloc[:n], y.iloc[:n], X.iloc[n:], y.iloc[n:]


class TimedForest(RandomForestRegressor):
    """A forest that counts the processor time of its predictions."""

    spent = 0.0

    def predict(self, X: pd.DataFrame) -> Floats:
        """Predict."""
        start = process_time()
        predicted: Floats = super().predict(X)
        self.spent += process_time() - start
        return predicted


@dataclass(frozen=True, eq=False)
class Problem:
    """A forest, rows to evaluate it on, a sampler, and a graph that was learned."""

    name: str
    forest: TimedForest
    X: pd.DataFrame
    y: pd.Series
    sampler: Gaussian
    oracle: Oracle
    seconds_learned: float


@dataclass(frozen=True, eq=False)
class Measured:
    """A run, its processor time, and how much of it the model took."""

    problem: str
    way: str
    result: Estimate
    seconds: float
    inside: float
    n_predicted: int


@dataclass
class Log:
    """Every run, for the table of overheads."""

    runs: list[Measured] = field(default_factory=list)


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


def measured(
    at: Problem,
    way: str,
    stopping: Stopping,
    game: dict[str, Any],
    options: dict[str, Any],
    seed: int = 0,
) -> Measured:
    """Make a game and run it."""
    at.forest.spent = 0.0
    start = process_time()
    played = LossGame(at.forest, at.sampler, at.X, at.y, random_state=seed, **game)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run(played, stopping=stopping, random_state=seed, **options)
    took = process_time() - start
    done = Measured(at.name, way, result, took, at.forest.spent, played.n_predicted)
    LOG.runs.append(done)
    return done


@dataclass(frozen=True)
class Extrapolated:
    """What a run would have needed to reach an error."""

    passes: float
    seconds: float
    seconds_by_sum: float


def extrapolated(done: Measured, n_passes: float, reached: Floats) -> Extrapolated:
    """Extrapolate a run of some passes over the rows to standard errors that others reached.

    With fresh draws in each pass the variance is that of one pass over their number. The variance
    of one is that between orderings with the same draws, plus that of the draws, of which what is
    known is a lower bound: part of it may have averaged out already.
    """
    one = n_passes * done.result.se_orderings**2 + done.result.se_draws**2
    passes = float(one.max() / reached.max() ** 2)
    by_sum = float(one.sum() / (reached**2).sum())
    each = done.seconds / n_passes
    return Extrapolated(passes, passes * each, by_sum * each)


def draws(sizes: Sizes) -> dict[str, Any]:
    """Return the options of independent draws."""
    return {"n_draws": sizes.n_draws, "n_replicates": sizes.n_draws, "noise": "independent"}


def percent(se: Floats, values: Floats) -> str:
    """Return the largest standard error as a share of the range."""
    return f"{100 * se.max() / np.ptp(values):.2f} %"


def fast_runs(at: Problem, estimand: str, sizes: Sizes) -> tuple[Floats, Floats, list[str]]:
    """Run our way with several seeds; return mean values, their errors, and cells of the table."""
    options = {"oracle": at.oracle, "estimand": estimand, "audit": False}
    rule = Tolerance(sizes.tolerance)
    runs = [measured(at, estimand, rule, {}, options, seed) for seed in range(sizes.n_seeds)]
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
        n_blocks = -(-len(at.X) // BLOCK)
        kind, n_orderings = "plain", sizes.plain_orderings
        options = PLAIN
        if estimand == "d-sage":
            kind, n_orderings = "skip", sizes.skip_orderings
            options = PLAIN | {"oracle": at.oracle, "semantics": "skip"}
        whole = options | {"rows_per_ordering": len(at.X)}
        rivals = [
            (f"{kind}, all rows", whole, n_orderings, 1),
            (
                f"{kind}, {BLOCK} rows",
                options | {"rows_per_ordering": BLOCK},
                sizes.plain_passes * n_blocks,
                n_blocks,
            ),
        ]
        for way, rival, n_done, n_parts in rivals:
            slow = measured(at, way, NOrderings(n_done), draws(sizes), rival)
            n_passes = slow.result.n_orderings / n_parts
            needed = extrapolated(slow, n_passes, se)
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
    *("graph", "against", "dsage, s", "least to most", "thousand predictions", "error"),
    *("error / spread", "passes run", "in s", "its error", "passes needed", "in s"),
    *("ratio", "by sum", "differs by"),
]


def about_forest(sizes: Sizes, what: str) -> str:
    """Say what the tables of forests hold."""
    return (
        f"{what} A random forest of {sizes.n_trees} trees (`min_samples_leaf=5`), {sizes.n_train:,}"
        f" training rows, {sizes.n_rows:,} evaluation rows; the graph is learned from the training "
        "rows, and that time included. Processor seconds on one thread until the largest standard "
        f"error (orderings and draws) is {100 * sizes.tolerance:g} % of the range, mean of "
        f"{sizes.n_seeds} seeds; *error / spread* compares the standard errors with the standard "
        "deviation over seeds: 1 is right. The rival runs in the same loop, with uniform "
        f"orderings, no levels, and {sizes.n_draws} independent draws, for a few passes over the "
        f"rows (an ordering of all rows is one), on all rows or on blocks of {BLOCK}. What it "
        "needs to reach the same error is **extrapolated**: variances fall with one over the "
        "passes, and every pass gets fresh draws. The largest of several errors from few passes "
        "is rather too large; *by sum* compares the times to the same sum of "
        "squared errors instead. *Differs by*: the values of the rival less the mean of ours, in "
        "standard errors of both, as roots of sums of squares over features: about 1 where both "
        "estimate the same."
    )


def sage(sizes: Sizes) -> list[Section]:
    """Compare SAGE with plain orderings."""
    return [(about_forest(sizes, "**SAGE.**"), markdown(HEADER, forest_rows(sizes, "sage")))]


def dsage(sizes: Sizes) -> list[Section]:
    """Compare d-SAGE with the paper's algorithm."""
    what = '**d-SAGE**, against the paper\'s Algorithm 1 (`semantics="skip"`) with the same graph.'
    return [(about_forest(sizes, what), markdown(HEADER, forest_rows(sizes, "d-sage")))]


def overhead() -> list[Section]:
    """Compare the time of the runs above with what the model took of it."""
    table = []
    for key in dict.fromkeys((done.problem, done.way) for done in LOG.runs):
        runs = [done for done in LOG.runs if (done.problem, done.way) == key]
        took, inside = (sum(getattr(run, name) for run in runs) for name in ("seconds", "inside"))
        each = 1e6 * inside / sum(done.n_predicted for done in runs)
        table.append([*key, f"{took:.2f}", f"{inside:.2f}", f"{took / inside:.3f}", f"{each:.1f}"])
    text = "Overhead: processor time of the runs above over the time inside `forest.predict`."
    header = ["graph", "way", "s", "inside predict, s", "ratio", "microseconds a prediction"]
    return [(text, markdown(header, table))]
