"""Read damaged files of every format that dsage reads, and count what happens.

``python -m tools.fuzz`` makes whole files of each format, and mutants of them with fixed seeds: of
their bytes, and of their parts with everything else left right. Processes with limits of memory
and time read the mutants and use what they have read: models predict, results are printed and made
into reports, runs resume. A mutant may be read or refused in the words of the package. Anything
else counts: a *crash* ends the process, a *raw* exception is not one of the package, a *hang* takes
too long. The table is written to ``benchmarks/results/fuzz.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, perf_counter, sleep

from tools.fuzz.formats import FORMATS, make_files

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "benchmarks" / "results" / "fuzz.md"
# Mutants a process; seconds of the processor for one mutant, and of waiting; memory in MB beyond
# the start of a process.
_AT_ONCE, _PATIENCE, _WAITING, _MEGABYTES = 500, 10.0, 600.0, 1024


@dataclass
class Counts:
    """What happened to the mutants of a format."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, int] = field(default_factory=dict)
    slowest: float = 0.0
    memory: int = 0

    def add(self, number: int, outcome: str, reason: str = "") -> None:
        """Count an outcome."""
        self.outcomes[outcome] += 1
        if reason:
            self.reasons[reason] += 1
            self.examples.setdefault(reason, number)


def fuzz(name: str, n_mutants: int, seed: int, first: int = 0) -> Counts:
    """Read the mutants of a format in processes of their own."""
    counts = Counts()
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "files"
        kept.write_bytes(pickle.dumps(make_files(name, Path(folder))))
        number, n_processes = first, 0
        while number < first + n_mutants:
            n_processes += 1
            log = Path(folder) / f"log{n_processes}"
            log.touch()
            stop = min(number + _AT_ONCE, first + n_mutants)
            arguments = [name, kept, seed, number, stop, log, _MEGABYTES]
            end = _follow([sys.executable, "-m", "tools.fuzz.child", *map(str, arguments)], log)
            number = _count(counts, log, number, end)
    return counts


def _follow(command: list[str], log: Path) -> str:
    """Run a process to its end; kill it when its log stands still for too long."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    errors = log.with_suffix(".errors")
    with errors.open("wb") as stderr:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=stderr)
        size, since, used = 0, monotonic(), 0.0
        while process.poll() is None:
            sleep(0.05)
            now = log.stat().st_size
            if now != size:
                size, since, used = now, monotonic(), _processor_time(process.pid)
            passed = monotonic() - since
            is_busy = size and _processor_time(process.pid) - used > _PATIENCE
            if is_busy or passed > _WAITING:
                process.kill()
                process.wait()
                return "hang"
    if process.returncode == 0:
        return ""
    lines = errors.read_text(errors="replace").strip().splitlines()
    return f"crash: exit code {process.returncode} {lines[-1][:200] if lines else ''}"


def _processor_time(number: int) -> float:
    """Return the processor time of a process, which does not depend on others; 0 if it ended."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _count(counts: Counts, log: Path, first: int, end: str) -> int:
    """Count what a process noted, and return the number of the next mutant."""
    begun, done = first - 1, first - 1
    for line in log.read_text(encoding="utf-8").splitlines():
        kind, *values = json.loads(line)
        if kind == "start":
            begun = values[0]
        elif kind == "end":
            done, outcome, reason, seconds = values
            counts.add(done, outcome, reason)
            counts.slowest = max(counts.slowest, seconds)
        elif kind == "memory":
            counts.memory = max(counts.memory, values[0])
        else:
            raise SystemExit(f"A whole file cannot be read: {values}")
    if not end:
        return done + 1
    if begun == done:
        raise SystemExit(f"A process failed between mutants {done} and {done + 1}: {end}")
    counts.add(begun, end.partition(":")[0], end)
    return begun + 1


def _table(found: dict[str, Counts], n_mutants: int, seed: int, seconds: float) -> str:
    lines = [
        "# Damaged files",
        "",
        "`python -m tools.fuzz` (`make fuzz`) wrote this page. It changes whole files of every",
        "format at random, in bytes and in their parts, reads them in processes with limits, and",
        "uses what could be read: models predict, results are printed and made into reports, runs",
        f"resume. Seed {seed}, {n_mutants:,} mutants a format, {seconds / 60:.0f} minutes in all.",
        "",
        f"*s* is the time of the slowest mutant; *MB* the memory that a process of {_AT_ONCE}",
        f"mutants needed beyond whole files, of {_MEGABYTES:,} that it may use.",
        "",
        "| format | mutants | refused | read | raw exceptions | crashes | hangs | s | MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, counts in found.items():
        numbers = [counts.outcomes[each] for each in ("refused", "read", "raw", "crash", "hang")]
        cells = [f"{sum(counts.outcomes.values()):,}", *(f"{each:,}" for each in numbers)]
        cells += [f"{counts.slowest:.2f}", f"{counts.memory:,}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Read the mutants of some formats, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("formats", nargs="*", help=f"some of: {', '.join(FORMATS)}")
    parser.add_argument("--mutants", type=int, default=2000, help="mutants a format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--out", type=Path, help=f"the table; by default {TABLE.name} for all")
    options = parser.parse_args()
    if unknown := [name for name in options.formats if name not in FORMATS]:
        parser.error(f"unknown formats: {unknown}")
    start, found = perf_counter(), {}
    for name in options.formats or FORMATS:
        found[name] = counts = fuzz(name, options.mutants, options.seed, options.first)
        shown = ", ".join(f"{count:,} {each}" for each, count in sorted(counts.outcomes.items()))
        print(f"{name}: {shown}; slowest {counts.slowest:.2f} s, {counts.memory} MB", flush=True)
        for reason, count in counts.reasons.most_common(12):
            print(f"  {count} x {reason} (first: mutant {counts.examples[reason]})", flush=True)
    table = _table(found, options.mutants, options.seed, perf_counter() - start)
    if options.out is not None or not options.formats:
        (options.out or TABLE).write_text(table, encoding="utf-8")
    bad = sum(
        counts.outcomes[each] for counts in found.values() for each in ("raw", "crash", "hang")
    )
    print(f"{bad} raw exceptions, crashes and hangs.")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
