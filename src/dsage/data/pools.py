"""Limit the thread pools of BLAS."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, Lock, Thread
from typing import Any

from threadpoolctl import ThreadpoolController

# With fewer multiplications, which take about half a second, waking threads saves nothing.
_MANY = 1e10


class _Keeper(Thread):
    """A thread that limits BLAS to one thread; only the thread that set a limit can lift it."""

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
    """The thread pools of the libraries loaded by this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._controller: Any = None
        self._n_modules = 0
        self._n_inside = 0
        self._keeper: _Keeper | None = None

    def controller(self) -> Any:  # noqa: ANN401
        """Return the controller of the pools."""
        with self._lock:
            # Searching for libraries takes milliseconds, and new ones come with new modules.
            if self._n_modules != len(sys.modules):
                self._controller = ThreadpoolController()
                self._n_modules = len(sys.modules)
            return self._controller

    @contextmanager
    def hold(self, controller: Any) -> Iterator[None]:  # noqa: ANN401
        """Limit the pools that threads share until the last thread leaves."""
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
    """Limit the BLAS of this process to one thread; yield the controller of its thread pools.

    BLAS splits sums over many rows by threads, so their last bits depend on the machine and on the
    number of jobs; and threads that wait for thousands of small products take more time than they
    save. Several threads may enter at the same time: the first sets the limit, and the
    last lifts it.
    """
    controller = _pools.controller()
    with (
        _pools.hold(controller),
        # Some libraries have one pool per thread.
        controller.limit(limits=1, user_api="blas"),
    ):
        yield controller


def blas_for(n_multiplications: float) -> AbstractContextManager[object]:
    """Limit BLAS to one thread for a product that is too small to be worth several."""
    return single_blas() if n_multiplications < _MANY else nullcontext()
