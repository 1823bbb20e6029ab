"""Measure bias and coverage for each loss, on problems with known exact values.

Run: python -m benchmarks.losses [--part NAME ...] [--runs N] [--tiny]

Each part stores its figures in its own file in the folder --keep. Without --part, parts without a
file are measured, and the page is written from all of them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import factorial
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.table import markdown, publish
from dsage.estimate import as_stopping, intervals, run
from dsage.games import LossGame
from dsage.games.base import Floats
from dsage.models import as_loss
from dsage.samplers import Gaussian

N_ROWS = {"normals": 300, "forests": 64}
# Intervals of equal probability of each feature, on which a forest is constant.
LEVELS = 24


class Cells:
    """A forest of independent normal features as a table: exact expectations are sums over cells.

    The forest is evaluated at the median of each cell.
    """

    def __init__(self, forest: RandomForestClassifier, n_features: int) -> None:
        self.n_features = n_features
        self._edges = norm.ppf(np.arange(1, LEVELS) / LEVELS)
        middle = norm.ppf((np.arange(LEVELS) + 0.5) / LEVELS)
        grid = np.stack(np.meshgrid(*[middle] * n_features, indexing="ij"), axis=-1)
        shape = (*[LEVELS] * n_features, -1)
        self._table = forest.predict_proba(grid.reshape(-1, n_features)).reshape(shape)

    def __call__(self, X: npt.ArrayLike) -> Floats:
        """Return probabilities (n_rows, n_classes)."""
        found: Floats = self._table[self._cells(X)]
        return found

    def _cells(self, X: npt.ArrayLike) -> tuple[npt.NDArray[np.intp], ...]:
        return tuple(np.searchsorted(self._edges, np.asarray(X, dtype=np.float64)).T)

    def expected(self, X: Floats, known: npt.NDArray[np.bool_]) -> Floats:
        """Return ``E[f(X) | x_S]``."""
        mean = self._table.mean(axis=tuple(np.flatnonzero(~known).tolist()))
        cells = self._cells(X)
        at = tuple(cells[j] for j in np.flatnonzero(known))
        rows: Floats = mean[at] if at else np.broadcast_to(mean, (len(X), len(mean)))
        return rows


class Logistic:
    """The probabilities ``expit(4 (x0 + x1 + x2))`` of independent normals."""

    n_features = 3

    def __call__(self, X: npt.ArrayLike) -> Floats:
        """Return probabilities (n_rows, 2)."""
        second = expit(4.0 * np.asarray(X, dtype=np.float64).sum(axis=1))
        return np.stack((1.0 - second, second), axis=1)

    def expected(self, X: Floats, known: npt.NDArray[np.bool_]) -> Floats:
        """Return ``E[f(X) | x_S]``, by numerical integration."""
        points, weights = np.polynomial.hermite_e.hermegauss(201)
        spread = np.sqrt(float((~known).sum())) * points
        score = X[:, known].sum(axis=1)[:, None] + spread
        second = expit(4.0 * score) @ (weights / weights.sum())
        return np.stack((1.0 - second, second), axis=1)


@dataclass(frozen=True)
class Problem:
    """A model of independent standard normals, and how it was made."""

    title: str
    make: Callable[[], Cells | Logistic]
    n_classes: int = 2

    @cached_property
    def model(self) -> Cells | Logistic:
        """The model."""
        return self.make()

    @cached_property
    def rows(self) -> tuple[Floats, npt.NDArray[np.intp], Floats]:
        """Rows, their classes, and numbers near the probability of the last class."""
        if isinstance(self.model, Logistic):
            rng = np.random.default_rng(0)
            X = rng.normal(size=(N_ROWS["normals"], 3))
            y = (rng.random(len(X)) < self.model(X)[:, 1]).astype(np.intp)
        else:
            rng = np.random.default_rng(5)
            X = rng.normal(size=(N_ROWS["forests"], 4))
            y = classes_of(X, self.n_classes, rng)
        return X, y, self.model(X)[:, -1] + 0.3 * rng.normal(size=len(X))


def classes_of(X: Floats, n_classes: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Draw classes that depend on four features, with two interactions."""
    scores = np.zeros((len(X), n_classes))
    scores[:, 0] = 2 * X[:, 0] + 1.5 * X[:, 1] * X[:, 2] + X[:, 3]
    if n_classes == 3:
        scores[:, 1] = 1.5 * X[:, 1] - X[:, 2] * X[:, 0] + X[:, 3]
    noisy = scores + rng.gumbel(size=scores.shape)
    return noisy.argmax(axis=1)


