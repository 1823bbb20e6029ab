"""PyTorch, which is optional: nothing here imports it before a module of it was given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def is_module(model: object) -> bool:
    """Tell whether a model is a ``torch.nn.Module``, without importing torch.

    Examples
    --------
    >>> is_module(len)
    False
    """
    torch = sys.modules.get("torch")
    # Whoever holds a module has imported torch.
    return torch is not None and isinstance(model, torch.nn.Module)


def require_torch(what: str) -> Any:  # noqa: ANN401
    """Return the package torch, or say how to install it."""
    try:
        return import_module("torch")
    except ImportError as error:
        raise ImportError(
            f"{what} needs torch; install it with: pip install 'dsage[torch]'."
        ) from error


def module_place(module: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return where a module computes and in what: the device and the dtype of its parameters.

    The first parameter, or else buffer, of floats decides. A module without any is on the CPU, and
    takes torch's default dtype.
    """
    torch = require_torch("a module")
    for tensors in (module.parameters(), module.buffers()):
        for tensor in tensors:
            if tensor.is_floating_point():
                return tensor.device, tensor.dtype
    return torch.device("cpu"), torch.get_default_dtype()


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold torch at one thread, if it is there: with another number its last digits differ.

    Its linear algebra is its own, out of reach for threadpoolctl.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
