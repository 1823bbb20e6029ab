"""Run dsage for a long time and with induced faults, and compare all results with undisturbed runs.

``python tools/soak.py`` explains a model 500 times in one process and watches memory, open files
and threads; kills a run with a checkpoint 50 times and resumes it; fills the disk; kills workers of
a pool and of a Dask cluster, and its scheduler. All results must equal those of undisturbed runs,
to the bit. The figures are written to ``benchmarks/results/soak.md``; the exit code shows whether
all checks passed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "benchmarks" / "results" / "soak.md"
# Growth over the second half of the explains that counts as flat, in MB.
_FLAT = 8.0
_WAIT = 240.0


def make_case() -> tuple[Any, pd.DataFrame, np.ndarray[Any, Any]]:
    """Return a forest and its rows."""
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 4)), columns=["a", "b", "c", "d"])
    X["b"] += X["a"]
    y = (X["a"] + np.sin(2 * X["c"]) + 0.3 * rng.normal(size=200)).to_numpy()
    return RandomForestRegressor(5, max_depth=5, random_state=0).fit(X, y), X, y


def explain(seed: int = 0, n_orderings: int = 16, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the values and errors of a run."""
    import dsage

    model, X, y = make_case()
    given: dict[str, Any] = {"sampler": "gaussian", "sampler_check": False, "exact": "never"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = dsage.explain(
            *(model, X[:100], y[:100], X[100:], y[100:]),
            random_state=seed,
            progress=False,
            n_orderings=n_orderings,
            **(given | options),
        )
    return {"values": found.values.tolist(), "se": found.se.tolist()}


# One process


def _handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _resident() -> float:
    """Return the memory of this process, in MB."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def soak(n_runs: int) -> dict[str, Any]:
    """Explain again and again; return what grew over the second half."""
    whole = [explain(seed) for seed in range(5)]
    looks: list[tuple[float, int, int]] = []
    n_other = 0
    for number in range(n_runs):
        n_other += explain(number % 5) != whole[number % 5]
        if number in (n_runs // 2, n_runs - 1):
            gc.collect()
            looks.append((_resident(), _handles(), threading.active_count()))
    (memory, handles, threads), last = looks
    growth = last[0] - memory
    is_flat = growth < _FLAT and last[1] <= handles and last[2] <= threads
    text = (
        f"{growth:+.1f} MB ({memory:.0f} to {last[0]:.0f}), {last[1] - handles:+d} open files,"
        f" {last[2] - threads:+d} threads over the second half"
    )
    return {"n": n_runs, "n_other": n_other, "text": text, "is_right": is_flat and not n_other}


# Kills


def _program(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--work", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _work(path: str, pause: str, n_orderings: str) -> None:
    """Run with a checkpoint at every look, and print the result; the part of a killed process."""
    import dsage
    from dsage.estimate import Checkpoint

    del dsage
    _slow_down(float(pause))
    found = explain(n_orderings=int(n_orderings), checkpoint=Checkpoint(path, every=0.0))
    sys.stdout.write(json.dumps(found))


def _slow_down(pause: float) -> None:
    """Let every state that is written take a while, so that kills hit different places."""
    from dsage.estimate.running import checkpoint

    save = checkpoint.Checkpoint.save

    def slowly(self: Any, estimation: Any, *, is_last: bool = False) -> None:  # noqa: ANN401
        save(self, estimation, is_last=is_last)
        time.sleep(pause)

    checkpoint.Checkpoint.save = slowly  # type: ignore[method-assign]


def kill(n_kills: int, n_orderings: int = 512) -> dict[str, Any]:
    """Kill a run at random times after its first state, and resume it to its end.

    When it reaches its end before it is killed, it starts over.
    """
    whole = explain(n_orderings=n_orderings)
    rng = np.random.default_rng(0)
    n_other = n_done = n_ends = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.state"
        while n_done < n_kills:
            before = path.stat().st_mtime_ns if path.exists() else 0
            process = _program(path, 0.05, n_orderings)
            deadline = time.monotonic() + _WAIT
            # A state of its own, so that every process gets further than the one before.
            while process.poll() is None and time.monotonic() < deadline:
                if path.exists() and path.stat().st_mtime_ns != before:
                    time.sleep(float(rng.uniform(0.0, 0.3)))
                    break
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            output = process.communicate()[0]
            if process.returncode == 0:
                n_ends += 1
                n_other += json.loads(output) != whole
                for file in Path(folder).iterdir():
                    file.unlink()
            else:
                n_done += 1
        output = _program(path, 0.0, n_orderings).communicate()[0]
        n_ends += 1
        n_other += json.loads(output) != whole
        left = sorted(each.name for each in Path(folder).iterdir())
    is_tidy = set(left) <= {"run.state", "run.state.previous"}
    text = f"{n_ends} resumed runs reached their end; left in the folder: {', '.join(left)}"
    return {"n": n_done, "n_other": n_other, "text": text, "is_right": not n_other and is_tidy}


# Disks


def fill_disk(n_orderings: int = 64) -> dict[str, Any]:
    """Run with a limit of the size of files, so that no state, report or result can be written."""
    import dsage

    whole = explain(n_orderings=n_orderings)
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "report.html").write_text("old")
        model, X, y = make_case()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = dsage.explain(model, X, y, random_state=0, progress=False, n_orderings=8)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
        try:
            n_other = int(explain(n_orderings=n_orderings, checkpoint=path / "a.state") != whole)
            writers: dict[str, Callable[[Path], object]] = {
                "report.html": found.report,
                "run.dsage": found.save,
                "values.json": found.to_json,
            }
            for name, write in writers.items():
                try:
                    write(path / name)
                except OSError as error:
                    outcomes[name] = error.strerror
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        left = sorted(each.name for each in path.iterdir())
        is_old = (path / "report.html").read_text() == "old"
    is_right = not n_other and is_old and left == ["report.html"] and len(outcomes) == len(writers)
    text = f"{len(outcomes)} writers failed clearly, the old report is whole, no half file is left"
    return {"n": 1 + len(writers), "n_other": n_other, "text": text, "is_right": is_right}


# Workers


class Deadly:
    """A model that kills the worker that it is in, a few times."""

    def __init__(self, model: Any, folder: str, n_deaths: int, home: int) -> None:  # noqa: ANN401
        self.model, self.folder, self.n_deaths, self.home = model, folder, n_deaths, home

    def predict(self, X: Any) -> Any:  # noqa: ANN401
        """Predict, or end the process."""
        if os.getpid() != self.home and len(list(Path(self.folder).iterdir())) < self.n_deaths:
            (Path(self.folder) / f"{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.model.predict(X)


class Slow:
    """A model that takes long enough for a scheduler to die."""

    def __init__(self, model: Any, pause: float) -> None:  # noqa: ANN401
        self.model, self.pause = model, pause

    def predict(self, X: Any) -> Any:  # noqa: ANN401
        """Predict after a pause."""
        time.sleep(self.pause)
        return self.model.predict(X)


def _explain_by(model: Any, **options: Any) -> list[float]:  # noqa: ANN401
    import dsage

    _, X, y = make_case()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = dsage.explain(
            *(model, X[:100], y[:100], X[100:], y[100:]),
            random_state=0,
            progress=False,
            n_orderings=32,
            sampler="gaussian",
            sampler_check=False,
            exact="never",
            loss="squared_error",
            **options,
        )
    values: list[float] = found.values.tolist()
    return values


def lose_workers() -> dict[str, Any]:
    """Let a worker of a pool die: the error says so, and the same call resumes without it."""
    model, _, _ = make_case()
    whole = _explain_by(model)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as states:
        state = Path(states) / "run.state"
        deadly = Deadly(model, folder, 1, os.getpid())
        try:
            _explain_by(deadly, n_jobs=2, checkpoint=state)
            told = False
        except RuntimeError as error:
            told = "worker processes must be running" in str(error)
        n_other = int(_explain_by(deadly, n_jobs=2, checkpoint=state) != whole)
    text = "a dead worker of joblib is told, and the same call resumes"
    return {"n": 1, "n_other": n_other, "text": text, "is_right": told and not n_other}


def lose_cluster() -> dict[str, Any]:
    """Let workers of a Dask cluster die, which nobody notices, and then its scheduler."""
    import joblib
    from distributed import Client, LocalCluster

    model, _, _ = make_case()
    whole = _explain_by(model)
    n_other = 0
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as states:
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        )
        with cluster, Client(cluster), joblib.parallel_config(backend="dask"):
            n_other += _explain_by(Deadly(model, folder, 2, os.getpid())) != whole
        n_died = len(list(Path(folder).iterdir()))
        state = Path(states) / "run.state"
        told = _lose_scheduler(Slow(model, 0.2), state)
        is_kept = state.exists()
        n_other += _explain_by(Slow(model, 0.0), checkpoint=state) != whole
    text = f"{n_died} Dask workers died unnoticed; a dead scheduler is told, a local run resumes"
    is_right = told and is_kept and not n_other and n_died == 2
    return {"n": n_died + 1, "n_other": n_other, "text": text, "is_right": is_right}


def _lose_scheduler(model: Any, state: Path) -> bool:  # noqa: ANN401
    """Return whether a run says that its scheduler has died."""
    import joblib
    from distributed import Client

    from dsage.estimate import Checkpoint

    port = 20_000 + os.getpid() % 20_000
    address = f"tcp://127.0.0.1:{port}"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", str(port), "--no-show"],
        **quiet,
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1"], **quiet
    )
    try:
        with Client(address, timeout=120) as client, joblib.parallel_config(backend="dask"):
            client.wait_for_workers(1, timeout=120)

            def end() -> None:
                while not state.exists():
                    time.sleep(0.05)
                scheduler.kill()

            threading.Thread(target=end, daemon=True).start()
            try:
                _explain_by(model, checkpoint=Checkpoint(state, every=0.0))
            except Exception as error:
                return "scheduler" in str(error) or "cluster" in str(error)
            return False
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


def main() -> None:
    """Run all parts, or some."""
    parts: dict[str, tuple[str, Callable[[argparse.Namespace], dict[str, Any]]]] = {
        "explains": ("explains in one process", lambda options: soak(options.explains)),
        "kills": ("kills of a run that resumes", lambda options: kill(options.kills)),
        "disk": ("writes to a full disk", lambda _: fill_disk()),
        "workers": ("deaths in a pool of processes", lambda _: lose_workers()),
        "cluster": ("deaths of Dask workers and scheduler", lambda _: lose_cluster()),
    }
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"some of: {', '.join(parts)}")
    parser.add_argument("--explains", type=int, default=500)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--out", type=Path, help=f"the page; by default {PAGE.name} for all parts")
    options = parser.parse_args()
    if unknown := [name for name in options.parts if name not in parts]:
        parser.error(f"unknown parts: {unknown}")
    lines, is_right = [], True
    for name in options.parts or parts:
        start = time.perf_counter()
        found = parts[name][1](options)
        seconds = time.perf_counter() - start
        is_right &= found["is_right"]
        verdict = "yes" if found["is_right"] else "NO"
        cells = [parts[name][0], f"{found['n']:,}", f"{found['n_other']:,}", found["text"], verdict]
        lines.append("| " + " | ".join([*cells, f"{seconds:.0f}"]) + " |")
        print(lines[-1], flush=True)
    page = [
        "# Long runs and faults",
        "",
        "`python tools/soak.py` (`make soak`) wrote this page. Every result is compared with that",
        "of an undisturbed run; *other results* counts those that differ in any bit.",
        "",
        "| what | how often | other results | found | as it should be | seconds |",
        "|---|---|---|---|---|---|",
        *lines,
    ]
    if options.out is not None or not options.parts:
        (options.out or PAGE).write_text("\n".join(page) + "\n", encoding="utf-8")
    sys.exit(not is_right)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        _work(*sys.argv[2:])
    else:
        main()
