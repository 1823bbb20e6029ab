"""Measure how well `explain(seconds=...)` keeps its limit, with many features or slow models.

Run: python -m benchmarks.budgets [--seconds N ...] [--features N ...]
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from lightgbm import LGBMRegressor
from sklearn.linear_model import LinearRegression

from benchmarks.measured import answer, ask
from benchmarks.table import markdown, publish
from dsage.explain import explain

FEATURES, SECONDS = (10, 100, 300, 1_000), (3.0, 10.0)
MODELS = ("linear", "LightGBM", "slow")
# Seconds that the slow model takes for a row, and the share by which a limit may be exceeded.
SLOW, MOST = 2e-5, 0.10
N_ROWS = 4_000


def slow(rows: Any) -> npt.NDArray[np.float64]:  # noqa: ANN401
    """Predict as a model does that takes its time for every row."""
    X = np.asarray(rows, dtype=np.float64)
    time.sleep(SLOW * len(X))
    found: npt.NDArray[np.float64] = X[:, 0] * X[:, 1] + np.tanh(X[:, 2:]).sum(axis=1)
    return found


def measure(n_features: int, kind: str, seconds: float) -> None:
    """Explain in this process, and answer what it took."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, n_features))
    X[:, 1:] += 0.5 * X[:, :-1]
    y = slow(X) + rng.normal(size=N_ROWS)
    half = N_ROWS // 2
    model: Any = slow
    if kind != "slow":
        light = LGBMRegressor(n_estimators=100, verbose=-1, n_jobs=1, random_state=0)
        model = (LinearRegression() if kind == "linear" else light).fit(X[:half], y[:half])
    warnings.simplefilter("ignore")
    found = explain(
        model,
        X[:half],
        y[:half],
        X[half:],
        y[half:],
        loss="squared_error",
        graph=None,
        # The choice of the sampler is not part of the time that is limited.
        sampler="gaussian",
        sampler_check=False,
        seconds=seconds,
        random_state=0,
        progress=False,
    )
    reason = found.estimate.reason
    answer(
        {
            "estimate": found.estimate.seconds,
            "phase": found.choices.seconds.estimate,
            "n_units": found.estimate.n_units,
            "reason": "" if reason is None else reason.kind.value,
            "error": float(found.se.max() / np.ptp(found.values)),
        }
    )


def line_of(n_features: int, kind: str, seconds: float) -> list[str]:
    """Return the line of a case."""
    found = ask("benchmarks.budgets", "--case", str(n_features), kind, str(seconds))
    is_over = found["estimate"] > (1 + MOST) * seconds
    return [
        f"{n_features:,}",
        kind,
        f"{seconds:g}",
        f"{found['estimate']:.2f}",
        f"{found['phase']:.2f}",
        str(found["n_units"]),
        f"{100 * found['error']:.2g}",
        found["reason"],
        "NO" if is_over else "yes",
    ]


def main() -> None:
    """Measure and publish the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", nargs="*", type=float, default=SECONDS)
    parser.add_argument("--features", nargs="*", type=int, default=FEATURES)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=MODELS)
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case is not None:
        measure(int(given.case[0]), given.case[1], float(given.case[2]))
        return
    lines = []
    for n_features in given.features:
        for kind in given.models:
            for seconds in given.seconds:
                lines.append(line_of(n_features, kind, seconds))
                print(" | ".join(lines[-1]), flush=True)
    is_all = (tuple(given.seconds), tuple(given.features)) == (SECONDS, FEATURES)
    if not is_all or tuple(given.models) != MODELS:
        return
    head = ["features", "model", "asked", "used", "with the game", "units", "error", "end", "kept"]
    text = (
        "`explain(seconds=...)` without a graph and with a Gaussian sampler: the time limit and "
        "the time used, the time of the whole phase including the predictions for the evaluation "
        "rows, the number of complete units, and the largest error in % of the range. "
        "The slow model takes "
        f"{1e6 * SLOW:.0f} microseconds for a row."
    )
    publish("budgets", "Time limits", [(text, markdown(head, lines))], ["dsage", "numpy"])


if __name__ == "__main__":
    main()
