"""Draw and describe the values of the drug consumption data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.drawing import BLUE, GREEN, ORANGE, draw_svg
from experiments.prose import duration, markdown, percent
from experiments.store import Store

MODEL, GRAPHS, RUNS, VALUES = "drug_model", "drug_graphs", "drug", "drug_values"
AUTHORS, OURS = "authors", "ours"
SETTINGS = {AUTHORS: "as the authors did", OURS: "our own way"}
WAYS = {"SAGE": "", "d-SAGE, skip": "skip", "d-SAGE, boundary": "boundary"}

_COLORS = dict(zip(WAYS, (ORANGE, BLUE, GREEN), strict=True))
# Results of the paper, and the largest number of orderings in sage_to_csl_drug.py.
_GRAPH_SECONDS, _SHARE, _FIVE_RUNS, _EDUCATION = 0.035, 0.38, 12 * 3600 + 14 * 60, 1 / 3
_ORDERINGS = 2590
MISSING = (
    "The data were not available in this run. Download the file from UCI, set `DSAGE_DRUG_DATA` "
    "to its path, and run this part again."
)


def draw(store: Store, folder: Path) -> None:
    """Draw values with their errors and the changes by d-SAGE, one file per setting."""
    for setting in SETTINGS:
        runs, exact = by_feature(store, setting), _of(store, VALUES, setting)
        if not runs.empty:
            _draw_values(runs, exact, folder / f"drug_{setting}.svg")


def _draw_values(runs: pd.DataFrame, exact: pd.DataFrame, path: Path) -> None:
    order = list(runs.index)
    at = np.arange(len(order))
    with draw_svg(path, height=3.4) as figure:
        values, differences = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        if not set(WAYS) <= set(_ways(exact)):
            _plot_runs(values, at, runs)
        for way in _ways(exact):
            shift = 0.22 * (list(WAYS).index(way) - 1)
            part = exact[exact["way"] == way].set_index("feature").loc[order]
            label = f"{way}, all orderings"
            values.plot(at + shift, part["value"], "o", color=_COLORS[way], ms=4, label=label)
            values.vlines(at + shift, part["lower"], part["upper"], color=_COLORS[way], lw=1)
        values.axhline(0, color="black", lw=0.5)
        values.set_ylabel("value, nats")
        differences.axhline(0, color="black", lw=0.5)
        differences.plot(at, runs["difference"], "o", color=BLUE, ms=4)
        spread = runs["difference_sd"]
        low, high = runs["difference"] - spread, runs["difference"] + spread
        differences.vlines(at, low, high, color=BLUE, lw=1)
        differences.set_ylabel("d-SAGE less SAGE")
        differences.set_xticks(at, order, rotation=45, ha="right")
        figure.legend(loc="outside upper center", ncols=3)


def _ways(exact: pd.DataFrame) -> list[str]:
    """Return the ways with values over all orderings."""
    return [] if exact.empty else [way for way in WAYS if way in set(exact["way"])]


def _plot_runs(ax: Axes, at: np.ndarray, runs: pd.DataFrame) -> None:
    ax.plot(at - 0.22, runs["sage"], "s", color=ORANGE, ms=4, label="SAGE, mean of runs")
    ax.plot(at, runs["dsage"], "s", color=BLUE, ms=4, label="d-SAGE, mean of runs")


def _of(store: Store, name: str, setting: str) -> pd.DataFrame:
    """Return the lines of a table for one setting."""
    table = store.read(name)
    return table if table.empty else table[table["setting"] == setting]


def by_feature(store: Store, setting: str) -> pd.DataFrame:
    """Return means and standard deviations over runs, sorted by SAGE value."""
    table = _of(store, RUNS, setting)
    if table.empty:
        return table
    runs = table.assign(difference=table["dsage"] - table["sage"]).groupby("feature")
    spread = runs[["sage", "dsage", "difference"]].std(ddof=1).fillna(0.0).add_suffix("_sd")
    means = runs[["sage", "dsage", "difference", "share_skipped"]].mean()
    return means.join(spread).sort_values("sage", ascending=False)


def education_change(store: Store, setting: str) -> float:
    """Return the relative change of Education's value by d-SAGE, averaged over runs."""
    line = by_feature(store, setting).loc["Education"]
    return float(line["difference"] / line["sage"])


