"""Measure a call in a process of its own: time, processor time and peak memory."""

from __future__ import annotations

import json
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
    """What a block took: seconds, processor seconds, and memory in bytes."""

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
    """Measure a block; its peak is that of the process since the block began."""
    found = Measured(before=_status("VmRSS"))
    with suppress(OSError):
        # Sets the peak to the present size, in Linux; elsewhere the peak is that of the process.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    wall, cpu = time.perf_counter(), time.process_time()
    yield found
    found.wall, found.cpu = time.perf_counter() - wall, time.process_time() - cpu
    found.peak = _status("VmHWM")


def _status(field: str) -> int:
    """Return the resident memory of this process now or at its peak."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
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
