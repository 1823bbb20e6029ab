"""Draw the results on tests of independence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dsage.datasets import PAPER_GRAPHS, paper_graph
from experiments.drawing import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, draw_svg
from experiments.independence_tables import LEVELS, PINGOUIN, PUBLISHED, PUBLISHED_ROWS, TABLE
from experiments.store import Store

N_ORDERINGS = 100
"""Number of orderings in the paper, to which times are scaled."""

_TEST = f"test: {LEVELS[0]}"


def beside(store: Store) -> pd.DataFrame:
    """Return our means and medians with the paper's results, one line per graph.

    Times are scaled to 100 orderings; missing measurements are NaN.
    """
    table = store.read(TABLE)
    names = [name for name in PAPER_GRAPHS if name in set(table["graph"])]
    n_features = pd.Series({name: len(paper_graph(name).graph) - 1 for name in names})
    columns: dict[str, pd.Series] = {"n_nodes": n_features + 1}
    for way, part in table.groupby("way"):
        groups = part.groupby("graph")
        columns[f"accuracy {way}"] = groups["accuracy"].mean()
        columns[f"wrong {way}"] = groups["fp"].sum() / groups["n_tests"].sum()
        scale = N_ORDERINGS * n_features / groups["n_tests"].first()
        columns[f"seconds {way}"] = groups["seconds"].median() * scale
        columns[f"before {way}"] = groups["seconds_before"].median()
    # Tests need the covariances first, like queries need the graph.
    columns["seconds test"] = columns[f"seconds {_TEST}"] + columns[f"before {_TEST}"]
    pingouin = store.read(PINGOUIN)
    if not pingouin.empty:
        lines = pingouin.set_index("graph")
        columns["seconds pingouin"] = lines["seconds"] * N_ORDERINGS * n_features / lines["n_tests"]
        columns["other pingouin"] = lines["n_other"]
        columns["tests pingouin"] = lines["n_tests"]
    published = store.read(PUBLISHED)
    if not published.empty:
        is_many = published["n_rows"] == PUBLISHED_ROWS
        for label, chosen in (("many", is_many), ("few", ~is_many)):
            rule = published[chosen & (published["way"] == "rule")]
            columns[f"accuracy rule {label}"] = rule.set_index("graph")["accuracy"]
        proper = published[is_many & (published["way"] != "rule")]
        columns["accuracy proper many"] = proper.set_index("graph")["accuracy"]
    printed = pd.DataFrame([paper_graph(name).printed for name in names], index=names)
    return pd.DataFrame(columns).reindex(names).join(printed.add_prefix("paper "))


def draw(store: Store, folder: Path) -> None:
    """Draw times and accuracies."""
    table = beside(store)
    with draw_svg(folder / "independence.svg", height=5.4) as figure:
        above, below = figure.subplots(2, 1)
        _draw_seconds(above, table)
        _draw_accuracy(below, table)
        for ax in (above, below):
            ax.set_xticks(np.arange(len(table)), table.index, rotation=35, ha="right")
            ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def _draw_seconds(ax: Axes, table: pd.DataFrame) -> None:
    styles = [
        ("seconds graph: tabu", "o", BLUE, "ask the graph"),
        ("before graph: tabu", "^", SKY, "learn it (TABU)"),
        ("seconds test", "s", GREEN, "test, covariances"),
        ("seconds pingouin", "D", ORANGE, "test, pingouin"),
        ("paper seconds_d_separation", "x", BLACK, "paper: ask the graph"),
        ("paper seconds_tabu", "1", PURPLE, "paper: learn it"),
        ("paper seconds_partial_correlation", "+", RED, "paper: test"),
    ]
    for column, marker, color, label in styles:
        if column in table:
            ax.plot(np.arange(len(table)), table[column], marker, color=color, label=label)
    ax.set_yscale("log")
    ax.set_ylabel(f"seconds, {N_ORDERINGS} orderings")


def _draw_accuracy(ax: Axes, table: pd.DataFrame) -> None:
    styles = [
        ("accuracy graph: default", "v", GREEN, "graph, our default"),
        ("accuracy graph: tabu", "o", BLUE, "graph, TABU"),
        (f"accuracy {_TEST}", "s", ORANGE, "test, same rows"),
        ("accuracy rule many", "D", SKY, "paper's rule, 1M rows"),
        ("paper accuracy_d_separation", "x", BLACK, "paper: graph, TABU"),
        ("paper accuracy_partial_correlation", "+", RED, "paper: test"),
    ]
    for column, marker, color, label in styles:
        if column in table:
            ax.plot(np.arange(len(table)), table[column], marker, color=color, label=label)
    ax.set_ylabel("share of right answers")
