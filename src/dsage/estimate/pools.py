"""Hold thread pools in check while games are evaluated."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


class _Pools:
    """The thread pools of the libraries that this process has loaded."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._controller: Any = None
        self._n_modules = 0
        self._n_inside = 0
        self._held: Any = None

    def enter(self) -> Any:  # noqa: ANN401
        """Hold BLAS at one thread, and return what controls the pools."""
        with self._lock:
            # To look for libraries takes milliseconds, and new ones come with new modules.
            if self._n_modules != len(sys.modules):
                self._controller = ThreadpoolController()
                self._n_modules = len(sys.modules)
            if self._n_inside == 0:
                self._held = self._controller.limit(limits=1, user_api="blas")
            self._n_inside += 1
            return self._controller

    def leave(self) -> None:
        """Give BLAS its threads back once nobody is inside."""
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._held.restore_original_limits()
                self._held = None


_pools = _Pools()


@contextmanager
def single_blas() -> Iterator[Any]:
    """Hold the BLAS of this process at one thread; yield the controller of its thread pools.

    Sums over many rows are cut in as many parts as there are threads, so that their last bits
    depend on the machine and on the number of jobs. Any number of threads may be inside at the same
    time: the first one in sets the limit, the last one out lifts it.

    Examples
    --------
    >>> with single_blas() as pools:
    ...     {pool["num_threads"] for pool in pools.info() if pool["user_api"] == "blas"}
    {1}
    """
    controller = _pools.enter()
    try:
        yield controller
    finally:
        _pools.leave()
