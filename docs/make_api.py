"""Write docs/api.md from the public names of the package: ``python docs/make_api.py``."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from dsage.result.saved import Saved

PAGE = Path(__file__).with_name("api.md")
MODULES = (
    "dsage",
    "dsage.result",
    "dsage.plots",
    "dsage.report",
    "dsage.samplers",
    "dsage.graphs",
    "dsage.structure",
    "dsage.models",
    "dsage.models.files",
    "dsage.data",
    "dsage.data.files",
    "dsage.data.registry",
    "dsage.games",
    "dsage.orderings",
    "dsage.estimate",
    "dsage.flow",
    "dsage.workflows.measures",
    "dsage.interop",
    "dsage.datasets",
)
"""The public modules, in the order of the page; every name in their `__all__` is public."""


def write_api() -> str:
    """Return the text of the page."""
    documented: dict[int, str] = {}
    sections = ["# API", "Every public name of the package. [What public means](policy.md)."]
    for name in MODULES:
        module = import_module(name)
        lines = [f".. automodule:: {name}", "   :no-members:", ""]
        for public in module.__all__:
            lines += _directive(module, public, documented)
        sections += [f"## {name}", "\n".join(["```{eval-rst}", *lines, "```"])]
    return "\n\n".join(sections) + "\n"


def _directive(module: ModuleType, name: str, documented: dict[int, str]) -> list[str]:
    """Return the lines that document a name; a second home refers to the first."""
    value: Any = getattr(module, name)
    full = f"{module.__name__}.{name}"
    if isinstance(value, (ModuleType, str)) and module.__name__ == "dsage":
        return []
    if id(value) in documented:
        role = "class" if inspect.isclass(value) else "func"
        return [f"- ``{name}``: see :{role}:`{documented[id(value)]}`", ""]
    if inspect.isclass(value):
        documented[id(value)] = full
        # The fields of a named tuple are listed in its docstring.
        members = [] if hasattr(value, "_fields") else ["   :members:"]
        if issubclass(value, Saved):
            members.append("   :inherited-members:")
        if hasattr(value, "set_fit_request"):
            # scikit-learn adds it, with a text that refers to its own pages.
            members.append("   :exclude-members: set_fit_request")
        return [f".. autoclass:: {full}", *members, ""]
    if callable(value):
        documented[id(value)] = full
        return [f".. autofunction:: {full}", ""]
    return [f".. autodata:: {full}", "   :no-value:", ""]


if __name__ == "__main__":
    PAGE.write_text(write_api(), encoding="utf-8")
