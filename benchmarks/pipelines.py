"""Time pipelines of scikit-learn that predict draws from codes against the pipelines themselves.

Run: python -m benchmarks.pipelines
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.drawing_share import mixed_rows
from benchmarks.table import markdown, publish, seconds
from dsage.data.layout import Layout
from dsage.models import as_model

N_DRAWS = 8_000
"""Rows of a call: the draws for 64 rows and 16 coalitions, 8 each, say."""
LAST: dict[str, Callable[[], Any]] = {
    "logistic regression": lambda: LogisticRegression(max_iter=1_000),
    "network": lambda: MLPClassifier((32,), max_iter=1_000, random_state=0),
    "boosting of scikit-learn": lambda: HistGradientBoostingClassifier(random_state=0),
    "LightGBM": lambda: LGBMClassifier(verbose=-1, n_jobs=1, random_state=0),
    "forest": lambda: RandomForestClassifier(100, min_samples_leaf=5, random_state=0),
}
ENCODERS: dict[str, Callable[[], Any]] = {
    "one-hot": lambda: OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    "ordinal": OrdinalEncoder,
}


def make(encoder: str, last: str) -> Any:  # noqa: ANN401
    """Return a pipeline that fills gaps, scales numbers, encodes classes and predicts."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    classes = make_pipeline(SimpleImputer(strategy="most_frequent"), ENCODERS[encoder]())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include=float)),
        (classes, make_column_selector(dtype_include="category")),
    )
    return make_pipeline(columns, LAST[last]())


def main() -> None:
    """Measure and publish."""
    X, y = mixed_rows()
    layout = Layout.of(X)
    codes = layout.encode(X)
    rows = codes[np.random.default_rng(0).integers(len(codes), size=N_DRAWS)]
    table = []
    with threadpool_limits(1):
        for encoder in ENCODERS:
            for last in LAST:
                model = as_model(make(encoder, last).fit(X, y), "cross_entropy")
                predict = model.encoded(layout, codes)
                if predict is None:
                    raise AssertionError(f"No codes for {encoder}, {last}.")
                frames = seconds(lambda m=model: m.predict(layout.decode(rows)), repeats=5)
                quick = seconds(lambda p=predict: p(rows), repeats=5)
                difference = np.abs(model.predict(layout.decode(rows)) - predict(rows)).max()
                times = f"{1e3 * frames:.1f}", f"{1e3 * quick:.1f}", f"{frames / quick:.1f} x"
                table.append([encoder, last, *times, f"{difference:.0e}"])
                print(table[-1], flush=True)
    header = ["encoder", "last step", "pipeline, ms", "from codes, ms", "faster", "difference"]
    text = (
        f"Milliseconds for {N_DRAWS:,} rows of {codes.shape[1]} columns, {len(codes):,} rows in "
        "training: eight numbers, which are filled and scaled, and six classes of four levels, "
        "which are filled and encoded. One thread. *Difference* is the largest one of a "
        "probability."
    )
    packages = ["dsage", "scikit-learn", "lightgbm"]
    publish("pipelines", "Pipelines", [(text, markdown(header, table))], packages)


if __name__ == "__main__":
    main()
