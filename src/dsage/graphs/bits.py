"""Pack coalitions into bit rows, one integer of any width per feature, and unpack them.

A Python integer is a bit vector of any width. Its ``&`` and ``|`` run over all digits in C with a
small overhead per call, so the same code serves one coalition and tens of thousands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Coalitions transposed at a time: a chunk of this size stays in the processor's cache.
_TRANSPOSED_AT_ONCE = 8192


def pack(known: npt.NDArray[np.bool_]) -> list[int]:
    """Return one bit row per column: bit i of row j is ``known[i, j]``."""
    n_rows, n_columns = known.shape
    packed = np.empty((n_columns, -(-n_rows // 8)), dtype=np.uint8)
    for start in range(0, n_rows, _TRANSPOSED_AT_ONCE):
        columns = np.ascontiguousarray(known[start : start + _TRANSPOSED_AT_ONCE].T)
        chunk = np.packbits(columns, axis=1, bitorder="little")
        packed[:, start // 8 : start // 8 + chunk.shape[1]] = chunk
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def unpack(rows: Sequence[int], n_rows: int) -> npt.NDArray[np.bool_]:
    """Return the boolean array (n_rows, len(rows)) whose column j is the bit row j."""
    n_bytes = -(-n_rows // 8)
    joined = b"".join(row.to_bytes(n_bytes, "little") for row in rows)
    packed = np.frombuffer(joined, dtype=np.uint8).reshape(len(rows), n_bytes)
    unpacked = np.empty((n_rows, len(rows)), dtype=np.bool_)
    for start in range(0, n_rows, _TRANSPOSED_AT_ONCE):
        stop = min(start + _TRANSPOSED_AT_ONCE, n_rows)
        chunk = np.ascontiguousarray(packed[:, start // 8 : -(-stop // 8)])
        bits = np.unpackbits(chunk, axis=1, count=stop - start, bitorder="little")
        unpacked[start:stop] = bits.T
    return unpacked


def distinct(known: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the first position of each distinct row, and which distinct row each row is."""
    packed = np.packbits(known, axis=1)
    keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return first, place
