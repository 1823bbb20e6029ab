"""Time calls, and print and save tables with the versions and the machine."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest time of several calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def publish(
    name: str, title: str, sections: Sequence[tuple[str, str]], packages: Sequence[str]
) -> None:
    """Print sections, each a text and a table, and write them to ``results/<name>.md``."""
    used = ", ".join(f"{package} {version(package)}" for package in packages)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    command = f"`python -m benchmarks.{name}`"
    heading = [f"# {title}", "", f"Written by {command}: {used}; {machine}.", ""]
    body = "\n\n".join(f"{text}\n\n{table}" for text, table in sections)
    text = "\n".join(heading) + f"\n{body}\n"
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")


def published(name: str) -> list[tuple[str, str]]:
    """Return the sections of ``results/<name>.md``, each a text and a table."""
    _, _, body = (RESULTS / f"{name}.md").read_text(encoding="utf-8").split("\n\n", 2)
    parts = body.strip().split("\n\n")
    return list(zip(parts[::2], parts[1::2], strict=True))


def cells(table: str) -> list[list[str]]:
    """Return the rows of a Markdown table, without its header."""
    lines = table.splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    )