def describe(store: Store) -> str:
    """Return the section."""
    parts = [_about(store), markdown(*_beside(store)), _verdict(store)]
    for setting, name in SETTINGS.items():
        runs = by_feature(store, setting)
        parts += [
            f"Values, {name}:",
            f"![Values, {name}](figures/drug_{setting}.svg)",
            markdown(*_values(runs, _of(store, VALUES, setting))),
        ]
    return "\n\n".join([*parts, _on_values(store)])


def _about(store: Store) -> str:
    models, runs = store.read(MODEL).set_index("setting"), store.read(RUNS)
    model = models.loc[AUTHORS]
    fits = "; ".join(
        f"{name}: accuracy {percent(models.loc[setting, 'accuracy'])}, cross entropy "
        f"{models.loc[setting, 'cross_entropy']:.3f}"
        for setting, name in SETTINGS.items()
    )
    n_orderings = runs["n_orderings"].iloc[0]
    return (
        "Logistic regression of nicotine use (CL4 to CL6 against the rest) on twelve features, "
        "four of which are classes: gender, education, country and ethnicity. There are "
        f"{model['n_train']:,.0f} training rows and {model['n_test']:.0f} test rows. We use the "
        "sequential sampler with 10 draws, and TABU's graph with the conditional-Gaussian BIC. "
        f"{runs['run'].nunique()} runs of {n_orderings} orderings estimate d-SAGE (Algorithm 1) "
        "and SAGE along the same orderings."
        + (
            ""
            if store.read(VALUES).empty
            else " We also average over all 479,001,600 orderings, by evaluating each relevant "
            "coalition once."
        )
        + "\n\n"
        "The experiment is done twice. **As the authors did**, following their scripts "
        "(`experiment_drug.py` and `tabu_drug.R` in csl-experiments): the model treats class codes "
        "as numbers, and the graph is learned from all rows, including the test rows, with the "
        "*seven* original classes of nicotine, which the model does not predict. **Our own way**: "
        "the model has one column per class, and the graph is learned from the training rows with "
        "the two classes that the model predicts. Both use our sampler, which draws classes by "
        f"logistic regression; the authors draw them by random forests. (Test scores: {fits}; "
        f"cross entropy without features {model['cross_entropy_of_share']:.3f}.)"
    )


def _beside(store: Store) -> tuple[list[str], list[list[str]]]:
    columns = {setting: _figures(store, setting) for setting in SETTINGS}
    paper = {
        "learning the graph": duration(_GRAPH_SECONDS),
        "surpluses that can be skipped": percent(_SHARE),
        "change of Education's value with d-SAGE": f"about {percent(-_EDUCATION)}",
    }
    five_runs = f"{duration(_FIVE_RUNS)}, at most {_ORDERINGS:,} orderings"
    rows = []
    for what in columns[OURS] | columns[AUTHORS]:
        ours = [columns[setting].get(what, "-") for setting in SETTINGS]
        is_time = what.endswith("runs, SAGE and d-SAGE")
        rows.append([what, *ours, five_runs if is_time else paper.get(what, "-")])
    return ["", *SETTINGS.values(), "paper"], rows


def _figures(store: Store, setting: str) -> dict[str, str]:
    """Return our results to compare with the paper's, by name."""
    graphs, runs, exact = (_of(store, name, setting) for name in (GRAPHS, RUNS, VALUES))
    main, each = graphs[graphs["split"] == 0].iloc[0], runs.drop_duplicates("run")
    found = {
        "learning the graph": duration(main["seconds_graph"]),
        "surpluses that can be skipped": percent(main["share_skipped"]),
    }
    if len(graphs) > 1:
        low, high = graphs["share_skipped"].min(), graphs["share_skipped"].max()
        what = f"range over {len(graphs)} splits of the rows"
        found[what] = f"{percent(low)} to {percent(high)}"
    change = education_change(store, setting)
    found["change of Education's value with d-SAGE"] = percent(change)
    took, n_orderings = duration(each["seconds"].sum()), each["n_orderings"].sum()
    found[f"{len(each)} runs, SAGE and d-SAGE"] = f"{took}, {n_orderings:,} orderings"
    for line in [] if exact.empty else exact.drop_duplicates("way").itertuples():
        what = f"{line.way}, all orderings"
        found[what] = f"{duration(line.seconds)}, {line.n_coalitions:,} coalitions"
    return found


