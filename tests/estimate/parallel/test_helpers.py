"""Processes that help without being asked to: the same results to the bit, and only where safe."""

import logging
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from dsage.estimate import as_stopping, run
from dsage.estimate.parallel import helpers, spare
from dsage.estimate.parallel.work import TooLargeError, pack
from dsage.games import LossGame
from dsage.games.base import Coalitions, ask
from dsage.models.copies import may_be_copied
from dsage.samplers import FunctionSampler, Gaussian


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 4))
    return X, X[:, 0] + X[:, 1] * X[:, 2]


@pytest.fixture(scope="module")
def forest(data):
    return RandomForestRegressor(5, random_state=0).fit(*data)


def _game(model, data):
    X, y = data
    return LossGame(model, Gaussian().fit(X), X, y, random_state=0)


def _run(game, **options):
    rule = as_stopping(n_orderings=60)
    return run(game, stopping=rule, exact="never", random_state=0, **options)


@pytest.fixture
def two_processors(monkeypatch):
    """An idle machine with two processors."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.4, 0.4, 0.4), raising=False)
    monkeypatch.setattr(spare, "free_bytes", lambda: 2**34)


@pytest.fixture
def long_runs(monkeypatch, two_processors):
    """Let runs be long from their start on."""
    monkeypatch.setattr(helpers, "_SECONDS_ALONE", 0.0)


def test_a_helper_that_dies_is_replaced_by_this_process(data, forest, long_runs, monkeypatch):
    def broken(self, requests, *, has_game=False):
        if has_game:
            raise RuntimeError("the executor was shut down")
        done = helpers.Future()
        done.set_result(helpers.Done([], 0.0, []))
        return done

    monkeypatch.setattr(helpers.Helpers, "_send", broken)
    alone, together = _run(_game(forest, data), n_jobs=1), _run(_game(forest, data))
    np.testing.assert_array_equal(together.values, alone.values)


def test_an_error_of_a_helper_is_looked_at_here(data, forest, long_runs, monkeypatch):
    def failing(self, requests, *, has_game=False):
        done = helpers.Future()
        done.set_result(ValueError("only there") if has_game else helpers.Done([], 0.0, []))
        return done

    monkeypatch.setattr(helpers.Helpers, "_send", failing)
    alone, together = _run(_game(forest, data), n_jobs=1), _run(_game(forest, data))
    np.testing.assert_array_equal(together.values, alone.values)


def test_there_are_no_helpers_where_the_user_decides_or_copies_are_unsafe(
    data, forest, monkeypatch, two_processors
):
    game = _game(forest, data)
    assert helpers._is_allowed(game)
    assert not helpers._is_allowed(_game(forest.predict, data))
    with joblib.parallel_config(n_jobs=1):
        assert not helpers._is_allowed(game)
    with joblib.parallel_config(backend="threading"):
        assert not helpers._is_allowed(game)
    elsewhere = []
    thread = threading.Thread(target=lambda: elsewhere.append(helpers._is_allowed(game)))
    thread.start()
    thread.join()
    assert elsewhere == [False]
    for name, is_right in {"/usr/bin/uwsgi": False, "": False, "/opt/python3.13": True}.items():
        monkeypatch.setattr(sys, "executable", name)
        assert helpers._is_allowed(game) == is_right
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert not helpers._is_allowed(game)
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
    assert helpers._is_allowed(game)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 1)
    assert not helpers._is_allowed(game)


def _draw_zeros(x_known, known, rng):
    return np.zeros((len(x_known), (~known).sum()))


class _Own(Gaussian):
    pass


@pytest.mark.parametrize("sampler", [FunctionSampler(_draw_zeros), _Own()])
def test_games_of_foreign_samplers_are_not_copied(data, forest, sampler):
    X, y = data
    assert _game(forest, data).may_be_copied
    assert not LossGame(forest, sampler.fit(X), X, y).may_be_copied


def test_models_of_scikit_learn_may_be_copied_and_others_not(data):
    class Own(RandomForestRegressor):
        pass

    scaled = make_pipeline(StandardScaler(), RandomForestRegressor(2))
    assert may_be_copied(scaled)
    assert may_be_copied(make_pipeline(FunctionTransformer(np.log1p), RandomForestRegressor(2)))
    assert may_be_copied(make_pipeline(FunctionTransformer(np.abs), RandomForestRegressor(2)))
    assert may_be_copied(OneHotEncoder(dtype=np.float64))
    assert not may_be_copied(make_pipeline(FunctionTransformer(lambda X: X), Own(2)))
    assert not may_be_copied(FunctionTransformer(_draw_zeros))
    assert not may_be_copied(make_pipeline(StandardScaler(), Own(2)))
    assert not may_be_copied(Own(2))
    assert not may_be_copied(np.sin)
    patched = RandomForestRegressor(2)
    patched.predict = np.sin
    assert not may_be_copied(patched)


def test_boosters_with_threads_of_their_own_are_not_copied():
    lightgbm = pytest.importorskip("lightgbm")
    assert not may_be_copied(lightgbm.LGBMRegressor())
    assert not may_be_copied(lightgbm.LGBMRegressor(n_jobs=1, device_type="gpu"))
    assert may_be_copied(lightgbm.LGBMRegressor(n_jobs=1))


def test_a_busy_machine_gets_no_helpers_and_is_looked_at_again(
    data, forest, long_runs, monkeypatch
):
    loads = [2.0, 2.0, 2.0]
    monkeypatch.setattr(os, "getloadavg", lambda: loads)
    monkeypatch.setattr(helpers.Helpers, "_send", lambda self, requests: helpers.Future())
    found = helpers.Helpers()
    game = _game(forest, data)
    found._leave(game)
    found._look(game, 5.0)
    assert not found._loading
    loads[0] = 0.3
    found._look(game, 9.0)
    assert not found._loading
    found._look(game, 10.0)
    assert len(found._loading) == 1
    assert found.n_working == 0


@pytest.mark.parametrize(
    ("free", "n_bytes", "n_idle"), [(2**34, 0, 3), (2**30, 0, 1), (2**29, 0, 0), (2**31, 2**28, 1)]
)
def test_helpers_take_at_most_half_of_the_free_memory(
    monkeypatch, two_processors, free, n_bytes, n_idle
):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(spare, "free_bytes", lambda: free)
    assert spare.count_idle(n_bytes) == n_idle


def test_free_memory_is_what_machine_and_control_groups_leave(tmp_path, monkeypatch):
    machine = spare.free_bytes()
    assert machine is not None
    group = tmp_path / "job"
    group.mkdir()
    (group / "memory.max").write_text("4096000\n")
    (group / "memory.current").write_text("3000000\n")
    (group / "memory.stat").write_text("anon 1\ninactive_file 500000\n")
    assert spare._left(group, "memory.max", "memory.current") == 1_596_000
    (group / "memory.max").write_text("max\n")
    assert spare._left(group, "memory.max", "memory.current") is None
    assert spare._left(tmp_path, "memory.max", "memory.current") is None
    monkeypatch.setattr(spare, "_of_groups", lambda: [1000])
    assert spare.free_bytes() == 1000


def test_large_games_are_not_packed(data, forest, long_runs, monkeypatch, caplog):
    game = _game(forest, data)
    _, payload = pack(game, None)
    with pytest.raises(TooLargeError):
        pack(game, None, payload.nbytes - 1)
    assert np.array_equal(pack(game, None, payload.nbytes)[1], payload)
    monkeypatch.setattr(helpers, "_MOST_BYTES", payload.nbytes - 1)
    found = helpers.Helpers()
    found._leave(game)
    with caplog.at_level(logging.INFO, "dsage"):
        found._look(game, 5.0)
    assert found._is_refused
    assert "no helper processes" in caplog.text


def test_a_forked_process_gets_helpers_of_its_own(monkeypatch):
    made = []

    def make(n_helpers, **options):
        made.append(n_helpers)
        return SimpleNamespace(
            _flags=SimpleNamespace(broken=False, shutdown=False), shutdown=lambda wait: None
        )

    monkeypatch.setattr(helpers, "ProcessPoolExecutor", make)
    executors = helpers._Executors()
    first = executors.get(1)
    assert executors.get(1) is first
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert executors.get(1) is not first
    assert made == [1, 1]


@pytest.mark.interrupts
def test_what_was_sent_is_cancelled_after_an_interrupt(data, forest, long_runs, monkeypatch):
    sent = []

    def waiting(self, requests, *, has_game=False):
        future = helpers.Future()
        if has_game:
            sent.append(future)
        else:
            future.set_result(helpers.Done([], 0.0, []))
        return future

    def interrupted(game, request):
        if sent:
            raise KeyboardInterrupt
        return ask(game, request)

    monkeypatch.setattr(helpers.Helpers, "_send", waiting)
    monkeypatch.setattr(helpers, "ask", interrupted)
    assert _run(_game(forest, data)).interrupted
    assert sent
    assert all(future.cancelled() for future in sent)


SCRIPT = """
import os, sys, time
os.close(0)
sys.stdin = None
import numpy as np, joblib
from sklearn.linear_model import Ridge
from dsage.estimate import as_stopping, run
from dsage.estimate.parallel import helpers, spare
from dsage.games import LossGame
from dsage.games.base import Coalitions, ask
from dsage.samplers import Gaussian
# There is no "if __name__ == '__main__'": a helper that ran this script again would say so.
print("begin", flush=True)
os.environ.pop("OMP_NUM_THREADS", None)
joblib.cpu_count = os.cpu_count = lambda: 2
spare.count_idle = helpers.count_idle = lambda n_bytes: 1
helpers._SECONDS_ALONE = 0.0
def slow(game, request):
    time.sleep(0.05)
    return ask(game, request)
