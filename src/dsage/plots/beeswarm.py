"""The values of all rows, feature by feature."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnnotationBbox, HPacker, TextArea

from dsage._check import check_count
from dsage.plots import style
from dsage.plots.fonts import n_lines, text_style
from dsage.plots.local import Shades, add_scale, check_rows_explained, cut, shade, value_label
from dsage.plots.rows import as_rows, draw_zero
from dsage.result.row_values import Label
from dsage.result.rows import RowExplanation

Floats = npt.NDArray[np.float64]

# Inches: the height of a line of points, and half the width that points spread to.
_ROW, _SPREAD = 0.36, 0.14
# Names of categories: size in points, distance below the feature in inches, letters at most.
_TINY, _BELOW, _LONGEST = 6.5, 0.125, 14
# Number of bins along the values in which points are stacked.
_BINS = 70


def beeswarm(
    explanation: RowExplanation,
    *,
    output: Label | None = None,
    top: int = 15,
    ax: Axes | None = None,
) -> Axes:
    """Draw one point for each row and feature, stacked if values agree.

    Features are ordered by their mean absolute value, for losses by their mean, which is the SAGE
    value of these rows; a tick marks the mean. The color of a point shows the feature's value:
    from low to high for numbers and dates, and one color for each category of a class, listed below
    its name. Missing values are pale with a dark edge, and groups are gray.

    Parameters
    ----------
    explanation : RowExplanation
        The explained rows.
    output : str, int, float or bool, optional
        The output, if several are explained.
    top : int, default=15
        The number of features that are drawn.
    ax : matplotlib Axes, optional
        The axes; by default, a new figure that fits the names is created.

    Returns
    -------
    matplotlib Axes
    """
    one = check_rows_explained(explanation).of_output(output)
    names = one.mean_frame()["feature"].tolist()
    shown = names[: check_count(top, "top")]
    rows = as_rows(shown, least=_ROW)
    if ax is None:
        width, height = rows.size(n_notes=4, n_below=n_lines(value_label(one), style.LABEL))
        ax = style.new_axes(width + 1.4, height)
    limits = _limits(one, shown)
    found = []
    for center, name in zip(rows.centers, shown, strict=True):
        values = one.estimates[0].values[:, one.feature_names.index(name)]
        shades = shade(one, name)
        found.append(shades)
        at = center + _SPREAD * _stack(values, limits)
        # Missing values are drawn on top: they are few, and pale.
        order = np.argsort(shades.is_missing, kind="stable")
        ax.scatter(
            values[order],
            at[order],
            s=13,
            c=shades.colors[order],
            linewidths=np.where(shades.is_missing[order], 0.7, 0.0).tolist(),
            edgecolors=style.INK,
            zorder=3,
        )
        _name_categories(ax, float(center), shades)
        mean = float(values.mean())
        ax.vlines(mean, center - 0.15, center + 0.15, colors=style.INK, linewidths=1.4, zorder=4)
    draw_zero(ax)
    style.tidy(ax)
    rows.put(ax)
    ax.set_xlim(*limits)
    style.label_x(ax, value_label(one))
    n_left = len(names) - len(shown)
    style.legend_above(ax, _handles(found, n_left))
    if any(each.is_number for each in found):
        add_scale(ax, "value of the feature")
    return ax


def _handles(found: list[Shades], n_left: int) -> list[Artist]:
    """Return legend entries: the mean, missing values, and the number of features left out."""
    handles: list[Artist] = [
        Line2D([], [], color=style.INK, marker="|", linestyle="none", label="mean over the rows")
    ]
    point = {"marker": "o", "linestyle": "none", "markersize": 4.5}
    if any(each.is_missing.any() for each in found):
        pale = {"markerfacecolor": style.LIGHT, "markeredgecolor": style.INK, **point}
        handles.append(Line2D([], [], label="missing", **pale))  # type: ignore[arg-type]
    if n_left:
        handles.append(Line2D([], [], linestyle="none", label=f"{n_left} features not shown"))
    return handles


def _name_categories(ax: Axes, center: float, shades: Shades) -> None:
    """Write the categories of a class in their colors below its name."""
    texts: list[Artist] = [
        TextArea(
            cut(name, _LONGEST),
            textprops={"color": color, "fontsize": _TINY, "fontweight": "bold", **text_style()},
        )
        for name, color in shades.categories.items()
    ]
    if not texts:
        return
    box = AnnotationBbox(
        HPacker(children=texts, pad=0, sep=4),
        (0.0, center + _BELOW),
        xybox=(-6, 0),
        xycoords=("axes fraction", "data"),
        boxcoords="offset points",
        box_alignment=(1.0, 0.5),
        frameon=False,
        pad=0.0,
    )
    ax.add_artist(box)


def _limits(one: RowExplanation, shown: list[str]) -> tuple[float, float]:
    """Return the ends of the axis, with some room beyond the values."""
    places = [one.feature_names.index(name) for name in shown]
    values = one.estimates[0].values[:, places]
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    room = 0.04 * (high - low) or 1.0
    return low - room, high + room


def _stack(values: Floats, limits: tuple[float, float]) -> Floats:
    """Return the positions of points across their line, in [-1, 1], so that few overlap.

    Points are put into bins along the line, and stacked from its center alternately up and down.
    """
    low, high = limits
    bins = np.floor((values - low) / (high - low) * _BINS).astype(np.intp)
    place = np.zeros(len(values))
    for each in np.unique(bins):
        members = np.flatnonzero(bins == each)
        members = members[np.argsort(values[members], kind="stable")]
        numbers = np.arange(len(members))
        place[members] = np.where(numbers % 2 == 0, 1.0, -1.0) * ((numbers + 1) // 2)
    # A few points keep a fixed distance; more points share the space.
    return place / max(float(np.abs(place).max()), 4.0)
