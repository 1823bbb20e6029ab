"""Read Universal Binary JSON, as XGBoost writes it; every length is checked before it is used."""

from __future__ import annotations

from typing import Any

import numpy as np

_NUMBERS: dict[str, np.dtype[Any]] = {
    "i": np.dtype(">i1"),
    "U": np.dtype(">u1"),
    "I": np.dtype(">i2"),
    "u": np.dtype(">u2"),
    "l": np.dtype(">i4"),
    "L": np.dtype(">i8"),
    "d": np.dtype(">f4"),
    "D": np.dtype(">f8"),
}
_WHOLE = "iUIulL"
_CONSTANTS = {"Z": None, "T": True, "F": False}
_MAX_DEPTH = 64


def read_ubjson(content: bytes) -> Any:  # noqa: ANN401
    r"""Return the value that some bytes encode; raise ValueError for invalid bytes.

    Examples
    --------
    >>> read_ubjson(b"{L" + bytes(7) + b"\x01aU\x05}")
    {'a': 5}
    """
    reader = _Reader(content)
    value = reader.value(reader.mark(), 0)
    if reader.at != len(content):
        raise ValueError("there are bytes after its end")
    return value


class _Reader:
    """A position in a sequence of bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    def take(self, n_bytes: int) -> bytes:
        if n_bytes < 0 or n_bytes > len(self._content) - self.at:
            raise ValueError("it ends too early, or has a wrong length")
        self.at += n_bytes
        return self._content[self.at - n_bytes : self.at]

    def mark(self) -> str:
        return self.take(1).decode("latin-1")

    def value(self, mark: str, depth: int) -> Any:  # noqa: ANN401
        if depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if mark == "{":
            return self._object(depth)
        if mark == "[":
            return self._array(depth)
        if mark == "S":
            return self.take(self._length()).decode()
        if mark == "C":
            return self.mark()
        if mark in _CONSTANTS:
            return _CONSTANTS[mark]
        if mark not in _NUMBERS:
            raise ValueError(f"it has an unknown mark {mark!r}")
        kind = _NUMBERS[mark]
        return np.frombuffer(self.take(kind.itemsize), kind)[0].item()

    def _length(self) -> int:
        mark = self.mark()
        if mark not in _WHOLE:
            raise ValueError("a length is not a whole number")
        return int(self.value(mark, 0))

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while (mark := self.mark()) != "}":
            if mark not in _WHOLE:
                raise ValueError("the length of a name is not a whole number")
            name = self.take(int(self.value(mark, 0))).decode()
            if name in found:
                raise ValueError(f"it has {name!r} twice")
            found[name] = self.value(self.mark(), depth + 1)
        return found

    def _array(self, depth: int) -> Any:  # noqa: ANN401
        mark = self.mark()
        if mark == "$":
            kind = _NUMBERS.get(self.mark())
            if kind is None or self.mark() != "#":
                raise ValueError("it has an array of an unknown kind")
            content = self.take(self._length() * kind.itemsize)
            # In the order of bytes of this machine, as other code expects it.
            return np.frombuffer(content, kind).astype(kind.newbyteorder("="))
        if mark == "#":
            # Every item has a mark, so there are no more of them than bytes.
            n_items = self._length()
            if not 0 <= n_items <= len(self._content) - self.at:
                raise ValueError("it ends too early, or has a wrong length")
            return [self.value(self.mark(), depth + 1) for _ in range(n_items)]
        found = []
        while mark != "]":
            found.append(self.value(mark, depth + 1))
            mark = self.mark()
        return found
