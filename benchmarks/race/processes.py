"""Run a module of the race in the environment of a package, with one thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.race.environments import environment

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".race"


def run_module(
    package: str,
    module: str,
    arguments: Sequence[str],
    seconds: float,
    on_fault: Callable[[str], None] = print,
) -> Iterator[dict[str, Any]]:
    """Yield the lines of JSON that a module of the race prints; it is ended after some time.

    If it fails or is ended, `on_fault` is called with the reason.
    """
    own = package == "dsage"
    python = sys.executable if own else str(environment(package, FOLDER / "environments"))
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    variables = {key: each for key, each in os.environ.items() if key != "PYTHONPATH"} | one
    if own:
        variables["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    try:
        done = subprocess.run(
            [python, "-m", f"benchmarks.race.{module}", package, *arguments],
            cwd=ROOT,
            env=variables,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        text, problem = done.stdout, done.stderr if done.returncode else ""
    except subprocess.TimeoutExpired as error:
        text, problem = (error.stdout or b"").decode(), f"more than {seconds:g} s"
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)
    if problem:
        on_fault(problem.strip().splitlines()[-1])
