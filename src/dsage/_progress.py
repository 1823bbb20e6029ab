"""Progress bars: one line in terminals and in notebooks."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

from tqdm.std import tqdm


def make_bar(**options: Any) -> tqdm[Any]:  # noqa: ANN401
    """Return a progress bar of tqdm that suits the place where it is shown.

    In a notebook it is a widget or, without ipywidgets, a line of plain text, since notebooks show
    stderr in red. Everywhere else it is a line on stderr.
    """
    if options.get("disable") or not _is_notebook():
        return tqdm(**options)
    if find_spec("ipywidgets") is None:
        return tqdm(file=sys.stdout, ascii=True, **options)
    from tqdm.notebook import tqdm as widget  # noqa: PLC0415

    return widget(**options)


def _is_notebook() -> bool:
    """Return whether the code runs in the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()
    return type(found).__name__ == "ZMQInteractiveShell"
