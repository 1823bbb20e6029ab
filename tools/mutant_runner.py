"""Run tests on changed sources, each in a fork of a process that has imported the libraries.

Most of the time of a short test run goes into imports. This process imports everything but dsage,
reads jobs as lines of JSON, and answers each with a line: the exit status of pytest, negative for a
signal. A job has the folder `source`, which replaces ``src``, the file `tests` with names of tests,
and limits: `seconds` of processor time, and `wait` in seconds.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import pytest

# Imported once, so that the forks need not; plugins of pytest may not be among them.
_LIBRARIES = (
    "joblib",
    "networkx",
    "pandas",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.mixture",
    "sklearn.pipeline",
)


def main() -> None:
    """Answer jobs until there are no more."""
    for name in _LIBRARIES:
        import_module(name)
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _run_tests(job)
        print(_wait(pid, job["wait"]), flush=True)


def _run_tests(job: dict[str, Any]) -> NoReturn:
    """Run tests in this process, silently, and end it."""
    status = 1
    try:
        # Processes that tests start end with this one.
        os.setsid()
        limit = int(job["seconds"])
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        sys.path.insert(0, job["source"])
        os.environ["PYTHONPATH"] = job["source"]
        sys.dont_write_bytecode = True
        options = ["-q", "-x", "-p", "no:cacheprovider", f"@{job['tests']}"]
        status = int(pytest.main(options))
    finally:
        os._exit(status)


def _wait(pid: int, seconds: float) -> int:
    """Return the exit status of a process; one that takes too long is killed with its children."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.killpg(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            break
        time.sleep(0.05)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
