"""SciPy's table of Sobol' direction numbers: loaded once, without interruption, and checked.

SciPy fills the table when the first sequence is made, and swallows an interrupt (Ctrl-C) that
arrives meanwhile: the table then stays incomplete for the rest of the process, and every later net
is garbage, without a warning.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.resources import files
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from dsage._check import refusal

_FILE = "_sobol_direction_numbers.npz"
_KINDS = ("poly", "vinit")

_lock = threading.Lock()
_loaded: list[bool] = []


def load_table() -> None:
    """Load SciPy's table and compare it with the file it comes from; repair it if it differs.

    Raises a RuntimeError if that is impossible. Only the first call does anything.
    """
    if _loaded:
        return
    with _lock, delay_interrupts():
        # The first sequence makes SciPy load its table.
        qmc.Sobol(1, scramble=False, bits=30)
        _repair()
        if not _loaded:
            _loaded.append(True)


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Let an interrupt (Ctrl-C) take effect at the end of the block only."""
    if threading.current_thread() is not threading.main_thread():
        # Python interrupts the main thread only.
        yield
        return
    arrived: list[tuple[int, FrameType | None]] = []
    former = signal.getsignal(signal.SIGINT)
    if former is None:
        # Not set by Python, so it cannot be put back.
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: arrived.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
    if arrived and callable(former):
        former(*arrived[0])


def _repair() -> None:
    """Compare SciPy's arrays with its file, and fill them again if they differ."""
    try:
        module: Any = import_module("scipy.stats._sobol")
        held = {kind: module.get_poly_vinit(kind, np.uint32) for kind in _KINDS}
        with files("scipy.stats").joinpath(_FILE).open("rb") as file, np.load(file) as saved:
            expected: dict[str, npt.NDArray[Any]] = {kind: saved[kind] for kind in _KINDS}
    except (AttributeError, ImportError, KeyError, OSError):
        # Another version of SciPy keeps its table elsewhere; what it computes is still checked.
        held = expected = {}
    for kind, array in held.items():
        if not np.array_equal(array, expected[kind]):
            array[...] = expected[kind]
    if not _is_sound():
        condition = "those of SciPy's file"
        advice = "Restart Python; if that does not help, install SciPy again"
        raise refusal(
            "the Sobol' direction numbers", condition, "others", advice, kind=RuntimeError
        )


def _is_sound() -> bool:
    """Return whether the first points of a sequence are those that are published.

    Each coordinate of the first 2^k points has one point in each interval of length 2^-k, and the
    first points in three dimensions are known.
    """
    points = qmc.Sobol(64, scramble=False, bits=30).random_base2(6)
    strata = np.sort(points * len(points), axis=0)
    known = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    is_even = bool((strata == np.arange(len(points))[:, None]).all())
    return is_even and points[:4, :3].tolist() == known
