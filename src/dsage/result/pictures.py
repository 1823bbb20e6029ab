"""The ranking as a picture, for notebooks and trackers."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsage.result.explanation import Explanation

DPI = 192
"""Two pixels of the picture for each pixel of a page."""


def picture_of(explanation: Explanation) -> bytes | None:
    """Return the ranking as a PNG; None without matplotlib.

    The figure is closed, so that a notebook does not show it a second time.
    """
    if find_spec("matplotlib") is None:
        return None
    from matplotlib import pyplot as plt  # noqa: PLC0415

    with plt.ioff():
        figure = explanation.plot.bar().figure
        written = io.BytesIO()
        figure.savefig(written, format="png", dpi=DPI)
        plt.close(figure)
    return written.getvalue()
