"""Run on a Dask cluster: the same values as in one process, even if a worker is killed on the way.

Run: python examples/cluster.py (needs: pip install 'dsage[dask]')
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field

import joblib
from distributed import Client, LocalCluster
from sklearn.ensemble import RandomForestRegressor

from dsage.datasets import paper_graph
from dsage.estimate import Estimate, NOrderings, run
from dsage.games import LossGame
from dsage.samplers import Gaussian

DATA = paper_graph("dag_s(2)")


def forest_game() -> LossGame:
    """Fit a forest and make its game."""
    train, test = DATA.sample(1_000, random_state=0), DATA.sample(256, random_state=1)
    X, y = train.drop(columns=DATA.target), train[DATA.target]
    model = RandomForestRegressor(20, random_state=0).fit(X, y)
    rows, target = test.drop(columns=DATA.target), test[DATA.target]
    return LossGame(model, Gaussian().fit(X), rows, target, random_state=0)


@dataclass
class KillsAWorker:
    """A rule for showing: it stops as another one does, and kills a worker half-way."""

    client: Client
    rule: NOrderings
    killed: list[int] = field(default_factory=list)

    def reason(self, progress: Estimate) -> str | None:
        """Say why it is enough, if it is."""
        if not self.killed and progress.n_orderings >= self.rule.n // 2:
            pid = next(iter(self.client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            self.killed.append(pid)
        return self.rule.reason(progress)


def main() -> None:
    """Estimate in this process and on two worker processes, and compare."""
    game, rule = forest_game(), NOrderings(96)
    start = time.perf_counter()
    alone = run(game, exact="never", stopping=rule, random_state=0)
    print(f"One process: {time.perf_counter() - start:.1f} s")
    workers = LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )
    with workers, Client(workers) as client, joblib.parallel_config(backend="dask"):
        start = time.perf_counter()
        calm = run(game, exact="never", stopping=rule, random_state=0)
        print(f"Two workers, which start on the way: {time.perf_counter() - start:.1f} s")
        rough = run(game, exact="never", stopping=KillsAWorker(client, rule), random_state=0)
    for name, result in (("two workers", calm), ("one of them killed", rough)):
        is_same = bool((result.values == alone.values).all() and (result.se == alone.se).all())
        print(f"The same to the bit with {name}: {is_same}")
    print(alone.to_frame()[["feature", "value", "se"]].round(3).to_string(index=False))


if __name__ == "__main__":
    main()
