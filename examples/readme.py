"""Print the table and draw the picture of the README: ``python examples/readme.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

import dsage
from dsage.datasets import load_penguins

PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "readme.svg"


def explain_penguins() -> dsage.Explanation:
    """Run the example of the README."""
    penguins = load_penguins().dropna(subset=["body_mass_g"])
    X, y = penguins.drop(columns="body_mass_g"), penguins["body_mass_g"]
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    model = HistGradientBoostingRegressor(random_state=0).fit(X_train, y_train)
    return dsage.explain(model, X_train, y_train, X_test, y_test, random_state=0, progress=False)


def main() -> None:
    """Print the table, and draw the picture."""
    explanation = explain_penguins()
    print(explanation)
    plt.rcParams["svg.hashsalt"] = "dsage"
    axes = explanation.plot.bar()
    axes.figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
