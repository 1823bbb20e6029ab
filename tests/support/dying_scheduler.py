"""Run on a cluster whose scheduler is killed in the middle, and print what the user is told.

Run: python dying_scheduler.py FOLDER. The checkpoint is left in the folder.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
from sklearn.linear_model import LinearRegression

from dsage.estimate import as_stopping, run
from dsage.estimate.parallel import cluster
from dsage.estimate.running import checkpoint
from dsage.games import LossGame
from fragile import Calls, Mortal
from small_games import exact_sampler, gaussian_case

RULE, DEATH = as_stopping(n_orderings=80), 30
OPTIONS = {"exact": "never", "first_level": "none", "random_state": 0}


def game(file):
    """A game whose model kills the process that the file names."""
    case = gaussian_case()
    X, y = case.sample(60, np.random.default_rng(0))
    model = Mortal(LinearRegression().fit(X, y), file)
    return LossGame(
        model, exact_sampler(case), X, y, loss="squared_error", n_draws=4, random_state=1
    )


def command(name, *options):
    module = f"distributed.cli.dask_{name}"
    return subprocess.Popen(
        [sys.executable, "-m", module, "--host", "127.0.0.1", "--no-dashboard", *options],
        stderr=subprocess.DEVNULL,
    )


def main(folder):
    from distributed import Client

    address = folder / "scheduler.json"
    scheduler = command("scheduler", "--port", "0", "--scheduler-file", str(address))
    # It waits for the file of the scheduler.
    options = ("--scheduler-file", str(address), "--nthreads", "1", "--no-nanny")
    worker = command("worker", *options, "--local-directory", str(folder))
    while not address.exists():
        time.sleep(0.05)
    cluster._SECONDS_UNREACHABLE = 1.0
    # Every state is kept, however long that takes.
    checkpoint._SHARE = float("inf")
    file = folder / "kill"
    rule = Calls(RULE, DEATH, lambda _: file.write_text(str(scheduler.pid)))
    keep = checkpoint.Checkpoint(folder / "state.npz", every=0)
    try:
        with Client(scheduler_file=str(address)) as client:
            client.wait_for_workers(1)
            with joblib.parallel_config(backend="dask"):
                run(game(file), stopping=rule, checkpoint=keep, **OPTIONS)
    except ConnectionError as error:
        sys.stdout.write("\n".join([str(error), *error.__notes__]))
    finally:
        for each in (scheduler, worker):
            each.send_signal(signal.SIGKILL)
            each.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
