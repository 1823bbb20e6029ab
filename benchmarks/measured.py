"""Measure a call in its own process: time, processor time and peak memory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MARK = "MEASURED "


@dataclass
class Measured:
    """What a block took: seconds, processor seconds, and memory in bytes, with its helpers."""

    wall: float = 0.0
    cpu: float = 0.0
    before: int = 0
    peak: int = 0

    @property
    def more(self) -> int:
        """The memory at the peak beyond that at the start."""
        return self.peak - self.before


@contextmanager
def measured() -> Iterator[Measured]:
    """Measure a block; its peak is that of the process since the block began.

    Processes that it started and that still run count, too: their time, and their own peaks.
    """
    found = Measured(before=_status("VmRSS"))
    with suppress(OSError):
        # Sets the peak to the present size, in Linux; elsewhere the peak is that of the process.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    wall, cpu = time.perf_counter(), time.process_time()
    before = _children()
    yield found
    found.wall, found.cpu = time.perf_counter() - wall, time.process_time() - cpu
    found.peak = _status("VmHWM")
    for process, spent in _children().items():
        found.cpu += spent - before.get(process, 0.0)
        if process not in before:
            found.peak += _status("VmHWM", process)


def _children() -> dict[str, float]:
    """Return the processor seconds of the processes that this one started, in Linux."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in parentheses, may have spaces.
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                ticks = int(fields[11]) + int(fields[12])
                found[path.parent.name] = ticks / os.sysconf("SC_CLK_TCK")
    return found


def _status(field: str, process: str = "self") -> int:
    """Return the resident memory of a process now or at its peak."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def answer(found: dict[str, Any]) -> None:
    """Hand results to the process that called `ask`."""
    print(_MARK + json.dumps(found), flush=True)


def ask(module: str, *arguments: str, timeout: float = 3_600.0) -> dict[str, Any]:
    """Run a module in a new process, and return what it answered."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not lines:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads(lines[-1].removeprefix(_MARK))
    return found
