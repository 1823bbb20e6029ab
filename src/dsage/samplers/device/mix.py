"""Draws of a mixture of Gaussians on a device; see :mod:`dsage.samplers.mix.paths`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
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
_CELLS = 2**24  # numbers of an array
_LEAST_BLOCK, _BLOCK = 16, 512  # cells of a block that are multiplied together


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
        # Straight lines are part of the factors and of the means.
        is_straight = all(len(knots) == 2 for knots in margins.knots)
        slopes, starts = _pieces(margins)
        slope, start = (slopes[:, 0], starts[:, 0]) if is_straight else (1.0, 0.0)
        self.curves = None if is_straight else _Curves(margins, place)
        self.slopes = place.send(np.broadcast_to(slope, components.means.shape[1]))
        self.centers = place.round(place.send(components.means * slope + start))
        self.n_components, self.n_numbers = map(int, components.means.shape)

    def are_near(self, scores: Any) -> bool:  # noqa: ANN401
        """Return whether rows (n_rows, n_numbers) are within `_FAR` of all components.

        Their distance in standard deviations is the length of z, in any ordering of the numbers, so
        that this also bounds each element of z.
        """
        torch = require_torch("draws on a device")
        factors = torch.linalg.cholesky_ex(self.covariances).L
        n_at_once = max(1, _CELLS // (self.n_components * self.n_numbers))
        farthest = scores.new_zeros(())
        for rows in scores.split(n_at_once):
            rest = (rows - self.means[:, None]).transpose(1, 2)
            z = torch.linalg.solve_triangular(factors, rest, upper=False)
            farthest = torch.maximum(farthest, z.square().sum(dim=1).amax())
        return bool(farthest < (0.99 * _FAR) ** 2)

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
        self._are_near = sampler.are_near(self._scores)

    def _pick(self, at: Any, noise: Any) -> MixRows:  # noqa: ANN401
        shown = self.shown[at.to(self.shown.device)]
        return MixRows(self.at, shown, self._scores[at], noise, are_near=self._are_near)


class MixRows(DeviceRows):
    """Rows, their noise and the normal scores of it."""

    at: DeviceMix

    def __init__(
        self,
        sampler: DeviceMix,
        shown: Any,  # noqa: ANN401
        known: Any,  # noqa: ANN401
        noise: Any,  # noqa: ANN401
        *,
        are_near: bool,
    ) -> None:
        super().__init__(sampler, tuple(noise.shape))
        self.shown, self.known, self.are_near = shown, known, are_near
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
        n_cells, n_copies = n_rows * n_draws, 5 if self.at.curves is None else 7
        of_cells = (n_copies * size * n_features + 64) * n_cells
        return of_cells + 8 * n_rows * 5 * self.at.n_components

    def _along(self, orders: Ints, sets: Ints) -> MixPaths:
        return MixPaths(self, orders, sets)


class MixPaths(DevicePaths):
    """All prefixes of several orderings, from one factor of each component for each of them.

    The probabilities of the components are cumulated along the numbers, and read off for each
    prefix. Draws are sorted by component, and multiplied in blocks with the factor of their
    component.
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
        z = _whiten(factors, rest, are_near=rows.are_near)
        diagonals = torch.diagonal(factors, dim1=2, dim2=3)
        steps = -0.5 * z.square() - diagonals.log()[:, :, :, None]
        self._logs = torch.nn.functional.pad(steps.cumsum(dim=2), (0, 0, 1, 0))
        self._logs += at.log_weights[:, None, None]
        ones = torch.ones_like(at.log_weights).expand(at.n_components, -1)
        self._cumulating = torch.triu(ones)
        # In the order of the data, as the scores are, and on the grid, as they are.
        z = z.div_(GRID).round_().mul_(GRID)
        across = position[:, None, :, None]
        sorted_z = place.round(torch.gather(z, 2, across.expand(*z.shape)))
        self._z = sorted_z.transpose(2, 3).contiguous()
        numbers = torch.arange(len(orders), device=order.device)[:, None, None]
        weights = factors.transpose(1, 3)[numbers, position[:, :, None], position[:, None, :]]
        weights = weights * at.slopes[:, None]
        # (n_orderings, n_in, n_out, n_components) before.
        self._weights = place.round(weights.movedim(3, 1).contiguous())

    def _begin(self, which: Any, lengths: Any, is_known: Any) -> Callable[[], Any]:  # noqa: ANN401
        n_components = self.rows.at.n_components
        if n_components == 1:
            left = self._of_sets(self.rows.choosing, which)
            return partial(self._draw, which, is_known, left, None)
        chosen, left = self._choose(which, lengths)
        groups = (which[:, None, None] * n_components + chosen).to(self.rows.at.place.device)
        blocks = _Blocks(groups, len(self.orders) * n_components)
        return partial(self._draw, which, is_known, left, blocks)

    def _draw(self, which: Any, is_known: Any, left: Any, groups: _Blocks | None) -> Any:  # noqa: ANN401
        torch = require_torch("draws on a device")
        rows, at, place = self.rows, self.rows.at, self.rows.at.place
        which, known = which.to(place.device), is_known.to(place.device)[:, None, None, :]
        noise = torch.where(known, self._known(which, groups), self._of_sets(rows.scores, which))
        # The noise of the first column has chosen the component; its remainder draws the column.
        rest = place.round(to_scores(left.clamp(_SMALLEST, 1.0 - _SMALLEST)))
        noise[..., 0] = torch.where(known[..., 0], noise[..., 0], rest)
        if groups is None:
            flat = noise.view(len(which), math.prod(rows.shape[:2]), at.n_numbers)
            values = torch.matmul(flat, self._weights[which, 0]).add_(at.centers).view(noise.shape)
        else:
            values = self._multiply(noise, groups)
        if at.curves is not None:
            values = at.curves(values)
        shown = self._of_sets(rows.shown, which)[:, :, None, :]
        return torch.where(known, shown, values).to(place.dtype)

    def _known(self, which: Any, groups: _Blocks | None) -> Any:  # noqa: ANN401
        """Return z of the rows, given the components of their draws; (n_prefixes, n_rows, ...)."""
        if groups is None:
            return self._z[which].transpose(1, 2)
        torch = require_torch("draws on a device")
        n_rows = self._z.shape[2]
        each = torch.arange(n_rows, device=self._z.device)[:, None]
        return self._z.view(-1, self._z.shape[3])[groups.numbers * n_rows + each]

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
        return chosen, left

    def _multiply(self, scores: Any, groups: _Blocks) -> Any:  # noqa: ANN401
        """Return the products of scores (..., n_numbers) with the factors of their groups.

        The means of the groups are added.
        """
        torch = require_torch("draws on a device")
        centers, n_numbers = self.rows.at.centers, scores.shape[-1]
        weights = self._weights.view(-1, n_numbers, n_numbers)[groups.of_block]
        center = centers[groups.of_block % len(centers)][:, None]
        gathered = scores.view(-1, n_numbers).index_select(0, groups.cells)
        blocks = gathered.view(-1, groups.size, n_numbers)
        products = torch.baddbmm(center, blocks, weights).view(-1, n_numbers)
        return products.index_select(0, groups.places).view(scores.shape)


