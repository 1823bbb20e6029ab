"""Draws on a device: a sampler there, rows there, and orderings of their features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from dsage._check import check_known, check_shape, refusal
from dsage.data.layout import Layout
from dsage.models.torch_tools import require_torch
from dsage.samplers.checks import Floats, Ints, Mask
from dsage.samplers.device.place import Place


class DeviceSampler(ABC):
    """A fitted sampler on a device (made by :meth:`Sampler.on_device`).

    Draws equal the sampler's own, from the same noise, up to rounding. Rows are sent once, with
    `load`; orderings and noise are all that is sent for more draws. Nothing waits for the device.

    Parameters
    ----------
    layout : Layout
        The columns of the rows.
    place : Place
        The device, and the precision of the draws.

    Examples
    --------
    Draws for the prefixes of lengths 0 and 2 of an ordering, and for coalitions::

        table = sampler.on_device("cuda", torch.float32).load(X)
        rows = table.pick(np.arange(len(X)), noise)  # one set of rows
        rows.along(orders).draw([0, 0], [0, 2])  # tensor of shape (2, n_rows, n_draws, n_features)
        rows.draw(known)  # tensor of shape (n_coalitions, n_rows, n_draws, n_features)
    """

    def __init__(self, layout: Layout, place: Place) -> None:
        self.layout, self.place = layout, place

    @abstractmethod
    def load(self, X: Any) -> DeviceTable:  # noqa: ANN401
        """Send rows (n_rows, n_features) to the device."""

    def along_of(self, known: Mask) -> Ints:
        """Return an ordering for each coalition (n_coalitions, n_features) that begins with it."""
        return np.argsort(~known, axis=1, kind="stable")


class DeviceTable(ABC):
    """Rows on a device (made by :meth:`DeviceSampler.load`)."""

    def __init__(self, sampler: DeviceSampler, matrix: Floats) -> None:
        self.at, self.n_rows = sampler, len(matrix)
        self.shown = sampler.place.round(sampler.place.send(matrix))

    def pick(self, rows: Ints, noise: Any) -> DeviceRows:  # noqa: ANN401
        """Return some of the rows, by number, together with their noise.

        The rows are one set, (n_rows,), or several sets of as many, (n_sets, n_rows). The noise is
        uniforms (n_sets * n_rows, n_draws, n_features) in (0, 1): a tensor of
        :func:`~dsage.samplers.device.send_noise`, or an array.
        """
        place, n_features = self.at.place, self.shown.shape[1]
        if isinstance(noise, np.ndarray):
            noise = place.send(noise)
        shape = (rows.size, "n_draws", n_features)
        check_shape(noise, shape, "noise", "Pass uniforms for each row, draw and feature")
        sets = np.atleast_2d(rows)
        return self._pick(place.send(sets), noise.reshape(*sets.shape, *noise.shape[1:]))

    @abstractmethod
    def _pick(self, at: Any, noise: Any) -> DeviceRows:  # noqa: ANN401
        """Return rows by number, a tensor, with their noise."""


class DeviceRows(ABC):
    """Rows and noise on a device, from which all draws are made (see :meth:`DeviceTable.pick`).

    `shape` is (n_rows, n_draws, n_features), of each of the sets of rows.
    """

    def __init__(self, sampler: DeviceSampler, shape: tuple[int, int, int, int]) -> None:
        self.at = sampler
        self.n_sets, self.shape = shape[0], shape[1:]

    @property
    @abstractmethod
    def bytes_per_ordering(self) -> int:
        """Memory of what the prefixes of an ordering have in common."""

    @property
    @abstractmethod
    def bytes_per_prefix(self) -> int:
        """Memory that the draws for a prefix take while they are made."""

    @abstractmethod
    def _along(self, orders: Ints, sets: Ints) -> DevicePaths:
        """Return an object that draws along checked orderings (n_orderings, n_features)."""

    def along(self, orders: Any, sets: Ints | None = None) -> DevicePaths:  # noqa: ANN401
        """Return an object that draws for the prefixes of orderings (n_orderings, n_features).

        `sets`, (n_orderings,), are the sets of rows of the orderings, by default the first.
        """
        checked = np.asarray(orders)
        n_features = self.shape[2]
        is_whole = checked.ndim == 2 and checked.dtype.kind in "iu"
        if not is_whole or (np.sort(checked, axis=1) != np.arange(n_features)).any():
            condition = f"permutations of 0 .. {n_features - 1}, one a line"
            advice = "Pass the position of each feature once"
            raise refusal("orders", condition, checked.tolist(), advice)
        chosen = np.zeros(len(checked), np.intp) if sets is None else sets
        return self._along(checked.astype(np.intp), chosen)

    def draw(self, known: Mask) -> Any:  # noqa: ANN401
        """Draw as :meth:`Sampler.draw`: (n_coalitions, n_rows, n_draws, n_features)."""
        known = check_known(known, self.at.layout.names)
        paths = self.along(self.at.along_of(known))
        return paths.draw(np.arange(len(known)), known.sum(axis=1))


class DevicePaths(ABC):
    """All prefixes of several orderings, drawn on a device (made by :meth:`DeviceRows.along`)."""

    def __init__(self, rows: DeviceRows, orders: Ints, sets: Ints) -> None:
        torch = require_torch("draws on a device")
        self.rows, self.orders = rows, orders
        place = rows.at.place
        self._sets = place.send(sets)
        self._orders = place.send(orders)
        # Where each feature is in an ordering.
        self._position = torch.argsort(self._orders, dim=1)

    def draw(self, which: Any, lengths: Any) -> Any:  # noqa: ANN401
        """Draw given prefixes, by the number of the ordering and the length of the prefix.

        Both have shape (n_prefixes,); the result is (n_prefixes, n_rows, n_draws, n_features).
        """
        return self.begin(which, lengths)()

    def begin(self, which: Any, lengths: Any) -> Callable[[], Any]:  # noqa: ANN401
        """Return a function that finishes `draw`.

        If it is called after other work was submitted, it need not wait for the device.
        """
        numbers, sizes = np.asarray(which, np.intp), np.asarray(lengths, np.intp)
        n_features = self.orders.shape[1]
        if sizes.size and not 0 <= sizes.min() <= sizes.max() <= n_features:
            odd = int(sizes.min()) if sizes.min() < 0 else int(sizes.max())
            advice = "There are no more features"
            raise refusal("lengths", f"from 0 to {n_features}", odd, advice)
        place = self.rows.at.place
        if not sizes.size:
            torch = require_torch("draws on a device")
            empty = torch.empty((0, *self.rows.shape), dtype=place.dtype, device=place.device)
            return lambda: empty
        at, sent = place.send(numbers), place.send(sizes)
        return self._begin(at, sent, self._position[at] < sent[:, None])

    def _of_sets(self, tensor: Any, which: Any) -> Any:  # noqa: ANN401
        """Return the values of sets of rows, (n_sets, ...), by prefix; one set is not copied."""
        return tensor if self.rows.n_sets == 1 else tensor[self._sets[which].to(tensor.device)]

    @abstractmethod
    def _begin(self, which: Any, lengths: Any, is_known: Any) -> Callable[[], Any]:  # noqa: ANN401
        """Begin to draw prefixes, whose known features are marked, (n_prefixes, n_features)."""
