"""How long a run waits for the workers and the scheduler of a cluster, with a time of its own."""

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
