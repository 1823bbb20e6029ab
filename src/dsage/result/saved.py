"""A base class for results that can be saved and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self


class Saved:
    """A result that can be saved: a dataclass whose fields are written to the file."""

    _file_kind: ClassVar[str]

    def save(self, path: str | Path) -> Path:
        """Write everything into one file of JSON and arrays; :meth:`load` reads it.

        Parameters
        ----------
        path : str or Path
            The file; its folder must exist. An existing file is overwritten.

        Returns
        -------
        Path
            The file.
        """
        from dsage.result.saving import write  # noqa: PLC0415

        return write(self, path, self._file_kind)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return what :meth:`save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        from dsage.result.saving import read_as, report_damage  # noqa: PLC0415

        found: Self = read_as(cls, path, cls._file_kind)
        with report_damage(path):
            found._check()
        return found

    def _check(self) -> None:
        """Refuse inconsistent parts: the file may have been edited."""
        raise NotImplementedError
