"""Several `explain` at once: the results of one after the other, and nothing global is changed."""

import asyncio
import importlib
import signal
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController

import dsage

# Two models times three samplers; graphs are learned for some of them.
N_RUNS = 10


def make_case(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(160, 4)), columns=list("abcd"))
    X["b"] += X["a"]
    signal_ = X["a"] + np.sin(2 * X["c"])
    if seed % 2:
        y = np.where(signal_ + rng.normal(size=160) > 0, "yes", "no")
        model = LogisticRegression().fit(X, y)
    else:
        y = (signal_ + 0.3 * rng.normal(size=160)).to_numpy()
        model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
    sampler = ("gaussian", "mixture", "copula")[seed % 3]
    return model, X, y, {"sampler": sampler} | ({"graph": None} if seed > 2 else {})


def explain(case, seed=0, **options):
    model, X, y, own = case
    given = {"n_orderings": 8, "sampler_check": False} | own | options
    return dsage.explain(
        model, X[:80], y[:80], X[80:], y[80:], random_state=seed, progress=False, **given
    )


def numbers(explanation):
    frame = explanation.to_frame()
    kept = [name for name in frame if frame[name].dtype.kind in "if"]
    return frame[["feature", *kept]]


def global_state():
    pools = ThreadpoolController().info()
    return {
        "filters": list(warnings.filters),
        "show": warnings.showwarning,
        "signals": signal.getsignal(signal.SIGINT),
        "pools": [(each["filepath"], each["num_threads"]) for each in pools],
        "errors": np.geterr(),
    }


@pytest.fixture(scope="module")
def cases():
    return [make_case(seed) for seed in range(N_RUNS)]


@cache
def alone(seed):
    """The numbers of one run, with nothing beside it."""
    return numbers(explain(make_case(seed)))


def test_ten_at_once_are_ten_in_turn_and_leave_nothing_behind(cases):
    in_turn = [alone(seed) for seed in range(N_RUNS)]
    before = global_state()
    start = Barrier(N_RUNS)

    def run(case):
        start.wait()
        return numbers(explain(case))

    with ThreadPoolExecutor(N_RUNS) as threads:
        at_once = list(threads.map(run, cases))
    for one, other in zip(in_turn, at_once, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert global_state() == before


def test_the_main_thread_and_another_at_once_leave_the_pools_as_they_were(cases):
    in_turn = [alone(0), alone(1)]
    before = global_state()
    with ThreadPoolExecutor(1) as threads:
        others = [threads.submit(explain, cases[0])]
        here = explain(cases[1])
    for one, other in zip(in_turn, [*(each.result() for each in others), here], strict=True):
        pd.testing.assert_frame_equal(one, numbers(other), check_exact=True)
    assert global_state() == before


def test_the_automatic_choices_do_not_depend_on_other_threads(cases):
    options = {"sampler": "auto", "sampler_check": True, "graph": None}
    with ThreadPoolExecutor(2) as threads:
        beside = threads.submit(explain, cases[5])
        found = threads.submit(explain, cases[0], **options).result()
        beside.result()
    again = explain(cases[0], **options)
    assert again.choices.sampler.name == found.choices.sampler.name
    pd.testing.assert_frame_equal(numbers(again), numbers(found), check_exact=True)


def test_an_asyncio_task_explains_directly_and_in_a_thread(cases):
    in_turn = [alone(0), alone(1)]

    async def main():
        in_thread = asyncio.create_task(asyncio.to_thread(explain, cases[0]))
        await asyncio.sleep(0)
        here = explain(cases[1])
        return [await in_thread, here]

    before = global_state()
    for one, other in zip(in_turn, asyncio.run(main()), strict=True):
        pd.testing.assert_frame_equal(one, numbers(other), check_exact=True)
    assert global_state() == before


def test_warnings_of_one_thread_are_in_its_own_result_only(cases):
    _, X, y, _ = cases[0]
    models = {
        copied: RandomForestRegressor(3, random_state=0).fit(given, y)
        for copied, given in ((True, X.assign(e=X["a"])), (False, X))
    }
    start = Barrier(3)

    def run(copied):
        given = X.assign(e=X["a"]) if copied else X
        start.wait()
        case = models[copied], given, y, {"sampler": "gaussian"}
        return explain(case).warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ThreadPoolExecutor(3) as threads:
            found = list(threads.map(run, [True, False, True]))
    assert found[0] == found[2]
    assert len(found[0]) > len(found[1])


def test_threads_that_are_the_first_to_use_a_registry_find_all_names(tmp_path, monkeypatch):
    package = tmp_path / "slow_parts"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from dsage.data.registry import Registry\n"
        "PARTS = Registry('part', 'the parts', 'slow_parts')\n"
    )
    for name in "abc":
        (package / f"{name}.py").write_text(
            "import time\n"
            "from slow_parts import PARTS\n"
            "time.sleep(0.05)\n"
            f"PARTS.register({name!r}, summary='slow')(object())\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    parts = importlib.import_module("slow_parts").PARTS
    start = Barrier(8)

    def look(_):
        start.wait()
        return parts.names()

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(look, range(8))) == {("a", "b", "c")}
