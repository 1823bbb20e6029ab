"""Draws of a mixture of Gaussians on a device; see :mod:`dsage.samplers.mix.paths`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dsage.data.layout import Layout
from dsage.data.missing import check_finite
from dsage.models.torch_tools import require_torch
from dsage.samplers.checks import Floats, Ints
from dsage.samplers.conditioning import GRID
from dsage.samplers.device.paths import DevicePaths, DeviceRows, DeviceSampler, DeviceTable
from dsage.samplers.device.place import Place, to_scores

if TYPE_CHECKING:
    from dsage.samplers.mix.em import Components
    from dsage.samplers.mix.margins import Margins

_FAR = 128.0  # standard deviations: as on the CPU, values beyond count as so far
_SMALLEST = 2.0**-54  # uniforms are kept off 0 and 1


class DeviceMix(DeviceSampler):
    """A fitted :class:`~dsage.samplers.Mix` of plain numbers on a device.

    Probabilities of the components, factors and what rows are in terms of them are computed in
    double precision.

    Parameters
    ----------
    components, margins
        The mixture, and the scales of the numbers: all columns.
    layout : Layout
        The columns.
    place : Place
        The device, and the precision of the draws.
    """

    def __init__(
        self,
        components: Components,
        margins: Margins,
        layout: Layout,
        place: Place,
    ) -> None:
        super().__init__(layout, place)
        self._margins = margins
        self.log_weights = place.send(np.log(components.weights))
        self.means = place.send(components.means)
        self.covariances = place.send(components.covariances)
        self.to_values = _Lines(margins, place)
        self.n_components, self.n_numbers = map(int, components.means.shape)

    def load(self, X: Any) -> MixTable:  # noqa: ANN401
        """Send rows (n_rows, n_features) to the device."""
        matrix = self.layout.encode(X)
        check_finite(matrix, self.layout.names)
        return MixTable(self, matrix, self._margins.to_scores(matrix))


class MixTable(DeviceTable):
    """Rows on a device, also on the scale of the mixture."""

    at: DeviceMix

    def __init__(self, sampler: DeviceMix, matrix: Floats, scores: Floats) -> None:
        super().__init__(sampler, matrix)
        self._scores = sampler.place.send(scores)

    def _pick(self, at: Any, noise: Any) -> MixRows:  # noqa: ANN401
        return MixRows(self.at, self.shown[at.to(self.shown.device)], self._scores[at], noise)


class MixRows(DeviceRows):
    """Rows, their noise and the normal scores of it."""

    at: DeviceMix

    def __init__(self, sampler: DeviceMix, shown: Any, known: Any, noise: Any) -> None:  # noqa: ANN401
        super().__init__(sampler, tuple(noise.shape))
        self.shown, self.known = shown, known
        self.choosing = noise[..., 0].contiguous()
        self.scores = sampler.place.round(to_scores(noise))

    @property
    def bytes_per_ordering(self) -> int:
        """Memory of the factors of an ordering, and of rows in terms of them."""
        at = self.at
        return 8 * 4 * at.n_components * at.n_numbers * (self.shape[0] + at.n_numbers)

    @property
    def bytes_per_prefix(self) -> int:
        """Memory of the draws for a prefix, and of their inputs."""
        n_rows, n_draws, n_features = self.shape
        size = self.at.place.n_bytes
        n_cells = n_rows * n_draws
        return (
            7 * size * n_cells * n_features + 8 * n_rows * 5 * self.at.n_components + 64 * n_cells
        )

    def _along(self, orders: Ints, sets: Ints) -> MixPaths:
        return MixPaths(self, orders, sets)


class MixPaths(DevicePaths):
    """All prefixes of several orderings, from one factor of each component for each of them.

    The probabilities of the components are cumulated along the numbers, and read off for each
    prefix. Draws are sorted by component, and each component is one product of matrices.
    """

    rows: MixRows

    def __init__(self, rows: MixRows, orders: Ints, sets: Ints) -> None:
        super().__init__(rows, orders, sets)
        torch = require_torch("draws on a device")
        at, place = rows.at, rows.at.place
        order, position = self._orders, self._position
        permuted = at.covariances[:, order[:, :, None], order[:, None, :]].transpose(0, 1)
        # (n_orderings, n_components, n_numbers, n_numbers); the result is not checked, which would
        # have to wait for it.
        factors = torch.linalg.cholesky_ex(permuted).L
        own = rows.known[self._sets].transpose(1, 2)
        known = torch.take_along_dim(own, order[:, :, None], dim=1)
        rest = known[:, None] - at.means[:, order].transpose(0, 1)[:, :, :, None]
        z = _whiten(factors, rest)
        diagonals = torch.diagonal(factors, dim1=2, dim2=3)
        steps = -0.5 * z.square() - diagonals.log()[:, :, :, None]
        self._logs = torch.nn.functional.pad(steps.cumsum(dim=2), (0, 0, 1, 0))
        self._logs += at.log_weights[:, None, None]
        ones = torch.ones_like(at.log_weights).expand(at.n_components, -1)
        self._cumulating = torch.triu(ones)
        # In the order of the data, as the scores are, and on the grid, as they are.
        z = z.div_(GRID).round_().mul_(GRID)
        across = position[:, None, :, None]
        sorted_z = torch.gather(z, 2, across.expand(*z.shape)).transpose(2, 3)
        self._z = place.round(sorted_z.contiguous())
        numbers = torch.arange(len(orders), device=order.device)[:, None, None]
        weights = factors.transpose(1, 3)[numbers, position[:, :, None], position[:, None, :]]
        # (n_orderings, n_in, n_out, n_components) before.
        self._weights = place.round(weights.movedim(3, 1).contiguous())

    def _draw(self, which: Any, lengths: Any, is_known: Any) -> Any:  # noqa: ANN401
        torch = require_torch("draws on a device")
        rows, at, place = self.rows, self.rows.at, self.rows.at.place
        n_rows = rows.shape[0]
        chosen, left = self._choose(which, lengths)
        known = is_known.to(place.device)[:, None, None, :]
        groups = (which[:, None, None] * at.n_components + chosen).to(place.device)
        each = torch.arange(n_rows, device=place.device)[:, None]
        z = self._z.view(-1, at.n_numbers)[groups * n_rows + each]
        # The noise of the first column has chosen the component; its remainder draws the column.
        scores = self._of_sets(rows.scores, which).expand(len(which), -1, -1, -1).clone()
        scores[..., 0] = place.round(to_scores(left))
        drawn = self._multiply(torch.where(known, z, scores), groups)
        drawn += place.round(at.means)[chosen.to(place.device)]
        values = at.to_values(drawn)
        shown = self._of_sets(rows.shown, which)[:, :, None, :]
        return torch.where(known, shown, values).to(place.dtype)

    def _choose(self, which: Any, lengths: Any) -> tuple[Any, Any]:  # noqa: ANN401
        """Return components (n_prefixes, n_rows, n_draws), and the remainder of their noise."""
        torch = require_torch("draws on a device")
        logs = self._logs[which, :, lengths].transpose(1, 2)
        shares = (logs - logs.amax(dim=2, keepdim=True)).exp_()
        # Cumulated sums, by a product of matrices.
        bounds = shares @ self._cumulating
        u = self._of_sets(self.rows.choosing, which) * bounds[:, :, -1:]
        # The last bound is not compared: rounding may leave it below.
        chosen = torch.searchsorted(bounds[:, :, :-1].contiguous(), u)
        low = torch.gather(bounds, 2, (chosen - 1).clamp_(min=0))
        low = torch.where(chosen > 0, low, 0.0)
        width = torch.gather(shares, 2, chosen)
        left = (u - low) / torch.where(width > 0, width, 1.0)
        return chosen, left.clamp_(_SMALLEST, 1.0 - _SMALLEST)

    def _multiply(self, scores: Any, groups: Any) -> Any:  # noqa: ANN401
        """Return the products of scores (..., n_numbers) with the factors of their groups.

        The sizes of the groups are waited for once, whatever the number of prefixes is.
        """
        torch = require_torch("draws on a device")
        flat, n_numbers = groups.reshape(-1), scores.shape[-1]
        weights = self._weights.view(-1, n_numbers, n_numbers)
        ordered, order = torch.sort(flat)
        ends = torch.searchsorted(
            ordered, torch.arange(len(weights), device=flat.device), right=True
        ).tolist()
        gathered = scores.reshape(-1, n_numbers)[order]
        products = torch.empty_like(gathered)
        start = 0
        for weight, end in zip(weights, ends, strict=True):
            if end > start:
                torch.matmul(gathered[start:end], weight, out=products[start:end])
            start = end
        gathered[order] = products
        return gathered.view(scores.shape)


class _Lines:
    """Piecewise linear maps of numbers from the scale of the mixture; see :class:`Margins`."""

    def __init__(self, margins: Margins, place: Place) -> None:
        self._place = place
        n_knots = max((len(knots) for knots in margins.knots), default=2)
        self._is_line = n_knots == 2
        slopes = [
            np.diff(knots) / np.diff(scores)
            for knots, scores in zip(margins.knots, margins.scores, strict=True)
        ]

        def pad(parts: Any, size: int, fill: float | None) -> Any:  # noqa: ANN401
            """Return arrays side by side, (n_numbers, size), on the device."""
            out = np.zeros((len(margins.knots), size))
            for line, part in zip(out, parts, strict=True):
                line[:] = part[-1] if fill is None else fill
                line[: min(len(part), size)] = part[:size]
            return place.round(place.send(out))

        # The first and the last piece extend beyond the knots.
        inner = [scores[1:-1] for scores in margins.scores]
        self._inner = pad(inner, max(n_knots - 2, 1), np.inf)
        self._starts = pad(margins.scores, n_knots - 1, None)
        self._values = pad(margins.knots, n_knots - 1, None)
        self._slopes = pad(slopes, n_knots - 1, None)

    def __call__(self, scores: Any) -> Any:  # noqa: ANN401
        """Return values of scores (..., n_numbers), maybe in place."""
        torch = require_torch("draws on a device")
        if self._is_line:
            starts, slopes, values = (x[:, 0] for x in (self._starts, self._slopes, self._values))
            return scores.sub_(starts).mul_(slopes).add_(values)
        shape, n_numbers = scores.shape, scores.shape[-1]
        columns = scores.reshape(-1, n_numbers).T.contiguous()
        piece = torch.searchsorted(self._inner, columns)
        columns.sub_(torch.gather(self._starts, 1, piece))
        columns.mul_(torch.gather(self._slopes, 1, piece))
        columns.add_(torch.gather(self._values, 1, piece))
        return columns.T.reshape(shape)


def _whiten(factors: Any, rest: Any) -> Any:  # noqa: ANN401
    """Return z of rows, (..., n_numbers, n_rows), number after number, as far as they may be.

    `rest`, which is changed, are the rows without the means, in the same shape.
    """
    torch = require_torch("draws on a device")
    z = torch.linalg.solve_triangular(factors, rest, upper=False)
    if not bool((z.abs() > _FAR).any()):
        return z
    for at in range(rest.shape[2]):
        now = torch.div(rest[:, :, at], factors[:, :, at, at, None], out=z[:, :, at])
        now.clamp_(-_FAR, _FAR)
        after = factors[:, :, at + 1 :, at, None]
        rest[:, :, at + 1 :].addcmul_(after, now[:, :, None], value=-1.0)
    return z
