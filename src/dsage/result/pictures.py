"""The ranking as a picture, for notebooks and trackers."""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsage.result.explanation import Explanation
    from dsage.result.flow import FlowExplanation

DPI = 192
"""Two pixels of the picture for each pixel of a page."""


def picture_of(explanation: Explanation) -> bytes | None:
    """Return the ranking as a PNG; None without matplotlib.

    The figure is closed, so that a notebook does not show it a second time.
    """
    return _png(explanation.plot.bar)


def flow_picture(explanation: FlowExplanation) -> bytes | None:
    """Return the graph with the flow along its edges as a PNG; None without matplotlib."""
    return _png(explanation.plot.flow)


def _png(draw: Callable[[], Any]) -> bytes | None:
    if find_spec("matplotlib") is None:
        return None
    from matplotlib import pyplot as plt  # noqa: PLC0415

    with plt.ioff():
        figure = draw().figure
        written = io.BytesIO()
        figure.savefig(written, format="png", dpi=DPI)
        plt.close(figure)
    return written.getvalue()
