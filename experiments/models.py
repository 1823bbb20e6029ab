"""Reproduce the paper's table of models: errors of the linear model and the random forest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import mean_squared_error, r2_score

from dsage.datasets import PAPER_GRAPHS, paper_graph
from experiments.drawing import BLACK, BLUE, ORANGE, draw_svg
from experiments.part import Part
from experiments.problem import FULL_DATA, MODELS, QUICK_DATA, Data, problem
from experiments.prose import join_words, markdown
from experiments.store import Line, Store, seed_of

TABLE = "models"

_PAPER_TEST = 2_000
# The paper prints three decimals.
_ROUNDING = 0.0005
_COLORS = {"lm": BLUE, "rf": ORANGE}


@dataclass(frozen=True)
class Sizes:
    """Graphs and sizes of the data."""

    graphs: Sequence[str] = PAPER_GRAPHS
    data: Data = FULL_DATA


def run(store: Store, sizes: Sizes) -> None:
    """Compute the table."""
    for name in sizes.graphs:
        seed = seed_of("problem", name, sizes.data.n_train, sizes.data.n_test)
        store.unit(TABLE, {"graph": name}, partial(_lines, name, sizes.data), seed=seed)


def _lines(name: str, data: Data) -> list[Line]:
    at = problem(name, data)
    lines: list[Line] = []
    for model, fitted in (("lm", at.lm), ("rf", at.rf)):
        predicted = fitted.predict(at.X)
        lines.append(
            {
                "model": model,
                "n_train": data.n_train,
                "n_test": data.n_test,
                "n_trees": data.n_trees if model == "rf" else 0,
                "mse": mean_squared_error(at.y, predicted),
                "r2": r2_score(at.y, predicted),
            }
        )
    return lines


def beside(store: Store) -> pd.DataFrame:
    """Return the table with the paper's numbers and their deviations in standard errors.

    The mean of n squared normal residuals has the relative standard error sqrt(2 / n). Rounding
    of the paper's numbers does not count as deviation.
    """
    table = store.read(TABLE)
    for figure in ("mse", "r2"):
        table[f"paper_{figure}"] = [
            paper_graph(line.graph).printed[f"{figure}_{line.model}"] for line in table.itertuples()
        ]
    chance = np.sqrt(2 / table["n_test"] + 2 / _PAPER_TEST)
    gap = table["mse"] - table["paper_mse"]
    beyond = np.sign(gap) * np.maximum(gap.abs() - _ROUNDING, 0)
    table["deviation"] = beyond / table["paper_mse"] / chance
    return table


def draw(store: Store, folder: Path) -> None:
    """Draw our errors and the paper's."""
    table = beside(store)
    graphs = list(dict.fromkeys(table["graph"]))
    at = np.arange(len(graphs))
    with draw_svg(folder / "models.svg", height=2.7) as figure:
        ax = figure.subplots()
        for shift, (model, name) in zip((-0.12, 0.12), MODELS.items(), strict=True):
            part = table[table["model"] == model].set_index("graph").loc[graphs]
            ax.plot(at + shift, part["mse"], "o", color=_COLORS[model], label=f"{name}, ours")
            label = "the paper" if model == "rf" else None
            ax.plot(at + shift, part["paper_mse"], "x", color=BLACK, label=label)
        ax.set_xticks(at, graphs, rotation=45, ha="right")
        ax.set_ylabel("mean squared error")
        ax.set_ylim(bottom=0)
        figure.legend(loc="outside upper center", ncols=3)


def describe(store: Store) -> str:
    """Return the section."""
    table = beside(store)
    rows = []
    for name, part in table.groupby("graph", sort=False):
        cells = [str(name)]
        for model in MODELS:
            line = part[part["model"] == model].iloc[0]
            cells += [f"{line['mse']:.3f}", f"{line['paper_mse']:.3f}"]
            cells += [f"{line['r2']:.3f}", f"{line['paper_r2']:.3f}"]
        rows.append(cells)
    header = ["graph"]
    for short in ("LM", "RF"):
        header += [f"{short}: MSE", "paper", f"{short}: R²", "paper"]
    first = table.iloc[0]
    about = (
        "Ordinary least squares and a random forest of "
        f"{table['n_trees'].max()} trees, otherwise with scikit-learn's defaults, trained on "
        f"{first['n_train']:,} rows and tested on {first['n_test']:,} others. The rows are newly "
        "simulated, so the errors differ from the paper's by chance."
    )
    return "\n\n".join(
        [
            about,
            markdown(header, rows),
            "![Errors of the models](figures/models.svg)",
            " ".join(_verdict(table, model) for model in MODELS),
        ]
    )


def _verdict(table: pd.DataFrame, model: str) -> str:
    part = table[table["model"] == model]
    off = part[part["deviation"].abs() > 3]
    if off.empty:
        return (
            f"The errors of the {MODELS[model]} agree with the paper up to chance: the largest "
            f"deviation is {part['deviation'].abs().max():.1f} standard errors."
        )
    worse = int((off["deviation"] > 0).sum())
    less = part["n_train"].iloc[0] < Data.n_train
    why = " Here it was trained on fewer rows than in the paper." if less else ""
    return (
        f"The errors of the {MODELS[model]} differ from the paper's by more than three standard "
        f"errors in {join_words(off['graph'])}; they are larger in {worse} of these.{why}"
    )


MODELS_PART = Part(
    name="models",
    title="The models: errors of the linear model and of the forest (table of models)",
    run=run,
    quick=Sizes(data=QUICK_DATA),
    full=Sizes(),
    draw=draw,
    describe=describe,
)
