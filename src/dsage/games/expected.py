"""Expected predictions given a coalition: means over draws, or at conditional means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from dsage.data.portions import row_slices
from dsage.games.base import Floats, Mask, Orders, Rows, mean_within
from dsage.games.chunk import Chunk
from dsage.games.controls import fit_control
from dsage.games.device import DeviceMeans, device_means
from dsage.games.exact_means import ExactMeans
from dsage.games.known_means import find_marginal_means, find_normal_means, find_scores
from dsage.games.normal_means import NormalDraws
from dsage.games.options import GameOptions
from dsage.games.predicted import COPIES, Predicted
from dsage.games.predictor import Predictor
from dsage.games.prefixes import Control, ask_prefixes, draw_prefixes, expect_prefixes
from dsage.games.received import expected_output, given, received
from dsage.games.row_control import RowControl
from dsage.models.affine import Affine
from dsage.samplers.base import Sampler
from dsage.samplers.interface import Prefixes
from dsage.samplers.noise import Noise
from dsage.samplers.ordering import Ordering
from dsage.samplers.recent import Recent

# Memory of evaluation rows up to which other processes automatically get copies.
_COPIED_BYTES = 2**26
N_MEAN = 1 << 12
"""Draws for the mean prediction, which is the same for all rows."""
# Trees whose predictions take less time than the calls that make draws.
_FEW_TREES = 64
# Draws for all rows along an ordering and its reverse from which on a model is read:
# this takes as long as it predicts some thousand rows, and a run has several orderings.
_MANY_DRAWS = 1 << 12


class Expected(Predicted):
    """A game from the predictions ``f_S(x) = E[f(X) | x_S]`` of a model; see :class:`ModelGame`.

    The expectation is a mean over draws of the unknown features, in independent replicates. An
    affine model with a sampler that knows conditional means needs no draws, nor does a link of an
    affine score with a sampler that knows the distributions of sums. With all features known it is
    the model's prediction, which is computed once.

    Rows may have categories and missing values that training lacks. They are known to the model,
    and draws do not depend on them; all draws are then made coalition by coalition.
    """

    def __init__(
        self,
        model: Predictor,
        sampler: Sampler,
        X: Any,  # noqa: ANN401
        options: GameOptions,
    ) -> None:
        super().__init__(model, sampler, X, options)
        self._is_controlled = options.draw_control == "auto"
        is_usable = all(
            bool(self._sampler.usable(self.matrix[some]).all())
            for some in row_slices(self.n_rows, 8 * len(self.feature_names))
        )
        self._affine = model.affine(self._frames, X) if self._sampler.has_mean else None
        # Conditional means are of numbers that are always present.
        if self.layout.may_miss.any() or not is_usable:
            self._affine = None
        if self._affine is None:
            self._scores = find_scores(model, self.layout, self._frames, self.matrix)
        self._exact, self._normal = self._find_means(is_usable=is_usable)
        self.n_replicates = self.noise.n_replicates if self.is_drawn else 1
        sampler, n_replicates = self._sampler, self.n_replicates
        self._device = None
        if self.is_drawn and self._normal is None:
            given = model, sampler, self._frames, self.matrix, n_replicates
            self._device = device_means(*given, self._max_bytes, is_usable=is_usable)
        if self._device is not None:
            self.pairs_at_once = self._device.pairs_at_once
        if self._predicts_many:
            self._trees = model.tree_masks(self._frames, self.matrix)
            if self._trees is None:
                self._encoded = model.encoded(self._frames, self.matrix)
        is_able = self.is_drawn or (self._affine is not None and sampler.has_factors)
        self.has_paths = sampler.has_orderings and is_usable and is_able
        if self._exact is not None:
            self.has_paths = self._exact.has_paths
        # Long orderings come in pieces of few rows, one after the other.
        self._last_ordering: Recent[Prefixes] = Recent(1)
        # Subclasses may find one.
        self._control: Control | None = None
        self._row_control: RowControl | None = None

    @property
    def is_drawn(self) -> bool:
        """Whether predictions are means over draws; False if the means are known."""
        return self._affine is None and self._exact is None

    @property
    def has_dear_rows(self) -> bool:
        """Whether rows cost more than orderings."""
        has_cheap = self._exact is not None and self._exact.has_cheap_rows
        return self._affine is None and not has_cheap

    @property
    def draws_per_risk(self) -> int:
        """The number of draws for each mean, of all replicates; 0 if the means are known."""
        return self.noise.n_replicates * self.noise.n_draws if self.is_drawn else 0

    @property
    def has_cheap_draws(self) -> bool:
        """Whether the model is a few trees whose leaves have masks."""
        return self._trees is not None and self._trees.n_trees <= _FEW_TREES

    @property
    def cost_of_means(self) -> float:
        """The cost of the mean prediction for a row, see `ExactMeans`; 0 if it is not known."""
        return 0.0 if self._exact is None else self._exact.cost

    @property
    def is_affine(self) -> bool:
        """Whether predictions are computed by an affine map at conditional means."""
        return self._affine is not None

    def _find_means(self, *, is_usable: bool) -> tuple[ExactMeans | None, NormalDraws | None]:
        """Return the means of predictions without draws, or from draws of scores, if any."""
        sampler, matrix = self._sampler, self.matrix
        if self._affine is not None:
            return None, None
        if not sampler.has_sums:
            if self.layout.names != self._frames.names:
                return None, None
            given = self.model, sampler, self._frames, matrix, self._max_bytes
            return find_marginal_means(*given), None
        if self._scores is None or not is_usable:
            return None, None
        found = find_normal_means(self._scores, sampler, matrix)
        return (None, found) if isinstance(found, NormalDraws) else (found, None)

    @property
    def _predicts_many(self) -> bool:
        """Whether the model will predict so many draws that it is worth reading what it is."""
        is_asked = self.is_drawn and self._normal is None and self._device is None
        n_draws = 2 * self.matrix.size * self.draws_per_risk
        is_asked = is_asked and self._scores is None and n_draws >= _MANY_DRAWS
        return is_asked and self.layout.names == self._frames.names

    @property
    def may_be_copied(self) -> bool:  # type: ignore[override]
        """Whether copies in other processes are safe: see :class:`Game`."""
        is_safe = self._sampler.may_be_copied and self.model.may_be_copied
        return is_safe and self._device is None and self.matrix.nbytes <= _COPIED_BYTES

    @property
    def corrects_means(self) -> bool:
        """Whether risks may be computed from mean predictions outside of the model's range."""
        return False

    def outputs_of(self, rows: Rows) -> Rows | None:  # noqa: ARG002
        """Return the output of each row whose noise a loss is corrected for; None for no loss."""
        return None

    def _mean(self) -> Floats:
        """Return the mean prediction with no feature known, (...), from a net of many draws."""
        nothing = np.zeros((1, len(self.feature_names)), dtype=np.bool_)
        first = np.zeros(1, dtype=np.intp)
        if not self.is_drawn:
            mean: Floats = self._means(nothing, first, 0)[0, 0, 0]
            return mean
        total: Floats = self.draw_unknown(N_MEAN)[1].sum(axis=0)
        return total / N_MEAN

    @property
    def _can_control(self) -> bool:
        """Whether noise of draws may be subtracted, from means or from risks."""
        is_wanted = self.corrects_means or self.outputs_of(np.arange(1)) is not None
        # Scores predict more draws in the time that a control takes.
        is_able = self._is_controlled and self.is_drawn and not self._is_direct
        return is_able and is_wanted and self._device is None

    def _find_row_control(self) -> RowControl | None:
        """Return a control of draws of training rows, if there is one that saves work."""
        n_features, background = len(self.feature_names), self._sampler.equal_rows
        if not self._can_control or background is None:
            return None
        n_outputs = self._all_outputs(self.predictions[:1]).shape[1]
        if not RowControl.fits(len(background), n_features, n_outputs):
            return None
        mixed, predicted = self.mix_rows(background, RowControl.count_rows(n_features))
        outputs = self._all_outputs(predicted)
        return RowControl.fit(self._sampler, mixed, outputs, self.layout.n_categories)

    def _find_control(self) -> Control | None:
        """Return a control of the draws along orderings, if there is one that saves work."""
        if not (self._can_control and self.has_paths):
            return None

        def predict(rows: Floats) -> Floats:
            return self._all_outputs(self._check_outputs(self._predict_rows(rows), 1))

        given = self._sampler, self._rows[:1], self._streams
        return fit_control(*given, predict, corrects_means=self.corrects_means)

    def _all_outputs(self, predicted: Floats) -> Floats:
        """Return predictions as (n_rows, n_outputs), with all outputs that `outputs_of` counts."""
        return predicted.reshape(len(predicted), -1)

    def _chunks(
        self, known: Mask, rows: Rows, epoch: int, *, with_loss: bool = False
    ) -> Iterator[Chunk]:
        """Yield the mean predictions of all coalitions except the full one; see `_paths`."""
        left = np.flatnonzero(~self._inputs(known).all(axis=1))
        if self._device is not None and self._is_plain(known):
            for chunk in self._device.chunks(
                known, left, rows, epoch, self.noise, with_loss=with_loss
            ):
                yield self._count(chunk)
            return
        for here, n_coalitions in self._row_chunks(len(rows)):
            for first in range(0, len(left), n_coalitions):
                at = left[first : first + n_coalitions]
                means, noise = self._means(known[at], rows[here], epoch), None
                outputs = self.outputs_of(rows[here])
                if self._row_control is not None and not self.corrects_means:
                    drawn = self.noise(rows[here], epoch)
                    found = self._row_control.noise(self._inputs(known[at]), drawn, outputs)
                    noise = found.reshape(*means.shape[:3], -1).mean(axis=3)
                yield Chunk(at, here, means, noise)

    def _ordering(self, order: Rows) -> Prefixes:
        """Return the object that draws along an ordering; cached for the last ordering."""
        return self._last_ordering.get(order.tobytes(), lambda: self._sampler.ordering(order))

    def _paths(
        self, orders: Orders, rows: Rows, epoch: int, needed: Mask, *, with_loss: bool = False
    ) -> Iterator[tuple[int, Chunk]]:
        """Yield the numbers of orderings, with mean predictions of their proper prefixes.

        All that are `needed`, (n_orderings, n_features + 1), are included, and possibly others.
        Draws belong to the ordering: see :meth:`~dsage.games.Game.path_risks`. `with_loss` says
        whether risks of the game's own loss may take the place of the means.
        """
        if self._exact is not None and self._exact.has_paths:
            lengths, here = np.arange(len(self.feature_names)), slice(0, len(rows))
            for number, order in enumerate(orders):
                means = self._shape_means(self._exact.path_means(order, rows))
                yield number, Chunk(lengths, here, means)
        elif self._affine is not None:
            yield from self._mean_paths(self._affine, orders, rows)
        elif self._device is None:
            yield from self._drawn_paths(orders, rows, epoch, needed)
        else:
            for number, chunk in self._device.paths(
                orders, needed, rows, epoch, self.noise, with_loss=with_loss
            ):
                yield number, self._count(chunk)

    def _count(self, chunk: Chunk) -> Chunk:
        """Count the predictions of a chunk that a device has computed, and check their outputs."""
        n_pairs = chunk.means.shape[0] * chunk.means.shape[1]
        self._n_predicted += n_pairs * self.noise.n_replicates * self.noise.n_draws
        if not chunk.is_risk:
            self._check_outputs(chunk.means, 3)
        return chunk

    def _mean_paths(
        self, affine: Affine, orders: Orders, rows: Rows
    ) -> Iterator[tuple[int, Chunk]]:
        """Yield the expected outputs of an affine model for all proper prefixes of orderings."""
        X = self._rows[rows]
        lengths, here = np.arange(len(self.feature_names)), slice(0, len(rows))
        for number, order in enumerate(orders):
            values = expect_prefixes(affine, cast(Ordering, self._ordering(order)), order, X)
            yield number, Chunk(lengths, here, self._shape_means(values))

    def _drawn_paths(
        self, orders: Orders, rows: Rows, epoch: int, needed: Mask
    ) -> Iterator[tuple[int, Chunk]]:
        """Yield the mean predictions of the needed prefixes, from one factor per ordering."""
        if self._normal is not None:
            yield from self._normal_paths(self._normal, orders, rows, epoch, needed)
            return
        for here, n_coalitions in self._row_chunks(len(rows)):
            X = self._rows[rows[here]]
            scores = self._sampler.prepare(self.noise(rows[here], epoch))
            # The output of each row that matters, or all.
            outputs = None if self.corrects_means else self.outputs_of(rows[here])
            for number, (order, wanted) in enumerate(zip(orders, needed, strict=True)):
                lengths = np.flatnonzero(wanted[:-1])
                starts = range(0, len(lengths), n_coalitions)
                chunks = [lengths[first : first + n_coalitions] for first in starts]
                ordering = self._ordering(order)
                drawn = draw_prefixes(ordering, X, scores, chunks, self._control, outputs)
                is_direct = self._is_direct or self._trees is not None
                found = ask_prefixes(drawn, chunks, order, self._ask, is_direct=is_direct)
                for at, (predicted, noise) in zip(chunks, found, strict=True):
                    yield number, self._take_noise(at, here, predicted, noise)

    def _normal_paths(
        self, normal: NormalDraws, orders: Orders, rows: Rows, epoch: int, needed: Mask
    ) -> Iterator[tuple[int, Chunk]]:
        """Yield the mean predictions of the needed prefixes over draws of scores."""
        for here, _ in self._row_chunks(len(rows)):
            for number, (order, wanted) in enumerate(zip(orders, needed, strict=True)):
                found = normal.path_means(order, rows[here], epoch, self.noise, wanted)
                for length, means in found:
                    shaped = means.reshape(1, *means.shape[:2], *self.predictions.shape[1:])
                    yield number, Chunk(np.array([length]), here, shaped)

    def _take_noise(self, at: Rows, here: slice, predicted: Floats, noise: Floats | None) -> Chunk:
        """Return mean predictions without the noise that a control knows, or together with it."""
        if noise is None or self.corrects_means:
            return Chunk(at, here, self._average(predicted, noise))
        sets = self.noise.n_replicates, self.noise.n_draws
        means = noise.reshape(*predicted.shape[:2], *sets).mean(axis=3)
        return Chunk(at, here, self._average(predicted), means)

    def _means(self, known: Mask, rows: Rows, epoch: int, source: Noise | None = None) -> Floats:
        """Return the mean of each replicate, (n_coalitions, n_rows, n_replicates, ...).

        `source` takes the place of the game's noise.
        """
        if self._exact is not None:
            return self._shape_means(self._exact.means(known, rows))
        if self._normal is not None:
            means = self._normal.means(known, rows, epoch, source or self.noise)
            return means.reshape(*means.shape[:3], *self.predictions.shape[1:])
        X = self._rows[rows]
        if self._affine is None:
            if self._device is not None and self._is_plain(known):
                return self._device_means(self._device, known, rows, epoch, source or self.noise)
            noise = (source or self.noise)(rows, epoch)
            fixed, inputs = given(known, len(self.feature_names)), self._inputs(known)
            if self._is_raw:
                draws = np.stack([self._sampler.draw(X, each, noise) for each in fixed])
            else:
                draws = self._sampler.draw_coalitions(X, fixed, noise)
            if self._is_raw or (inputs & ~fixed).any():
                # A sampler numbers the new categories of these rows only.
                for each, out in zip(inputs, draws, strict=True):
                    out[:, :, each] = self.matrix[rows][:, None, each]
            drawn = None
            if self._row_control is not None and self.corrects_means:
                drawn = self._row_control.noise(self._inputs(known), noise)
                drawn = drawn.reshape(*drawn.shape[:3], *self.predictions.shape[1:])
            return self._average(self._ask(draws), drawn)
        affine = self._affine
        pairs = zip(given(known, len(self.feature_names)), self._inputs(known), strict=True)
        return self._shape_means(
            np.stack([expected_output(affine, self._sampler, X, *pair) for pair in pairs])
        )

    def _shape_means(self, values: Floats) -> Floats:
        """Return expected outputs as means of one replicate."""
        if self.predictions.ndim == 1:
            values = values.reshape(values.shape[:2])
        return np.expand_dims(values, 2)

    def _device_means(
        self, device: DeviceMeans, known: Mask, rows: Rows, epoch: int, source: Noise
    ) -> Floats:
        """Return the means of all coalitions that a device computes, as `_means` does."""
        means = np.empty((len(known), len(rows), self.n_replicates, *self.predictions.shape[1:]))
        for chunk in device.chunks(known, np.arange(len(known)), rows, epoch, source):
            means[chunk.at, chunk.here] = self._check_outputs(chunk.means, 3)
        self._n_predicted += len(known) * len(rows) * source.n_replicates * source.n_draws
        return means

    def _is_plain(self, known: Mask) -> bool:
        """Return whether the model receives the features that draws are given."""
        return bool(known.shape[1] == len(self.feature_names))

    def _inputs(self, known: Mask) -> Mask:
        """Return the features whose values the model receives, (n_coalitions, n_features)."""
        return received(known, len(self.feature_names))

    def _predict(self, draws: Floats) -> Floats:
        """Return the mean prediction per replicate of draws (n_coalitions, n_rows, n_draws, d)."""
        return self._average(self._ask(draws))

    def _average(self, predicted: Floats, noise: Floats | None = None) -> Floats:
        """Return the mean per replicate of predictions (n_coalitions, n_rows, n_draws, ...).

        `noise`, of the shape of the predictions, is subtracted from them.
        """
        sets = self.noise.n_replicates, predicted.shape[2] // self.noise.n_replicates
        shape = (*predicted.shape[:2], *sets, *predicted.shape[3:])
        predicted = predicted.reshape(shape)
        if noise is not None:
            predicted = predicted - noise.reshape(shape)
        return mean_within(predicted, axis=3)

    def _means_of_pairs(self, known: Mask, rows: Rows, epoch: int, source: Noise) -> Floats:
        """Return the means (n_pairs, n_replicates, ...) of pairs of a coalition and a row."""
        means = np.empty((len(known), self.n_replicates, *self.predictions.shape[1:]))
        factor = -(-source.n_draws // self.noise.n_draws)
        most = max(1, self._max_bytes // (factor * self._bytes_per_row()))
        coalitions, members = np.unique(known, axis=0, return_inverse=True)
        for number, coalition in enumerate(coalitions):
            at = np.flatnonzero(members == number)
            for first in range(0, len(at), most):
                some = at[first : first + most]
                means[some] = self._means(coalition[None], rows[some], epoch, source)[0]
        return means

    def _row_chunks(self, n_rows: int) -> Iterator[tuple[slice, int]]:
        """Yield chunks of rows, and how many coalitions to evaluate on each at a time."""
        most = max(1, self._max_bytes // self._bytes_per_row())
        for start in range(0, n_rows, most):
            here = slice(start, min(start + most, n_rows))
            yield here, max(1, most // (here.stop - here.start))

    def _bytes_per_row(self) -> int:
        if self._normal is not None:
            return self._normal.bytes_per_row(self.noise)
        n_draws = self.noise.n_replicates * self.noise.n_draws if self.is_drawn else 1
        n_outputs = self.predictions.size // self.n_rows
        return 8 * n_draws * (COPIES * len(self.feature_names) + 2 * n_outputs)
