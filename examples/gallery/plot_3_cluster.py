"""
On a cluster
============

A run on a Dask cluster gives the same values as a run in one process, to the bit, even if a
worker is killed on the way. The cluster here has two worker processes on this machine; an
address of yours in its place is all that changes.

It needs ``pip install 'dsage[dask]'``. As with all that starts processes, a script does so
under ``if __name__ == "__main__"`` only.
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
# What is to be computed
# ----------------------
# A forest on data of one of the paper's models, and 64 orderings.

DATA = paper_graph("dag_s(2)")
RULE = NOrderings(64)


def forest_game() -> LossGame:
    """Fit a forest and make its game."""
    train, test = DATA.sample(1_000, random_state=0), DATA.sample(256, random_state=1)
    X, y = train.drop(columns=DATA.target), train[DATA.target]
    model = RandomForestRegressor(20, random_state=0).fit(X, y)
    rows, target = test.drop(columns=DATA.target), test[DATA.target]
    return LossGame(model, Gaussian().fit(X), rows, target, random_state=0)


# %%
# A rule that does harm
# ---------------------
# A stopping rule is asked again and again while a run goes on. This one kills a worker
# half-way.


@dataclass
class KillsAWorker:
    """A rule for showing: it stops as another one does, and kills a worker half-way."""

    client: Client
    rule: NOrderings
    killed: list[int] = field(default_factory=list)

    def reason(self, progress: Estimate) -> StopReason | str | None:
        """Say why it is enough, if it is."""
        if not self.killed and progress.n_orderings >= self.rule.n // 2:
            pid = next(iter(self.client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            self.killed.append(pid)
        return self.rule.reason(progress)


# %%
# Three runs
# ----------
# In this process, on two workers, and on two workers of which one dies.
# ``joblib.parallel_config(backend="dask")`` is all that it takes; the same holds around
# :func:`dsage.explain`.


def three_runs() -> dict[str, tuple[Estimate, float]]:
    """Return the estimate of each run, and its seconds."""
    game, found = forest_game(), {}

    def timed(name: str, rule: object) -> None:
        start = time.perf_counter()
        result = run(game, exact="never", stopping=rule, random_state=0)
        found[name] = (result, time.perf_counter() - start)

    timed("one process", RULE)
    workers = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.ERROR,
    )
    with workers, Client(workers) as client, joblib.parallel_config(backend="dask"):
        timed("two workers", RULE)
        timed("one of them killed", KillsAWorker(client, RULE))
    return found


if __name__ == "__main__":
    runs = three_runs()
    alone = runs["one process"][0]
    for name, (result, seconds) in runs.items():
        is_same = bool((result.values == alone.values).all() and (result.se == alone.se).all())
        print(f"{name:<18} {seconds:4.1f} s, the same to the bit: {is_same}")

# %%
# The times say little here: the task is small, and the workers start on the way. What a cluster
# gains is in the benchmarks.

if __name__ == "__main__":
    figure, ax = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
    for shift, (name, (result, _)) in zip((0.2, 0.0, -0.2), runs.items(), strict=True):
        frame = result.to_frame().iloc[::-1]
        places = [place + shift for place in range(len(frame))]
        ax.errorbar(frame["value"], places, xerr=2 * frame["se"], fmt="o", ms=4, label=name)
    ax.set_yticks(range(len(frame)), frame["feature"])
    ax.set_xlabel("SAGE value, with two standard errors")
    ax.legend(frameon=False)