class _Blocks:
    """Cells in blocks of the same size, each of cells of one group, so that nothing waits.

    There are as many blocks as there may be at most. Those that are not full repeat the first cell.

    Parameters
    ----------
    numbers : int tensor
        The groups of cells.
    n_groups : int
        How many groups there may be.

    Attributes
    ----------
    size : int
        How many cells a block has.
    of_block : int tensor of shape (n_blocks,)
        The group of each block.
    cells : int tensor of shape (n_blocks * size,)
        The cells of the blocks, one block after the other.
    places : int tensor of shape (n_cells,)
        Where each cell is in the blocks.
    """

    def __init__(self, numbers: Any, n_groups: int) -> None:  # noqa: ANN401
        torch = require_torch("draws on a device")
        self.numbers = numbers
        n_cells = numbers.numel()
        # At most about half of what is multiplied is not needed.
        self.size = int(np.clip(n_cells // n_groups, _LEAST_BLOCK, _BLOCK))
        # Short numbers are sorted in fewer passes.
        short = torch.uint8 if n_groups <= 2**8 else torch.int32
        ordered, order = torch.sort(numbers.view(-1).to(short))
        every = torch.arange(n_groups, device=numbers.device)
        ends = torch.searchsorted(ordered, every.to(short), right=True)
        starts = torch.nn.functional.pad(ends[:-1], (1, 0))
        n_blocks = (ends - starts + (self.size - 1)).div_(self.size, rounding_mode="floor")
        ends_of_blocks = n_blocks.cumsum(0)
        block = torch.arange(n_cells // self.size + n_groups, device=numbers.device)
        of_block = torch.searchsorted(ends_of_blocks, block, right=True)
        self.of_block = of_block.clamp_(max=n_groups - 1)
        shifts = (ends_of_blocks - n_blocks) * self.size - starts
        places = shifts.index_select(0, ordered.int())
        places += torch.arange(n_cells, device=numbers.device)
        self.cells = order.new_zeros(len(block) * self.size).scatter_(0, places, order)
        self.places = torch.empty_like(order).scatter_(0, order, places)


class _Curves:
    """Piecewise linear maps of numbers from the scale of the mixture; see :class:`Margins`."""

    def __init__(self, margins: Margins, place: Place) -> None:
        slopes, starts = _pieces(margins)
        # The first and the last piece extend beyond the knots.
        inner = np.full((len(slopes), slopes.shape[1] - 1), np.inf)
        for line, scores in zip(inner, margins.scores, strict=True):
            line[: len(scores) - 2] = scores[1:-1]
        self._inner = place.round(place.send(inner))
        self._lines = place.round(place.send(np.stack([slopes, starts], axis=2)))

    def __call__(self, scores: Any) -> Any:  # noqa: ANN401
        """Return values of scores (..., n_numbers)."""
        torch = require_torch("draws on a device")
        n_numbers, n_pieces, _ = self._lines.shape
        columns = scores.view(-1, n_numbers).T.contiguous()
        at = torch.searchsorted(self._inner, columns, out_int32=True)
        at += n_pieces * torch.arange(n_numbers, device=at.device, dtype=at.dtype)[:, None]
        lines = self._lines.view(-1, 2).index_select(0, at.view(-1)).view(*at.shape, 2)
        values = torch.addcmul(lines[..., 1], columns, lines[..., 0], out=columns)
        return values.T.reshape(scores.shape)


def _pieces(margins: Margins) -> tuple[Floats, Floats]:
    """Return slopes of the pieces of maps from scores to values, and their values at zero.

    Both have shape (n_numbers, most pieces of a number).
    """
    shape = len(margins.knots), max(len(knots) for knots in margins.knots) - 1
    slopes, starts = np.zeros(shape), np.zeros(shape)
    for at, (knots, scores) in enumerate(zip(margins.knots, margins.scores, strict=True)):
        found = np.diff(knots) / np.diff(scores)
        slopes[at, : len(found)] = found
        starts[at, : len(found)] = knots[:-1] - found * scores[:-1]
    return slopes, starts


def _whiten(factors: Any, rest: Any, *, are_near: bool) -> Any:  # noqa: ANN401
    """Return z of rows, (..., n_numbers, n_rows), number after number, as far as they may be.

    `rest`, which is changed, are the rows without the means, in the same shape. Rows that are known
    to be near need not be waited for.
    """
    torch = require_torch("draws on a device")
    z = torch.linalg.solve_triangular(factors, rest, upper=False)
    if are_near or not bool((z.abs() > _FAR).any()):
        return z
    for at in range(rest.shape[2]):
        now = torch.div(rest[:, :, at], factors[:, :, at, at, None], out=z[:, :, at])
        now.clamp_(-_FAR, _FAR)
        after = factors[:, :, at + 1 :, at, None]
        rest[:, :, at + 1 :].addcmul_(after, now[:, :, None], value=-1.0)
    return z
