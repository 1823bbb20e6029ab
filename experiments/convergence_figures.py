"""Draw and describe the convergence of the values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.drawing import BLUE, ORANGE, draw_svg
from experiments.problem import MODELS
from experiments.prose import markdown, percent
from experiments.store import Store

ERRORS, CURVES = "convergence", "convergence_curves"
TOP = 15
GROUPS = ("largest", "smallest")

_COLORS = {"SAGE": ORANGE, "d-SAGE": BLUE}


def draw(store: Store, folder: Path) -> None:
    """Draw the curves of values, one file per model and graph, and the final errors."""
    curves = store.read(CURVES)
    for (name, model), part in curves.groupby(["graph", "model"], sort=False):
        _draw_curves(part, folder / f"convergence_{model}_{_plain(str(name))}.svg")
    _draw_errors(store.read(ERRORS), folder / "convergence_errors.svg")


def _plain(graph: str) -> str:
    return graph.replace("(", "_").replace(")", "")


def _draw_curves(table: pd.DataFrame, path: Path) -> None:
    with draw_svg(path, height=3.6) as figure:
        panels = figure.subplots(2, 2, sharex=True, sharey="row")
        for row, group in zip(panels, GROUPS, strict=True):
            for ax, values in zip(row, _COLORS, strict=True):
                part = table[(table["group"] == group) & (table["values"] == values)]
                for _, line in part.groupby("feature"):
                    ax.plot(line["n_orderings"], line["value"], color=_COLORS[values], lw=0.7)
                    last = line.iloc[-1]
                    ax.vlines(
                        last["n_orderings"],
                        last["value"] - 2 * last["se"],
                        last["value"] + 2 * last["se"],
                        color="black",
                        lw=0.7,
                    )
                counts = np.unique(table["n_orderings"])
                ends = counts[[0, len(counts) // 2, -1]]
                ax.set_xscale("log")
                ax.set_xticks(ends, map(str, ends))
                ax.set_xticks([], minor=True)
                ax.set_title(f"{values}: {group}", loc="left", pad=3)
        figure.supxlabel("orderings", fontsize=8.5)
        figure.supylabel("value", fontsize=8.5)


def _draw_errors(table: pd.DataFrame, path: Path) -> None:
    """Draw the final mean errors of d-SAGE and SAGE for both groups."""
    end = at_the_end(table)
    cases = [f"{line.graph}, {line.model.upper()}" for line in end.itertuples()]
    at = np.arange(len(end))
    with draw_svg(path, height=3.0) as figure:
        ax = figure.subplots()
        for group, marker in zip(GROUPS, "os", strict=True):
            for values, color in _COLORS.items():
                share = end[f"{values}: {group}"] / end["range"]
                face = color if group == "largest" else "white"
                ax.plot(at, share, marker, color=color, mfc=face, ms=4, label=f"{values}, {group}")
        ax.set_yscale("symlog", linthresh=1e-4)
        ax.set_ylim(bottom=0)
        ax.set_xticks(at, cases, rotation=60, ha="right", fontsize=7)
        ax.set_ylabel("mean standard error,\nof the range of the values")
        figure.legend(loc="outside upper center", ncols=4)


def at_the_end(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean errors of the groups at the last look, one line per graph and model."""
    last = table.groupby(["graph", "model", "values", "group"], sort=False).last().reset_index()
    keys = ["graph", "model"]
    end = last[keys].drop_duplicates().set_index(keys)
    end["n_orderings"] = last.groupby(keys)["n_orderings"].min()
    end["n_features"] = last.groupby(keys)["n_features"].first()
    end["range"] = last.groupby(keys)["range"].first()
    for (values, group), part in last.groupby(["values", "group"]):
        indexed = part.set_index(keys)
        end[f"{values}: {group}"] = indexed["mean_se"]
        end[f"{values}: {group}, zero"] = indexed["share_zero"]
    return end.reset_index()


