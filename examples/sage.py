"""What a model of diabetes progression owes to each feature: d-SAGE values with their audit.

Run: python examples/sage.py
"""

from __future__ import annotations

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

import dsage
from dsage.estimate import run
from dsage.games import LossGame
from dsage.samplers import choose_sampler


def main() -> None:
    """Fit a forest, learn a graph, choose a sampler, estimate, and print the ranking."""
    data = load_diabetes(as_frame=True).frame
    train, test = train_test_split(data, test_size=0.4, random_state=0)
    X, y = train.drop(columns="target"), train["target"]
    model = RandomForestRegressor(min_samples_leaf=5, random_state=0).fit(X, y)
    graph = dsage.learn_graph(train)
    choice = choose_sampler(X, random_state=0)
    print(f"The graph has {len(graph.edges)} edges; the sampler is {choice.name}.")
    game = LossGame(
        model, choice.sampler, test.drop(columns="target"), test["target"], random_state=0
    )
    oracle = graph.oracle("target", features=list(X.columns))
    result = run(game, oracle=oracle, random_state=0, progress=True)
    columns = ["feature", "value", "se", "lower", "upper", "se_rows", "p_value", "share_skipped"]
    print(result.to_frame()[columns].to_string(index=False, float_format="{:.4g}".format))
    print(f"\nIt ended because {result.reason}, after {result.seconds:.1f} seconds.")
    print("\nThe audit: d-SAGE minus SAGE.")
    print(result.audit_frame().to_string(index=False, float_format="{:.4g}".format))


if __name__ == "__main__":
    main()
