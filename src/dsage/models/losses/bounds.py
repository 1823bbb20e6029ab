"""The domain of a loss: lower bounds of targets and predictions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dsage._check import Setting, Text, refusal

Floats = npt.NDArray[np.float64]

# A share of this keeps a clipped prediction above the bound.
_SMALL = 1e-6


class Bound(NamedTuple):
    """A lower bound of numbers: ``x > low``, or ``x >= low`` if it is included.

    Examples
    --------
    >>> Bound(0.0).words, Bound(0.0, is_included=True).words
    ('above 0', 'at least 0')
    """

    low: float
    is_included: bool = False

    @property
    def words(self) -> str:
        """The condition in words."""
        return f"{'at least' if self.is_included else 'above'} {self.low:g}"

    def check_target(self, y: Floats, name: str) -> None:
        """Refuse targets below the bound; the error names the loss."""
        if y.size and not self._holds(lowest := float(y.min())):
            advice = Text(
                ["Leave these rows out, or choose ", Setting("loss", "squared_error"), "."]
            )
            raise refusal("y", f"{self.words} for {name}", lowest, advice)

    def check_prediction(self, prediction: Floats, name: str) -> None:
        """Refuse predictions below the bound; the error names the loss."""
        if prediction.size and not self._holds(lowest := float(prediction.min())):
            start = (
                "Pass a function that keeps them above, such as lambda X: "
                f"np.maximum(model.predict(X), {self.low + _SMALL:g}), or choose "
            )
            advice = Text([start, Setting("loss", "squared_error"), "."])
            raise refusal("prediction", f"{self.words} for {name}", lowest, advice)

    def _holds(self, lowest: float) -> bool:
        return lowest >= self.low if self.is_included else lowest > self.low
