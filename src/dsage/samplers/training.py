"""Training rows that several samplers are fitted to, read once for all of them."""

from __future__ import annotations

from typing import Any

from dsage._check import DsageWarning, record_warnings, warn
from dsage.data.layout import Layout
from dsage.samplers.checks import Floats

# Options of these types can be compared, and are the same when they are read again.
_COMPARABLE = (str, tuple, list, dict, type(None))


class Training:
    """Training rows; what is learned of their columns is kept for other samplers.

    Parameters
    ----------
    X : data frame or array of shape (n_rows, n_features)
        The rows.
    """

    def __init__(self, X: Any) -> None:  # noqa: ANN401
        self.X = X
        self._read: list[tuple[dict[str, Any], Layout, Floats, list[DsageWarning]]] = []

    def read(self, **columns: Any) -> tuple[Layout, Floats]:  # noqa: ANN401
        """Return the layout of the rows, see :meth:`Layout.of`, and the rows encoded by it.

        The matrix is the caller's own. Warnings are given each time.
        """
        is_kept = all(isinstance(each, _COMPARABLE) for each in columns.values())
        for kept, layout, matrix, told in self._read if is_kept else ():
            if kept == columns:
                for each in told:
                    warn(each.text, type(each))
                return layout, matrix.copy()
        with record_warnings(show=False) as told:
            layout = Layout.of(self.X, **columns)
            matrix = layout.encode(self.X)
        for each in told:
            warn(each.text, type(each))
        if is_kept:
            self._read.append((columns, layout, matrix, told))
        return layout, matrix.copy() if is_kept else matrix
