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
    monkeypatch.setattr(spare, "_ticks", lambda: None)
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
    [request] = _asked(1)
    found._look(game, request, 5.0)
    assert not found._loading
    loads[0] = 0.3
    found._look(game, request, 9.0)
    assert not found._loading
    found._look(game, request, 10.0)
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
    assert spare.count_idle(n_bytes, spare.Recently()) == n_idle


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
        found._look(game, _asked(1)[0], 5.0)
    assert found._is_refused
    assert "no helper processes" in caplog.text


@pytest.fixture
def pools(monkeypatch):
    """The executors that were made, with what happened to them."""
    made = []

    def make(n_helpers, **options):
        pool = SimpleNamespace(
            _flags=SimpleNamespace(broken=False, shutdown=False), options=options, ends=[]
        )

        def shutdown(*, wait):
            pool.ends.append(wait)

        pool.shutdown = shutdown
        made.append((n_helpers, pool))
        return pool

    monkeypatch.setattr(helpers, "ProcessPoolExecutor", make)
    return made


def test_a_forked_process_gets_helpers_of_its_own(monkeypatch, pools):
    executors = helpers._Executors()
    first = executors.get(1)
    assert executors.get(1) is first
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert executors.get(1) is not first
    assert [n_helpers for n_helpers, _ in pools] == [1, 1]
    # The other process needs it.
    assert not first.ends


@pytest.mark.parametrize("flag", ["broken", "shutdown", None])
def test_another_executor_ends_the_last_one_without_waiting(pools, flag):
    executors = helpers._Executors()
    first = executors.get(2)
    if flag is not None:
        setattr(first._flags, flag, True)
    second = executors.get(3 if flag is None else 2)
    assert second is not first
    assert first.ends == [False]
    assert executors.get(3 if flag is None else 2) is second
    assert not second.ends
    assert second.options["env"]["OMP_NUM_THREADS"] == "1"


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


class Executor:
    """Works in this process; the first answers to requests may be that the game is not there."""

    def __init__(self, n_loading=2, n_unknown=0):
        self.n_loading, self.n_unknown = n_loading, n_unknown
        self.sent, self.open, self.most_open = [], [], 0

    def submit(self, work, token, payload, requests):
        self.sent.append((payload is not None, len(requests)))
        future = helpers.Future()
        if payload is None and self.n_unknown:
            self.n_unknown -= 1
            future.set_result(None)
            return future
        done = work(token, payload, requests)
        if len(self.sent) <= self.n_loading:
            future.set_result(done)
            return future
        # Done with the next piece only, so that several are under way.
        warned = [("odd", RuntimeWarning, ("there.py", len(self.sent)))]
        self.open.append((future, done._replace(warned=warned)))
        self.most_open = max(self.most_open, len(self.open))
        return future

    def finish(self):
        for future, done in self.open:
            future.set_result(done)
        self.open = []


def _asked(n_requests):
    known = np.eye(4, dtype=bool)
    return [Coalitions(known, np.arange(5 * at, 5 * at + 5), at % 3) for at in range(n_requests)]


def _share(executor, monkeypatch, game, n_requests, meanwhile=None):
    """Answer requests with an executor; return the answers and what was reported."""
    pieces = []
    monkeypatch.setattr(helpers, "count_idle", lambda *_: executor.n_loading)
    monkeypatch.setattr(helpers._executors, "get", lambda n_helpers: executor)

    def here(game, request):
        executor.finish()
        return ask(game, request)

    def finish(sent, return_when):
        executor.finish()

    monkeypatch.setattr(helpers, "ask", here)
    monkeypatch.setattr(helpers, "wait", finish)
    found = helpers.Helpers()
    requests = _asked(n_requests)
    done = found.answers(game, requests, lambda *piece: pieces.append(piece), meanwhile)
    for request, answer in zip(requests, done.answers, strict=True):
        np.testing.assert_array_equal(answer, game.risks(*request))
    return found, done, pieces


def test_requests_are_shared_two_at_a_time_for_each_helper(data, forest, long_runs, monkeypatch):
    executor = Executor()
    found, done, pieces = _share(executor, monkeypatch, _game(forest, data), 20)
    # The game is sent to both, with a request that was answered; then others without it.
    assert executor.sent[:2] == [(True, 1)] * 2
    assert set(executor.sent[2:]) == {(False, 1)}
    assert executor.most_open == 4
    assert found.n_working == 2
    # Two were answered before the helpers had the game; then four of five are sent away.
    assert pieces[:3] == [(0, 20), (1, 20), (2, 20)]
    assert [n_all for _, n_all in pieces] == [20] * len(pieces)
    assert [n_done for n_done, _ in pieces] == sorted(n_done for n_done, _ in pieces)
    n_sent = len(executor.sent) - 2
    assert n_sent == 14
    assert len(done.warned) == n_sent
    assert done.seconds > 0


