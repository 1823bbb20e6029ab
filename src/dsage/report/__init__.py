"""A report of a run as one HTML file: explanation -> data -> page."""

from __future__ import annotations

from pathlib import Path

from dsage._files import check_path
from dsage.report.data import report_data
from dsage.report.page import to_html
from dsage.result.explanation import Explanation

__all__ = ["report_data", "to_html", "write_report"]


def write_report(explanation: Explanation, path: str | Path) -> Path:
    """Write a report to one self-contained HTML file.

    Parameters
    ----------
    explanation : Explanation
        The explanation.
    path : str or Path
        The file; its folder must exist. An existing file is overwritten.

    Returns
    -------
    Path
        The file.
    """
    file = check_path(path)
    # A name may contain an unpaired surrogate, which UTF-8 cannot encode.
    file.write_bytes(to_html(report_data(explanation)).encode("utf-8", errors="xmlcharrefreplace"))
    return file
