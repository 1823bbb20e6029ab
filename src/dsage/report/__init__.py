"""A report of a run as one HTML file: record -> data -> page."""

from __future__ import annotations

from pathlib import Path

from dsage.record import Record
from dsage.report.data import report_data
from dsage.report.page import to_html

__all__ = ["report_data", "to_html", "write_report"]


def write_report(record: Record, path: str | Path) -> Path:
    """Write a report of a run to one HTML file that needs no network.

    Parameters
    ----------
    record : Record
        What a run left behind.
    path : str or Path
        Where to write; a file that is there is replaced. Its folder has to be there.

    Returns
    -------
    Path
        Where it was written.
    """
    path = Path(path)
    # A name may hold half a surrogate pair, which UTF-8 cannot.
    path.write_bytes(to_html(report_data(record)).encode("utf-8", errors="xmlcharrefreplace"))
    return path
