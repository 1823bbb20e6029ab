"""Simulate the coverage of the 95 % intervals of cross-validated explanations.

Run: python -m benchmarks.folds [--runs N] [--tiny]

Many small tables are drawn from a known distribution. For each, a linear model is explained by
cross-validation, and its intervals are compared with exact values in the population.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.model_selection import RepeatedKFold
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.table import markdown, publish
from dsage import FoldedExplanation, explain_cv
from dsage.games.base import Floats

N_ROWS = 80
SLOPES = np.array([1.0, 0.6, 0.3, 0.0])
# Neighboring features have this correlation.
CORRELATION = 0.5
# Training sets that stand for all of them.
N_TRAINED = 4_000
LEARNERS = {"least squares": LinearRegression(), "lasso": Lasso(alpha=0.3)}
OPTIONS: dict[str, Any] = {"sampler": "gaussian", "graph": None, "sampler_check": False}


@dataclass(frozen=True)
class Setting:
    """A learner, and how the rows are split."""

    learner: str
    n_splits: int
    n_repeats: int

    @property
    def n_train(self) -> int:
        """Training rows of a fold."""
        return N_ROWS - N_ROWS // self.n_splits


SETTINGS = (
    Setting("least squares", 5, 1),
    Setting("least squares", 10, 1),
    Setting("least squares", 5, 4),
    Setting("lasso", 5, 1),
    Setting("lasso", 5, 4),
)


def covariance() -> Floats:
    """Return the covariance of the features, whose means are zero."""
    at = np.arange(len(SLOPES))
    return np.asarray(CORRELATION ** np.abs(at[:, None] - at), dtype=np.float64)


def draw(n_rows: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return rows of the distribution and their targets."""
    X = rng.multivariate_normal(np.zeros(len(SLOPES)), covariance(), size=n_rows)
    return X, X @ SLOPES + rng.normal(size=n_rows)


def worth(model: Any, X: Floats) -> Floats:  # noqa: ANN401
    """Return the exact values of a linear model in the population, with the sampler of some rows.

    Both are affine, so the model that knows the features S is ``c + b'x_S``, and its risk follows
    from the moments of the population.
    """
    mean, sigma, n_features = X.mean(axis=0), np.cov(X, rowvar=False), X.shape[1]
    true = covariance()
    risks = {}
    for size in range(n_features + 1):
        for known in combinations(range(n_features), size):
            inside = list(known)
            outside = [at for at in range(n_features) if at not in known]
            slopes, constant = model.coef_.copy(), float(model.intercept_)
            passed = np.linalg.solve(sigma[np.ix_(inside, inside)], sigma[np.ix_(inside, outside)])
            slopes[inside] += passed @ slopes[outside]
            constant += float((mean[outside] - mean[inside] @ passed) @ model.coef_[outside])
            slopes[outside] = 0.0
            off = SLOPES - slopes
            risks[frozenset(known)] = 1.0 + float(off @ true @ off) + constant**2
    values = np.zeros(n_features)
    for known, risk in risks.items():
        for at in set(range(n_features)) - known:
            weight = 1.0 / (n_features * comb(n_features - 1, len(known)))
            values[at] += weight * (risk - risks[known | {at}])
    return values


def expected(learner: Any, n_train: int, rng: np.random.Generator) -> Floats:  # noqa: ANN401
    """Return the mean values of models that are fitted to new training rows."""
    found = []
    for _ in range(N_TRAINED):
        X, y = draw(n_train, rng)
        found.append(worth(clone(learner).fit(X, y), X))
    return np.mean(found, axis=0)


def naive(folded: FoldedExplanation) -> tuple[Floats, Floats]:
    """Return the ends of the interval that takes folds for independent."""
    n_folds = len(folded.folds)
    half = stats.t.ppf(0.975, n_folds - 1) * folded.spread / np.sqrt(n_folds)
    return folded.values - half, folded.values + half


def corrected(folded: FoldedExplanation) -> tuple[Floats, Floats]:
    """Return the ends of the corrected interval alone."""
    half = stats.t.ppf(0.975, len(folded.folds) - 1) * folded.se_procedure
    return folded.values - half, folded.values + half


