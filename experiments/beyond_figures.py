"""Draw and tell what it takes to reach the same error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.drawing import BLUE, GREEN, ORANGE, PURPLE, draw_svg
from experiments.problem import MODELS
from experiments.prose import count, duration, markdown, percent
from experiments.store import Store

TABLE = "beyond"
PLAIN = "SAGE, uniform"
LEVELS, CORRECTED = "SAGE, levels", "SAGE, corrected"
SKIP, DEFAULT = "d-SAGE, skip", "d-SAGE, levels"

# What a table of all graphs shows; the others are in the summary.
_SHOWN = (PLAIN, LEVELS, CORRECTED, SKIP, "d-SAGE, boundary", DEFAULT)
_COLORS = (BLUE, ORANGE, GREEN, PURPLE)
_MARK = "≈"
_KINDS = ("orthogonal", "herding")


def draw(store: Store, folder: Path) -> None:
    """Draw evaluations that are needed, of all graphs: a line a way."""
    table = store.read(TABLE)
    ways = list(dict.fromkeys(table["way"]))
    sizes = list(dict.fromkeys(name.split("(")[0] for name in table["graph"]))
    with draw_svg(folder / "beyond.svg", height=3.6) as figure:
        panels = figure.subplots(1, len(MODELS), sharey=True)
        for ax, (model, title) in zip(panels, MODELS.items(), strict=True):
            for place, (size, color) in enumerate(zip(sizes, _COLORS, strict=False)):
                part = table[(table["model"] == model) & table["graph"].str.startswith(f"{size}(")]
                at = [len(ways) - 1 - ways.index(way) + 0.25 - 0.16 * place for way in part["way"]]
                reached = part["is_reached"].to_numpy()
                x, y = part["evaluations_needed"].to_numpy(), np.array(at)
                ax.plot(x[reached], y[reached], "o", ms=3.5, color=color, label=size)
                ax.plot(x[~reached], y[~reached], "o", ms=3.5, color=color, mfc="white")
            ax.set_xscale("log")
            ax.grid(visible=True, axis="x", alpha=0.25)
            ax.set_title(title, loc="left", pad=3)
            ax.set_yticks(range(len(ways)), ways[::-1])
        figure.supxlabel("evaluations (coalition and row) to the same error", fontsize=8.5)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4)


def describe(store: Store) -> str:
    """Return the section."""
    table = store.read(TABLE)
    goals = table.groupby("model")["tolerance"].first()
    rows = table.groupby("model")["n_rows"].max()
    n_graphs = table["graph"].nunique()
    about = (
        f"On {n_graphs} graphs: what it takes until the largest standard error is a small share "
        f"of the range of the values, {percent(goals['lm'])} for the linear model and "
        f"{percent(goals['rf'])} for the forest: evaluations of a coalition on a row, and "
        "seconds on one core, the first level included. The linear model has "
        f"{rows['lm']:,} test rows and needs no draws; the forest has {rows['rf']:,} with 8 draws. "
        f"Runs that would take long were ended before; their figures, marked {_MARK} (hollow in "
        "the drawing), are extrapolated with the square of the error. `uniform` orderings without "
        "levels are plain SAGE, and `skip` is the paper's Algorithm 1; `orthogonal` and "
        "`herding` are orderings of "
        "Mitchell et al.; `boundary` has values at Markov boundaries; `levels` adds the linear "
        "game as a first level, antithetic orderings, and all orderings at once where they need "
        "few coalitions, as d-SAGE's `orthogonal` and `herding` do, too; `corrected` is unbiased "
        "for SAGE, with d-SAGE as its first part. The errors are those of each estimand: d-SAGE's "
        "do not tell how far it is from SAGE, which the audit tells."
    )
    parts = [about, "![Evaluations to the same error](figures/beyond.svg)"]
    for model, name in MODELS.items():
        own = table[table["model"] == model]
        parts += [f"Evaluations, {name}:", markdown(*_by_graph(own))]
    parts += [
        f"Over all {n_graphs} graphs, geometric means:",
        markdown(*_summary(table)),
        _verdict(table),
    ]
    return "\n\n".join(parts)


def _by_graph(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    lines = []
    for name, part in table.groupby("graph", sort=False):
        by_way = part.set_index("way")
        cells = [
            ("" if by_way.loc[way, "is_reached"] else f"{_MARK} ")
            + count(by_way.loc[way, "evaluations_needed"])
            for way in _SHOWN
        ]
        lines.append([str(name), *cells])
    return ["graph", *_SHOWN], lines


def factors(table: pd.DataFrame, model: str, column: str) -> pd.DataFrame:
    """Return how many times less than plain SAGE each way needs: a line a graph."""
    needed = table[table["model"] == model].pivot_table(
        index="graph", columns="way", values=column, sort=False
    )
    return needed.rdiv(needed[PLAIN], axis=0)


def _summary(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    header, lines = ["way"], []
    for short in ("LM", "RF"):
        header += [f"{short}: times fewer evaluations", "times less time", "longest", "reached"]
    for way in dict.fromkeys(table["way"]):
        cells = [way]
        for model in MODELS:
            own = table[(table["model"] == model) & (table["way"] == way)]
            fewer = factors(table, model, "evaluations_needed")[way]
            faster = factors(table, model, "seconds_needed")[way]
            cells += [_times(_middle(fewer)), _times(_middle(faster))]
            cells += [duration(own["seconds_needed"].max())]
            cells += [f"{int(own['is_reached'].sum())} of {len(own)}"]
        lines.append(cells)
    return header, lines


def _middle(ratios: pd.Series) -> float:
    """Return the geometric mean: ratios multiply."""
    return float(np.exp(np.log(ratios).mean()))


def _speeds(table: pd.DataFrame, model: str) -> dict[str, pd.Series]:
    found = factors(table, model, "seconds_needed")
    return {way: found[way] for way in found}


def _times(ratio: float) -> str:
    """Return a ratio with two digits that matter."""
    return f"{ratio:.2g}" if ratio < 10 else count(ratio)


def _few(ratio: float) -> str:
    """Tell a ratio of evaluations, plain SAGE's to those of a way."""
    return f"{_times(ratio)} times fewer" if ratio >= 1 else f"{_times(1 / ratio)} times as many"


