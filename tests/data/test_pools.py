from threading import Barrier, Thread

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from dsage.data.pools import blas_for, single_blas
from dsage.structure import Score, learn_graph


def blas_threads():
    found = ThreadpoolController().select(user_api="blas").info()
    return {pool["num_threads"] for pool in found}


def set_blas(n_threads):
    """Set the number in a thread that ends: as long as one lives, no other may change it."""
    thread = Thread(target=lambda: ThreadpoolController().limit(limits=n_threads, user_api="blas"))
    thread.start()
    thread.join()


@pytest.fixture(autouse=True)
def _two_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    before = max(blas_threads())
    set_blas(2)
    if blas_threads() != {2}:
        pytest.skip("this BLAS has no threads")
    yield
    set_blas(before)


def test_blas_has_one_thread_inside_and_all_after():
    with single_blas():
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_an_error_inside_gives_the_threads_back():
    with pytest.raises(KeyError), single_blas():
        raise KeyError
    assert blas_threads() == {2}


def test_the_limit_holds_until_the_last_thread_is_out():
    entered, left = Barrier(2), Barrier(2)
    seen = []

    def first():
        with single_blas():
            entered.wait()
        left.wait()

    def last():
        with single_blas():
            entered.wait()
            left.wait()
            seen.append(blas_threads())

    threads = [Thread(target=target) for target in (first, last)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [{1}]
    assert blas_threads() == {2}


def test_only_large_products_use_all_threads():
    with blas_for(1e6):
        assert blas_threads() == {1}
    with blas_for(1e12):
        assert blas_threads() == {2}


def test_a_graph_is_searched_with_one_thread():
    seen = []

    class Watching(Score):
        names = ("X1", "X2")

        def family(self, node, parents):
            seen.append(blas_threads())
            return -float(len(parents))

    learn_graph(np.random.default_rng(0).normal(size=(20, 2)), score=lambda _: Watching())
    assert seen
    assert all(threads == {1} for threads in seen)
    assert blas_threads() == {2}