def reported(folded: FoldedExplanation, kind: str) -> tuple[Floats, Floats]:
    """Return the ends of an interval in the table of the result."""
    frame = folded.to_frame().set_index("feature").loc[list(folded.feature_names)]
    return frame[f"lower_{kind}"].to_numpy(), frame[f"upper_{kind}"].to_numpy()


def simulate(at: Setting, n_runs: int, truth: Floats, rng: np.random.Generator) -> list[list[str]]:
    """Return a line for each interval: how often it covers, and how wide it is."""
    names = ("naive", "corrected", "reported", "these models")
    hits: dict[str, list[Floats]] = {name: [] for name in names}
    widths: dict[str, list[Floats]] = {name: [] for name in names}
    for number in range(n_runs):
        X, y = draw(N_ROWS, rng)
        splitter = RepeatedKFold(n_splits=at.n_splits, n_repeats=at.n_repeats, random_state=number)
        pairs = list(splitter.split(X))
        models = [clone(LEARNERS[at.learner]).fit(X[train], y[train]) for train, _ in pairs]
        folded = explain_cv(
            None, X, y, pairs, models=models, random_state=0, progress=False, **OPTIONS
        )
        parts = zip(models, pairs, strict=True)
        own = np.mean([worth(model, X[train]) for model, (train, _) in parts], axis=0)
        for name, (low, high), value in (
            ("naive", naive(folded), truth),
            ("corrected", corrected(folded), truth),
            ("reported", reported(folded, "procedure"), truth),
            ("these models", reported(folded, "total"), own),
        ):
            hits[name].append((low <= value) & (value <= high))
            widths[name].append(high - low)
    what = f"{at.n_splits} folds" + (f", {at.n_repeats} times" if at.n_repeats > 1 else "")
    return [[at.learner, what, name, *_line(hits[name], widths[name])] for name in names]


def _line(hits: Sequence[Floats], widths: Sequence[Floats]) -> list[str]:
    covered = np.mean(hits, axis=1)
    error = covered.std(ddof=1) / np.sqrt(len(covered))
    share = np.mean(hits, axis=0)
    cells = [str(len(hits)), f"{100 * covered.mean():.1f} -+ {100 * error:.1f}"]
    cells.append(f"{100 * share.min():.0f} to {100 * share.max():.0f}")
    return [*cells, f"{np.mean(widths):.2f}"]


def main(n_runs: int, *, is_tiny: bool) -> None:
    """Simulate everything and publish the table."""
    rng = np.random.default_rng(0)
    truths: dict[tuple[str, int], Floats] = {}
    lines = []
    for at in SETTINGS:
        key = at.learner, at.n_train
        if key not in truths:
            truths[key] = expected(LEARNERS[at.learner], at.n_train, rng)
        lines += simulate(at, n_runs, truths[key], rng)
    text = (
        f"Tables of {N_ROWS} rows and {len(SLOPES)} correlated features, one of them irrelevant; "
        "linear models, Gaussian sampler. *Coverage* is the share of runs and features whose "
        "interval contains the true value, -+ its standard error over runs; *features* are the "
        "features with the lowest and the highest coverage; *width* is the mean width. "
        "*Naive*, *corrected* and *reported* are intervals for the learning procedure: the true "
        f"value is the mean over {N_TRAINED:,} models that are fitted to new training rows, as "
        "many as in a fold, each with its exact values. The naive one takes folds for "
        "independent; the corrected one is that of Nadeau and Bengio; the reported one is never "
        "narrower than that of *these models*. For these models the true value is the mean over "
        "the fitted models of the run, again with their exact values."
    )
    header = ["learner", "folds", "interval", "runs", "coverage, %", "features, %", "width"]
    sections = [(text, markdown(header, lines))]
    if is_tiny:
        print("\n\n".join(f"{text}\n\n{table}" for text, table in sections))
        return
    packages = ["dsage", "numpy", "scikit-learn", "scipy"]
    publish("folds", "Cross-validation: coverage of intervals", sections, packages)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=100, help="tables per setting")
    parser.add_argument("--tiny", action="store_true", help="few runs, for a trial")
    given = parser.parse_args()
    if given.tiny:
        N_TRAINED = 20
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(3 if given.tiny else given.runs, is_tiny=given.tiny)
