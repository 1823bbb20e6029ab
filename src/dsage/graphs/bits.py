"""Pack coalitions into bit rows, one arbitrary-width integer a feature, and back.

A Python integer is a bit vector of any width: its ``&`` and ``|`` run over all digits in C, at one
small cost per call, so the same code serves one coalition and tens of thousands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Rows of booleans transposed at a time: a block of that many coalitions stays in the cache.
_TRANSPOSED_AT_ONCE = 8192


def pack(known: npt.NDArray[np.bool_]) -> list[int]:
    """Return one bit row per column: bit i of row j is ``known[i, j]``.

    Examples
    --------
    >>> [bin(row) for row in pack(np.array([[True, False], [True, True]]))]
    ['0b11', '0b10']
    """
    n_rows, n_columns = known.shape
    packed = np.empty((n_columns, -(-n_rows // 8)), dtype=np.uint8)
    for start in range(0, n_rows, _TRANSPOSED_AT_ONCE):
        columns = np.ascontiguousarray(known[start : start + _TRANSPOSED_AT_ONCE].T)
        block = np.packbits(columns, axis=1, bitorder="little")
        packed[:, start // 8 : start // 8 + block.shape[1]] = block
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def unpack(rows: Sequence[int], n_rows: int) -> npt.NDArray[np.bool_]:
    """Return the boolean array (n_rows, len(rows)) whose column j is the bit row j.

    Examples
    --------
    >>> unpack([0b11, 0b10], 2)
    array([[ True, False],
           [ True,  True]])
    """
    n_bytes = -(-n_rows // 8)
    joined = b"".join(row.to_bytes(n_bytes, "little") for row in rows)
    packed = np.frombuffer(joined, dtype=np.uint8).reshape(len(rows), n_bytes)
    unpacked = np.empty((n_rows, len(rows)), dtype=np.bool_)
    for start in range(0, n_rows, _TRANSPOSED_AT_ONCE):
        stop = min(start + _TRANSPOSED_AT_ONCE, n_rows)
        block = np.ascontiguousarray(packed[:, start // 8 : -(-stop // 8)])
        bits = np.unpackbits(block, axis=1, count=stop - start, bitorder="little")
        unpacked[start:stop] = bits.T
    return unpacked
