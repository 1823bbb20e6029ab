"""The command line, ``dsage`` (extra ``cli``)."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; say what to install where it cannot."""
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
