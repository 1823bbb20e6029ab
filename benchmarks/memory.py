"""Measure the memory of `explain` for large tables, as a multiple of the data.

Run: python -m benchmarks.memory [--only NAME ...]

Every case runs in its own process. The peak is the memory beyond `max_bytes` and beyond what was in
use before the call, which includes the data and the model.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.linear_model import LinearRegression

from benchmarks.measured import answer, ask, measured
from benchmarks.table import markdown, publish
from dsage.explain import explain

N_TRAIN, MAX_BYTES, MOST = 5_000, 2**26, 2.0
CASES: dict[str, tuple[int, int, str, str]] = {
    "200,000 x 100, array, linear": (200_000, 100, "array", "linear"),
    "200,000 x 100, array, function": (200_000, 100, "array", "function"),
    "200,000 x 100, frame, function": (200_000, 100, "frame", "function"),
    "200,000 x 100, frame, LightGBM": (200_000, 100, "frame", "LightGBM"),
    "1,000,000 x 20, frame, function": (1_000_000, 20, "frame", "function"),
    "1,000,000 x 20, frame, LightGBM": (1_000_000, 20, "frame", "LightGBM"),
}
"""Rows, features, container and model, by name."""


def bent(rows: Any) -> Any:  # noqa: ANN401
    """Predict by a function that is not linear."""
    X = np.asarray(rows)
    return X[:, :5].sum(axis=1) + 0.1 * X[:, 0] ** 2


def run_case(name: str) -> None:
    """Explain a case in this process, and answer what it took."""
    n_rows, n_features, container, kind = CASES[name]
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(n_rows + N_TRAIN, n_features))
    y = X[:, :5].sum(axis=1) + rng.normal(size=len(X))
    if container == "frame":
        X = pd.DataFrame(X, columns=[f"x{number}" for number in range(n_features)])
    light = LGBMRegressor(n_estimators=50, verbose=-1, n_jobs=1, random_state=0)
    models: dict[str, Any] = {"linear": LinearRegression(), "LightGBM": light}
    model = models[kind].fit(X[:N_TRAIN], y[:N_TRAIN]) if kind in models else bent
    rows = X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]
    warnings.simplefilter("ignore")
    with measured() as found:
        explain(
            model,
            *rows,
            loss="squared_error",
            sampler="gaussian",
            n_orderings=16,
            max_bytes=MAX_BYTES,
            n_jobs=1,
            random_state=0,
            progress=False,
        )
    answer({"more": found.more, "data": 8 * n_rows * n_features, "wall": found.wall})


def line_of(name: str) -> list[str]:
    """Return the line of a case."""
    found = ask("benchmarks.memory", "--case", name)
    ratio = (found["more"] - MAX_BYTES) / found["data"]
    return [
        name,
        f"{found['data'] / 1e6:,.0f}",
        f"{found['more'] / 1e6:,.0f}",
        f"{ratio:.1f}",
        f"{found['wall']:.1f}",
        "yes" if ratio <= MOST else "NO",
    ]


def main() -> None:
    """Measure and publish the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case is not None:
        run_case(given.case)
        return
    lines = []
    for name in given.only:
        lines.append(line_of(name))
        print(" | ".join(lines[-1]), flush=True)
    if len(given.only) < len(CASES):
        return
    head = ["rows x features, container, model", "data, MB", "peak, MB", "times the data"]
    head += ["seconds", f"at most {MOST:g}"]
    text = (
        f"`explain(max_bytes={MAX_BYTES}, n_orderings=16)` with a Gaussian sampler: the size of "
        "the evaluation rows, the peak memory beyond what was in use before the call, and the "
        "part of it beyond `max_bytes`, as a multiple of the evaluation rows."
    )
    publish("memory", "Memory", [(text, markdown(head, lines))], ["dsage", "numpy", "pandas"])


if __name__ == "__main__":
    main()
