"""Measure what a pilot of the draws does for smooth losses: bias and coverage on hard models.

Run: python -m benchmarks.draw_need [--runs N] [--only NAME ...]

The truth averages over all training rows and all coalitions, by code of its own.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from benchmarks.table import markdown, publish
from dsage import explain

Floats = npt.NDArray[np.float64]

_N_TRAIN, _N_TEST = 300, 200
_LEAST = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Problem:
    """A prediction function, its rows and targets, and the loss."""

    predict: Callable[[Floats], Floats]
    X: Floats
    y: npt.NDArray[Any]
    loss: str

    def losses(self, mean: Floats) -> Floats:
        """Return the losses of mean predictions of the evaluation rows."""
        y = self.y[_N_TRAIN:]
        if self.loss == "gamma":
            return np.asarray(2.0 * (np.log(mean / y) + y / mean - 1.0))
        if self.loss == "poisson":
            ratio = np.where(y > 0, y, 1.0) / mean
            return np.asarray(2.0 * (np.where(y > 0, y * np.log(ratio), 0.0) - y + mean))
        likely = mean[np.arange(len(y)), y.astype(np.intp)]
        return np.asarray(-np.log(np.clip(likely, _LEAST, 1.0)))


def _rows() -> Floats:
    rng = np.random.default_rng(0)
    common = rng.normal(size=(_N_TRAIN + _N_TEST, 1))
    return np.asarray(0.6 * common + 0.8 * rng.normal(size=(len(common), 4)))


def _tail(size: float, loss: str) -> Problem:
    """Return predictions whose logarithm varies by `size`, about, and amounts or counts."""
    X, rng = _rows(), np.random.default_rng(1)

    def predict(rows: Floats) -> Floats:
        return np.asarray(np.exp(size * (0.8 * rows[:, 0] + 0.6 * rows[:, 1] + 0.3 * rows[:, 2])))

    mean = predict(X)
    is_count = loss == "poisson"
    y = rng.poisson(mean) if is_count else mean * rng.gamma(2.0, 0.5, len(X))
    return Problem(predict, X, y, loss)


def _classes(model: Any, share: float = 0.5, copies: int = 1) -> Problem:  # noqa: ANN401
    """Return a classifier of two classes, one with this share; columns may be nearly equal."""
    rng = np.random.default_rng(2)
    X = np.tile(_rows()[:, : 4 // copies], copies)
    X = X + 0.1 * rng.normal(size=X.shape)
    score = X[:, 0] + X[:, 1] + rng.normal(size=len(X))
    y = (score > np.quantile(score, 1.0 - share)).astype(np.intp)
    fitted = model.fit(X[:_N_TRAIN], y[:_N_TRAIN])
    return Problem(fitted.predict_proba, X, y, "cross_entropy")


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "gamma, short tail": lambda: _tail(0.4, "gamma"),
    "gamma, long tail": lambda: _tail(1.0, "gamma"),
    "Poisson, short tail": lambda: _tail(0.4, "poisson"),
    "Poisson, long tail": lambda: _tail(1.0, "poisson"),
    "logistic": lambda: _classes(LogisticRegression()),
    "logistic, rare class": lambda: _classes(LogisticRegression(C=10.0), 0.05),
    "forest": lambda: _classes(RandomForestClassifier(30, min_samples_leaf=5, random_state=0)),
    "boosting": lambda: _classes(HistGradientBoostingClassifier(max_iter=50, random_state=0)),
    "naive Bayes": lambda: _classes(GaussianNB(), copies=2),
}


def truth(problem: Problem) -> Floats:
    """Return the values by all coalitions, over all training rows."""
    known, test = problem.X[:_N_TRAIN], problem.X[_N_TRAIN:]
    n_features = known.shape[1]
    risks = {}
    for size in range(n_features + 1):
        for coalition in combinations(range(n_features), size):
            rows = np.tile(known, (len(test), 1))
            rows[:, coalition] = np.repeat(test, len(known), axis=0)[:, coalition]
            predicted = problem.predict(rows)
            mean = predicted.reshape(len(test), len(known), *predicted.shape[1:]).mean(axis=1)
            risks[frozenset(coalition)] = float(problem.losses(mean).mean())
    values = np.zeros(n_features)
    for feature in range(n_features):
        for before, risk in risks.items():
            if feature not in before:
                weight = 1.0 / (n_features * comb(n_features - 1, len(before)))
                values[feature] += weight * (risk - risks[before | {feature}])
    return values


def measure(name: str, n_runs: int, tolerance: float, n_draws: int | None) -> list[str]:
    """Return draws, bias, root mean square of errors in standard errors, and coverage."""
    problem = PROBLEMS[name]()
    exact = truth(problem)
    rows = problem.X[:_N_TRAIN], problem.y[:_N_TRAIN], problem.X[_N_TRAIN:], problem.y[_N_TRAIN:]
    options: dict[str, Any] = {"classes": [0, 1]} if problem.loss == "cross_entropy" else {}
    if n_draws is not None:
        options["n_draws"] = n_draws
    errors, z, draws = [], [], []
    for seed in range(n_runs):
        found = explain(
            lambda X: problem.predict(np.asarray(X)),
            *rows,
            loss=problem.loss,
            sampler="marginal",
            graph=None,
            tolerance=tolerance,
            random_state=seed,
            progress=False,
            **options,
        )
        errors.append(found.values - exact)
        # Features without any effect have no errors.
        z.append(errors[-1] / np.maximum(found.se, 1e-3 * found.se.max()))
        draws.append(found.choices.estimate.n_draws)
    bias = np.abs(np.mean(errors, axis=0)).max() / np.ptp(exact)
    few, most = min(draws), max(draws)
    return [
        f"{few}" if few == most else f"{few} to {most}",
        f"{100 * bias:.2f}",
        f"{np.sqrt(np.mean(np.square(z))):.1f}",
        f"{100 * np.mean(np.abs(z) < 1.96):.0f}",
    ]


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--only", nargs="*", choices=PROBLEMS, default=list(PROBLEMS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for name in given.only:
        pair = [measure(name, given.runs, given.tolerance, n_draws) for n_draws in (16, None)]
        lines.append([name, *pair[0][1:], *pair[1]])
        print(" | ".join(lines[-1]), flush=True)
    head = ["problem", "16 draws: bias, %", "errors", "coverage, %"]
    head += ["pilot: draws", "bias, %", "errors", "coverage, %"]
    text = (
        f"`explain` of functions of four features, {_N_TRAIN} training and {_N_TEST} evaluation "
        f"rows, a marginal sampler and a tolerance of {100 * given.tolerance:g} %, {given.runs} "
        "runs a line: with 16 draws for each risk, and with as many as the pilot finds. The "
        "largest bias of a value as a share of the range, the root mean square of errors in "
        "standard errors (1 if these are right), and how many 95 % intervals hold the truth."
    )
    publish("draw_need", "Draws for smooth losses", [(text, markdown(head, lines))], ["dsage"])


if __name__ == "__main__":
    main()
