"""The game of a model: draws of the unknown features, predictions, losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dsage._check import check_count, message
from dsage._frame import Layout
from dsage._random import RandomState, Streams
from dsage.games.base import Floats, Mask, Rows, check_weights
from dsage.games.moment import MomentGame
from dsage.losses import Loss, as_loss, choose_loss
from dsage.models import Model, as_model
from dsage.noise import Noise
from dsage.samplers.base import Sampler, check_sampler
from dsage.samplers.gaussian import Gaussian

# A draw stands in memory as a draw, as a frame, and as what the model makes of it.
_COPIES = 4


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
    n_draws : int, default=16
        Draws for each row and coalition; a multiple of `n_groups`.
    n_groups : int, default=2
        Independent groups of draws.
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
        n_draws: int = 16,
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
        predicted = self.model.predict(self.layout.decode(self.matrix))
        self.predictions = self.loss.check(predicted)
        self.n_predicted = self.n_rows
        self.target = self._own_output() if y is None else self._target(y)
        if len(self.target) != self.n_rows:
            raise ValueError(
                message("y", f"of {self.n_rows} rows, as X", len(self.target), "Give one a row")
            )
        self.weights = check_weights(sample_weight, self.n_rows)
        self._affine = self.model.affine(self.layout, X) if hasattr(sampler, "mean") else None
        self.is_drawn = self._affine is None
        self.n_groups = self._noise.n_groups if self.is_drawn else 1
        if self._affine is not None and isinstance(sampler, Gaussian):
            self.path_risks = self._path_risks
        self._full = self._losses(self.predictions, np.arange(self.n_rows))

    def _target(self, y: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        n_classes = self.predictions.shape[1] if self.predictions.ndim == 2 else None
        return self.loss.target(y, self.model.classes, n_classes)

    def _own_output(self) -> npt.NDArray[Any]:
        """Return the model's output as a target: probabilities, or the class for zero-one loss."""
        output = self.predictions
        if self.loss.output == "probability" and output.ndim == 1:
            output = np.column_stack([1.0 - output, output])
        return output.argmax(axis=1) if self.loss.name == "zero_one" else output

    def risks(self, known: Mask, rows: Rows, epoch: int = 0) -> Floats:
        """Return the risks of coalitions; see :class:`Game`."""
        out = np.empty((len(known), len(rows), self.n_groups))
        is_full = known.all(axis=1)
        out[is_full] = self._full[rows, None]
        left = np.flatnonzero(~is_full)
        n_rows = max(1, self._max_bytes // self._bytes_a_row())
        for start in range(0, len(rows), n_rows):
            here = slice(start, min(start + n_rows, len(rows)))
            n_coalitions = max(1, n_rows // (here.stop - here.start))
            for first in range(0, len(left), n_coalitions):
                at = left[first : first + n_coalitions]
                out[at, here] = self._evaluate(known[at], rows[here], epoch)
        return out

    def _path_risks(self, orders: npt.NDArray[np.intp], rows: Rows) -> Floats:
        """Return the risks of all prefixes of orderings; see :class:`Paths`.

        With ``S = L L'`` in the ordering's order and ``z = L^-1 (x - mean)``, the expected output
        of an affine model given the first k features is ``a + w'mean + sum over i <= k of
        (L'w)_i z_i``: one factor and a cumulative sum serve all prefixes.
        """
        affine, sampler, X = self._affine, self.sampler, self.matrix[rows]
        assert affine is not None  # noqa: S101
        assert isinstance(sampler, Gaussian)  # noqa: S101
        start = affine.intercept + sampler.mean_ @ affine.weights
        out = np.empty((len(orders), orders.shape[1] + 1, len(rows), 1))
        for order, risks in zip(orders, out, strict=True):
            ordering = sampler.ordering(order)
            effects = np.einsum("kf,ko->fo", ordering.factor, affine.weights[order])
            shifts = ordering.whitened(X).T[:, :, None] * effects[:, None, :]
            values = np.empty((len(order) + 1, len(rows), effects.shape[1]))
            values[0] = 0.0
            np.cumsum(shifts, axis=0, out=values[1:])
            values += start
            if self.predictions.ndim == 1:
                values = values[:, :, 0]
            flat = values.reshape(-1, *values.shape[2:])
            risks[:, :, 0] = self._losses(flat, rows, len(values)).reshape(values.shape[:2])
            risks[-1, :, 0] = self._full[rows]
        return out

    def moment_game(self) -> MomentGame | None:
        """Return the cheap game that resembles this one; None where the targets are no numbers."""
        output, target = self.predictions, self.target
        if target.dtype.kind not in "biuf":
            return None
        if output.ndim == 2 and target.ndim == 1:
            target = np.eye(output.shape[1])[target.astype(np.intp)]
        return MomentGame(
            self.matrix, output, target, self.feature_names, sample_weight=self.weights
        )

    def _evaluate(self, known: Mask, rows: Rows, epoch: int) -> Floats:
        """Return the pseudo-values (n_coalitions, n_rows, n_groups) of one block."""
        groups = self._drawn(known, rows, epoch) if self.is_drawn else self._means(known, rows)
        n_coalitions, n_rows, n_groups, *_ = groups.shape
        together = groups.mean(axis=2)
        whole = self._losses(together.reshape(-1, *groups.shape[3:]), rows, n_coalitions)
        whole = whole.reshape(n_coalitions, n_rows, 1)
        if n_groups == 1:
            return whole
        without = (n_groups * together[:, :, None] - groups) / (n_groups - 1)
        without = np.moveaxis(without, 2, 1).reshape(-1, *groups.shape[3:])
        losses = self._losses(without, rows, n_coalitions * n_groups)
        losses = np.moveaxis(losses.reshape(n_coalitions, n_groups, n_rows), 1, 2)
        pseudo: Floats = n_groups * whole - (n_groups - 1) * losses
        return pseudo

    def _drawn(self, known: Mask, rows: Rows, epoch: int) -> Floats:
        """Return the mean predictions of each group, (n_coalitions, n_rows, n_groups, ...)."""
        X, noise = self.matrix[rows], self._noise(rows, epoch)
        draws = np.empty((len(known), *noise.shape))
        for coalition, out in zip(known, draws, strict=True):
            out[...] = self.sampler.draw(X, coalition, noise)
        flat = draws.reshape(-1, noise.shape[-1])
        self.n_predicted += len(flat)
        predicted = self.model.predict(self.layout.decode(flat))
        shape = (len(known), len(X), self.n_groups, self._noise.n_draws, *predicted.shape[1:])
        means: Floats = predicted.reshape(shape).mean(axis=3)
        return means

    def _means(self, known: Mask, rows: Rows) -> Floats:
        """Return the expected predictions, (n_coalitions, n_rows, 1, ...)."""
        affine, X = self._affine, self.matrix[rows]
        assert affine is not None  # noqa: S101
        means = [self.sampler.mean(X, coalition) for coalition in known]  # type: ignore[attr-defined]
        values = np.stack([affine.intercept + mean @ affine.weights for mean in means])
        if self.predictions.ndim == 1:
            values = values[:, :, 0]
        return np.expand_dims(values, 2)

    def _losses(self, predictions: Floats, rows: Rows, n_times: int = 1) -> Floats:
        """Return weighted losses of predictions that repeat the rows several times."""
        target, weights = self.target[rows], self.weights[rows]
        if n_times > 1:
            target = np.concatenate([target] * n_times)
            weights = np.concatenate([weights] * n_times)
        return self.loss(target, predictions) * weights

    def _bytes_a_row(self) -> int:
        n_draws = self._noise.n_groups * self._noise.n_draws if self.is_drawn else 1
        return _COPIES * 8 * n_draws * len(self.feature_names)


def _draws_a_group(n_draws: int, n_groups: int) -> int:
    check_count(n_groups, "n_groups")
    if check_count(n_draws, "n_draws") % n_groups:
        raise ValueError(
            message("n_draws", f"a multiple of n_groups, {n_groups}", n_draws, "Change one of them")
        )
    return n_draws // n_groups
