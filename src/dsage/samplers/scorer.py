"""Score the draws of a sampler on a block of rows: energy score and MSEv."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dsage._random import Streams
from dsage.data.frames import is_frame
from dsage.data.layout import Layout
from dsage.samplers.base import Sampler
from dsage.samplers.checks import Floats, check_draws
from dsage.samplers.energy import column_scales, energy_scores, has_gaps
from dsage.samplers.noise import Noise
from dsage.samplers.splits import Block, Part

Predict = Callable[[Any], npt.NDArray[Any]]
"""A function from rows, in the container that the model was fitted with, to predictions."""


class RowScores(NamedTuple):
    """The scores of the rows of a block, each a mean over coalitions; lower is better."""

    energy: Floats
    msev: Floats | None


class Scorer:
    r"""Scores samplers on blocks of held-out rows, with the same noise for all.

    The MSEv says how well a sampler tells what the model would predict: with :math:`a_1, a_2` the
    mean predictions of two independent sets of draws given the known features,

    .. math:: (f(x) - a_1) (f(x) - a_2),

    summed over the outputs of the model and divided by the variance of f over the rows. Its
    expectation is the mean squared error of ``E[f(X) | x_S]`` under the sampler, without the
    variance of the draws: lowest for the true conditional distribution.

    Parameters
    ----------
    X : data frame or array
        The table that the parts were taken from.
    layout : Layout
        Its columns.
    matrix : array of shape (n_rows, n_features)
        Its rows, classes as codes.
    parts : sequence of Part
        Where the blocks are taken from.
    predict : callable or None
        The model; without one there is no MSEv.
    n_draws : int
        Draws for each row and coalition, an even number: two sets, each a net.
    streams : Streams
        Where the noise comes from.
    """

    def __init__(
        self,
        X: Any,  # noqa: ANN401
        layout: Layout,
        matrix: Floats,
        parts: Sequence[Part],
        predict: Predict | None,
        *,
        n_draws: int,
        streams: Streams,
    ) -> None:
        self._parts, self._predict = parts, predict
        self._layout, self._is_frame = layout, is_frame(X)
        self._scale = column_scales(matrix)
        self._may_miss = has_gaps(matrix)
        self._noise = Noise(streams, len(layout.names), n_replicates=2, n_draws=n_draws // 2)
        self.n_predicted, self.predict_seconds = 0, 0.0
        self.outputs = [self._call(layout.decode(layout.encode(part.test))) for part in parts]
        self._spread = float(np.concatenate(self.outputs).var(axis=0).sum())

    @property
    def n_draws(self) -> int:
        """Draws for each row and coalition."""
        return self._noise.n_replicates * self._noise.n_draws

    @property
    def has_model(self) -> bool:
        """Whether there is a MSEv: a model whose predictions vary."""
        return self._predict is not None and self._spread > 0

    def __call__(self, sampler: Sampler, block: Block) -> RowScores:
        """Return the scores of a fitted sampler on a block."""
        layout = sampler.layout_ or self._layout
        part = self._parts[block.part]
        matrix = layout.encode(part.test)[block.rows]
        draws = self._draw(sampler, block, matrix, layout)
        energy = np.zeros(len(matrix))
        for known, weight, drawn in zip(block.known, block.weights, draws, strict=True):
            unknown = np.flatnonzero(~known)
            energy += weight * energy_scores(
                matrix, drawn, unknown, layout.n_categories, self._scale, in_two_sets=True
            )
        if not self.has_model:
            return RowScores(energy, None)
        return RowScores(energy, self._msev(draws, layout, block))

    def _draw(self, sampler: Sampler, block: Block, matrix: Floats, layout: Layout) -> Floats:
        """Return draws (n_coalitions, n_rows, n_draws, n_features)."""
        n_rows = len(block.rows)
        draws = np.empty((len(block.known), n_rows, self.n_draws, matrix.shape[1]))
        for number, known in enumerate(block.known):
            pairs = block.first_pair + number * n_rows + np.arange(n_rows)
            drawn = np.asarray(sampler.draw(matrix, known, self._noise(pairs, 0)), np.float64)
            check_draws(drawn, draws.shape[1:], ~known, layout.names, self._may_miss)
            draws[number] = drawn
        if layout.is_whole.any():
            draws = np.where(layout.is_whole, np.rint(draws), draws)
        return draws

    def _msev(self, draws: Floats, layout: Layout, block: Block) -> Floats:
        # The model receives the kind of container that the user passed.
        is_array = layout.kind == "numpy"
        frames = layout if self._is_frame != is_array else self._layout
        outputs = self._call(frames.decode(draws.reshape(-1, draws.shape[-1])))
        shape = (*draws.shape[:2], 2, self.n_draws // 2, outputs.shape[1])
        off = self.outputs[block.part][block.rows][:, None] - outputs.reshape(shape).mean(axis=3)
        products = (off[:, :, 0] * off[:, :, 1]).sum(axis=2)
        msev: Floats = block.weights @ products / self._spread
        return msev

    def _call(self, rows: Any) -> Floats:  # noqa: ANN401
        """Return predictions (n_rows, n_outputs); one column of zeros without a model."""
        if self._predict is None:
            return np.zeros((len(rows), 1))
        start = time.perf_counter()
        found = np.asarray(self._predict(rows), np.float64).reshape(len(rows), -1)
        self.n_predicted += len(rows)
        self.predict_seconds += time.perf_counter() - start
        return found