helpers.ask = slow
X = np.random.default_rng(0).normal(size=(200, 4))
model = Ridge().fit(X, X[:, 0])
game = LossGame(model, Gaussian().fit(X), X, X[:, 0], random_state=0)
options = {"stopping": as_stopping(n_orderings=40), "exact": "never", "random_state": 0}
alone = run(game, n_jobs=1, **options)
n_helped = []
deadline = time.monotonic() + 60
# The first run starts the helper, which may take longer than the run.
while not any(n_helped) and time.monotonic() < deadline:
    together = run(game, progress=lambda outlook: n_helped.append(outlook.n_helpers), **options)
for name in ("values", "se_orderings", "se_draws", "se_rows"):
    assert np.array_equal(getattr(together, name), getattr(alone, name)), name
print("helped", max(n_helped), flush=True)
"""


def test_a_script_without_main_guard_and_stdin_is_helped_and_no_bit_changes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.split() == ["begin", "helped", "1"]


@pytest.mark.parametrize(
    ("load", "n_threads"), [(0.3, None), (4.2, None), (4.6, 1), (None, None)], ids=str
)
def test_an_overloaded_machine_gives_a_model_one_thread(monkeypatch, forest, data, load, n_threads):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(spare, "_load", lambda: load)
    used = []

    @contextmanager
    def watched(limit=None):
        used.append(limit)
        yield

    monkeypatch.setattr(helpers, "steady_digits", watched)
    game, request = _game(forest, data), Coalitions(np.ones((1, 4), bool), np.arange(5), 0)
    found = helpers.Helpers().answers(game, [request], None)
    assert used == [n_threads]
    np.testing.assert_array_equal(found.answers[0], game.risks(*request))