def forest(n_classes: int, **options: int) -> Callable[[], Cells]:
    """Return a function that fits a forest to 2,000 rows of four features."""

    def make() -> Cells:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(2_000, 4))
        y = classes_of(X, n_classes, rng)
        return Cells(RandomForestClassifier(random_state=0, **options).fit(X, y), 4)

    return make


PROBLEMS = {
    "normals": Problem("independent normals", Logistic),
    "forest 2": Problem("forest, 2 classes", forest(2, min_samples_leaf=5)),
    "forest 3": Problem("forest, 3 classes", forest(3, min_samples_leaf=5), 3),
    "sharp 2": Problem("forest that answers 0 and 1, 2 classes", forest(2, n_estimators=20)),
    "sharp 3": Problem("forest that answers 0 and 1, 3 classes", forest(3, n_estimators=20), 3),
}
NUMBERS = ("squared_error", "absolute_error", "pinball(0.8)")


@dataclass(frozen=True)
class Setting:
    """What to measure: a loss in a problem, to a tolerance."""

    problem: str
    loss: str
    tolerance: float
    runs: float = 1.0
    n_draws: int | None = None

    @property
    def draws(self) -> int:
        """Draws for each risk."""
        return self.n_draws or as_loss(self.loss).n_draws(self.tolerance)


def settings() -> dict[str, list[Setting]]:
    """Return the settings, in parts that take a few minutes each."""
    of: dict[str, list[Setting]] = {}
    for tolerance, percent in ((0.02, "2"), (0.005, "0.5")):
        for problem in PROBLEMS:
            of[f"cross_entropy {problem} {percent}"] = [
                Setting(problem, "cross_entropy", tolerance)
            ]
        of[f"others {percent}"] = [
            Setting(problem, loss, tolerance)
            for problem in ("normals", "forest 3")
            for loss in ("squared_error", "brier", "linear")
        ]
        of[f"kinked {percent}"] = [
            Setting(problem, loss, tolerance)
            for problem in ("normals", "forest 2")
            for loss in ("absolute_error", "pinball(0.8)")
        ]
    of["few draws"] = [
        Setting("normals", "cross_entropy", 0.02, n_draws=8),
        Setting("forest 3", "absolute_error", 0.02, n_draws=8),
        Setting("forest 3", "zero_one", 0.02, n_draws=8),
    ]
    of["zero_one"] = [
        Setting("forest 2", "zero_one", 0.02),
        Setting("forest 3", "zero_one", 0.02),
        Setting("normals", "zero_one", 0.05, runs=0.25),
    ]
    return of


def play(at: Setting, seed: int) -> LossGame:
    """Return the game of a setting."""
    problem = PROBLEMS[at.problem]
    X, y, numbers = problem.rows
    d = problem.model.n_features
    sampler = Gaussian.from_moments(np.zeros(d), np.eye(d))
    is_of_numbers = at.loss in NUMBERS
    model: Callable[..., Floats] = problem.model
    if is_of_numbers:
        model = lambda Z: problem.model(Z)[:, -1]  # noqa: E731
    target = numbers if is_of_numbers else y
    return LossGame(model, sampler, X, target, loss=at.loss, n_draws=at.draws, random_state=seed)


def exact_values(at: Setting) -> Floats:
    """Return the exact values of the rows of a setting."""
    problem, loss = PROBLEMS[at.problem], as_loss(at.loss)
    X, y, numbers = problem.rows
    d = problem.model.n_features
    risks = {}
    for members in product((False, True), repeat=d):
        known = np.array(members)
        expected = problem.model(X) if known.all() else problem.model.expected(X, known)
        is_of_numbers = at.loss in NUMBERS
        losses = loss(numbers, expected[:, -1]) if is_of_numbers else loss(y, expected)
        risks[members] = float(losses.mean())
    values = np.zeros(d)
    for members, risk in risks.items():
        weight = (
            factorial(sum(members)) * factorial(d - sum(members) - 1) if not all(members) else 0
        )
        for j in np.flatnonzero(~np.array(members)):
            larger = tuple(member or k == j for k, member in enumerate(members))
            values[j] += weight / factorial(d) * (risk - risks[larger])
    return values


