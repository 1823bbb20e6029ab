"""The uniforms that samplers turn into draws: any part can be made at any time from its key."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from dsage._check import check_count, check_member
from dsage._random import Streams
from dsage.data.portions import as_slice
from dsage.samplers.recent import Recent
from dsage.samplers.sobol import load_table

Floats = npt.NDArray[np.float64]
Digits = npt.NDArray[np.uint64]
Parts = npt.NDArray[Any]
"""Uniforms, or the binary digits of some."""

Kind = Literal["sobol", "independent"]
KINDS = ("sobol", "independent")

SMALLEST = 2.0**-53
"""The step of uniforms, and the smallest of them."""

# Noise is made for this many rows at a time, which share a stream.
_CHUNK = 256
_KEPT_BYTES = 2**25
# Number of nets that are kept: each term of an estimate has its own epochs.
_KEPT_NETS = 4
# Number of binary digits of a uniform, and of those that distinguish the points of a net.
_DIGITS, _NET_DIGITS = 53, 30


class Noise:
    """Uniforms in (0, 1) for every row, draw and feature, in independent epochs.

    The draws of a row come in `n_replicates` independent sets of `n_draws` each, from which the
    error of their mean is estimated. The draws of a replicate are either independent, or a
    scrambled Sobol' net with a random digital shift per row, which flips binary digits and so keeps
    the strata of the net: they fill the cube evenly, and their mean has a smaller error. Powers of
    two are best for the net. Rows are independent of each other, and so are epochs.

    Examples
    --------
    Each feature of each row has one draw of a replicate in each quarter of the unit interval:

    >>> noise = Noise(Streams(0), 3, n_replicates=2, n_draws=4)
    >>> np.sort(noise(np.array([7]), 0)[0, :4, 1] * 4 // 1)
    array([0., 1., 2., 3.])
    """

    def __init__(
        self,
        streams: Streams,
        n_features: int,
        *,
        n_replicates: int = 2,
        n_draws: int = 8,
        kind: Kind = "sobol",
    ) -> None:
        self._streams = streams
        self.n_features = check_count(n_features, "n_features")
        self.n_replicates = check_count(n_replicates, "n_replicates")
        self.n_draws = check_count(n_draws, "n_draws")
        self.kind = check_member(kind, KINDS, "noise", "the kinds of noise")
        self._nets: Recent[Digits] = Recent(_KEPT_NETS)
        if kind == "sobol":
            # Before any work that a user might interrupt.
            load_table()
        n_numbers = self.n_replicates * (1 if kind == "sobol" else self.n_draws) * self.n_features
        self._n_kept = max(1, _KEPT_BYTES // (8 * _CHUNK * n_numbers))
        self._chunks: Recent[Floats | Digits] = Recent(self._n_kept)

    def other(self, streams: Streams, factor: int = 1) -> Noise:
        """Return independent noise of the same kind, with `factor` times as many draws."""
        n_draws, n_replicates = factor * self.n_draws, self.n_replicates
        kind: Kind = "sobol" if self.kind == "sobol" else "independent"
        given = {"n_replicates": n_replicates, "n_draws": n_draws}
        return Noise(streams, self.n_features, kind=kind, **given)

    def is_same(self, other: Noise) -> bool:
        """Return whether another one has the same uniforms."""
        return self.key == other.key

    @property
    def key(self) -> tuple[int, int, int, int, str]:
        """The parameters that determine the uniforms."""
        return self._streams.entropy, self.n_features, self.n_replicates, self.n_draws, self.kind

    def __call__(self, rows: npt.NDArray[np.intp], epoch: int) -> Floats:
        """Return the noise of rows, by number: (n_rows, n_replicates * n_draws, n_features)."""
        n_draws = self.n_replicates * self.n_draws
        noise = np.empty((len(rows), n_draws, self.n_features))
        net = self._net(epoch) if self.kind == "sobol" else None
        for at, part in self._parts(rows, epoch):
            uniforms = part if net is None else (net ^ part) * SMALLEST
            noise[at] = uniforms.reshape(len(at), n_draws, self.n_features)
        return np.maximum(noise, SMALLEST, out=noise)

    def prepare(self, rows: npt.NDArray[np.intp], epoch: int) -> None:
        """Make the noise of rows ahead, if it can be kept beside that of another epoch."""
        if self.kind == "sobol":
            self._net(epoch)
        numbers = np.unique(rows // _CHUNK).tolist()
        if 2 * len(numbers) <= self._n_kept:
            for number in numbers:
                self._chunks.get((epoch, number), partial(self._make_chunk, epoch, number))

    def parts(self, rows: npt.NDArray[np.intp], epoch: int) -> tuple[Parts, Digits | None]:
        """Return the components of the noise of rows.

        For ``"sobol"`` these are the binary digits to flip, (n_rows, n_replicates, 1, n_features),
        and the digits of the nets, (n_replicates, n_draws, n_features): the noise is `SMALLEST`
        times their exclusive or. Otherwise uniforms (n_rows, n_replicates, n_draws, n_features),
        and None. The noise is at least `SMALLEST`.
        """
        is_net = self.kind == "sobol"
        shape = (self.n_replicates, 1 if is_net else self.n_draws, self.n_features)
        found: Parts = np.empty((len(rows), *shape), np.uint64 if is_net else np.float64)
        for at, part in self._parts(rows, epoch):
            found[as_slice(at)] = part
        return found, self._net(epoch) if is_net else None

    def _parts(
        self, rows: npt.NDArray[np.intp], epoch: int
    ) -> Iterator[tuple[npt.NDArray[np.intp], Parts]]:
        """Yield places of rows, and what was made for them; see `_make_chunk`."""
        chunks = rows // _CHUNK
        for number in np.unique(chunks).tolist():
            at = np.flatnonzero(chunks == number)
            chunk = self._chunks.get((epoch, number), partial(self._make_chunk, epoch, number))
            yield at, chunk[rows[at] - number * _CHUNK]

    def _make_chunk(self, epoch: int, number: int) -> Floats | Digits:
        """Return the uniforms of a chunk of rows; for ``"sobol"`` the digits to flip."""
        generator = self._streams("noise", epoch, number)
        if self.kind == "sobol":
            shape = (_CHUNK, self.n_replicates, 1, self.n_features)
            return generator.integers(2**_DIGITS, size=shape, dtype=np.uint64)
        return generator.random((_CHUNK, self.n_replicates, self.n_draws, self.n_features))

    def _net(self, epoch: int) -> Digits:
        """Return the binary digits of the nets of an epoch, (n_replicates, n_draws, n_features)."""
        return self._nets.get(epoch, partial(self._make_net, epoch))

    def _make_net(self, epoch: int) -> Digits:
        # A copy may be the first to make a net in its process.
        load_table()
        exponent = (self.n_draws - 1).bit_length()
        rngs = [self._streams("net", epoch, number) for number in range(self.n_replicates)]
        sequences = [qmc.Sobol(self.n_features, bits=_NET_DIGITS, rng=rng) for rng in rngs]
        made = [sequence.random_base2(exponent)[: self.n_draws] for sequence in sequences]
        return (np.stack(made) * 2.0**_DIGITS).astype(np.uint64)
