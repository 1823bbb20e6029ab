"""The game of a model: draws of the unknown features, predictions, losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, message, warn
from dsage._frame import Layout, is_frame
from dsage._random import RandomState, Streams
from dsage.affine import Affine
from dsage.games.base import Floats, Mask, Orders, Rows, check_weights
from dsage.games.device import LoadedMeans, device_means
from dsage.games.moment import MomentGame
from dsage.losses import EPSILON, Loss, as_loss, choose_loss
from dsage.models import Model, as_model
from dsage.noise import Noise
from dsage.samplers.base import Sampler, check_sampler
from dsage.samplers.conditioning import normal_scores
from dsage.samplers.gaussian import Gaussian

# A draw stands in memory as noise, as scores, as a draw, as a frame, and as what the model makes of
# these.
_COPIES = 6
# Each makes a risk wrong by some ten nats: from this share on, that shows in the mean.
_MANY_ZEROS = 0.002


class LossGame:
    """The risk of a model that knows a coalition only: ``mean of l(y, E[f(X) | x_S])``.

    The expectation is a mean over draws of the unknown features. A loss of such a mean is biased:
    by the variance of the mean for squared error. So a risk is estimated by the jackknife over the
    groups of draws, which are independent: with G groups, ``f_g`` the mean over group g and ``f``
    over all,

        p_g = G l(f) - (G - 1) l(f without f_g)        risk = mean of p_g,

    which is exactly unbiased for squared error, and free of the first-order bias for every smooth
    loss. An affine model with a sampler that knows conditional means needs no draws.

    Parameters
    ----------
    model : estimator, callable or Model
        The fitted model, see :func:`dsage.models.as_model`.
    sampler : Sampler
        A fitted sampler.
    X : data frame or array of shape (n_rows, n_features)
        Evaluation rows.
    y : array of shape (n_rows,), or None
        Their targets. None explains the model's own output: it stands for the target.
    loss : str, callable or Loss, default="auto"
        The loss, see :func:`dsage.losses.as_loss`; ``"auto"`` is cross entropy for classifiers and
        squared error for all others.
    n_draws : int, default=8
        Draws for each row and coalition; a multiple of `n_groups`.
    n_groups : int, default=2
        Independent groups of draws. One alone has no jackknife, and tells nothing of its error.
    noise : {"sobol", "independent"}, default="sobol"
        How the draws of a group are made, see :class:`~dsage.noise.Noise`.
    random_state : int, numpy Generator or None, default=None
        Seed of the noise.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows, not negative.
    max_bytes : int, default=2**28
        Coalitions and rows are evaluated in blocks so small that draws and predictions stay
        within this budget.

    Attributes
    ----------
    matrix : array of shape (n_rows, n_features)
        The evaluation rows, classes as codes.
    target : array
        The targets as the loss wants them.
    predictions : array of shape (n_rows,) or (n_rows, n_classes)
        The model's, with all features known.
    is_drawn : bool
        False where conditional means do.
    n_predicted : int
        Rows that the model was asked for.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401
        sampler: Sampler,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        *,
        loss: str | Callable[..., Any] | Loss = "auto",
        n_draws: int = 8,
        n_groups: int = 2,
        noise: Literal["sobol", "independent"] = "sobol",
        random_state: RandomState = None,
        sample_weight: npt.ArrayLike | None = None,
        max_bytes: int = 2**28,
    ) -> None:
        layout = getattr(sampler, "layout_", None)
        self.layout: Layout = Layout.of(X) if layout is None else layout
        self.sampler = check_sampler(sampler)
        self.loss = choose_loss(model, y) if loss == "auto" else as_loss(loss)
        self.model = model if isinstance(model, Model) else as_model(model, self.loss)
        self.matrix = self.layout.encode(X)
        self.feature_names = self.layout.names
        self.n_rows = len(self.matrix)
        if not self.n_rows or not self.feature_names:
            raise ValueError(
                message("X", "of at least one row and one column", self.matrix.shape, "Add some")
            )
        self._max_bytes = check_count(max_bytes, "max_bytes")
        self._noise = Noise(
            Streams(random_state),
            len(self.feature_names),
            n_groups=n_groups,
            n_draws=_draws_a_group(n_draws, n_groups),
            kind=noise,
        )
        self._frames = self._as_given(X)
        self.predictions = self.model.predict(self._frames.decode(self.matrix))
        self.target = self.loss.target_for(self.predictions, y, self.model.classes)
        self.n_predicted = self.n_rows
        self.weights = check_weights(sample_weight, self.n_rows)
        self._affine = self.model.affine(self._frames, X) if hasattr(sampler, "mean") else None
        self.is_drawn = self._affine is None
        self.n_groups = self._noise.n_groups if self.is_drawn else 1
        self._device = (
            device_means(self.model, sampler, self._frames, self.n_groups)
            if self.is_drawn
            else None
        )
        if isinstance(sampler, Gaussian):
            self.path_risks = (
                partial(self._drawn_paths, sampler)
                if self._affine is None
                else partial(self._mean_paths, sampler, self._affine)
            )
        self._has_warned = False
        self._full = self._losses(self.predictions[None], np.arange(self.n_rows))[0]

    def _as_given(self, X: Any) -> Layout:  # noqa: ANN401
        """Return the layout that gives the model the kind of container that the user gave."""
        is_array = self.layout.kind == "numpy"
        return self.layout if is_frame(X) != is_array else Layout.of(X)

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of coalitions; see :class:`Game`."""
        out = np.empty((len(known), len(rows), self.n_groups))
        is_full = known.all(axis=1)
        out[is_full] = self._full[rows, None]
        left = np.flatnonzero(~is_full)
        for here, n_coalitions in self._blocks(len(rows)):
            for first in range(0, len(left), n_coalitions):
                at = left[first : first + n_coalitions]
                expected = self._expected(known[at], rows[here], epoch)
                out[at, here] = self._pseudo(expected, rows[here])
        return out

    def _mean_paths(
        self,
        sampler: Gaussian,
        affine: Affine,
        orders: Orders,
        rows: Rows,
        epoch: int,  # noqa: ARG002
        needed: Mask,
    ) -> Floats:
        """Return the risks of all prefixes of orderings of an affine model; see :class:`Paths`.

        With ``S = L L'`` in the ordering's order and ``z = L^-1 (x - mean)``, the expected output
        of an affine model given the first k features is ``a + w'mean + sum over i <= k of
        (L'w)_i z_i``: one factor and a cumulative sum serve all prefixes.
        """
        X = self.matrix[rows]
        start = affine.intercept + sampler.mean_ @ affine.weights
        out = np.empty((*needed.shape, len(rows), 1))
        for order, risks in zip(orders, out, strict=True):
            ordering = sampler.ordering(order)
            effects = np.einsum("kf,ko->fo", ordering.factor, affine.weights[order])
            values = np.zeros((len(order) + 1, len(rows), effects.shape[1]))
            shifts = ordering.whitened(X).T[:, :, None] * effects[:, None, :]
            np.cumsum(shifts, axis=0, out=values[1:])
            values += start
            if self.predictions.ndim == 1:
                values = values[:, :, 0]
            risks[:, :, 0] = self._losses(values, rows)
            risks[-1, :, 0] = self._full[rows]
        return out

    def _drawn_paths(
        self, sampler: Gaussian, orders: Orders, rows: Rows, epoch: int, needed: Mask
    ) -> Floats:
        """Return the risks of the needed prefixes of orderings, from one factor an ordering."""
        out = np.zeros((*needed.shape, len(rows), self.n_groups))
        out[:, -1] = self._full[rows, None]
        for here, n_coalitions in self._blocks(len(rows)):
            X, noise = self.matrix[rows[here]], self._noise(rows[here], epoch)
            scores = normal_scores(noise)
            loaded = None if self._device is None else self._device.load(X, scores)
            for order, wanted, risks in zip(orders, needed, out, strict=True):
                lengths = np.flatnonzero(wanted[:-1])
                blocks = [
                    lengths[first : first + n_coalitions]
                    for first in range(0, len(lengths), n_coalitions)
                ]
                means = (
                    self._path_means(sampler, order, X, scores, blocks)
                    if loaded is None
                    else self._device_path_means(loaded, order, noise.shape[:2], blocks)
                )
                for at, groups in zip(blocks, means, strict=True):
                    risks[at, here] = self._pseudo(groups, rows[here])
        return out

    def _path_means(
        self, sampler: Gaussian, order: Rows, X: Floats, scores: Floats, blocks: list[Rows]
    ) -> Iterator[Floats]:
        """Yield the mean predictions for blocks of prefixes of an ordering."""
        lengths = [length for at in blocks for length in at.tolist()]
        drawn = sampler.ordering(order).prefixes(X, scores, lengths)
        for at in blocks:
            draws = np.empty((len(at), *scores.shape))
            for each in draws:
                each[...] = next(drawn)[1]
            yield self._predicted(draws)

    def _device_path_means(
        self, loaded: LoadedMeans, order: Rows, shape: tuple[int, ...], blocks: list[Rows]
    ) -> Iterator[Floats]:
        """Yield the same, made on the device of the module."""
        path = loaded.ordering(order)
        for at in blocks:
            self.n_predicted += len(at) * shape[0] * shape[1]
            yield path.prefixes(at)

    def moment_game(self) -> MomentGame | None:
        """Return the cheap game that resembles this one; None where the targets are no numbers.

        Neither is there one where a function given as a loss compares things of different shapes.
        """
        output, target = self.predictions, self.target
        if self.loss.output == "probability" and output.ndim != target.ndim:
            target = np.eye(output.shape[1])[target] if output.ndim == 2 else target[:, 1]
        if target.dtype.kind not in "biuf" or target.shape != output.shape:
            return None
        return MomentGame(
            self.matrix, output, target, self.feature_names, sample_weight=self.weights
        )

    def _expected(self, known: Mask, rows: Rows, epoch: int) -> Floats:
        """Return the mean predictions of each group, (n_coalitions, n_rows, n_groups, ...)."""
        X = self.matrix[rows]
        if self._affine is None:
            noise = self._noise(rows, epoch)
            if self._device is not None:
                self.n_predicted += len(known) * noise.shape[0] * noise.shape[1]
                return self._device.load(X, normal_scores(noise)).coalitions(known)
            draws = np.empty((len(known), *noise.shape))
            for coalition, out in zip(known, draws, strict=True):
                out[...] = self.sampler.draw(X, coalition, noise)
            return self._predicted(draws)
        mean = self.sampler.mean  # type: ignore[attr-defined]
        values = np.stack([self._affine.predict(mean(X, coalition)) for coalition in known])
        if self.predictions.ndim == 1:
            values = values.reshape(len(known), len(rows))
        return np.expand_dims(values, 2)

    def _predicted(self, draws: Floats) -> Floats:
        """Return the mean predictions of each group of draws (n_coalitions, n_rows, n_draws, d)."""
        flat = draws.reshape(-1, draws.shape[-1])
        self.n_predicted += len(flat)
        predicted = self.model.predict(self._frames.decode(flat))
        if predicted.shape[1:] != self.predictions.shape[1:]:
            raise ValueError(
                message(
                    f"the prediction of {self.model.name}",
                    f"of shape (n_rows, {', '.join(map(str, self.predictions.shape[1:]))})",
                    predicted.shape,
                    "It has another number of outputs than for the evaluation rows",
                )
            )
        shape = (*draws.shape[:2], self.n_groups, self._noise.n_draws, *predicted.shape[1:])
        return _mean(predicted.reshape(shape), axis=3)

    def _pseudo(self, groups: Floats, rows: Rows) -> Floats:
        """Return the pseudo-values (n_coalitions, n_rows, n_groups) of mean predictions."""
        n_coalitions, n_rows, n_groups, *_ = groups.shape
        together = _mean(groups, axis=2)
        whole = self._losses(together, rows)[:, :, None]
        if n_groups == 1:
            return whole
        # Means anew, not differences to the mean of all: exact ties of classes must stay ties.
        others = [_mean(np.delete(groups, group, axis=2), axis=2) for group in range(n_groups)]
        without = np.stack(others, axis=1).reshape(-1, n_rows, *groups.shape[3:])
        self._note_zeros(without.reshape(n_coalitions, n_groups, *without.shape[1:]), rows)
        losses = self._losses(without, rows).reshape(n_coalitions, n_groups, n_rows)
        # Exactly the loss itself where no group changes it.
        pseudo: Floats = whole + (n_groups - 1) * (whole - np.moveaxis(losses, 1, 2))
        return pseudo

    def _note_zeros(self, means: Floats, rows: Rows) -> None:
        """Warn once where draws of some groups alone leave the class of a row no probability.

        There the logarithm is cut off, no smooth function, and the jackknife makes it worse: a risk
        may even be negative.
        """
        target = self.target[rows]
        if self._has_warned or self.loss.name != "cross_entropy" or target.ndim == 2:
            return
        at = np.arange(len(rows))
        chosen = means[..., at, target] if means.ndim == 4 else np.abs(1 - target - means)
        is_zero = chosen < EPSILON
        share = float((is_zero.any(axis=1) & ~is_zero.all(axis=1)).mean())
        if share > _MANY_ZEROS:
            self._has_warned = True
            warn(
                f"For {100 * share:.2g} % of the risks some draws, and not others, give the class "
                "of a row no probability at all: cross entropy is biased then, however many "
                "orderings there are. Use loss='brier', a model without probabilities of zero, or "
                "far more draws."
            )

    def _losses(self, predictions: Floats, rows: Rows) -> Floats:
        """Return the weighted losses of predictions (n_times, n_rows, ...) of some rows."""
        return self.loss.many(self.target[rows], predictions) * self.weights[rows]

    def _blocks(self, n_rows: int) -> Iterator[tuple[slice, int]]:
        """Yield blocks of rows, and how many coalitions may be evaluated on one at a time."""
        most = max(1, self._max_bytes // self._bytes_a_row())
        for start in range(0, n_rows, most):
            here = slice(start, min(start + most, n_rows))
            yield here, max(1, most // (here.stop - here.start))

    def _bytes_a_row(self) -> int:
        n_draws = self._noise.n_groups * self._noise.n_draws if self.is_drawn else 1
        n_outputs = self.predictions.size // self.n_rows
        return 8 * n_draws * (_COPIES * len(self.feature_names) + 2 * n_outputs)


def _mean(values: Floats, axis: int) -> Floats:
    """Return means that lie among the values: rounding makes none of equal values differ."""
    means: Floats = values.mean(axis=axis)
    return np.clip(means, values.min(axis=axis), values.max(axis=axis), out=means)


def _draws_a_group(n_draws: int, n_groups: int) -> int:
    check_count(n_groups, "n_groups")
    if check_count(n_draws, "n_draws") % n_groups:
        raise ValueError(
            message("n_draws", f"a multiple of n_groups, {n_groups}", n_draws, "Change one of them")
        )
    return n_draws // n_groups
