"""PyTorch is optional: nothing here imports it unless the user has passed a module."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from dsage._check import import_extra


def is_module(model: object) -> bool:
    """Return whether a model is a ``torch.nn.Module``, without importing torch."""
    torch = sys.modules.get("torch")
    # A module exists only if torch has been imported.
    return torch is not None and isinstance(model, torch.nn.Module)


def require_torch(what: str) -> Any:  # noqa: ANN401
    """Return the package torch; if it is absent, the error says how to install it."""
    return import_extra("torch", what, "torch")


def module_place(module: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return the device and the dtype of a module.

    They are those of its first floating-point parameter, or else buffer; without any, the CPU and
    torch's default dtype.
    """
    torch = require_torch("a module")
    for tensors in (module.parameters(), module.buffers()):
        for tensor in tensors:
            if tensor.is_floating_point():
                return tensor.device, tensor.dtype
    return torch.device("cpu"), torch.get_default_dtype()


class _Limit:
    """How many threads have limited torch, and the number of its threads before."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.n_inside = 0
        self.before = 1


_limit = _Limit()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch, if it is imported, to one thread: with more its last digits differ.

    threadpoolctl does not limit torch's linear algebra. Several threads may enter at the same time;
    at the end, the number of threads is restored to what the first one found.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    with _limit.lock:
        if not _limit.n_inside:
            _limit.before = torch.get_num_threads()
        _limit.n_inside += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _limit.lock:
            _limit.n_inside -= 1
            # New threads begin with the number that was set last, in any thread.
            torch.set_num_threads(1 if _limit.n_inside else _limit.before)
