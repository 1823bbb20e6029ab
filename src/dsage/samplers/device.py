"""Gaussian draws made on a device of PyTorch, so that they need not be copied to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from dsage._check import check_known
from dsage.data.missing import check_finite
from dsage.models.torch_tools import require_torch
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.conditioning import GRID, check_scores
from dsage.samplers.ordering import check_lengths

if TYPE_CHECKING:
    from dsage.samplers.gaussian import Gaussian


class DeviceGaussian:
    """Draw from a fitted :class:`Gaussian` on a device (made by :meth:`Gaussian.on_device`).

    What depends on the coalition alone (factors, regressions) and the conditional means of rows are
    computed on the CPU, in double precision. The draws, ``n_draws`` times as many numbers, are made
    on the device, from normal scores that are sent there once and are used for all coalitions and
    orderings. They equal the sampler's own draws up to rounding. Types shorter than single
    precision are computed in that, and rounded last.

    Examples
    --------
    Draws for the prefixes of an ordering, and for coalitions::

        rows = sampler.on_device("cuda", torch.float32).load(X, normal_scores(noise))
        rows.ordering(order).draw([0, 1, 2])  # tensor of shape (3, n_rows, n_draws, n_features)
        rows.draw(known)  # tensor of shape (n_coalitions, n_rows, n_draws, n_features)
    """

    def __init__(self, sampler: Gaussian, device: Any, dtype: Any) -> None:  # noqa: ANN401
        torch = require_torch("DeviceGaussian")
        check_is_fitted(sampler)
        self.sampler = sampler
        self.device = torch.device(device)
        self.dtype = dtype
        self._computed = dtype if dtype.itemsize >= 4 else torch.float32

    def load(self, X: Any, scores: Floats) -> DeviceRows:  # noqa: ANN401
        """Send rows and ``scores = normal_scores(noise)`` to the device."""
        matrix = self.sampler.layout_.encode(X)
        check_finite(matrix, self.sampler.feature_names_)
        return DeviceRows(self, matrix, check_scores(scores, *matrix.shape))

    def send(self, values: npt.NDArray[Any]) -> Any:  # noqa: ANN401
        """Return an array as a tensor on the device, floats in the precision of the draws."""
        torch = require_torch("DeviceGaussian")
        tensor = torch.from_numpy(np.ascontiguousarray(values))
        if tensor.is_floating_point():
            # Before the copy, which then has half the bytes.
            tensor = tensor.to(self._computed)
        return tensor.to(self.device)


class DeviceRows:
    """Rows and normal scores on a device (made by :meth:`DeviceGaussian.load`)."""

    def __init__(self, at: DeviceGaussian, matrix: Floats, scores: Floats) -> None:
        self.at = at
        self.matrix = matrix
        self.rows = at.send(matrix)
        self.scores = at.send(scores)

    def ordering(self, order: Sequence[int] | Ints) -> DeviceOrdering:
        """Return an object that draws for all prefixes of an ordering."""
        return DeviceOrdering(self, np.asarray(order))

    def draw(self, known: Mask) -> Any:  # noqa: ANN401
        """Draw as :meth:`Gaussian.draw`: (n_coalitions, n_rows, n_draws, n_features)."""
        sampler = self.at.sampler
        known = check_known(known, sampler.feature_names_)
        n_rows, n_draws, n_features = self.scores.shape
        means = np.empty((len(known), n_rows, n_features))
        factors = np.zeros((len(known), n_features, n_features))
        for coalition, mean, factor in zip(known, means, factors, strict=True):
            mean[...] = sampler.mean(self.matrix, coalition)
            unknown = np.flatnonzero(~coalition)
            factor[np.ix_(unknown, unknown)] = sampler._normal.given(coalition).factor / GRID
        draws = self.scores.reshape(-1, n_features) @ self.at.send(factors)
        draws = draws.reshape(len(known), n_rows, n_draws, n_features)
        draws += self.at.send(means)[:, :, None, :]
        return draws.to(self.at.dtype)


class DeviceOrdering:
    """All prefixes of one ordering, drawn on a device (made by :meth:`DeviceRows.ordering`).

    A draw for the prefix of length k is ``mean + L [z_1 .. z_k, e_(k+1) .. e_d]``: one product of
    matrices for any number of prefixes. See :class:`~dsage.samplers.ordering.Ordering`.
    """

    def __init__(self, rows: DeviceRows, order: Ints) -> None:
        at, matrix = rows.at, rows.matrix
        ordering = at.sampler.ordering(order)
        # In the order of the data, as the scores are.
        whitened = np.empty_like(matrix)
        whitened[:, order] = ordering.whitened(matrix)
        weights = np.empty_like(ordering.factor)
        weights[np.ix_(order, order)] = ordering.factor
        self._rows = rows
        self._order = ordering.order
        self._whitened = at.send(whitened)[:, None, :]
        self._weights = at.send(weights.T)
        self._mean = at.send(at.sampler.mean_)

    def draw(self, lengths: Sequence[int] | Ints) -> Any:  # noqa: ANN401
        """Draw given prefixes of ascending lengths: (n_lengths, n_rows, n_draws, n_features)."""
        torch = require_torch("DeviceGaussian")
        n_features = len(self._order)
        wanted = check_lengths(lengths, n_features)
        known = np.zeros((len(wanted), n_features), bool)
        for length, mask in zip(wanted, known, strict=True):
            mask[self._order[:length]] = True
        is_known = self._rows.at.send(known)[:, None, None, :]
        draws = torch.where(is_known, self._whitened, self._rows.scores) @ self._weights
        draws += self._mean
        return torch.where(is_known, self._rows.rows[:, None, :], draws).to(self._rows.at.dtype)
