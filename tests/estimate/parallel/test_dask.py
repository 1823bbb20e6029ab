import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import dying_scheduler
from dsage.estimate import as_stopping, run
from dsage.estimate.parallel import cluster
from dsage.games import LossGame
from fragile import Calls, Clinging, Mortal, Odd, Traveller, forgets
from small_games import ORACLE, exact_sampler, gaussian_case, gaussian_game

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.cluster

CASE = gaussian_case()
X, Y = CASE.sample(60, np.random.default_rng(0))
# A model with jobs of its own: they must not reach the bits.
FOREST = RandomForestRegressor(3, n_jobs=2, random_state=0).fit(X, Y)
LOCAL = {
    "processes": True,
    "threads_per_worker": 1,
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, **LOCAL) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def _two_workers(request):
    """Wait for workers that are coming back from the death of the last test."""
    if "client" in request.fixturenames:
        request.getfixturevalue("client").wait_for_workers(2, timeout=120)


def drawn_game(model):
    return LossGame(
        model, exact_sampler(CASE), X, Y, loss="squared_error", n_draws=4, random_state=1
    )


def on_cluster(game, **options):
    with joblib.parallel_config(backend="dask"):
        return run(game, random_state=0, **options)


def same(one, other):
    for name in ("values", "se_orderings", "se_draws", "se_rows", "df", "share_skipped"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("n_orderings", "n_units", "n_evaluated", "n_shared", "is_exact"):
        assert getattr(one, name) == getattr(other, name), name
    return True


CASES = {
    "plain": (lambda: drawn_game(FOREST), {"exact": "never"}),
    "shared": (lambda: drawn_game(FOREST), {"oracle": ORACLE, "exact": "never"}),
    "exact": (lambda: drawn_game(FOREST), {"oracle": ORACLE, "exact": "always"}),
    "affine": (lambda: gaussian_game(CASE, X, Y), {"oracle": ORACLE, "estimand": "sage"}),
}


@pytest.mark.filterwarnings("ignore:Skipping by separation")
@pytest.mark.parametrize("name", CASES)
def test_one_job_two_jobs_and_a_cluster_give_the_same_bits(client, name):
    make, options = CASES[name]
    game, rule = make(), as_stopping(n_orderings=24)
    alone = run(game, random_state=0, stopping=rule, n_jobs=1, **options)
    with joblib.parallel_config(backend="threading"):
        assert same(alone, run(game, random_state=0, stopping=rule, n_jobs=2, **options))
    assert same(alone, on_cluster(game, stopping=rule, **options))


def test_progress_shows_on_a_cluster(client, capsys):
    rule = as_stopping(n_orderings=32)
    on_cluster(drawn_game(FOREST), exact="never", stopping=rule, progress=True)
    assert "estimating: error" in capsys.readouterr().err


def test_model_and_data_travel_once_to_each_worker(client, tmp_path, monkeypatch):
    sent = []
    ask = client.run

    def noting(work, *given, **options):
        sent.extend(options["workers"] for each in given if isinstance(each, np.ndarray))
        return ask(work, *given, **options)

    monkeypatch.setattr(client, "run", noting)
    game = drawn_game(Traveller(tmp_path))
    for n_orderings in (40, 80):
        on_cluster(game, stopping=as_stopping(n_orderings=n_orderings), exact="never")
    unpacked = Counter(pids_in(tmp_path / "unpacked"))
    assert unpacked == dict.fromkeys(workers_of(client), 1)
    assert set(pids_in(tmp_path / "asked")) <= workers_of(client)
    assert [set(workers) for workers in sent] == [set(client.nthreads())]


def test_the_options_of_the_backend_reach_dask(client, tmp_path):
    game = drawn_game(Traveller(tmp_path))
    chosen, pid = next(iter(client.run(os.getpid).items()))
    with joblib.parallel_config(backend="dask", workers=[chosen]):
        run(game, stopping=as_stopping(n_orderings=16), random_state=0, exact="never")
    assert set(pids_in(tmp_path / "asked")) == {pid}


def test_threads_of_one_worker_give_the_same_bits():
    game, rule = drawn_game(FOREST), as_stopping(n_orderings=24)
    alone = run(game, random_state=0, stopping=rule, exact="never")
    options = {"processes": False, "protocol": "inproc://", "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=3, **options) as workers,
        distributed.Client(workers, set_as_default=False) as client,
        joblib.parallel_config(backend="dask", client=client),
    ):
        assert same(alone, run(game, random_state=0, stopping=rule, exact="never"))


@pytest.mark.interrupts
def test_an_interrupt_returns_what_is_known_and_leaves_the_cluster_usable(client):
    game, rule = drawn_game(FOREST), as_stopping(n_orderings=16)
    main = threading.main_thread().ident
    soon = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    endless = Calls(as_stopping(n_orderings=10**9), 16, lambda _: soon.start())
    # A shell starts what it runs in the background with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = on_cluster(game, stopping=endless, exact="never")
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.interrupted
    assert result.n_orderings >= 16
    alone = run(game, random_state=0, stopping=rule, exact="never")
    assert same(alone, on_cluster(game, stopping=rule, exact="never"))


@pytest.mark.parametrize("backend", ["dask", "loky"])
def test_a_model_that_cannot_be_unpacked_elsewhere_is_a_clear_error(client, backend):
    game = drawn_game(Clinging())
    with (
        joblib.parallel_config(backend=backend, n_jobs=2),
        pytest.raises(FileNotFoundError, match=r"^weights.bin\nRaised when a worker unpacked"),
    ):
        run(game, stopping=as_stopping(n_orderings=4), random_state=0)


@pytest.mark.parametrize("backend", ["dask", "loky"])
def test_an_error_that_cannot_be_unpickled_is_told_all_the_same(client, backend):
    game = drawn_game(Odd())
    with (
        joblib.parallel_config(backend=backend, n_jobs=2),
        pytest.raises(RuntimeError, match=r"^OddError: no luck in a worker\nRaised by") as caught,
    ):
        run(game, stopping=as_stopping(n_orderings=4), random_state=0)
    assert "fragile.py" in caught.value.__notes__[0]


def test_a_client_that_was_closed_is_a_clear_error(client):
    with distributed.Client(client.scheduler_info()["address"], set_as_default=False) as other:
        context = joblib.parallel_config(backend="dask", client=other)
    with context, pytest.raises(ConnectionError, match=r"^the Dask scheduler must be reachable"):
        run(drawn_game(FOREST), stopping=as_stopping(n_orderings=4), random_state=0)


def test_a_cluster_without_workers_is_a_clear_error():
    with (
        distributed.LocalCluster(n_workers=0, **LOCAL) as workers,
        distributed.Client(workers, set_as_default=False) as client,
        joblib.parallel_config(backend="dask", client=client, wait_for_workers_timeout=0.5),
        pytest.raises(ConnectionError, match=r"^the Dask cluster must be one with workers"),
    ):
        run(drawn_game(FOREST), stopping=as_stopping(n_orderings=4), random_state=0)


def test_workers_that_never_get_the_model_are_an_error(client, monkeypatch):
    monkeypatch.setattr(cluster, "_MOST_LOSSES", 2)
    with joblib.parallel_config(backend="dask"):
        backend, _ = joblib.parallel.get_active_backend()
    with pytest.raises(
        ConnectionError, match=r"^the Dask cluster must be one whose workers stay alive"
    ):
        cluster.Cluster(backend).results(forgets, "token", np.zeros(1, dtype=np.uint8), [()])


@pytest.mark.kills
def test_a_worker_that_is_killed_in_the_middle_of_a_task_changes_no_bit(client, tmp_path):
    file = tmp_path / "die"
    game, rule = drawn_game(Mortal(FOREST, file)), as_stopping(n_orderings=40)
    alone = run(game, random_state=0, stopping=rule, exact="never")
    before = workers_of(client)
    result = on_cluster(game, stopping=Calls(rule, 16, lambda _: file.touch()), exact="never")
    assert same(alone, result)
    assert not file.exists()
    client.wait_for_workers(2, timeout=120)
    assert len(workers_of(client) & before) == 1


@pytest.mark.kills
def test_when_all_workers_die_others_go_on_with_the_same_bits(client):
    game, rule = drawn_game(FOREST), as_stopping(n_orderings=40)
    alone = run(game, random_state=0, stopping=rule, exact="never")

    def kill_all(_):
        for pid in workers_of(client):
            os.kill(pid, signal.SIGKILL)

    assert same(alone, on_cluster(game, stopping=Calls(rule, 16, kill_all), exact="never"))


@pytest.mark.kills
def test_a_task_that_kills_every_worker_is_an_error_and_no_wait():
    # Workers that come back may be killed again: no test has to go on with them.
    with (
        distributed.LocalCluster(n_workers=1, **LOCAL) as workers,
        distributed.Client(workers) as client,
    ):
        client.cluster.scheduler.allowed_failures = 0
        with pytest.raises(
            RuntimeError, match=r"^a task must be possible to finish on a worker; got"
        ):
            on_cluster(drawn_game(Mortal(FOREST)), stopping=as_stopping(n_orderings=4))


@pytest.mark.kills
def test_the_death_of_the_scheduler_is_a_clear_error_and_the_checkpoint_goes_on_here(tmp_path):
    tests = Path(dying_scheduler.__file__).parent
    path = os.pathsep.join([str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    # In a session of its own, so that nothing outlives the test.
    script = subprocess.Popen(
        [sys.executable, str(tests / "dying_scheduler.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        told, _ = script.communicate(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(script.pid, signal.SIGKILL)
    assert "the Dask scheduler must be" in told
    assert "state.npz" in told
    game = dying_scheduler.game(tmp_path / "nobody")
    reached = []
    rule = Calls(dying_scheduler.RULE, 0, lambda progress: reached.append(progress.n_orderings))
    resumed = run(game, stopping=rule, checkpoint=tmp_path / "state.npz", **dying_scheduler.OPTIONS)
    assert reached[0] >= dying_scheduler.DEATH
    assert same(run(game, stopping=dying_scheduler.RULE, **dying_scheduler.OPTIONS), resumed)


def pids_in(file):
    return list(map(int, file.read_text().split()))


def workers_of(client):
    return set(client.run(os.getpid).values())
