"""How long a run waits for the workers and the scheduler of a cluster, with a time of its own."""

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from dsage.estimate.parallel import cluster as module
from dsage.estimate.parallel.cluster import Cluster, is_cluster


class Client:
    """A client whose workers and status the tests set."""

    status = "running"

    def __init__(self):
        self.threads = {}

    def nthreads(self):
        if self.threads is None:
            raise OSError("no answer")
        return self.threads


class Time:
    now = 1000.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def time(monkeypatch):
    found = Time()
    monkeypatch.setattr(module, "time", found)
    return found


def make_cluster(timeout):
    return Cluster(SimpleNamespace(client=Client(), wait_for_workers_timeout=timeout))


def test_workers_are_waited_for_as_long_as_the_backend_says(time):
    cluster = make_cluster(20.0)
    cluster._require_workers()
    time.now += 20
    cluster._require_workers()
    time.now += 1
    with pytest.raises(ConnectionError, match=r"one with workers; got 'none for 20\.0 s'"):
        cluster._require_workers()


def test_workers_that_come_back_in_time_end_the_wait(time):
    cluster = make_cluster(20.0)
    cluster._require_workers()
    time.now += 19
    cluster.client.threads = {"one": 2}
    cluster._require_workers()
    cluster.client.threads = {}
    time.now += 19
    cluster._require_workers()
    # There were some before: they get a minute at least.
    time.now += 60
    cluster._require_workers()
    time.now += 1
    with pytest.raises(ConnectionError, match=r"none for 60\.0 s"):
        cluster._require_workers()


def test_a_long_wait_is_not_shortened_for_workers_that_were_there(time):
    cluster = make_cluster(100.0)
    cluster.client.threads = {"one": 1}
    cluster._require_workers()
    cluster.client.threads = {}
    cluster._require_workers()
    time.now += 100
    cluster._require_workers()
    time.now += 1
    with pytest.raises(ConnectionError, match=r"none for 100\.0 s"):
        cluster._require_workers()


def test_without_a_timeout_the_wait_has_no_end(time):
    cluster = make_cluster(None)
    cluster._require_workers()
    time.now += 1e6
    cluster._require_workers()


def test_a_scheduler_that_connects_is_waited_for_ten_seconds(time):
    cluster = make_cluster(None)
    cluster._require_scheduler()
    assert time.now == 1000.0
    cluster.client.status = "connecting"
    with pytest.raises(ConnectionError, match="got 'a client that is connecting'"):
        cluster._require_scheduler()
    assert 10.0 < time.now - 1000.0 < 10.2
    before = time.now
    cluster.client.status = "closed"
    with pytest.raises(ConnectionError, match="got 'a client that is closed'"):
        cluster._require_scheduler()
    assert time.now == before


def test_the_number_of_jobs_is_that_of_all_threads_and_at_least_one(time):
    cluster = make_cluster(None)
    assert cluster.n_jobs() == 1
    cluster.client.threads = {"one": 2, "two": 3}
    assert cluster.n_jobs() == 5
    cluster.client.threads = None
    assert cluster.n_jobs() == 1


def test_a_backend_is_that_of_dask_by_its_module_and_its_client():
    named = type("Backend", (), {"__module__": "joblib._dask"})
    assert not is_cluster(named())
    with_client = named()
    with_client.client = Client()
    assert is_cluster(with_client)
    assert not is_cluster(SimpleNamespace(client=Client()))


class Tasks(Client):
    """Workers that remember payloads, and losses that the tests plan."""

    def __init__(self, n_workers=2):
        super().__init__()
        self.threads = {f"worker {at}": 1 for at in range(n_workers)}
        self.have = {worker: set() for worker in self.threads}
        self.sent, self.made, self.losses, self.options = [], [], [], []

    def _work(self, worker, token, payload, task):
        if payload is not None:
            self.have[worker].add(token)
            self.sent.append(worker)
        return None if token not in self.have[worker] else ("done", task)

    def run(self, work, token, payload, task, workers=None, on_error=None):
        assert on_error == "ignore"
        if self.losses and isinstance(self.losses[0], OSError):
            raise self.losses.pop(0)
        chosen = self.have if workers is None else workers
        return {worker: self._work(worker, token, payload, task) for worker in chosen}

    def submit(self, work, token, payload, task, *, pure, **options):
        assert not pure
        worker = list(self.have)[len(self.made) % len(self.have)]
        future = SimpleNamespace(status="finished", result=self._work(worker, token, payload, task))
        future.ends = 0

        def release():
            future.ends += 1

        future.release = release
        self.made.append(future)
        self.options.append(options)
        return future

    def gather(self, futures):
        if self.losses:
            raise self.losses.pop(0)
        return [future.result for future in futures]

    def as_current(self):
        return nullcontext()


