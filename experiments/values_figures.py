"""Draw and describe SAGE values and how d-SAGE changes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dsage.datasets import PAPER_GRAPHS
from experiments.drawing import BLUE, ORANGE, draw_svg
from experiments.problem import MODELS
from experiments.prose import markdown, percent
from experiments.store import Store

FEATURES, SUMMARY = "values", "values_summary"
TOP = 15
QUANTILES = {"low": 0.05, "q1": 0.25, "median": 0.5, "q3": 0.75, "high": 0.95}

_COLORS = {"lm": BLUE, "rf": ORANGE}
# Figure 4 shows five features of one graph per size.
_SHOWN = ("dag_s(3)", "dag_sm(3)", "dag_m(3)", "dag_l(3)")


def draw(store: Store, folder: Path) -> None:
    """Draw the five largest values (Figure 4) and the fifteen largest (appendix D) per model."""
    table = store.read(FEATURES)
    available = [name for name in PAPER_GRAPHS if name in set(table["graph"])]
    shown = [name for name in _SHOWN if name in available] or available[:4]
    for model in MODELS:
        own = table[table["model"] == model]
        _draw_top(own, shown, 5, _COLORS[model], folder / f"values_{model}.svg")
        for size in dict.fromkeys(name.split("(")[0] for name in available):
            graphs = [name for name in available if name.startswith(f"{size}(")]
            path = folder / f"values_{model}_{size}.svg"
            _draw_top(own, graphs, TOP, _COLORS[model], path)


def _draw_top(table: pd.DataFrame, graphs: list[str], top: int, color: str, path: Path) -> None:
    """Draw values, differences and skipped surpluses, one column per graph."""
    few = top <= 5
    with draw_svg(path, height=4.4) as figure:
        panels = figure.subplots(3, len(graphs), sharex="col", squeeze=False)
        for column, name in zip(panels.T, graphs, strict=True):
            found = largest(table[table["graph"] == name], top)
            labels = [feature.removeprefix("X") for feature in found.index]
            at = np.arange(len(found))
            values, differences, boxes = column
            mean, spread = found["sage"], found["sage_sd"]
            _segments(values, at, 0 * mean, mean, color, width=12 if few else 5)
            _segments(values, at, mean - spread, mean + spread, "black")
            values.set_title(name, loc="left", pad=3)
            differences.axhline(0, color="black", lw=0.5)
            mean, spread = found["difference"], found["difference_sd"]
            differences.plot(at, mean, "o", color=color, ms=3)
            _segments(differences, at, mean - spread, mean + spread, color)
            _draw_boxes(boxes, found, color)
            boxes.set_xticks(at, labels, fontsize=8 if few else 6, rotation=0 if few else 90)
            boxes.set_xlim(-0.7, len(found) - 0.3)
            for ax in column:
                ax.ticklabel_format(axis="y", scilimits=(-3, 3))
        for ax, label in zip(
            panels[:, 0], ("SAGE", "d-SAGE less SAGE", "skipped surpluses"), strict=True
        ):
            ax.set_ylabel(label)
        figure.supxlabel("feature", fontsize=8.5)


def _segments(
    ax: Axes, at: np.ndarray, low: pd.Series, high: pd.Series, color: str, width: float = 0.8
) -> None:
    """Draw vertical lines as one path with gaps, which keeps the file small."""
    gaps = np.full(len(at), np.nan)
    xs = np.stack([at, at, gaps], axis=1).ravel()
    ys = np.stack([low, high, gaps], axis=1).ravel()
    ax.plot(xs, ys, color=color, lw=width, solid_capstyle="butt")


def _draw_boxes(ax: Axes, found: pd.DataFrame, color: str) -> None:
    """Draw the quartiles as a thick line and the 5 % and 95 % quantiles as a thin one."""
    ax.axhline(0, color="black", lw=0.5)
    at = np.flatnonzero(found["n_skipped"] > 0)
    skipped = found.iloc[at]
    _segments(ax, at, skipped["low"], skipped["high"], color)
    _segments(ax, at, skipped["q1"], skipped["q3"], color, width=4)
    ax.plot(at, skipped["median"], "_", color="black", ms=5)


def largest(table: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return means and standard deviations over runs of the largest values of a table."""
    by_feature = table.groupby("feature")
    means = by_feature[["sage", "difference", "n_skipped", *QUANTILES]].mean()
    spread = by_feature[["sage", "difference"]].std(ddof=1).fillna(0.0)
    ordered = means.join(spread.add_suffix("_sd")).sort_values("sage", ascending=False)
    return ordered[:top]


