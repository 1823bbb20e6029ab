"""Hold thread pools in check while games are evaluated."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import Any

from threadpoolctl import ThreadpoolController


class _Keeper(Thread):
    """A thread that holds BLAS at one thread: only the one that set a limit may lift it."""

    def __init__(self, controller: ThreadpoolController) -> None:
        super().__init__(name="dsage-pools", daemon=True)
        self._controller = controller
        self._is_set, self._is_over = Event(), Event()
        self.start()
        self._is_set.wait()

    def run(self) -> None:
        try:
            with self._controller.limit(limits=1, user_api="blas"):
                self._is_set.set()
                self._is_over.wait()
        finally:
            self._is_set.set()

    def end(self) -> None:
        self._is_over.set()
        self.join()


class _Pools:
    """The thread pools of the libraries that this process has loaded."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._controller: Any = None
        self._n_modules = 0
        self._n_inside = 0
        self._keeper: _Keeper | None = None

    def controller(self) -> Any:  # noqa: ANN401
        """Return what controls the pools."""
        with self._lock:
            # To look for libraries takes milliseconds, and new ones come with new modules.
            if self._n_modules != len(sys.modules):
                self._controller = ThreadpoolController()
                self._n_modules = len(sys.modules)
            return self._controller

    @contextmanager
    def held(self, controller: Any) -> Iterator[None]:  # noqa: ANN401
        """Hold the pools that threads share until the last one is out."""
        with self._lock:
            if self._n_inside == 0:
                self._keeper = _Keeper(controller)
            self._n_inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_inside -= 1
                if self._n_inside == 0 and self._keeper is not None:
                    self._keeper.end()
                    self._keeper = None


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
    controller = _pools.controller()
    # The main thread has nobody beside it, or begins before all others and ends after them.
    is_alone = current_thread() is main_thread()
    with (
        nullcontext() if is_alone else _pools.held(controller),
        # Some libraries have a pool for each thread.
        controller.limit(limits=1, user_api="blas"),
    ):
        yield controller
