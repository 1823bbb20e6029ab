"""Locks of files: one run at a time uses a checkpoint."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import get_ident

from dsage._check import refusal

if sys.platform == "win32":
    import msvcrt

    def _take(number: int) -> None:
        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(number: int) -> None:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """A lock of a file, in a second file with the suffix ``.lock``.

    The system lifts it when the process ends, also if it is killed. The thread that holds it may
    take it several times. If the system cannot lock files, nothing is locked.

    Parameters
    ----------
    path : Path
        The file to lock.
    parameter : str
        What the file is called in errors.
    """

    def __init__(self, path: Path, parameter: str) -> None:
        self._path = path
        self._file = path.with_name(path.name + ".lock")
        self._parameter = parameter
        self._number: int | None = None
        self._owner: int | None = None
        self._n_inside = 0

    def __enter__(self) -> None:
        if self._n_inside and self._owner != get_ident():
            raise self._refuse()
        if not self._n_inside:
            self._acquire()
            self._owner = get_ident()
        self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        self._n_inside -= 1
        if self._n_inside or self._number is None:
            return
        # While it is locked: no other run can have locked this file, and be deprived of it.
        with suppress(OSError):
            self._file.unlink()
        os.close(self._number)
        self._number = None

    def _acquire(self) -> None:
        while self._number is None:
            try:
                number = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError:
                # The folder cannot be written to.
                return
            try:
                _take(number)
            except (BlockingIOError, PermissionError):
                os.close(number)
                raise self._refuse() from None
            except OSError:
                # The file system has no locks.
                os.close(number)
                return
            if self._is_current(number):
                self._number = number
                with suppress(OSError):
                    os.ftruncate(number, 0)
                    os.write(number, str(os.getpid()).encode())
            else:
                os.close(number)

    def _is_current(self, number: int) -> bool:
        """Return whether the open file is still there: the run before may have removed it."""
        try:
            return os.path.samestat(os.fstat(number), self._file.stat())
        except OSError:
            return False

    def _refuse(self) -> Exception:
        holder = ""
        with suppress(OSError, ValueError):
            holder = f" It is the process {int(self._file.read_bytes()[:20])}."
        advice = f"Another run is using it.{holder} Wait until it ends, or use another path"
        return refusal(self._parameter, "not in use", str(self._path), advice, BlockingIOError)
