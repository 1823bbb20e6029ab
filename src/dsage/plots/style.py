"""The style of all plots: colors, sizes, frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from dsage._check import refusal
from dsage.plots.fonts import text_style, wrap
from dsage.result.explanation import Explanation

# The palette of Okabe & Ito, distinguishable with every kind of color vision, without its yellow,
# which is too light for lines on white.
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, INK = "#CC79A7", "#56B4E9", "#222222"
PALETTE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, INK)
MARKERS = "osD^vPX"
GRAY, LIGHT, FAINT = "#6B6B6B", "#C9C9C9", "#ECECEC"

# Points: names and axes, and everything else.
SIZE, SMALL = 9.0, 8.0
# Height in inches of a line of text of `SIZE`.
LINE = SIZE * 1.25 / 72
# Letters per line below a panel.
LABEL = 42
# Average width of a letter in em.
_LETTER = 0.62

_Result = TypeVar("_Result")


def check_explanation(explanation: object, parameter: str = "explanation") -> Explanation:
    """Return `explanation`, or refuse other objects."""
    if not isinstance(explanation, Explanation):
        found, advice = type(explanation).__name__, "Pass the result of dsage.explain or dsage.load"
        raise refusal(parameter, "an Explanation", found, advice, TypeError)
    return explanation


def check_result(given: object, kind: type[_Result], parameter: str, source: str) -> _Result:
    """Return `given` if it is of a kind that the function `source` returns; refuse others."""
    if not isinstance(given, kind):
        found, advice = type(given).__name__, f"Pass the result of {source}"
        raise refusal(parameter, f"a {kind.__name__}", found, advice, TypeError)
    return given


def text_width(n_letters: int, size: float = SIZE) -> float:
    """Return the approximate width of some letters in inches."""
    return n_letters * _LETTER * size / 72


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure of this size in inches; nothing is cut off."""
    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def two_axes(
    ax: Sequence[Axes] | None, width: float, height: float, ratios: tuple[float, float]
) -> tuple[Axes, Axes]:
    """Return the two given axes, or two new ones."""
    if ax is None:
        _, (left, right) = plt.subplots(
            1, 2, figsize=(width, height), layout="constrained", width_ratios=ratios
        )
        return left, right
    # A sequence may also be the array of axes that plt.subplots returns.
    given: list[Any] = list(ax) if hasattr(ax, "__iter__") else [ax]
    if len(given) != 2 or not all(isinstance(each, Axes) for each in given):
        advice = "Create them with plt.subplots(1, 2, layout='constrained')"
        raise refusal("ax", "two Axes", ax, advice)
    return given[0], given[1]


def tidy(ax: Axes, *, grid: Literal["x", "y"] = "x") -> None:
    """Reduce the frame to the lower axis, few ticks and a light grid."""
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(LIGHT)
    ax.tick_params(labelsize=SMALL, color=LIGHT, labelcolor=INK)
    ax.grid(axis=grid, color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    # Few enough that long numbers do not overlap.
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))


def label_x(ax: Axes, text: str, *, width: int = LABEL) -> None:
    """Label the horizontal axis, on lines of `width` letters."""
    ax.set_xlabel(wrap(text, width), fontsize=SIZE, color=INK, **text_style())


def label_y(ax: Axes, text: str) -> None:
    """Label the vertical axis, on lines that fit a low figure."""
    ax.set_ylabel(wrap(text, 28), fontsize=SIZE, color=INK, **text_style())


def legend_above(ax: Axes, handles: Sequence[Any], *, title: str | None = None) -> None:
    """Draw a legend above the axes, where it covers nothing, with one entry per line."""
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
    """Return a share in percent."""
    return f"{100 * confidence:.4g} %"


def value_label(explanation: Explanation, estimand: str | None = None) -> str:
    """Return the label of the values, with their unit; `estimand` "" leaves their name out."""
    words = {
        "d-sage": "d-SAGE value",
        "sage": "SAGE value",
        "causal": "causal SAGE value",
        "": "value",
    }
    kind = words[explanation.estimate.estimand if estimand is None else estimand]
    return f"{kind} (reduction of {loss_name(explanation)})"


def loss_name(explanation: Explanation) -> str:
    """Return the name of the loss in words."""
    return explanation.choices.loss.name.replace("_", " ")
