"""The registry of losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dsage.data.registry import Registry
from dsage.models.losses.base import Kernel, Loss, Output

LOSSES: Registry[Loss | Callable[[float], Loss]] = Registry(
    "loss", "the losses", package="dsage.models.losses"
)
"""The losses that have a name; one with a parameter is a function of that parameter.

Traits: `title` and `unit`, for reports, where ``{target}`` stands for the name of the target;
`synonyms`, names that other libraries give to the loss or to its mean; `notes`, explanations for
synonyms that are not quite the same; and `parameter` and `example`, the name of the parameter and
a value, if there is one.
"""


def register(
    name: str,
    output: Output,
    *,
    summary: str,
    title: str,
    unit: str,
    synonyms: Sequence[str] = (),
    notes: Mapping[str, str] | None = None,
    **declared: Any,  # noqa: ANN401
) -> Callable[[Kernel], Kernel]:
    """Return a decorator that makes a kernel available as a :class:`Loss`.

    `summary` is a line for tables and help; `title`, `unit`, `synonyms` and `notes` are those of
    :data:`LOSSES`, and the rest are attributes of the loss, such as `curve`.
    """
    add = LOSSES.register(
        name,
        summary=summary,
        title=title,
        unit=unit,
        synonyms=tuple(synonyms),
        notes=dict(notes or {}),
    )

    def register_kernel(kernel: Kernel) -> Kernel:
        add(Loss(name, output, kernel, **declared))
        return kernel

    return register_kernel
