"""Draw the results of structure learning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dsage.datasets import PAPER_GRAPHS, paper_graph
from experiments import bnlearn
from experiments.drawing import BLACK, BLUE, GREEN, ORANGE, RED, draw_svg
from experiments.store import Store
from experiments.structure_tables import METHODS, TABLE

LABELS = {"hc": "HC", "tabu": "TABU", "default": "our default"}
_COLORS = {"hc": ORANGE, "tabu": BLUE, "default": GREEN}
_MARKERS = {"hc": "s", "tabu": "o", "default": "D"}
_CELLS = {"tp": "found", "fn": "missed", "fp": "wrong", "tn": "connected"}


def draw(store: Store, folder: Path) -> None:
    """Draw F1, seconds and confusion matrices."""
    table = store.read(TABLE)
    _draw_f1(table, folder / "structure_f1.svg")
    _draw_seconds(table, folder / "structure_seconds.svg")
    for n_rows, part in table.groupby("n_rows"):
        _draw_confusion(part, folder / f"structure_confusion_{n_rows}.svg")


def at_paper_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the lines for the paper's 10,000 rows, or else for the most rows."""
    at = table["n_rows"] == bnlearn.N_ROWS
    return table[at if at.any() else table["n_rows"] == table["n_rows"].max()]


def _draw_f1(table: pd.DataFrame, path: Path) -> None:
    """Draw F1 against rows with one panel per graph: sizes down, degrees across."""
    graphs = [name for name in PAPER_GRAPHS if name in set(table["graph"])]
    n_across = min(3, len(graphs))
    n_down = -(-len(graphs) // n_across)
    with draw_svg(path, height=0.6 + 1.35 * n_down) as figure:
        panels = figure.subplots(n_down, n_across, sharex=True, sharey=True, squeeze=False)
        for ax, name in zip(panels.flat, graphs, strict=False):
            _lines(ax, table[table["graph"] == name], "f1")
            ax.set_title(name, loc="left", pad=3)
            ax.set_ylim(min(table["f1"].min(), 0.9) - 0.05, 1.04)
            ax.set_yticks([0.4, 0.7, 1.0])
        for ax in panels.flat[len(graphs) :]:
            ax.set_axis_off()
        figure.supxlabel("rows", fontsize=8.5)
        figure.supylabel("F1 of the separations", fontsize=8.5)
        handles, labels = panels.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3)


def _draw_seconds(table: pd.DataFrame, path: Path) -> None:
    """Draw seconds against rows with one panel per size: medians, and ranges over degrees."""
    table = table.assign(seconds=table["seconds_moments"] + table["seconds_search"])
    sizes = sorted(table["n_nodes"].unique())
    with draw_svg(path, height=2.6) as figure:
        panels = figure.subplots(1, len(sizes), sharex=True, sharey=True, squeeze=False)[0]
        for ax, size in zip(panels, sizes, strict=True):
            part = table[table["n_nodes"] == size]
            _lines(ax, part, "seconds")
            graphs = part["graph"].unique()
            theirs = [bnlearn.TABU_SECONDS[name] for name in graphs]
            ax.plot([bnlearn.N_ROWS] * len(theirs), theirs, "x", color=RED, label="bnlearn, TABU")
            printed = [paper_graph(name).printed["seconds_tabu"] for name in graphs]
            ax.plot(
                [bnlearn.N_ROWS] * len(printed), printed, "+", color=BLACK, label="the paper, TABU"
            )
            ax.set_yscale("log")
            ax.set_title(f"{size} nodes", loc="left", pad=3)
        panels[0].set_ylabel("seconds")
        figure.supxlabel("rows", fontsize=8.5)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=5)


def _lines(ax: Axes, table: pd.DataFrame, column: str) -> None:
    """Draw the median of each method as a line and the range as a band."""
    for method in METHODS:
        groups = table[table["method"] == method].groupby("n_rows")[column]
        middle, low, high = groups.median(), groups.min(), groups.max()
        color = _COLORS[method]
        ax.fill_between(middle.index, low, high, color=color, alpha=0.18, linewidth=0)
        ax.plot(
            middle.index,
            middle,
            marker=_MARKERS[method],
            color=color,
            markersize=3,
            linewidth=1.2,
            label=LABELS[method],
        )
    ax.set_xscale("log")
    n_rows = sorted(table["n_rows"].unique())
    ax.set_xticks(n_rows, [f"{n / 1e6:g}M" if n >= 1e6 else f"{n / 1e3:g}k" for n in n_rows])
    ax.minorticks_off()


def _draw_confusion(table: pd.DataFrame, path: Path) -> None:
    """Draw the confusion matrices as rows of four cells, with one panel per method."""
    counts = table[list(_CELLS)].div(table["n_queries"], axis=0)
    shares = pd.concat([table[["graph", "method"]], counts], axis=1)
    means = shares.groupby(["graph", "method"]).mean()
    graphs = [name for name in PAPER_GRAPHS if name in set(table["graph"])]
    with draw_svg(path, height=1.0 + 0.23 * len(graphs)) as figure:
        panels = figure.subplots(1, len(METHODS), sharey=True)
        for ax, method in zip(panels, METHODS, strict=True):
            cells = np.array([means.loc[(name, method), list(_CELLS)] for name in graphs])
            # In SVG, polygons are sharper and smaller than an image.
            ax.pcolormesh(cells, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=1)
            for (down, across), value in np.ndenumerate(cells):
                color = "white" if value > 0.55 else "black"
                text = "0" if value == 0 else "<0.001" if value < 0.0005 else f"{value:.3f}"
                ax.text(
                    across + 0.5, down + 0.5, text, ha="center", va="center", color=color, size=7
                )
            ax.grid(visible=False)
            ax.set_title(LABELS[method])
            ax.set_xticks(np.arange(4) + 0.5, list(_CELLS.values()), size=7)
            ax.set_yticks(np.arange(len(graphs)) + 0.5, graphs)
            ax.tick_params(length=0)
            ax.spines[:].set_visible(False)
        panels[0].invert_yaxis()
