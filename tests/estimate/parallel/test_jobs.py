"""Several jobs: the same to the bit, clear errors, nothing left behind."""

import gc
import threading
import tracemalloc
import warnings
from collections import OrderedDict
from contextlib import nullcontext
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from dsage import Graph
from dsage._check import DsageWarning, SamplerWarning, record_warnings, warn
from dsage.estimate import NOrderings, as_stopping, run
from dsage.estimate.accumulate.control import Control
from dsage.estimate.parallel import jobs as jobs_module
from dsage.estimate.parallel import work as work_module
from dsage.estimate.parallel.jobs import Jobs
from dsage.estimate.parallel.work import Done
from dsage.games import Grouped, LossGame, MomentGame
from dsage.games.base import Along, Coalitions
from dsage.samplers import Gaussian
from tables import PathTable, Table
from worker_models import dies, fails

NAMES = ("X1", "X2", "X3", "X4")
GRAPH = Graph([*NAMES, "y"], [("X1", "X2"), ("X2", "y"), ("X3", "y"), ("y", "X4")])
ORACLE = GRAPH.oracle("y")
ARRAYS = ("values", "se_orderings", "se_draws", "se_rows", "df", "share_skipped")
COUNTS = ("n_orderings", "n_units", "n_evaluated", "n_shared", "is_exact")


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    a = generator.normal(size=600)
    b = a + generator.normal(size=600)
    c = generator.normal(size=600)
    y = b + np.sin(2 * c) + 0.3 * generator.normal(size=600)
    d = y + generator.normal(size=600)
    return np.column_stack([a, b, c, d]), y


@pytest.fixture(scope="module")
def models(data):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network = MLPRegressor(hidden_layer_sizes=[40], max_iter=30, random_state=0).fit(X, y)
    return {
        "forest": RandomForestRegressor(8, random_state=0).fit(X, y),
        "forest with jobs": RandomForestRegressor(8, random_state=0, n_jobs=2).fit(X, y),
        "network": network,
        "function": lambda Z: np.sin(Z).sum(axis=1),
    }


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Skipping by separation")
        yield


def loss_game(model, data, **options):
    X, y = data
    sampler = Gaussian().fit(X)
    return LossGame(model, sampler, X[:300], y[:300], random_state=0, **options)


def assert_same(one, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in COUNTS:
        assert getattr(one, name) == getattr(other, name), name
    assert [level.n_evaluated for level in one.terms] == [
        level.n_evaluated for level in other.terms
    ]


@pytest.mark.parametrize("kind", ["forest", "forest with jobs", "network", "function"])
def test_results_do_not_depend_on_the_number_of_jobs(kind, models, data):
    options = {"oracle": ORACLE, "exact": "never", "random_state": 0, "stopping": NOrderings(24)}
    options |= {"estimand": "sage"}
    one = run(loss_game(models[kind], data), n_jobs=1, **options)
    assert_same(one, run(loss_game(models[kind], data), n_jobs=2, **options))
    with joblib.parallel_config(backend="threading"):
        assert_same(one, run(loss_game(models[kind], data), n_jobs=3, **options))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"exact": "never"},
        {"oracle": ORACLE},
        {"oracle": ORACLE, "exact": "never", "semantics": "skip", "first_level": "none"},
        {"oracle": ORACLE, "exact": "never", "cache_bytes": 20_000},
        {"orderings": [[0, 1, 2, 3], [3, 1, 2, 0]]},
    ],
    ids=["exact", "plain", "boundaries", "skip", "little memory", "given"],
)
def test_every_way_to_estimate_gives_the_same_with_two_jobs(options, models, data):
    options = {"stopping": NOrderings(24), "random_state": 3, **options}
    one = run(loss_game(models["forest"], data), n_jobs=1, **options)
    assert_same(one, run(loss_game(models["forest"], data), n_jobs=2, **options))


def test_without_a_word_there_is_one_job_or_what_joblib_was_told():
    seen = []

    class Noting(Table):
        def risks(self, known, rows, epoch=0):
            seen.append(threading.get_ident())
            return super().risks(known, rows, epoch)

    requests = [Coalitions(np.eye(4, dtype=bool), np.array([row]), 0) for row in range(6)]
    Jobs()(Noting(), requests)
    assert set(seen) == {threading.get_ident()}
    seen.clear()
    with joblib.parallel_config(backend="threading", n_jobs=2):
        Jobs()(Noting(), requests)
    assert threading.get_ident() not in seen


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_answers_come_in_the_order_of_the_requests(n_jobs):
    game = PathTable()
    known = np.eye(4, dtype=bool)
    orders, needed = np.array([[2, 0, 1, 3]]), np.ones((1, 5), dtype=bool)
    requests = [Coalitions(known, np.arange(row + 1), row % 3) for row in range(5)]
    requests.append(Along(orders, np.arange(4), 1, needed))
    jobs = Jobs(n_jobs)
    for _ in range(2):  # the second time, the workers know the game
        answers = jobs(game, requests)
        for request, answer in zip(requests, answers, strict=True):
            ask = game.path_risks if isinstance(request, Along) else game.risks
            np.testing.assert_array_equal(answer, ask(*request))


