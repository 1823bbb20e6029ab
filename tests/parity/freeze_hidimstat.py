"""Write `hidimstat_measures.json`: importances of the diabetes data by hidimstat.

Run it in an environment of its own with ``hidimstat`` installed, which is no dependency here:
``python tests/parity/freeze_hidimstat.py``.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_squared_error

N_TRAIN, N_PERMUTATIONS = 300, 400


def main():
    import hidimstat

    X, y = load_diabetes(return_X_y=True)
    X_train, y_train, X_test, y_test = X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]
    model = LinearRegression().fit(X_train, y_train)
    options = {"method": "predict", "loss": mean_squared_error}
    drawn = {"n_permutations": N_PERMUTATIONS, "random_state": 0}
    found = {
        # Both learn from the evaluation rows what they draw from.
        "cfi": hidimstat.CFI(
            model,
            imputation_model_continuous=LinearRegression(),
            feature_types="continuous",
            **drawn,
            **options,
        ),
        "pfi": hidimstat.PFI(model, **drawn, **options),
    }
    figures = {}
    for name, measure in found.items():
        measure.fit(X_test, y_test)
        values = measure.importance(X_test, y_test)
        losses = np.array([measure.loss_[at] for at in range(X.shape[1])])
        se = losses.std(axis=1, ddof=1) / np.sqrt(N_PERMUTATIONS)
        figures[name] = {"values": values.tolist(), "se": se.tolist()}
    loco = hidimstat.LOCO(model, **options)
    loco.fit(X_train, y_train)
    figures["loco"] = {"values": loco.importance(X_test, y_test).tolist(), "se": [0.0] * X.shape[1]}
    text = json.dumps({"hidimstat": hidimstat.__version__, "measures": figures}, indent=1)
    Path(__file__).with_name("hidimstat_measures.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
