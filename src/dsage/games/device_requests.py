"""Several requests to a game as one to a device: small ones would keep it waiting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dsage.data.portions import as_slice
from dsage.games.base import Along, Coalitions, Mask, Orders, Request, Rows, prefixes
from dsage.games.chunk import Chunk
from dsage.games.device import Asked, DeviceMeans, Prefixes

Place = tuple[int | slice | Rows, ...]
"""Where an answer has a chunk: an ordering and its prefixes, or coalitions."""
# Sets of rows are filled up to the size of the largest, if they have at least this share of it.
_LEAST_SHARE = 0.75


def can_merge(requests: Sequence[Request], n_features: int) -> bool:
    """Return whether requests have the same noise, about as many rows, and plain coalitions."""
    if any(isinstance(one, Coalitions) and one.known.shape[1] != n_features for one in requests):
        return False
    sizes = [len(request.rows) for request in requests]
    is_same = len({request.epoch for request in requests}) == 1
    return len(requests) > 1 and is_same and min(sizes) >= max(1, _LEAST_SHARE * max(sizes))


class Merged:
    """Several requests as one.

    Each has its own set of rows, padded with its first row to the size of the largest.

    Parameters
    ----------
    device : DeviceMeans
        The device that evaluates them.
    requests : sequence of requests
        See `can_merge`.

    Attributes
    ----------
    asked : Asked
        The request to the device.
    """

    def __init__(self, device: DeviceMeans, requests: Sequence[Request]) -> None:
        self._requests = requests
        parts = [_read(device, request) for request in requests]
        counts = [len(orders) for orders, _, _ in parts]
        self._firsts = np.concatenate([[0], np.cumsum(counts)])[:-1]
        which = [part + first for (_, part, _), first in zip(parts, self._firsts, strict=True)]
        n_rows = max(len(request.rows) for request in requests)
        self.asked = Asked(
            np.concatenate([orders for orders, _, _ in parts]),
            Prefixes(np.concatenate(which), np.concatenate([lengths for _, _, lengths in parts])),
            np.stack([_fill_up(request.rows, n_rows) for request in requests]),
            np.repeat(np.arange(len(requests)), counts),
        )

    def find(self, ordering: int, chunk: Chunk) -> tuple[int, Place, Chunk]:
        """Return the request of an ordering, where its answer has a chunk, and its own part of it.

        The rows that a set was filled up with are left out.
        """
        number = int(self.asked.sets[ordering])
        request, own = self._requests[number], ordering - int(self._firsts[number])
        stop = min(chunk.here.stop, len(request.rows))
        here = slice(chunk.here.start, max(chunk.here.start, stop))
        part = chunk._replace(here=here, means=chunk.means[:, : here.stop - here.start])
        is_path = isinstance(request, Along)
        return number, (own, as_slice(chunk.at)) if is_path else (np.array([own]),), part

    def known(self, ordering: int, lengths: Rows) -> Mask:
        """Return the features of prefixes of an ordering, (n_prefixes, n_features)."""
        known: Mask = prefixes(self.asked.orders[ordering : ordering + 1])[0, lengths]
        return known


def _read(device: DeviceMeans, request: Request) -> tuple[Orders, Rows, Rows]:
    """Return the orderings of a request, and the numbers and lengths of its proper prefixes."""
    if isinstance(request, Coalitions):
        left = np.flatnonzero(~request.known.all(axis=1))
        return device.orders_of(request.known), left, request.known[left].sum(axis=1)
    which, lengths = np.nonzero(request.needed[:, :-1])
    return request.orders, which, lengths


def _fill_up(rows: Rows, n_rows: int) -> Rows:
    return np.concatenate([rows, np.repeat(rows[:1], n_rows - len(rows))])
