"""A cache of the most recently used values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """The values that were used last, at most `n_kept` of them. Thread-safe.

    A pickle has the values if `is_pickled`; otherwise they are made again.
    """

    def __init__(self, n_kept: int, *, is_pickled: bool = False) -> None:
        self._n_kept, self._is_pickled = n_kept, is_pickled
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, computed if it is not cached."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        # Outside of the lock: two threads may make the same value, which is equal.
        value = make()
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._n_kept:
                self._values.popitem(last=False)
        return value

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            kept = self._values.copy() if self._is_pickled else OrderedDict()
        return {"_n_kept": self._n_kept, "_is_pickled": self._is_pickled, "_values": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()