def _values(runs: pd.DataFrame, exact: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    header = ["feature", "SAGE, runs", "d-SAGE, runs", "difference", "skipped"]
    header += [f"{way}, all" for way in _ways(exact)]
    rows = []
    for feature, line in runs.iterrows():
        cells = [
            str(feature),
            f"{line['sage']:.4f} ± {line['sage_sd']:.4f}",
            f"{line['dsage']:.4f} ± {line['dsage_sd']:.4f}",
            f"{line['difference']:+.4f} ± {line['difference_sd']:.4f}",
            percent(line["share_skipped"]),
        ]
        if not exact.empty:
            by_way = exact[exact["feature"] == feature].set_index("way")
            cells += [
                f"{found['value']:.4f} ({found['lower']:.4f} to {found['upper']:.4f})"
                for _, found in by_way.loc[_ways(exact)].iterrows()
            ]
        rows.append(cells)
    return header, rows


def _verdict(store: Store) -> str:
    graphs = _of(store, GRAPHS, AUTHORS)
    share, change = graphs["share_skipped"].iloc[0], education_change(store, AUTHORS)
    runs = _of(store, RUNS, AUTHORS).drop_duplicates("run")
    took, n_orderings = runs["seconds"].sum(), runs["n_orderings"].sum()
    text = []
    for is_same, what, ours, paper in (
        (abs(share - _SHARE) <= 0.01, "share of surpluses that can be skipped", share, _SHARE),
        (abs(change + _EDUCATION) <= 0.1, "change of Education's value", change, -_EDUCATION),
    ):
        agrees = (
            "agrees with the paper" if is_same else f"differs from the paper's {percent(paper)}"
        )
        text.append(f"In the authors' setting, the {what} {agrees}: {percent(ours)}.")
    n_test = store.read(MODEL).set_index("setting").loc[AUTHORS, "n_test"]
    if runs["n_rows"].iloc[0] == n_test:
        ratio = _FIVE_RUNS / _ORDERINGS / (took / n_orderings)
        text.append(
            f"{len(runs)} runs take {duration(took)}, or {duration(took / n_orderings)} per "
            f"ordering. The paper's five runs took {duration(_FIVE_RUNS)} on another machine for "
            f"at most {_ORDERINGS:,} orderings (`sage_to_csl_drug.py`), which is at least "
            f"{ratio:.0f} times as long per ordering."
        )
    return " ".join([*text, _on_our_graph(store)])


def _on_our_graph(store: Store) -> str:
    """Describe how the result depends on how the graph is learned."""
    graphs = _of(store, GRAPHS, OURS)
    main = graphs[graphs["split"] == 0].iloc[0]
    low, high = graphs["share_skipped"].min(), graphs["share_skipped"].max()
    never = int((graphs["share_skipped_education"] == 0).sum())
    change = education_change(store, OURS)
    theirs = _of(store, GRAPHS, AUTHORS)["neighbours"].iloc[0]
    return (
        "**Both numbers depend on the graph, and the graph on how it is learned**: from the "
        "training rows, with the classes that the model predicts, "
        f"{percent(main['share_skipped'])} can be skipped ({percent(low)} to {percent(high)} over "
        f"{len(graphs)} splits), and Education changes by {percent(change)}. In that graph, the "
        f"neighbors of Nicotine are {main['neighbours'].replace(' ', ', ')}; in the authors' graph "
        f"they are {theirs.replace(' ', ', ')}. Education is a neighbor in {never} of "
        f"{len(graphs)} splits, and neighbors are never skipped."
    )


def _on_values(store: Store) -> str:
    """Describe which values change most over all orderings."""
    text = ["± is the standard deviation over runs; 95 % intervals account for the draws."]
    trusts_more = False
    for setting, name in SETTINGS.items():
        exact = _of(store, VALUES, setting)
        if not set(WAYS) <= set(_ways(exact)):
            continue
        values = exact.pivot_table(index="feature", columns="way", values="value")
        details = []
        for way in list(WAYS)[1:]:
            feature = (values[way] - values["SAGE"]).abs().idxmax()
            details.append(
                f"{way} differs most from SAGE for {feature}, {values.loc[feature, way]:.4f} "
                f"instead of {values.loc[feature, 'SAGE']:.4f}"
            )
        text.append(f"Over all orderings, {name}: {'; '.join(details)}.")
        gap = values.sub(values["SAGE"], axis=0).abs().max()
        trusts_more |= bool(gap["d-SAGE, boundary"] > 2 * gap["d-SAGE, skip"])
    if trusts_more:
        text.append(
            "Values at boundaries rely more on the graph: if it misses a dependence, a surplus is "
            "evaluated at the wrong coalition, whereas Algorithm 1 only skips surpluses. That is "
            "one explanation. A suboptimal model and the sampler are others, and this experiment "
            "does not distinguish between them."
        )
    return " ".join(text)
