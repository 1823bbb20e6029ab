"""How all plots look: colours, sizes, frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from dsage._check import refusal
from dsage.plots.fonts import text_style, wrapped
from dsage.result.record import Record

# Okabe & Ito's palette, told apart by every kind of colour vision; without its yellow, which is
# too light for lines on white.
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, INK = "#CC79A7", "#56B4E9", "#222222"
PALETTE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, INK)
MARKERS = "osD^vPX"
GREY, LIGHT, FAINT = "#6B6B6B", "#C9C9C9", "#ECECEC"

# Points. Names and axes have one size, all that explains them another.
SIZE, SMALL = 9.0, 8.0
# Inches that a line of text of `SIZE` takes.
LINE = SIZE * 1.25 / 72
# Letters on a line below a panel.
LABEL = 42
# The part of an em that a letter takes, on average.
_LETTER = 0.62


def check_record(record: object, parameter: str = "record") -> Record:
    """Return `record` if it is one."""
    if not isinstance(record, Record):
        raise refusal(
            parameter,
            "an Explanation or a Record",
            type(record).__name__,
            "dsage.explain makes one",
            TypeError,
        )
    return record


def text_width(n_letters: int, size: float = SIZE) -> float:
    """Return about how many inches so many letters take.

    Examples
    --------
    >>> round(text_width(36), 1)
    2.8
    """
    return n_letters * _LETTER * size / 72


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure of so many inches, in which nothing is cut off."""
    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def two_axes(
    ax: Sequence[Axes] | None, width: float, height: float, ratios: tuple[float, float]
) -> tuple[Axes, Axes]:
    """Return the two axes given, or those of a new figure."""
    if ax is None:
        _, (left, right) = plt.subplots(
            1, 2, figsize=(width, height), layout="constrained", width_ratios=ratios
        )
        return left, right
    # Also the array of axes that plt.subplots returns.
    given: list[Any] = list(ax) if hasattr(ax, "__iter__") else [ax]
    if len(given) != 2 or not all(isinstance(each, Axes) for each in given):
        raise refusal(
            "ax", "two Axes", ax, "Take them from plt.subplots(1, 2, layout='constrained')"
        )
    return given[0], given[1]


def tidy(ax: Axes, *, grid: Literal["x", "y"] = "x") -> None:
    """Leave of the frame what is read: the axis below, few ticks, a light grid."""
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(LIGHT)
    ax.tick_params(labelsize=SMALL, color=LIGHT, labelcolor=INK)
    ax.grid(axis=grid, color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    # Few enough that long numbers do not run into each other.
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))


def label_x(ax: Axes, text: str, *, width: int = LABEL) -> None:
    """Name what the horizontal axis shows, on lines of `width` letters."""
    ax.set_xlabel(wrapped(text, width), fontsize=SIZE, color=INK, **text_style())


def label_y(ax: Axes, text: str) -> None:
    """Name what the vertical axis shows, on lines that a low figure has room for."""
    ax.set_ylabel(wrapped(text, 28), fontsize=SIZE, color=INK, **text_style())


def legend_above(ax: Axes, handles: Sequence[Any], *, title: str | None = None) -> None:
    """Explain the marks above the axes, where they cover nothing; an entry a line."""
    if not handles and title is None:
        return
    legend = ax.legend(
        handles=list(handles),
        title=title,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        fontsize=SMALL,
        title_fontsize=SMALL,
        frameon=False,
        borderaxespad=0.2,
        borderpad=0.0,
        handlelength=1.8,
        labelspacing=0.25,
        alignment="left",
    )
    for text in (*legend.get_texts(), legend.get_title()):
        text.update(text_style())


def percent(confidence: float) -> str:
    """Return a share as a reader wants it.

    Examples
    --------
    >>> percent(0.95)
    '95 %'
    """
    return f"{100 * confidence:.4g} %"


def value_label(record: Record, estimand: str | None = None) -> str:
    """Return what the values are, with their unit.

    Parameters
    ----------
    record : Record
        The run.
    estimand : str, optional
        In place of the run's own; "" leaves it open.
    """
    words = {"d-sage": "d-SAGE value", "sage": "SAGE value", "": "value"}
    kind = words[record.estimate.estimand if estimand is None else estimand]
    return f"{kind} (reduction of {loss_name(record)})"


def loss_name(record: Record) -> str:
    """Return the name of the loss in words."""
    name = record.choices.get("loss", {}).get("name")
    return "the loss" if name is None else str(name).replace("_", " ")