def measure(at: Setting, n_runs: int) -> list[str]:
    """Return a line of the table: bias, coverage and cost."""
    exact = exact_values(at)
    span = np.ptp(exact)
    off, covered, se, n_predicted = [], [], [], []
    rule = as_stopping(tolerance=at.tolerance)
    for seed in range(max(2, round(at.runs * n_runs))):
        game = play(at, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = run(game, stopping=rule, random_state=seed)
        low, high = intervals(found.values, found.se, df=found.df)
        off.append(found.values - exact)
        covered.append(((low <= exact) & (exact <= high)).mean())
        se.append(found.se)
        n_predicted.append(game.n_predicted)
    errors = np.array(off)
    bias = errors.mean(axis=0)
    worst = int(np.abs(bias).argmax())
    error = errors.std(axis=0, ddof=1)[worst] / np.sqrt(len(off))
    share = np.array(covered)
    return [
        at.loss,
        PROBLEMS[at.problem].title,
        f"{100 * at.tolerance:g}",
        str(at.draws),
        str(len(off)),
        f"{100 * bias[worst] / span:+.2f} -+ {100 * error / span:.2f}",
        f"{100 * share.mean():.1f} -+ {100 * share.std(ddof=1) / np.sqrt(len(share)):.1f}",
        f"{100 * np.max(se, axis=1).mean() / span:.2f}",
        f"{np.mean(n_predicted) / 1e6:.2f}",
    ]


def lines_of(part: str, n_runs: int, folder: Path) -> list[list[str]]:
    """Return the lines of a part: from its file, or measured."""
    file = folder / f"{part.replace(' ', '_')}.json"
    if file.exists():
        kept: list[list[str]] = json.loads(file.read_text())
        return kept
    found = []
    for at in settings()[part]:
        start = time.process_time()
        found.append(measure(at, n_runs))
        print("|", " | ".join(found[-1]), "|", f"{time.process_time() - start:.0f} s", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found))
    return found


TEXT = (
    "Independent standard normal features, so that the sampler is perfect and the exact values of "
    f"the rows are known. *Independent normals*: {N_ROWS['normals']} rows of three features, "
    f"`p = expit(4 (x0 + x1 + x2))`. *Forests*: {N_ROWS['forests']} rows of four features, two or "
    "three classes, 100 trees with leaves of five rows, or 20 trees with leaves of one, which "
    "answer 0 and 1. Default options, by which all orderings of so few features are averaged over; "
    "the number of draws is the default for the loss and the tolerance, except in lines marked "
    "with *. *Bias*: the mean error of the feature where it is largest, in % of the range of the "
    "values, -+ its standard error. *Coverage* of the 95 % intervals, over runs and features, -+ "
    "its standard error over runs. *se*: the mean of the largest standard error, in % of the "
    "range; for losses with kinks or jumps it includes the bias that few draws may leave. *Rows*: "
    "million rows predicted per run."
)
HEADER = [
    "loss",
    "model",
    "tolerance, %",
    "draws",
    "runs",
    "bias, %",
    "coverage, %",
    "se, %",
    "rows",
]


def main(parts: list[str], n_runs: int, folder: Path, *, is_tiny: bool) -> None:
    """Measure parts, or everything that is missing, and then publish."""
    table: list[list[str]] = []
    for part in parts or list(settings()):
        for line, at in zip(lines_of(part, n_runs, folder), settings()[part], strict=True):
            line[3] += "*" * (at.n_draws is not None)
            table.append(line)
    if parts or is_tiny:
        return
    table.sort(key=lambda line: (line[0], line[1], -float(line[2])))
    sections = [(TEXT, markdown(HEADER, table))]
    publish("losses", "Losses: bias and coverage", sections, ["dsage", "numpy", "scipy"])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--part", nargs="*", default=[], choices=list(settings()))
    parser.add_argument("--runs", type=int, default=200, help="runs per setting")
    parser.add_argument("--keep", type=Path, default=Path(gettempdir()) / "dsage-losses")
    parser.add_argument("--tiny", action="store_true", help="few runs, for a trial")
    return parser.parse_args()


if __name__ == "__main__":
    given = _parse()
    with threadpool_limits(1):
        runs = 3 if given.tiny else given.runs
        main(given.part, runs, given.keep, is_tiny=given.tiny)
