"""Draw and describe the cost of reaching the same error."""

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

# Columns of the tables by graph; the summary has all ways.
_SHOWN = (PLAIN, LEVELS, CORRECTED, SKIP, "d-SAGE, boundary", DEFAULT)
_COLORS = (BLUE, ORANGE, GREEN, PURPLE)
_MARK = "≈"
_KINDS = ("orthogonal", "herding")


def draw(store: Store, folder: Path) -> None:
    """Draw the necessary evaluations of all graphs, one row per way."""
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
        f"How expensive is it, on {n_graphs} graphs, to reduce the largest standard error to "
        f"{percent(goals['lm'])} (linear model) or {percent(goals['rf'])} (forest) of the range of "
        "the values? The cost is the number of evaluations (of one coalition on one row), and the "
        "time in seconds on one core; both include the first level. The linear model has "
        f"{rows['lm']:,} test rows and needs no draws; the forest has {rows['rf']:,} test rows and "
        "8 draws. Long runs were stopped early; their costs are extrapolated with the square of "
        f"the error and marked {_MARK} (hollow in the figure).\n\n"
        "The ways are: `SAGE, uniform`, plain SAGE with uniform orderings and no first level; "
        "`skip`, the paper's Algorithm 1; `orthogonal` and `herding`, the orderings of Mitchell et "
        "al.; `boundary`, surpluses evaluated at Markov boundaries; `levels`, which adds the "
        "linear game as a first level, antithetic orderings, and all orderings at once if they "
        "need few coalitions (so do `orthogonal` and `herding` with d-SAGE, except for the kind of "
        "orderings); and `corrected`, an unbiased estimate of SAGE that adds a correction to "
        "d-SAGE. Errors refer to the respective estimand: the error of d-SAGE does not include "
        "its difference from SAGE, which the audit estimates."
    )
    parts = [about, "![Evaluations to the same error](figures/beyond.svg)"]
    for model, name in MODELS.items():
        own = table[table["model"] == model]
        parts += [f"Evaluations, {name}:", markdown(*_by_graph(own))]
    parts += [
        f"Geometric means over all {n_graphs} graphs, relative to plain SAGE:",
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
    """Return the cost of plain SAGE relative to each way, one line per graph."""
    needed = table[table["model"] == model].pivot_table(
        index="graph", columns="way", values=column, sort=False
    )
    return needed.rdiv(needed[PLAIN], axis=0)


def _summary(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    header, lines = ["way"], []
    for short in ("LM", "RF"):
        header += [f"{short}: times fewer evaluations", "times faster", "longest run", "reached"]
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
    """Return the geometric mean of ratios."""
    return float(np.exp(np.log(ratios).mean()))


def _speeds(table: pd.DataFrame, model: str) -> dict[str, pd.Series]:
    found = factors(table, model, "seconds_needed")
    return {way: found[way] for way in found}


def _times(ratio: float) -> str:
    """Format a ratio with two significant digits."""
    return f"{ratio:.2g}" if ratio < 10 else count(ratio)


def _few(ratio: float) -> str:
    """Describe the ratio of plain SAGE's evaluations to those of a way."""
    return f"{_times(ratio)} times fewer" if ratio >= 1 else f"{_times(1 / ratio)} times as many"


def _verdict(table: pd.DataFrame) -> str:
    text = [_on_model(table, model, name) for model, name in MODELS.items()]
    lm, rf = (_middle(_speeds(table, model)[DEFAULT]) for model in MODELS)
    if rf > lm:
        text.append(
            "Boundaries and better orderings have their own overhead, which pays off if "
            "predictions are expensive, but less so for a linear model without draws."
        )
    return "\n\n".join(text)


def _on_model(table: pd.DataFrame, model: str, name: str) -> str:
    fewer = factors(table, model, "evaluations_needed")
    ways = {way: _middle(fewer[way]) for way in fewer}
    best = max(ways, key=lambda way: ways[way])
    better = int((fewer[CORRECTED] > fewer[SKIP]).sum())
    plain = int((fewer[LEVELS] > fewer[CORRECTED]).sum())
    text = [
        (
            f"**{name.capitalize()}.** Compared with the evaluations of plain SAGE (geometric "
            f"means over the graphs), Algorithm 1 needs {_few(ways[SKIP])}, our default d-SAGE "
            f"{_few(ways[DEFAULT])}, and corrected SAGE, which has no bias, "
            f'{_few(ways[CORRECTED])}. The fewest are needed by "{best}".'
        ),
        (
            f"Corrected SAGE needs fewer than Algorithm 1 in {better} of {len(fewer)} graphs, but "
            f"SAGE with a first level and no graph needs fewer than corrected SAGE in {plain} of "
            f"{len(fewer)}."
        ),
    ]
    faster = {way: _middle(times) for way, times in _speeds(table, model).items()}
    first = max(faster, key=lambda way: faster[way])
    text.append(
        f'The fastest is "{first}"'
        + ("" if first == PLAIN else f", {_times(faster[first])} times as fast as plain SAGE")
        + ". Speed relative to plain SAGE: "
        + "; ".join(
            f"{way}: {_times(faster[way])}"
            for way in (SKIP, "d-SAGE, boundary", LEVELS, CORRECTED, DEFAULT)
        )
        + "."
    )
    n_reached = int(table[(table["model"] == model) & (table["way"] == PLAIN)]["is_reached"].sum())
    text.append(
        f"Plain SAGE reached the error in {n_reached} of {len(fewer)} graphs; the factors of the "
        "other graphs are extrapolated."
    )
    kinds = ", ".join(f"{kind} {_few(ways[f'SAGE, {kind}'])}" for kind in _KINDS)
    more = max(ways[f"d-SAGE, {kind}"] for kind in _KINDS) / ways[DEFAULT]
    text.append(
        f"For plain SAGE, the evaluations of Mitchell et al.'s orderings relative to uniform ones "
        f"are: {kinds}. With a first level and boundaries, the better of these two kinds "
        + (
            f"needs {_few(more)} evaluations than antithetic orderings."
            if more > 1.05
            else "does not beat antithetic orderings."
        )
    )
    return " ".join(text)
