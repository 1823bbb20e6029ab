"""Print the table and draw the picture of the README: ``python examples/readme.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

import dsage

PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "readme.svg"


def explain_forest() -> dsage.Explanation:
    """Run the example of the README."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    model = RandomForestRegressor(20, min_samples_leaf=5, random_state=0).fit(X_train, y_train)
    return dsage.explain(
        model, X_train, y_train, X_test, y_test, tolerance=0.05, random_state=0, progress=False
    )


def main() -> None:
    """Print the table, and draw the picture."""
    explanation = explain_forest()
    print(explanation)
    plt.rcParams["svg.hashsalt"] = "dsage"
    axes = explanation.plot.bar()
    axes.figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