def _verdict(table: pd.DataFrame) -> str:
    text = [_on_model(table, model, name) for model, name in MODELS.items()]
    lm, rf = (_middle(_speeds(table, model)[DEFAULT]) for model in MODELS)
    if rf > lm:
        text.append(
            "Boundaries and orderings have a cost of their own, which pays where a prediction "
            "costs more than a product: less so for a linear model without draws."
        )
    return " ".join(text)


def _on_model(table: pd.DataFrame, model: str, name: str) -> str:
    fewer = factors(table, model, "evaluations_needed")
    ways = {way: _middle(fewer[way]) for way in fewer}
    best = max(ways, key=lambda way: ways[way])
    better = int((fewer[CORRECTED] > fewer[SKIP]).sum())
    plain = int((fewer[LEVELS] > fewer[CORRECTED]).sum())
    text = [
        (
            f"For the {name}, evaluations against plain SAGE (geometric means over the graphs): "
            f"{_few(ways[SKIP])} for Algorithm 1, {_few(ways[DEFAULT])} for our default d-SAGE, "
            f"and {_few(ways[CORRECTED])} for corrected SAGE, which has no bias; {best} needs the "
            "fewest."
        ),
        (
            f"Corrected SAGE needs fewer than Algorithm 1 in {better} of {len(fewer)} graphs; but "
            f"SAGE without a graph, with levels, needs fewer than corrected SAGE in {plain} of "
            f"{len(fewer)}."
        ),
    ]
    faster = {way: _middle(times) for way, times in _speeds(table, model).items()}
    first = max(faster, key=lambda way: faster[way])
    text.append(
        f"In time, {first} is ahead"
        + ("" if first == PLAIN else f", {_times(faster[first])} times as fast as plain SAGE")
        + ". Times as fast as plain SAGE are: "
        + ", ".join(
            f"{way} {_times(faster[way])}"
            for way in (SKIP, "d-SAGE, boundary", LEVELS, CORRECTED, DEFAULT)
        )
        + "."
    )
    n_reached = int(table[(table["model"] == model) & (table["way"] == PLAIN)]["is_reached"].sum())
    text.append(
        f"Plain SAGE reached the error in {n_reached} of {len(fewer)} graphs; the other factors "
        "are extrapolated."
    )
    kinds = ", ".join(f"{kind} {_few(ways[f'SAGE, {kind}'])}" for kind in _KINDS)
    more = max(ways[f"d-SAGE, {kind}"] for kind in _KINDS) / ways[DEFAULT]
    text.append(
        f"Mitchell et al.'s orderings for plain SAGE, against uniform ones: {kinds}. With levels "
        "and boundaries the better of the two kinds "
        + (
            f"needs {_few(more)} evaluations than antithetic orderings."
            if more > 1.05
            else "does not beat antithetic orderings."
        )
    )
    return " ".join(text)