@pytest.fixture
def tasks(monkeypatch, time):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "wait", lambda futures, timeout: None)
    client, entered = Tasks(), []

    @contextmanager
    def retrieval_context():
        entered.append(True)
        yield

    backend = SimpleNamespace(
        client=client,
        wait_for_workers_timeout=20.0,
        submit_kwargs={"priority": 3},
        retrieval_context=retrieval_context,
    )
    return SimpleNamespace(client=client, cluster=Cluster(backend), entered=entered, time=time)


def results(tasks, names, token="game"):
    found = tasks.cluster.results(None, token, "payload", names)
    assert found == [("done", name) for name in names]
    assert all(future.ends == 1 for future in tasks.client.made)


def test_results_come_in_order_and_the_payload_is_sent_to_each_worker_once(tasks):
    results(tasks, list("abcde"))
    results(tasks, list("fg"))
    assert tasks.client.sent == ["worker 0", "worker 1"]
    assert tasks.client.options == [{"priority": 3}] * 7
    assert len(tasks.entered) == 2
    results(tasks, list("h"), token="other game")
    assert tasks.client.sent == ["worker 0", "worker 1"] * 2
    assert tasks.time.now == 1000.0


def test_a_new_worker_gets_the_payload_and_only_its_own_tasks_again(tasks):
    results(tasks, list("ab"))
    tasks.client.have["worker 1"] = set()
    tasks.client.made.clear()
    results(tasks, list("cdef"))
    assert tasks.client.sent == ["worker 0", "worker 1", "worker 1"]
    assert len(tasks.client.made) == 4 + 2
    results(tasks, list("g"))
    assert len(tasks.client.sent) == 3


@pytest.mark.parametrize("kind", ["tasks", "connection"])
def test_what_is_lost_is_submitted_again_after_half_a_second(tasks, kind):
    from distributed import CancelledError

    tasks.client.losses = [CancelledError() if kind == "tasks" else OSError()] * 7
    results(tasks, list("ab"))
    assert tasks.time.now == pytest.approx(1003.5)
    assert len(tasks.entered) == 8


def test_eight_losses_are_an_error(tasks):
    from distributed import CancelledError

    tasks.client.losses = [CancelledError()] * 8
    with pytest.raises(ConnectionError, match="8 losses"):
        tasks.cluster.results(None, "game", "payload", ["a"])


def test_a_task_that_dask_gives_up_is_told(tasks):
    from distributed import KilledWorker

    tasks.client.losses = [KilledWorker("a", SimpleNamespace(address="worker 0"), 3)]
    with pytest.raises(RuntimeError, match="possible to finish on a worker"):
        tasks.cluster.results(None, "game", "payload", ["a"])
    assert all(future.ends == 1 for future in tasks.client.made)


def test_an_error_in_a_worker_ends_the_wait_for_others(tasks, monkeypatch):
    import distributed

    looks = []

    def never(futures, timeout):
        looks.append(timeout)
        if len(looks) == 3:
            futures[1].status = "error"
        raise TimeoutError

    monkeypatch.setattr(distributed, "wait", never)
    futures = [SimpleNamespace(status="pending") for _ in range(2)]
    tasks.cluster._wait(futures)
    assert looks == [0.5] * 3


def test_an_error_of_unpacking_is_raised(tasks, monkeypatch):
    def fails(work, token, payload, task, workers=None, on_error=None):
        return {"worker 0": ValueError("not here")}

    monkeypatch.setattr(tasks.client, "run", fails)
    with pytest.raises(ValueError, match="not here"):
        tasks.cluster.results(None, "game", "payload", ["a"])
