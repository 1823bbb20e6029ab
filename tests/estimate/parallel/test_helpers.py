"""Processes that help without being asked to: the same results to the bit, and only where safe."""

import os
import threading
import time

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dsage.estimate import as_stopping, run
from dsage.estimate.parallel import helpers
from dsage.games import LossGame
from dsage.games.base import ask
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
def asked_here(monkeypatch):
    """Let runs be long from their start on, and count the requests that this process answers."""
    count = []

    def slow(game, request):
        count.append(os.getpid())
        time.sleep(0.05)
        return ask(game, request)

    monkeypatch.setattr(helpers, "_SECONDS_ALONE", 0.0)
    monkeypatch.setattr(helpers, "ask", slow)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 2)
    return count


def test_helpers_share_a_long_run_and_change_no_bit(data, forest, asked_here):
    alone = _run(_game(forest, data), n_jobs=1)
    assert not asked_here
    # The first run starts the helper, which may take longer than the run.
    for _ in range(20):
        asked_here.clear()
        together = _run(_game(forest, data))
        for name in ("values", "se_orderings", "se_draws", "se_rows"):
            np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))
        if len(asked_here) < 25:
            break
    else:
        pytest.fail("no helper answered")


def test_a_helper_that_dies_is_replaced_by_this_process(data, forest, asked_here, monkeypatch):
    def broken(self, requests, *, has_game=False):
        if has_game:
            raise RuntimeError("the executor was shut down")
        done = helpers.Future()
        done.set_result(helpers.Done([], 0.0, []))
        return done

    monkeypatch.setattr(helpers.Helpers, "_send", broken)
    alone, together = _run(_game(forest, data), n_jobs=1), _run(_game(forest, data))
    np.testing.assert_array_equal(together.values, alone.values)


def test_an_error_of_a_helper_is_looked_at_here(data, forest, asked_here, monkeypatch):
    def failing(self, requests, *, has_game=False):
        done = helpers.Future()
        done.set_result(ValueError("only there") if has_game else helpers.Done([], 0.0, []))
        return done

    monkeypatch.setattr(helpers.Helpers, "_send", failing)
    alone, together = _run(_game(forest, data), n_jobs=1), _run(_game(forest, data))
    np.testing.assert_array_equal(together.values, alone.values)


def test_there_are_no_helpers_where_the_user_decides_or_copies_are_unsafe(
    data, forest, monkeypatch
):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 2)
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
