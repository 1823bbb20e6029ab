"""What a model that knows a coalition predicts: means over draws, or at conditional means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from dsage._check import check_count, refusal
from dsage._random import RandomState, Streams
from dsage.data.layout import Layout, is_frame
from dsage.games.base import Floats, Mask, Orders, Rows
from dsage.games.device import LoadedMeans, device_means
from dsage.models.affine import Affine
from dsage.samplers.base import Sampler, check_sampler
from dsage.samplers.conditioning import normal_scores
from dsage.samplers.noise import Noise

# A draw stands in memory as noise, as scores, as a draw, as a frame, and as what the model makes of
# these.
_COPIES = 6
# Draws for the mean prediction, which is the same for all rows, and the epoch of their noise, which
# no estimate comes to.
_N_MEAN, _MEAN_EPOCH = 1 << 12, 1 << 40


class Predictor(Protocol):
    """What is asked of a model; :class:`~dsage.models.Model` has it."""

    @property
    def name(self) -> str:
        """How errors call it."""
        ...

    def predict(self, X: Any) -> Floats:  # noqa: ANN401
        """Return checked predictions, (n_rows,) or (n_rows, n_outputs)."""
        ...

    def affine(self, layout: Layout, X: Any) -> Affine | None:  # noqa: ANN401
        """Return the affine map that the model is, or None where it is not known to be one."""
        ...


class Part(NamedTuple):
    """Mean predictions of some coalitions on some of the rows that were asked for.

    at : int array
        Which coalitions; along an ordering, the lengths of its prefixes.
    here : slice
        Which rows.
    groups : array of shape (n_coalitions, n_rows, n_replicates, ...)
        The means over the draws of each group.
    """

    at: Rows
    here: slice
    groups: Floats


class Expected:
    """The predictions ``f_S(x) = E[f(X) | x_S]`` of a model, for coalitions and along orderings.

    The expectation is a mean over draws of the unknown features, which come in independent groups.
    An affine model with a sampler that knows conditional means needs no draws. With everything
    known it is the model's prediction, which is made once.

    Parameters
    ----------
    model : Predictor
        The model.
    sampler : Sampler
        A fitted sampler.
    X : data frame or array of shape (n_rows, n_features)
        Evaluation rows.
    n_draws : int
        Draws for each row and coalition; a multiple of `n_replicates`.
    n_replicates : int
        Independent groups of draws.
    noise : {"sobol", "independent"}
        How the draws of a group are made, see :class:`~dsage.samplers.noise.Noise`.
    random_state : int, numpy Generator or None
        Seed of the noise.
    max_bytes : int
        Coalitions and rows are evaluated in blocks so small that draws and predictions stay
        within this budget.

    Attributes
    ----------
    layout : Layout
        What the columns are.
    matrix : array of shape (n_rows, n_features)
        The evaluation rows, classes as codes.
    feature_names : tuple of str
        The features.
    predictions : array of shape (n_rows,) or (n_rows, n_outputs)
        The model's, with all features known.
    is_drawn : bool
        False where conditional means do.
    noise : Noise
        What the draws are made of.
    n_replicates : int
        Groups of draws; 1 where nothing is drawn.
    n_predicted : int
        Rows that the model was asked for.
    has_paths : bool
        Whether `paths` is available: the sampler draws along orderings.
    """

    def __init__(
        self,
        model: Predictor,
        sampler: Sampler,
        X: Any,  # noqa: ANN401
        *,
        n_draws: int,
        n_replicates: int,
        noise: Literal["sobol", "independent"],
        random_state: RandomState,
        max_bytes: int,
    ) -> None:
        self._sampler = check_sampler(sampler)
        self.layout: Layout = self._sampler.layout_ or Layout.of(X)
        self._model = model
        self.matrix = self.layout.encode(X)
        self.feature_names = self.layout.names
        self.n_rows = len(self.matrix)
        if not self.n_rows or not self.feature_names:
            raise refusal("X", "of at least one row and one column", self.matrix.shape, "Add some")
        self._max_bytes = check_count(max_bytes, "max_bytes")
        self._streams = Streams(random_state)
        self.noise = Noise(
            self._streams,
            len(self.feature_names),
            n_replicates=n_replicates,
            n_draws=_draws_a_group(n_draws, n_replicates),
            kind=noise,
        )
        self._frames = self._as_given(X)
        self.predictions = self._model.predict(self._frames.decode(self.matrix))
        self.n_predicted = self.n_rows
        self._affine = self._model.affine(self._frames, X) if self._sampler.has_mean else None
        self.is_drawn = self._affine is None
        self.n_replicates = self.noise.n_replicates if self.is_drawn else 1
        self._device = (
            device_means(model, self._sampler, self._frames, self.n_replicates)
            if self.is_drawn
            else None
        )
        self.has_paths = self._sampler.has_orderings

    def _as_given(self, X: Any) -> Layout:  # noqa: ANN401
        """Return the layout that gives the model the kind of container that the user gave."""
        is_array = self.layout.kind == "numpy"
        return self.layout if is_frame(X) != is_array else Layout.of(X)

    def mean(self) -> Floats:
        """Return the mean prediction, (...), where nothing is known: from a net of many draws."""
        nothing = np.zeros((1, len(self.feature_names)), dtype=np.bool_)
        first = np.zeros(1, dtype=np.intp)
        if self._affine is not None:
            mean: Floats = self._means(nothing, first, 0)[0, 0, 0]
            return mean
        noise = Noise(self._streams, len(self.feature_names), n_replicates=1, n_draws=_N_MEAN)
        draws = self._sampler.draw(self.matrix[:1], nothing[0], noise(first, _MEAN_EPOCH))[0]
        total = np.zeros(self.predictions.shape[1:])
        at_once = max(1, self._max_bytes // (8 * _COPIES * draws.shape[1]))
        for start in range(0, _N_MEAN, at_once):
            part = draws[start : start + at_once]
            self.n_predicted += len(part)
            total += self._model.predict(self._frames.decode(part)).sum(axis=0)
        return total / _N_MEAN

    def parts(self, known: Mask, rows: Rows, epoch: int) -> Iterator[Part]:
        """Yield the mean predictions of all coalitions but the one that knows everything."""
        left = np.flatnonzero(~known.all(axis=1))
        for here, n_coalitions in self._blocks(len(rows)):
            for first in range(0, len(left), n_coalitions):
                at = left[first : first + n_coalitions]
                yield Part(at, here, self._means(known[at], rows[here], epoch))

    def paths(
        self, orders: Orders, rows: Rows, epoch: int, needed: Mask
    ) -> Iterator[tuple[int, Part]]:
        """Yield orderings by their numbers, with mean predictions of their proper prefixes.

        Those are there that are `needed`, (n_orderings, n_features + 1), and maybe others. Draws
        belong to the ordering: see :class:`~dsage.games.base.Paths`.
        """
        if not self.has_paths:
            raise refusal(
                "sampler",
                "one that draws along orderings",
                self._sampler.name,
                "Ask for the coalitions instead",
                TypeError,
            )
        if self._affine is None:
            return self._drawn_paths(orders, rows, epoch, needed)
        return self._mean_paths(self._affine, orders, rows)

    def _mean_paths(self, affine: Affine, orders: Orders, rows: Rows) -> Iterator[tuple[int, Part]]:
        """Yield the expected outputs of an affine model for all proper prefixes of orderings.

        With ``S = L L'`` in the ordering's order and ``z = L^-1 (x - mean)``, the expected output
        of an affine model given the first k features is ``a + w'mean + sum over i <= k of
        (L'w)_i z_i``: one factor and a cumulative sum serve all prefixes.
        """
        X = self.matrix[rows]
        lengths, here = np.arange(len(self.feature_names)), slice(0, len(rows))
        for number, order in enumerate(orders):
            ordering = self._sampler.ordering(order)
            start = affine.intercept + ordering.mean @ affine.weights
            effects = np.einsum("kf,ko->fo", ordering.factor, affine.weights[order])
            values = np.zeros((len(order) + 1, len(rows), effects.shape[1]))
            shifts = ordering.whitened(X).T[:, :, None] * effects[:, None, :]
            np.cumsum(shifts, axis=0, out=values[1:])
            values += start
            if self.predictions.ndim == 1:
                values = values[:, :, 0]
            yield number, Part(lengths, here, np.expand_dims(values[:-1], 2))

    def _drawn_paths(
        self, orders: Orders, rows: Rows, epoch: int, needed: Mask
    ) -> Iterator[tuple[int, Part]]:
        """Yield the mean predictions of the needed prefixes, from one factor an ordering."""
        for here, n_coalitions in self._blocks(len(rows)):
            X, noise = self.matrix[rows[here]], self.noise(rows[here], epoch)
            scores = normal_scores(noise)
            loaded = None if self._device is None else self._device.load(X, scores)
            for number, (order, wanted) in enumerate(zip(orders, needed, strict=True)):
                lengths = np.flatnonzero(wanted[:-1])
                starts = range(0, len(lengths), n_coalitions)
                blocks = [lengths[first : first + n_coalitions] for first in starts]
                means = (
                    self._path_means(order, X, scores, blocks)
                    if loaded is None
                    else self._device_path_means(loaded, order, scores.shape, blocks)
                )
                for at, groups in zip(blocks, means, strict=True):
                    yield number, Part(at, here, groups)

    def _path_means(
        self, order: Rows, X: Floats, scores: Floats, blocks: list[Rows]
    ) -> Iterator[Floats]:
        """Yield the mean predictions for blocks of prefixes of an ordering."""
        lengths = [length for at in blocks for length in at.tolist()]
        drawn = self._sampler.ordering(order).prefixes(X, scores, lengths)
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
            yield self._same_outputs(path.prefixes(at), 3)

    def _means(self, known: Mask, rows: Rows, epoch: int) -> Floats:
        """Return the mean predictions of each group, (n_coalitions, n_rows, n_replicates, ...)."""
        X = self.matrix[rows]
        if self._affine is None:
            noise = self.noise(rows, epoch)
            if self._device is not None:
                self.n_predicted += len(known) * noise.shape[0] * noise.shape[1]
                loaded = self._device.load(X, normal_scores(noise))
                return self._same_outputs(loaded.coalitions(known), 3)
            draws = np.empty((len(known), *noise.shape))
            for coalition, out in zip(known, draws, strict=True):
                out[...] = self._sampler.draw(X, coalition, noise)
            return self._predicted(draws)
        means = (self._sampler.mean(X, coalition) for coalition in known)
        values = np.stack([self._affine.predict(mean) for mean in means])
        if self.predictions.ndim == 1:
            values = values.reshape(len(known), len(rows))
        return np.expand_dims(values, 2)

    def _predicted(self, draws: Floats) -> Floats:
        """Return the mean predictions of each group of draws (n_coalitions, n_rows, n_draws, d)."""
        flat = draws.reshape(-1, draws.shape[-1])
        self.n_predicted += len(flat)
        predicted = self._same_outputs(self._model.predict(self._frames.decode(flat)), 1)
        shape = (*draws.shape[:2], self.n_replicates, self.noise.n_draws, *predicted.shape[1:])
        return mean_within(predicted.reshape(shape), axis=3)

    def _same_outputs(self, predicted: Floats, axis: int) -> Floats:
        """Return predictions whose outputs, from `axis` on, are as many as for the rows."""
        if predicted.shape[axis:] != self.predictions.shape[1:]:
            raise refusal(
                f"the prediction of {self._model.name}",
                f"of shape (n_rows, {', '.join(map(str, self.predictions.shape[1:]))})",
                (*predicted.shape[:1], *predicted.shape[axis:]),
                "It has another number of outputs than for the evaluation rows",
            )
        return predicted

    def _blocks(self, n_rows: int) -> Iterator[tuple[slice, int]]:
        """Yield blocks of rows, and how many coalitions may be evaluated on one at a time."""
        most = max(1, self._max_bytes // self._bytes_a_row())
        for start in range(0, n_rows, most):
            here = slice(start, min(start + most, n_rows))
            yield here, max(1, most // (here.stop - here.start))

    def _bytes_a_row(self) -> int:
        n_draws = self.noise.n_replicates * self.noise.n_draws if self.is_drawn else 1
        n_outputs = self.predictions.size // self.n_rows
        return 8 * n_draws * (_COPIES * len(self.feature_names) + 2 * n_outputs)


def mean_within(values: Floats, axis: int) -> Floats:
    """Return means that lie among the values: rounding makes none of equal values differ.

    Examples
    --------
    >>> values = np.full((1, 3), 0.1)
    >>> values.mean(axis=1) == 0.1, mean_within(values, axis=1) == 0.1
    (array([False]), array([ True]))
    """
    means: Floats = values.mean(axis=axis)
    return np.clip(means, values.min(axis=axis), values.max(axis=axis), out=means)


def _draws_a_group(n_draws: int, n_replicates: int) -> int:
    check_count(n_replicates, "n_replicates")
    if check_count(n_draws, "n_draws") % n_replicates:
        raise refusal(
            "n_draws", f"a multiple of n_replicates, {n_replicates}", n_draws, "Change one of them"
        )
    return n_draws // n_replicates
