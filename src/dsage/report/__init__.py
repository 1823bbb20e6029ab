"""A report of a run as one HTML file: record -> data -> page."""

from __future__ import annotations

from pathlib import Path

from dsage._check import refusal
from dsage.report.data import report_data
from dsage.report.page import to_html
from dsage.result.record import Record

__all__ = ["report_data", "to_html", "write_report"]


def write_report(record: Record, path: str | Path) -> Path:
    """Write a report of a run to one HTML file that needs no network.

    Parameters
    ----------
    record : Record
        What a run left behind.
    path : str or Path
        Where to write; a file that is there is replaced. Its folder must exist.

    Returns
    -------
    Path
        Where it was written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from dsage.result.choices import Choices
    >>> from dsage.estimate import run
    >>> from dsage.games import MomentGame
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = run(MomentGame(X, X[:, 0], X[:, 0], ["age", "income"]))
    >>> record = Record(found, "wealth", None, None, None, None, Choices({}), ())
    >>> with TemporaryDirectory() as folder:
    ...     write_report(record, f"{folder}/report.html").stat().st_size > 10_000
    True
    """
    place = Path(path)
    if not place.parent.is_dir():
        raise refusal("path", "in a folder that exists", str(path), "Make the folder")
    if place.is_dir():
        raise refusal("path", "a file", str(path), "Add a name, such as report.html")
    # A name may hold half a surrogate pair, which UTF-8 cannot.
    place.write_bytes(to_html(report_data(record)).encode("utf-8", errors="xmlcharrefreplace"))
    return place
