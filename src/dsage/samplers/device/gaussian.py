"""Draws of a Gaussian, and of a Gaussian copula, on a device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dsage.data.layout import Layout
from dsage.data.missing import check_finite
from dsage.models.torch_tools import require_torch
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.conditioning import CLEAR, TOLERANCE, Normal, lower_factor
from dsage.samplers.curve import Curves
from dsage.samplers.device.paths import DevicePaths, DeviceRows, DeviceSampler, DeviceTable
from dsage.samplers.device.place import Place, to_scores


class DeviceGaussian(DeviceSampler):
    """A fitted :class:`~dsage.samplers.Gaussian` on a device.

    Factors of the orderings, and what rows are in terms of them, are computed in double precision.

    Parameters
    ----------
    normal : Normal
        The distribution.
    layout : Layout
        The columns.
    place : Place
        The device, and the precision of the draws.
    """

    def __init__(self, normal: Normal, layout: Layout, place: Place) -> None:
        super().__init__(layout, place)
        self.normal = normal
        # A feature has the least variance given all others. If that is enough of it, no ordering
        # has a feature that follows from those before it.
        self.is_regular = _least_left(normal.correlation) > CLEAR * TOLERANCE
        self.correlation = place.send(normal.correlation)
        self.scale = place.send(normal.scale)
        self.mean = place.round(place.send(normal.mean))

    def load(self, X: Any) -> GaussianTable:  # noqa: ANN401
        """Send rows (n_rows, n_features) to the device."""
        matrix = self.layout.encode(X)
        check_finite(matrix, self.layout.names)
        return GaussianTable(self, matrix)

    def latent(self, matrix: Floats) -> Floats:
        """Return rows as the multivariate normal sees them."""
        return matrix

    def finish(self, draws: Any) -> Any:  # noqa: ANN401
        """Turn draws of the multivariate normal with mean zero into values, maybe in place."""
        return draws.add_(self.mean)

    def along_of(self, known: Mask) -> Ints:
        """Return an ordering for each coalition that begins with it.

        If known features determine each other, those with most variance left come first.
        """
        if self.is_regular:
            return super().along_of(known)
        return np.stack([_with_most_first(self.normal.correlation, each) for each in known])

    def factors(self, orders: Ints) -> Any:  # noqa: ANN401
        """Return the lower factors along orderings, (n_orderings, n_features, n_features)."""
        torch = require_torch("draws on a device")
        at = self.place.send(orders)
        if self.is_regular:
            permuted = self.correlation[at[:, :, None], at[:, None, :]]
            # Its result is not checked, which would have to wait for it.
            factors = torch.linalg.cholesky_ex(permuted).L
        else:
            correlation = self.normal.correlation
            found = [lower_factor(correlation[np.ix_(order, order)]) for order in orders]
            factors = self.place.send(np.stack(found))
        return factors * self.scale[at][:, :, None]


class DeviceCopula(DeviceGaussian):
    """A fitted :class:`~dsage.samplers.GaussianCopula` on a device.

    Parameters
    ----------
    normal, layout, place
        As for :class:`DeviceGaussian`, of the normal scores of the columns.
    to_latent : callable
        Returns the normal scores of rows.
    values : Curves
        The values of each feature as a function of normal scores.
    """

    def __init__(
        self,
        normal: Normal,
        layout: Layout,
        place: Place,
        to_latent: Callable[[Floats], Floats],
        values: Curves,
    ) -> None:
        super().__init__(normal, layout, place)
        self._to_latent = to_latent
        self._knots = place.round(place.send(values.knots))
        # A line for each piece, with constants below the first and above the last knot.
        slopes = np.pad(values.slopes, ((0, 0), (1, 0)))
        starts = np.pad(values.values, ((0, 0), (1, 0)), mode="edge")
        starts -= slopes * np.append(values.knots[0], values.knots)
        self._lines = place.round(place.send(np.stack([slopes, starts], axis=2)))

    def latent(self, matrix: Floats) -> Floats:
        """Return the normal scores of rows."""
        return self._to_latent(matrix)

    def finish(self, draws: Any) -> Any:  # noqa: ANN401
        """Turn normal scores into values."""
        torch = require_torch("draws on a device")
        n_features, n_pieces, _ = self._lines.shape
        # Positions of 32 bits, which plain indexing would copy to 64.
        at = torch.searchsorted(self._knots, draws, right=True, out_int32=True)
        at += n_pieces * torch.arange(n_features, device=at.device, dtype=at.dtype)
        lines = self._lines.view(-1, 2).index_select(0, at.view(-1)).view(*at.shape, 2)
        return torch.addcmul(lines[..., 1], draws, lines[..., 0], out=draws)


class GaussianTable(DeviceTable):
    """Rows on a device, also as the multivariate normal sees them."""

    at: DeviceGaussian

    def __init__(self, sampler: DeviceGaussian, matrix: Floats) -> None:
        super().__init__(sampler, matrix)
        self._centered = sampler.place.send(sampler.latent(matrix) - sampler.normal.mean)

    def _pick(self, at: Any, noise: Any) -> GaussianRows:  # noqa: ANN401
        return GaussianRows(
            self.at, self.shown[at.to(self.shown.device)], self._centered[at], noise
        )


class GaussianRows(DeviceRows):
    """Rows and the normal scores of their noise."""

    at: DeviceGaussian

    def __init__(self, sampler: DeviceGaussian, shown: Any, centered: Any, noise: Any) -> None:  # noqa: ANN401
        super().__init__(sampler, tuple(noise.shape))
        self.shown, self.centered = shown, centered
        self.scores = sampler.place.round(to_scores(noise))

    @property
    def bytes_per_ordering(self) -> int:
        """Memory of the factor of an ordering, and of rows in terms of it."""
        n_rows, _, n_features = self.shape
        return 8 * 4 * n_features * (n_rows + n_features)

    @property
    def bytes_per_prefix(self) -> int:
        """Memory of the draws for a prefix, of their inputs, and of other copies."""
        n_rows, n_draws, n_features = self.shape
        size = self.at.place.n_bytes
        return size * n_features * (4 * n_rows * n_draws + n_rows + n_features)

    def _along(self, orders: Ints, sets: Ints) -> GaussianPaths:
        return GaussianPaths(self, orders, sets)


class GaussianPaths(DevicePaths):
    """All prefixes of several orderings, from one factor for each.

    A draw for the prefix of length k is ``mean + L [z_1 .. z_k, e_(k+1) .. e_d]``: one product of
    matrices for any number of prefixes. See :class:`~dsage.samplers.ordering.Ordering`.
    """

    rows: GaussianRows

    def __init__(self, rows: GaussianRows, orders: Ints, sets: Ints) -> None:
        super().__init__(rows, orders, sets)
        torch = require_torch("draws on a device")
        at, place = rows.at, rows.at.place
        factors = at.factors(orders)
        diagonal = torch.diagonal(factors, dim1=1, dim2=2)
        own = rows.centered[self._sets].transpose(1, 2)
        centered = torch.take_along_dim(own, self._orders[:, :, None], dim=1)
        if at.is_regular:
            z = torch.linalg.solve_triangular(factors, centered, upper=False)
        else:
            # No variance is left of a feature that the features before it determine.
            follows = diagonal == 0
            solvable = factors + torch.diag_embed(follows.to(factors.dtype))
            z = torch.linalg.solve_triangular(solvable, centered, upper=False)
            z = torch.where(follows[:, :, None], 0.0, z)
        # In the order of the data, as the scores are.
        position = self._position
        n_rows = z.shape[2]
        spread = position[:, :, None]
        whitened = torch.gather(z, 1, spread.expand(-1, -1, n_rows)).transpose(1, 2)
        numbers = torch.arange(len(orders), device=position.device)[:, None, None]
        weights = factors[numbers, spread, position[:, None, :]].transpose(1, 2)
        self._whitened = place.round(whitened.contiguous())
        self._weights = place.round(weights.contiguous())

    def _begin(self, which: Any, lengths: Any, is_known: Any) -> Callable[[], Any]:  # noqa: ANN401, ARG002
        return partial(self._draw, which, is_known)

    def _draw(self, which: Any, is_known: Any) -> Any:  # noqa: ANN401
        torch = require_torch("draws on a device")
        rows, place = self.rows, self.rows.at.place
        n_rows, n_draws, n_features = rows.shape
        known = is_known.to(place.device)[:, None, None, :]
        which = which.to(place.device)
        scores = self._of_sets(rows.scores, which)
        noise = torch.where(known, self._whitened[which][:, :, None, :], scores)
        flat = noise.view(len(which), n_rows * n_draws, n_features)
        draws = rows.at.finish(torch.matmul(flat, self._weights[which]).view(noise.shape))
        shown = self._of_sets(rows.shown, which)[:, :, None, :]
        return torch.where(known, shown, draws).to(place.dtype)


def _least_left(correlation: Floats) -> float:
    """Return the least variance of a standardized feature given all others; 0 if unclear."""
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(correlation))
    except np.linalg.LinAlgError:
        return 0.0
    return float(1.0 / np.square(inverse).sum(axis=0).max())


def _with_most_first(correlation: Floats, known: Mask) -> Ints:
    """Return an ordering that begins with the known features, most variance left first."""
    rest = correlation.copy()
    left, first = known.copy(), []
    while left.any():
        at = int(np.argmax(np.where(left, rest.diagonal(), -np.inf)))
        pivot = rest[at, at]
        if not pivot > TOLERANCE:
            break
        rest -= np.outer(rest[at], rest[at]) / pivot
        first.append(at)
        left[at] = False
    return np.concatenate([np.array(first, np.intp), np.flatnonzero(left), np.flatnonzero(~known)])