def test_the_last_request_is_answered_here(data, forest, long_runs, monkeypatch):
    executor = Executor()
    _share(executor, monkeypatch, _game(forest, data), 3)
    assert executor.sent == [(True, 1)] * 2
    executor = Executor()
    _share(executor, monkeypatch, _game(forest, data), 4)
    assert executor.sent == [(True, 1)] * 2 + [(False, 1)]


def test_a_new_helper_is_sent_the_game_with_a_request(data, forest, long_runs, monkeypatch):
    executor = Executor(n_loading=1, n_unknown=1)
    found, _, _ = _share(executor, monkeypatch, _game(forest, data), 12)
    assert executor.sent.count((True, 1)) == 2
    assert found.n_working == 1


def test_the_first_level_is_computed_while_helpers_answer(data, forest, long_runs, monkeypatch):
    executor, looks = Executor(), []

    def meanwhile(is_over):
        # To ask keeps the helpers busy, until only the last request is left.
        while not looks or not looks[-1]:
            executor.finish()
            looks.append(is_over())
        raise ValueError("raised again where it is needed")

    found, done, _ = _share(executor, monkeypatch, _game(forest, data), 20, meanwhile)
    assert len(done.answers) == 20
    # All but the two at first, and the last one; four at a time, before anything else is done.
    assert len(executor.sent) - 2 == 17
    assert looks == [False] * 4 + [True]
    assert found.n_working == 2


def test_nothing_else_is_done_if_the_helpers_have_nothing(data, forest, long_runs, monkeypatch):
    asked = []
    _share(Executor(), monkeypatch, _game(forest, data), 3, asked.append)
    assert not asked
    _share(Executor(), monkeypatch, _game(forest, data), 4, asked.append)
    assert len(asked) == 1


def test_a_request_that_cannot_be_sent_is_answered_here(data, forest, long_runs, monkeypatch):
    executor = Executor()
    submit = executor.submit

    def fails_later(work, token, payload, requests):
        if len(executor.sent) == 6:
            raise BlockingIOError(11, "no process can be started")
        return submit(work, token, payload, requests)

    def meanwhile(is_over):
        while not is_over():
            executor.finish()

    executor.submit = fails_later
    found, done, _ = _share(executor, monkeypatch, _game(forest, data), 20, meanwhile)
    assert len(done.answers) == 20
    assert found._is_refused
    assert found.n_working == 0


def test_helpers_start_earlier_if_a_run_will_be_long(data, forest, two_processors, monkeypatch):
    monkeypatch.setattr(helpers.Helpers, "_send", lambda self, requests: helpers.Future())
    found, game, [request] = helpers.Helpers(), _game(forest, data), _asked(1)
    found._leave(game)
    found.expect(3.0)
    found._look(game, request, 1.0)
    assert not found._loading
    found.expect(30.0)
    found._look(game, request, 0.2)
    assert not found._loading
    found._look(game, request, 1.0)
    assert len(found._loading) == 1
    # Another game begins anew.
    found._leave(_game(forest, data))
    found._look(game, request, 1.0)
    assert not found._loading


def test_a_helper_that_fails_ends_the_help(data, forest, long_runs, monkeypatch):
    executor = Executor(n_loading=1)
    submit = executor.submit

    def fails_later(work, token, payload, requests):
        future = submit(work, token, payload, requests)
        if payload is None:
            executor.open.pop()
            future.set_exception(OSError("gone"))
        return future

    executor.submit = fails_later
    found, _, _ = _share(executor, monkeypatch, _game(forest, data), 12)
    assert found.n_working == 0
    assert found._is_refused
    # Both requests that were under way.
    assert len(executor.sent) == 3


@pytest.mark.parametrize("failure", [OSError("gone"), None])
def test_helpers_that_cannot_load_the_game_are_not_asked(
    data, forest, long_runs, monkeypatch, failure
):
    executor = Executor()

    def fails(work, token, payload, requests):
        executor.sent.append(len(requests))
        future = helpers.Future()
        if failure is None:
            future.set_result(ValueError("not here"))
        else:
            future.set_exception(failure)
        return future

    executor.submit = fails
    found, _, _ = _share(executor, monkeypatch, _game(forest, data), 8)
    assert executor.sent == [1, 1]
    assert found._is_refused
    assert found.n_working == 0


def test_short_runs_get_no_helpers(data, forest, two_processors, monkeypatch):
    monkeypatch.setattr(helpers, "_SECONDS_ALONE", 4.0)
    executor = Executor()
    found, _, pieces = _share(executor, monkeypatch, _game(forest, data), 8)
    assert not executor.sent
    assert pieces == [(at, 8) for at in range(8)]
    # Seconds of earlier requests for the same game count.
    game = found._game
    assert found._seconds > 0
    found._seconds = 10.0
    found.answers(game, _asked(4), None)
    assert executor.sent
    assert found._seconds > 10.0
    other = _game(forest, data)
    executor.sent.clear()
    found.answers(other, _asked(4), None)
    assert not executor.sent
    assert 0 < found._seconds < 4.0


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
spare.count_idle = helpers.count_idle = lambda *_: 1
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
