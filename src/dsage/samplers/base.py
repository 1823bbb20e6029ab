"""What a conditional sampler is, and what all of ours share.

A sampler is a pure function of noise: the same rows, coalition and noise give the same draws, to
the bit, in any batch, process or order. It keeps no generator.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@runtime_checkable
class Sampler(Protocol):
    """Draws of the unknown features given the known ones: any object with these methods will do."""

    def fit(self, X: Any) -> Self:  # noqa: ANN401
        """Learn the joint distribution from rows (n_rows, n_features): a frame or an array."""
        ...

    def draw(self, X: Any, known: Mask, noise: Floats) -> Floats:  # noqa: ANN401
        """Draw the unknown features jointly, given the known ones.

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_features)
            The rows; what stands in the columns of unknown features is not looked at.
        known : bool array of shape (n_features,)
            The coalition.
        noise : array of shape (n_rows, n_draws, n_features)
            Uniforms in (0, 1), one a feature: the only source of randomness.

        Returns
        -------
        array of shape (n_rows, n_draws, n_features)
            Known features keep their values; categories are codes.
        """
        ...
