"""The measures in panels next to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib import pyplot as plt

from dsage.plots import style
from dsage.plots.rows import as_rows, draw_interval, draw_zero, interval_handles
from dsage.workflows.measures.kinds import MEASURES

if TYPE_CHECKING:
    from dsage.workflows.measures.result import Measures

# Inches: the width of a panel, the thickness of a bar, and the space above and below the panels.
_PANEL, _BAR, _AROUND = 1.75, 0.15, 1.35


def draw(measures: Measures, *, top: int, confidence: float) -> npt.NDArray[Any]:
    """Draw a panel for each measure; see :meth:`Measures.plot`."""
    frame = measures.to_frame(confidence)
    names = measures.table().index.tolist()[:top]
    rows = as_rows(names)
    width = rows.size(0)[0] + _PANEL * len(measures.names)
    _, grid = plt.subplots(
        1,
        len(measures.names),
        figsize=(width, max(rows.height, 0.6) + _AROUND),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    axes: npt.NDArray[Any] = grid[0]
    drawn = {"computing": False, "population": False}
    for number, (ax, name) in enumerate(zip(axes, measures.names, strict=True)):
        lines = frame[frame["measure"] == name].set_index("feature").loc[names]
        color = style.PALETTE[number % len(style.PALETTE)]
        ax.barh(rows.centers, lines["value"], height=_BAR, color=color, alpha=0.6)
        for kind, ending in (("computing", ""), ("population", "_total")):
            low, high = lines[f"lower{ending}"].to_numpy(), lines[f"upper{ending}"].to_numpy()
            is_thick = kind == "computing"
            drawn[kind] |= draw_interval(
                ax, rows.centers, low, high, color=style.INK, is_thick=is_thick
            )
        draw_zero(ax)
        style.tidy(ax)
        rows.put(ax, with_names=number == 0)
        ax.set_title(MEASURES[name].title, fontsize=style.SIZE, color=style.INK)
        ax.tick_params(axis="x", rotation=0)
        ax.locator_params(axis="x", nbins=3)
    figure = axes[0].figure
    label = f"value, in units of the loss ({measures.loss.replace('_', ' ')})"
    figure.supxlabel(label, fontsize=style.SIZE, color=style.INK)
    figure.legend(
        handles=interval_handles(confidence, **drawn),
        loc="outside upper left",
        fontsize=style.SMALL,
        frameon=False,
    )
    return np.asarray(axes)
