"""A report of a run as one HTML file: explanation -> data -> page."""

from __future__ import annotations

from pathlib import Path

from dsage._files import check_path, write_bytes
from dsage.report.comparison import comparison_report_data
from dsage.report.data import report_data
from dsage.report.flow import flow_report_data
from dsage.report.page import to_html
from dsage.report.rows import row_report_data
from dsage.result.comparison import DataComparison, ModelComparison
from dsage.result.explanation import Explanation
from dsage.result.flow import FlowExplanation
from dsage.result.rows import RowExplanation

__all__ = [
    "comparison_report_data",
    "flow_report_data",
    "report_data",
    "row_report_data",
    "to_html",
    "write_comparison_report",
    "write_flow_report",
    "write_report",
    "write_row_report",
]


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
    return _write(to_html(report_data(explanation)), path)


def write_row_report(explanation: RowExplanation, path: str | Path) -> Path:
    """Write a report of explained rows to one self-contained HTML file.

    Parameters
    ----------
    explanation : RowExplanation
        The explained rows.
    path : str or Path
        The file; its folder must exist. An existing file is overwritten.

    Returns
    -------
    Path
        The file.
    """
    return _write(to_html(row_report_data(explanation), "rows"), path)


def write_comparison_report(comparison: ModelComparison | DataComparison, path: str | Path) -> Path:
    """Write a report of a comparison to one self-contained HTML file.

    Parameters
    ----------
    comparison : ModelComparison or DataComparison
        The result of :func:`dsage.compare` or of :func:`dsage.compare_data`.
    path : str or Path
        The file; its folder must exist. An existing file is overwritten.

    Returns
    -------
    Path
        The file.
    """
    return _write(to_html(comparison_report_data(comparison), "comparison"), path)


def write_flow_report(explanation: FlowExplanation, path: str | Path) -> Path:
    """Write a report of a flow along edges to one self-contained HTML file.

    Parameters
    ----------
    explanation : FlowExplanation
        The result of :func:`dsage.explain_flow`.
    path : str or Path
        The file; its folder must exist. An existing file is overwritten.

    Returns
    -------
    Path
        The file.
    """
    return _write(to_html(flow_report_data(explanation), "flow"), path)


def _write(page: str, path: str | Path) -> Path:
    file = check_path(path)
    # A name may contain an unpaired surrogate, which UTF-8 cannot encode.
    write_bytes(file, page.encode("utf-8", errors="xmlcharrefreplace"))
    return file
