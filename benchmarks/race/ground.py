"""What all runners of the race share: a problem, the distribution of its features, its risks.

It needs only numpy and joblib, because it runs in the environments of all packages. It uses nothing
of dsage: if possible, this code computes the true values of a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Predicted rows at a time.
_AT_ONCE = 100_000
_LEAST = 1e-12


@dataclass(eq=False)
class Problem:
    """A fitted model, rows, and the law from which unknown features are drawn.

    Attributes
    ----------
    name : str
        Its name in the tables.
    law : {"conditional", "marginal"}
        ``"conditional"``: normal, with the moments of the training rows. ``"marginal"``: the
        training rows themselves, all of which are averaged over.
    loss : {"mse", "cross entropy"}
        The loss.
    X_train, X_test, y_test : array
        Rows; labels are 0, 1, ...
    model : object
        What predicts: probabilities of all classes for cross entropy.
    n_predicted : int
        Rows predicted so far.
    """

    name: str
    law: str
    loss: str
    X_train: Floats
    X_test: Floats
    y_test: npt.NDArray[Any]
    model: Any
    y_train: npt.NDArray[Any] | None = None
    n_predicted: int = field(default=0, compare=False)

    def predict(self, X: Floats) -> Floats:
        """Return predictions (n_rows,), or probabilities (n_rows, n_classes)."""
        self.n_predicted += len(X)
        call = self.model.predict if self.loss == "mse" else self.model.predict_proba
        return np.asarray(call(X), dtype=np.float64)

    def losses(self, predicted: Floats) -> Floats:
        """Return the loss of each evaluation row."""
        if self.loss == "mse":
            return (self.y_test - predicted) ** 2
        likely = predicted[np.arange(len(predicted)), self.y_test]
        return -np.log(np.clip(likely, _LEAST, 1.0 - _LEAST))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.X_train.shape[1]

    def save(self, folder: Path) -> None:
        """Write the problem, for runners in other environments."""
        joblib.dump(self, folder / f"{self.name}.joblib")

    @staticmethod
    def load(folder: Path, name: str) -> Problem:
        """Read a problem."""
        problem: Problem = joblib.load(folder / f"{name}.joblib")
        problem.n_predicted = 0
        return problem


class Normal:
    """The conditional normal law: Matheron's rule, vectorized over rows with other coalitions."""

    def __init__(self, X: Floats) -> None:
        self.mean = X.mean(axis=0)
        self.covariance = np.atleast_2d(np.cov(X, rowvar=False, bias=True))
        scale = np.trace(self.covariance) / len(self.covariance)
        # Some columns are constant.
        self._ridge = 1e-10 * (np.diag(self.covariance) + 1e-3 * scale)
        self._factor = np.linalg.cholesky(
            self.covariance + 1e-12 * scale * np.eye(len(self.covariance))
        )

    def free(self, rng: np.random.Generator, *shape: int) -> Floats:
        """Return draws (*shape, n_features) with nothing known."""
        return self.mean + rng.normal(size=(*shape, len(self.mean))) @ self._factor.T

    def given(self, x: Floats, known: Mask, free: Floats) -> Floats:
        """Return draws (n_rows, n_draws, n_features) given coalitions, one a row, of `x`.

        A free draw z becomes ``z + Sigma[:, S] Sigma[S, S]^-1 (x - z)[S]``.
        """
        both = known[:, :, None] & known[:, None, :]
        blocks = np.where(both, self.covariance, 0.0)
        at = np.arange(known.shape[1])
        blocks[:, at, at] += np.where(known, self._ridge, 1.0)
        short = np.where(known[:, None, :], x[:, None, :] - free, 0.0)
        weights = np.linalg.solve(blocks, short.transpose(0, 2, 1))
        drawn = free + (self.covariance @ weights).transpose(0, 2, 1)
        return np.where(known[:, None, :], x[:, None, :], drawn)

    def given_one(self, x: Floats, known: Mask, free: Floats) -> Floats:
        """Return `given` for one coalition of all rows, by one factorization."""
        out = free.copy()
        if known.any():
            inner = self.covariance[np.ix_(known, known)]
            inner = inner + np.diag(self._ridge[known])
            effects = np.linalg.solve(inner, self.covariance[np.ix_(known, ~known)])
            out[:, :, ~known] += (x[:, None, known] - free[:, :, known]) @ effects
            out[:, :, known] = x[:, None, known]
        return out


class RiskGame:
    """The risk of a coalition on all evaluation rows, from common draws for all coalitions.

    This is what packages get that approximate Shapley values of any game. With `n_draws` for
    each row the risk of the conditional law is a little too large, as everywhere else.
    """

    def __init__(self, problem: Problem, n_draws: int, seed: int) -> None:
        self.problem = problem
        rng = np.random.default_rng(seed)
        if problem.law == "conditional":
            self._law = Normal(problem.X_train)
            self._free = self._law.free(rng, len(problem.X_test), n_draws)
        else:
            self._free = np.broadcast_to(
                problem.X_train, (len(problem.X_test), *problem.X_train.shape)
            )

    def values(self, coalitions: npt.NDArray[Any]) -> Floats:
        """Return minus the risks of coalitions (n_coalitions, n_features)."""
        return np.array([-self.risk(each) for each in np.asarray(coalitions, dtype=bool)])

    def risk(self, known: Mask) -> float:
        """Return the risk of a coalition."""
        return float(self.problem.losses(self.mean_predictions(known)).mean())

    def mean_predictions(self, known: Mask) -> Floats:
        """Return the mean prediction of each row over its draws."""
        if known.all():
            return self.problem.predict(self.problem.X_test)
        found = [
            predict_means(self.problem.predict, self.draws(known, rows)) for rows in self._chunks()
        ]
        return np.concatenate(found)

    def draws(self, known: Mask, rows: slice) -> Floats:
        """Return draws (n_rows, n_draws, n_features)."""
        x, free = self.problem.X_test[rows], self._free[rows]
        if self.problem.law == "conditional":
            return self._law.given_one(x, known, free)
        return np.where(known, x[:, None, :], free)

    def _chunks(self) -> Iterator[slice]:
        n_rows = max(1, _AT_ONCE // self._free.shape[1])
        for start in range(0, len(self.problem.X_test), n_rows):
            yield slice(start, start + n_rows)


def predict_means(predict: Callable[[Floats], Floats], draws: Floats) -> Floats:
    """Return the mean prediction of each row over its draws (n_rows, n_draws, n_features)."""
    predicted = predict(draws.reshape(-1, draws.shape[-1]))
    return predicted.reshape(*draws.shape[:2], *predicted.shape[1:]).mean(axis=1)
