"""The command line, ``dsage`` (extra ``cli``)."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; if packages are missing, say how to install them."""
    try:
        from dsage.cli.app import app  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.stderr.write(
            "Error: the command line needs typer; install it with: pip install 'dsage[cli]'.\n"
        )
        raise SystemExit(2) from None
    app()
