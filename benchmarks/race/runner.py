"""Run the ways of one package on one problem, in the package's own environment.

Run: python -m benchmarks.race.runner PACKAGE FOLDER PROBLEM SECONDS SEED

The effort is doubled until a run takes half of the seconds, or until exact values are
the same again. Every run is a line of JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import resource
import sys
import time
import warnings
from pathlib import Path

from benchmarks.race.ground import Problem
from benchmarks.race.peers import Way, Ways

_GROWTH = 2


def main(package: str, folder: str, name: str, seconds: float, seed: int) -> None:
    """Print a line for every run."""
    warnings.simplefilter("ignore")
    ways: Ways = importlib.import_module(f"benchmarks.race.peers.{package}").WAYS
    for way_name, way in ways.items():
        problem = Problem.load(Path(folder), name)
        if way.fits(problem):
            _run(way_name, way, problem, seconds, seed)


def _run(name: str, way: Way, problem: Problem, seconds: float, seed: int) -> None:
    # What a package does once, such as to compile, is not counted.
    _quiet(way, problem, way.least, seed + 1)
    effort, spent = way.least, 0.0
    last: list[float] = []
    while True:
        problem.n_predicted = 0
        start = time.process_time()
        values, se = _quiet(way, problem, effort, seed)
        taken = time.process_time() - start
        spent += taken
        line = {
            "way": name,
            "problem": problem.name,
            "seed": seed,
            "effort": effort,
            "cpu": taken,
            "rows": problem.n_predicted,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
            "values": values,
            "se": se,
        }
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        is_exact = values == last and se is not None and not any(se)
        if is_exact or spent + _GROWTH * taken > seconds:
            return
        effort, last = effort * _GROWTH, values


def _quiet(
    way: Way, problem: Problem, effort: int, seed: int
) -> tuple[list[float], list[float] | None]:
    nowhere = io.StringIO()
    with contextlib.redirect_stderr(nowhere), contextlib.redirect_stdout(nowhere):
        found = way.estimate(problem, effort, seed)
    return found.values.tolist(), None if found.se is None else found.se.tolist()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]))
