"""Simulate the coverage of both 95 % intervals under the default stopping rule.

Run: python -m benchmarks.default_coverage [--runs N] [--only NAME ...] [--keep FOLDER] [--tiny]

Each line is stored in a file in the folder --keep, and not measured again; the page has the lines
that are there, and names those that are missing. Every run has new rows, orderings and draws, and
stops when the error from computing is small compared with the error from the rows, or at a
tolerance.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import factorial
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.losses import Cells, Logistic, classes_of
from benchmarks.table import markdown, publish
from dsage.estimate import Estimate, as_stopping, intervals, run
from dsage.games import Game, Grouped, LossGame
from dsage.games.base import Floats
from dsage.models import as_loss
from dsage.samplers import Gaussian

Rows = tuple[Floats, Any]
NAMES = ("x0", "x1", "x2", "x3")
# Rows from which the values of the population are computed, and rows at once.
N_POPULATION, N_AT_ONCE = 1_000_000, 100_000


@dataclass(frozen=True)
class Case:
    """A model of independent standard normals: how it is made, its rows, its loss, its players."""

    make: Callable[[], Any]
    sample: Callable[[Any, int, np.random.Generator], Rows]
    loss: str
    n_rows: int
    groups: tuple[tuple[int, ...], ...] = ((0,), (1,), (2,), (3,))

    @cached_property
    def model(self) -> Any:  # noqa: ANN401
        """The model, fitted to rows of its own."""
        return self.make()

    def rows(self, n_rows: int, seed: int | Sequence[int]) -> Rows:
        """Return new rows and targets."""
        return self.sample(self.model, n_rows, np.random.default_rng(seed))

    def game(self, rows: Rows, seed: int) -> Game:
        """Return the game of some rows, with a perfect sampler."""
        d = self.model.n_features
        sampler = Gaussian.from_moments(np.zeros(d), np.eye(d), names=NAMES[:d])
        predict = self.model if self.loss == "cross_entropy" else _first_output(self.model)
        X, y = rows
        X = pd.DataFrame(X, columns=NAMES[:d])
        game = LossGame(predict, sampler, X, y, loss=self.loss, random_state=seed)
        if all(len(group) == 1 for group in self.groups):
            return game
        return Grouped(game, {str(g): [NAMES[j] for j in g] for g in self.groups})

    def values(self, rows: Rows) -> Floats:
        """Return the exact values of rows."""
        X, y = rows
        loss, n_players = as_loss(self.loss), len(self.groups)
        risks = {}
        for members in product((False, True), repeat=n_players):
            known = np.zeros(X.shape[1], dtype=np.bool_)
            for group, is_known in zip(self.groups, members, strict=True):
                known[list(group)] = is_known
            expected = self.model(X) if known.all() else self.model.expected(X, known)
            is_of_classes = self.loss == "cross_entropy"
            losses = loss(y, expected if is_of_classes else expected[:, 0])
            risks[members] = float(losses.mean())
        return shapley(risks, n_players)

    @cached_property
    def population(self) -> Floats:
        """The values of the population."""
        parts = range(N_POPULATION // N_AT_ONCE)
        return np.mean([self.values(self.rows(N_AT_ONCE, [part, 7])) for part in parts], axis=0)


def shapley(risks: dict[tuple[bool, ...], float], n_players: int) -> Floats:
    """Return the average over all orderings of the surpluses of risks."""
    values = np.zeros(n_players)
    for members, risk in risks.items():
        size = sum(members)
        for j in np.flatnonzero(~np.array(members)):
            larger = tuple(member or k == j for k, member in enumerate(members))
            weight = factorial(size) * factorial(n_players - size - 1) / factorial(n_players)
            values[j] += weight * (risk - risks[larger])
    return values


def _first_output(model: Cells) -> Callable[[Any], Floats]:
    return lambda X: model(X)[:, 0]


def _classes(model: Any, n_rows: int, rng: np.random.Generator) -> Rows:  # noqa: ANN401, ARG001
    X = rng.normal(size=(n_rows, 4))
    return X, classes_of(X, 2, rng)


def _logistic_classes(model: Logistic, n_rows: int, rng: np.random.Generator) -> Rows:
    X = rng.normal(size=(n_rows, 3))
    return X, (rng.random(n_rows) < model(X)[:, 1]).astype(np.intp)


def _curve(X: Floats) -> Floats:
    found: Floats = 2 * X[:, 0] + 1.5 * X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3])
    return found


def _numbers(model: Any, n_rows: int, rng: np.random.Generator) -> Rows:  # noqa: ANN401, ARG001
    X = rng.normal(size=(n_rows, 4))
    return X, _curve(X) + rng.normal(size=n_rows)


def _heavy(model: Any, n_rows: int, rng: np.random.Generator) -> Rows:  # noqa: ANN401, ARG001
    X = rng.normal(size=(n_rows, 4))
    return X, _curve(X) + rng.standard_t(3, size=n_rows)


def _classifier(model: Any) -> Callable[[], Cells]:  # noqa: ANN401
    """Return a function that fits a classifier to 2,000 rows."""

    def make() -> Cells:
        X, y = _classes(None, 2_000, np.random.default_rng(0))
        return Cells(model.fit(X, y), 4)

    return make


class _Probabilities:
    """A fitted regressor with the method that :class:`Cells` asks for."""

    def __init__(self, model: RandomForestRegressor) -> None:
        self._model = model

    def predict_proba(self, X: Floats) -> Floats:
        found: Floats = self._model.predict(X)[:, None]
        return found


def _regressor() -> Cells:
    X, y = _numbers(None, 2_000, np.random.default_rng(0))
    forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(X, y)
    return Cells(_Probabilities(forest), 4)


_FOREST = _classifier(RandomForestClassifier(100, min_samples_leaf=5, random_state=0))
_BOOSTING = _classifier(HistGradientBoostingClassifier(max_iter=50, random_state=0))
_PAIRS = ((0, 1), (2,), (3,))

CASES = {
    "forest, squared error, 300 rows": Case(_regressor, _numbers, "squared_error", 300),
    "forest, squared error, 40 rows": Case(_regressor, _numbers, "squared_error", 40),
    "forest, heavy tails (t, 3 df), 300 rows": Case(_regressor, _heavy, "squared_error", 300),
    "forest, groups, 300 rows": Case(_regressor, _numbers, "squared_error", 300, _PAIRS),
    "forest, cross entropy, 300 rows": Case(_FOREST, _classes, "cross_entropy", 300),
    "boosting, cross entropy, 300 rows": Case(_BOOSTING, _classes, "cross_entropy", 300),
    "boosting, cross entropy, 40 rows": Case(_BOOSTING, _classes, "cross_entropy", 40),
    "logistic, cross entropy, 300 rows": Case(
        Logistic, _logistic_classes, "cross_entropy", 300, ((0,), (1,), (2,))
    ),
}
"""The cases by name."""
WAYS = ("auto", "never", "1 %", "0.5 %")
"""Whether all orderings may be averaged over, or a tolerance with sampled orderings."""
TO_TOLERANCE = ("boosting, cross entropy, 300 rows", "forest, squared error, 300 rows")
"""Cases that are run to tolerances, too, where features whose errors are small are left out."""
LINES = [
    (name, way)
    for name, way in product(CASES, WAYS)
    if way in ("auto", "never") or name in TO_TOLERANCE
]
"""The lines of the table."""


@dataclass(frozen=True, eq=False)
class Run:
    """What a run found, and the exact values of its rows."""

    found: Estimate
    exact: Floats


def simulate(case: Case, n_runs: int, **options: Any) -> Iterator[Run]:  # noqa: ANN401
    """Yield runs with rows of their own."""
    for seed in range(n_runs):
        rows = case.rows(case.n_rows, [seed, 1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = run(case.game(rows, seed), random_state=seed, **options)
        yield Run(found, case.values(rows))


def _coverage(shares: Sequence[float]) -> str:
    found = 100 * np.array(shares)
    return f"{found.mean():.1f} -+ {found.std(ddof=1) / np.sqrt(len(found)):.1f}"


def _options(way: str) -> dict[str, Any]:
    """Return the options of a run."""
    if way in ("auto", "never"):
        return {"exact": way}
    tolerance = float(way.removesuffix(" %")) / 100
    return {"exact": "never", "stopping": as_stopping(tolerance=tolerance)}


def _share_evaluated(found: Estimate, case: Case) -> float:
    """Return the evaluations of a run as a share of those of all features on its orderings."""
    if found.is_exact:
        return 1.0
    n_shards = -(-case.n_rows // 64)
    every = found.n_surpluses * (len(case.groups) + 1) * case.n_rows / n_shards
    return (found.n_evaluated + found.n_shared) / every


def line_of(name: str, way: str, n_runs: int) -> list[str]:
    """Return a line of the table."""
    case = CASES[name]
    of_rows, of_all, computing, rows, n_units, shares = [], [], [], [], [], []
    for each in simulate(case, n_runs, **_options(way)):
        found = each.found
        low, high = intervals(found.values, found.se, df=found.df)
        of_rows.append(((low <= each.exact) & (each.exact <= high)).mean())
        low, high = intervals(found.values, found.se_total)
        of_all.append(((low <= case.population) & (case.population <= high)).mean())
        span = case.population.max()
        computing.append(100 * found.se.max() / span)
        rows.append(100 * found.se_rows.max() / span)
        n_units.append(found.n_units)
        shares.append(_share_evaluated(found, case))
    words = {"auto": "all or sampled", "never": "sampled"}
    return [
        name,
        words.get(way, f"sampled, to {way}"),
        str(n_runs),
        _coverage(of_rows),
        _coverage(of_all),
        f"{np.mean(computing):.1f}",
        f"{np.mean(rows):.1f}",
        f"{np.mean(n_units):.0f}",
        f"{100 * np.mean(shares):.0f}",
    ]


def file_of(name: str, way: str, n_runs: int, folder: Path) -> Path:
    """Return the file of a line."""
    return folder / f"{list(CASES).index(name)}-{way.replace(' %', '')}-{n_runs}.json"


def kept_line(name: str, way: str, n_runs: int, folder: Path) -> list[str]:
    """Return a line of the table: from its file, or measured."""
    file = file_of(name, way, n_runs, folder)
    if not file.exists():
        found = line_of(name, way, n_runs)
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found))
    line: list[str] = json.loads(file.read_text())
    return line


TEXT = (
    "Independent standard normal features and models that are constant on cells (a logistic curve: "
    "integrated numerically), so that the sampler is perfect and exact values are known, of the "
    "rows and of the population (from 1,000,000 rows). Every run has new rows, orderings and "
    "draws, and stops by the default rule: each standard error from computing is at most a third "
    "of that from the rows, or 1 % of the range. *Coverage*: the share of runs and features whose "
    "95 % interval contains the exact value, -+ its standard error over runs: of the run's own "
    "rows (`se`), and of the population (`se_total`). *se*: the mean of the largest standard "
    "error, in % of the largest value. Lines *to* a percentage stop at this tolerance instead. "
    "*Evaluated*: pairs of a coalition and a row, in % of what the surpluses of all features along "
    "these orderings take; less than 100 % if features whose errors were small enough were left "
    "out (and the losses with all features known count)."
)
HEADER = [
    "model, loss and rows",
    "orderings",
    "runs",
    "coverage, these rows, %",
    "coverage, population, %",
    "se of computing, %",
    "se of rows, %",
    "units",
    "evaluated, %",
]


def main() -> None:
    """Simulate and publish."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=200, help="runs per setting")
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=WAYS)
    parser.add_argument("--keep", type=Path, default=Path(gettempdir()) / "dsage-coverage")
    parser.add_argument("--tiny", action="store_true", help="few runs, for a trial")
    given = parser.parse_args()
    n_runs = 4 if given.tiny else given.runs
    with threadpool_limits(1):
        for name, way in LINES:
            if name in given.only and way in given.ways:
                print("|", " | ".join(kept_line(name, way, n_runs, given.keep)), "|", flush=True)
    if given.tiny:
        return
    files = {line: file_of(*line, n_runs, given.keep) for line in LINES}
    table = [json.loads(file.read_text()) for file in files.values() if file.exists()]
    missing = [f"{name} ({way})" for (name, way), file in files.items() if not file.exists()]
    text = TEXT + (f" Not measured: {'; '.join(missing)}." if missing else "")
    sections = [(text, markdown(HEADER, table))]
    packages = ["dsage", "numpy", "scipy", "scikit-learn"]
    publish("default_coverage", "The default rule: coverage of intervals", sections, packages)


if __name__ == "__main__":
    main()