def by_case(store: Store) -> pd.DataFrame:
    """Return one line per graph and model, with means over the runs."""
    table = store.read(SUMMARY)
    runs = table.groupby(["graph", "model"], sort=False)
    means = runs.mean(numeric_only=True)
    means["n_runs"] = runs.size()
    means["ratio"] = means["largest_difference"] / means["largest_value"]
    means["orders"] = -np.log10(means["ratio"].clip(lower=1e-12))
    return means.reset_index()


def describe(store: Store) -> str:
    """Return the section."""
    table = by_case(store)
    rows = []
    for name, part in table.groupby("graph", sort=False):
        cells = [str(name)]
        for model in MODELS:
            line = part[part["model"] == model].iloc[0]
            cells += [
                f"{line['largest_value']:.3f}",
                f"{line['largest_difference']:.2g}",
                percent(line["ratio"]),
                percent(line["change_top"]),
                f"{line['median_surplus']:.1g}",
            ]
        rows.append([*cells, percent(part["share_skipped"].mean())])
    header = ["graph"]
    for short in ("LM", "RF"):
        header += [f"{short}: largest value", "largest change", "relative"]
        header += ["change of top 5", "median skipped surplus"]
    header.append("skipped")
    lm, rf = (table[table["model"] == model] for model in MODELS)
    about = (
        f"{int(table['n_runs'].max())} runs for each graph and model, each with its own orderings "
        "and draws but on the same test rows. The linear model has "
        f"{lm['n_orderings'].max():.0f} orderings of {lm['n_rows'].max():,.0f} rows and needs no "
        f"draws. The forest has {rf['n_orderings'].max():.0f} (small graphs) to "
        f"{rf['n_orderings'].min():.0f} (large graphs) orderings of {rf['n_rows'].max():.0f} rows "
        "with 10 draws. d-SAGE is the paper's Algorithm 1 with the same orderings and draws, so "
        "it differs from SAGE by exactly the mean of the skipped surpluses. The table shows means "
        "over runs: the largest change of any feature, also relative to the largest value; the "
        "change of the five largest values, relative to their sum; the median size of a skipped "
        "surplus (a mean over rows); and the share of skipped surpluses. The figures show the "
        "largest values among the fifteen features that a cheap linear game ranks first; these "
        "features are the same in all runs."
    )
    figures = []
    for model, name in MODELS.items():
        figures.append(
            f"![Values, {name}: SAGE with standard deviations over runs, differences of d-SAGE, "
            f"and skipped surpluses (quartiles, 5 % and 95 % quantiles)]"
            f"(figures/values_{model}.svg)"
        )
    return "\n\n".join([about, markdown(header, rows), *figures, _more(store), _verdict(table)])


def _more(store: Store) -> str:
    """Link the figures of appendix D."""
    graphs = dict.fromkeys(store.read(FEATURES)["graph"])
    sizes = dict.fromkeys(name.split("(")[0] for name in graphs)
    links = [
        f"[{model.upper()}, {size}](figures/values_{model}_{size}.svg)"
        for model in MODELS
        for size in sizes
    ]
    return f"Fifteen features of every graph: {', '.join(links)}."


def _verdict(table: pd.DataFrame) -> str:
    lm = table[table["model"] == "lm"]
    rf = table[table["model"] == "rf"]
    text = []
    for part, name in ((lm, "linear model"), (rf, "forest")):
        far = part[part["orders"] >= 2.5]
        text.append(
            f"For the {name}, the largest change in the median graph is "
            f"{10 ** -part['orders'].median():.1g} of the largest value, "
            f"{part['orders'].median():.1f} orders of magnitude smaller (between "
            f"{part['orders'].min():.1f} and {part['orders'].max():.1f} orders across the "
            f"graphs; at least 2.5 in {len(far)} of {len(part)}). Together, the five largest "
            f"values change by {percent(part['change_top'].median())}."
        )
    holds = lm["orders"].median() >= 2.5
    text.insert(
        0,
        "According to the paper, differences are about three orders of magnitude smaller than the "
        "values for the linear model, and somewhat larger for the forest. "
        + ("The first claim holds here" if holds else "The first claim does not hold here")
        + " if the largest change is compared with the largest value.",
    )
    both = lm.set_index("graph")["ratio"].to_frame("lm").join(rf.set_index("graph")["ratio"])
    larger = int((both["ratio"] > both["lm"]).sum())
    factor = float((both["ratio"] / both["lm"]).median())
    text.append(
        f"The change is larger for the forest than for the linear model in {larger} of {len(both)} "
        f"graphs, by a factor of {factor:.1f} in the median graph. Part of that may be noise, "
        f"because the forest is evaluated on {rf['n_rows'].max():.0f} rows with draws, and the "
        f"linear model on {lm['n_rows'].max():,.0f} rows without."
    )
    return " ".join(text)