def test_a_worker_that_does_not_know_the_game_gets_it_again():
    requests = [Coalitions(np.eye(4, dtype=bool), np.array([row]), 0) for row in range(6)]
    jobs = Jobs(2)
    expected = jobs(Table(), requests)
    others = [Jobs(2) for _ in range(9)]
    for seed, other in enumerate(others, start=1):
        other(Table(seed=seed), requests)  # workers keep eight games
    again = jobs(jobs._game, requests)
    np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize(("n_bytes", "n_kept"), [(10, 8), (2**26, 4), (2**29, 2)])
def test_a_worker_keeps_few_games_where_they_are_large(n_bytes, n_kept, monkeypatch):
    kept = OrderedDict()
    monkeypatch.setattr(work_module, "_games", kept)
    monkeypatch.setattr(work_module.pickle, "loads", lambda data: "a game")
    payload = SimpleNamespace(data=b"", nbytes=n_bytes)
    for number in range(12):
        assert work_module._unpack(str(number), payload) == "a game"
    assert list(kept) == [str(number) for number in range(12 - n_kept, 12)]
    assert work_module._unpack("0", None) is None


@pytest.mark.parametrize(
    ("seconds", "n_tasks"),
    [(0.0, 4), (0.1, 4), (0.4, 8), (4.0, 32), (16.0, 32), (32.0, 32), (1e6, 64)],
)
def test_tasks_have_about_a_second_of_work_and_all_jobs_have_some(seconds, n_tasks):
    requests = [Coalitions(np.ones((10, 4), dtype=bool), np.arange(10), 0) for _ in range(64)]
    jobs = Jobs(4)
    jobs._seconds, jobs._n_pairs = seconds, 6400.0
    bundles = jobs._bundle(requests, 4)
    assert [len(bundle) for bundle in bundles] == [64 // n_tasks] * n_tasks
    assert [each for bundle in bundles for each in bundle] == requests
    assert len(jobs._bundle(requests[:2], 4)) == 2


@pytest.mark.parametrize(
    ("seconds", "n_requests", "n_jobs", "n_parts"),
    [
        (10.0, 5, 2, [1, 1, 1, 1, 2]),
        (10.0, 5, 4, [1, 1, 1, 1, 4]),
        (10.0, 6, 2, [1] * 6),
        (10.0, 2, 3, [3, 3]),
        # Short work, unknown work, and much work for each job.
        (0.01, 5, 2, [1] * 5),
        (0.0, 5, 2, [1] * 5),
        (10.0, 17, 2, [1] * 17),
    ],
)
def test_requests_that_do_not_come_out_even_are_divided(seconds, n_requests, n_jobs, n_parts):
    game = PathTable()
    orders, needed = np.array([[2, 0, 1, 3]]), np.ones((1, 5), dtype=bool)
    requests = [Along(orders, np.arange(4), number % 3, needed) for number in range(n_requests)]
    jobs = Jobs(n_jobs)
    jobs._seconds, jobs._n_pairs = seconds, 20.0 * n_requests if seconds else 0.0
    parts = jobs._part(requests, n_jobs)
    assert [len(each) for each in parts] == n_parts
    for answer, request in zip(jobs(game, requests), requests, strict=True):
        np.testing.assert_array_equal(answer, game.path_risks(*request))


@pytest.mark.parametrize("seed", range(5))
def test_tasks_of_requests_of_different_sizes_have_about_as_much_work(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 30, size=60)
    requests = [Coalitions(np.ones((n, 4), dtype=bool), np.arange(3), 0) for n in sizes]
    jobs = Jobs(3)
    jobs._seconds, jobs._n_pairs = 24.0, 3.0 * sizes.sum()
    bundles = jobs._bundle(requests, 3)
    # A second each.
    assert len(bundles) == 24
    assert [id(each) for bundle in bundles for each in bundle] == list(map(id, requests))
    work = np.array([sum(len(each.known) for each in bundle) for bundle in bundles])
    assert np.abs(work - sizes.sum() / 24).max() <= sizes.max()
    # The middle of each request lies in the share of its task.
    middles = np.cumsum(sizes) - sizes / 2
    ends = np.cumsum([len(bundle) for bundle in bundles])[:-1]
    borders = np.arange(1, 24) * sizes.sum() / 24
    assert (middles[ends] >= borders - 1e-9).all()
    assert (middles[ends - 1] <= borders + 1e-9).all()


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two"])
def test_a_number_of_jobs_that_is_none_is_refused(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be a number other than 0"):
        run(Table(), n_jobs=n_jobs)


class Locked:
    """A model that no process can be sent."""

    def __init__(self):
        self.lock = threading.Lock()

    def predict(self, X):
        return np.asarray(X).sum(axis=1)


def test_a_model_that_cannot_be_pickled_is_named_with_the_remedy(data):
    game = loss_game(Locked(), data, loss="squared_error")
    options = {"exact": "never", "stopping": NOrderings(20), "random_state": 0}
    with pytest.raises(TypeError, match=r"the model, Locked, must be possible to pickle.*n_jobs=1"):
        run(game, n_jobs=2, **options)
    with pytest.raises(TypeError, match="the model, Locked,"):
        run(Grouped(game, {"pair": NAMES[:2]}), n_jobs=2, **options)
    one = run(game, n_jobs=1, **options)
    with joblib.parallel_config(backend="threading"):
        assert_same(one, run(game, n_jobs=2, **options))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_a_model_raises_in_a_worker_is_told_with_the_model_s_name(n_jobs, data):
    game = loss_game(fails, data, loss="squared_error", draw_control="none")
    with pytest.raises(RuntimeError, match="no more of this") as caught:
        run(game, n_jobs=n_jobs, exact="never", first_level="none", stopping=NOrderings(10))
    assert "fails" in " ".join(caught.value.__notes__)


@pytest.mark.kills
def test_the_death_of_a_worker_process_is_a_clear_error(data):
    # First level and control would be fitted in this process.
    game = loss_game(dies, data, loss="squared_error", draw_control="none")
    with pytest.raises(RuntimeError, match=r"worker.*n_jobs"):
        run(game, n_jobs=2, exact="never", first_level="none", stopping=NOrderings(10))


def test_warnings_of_workers_are_given_once(data):
    X, y = data
    labels = (y > 0).astype(int)
    deep = RandomForestClassifier(1, random_state=0).fit(X, labels)
    game = LossGame(deep, Gaussian().fit(X), X[:100], labels[:100], random_state=0)
    options = {"exact": "never", "stopping": NOrderings(16), "random_state": 0}
    with pytest.warns(UserWarning, match="a probability of zero") as caught:
        run(game, n_jobs=2, **options)
    assert sum("a probability of zero" in str(each.message) for each in caught) == 1


def test_memory_is_flat_over_many_runs(data):
    X, y = data
    game = MomentGame(X, y, y, NAMES)

    def once(seed, n_jobs):
        run(
            game,
            exact="never",
            stopping=as_stopping(n_orderings=8),
            random_state=seed,
            n_jobs=n_jobs,
        )

    for n_jobs in (1, 2):
        once(0, n_jobs)
    gc.collect()
    tracemalloc.start()
    sizes = []
    for seed in range(20):
        once(seed, 2 if seed % 5 == 0 else 1)
        if seed % 5 == 4:
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # A run holds some 100 kB; were it kept, 15 more runs, or the 3 with jobs, would show.
    assert sizes[-1] - sizes[0] < 200_000


def test_the_first_level_is_computed_beside_the_workers_and_changes_no_bit(data, models):
    X, y = data
    game = LossGame(models["forest"], Gaussian().fit(X), X, y, random_state=0)
    options = {"stopping": NOrderings(64), "exact": "never", "random_state": 0}
    threads = []
    prepare = Control.prepare

    def watched(self, *aim):
        threads.append((threading.current_thread().name, np.geterr()["over"]))
        prepare(self, *aim)

    with pytest.MonkeyPatch.context() as patch, np.errstate(over="raise"):
        patch.setattr(Control, "prepare", watched)
        alone = run(game, n_jobs=1, **options)
        assert not threads
        together = run(game, n_jobs=2, **options)
        assert set(threads) == {("dsage-beside", "raise")}
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(alone, name), getattr(together, name))


def test_what_fails_beside_the_workers_is_left_to_the_main_thread(data, models):
    X, y = data
    game = LossGame(models["forest"], Gaussian().fit(X), X, y, random_state=0)

    def fails_there(self, *aim):
        raise ValueError("only there")

    options = {"stopping": NOrderings(16), "exact": "never", "random_state": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Control, "prepare", fails_there)
        found = run(game, n_jobs=2, **options)
    np.testing.assert_array_equal(found.values, run(game, n_jobs=1, **options).values)
    assert all(thread.name != "dsage-beside" for thread in threading.enumerate())


def test_other_warnings_of_workers_are_given_once_for_each_place(recwarn):
    jobs = Jobs(2)
    again = Done([], 0.0, [("odd rows", RuntimeWarning, ("model.py", 3))])
    other = Done([], 0.0, [("odd rows", RuntimeWarning, ("model.py", 4))])
    jobs._warn([again, again])
    jobs._warn([again, other])
    assert [str(each.message) for each in recwarn] == ["odd rows"] * 2
    assert {each.category for each in recwarn} == {RuntimeWarning}


def test_our_own_warnings_of_workers_are_recorded_like_those_of_this_process():
    done = Done([], 0.0, [("few rows", SamplerWarning, ("few rows", 0))])
    with record_warnings(show=False) as found:
        Jobs(2)._warn([done, done])
    assert [(str(each), type(each)) for each in found] == [("few rows", SamplerWarning)]


def _warn_twice():
    warnings.warn("foreign", UserWarning, stacklevel=1)
    warn("ours")


def test_the_main_thread_records_all_warnings_and_other_threads_only_our_own():
    with work_module._record_warnings() as here:
        _warn_twice()
    (text, kind, where), ours = here
    assert (text, kind, where[0]) == ("foreign", UserWarning, __file__)
    assert where[1] > 0
    assert (ours[0], ours[1]) == ("ours", DsageWarning)
    there = []

    def collect():
        with work_module._record_warnings() as found:
            _warn_twice()
        there.extend(found)

    def run():
        thread = threading.Thread(target=collect)
        thread.start()
        thread.join()

    with pytest.warns(UserWarning, match="foreign"):
        run()
    assert there == [("ours", DsageWarning, ("ours", 0))]


class LokyBackend:
    """Stands for joblib's backend of fresh processes."""


class MultiprocessingBackend:
    """Stands for joblib's backend of forked processes."""


class ThreadingBackend:
    uses_threads = True


@pytest.fixture
def stand_in(monkeypatch):
    """Jobs with a backend of a class, and what they did: threads, and what ran beside them."""
    done = Done([np.ones(1)], 0.25, [])
    seen = SimpleNamespace(beside=[], tasks=[])

    def make(backend, n_jobs=2):
        jobs = Jobs(n_jobs)
        jobs.meanwhile = "meanwhile"
        monkeypatch.setattr(jobs_module, "get_active_backend", lambda: (backend, n_jobs))
        monkeypatch.setattr(
            jobs_module, "_beside", lambda work: seen.beside.append(work) or quiet()
        )
        monkeypatch.setattr(jobs, "_send", lambda game, bundles: [done] * len(bundles))
        monkeypatch.setattr(
            jobs, "_parallel", lambda tasks: seen.tasks.extend(tasks) or [done] * len(seen.tasks)
        )
        return jobs, seen

    quiet = nullcontext
    return make


REQUESTS = [Coalitions(np.eye(4, dtype=bool)[:2], np.arange(3), 0) for _ in range(6)]


@pytest.mark.parametrize(
    ("backend", "beside"), [(LokyBackend, "meanwhile"), (MultiprocessingBackend, None)]
)
def test_nothing_runs_beside_processes_that_are_forked(stand_in, backend, beside):
    jobs, seen = stand_in(backend())
    answers = jobs(Table(), REQUESTS)
    assert seen.beside == [beside]
    assert not seen.tasks
    # What was done tells how large tasks should be.
    assert jobs._n_pairs == 6 * 2 * 3
    assert jobs._seconds == 0.25 * len(answers)


@pytest.mark.parametrize(("n_processors", "n_jobs", "n_threads"), [(8, 2, 4), (8, 3, 2), (1, 2, 1)])
def test_threads_share_the_processors(stand_in, monkeypatch, n_processors, n_jobs, n_threads):
    monkeypatch.setattr(joblib, "cpu_count", lambda: n_processors)
    monkeypatch.setattr(joblib, "effective_n_jobs", lambda n_jobs: n_jobs)
    jobs, seen = stand_in(ThreadingBackend(), n_jobs)
    game = Table()
    assert len(jobs(game, REQUESTS)) == len(seen.tasks)
    assert not seen.beside
    requests = []
    for function, (played, bundle, threads), _ in seen.tasks:
        assert function is work_module.work_here
        assert (played, threads) == (game, n_threads)
        requests += bundle
    assert requests == REQUESTS


def test_a_single_job_that_was_asked_for_is_done_here(monkeypatch):
    jobs, pieces = Jobs(1), []
    monkeypatch.setattr(jobs, "_helpers", None)
    jobs.on_piece = lambda *given: pieces.append(given)
    game = Table()
    for request, answer in zip(REQUESTS, jobs(game, REQUESTS), strict=True):
        np.testing.assert_array_equal(answer, game.risks(*request))
    assert pieces == [(number, 6) for number in range(6)]
