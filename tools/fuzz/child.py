"""A process that reads mutants, one after the other, within limits; see ``__main__``."""

from __future__ import annotations

import json
import os
import pickle
import resource
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from time import process_time

from tools.fuzz.formats import FORMATS, Files, mutant


def outcome_of(name: str, path: Path) -> tuple[str, str]:
    """Return "read", "refused" or "raw" for a file, and the place of a raw error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            FORMATS[name].read(path)
    except Exception as error:
        if hasattr(error, "problem"):
            return "refused", ""
        last = traceback.extract_tb(error.__traceback__)[-1]
        ours = [each for each in traceback.extract_tb(error.__traceback__) if "dsage" in each[0]]
        place = ours[-1] if ours else last
        text = f"{type(error).__name__} at {Path(place[0]).name}:{place[1]}: {str(error)[:200]}"
        return "raw", text
    return "read", ""


def read_mutants(
    name: str, files: Files, seed: int, numbers: range, folder: Path
) -> list[tuple[int, str, str]]:
    """Return the outcome of each mutant."""
    found = []
    for number in numbers:
        chosen, content = mutant(name, files, seed, number)
        path = folder / f"{number}-{chosen}"
        path.write_bytes(content)
        found.append((number, *outcome_of(name, path)))
        for file in folder.glob(f"{number}-*"):
            if file.is_file():
                file.unlink()
    return found


def _memory() -> int:
    """Return the most memory that this process has used so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    """Read mutants of a format: NAME FILES SEED START STOP LOG MEGABYTES."""
    name, kept, seed, start, stop, log, megabytes = sys.argv[1:]
    files: Files = pickle.loads(Path(kept).read_bytes())
    with (
        Path(log).open("a", buffering=1, encoding="utf-8") as out,
        tempfile.TemporaryDirectory() as folder,
    ):
        # Whole files are read first, so that all libraries are loaded before memory is limited.
        for chosen, content in sorted(files.items()):
            whole = Path(folder) / f"0-{chosen}"
            whole.write_bytes(content)
            outcome = outcome_of(name, whole)
            if outcome[0] != "read":
                out.write(json.dumps(["whole", chosen, *outcome]) + "\n")
        with Path("/proc/self/statm").open() as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        limit = size + int(megabytes) * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        before = _memory()
        # What libraries print would hide the counts.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        for number in range(int(start), int(stop)):
            out.write(json.dumps(["start", number]) + "\n")
            begun = process_time()
            [(_, outcome_text, text)] = read_mutants(
                name, files, int(seed), range(number, number + 1), Path(folder)
            )
            seconds = process_time() - begun
            out.write(json.dumps(["end", number, outcome_text, text, seconds]) + "\n")
        out.write(json.dumps(["memory", _memory() - before]) + "\n")


if __name__ == "__main__":
    main()
