"""
On a cluster
============

A run on a Dask cluster returns exactly the same values as a run in one process, even if a worker
is killed in between. Here the cluster consists of two worker processes on this machine; to use
another cluster, pass its address to ``Client``.

This example needs ``pip install 'dsage[dask]'``. Scripts must start processes under
``if __name__ == "__main__"``.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from dataclasses import dataclass, field

import joblib
import matplotlib.pyplot as plt
from distributed import Client, LocalCluster
from sklearn.ensemble import RandomForestRegressor

from dsage.datasets import paper_graph
from dsage.estimate import Estimate, NOrderings, StopReason, run
from dsage.games import LossGame
from dsage.samplers import Gaussian

# %%
# The task
# --------
# We evaluate 64 orderings for a forest on simulated data.

DATA = paper_graph("dag_s(2)")
RULE = NOrderings(64)


def forest_game() -> LossGame:
    """Fit a forest and return its game."""
    train, test = DATA.sample(1_000, random_state=0), DATA.sample(256, random_state=1)
    X, y = train.drop(columns=DATA.target), train[DATA.target]
    model = RandomForestRegressor(20, random_state=0).fit(X, y)
    rows, target = test.drop(columns=DATA.target), test[DATA.target]
    return LossGame(model, Gaussian().fit(X), rows, target, random_state=0)


# %%
# A stopping rule that kills a worker
# -----------------------------------
# A run checks its stopping rule repeatedly. This rule kills a worker halfway through.


@dataclass
class KillWorker:
    """Stop like another rule, but kill a worker halfway through."""

    client: Client
    rule: NOrderings
    killed: list[int] = field(default_factory=list)

    def reason(self, progress: Estimate) -> StopReason | str | None:
        """Return why to stop, or None to continue."""
        if not self.killed and progress.n_orderings >= self.rule.n // 2:
            pid = next(iter(self.client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            self.killed.append(pid)
        return self.rule.reason(progress)


# %%
# Three runs
# ----------
# The first run uses this process, the second uses two workers, and in the third one of the
# workers is killed. ``joblib.parallel_config(backend="dask")`` selects the cluster; it also works
# with :func:`dsage.explain`.


def three_runs() -> dict[str, tuple[Estimate, float]]:
    """Return the estimate and the seconds of each run."""
    game, found = forest_game(), {}

    def time_run(name: str, rule: object) -> None:
        start = time.perf_counter()
        result = run(game, exact="never", stopping=rule, random_state=0)
        found[name] = (result, time.perf_counter() - start)

    time_run("one process", RULE)
    workers = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.ERROR,
    )
    with workers, Client(workers) as client, joblib.parallel_config(backend="dask"):
        time_run("two workers", RULE)
        time_run("one worker killed", KillWorker(client, RULE))
    return found


if __name__ == "__main__":
    runs = three_runs()
    alone = runs["one process"][0]
    for name, (result, seconds) in runs.items():
        is_same = bool((result.values == alone.values).all() and (result.se == alone.se).all())
        print(f"{name:<18} {seconds:4.1f} s, identical: {is_same}")

# %%
# These times are not meaningful, because the task is small and includes starting the workers.
# See the benchmarks for the gain from several processes.

if __name__ == "__main__":
    figure, ax = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
    for shift, (name, (result, _)) in zip((0.2, 0.0, -0.2), runs.items(), strict=True):
        frame = result.to_frame().iloc[::-1]
        places = [place + shift for place in range(len(frame))]
        ax.errorbar(frame["value"], places, xerr=2 * frame["se"], fmt="o", ms=4, label=name)
    ax.set_yticks(range(len(frame)), frame["feature"])
    ax.set_xlabel("SAGE value, with two standard errors")
    ax.legend(frameon=False)
