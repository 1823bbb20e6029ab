"""``dsage report``: write the report of a saved run."""

from __future__ import annotations

import dsage
from dsage.cli.commands import ReportCommand
from dsage.cli.output import PAGES, Output, check_outputs, note


def run(command: ReportCommand) -> None:
    """Write the report of a saved run."""
    path = command.out or command.run.with_suffix(".html")
    check_outputs([Output("--out", path, "The report", PAGES)], {"RUN": command.run})
    dsage.load(command.run).report(path)
    note(f"The report is in {path}.", quiet=command.quiet)
