"""Predictions of a model for rows: those that are explained, and those that are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dsage._check import refusal
from dsage._random import Streams
from dsage.data.frames import is_frame
from dsage.data.layout import Layout
from dsage.data.portions import row_slices
from dsage.games.base import Floats, Game, Mask
from dsage.games.options import GameOptions
from dsage.games.predictor import Predictor
from dsage.models.scores import AffineScores
from dsage.models.tree_masks import TreeMasks
from dsage.samplers.base import Sampler, check_sampler
from dsage.samplers.noise import Noise

COPIES = 6
"""Copies of a draw in memory: noise, scores, draw, frame, and what the model makes of them."""
# Memory of rows that are predicted at a time, with what the model makes of them.
_PREDICTED_BYTES = 2**25
# The epoch of the noise of drawn rows, which no estimate reaches.
_MEAN_EPOCH = 1 << 40


class Predicted(Game):
    """A game from the predictions of a model for its rows and for draws of a sampler.

    Trees, linear scores and pipelines that are read from a model predict draws in its place, where
    that is faster.
    """

    def __init__(
        self,
        model: Predictor,
        sampler: Sampler,
        X: Any,  # noqa: ANN401
        options: GameOptions,
    ) -> None:
        self.model, self.sampler = model, sampler
        self._sampler = check_sampler(sampler)
        # Categories and missing values that training lacks are passed on to the model.
        learned = self._sampler.layout_
        self.layout: Layout = Layout.of(X) if learned is None else learned.extend(X)
        self.matrix = self.layout.encode(X)
        self.feature_names = self.layout.names
        self.n_rows = len(self.matrix)
        if not self.n_rows or not self.feature_names:
            raise refusal("X", "of at least one row and one column", self.matrix.shape, "Add some")
        self._max_bytes = options.max_bytes
        self._streams = Streams(options.random_state)
        self.interventions = self._sampler.interventions
        self._n_noise = len(self.feature_names) + self._sampler.n_hidden
        self.noise = Noise(
            self._streams,
            self._n_noise,
            n_replicates=options.n_replicates,
            n_draws=options.n_draws_each,
            kind=options.noise,
        )
        self._frames = self._layout_for_model(X)
        self._n_predicted = 0
        self.predictions = self._predict_rows(self.matrix)
        # A sampler that was fitted to an array takes arrays for rows that are not encoded.
        self._is_raw = learned is not None and learned.kind == "numpy"
        self._is_raw &= bool(self.layout.n_categories.any())
        self._rows = self.layout.decode(self.matrix) if self._is_raw else self.matrix
        # What predicts draws in place of the model; subclasses may find it.
        self._scores: AffineScores | None = None
        self._trees: TreeMasks | None = None
        self._encoded: Callable[[Floats], Floats] | None = None

    @property
    def is_marginal(self) -> bool:
        """Whether draws do not depend on the known features."""
        return self._sampler.is_marginal

    @property
    def n_predicted(self) -> int:
        """Number of rows predicted by the model so far."""
        return self._n_predicted

    def __getstate__(self) -> dict[str, Any]:
        # A copy has predicted nothing but its rows: workers know a game that they already have.
        return {**vars(self), "_n_predicted": self.n_rows}

    def _layout_for_model(self, X: Any) -> Layout:  # noqa: ANN401
        """Return the layout with which the model receives the type of container of X."""
        is_array = self.layout.kind == "numpy"
        return self.layout if is_frame(X) != is_array else Layout.of(X)

    def _predict_rows(self, rows: Floats) -> Floats:
        """Return the model's predictions for encoded rows (n_rows, n_features)."""
        self._n_predicted += len(rows)
        # In portions that do not depend on `max_bytes`, as the last digits of a model may.
        slices = row_slices(len(rows), 8 * COPIES * len(self.feature_names), _PREDICTED_BYTES)
        found = [self.model.predict(self._frames.decode(rows[some])) for some in slices]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def draw_unknown(self, n_rows: int) -> tuple[Floats, Floats]:
        """Return rows drawn with no feature known, as codes, and the predictions for them."""
        nothing = np.zeros(len(self.feature_names), dtype=np.bool_)
        noise = Noise(self._streams, self._n_noise, n_replicates=1, n_draws=n_rows)
        first = noise(np.zeros(1, dtype=np.intp), _MEAN_EPOCH)
        draws = self._sampler.draw(self._rows[:1], nothing, first)[0]
        return draws, self._check_outputs(self._predict_rows(draws), 1)

    def mix_rows(self, background: Floats, n_rows: int) -> tuple[Floats, Floats]:
        """Return mixed rows, as codes, and the predictions for them.

        A mixed row has some features of an evaluation row, and the others of a background row: with
        a marginal sampler, the model predicts such rows.
        """
        rng = self._streams("mixed rows")
        known = rng.random((n_rows, len(self.feature_names))) < rng.random((n_rows, 1))
        own, other = (rng.integers(len(each), size=n_rows) for each in (self.matrix, background))
        mixed = np.where(known, self.matrix[own], background[other])
        return mixed, self._check_outputs(self._predict_rows(mixed), 1)

    @property
    def equal_rows(self) -> Floats | None:
        """The rows of a marginal sampler, as codes; None for samplers without such rows."""
        return self._sampler.equal_rows

    @property
    def _is_direct(self) -> bool:
        """Whether predictions for draws follow from scores, without calls of the model."""
        # Only the model could check whether exponentials are too large.
        return self._scores is not None and self._scores.link != "exp"

    def _ask(self, draws: Floats, is_same: Mask | None = None) -> Floats:
        """Return the predictions for draws (n_coalitions, n_rows, n_draws, n_features).

        `is_same` says which features are the same in all draws for a row, if it is known.
        """
        self._n_predicted += math.prod(draws.shape[:3])
        if self._scores is not None and self._is_direct:
            predicted = self._scores.predict(draws)
        elif self._trees is not None:
            predicted = self._trees.predict(draws, is_same)
        else:
            flat = draws.reshape(-1, draws.shape[-1])
            if self._encoded is not None:
                predicted = self._encoded(flat)
            else:
                # Nothing reads these draws again, so the model need not get a copy.
                predicted = self.model.predict(self._frames.decode(flat), is_disposable=True)
            predicted = self._check_outputs(predicted, 1)
        return predicted.reshape(*draws.shape[:3], *self.predictions.shape[1:])

    def _check_outputs(self, predicted: Floats, axis: int) -> Floats:
        """Return predictions whose outputs, from `axis` on, have the shape of the rows' outputs."""
        if predicted.shape[axis:] != self.predictions.shape[1:]:
            condition = f"of shape (n_rows, {', '.join(map(str, self.predictions.shape[1:]))})"
            found = (*predicted.shape[:1], *predicted.shape[axis:])
            advice = "The number of outputs differs from the number for the evaluation rows"
            raise refusal(f"the prediction of {self.model.name}", condition, found, advice)
        return predicted