def describe(store: Store) -> str:
    """Return the section."""
    end = at_the_end(store.read(ERRORS))
    rows = []
    for _, line in end.iterrows():
        cells = [line["graph"], line["model"].upper(), f"{line['n_orderings']:.0f}"]
        for group in GROUPS:
            cells += [f"{line[f'{values}: {group}']:.2g}" for values in _COLORS]
            cells.append(_factor(line[f"SAGE: {group}"], line[f"d-SAGE: {group}"]))
        rows.append([*cells, percent(line["d-SAGE: smallest, zero"])])
    header = ["graph", "model", "orderings"]
    for group in GROUPS:
        header += [f"{group}: SAGE", "d-SAGE", "ratio"]
    header.append("smallest, exactly 0")
    about = (
        "Mean standard errors of the fifteen largest and the fifteen smallest values (or of the "
        "larger and the smaller half, with fewer than thirty features) after the same orderings, "
        "on the same rows and with 10 draws. d-SAGE is Algorithm 1. A feature that is always "
        "skipped has the value 0 with error 0."
    )
    curves = store.read(CURVES)
    shown = [] if curves.empty else curves[["graph", "model"]].drop_duplicates().itertuples()
    figures = [
        f"![{line.graph}, {MODELS[line.model]}: values by number of orderings, with two standard "
        f"errors at the end](figures/convergence_{line.model}_{_plain(line.graph)}.svg)"
        for line in shown
    ]
    return "\n\n".join(
        [
            about,
            markdown(header, rows),
            "![Final errors](figures/convergence_errors.svg)",
            *figures,
            _verdict(end),
        ]
    )


def _factor(sage: float, dsage: float) -> str:
    return f"{sage / dsage:.2g}" if dsage > 0 else "all skipped"


def _by_model(end: pd.DataFrame, is_so: pd.Series) -> str:
    """Return how often a condition holds for each model, in parentheses."""
    counts = is_so.groupby(end["model"]).agg(["sum", "size"])
    details = [
        f"{name} {counts.loc[model, 'sum']} of {counts.loc[model, 'size']}"
        for model, name in MODELS.items()
        if model in counts.index
    ]
    return f" ({', '.join(details)})"


def _verdict(end: pd.DataFrame) -> str:
    text = []
    for group in reversed(GROUPS):
        sage, dsage = end[f"SAGE: {group}"], end[f"d-SAGE: {group}"]
        # If everything is skipped, there is no error left.
        ratio = (sage / dsage.where(dsage > 0)).fillna(np.inf)
        smaller = int((ratio > 1.05).sum())
        text.append(
            f"With d-SAGE, the errors of the {group} values are smaller by at least 5 % in "
            f"{smaller} of {len(end)} cases{_by_model(end, ratio > 1.05)}; in the median case, "
            f"SAGE's errors are {ratio.median():.2f} times as large."
        )
    small = end["SAGE: smallest"] > 1.05 * end["d-SAGE: smallest"]
    claim = "holds" if small.any() else "does not hold"
    everywhere = " everywhere" if small.all() else " in part" if small.any() else ""
    zero = end["d-SAGE: smallest, zero"] >= 0.1
    if zero.any():
        text.append(
            "This depends on the graph: if d-SAGE sets a tenth or more of the smallest values to "
            f"exactly 0, their errors are smaller in {int(small[zero].sum())} of "
            f"{int(zero.sum())} cases; otherwise in {int(small[~zero].sum())} of "
            f"{int((~zero).sum())}."
        )
    return (
        "According to the paper, d-SAGE's small values converge faster. This "
        f"{claim} here{everywhere}. "
        + " ".join(text)
        + " If d-SAGE's error is half of SAGE's, it needs a quarter of the orderings to reach the "
        "same error. The errors of d-SAGE refer to d-SAGE values; they do not include their "
        "difference from SAGE."
    )
