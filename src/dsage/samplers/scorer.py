"""Score the draws of a sampler on a block of rows: energy score and MSEv."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dsage._random import Streams
from dsage.data.frames import is_frame
from dsage.data.layout import Layout
from dsage.samplers.base import Sampler
from dsage.samplers.checks import Floats, Mask, check_draws
from dsage.samplers.energy import column_means, column_scales, energy_scores, has_gaps
from dsage.samplers.noise import Noise
from dsage.samplers.recent import Recent
from dsage.samplers.splits import BLOCK_ROWS, Block, Part, Piece

# The noise of a block is kept for the next sampler.
_KEPT, _KEPT_BYTES = 64, 2**24

Predict = Callable[[Any], npt.NDArray[Any]]
"""A function from rows, in the container that the model was fitted with, to predictions."""


class PieceScores(NamedTuple):
    """The scores of a piece, (n_coalitions, n_rows) each; lower is better."""

    energy: Floats
    msev: Floats | None


class Scorer:
    r"""Scores samplers on blocks of held-out rows, with the same noise for all.

    The MSEv measures how well a sampler predicts the model's output: with :math:`a_1, a_2` the
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
        # The rows of each part as fitted samplers code them, and the means of columns.
        self._encoded: dict[tuple[int, int], tuple[Layout, Floats, Floats]] = {}
        self._scale = column_scales(matrix)
        # The rows that are scored may lack the gaps that a sampler was fitted to.
        self._may_miss = layout.may_miss | has_gaps(matrix)
        self._noise = Noise(streams, len(layout.names), n_replicates=2, n_draws=n_draws // 2)
        n_kept = _KEPT_BYTES // (8 * BLOCK_ROWS * n_draws * len(layout.names))
        self._recent: Recent[Floats] = Recent(min(max(1, n_kept), _KEPT))
        self.n_predicted, self.predict_seconds = 0, 0.0
        outputs = self._call(layout.decode(matrix[np.concatenate([part.at for part in parts])]))
        stops = np.cumsum([len(part.at) for part in parts])
        self.outputs = np.split(outputs, stops[:-1])
        self._spread = float(outputs.var(axis=0).sum())

    @property
    def n_draws(self) -> int:
        """Draws for each row and coalition."""
        return self._noise.n_replicates * self._noise.n_draws

    @property
    def has_model(self) -> bool:
        """Whether there is a MSEv: a model whose predictions vary."""
        return self._predict is not None and self._spread > 0

    def __call__(self, sampler: Sampler, block: Block) -> list[PieceScores]:
        """Return the scores of a fitted sampler on the pieces of a block."""
        layout = sampler.layout_ or self._layout
        draws, energy = self._draw(sampler, block, layout)
        if not self.has_model:
            return [PieceScores(each, None) for each in energy]
        msev = self._msev(draws, layout, block)
        return [PieceScores(*both) for both in zip(energy, msev, strict=True)]

    def _encode(self, layout: Layout, part: int) -> tuple[Floats, Floats]:
        """Return the held-out rows of a part as a layout codes them, and the means of columns."""
        key = part, id(layout)
        if key not in self._encoded:
            rows = layout.encode(self._parts[part].test)
            # With the layout, so that no other one gets its number.
            self._encoded[key] = layout, rows, column_means(rows)
        return self._encoded[key][1:]

    def _draw(
        self, sampler: Sampler, block: Block, layout: Layout
    ) -> tuple[list[Floats], list[Floats]]:
        """Return draws (n_coalitions, n_rows, n_draws, n_features) and energy scores of pieces."""
        matrix, center = self._encode(layout, block.part)
        sizes = [(len(piece.known), len(piece.rows)) for piece in block.pieces]
        draws = [np.empty((*size, self.n_draws, matrix.shape[1])) for size in sizes]
        energy = [np.empty(size) for size in sizes]
        for known, places in _by_coalition(block.pieces):
            rows = matrix[np.concatenate([block.pieces[at].rows for at, _ in places])]
            pairs = np.concatenate([block.pieces[at].pairs(number) for at, number in places])
            # All samplers get the same noise on a block, and each of them its own copy.
            noise = self._recent.get(pairs.tobytes(), partial(self._noise, pairs, 0)).copy()
            drawn = np.asarray(sampler.draw_rows(rows, known, noise), np.float64)
            shape = (len(rows), *draws[0].shape[2:])
            check_draws(drawn, shape, ~known, layout.names, self._may_miss)
            if layout.is_whole.any():
                drawn = np.where(layout.is_whole, np.rint(drawn), drawn)
            scores = energy_scores(
                rows,
                drawn,
                np.flatnonzero(~known),
                layout.n_categories,
                self._scale,
                in_two_sets=True,
                center=center,
            )
            start = 0
            for at, number in places:
                here = slice(start, start + sizes[at][1])
                draws[at][number], energy[at][number] = drawn[here], scores[here]
                start = here.stop
        return draws, energy

    def _msev(self, draws: Sequence[Floats], layout: Layout, block: Block) -> list[Floats]:
        """Return the MSEv of pieces, from one call of the model."""
        # The model receives the kind of container that the user passed.
        is_array = layout.kind == "numpy"
        frames = layout if self._is_frame != is_array else self._layout
        flat = np.concatenate([each.reshape(-1, each.shape[-1]) for each in draws])
        outputs = self._call(frames.decode(flat))
        stops = np.cumsum([math.prod(each.shape[:3]) for each in draws])
        found = []
        for piece, each, own in zip(
            block.pieces, draws, np.split(outputs, stops[:-1]), strict=True
        ):
            shape = (*each.shape[:2], 2, self.n_draws // 2, outputs.shape[1])
            exact = self.outputs[block.part][piece.rows][:, None]
            off = exact - own.reshape(shape).mean(axis=3)
            products = (off[:, :, 0] * off[:, :, 1]).sum(axis=2)
            found.append(products / self._spread)
        return found

    def _call(self, rows: Any) -> Floats:  # noqa: ANN401
        """Return predictions (n_rows, n_outputs); one column of zeros without a model."""
        if self._predict is None:
            return np.zeros((len(rows), 1))
        start = time.perf_counter()
        found = np.asarray(self._predict(rows), np.float64).reshape(len(rows), -1)
        self.n_predicted += len(rows)
        self.predict_seconds += time.perf_counter() - start
        return found


def _by_coalition(pieces: Sequence[Piece]) -> Iterator[tuple[Mask, list[tuple[int, int]]]]:
    """Yield distinct coalitions, and where they are: the pieces, and their numbers in these."""
    places: dict[bytes, list[tuple[int, int]]] = {}
    for at, piece in enumerate(pieces):
        for number, known in enumerate(piece.known):
            places.setdefault(known.tobytes(), []).append((at, number))
    for found in places.values():
        at, number = found[0]
        yield pieces[at].known[number], found
