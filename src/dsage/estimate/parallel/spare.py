"""Processors and memory that the machine can spare for helpers."""

from __future__ import annotations

import os
from pathlib import Path

import joblib

# Processors that are used at most, this process included.
_MOST_PROCESSORS = 4
# Bytes that a process needs for the libraries and its work, in addition to its copy of the game.
_BYTES_A_PROCESS = 2**29
# Shares that helpers may use: of the free memory, or of all memory if the free memory is unknown.
_SHARE_OF_FREE, _SHARE_OF_ALL = 0.5, 0.25
# Ticks of all processors, of about 10 milliseconds each, that tell how busy they are.
_FEWEST_TICKS = 50
_GROUPS = Path("/sys/fs/cgroup")


def count_processors() -> int:
    """Return how many processors this process may use.

    joblib's count respects affinities, quotas of containers and ``LOKY_MAX_CPU_COUNT``. Who limits
    the threads of numerical libraries, with ``OMP_NUM_THREADS``, does not expect more processes.
    """
    n_threads = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    n_processors = int(joblib.cpu_count())
    return min(n_processors, int(n_threads)) if n_threads.isdigit() else n_processors


class Recently:
    """How many processors were busy since a moment: those of this process, and of all others.

    On Linux they are counted since this object was made; elsewhere, and within a fraction of a
    second, the mean of the last minute takes their place.
    """

    def __init__(self) -> None:
        self._before = _ticks()

    def count_busy(self) -> float | None:
        """Return the mean number of busy processors; None if it is not known."""
        before, now = self._before, _ticks()
        if before is None or now is None or now[1] - before[1] < _FEWEST_TICKS:
            return _load()
        return (os.cpu_count() or 1) * (1.0 - (now[0] - before[0]) / (now[1] - before[1]))


def count_idle(n_bytes: int, recently: Recently) -> int:
    """Return for how many helpers there are idle processors and memory.

    `n_bytes` is the size of the game that each of them is sent.
    """
    n_most = min(count_processors(), _MOST_PROCESSORS) - 1
    load = recently.count_busy()
    if load is not None:
        # This is the load of the whole machine, though this process may use only a part of it.
        n_most = min(n_most, round((os.cpu_count() or 1) - load))
    free = free_bytes()
    if free is not None:
        # A helper has the bytes and the game that is made from them.
        n_most = min(n_most, int(free * _SHARE_OF_FREE // (_BYTES_A_PROCESS + 2 * n_bytes)))
    return max(n_most, 0)


def is_overloaded() -> bool:
    """Return whether more was to be computed in the last minute than the processors could.

    The threads of a model then wait for each other most of the time. The threads of this process
    alone never overload the machine.
    """
    load = _load()
    return load is not None and load > (os.cpu_count() or 1) + 0.5


def _ticks() -> tuple[int, int] | None:
    """Return the idle time of all processors and their whole time, in ticks; None if not Linux."""
    try:
        with Path("/proc/stat").open(encoding="ascii") as file:
            name, *counts = file.readline().split()
        # The last two numbers are part of the first two.
        ticks = [int(count) for count in counts[:8]]
    except (OSError, ValueError):
        return None
    # Waiting for a disk is idle.
    return (ticks[3] + ticks[4], sum(ticks)) if name == "cpu" and len(ticks) > 4 else None


def _load() -> float | None:
    """Return the mean number of busy processors in the last minute; None on Windows."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def free_bytes() -> int | None:
    """Return the bytes of memory that this process and new ones may still take, if it is known.

    On Linux it is the memory that the machine and the control groups of this process leave free;
    elsewhere a part of all memory.
    """
    found = [_of_machine(), *_of_groups()]
    known = [each for each in found if each is not None]
    return min(known) if known else None


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        [line] = [line for line in lines if line.startswith("MemAvailable:")]
        return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        n_pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return int(n_pages * _SHARE_OF_ALL / _SHARE_OF_FREE)
    except (AttributeError, OSError, ValueError):
        return None


def _of_groups() -> list[int]:
    """Return the free memory of each control group of this process, in both versions."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    found = []
    for line in lines:
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if names not in ("", "memory"):
            continue
        root = _GROUPS if not names else _GROUPS / "memory"
        most, used = ("memory.max", "memory.current") if not names else _OLD
        group = root / path.strip("/")
        # In a container, the path may be the host's; the root is then the group itself.
        for place in {root, group, *group.parents}:
            if place == root or root in place.parents:
                left = _left(place, most, used)
                found += [] if left is None else [left]
    return found


_OLD = ("memory.limit_in_bytes", "memory.usage_in_bytes")


def _left(place: Path, most: str, used: str) -> int | None:
    """Return the free memory of a control group; inactive file pages count as free."""
    try:
        limit = (place / most).read_text(encoding="ascii").strip()
        if not limit.isdigit():
            return None
        stat = (place / "memory.stat").read_text(encoding="ascii").splitlines()
        cached = sum(int(line.split()[1]) for line in stat if line.startswith("inactive_file "))
        return max(int(limit) - int((place / used).read_text(encoding="ascii")) + cached, 0)
    except (OSError, ValueError, IndexError):
        return None
