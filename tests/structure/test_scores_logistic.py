"""Tests of logistic regressions that choose the functions of each parent."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dsage.data.table import Table
from dsage.structure.blocks import Blocks
from dsage.structure.scores import logistic as module
from dsage.structure.scores.logistic import LogisticRegressions
from dsage.structure.scores.softmax import softmax_likelihood

N_ROWS, PRICE = 600, 2.4
NAMES = ("line", "bump", "alone", "pair", "three")


@pytest.fixture(scope="module")
def blocks():
    """Three levels that depend on a line, on a bump, and on a class of two levels."""
    rng = np.random.default_rng(0)
    line, bump, alone = rng.normal(size=(3, N_ROWS))
    pair = rng.choice(list("pq"), size=N_ROWS)
    odds = np.stack(
        [np.zeros(N_ROWS), 1.2 * line + (pair == "p"), 2.5 * np.exp(-((1.5 * bump) ** 2))], axis=1
    )
    three = np.array(list("uvw"))[(odds + rng.gumbel(size=odds.shape)).argmax(axis=1)]
    columns = (line, bump, alone, pair, three)
    return Blocks.from_table(Table(pd.DataFrame(dict(zip(NAMES, columns, strict=True)))))


@pytest.fixture
def regressions(blocks):
    return LogisticRegressions(blocks, PRICE)


def n_functions(blocks, columns, node):
    return int(np.isin(columns, blocks.columns(node)).sum())


def test_each_parent_gets_the_functions_that_it_needs(blocks, regressions):
    fit = regressions.best(4, (0, 1, 3))
    assert n_functions(blocks, fit.columns, 0) == 1
    assert n_functions(blocks, fit.columns, 1) in (2, 3, 4)
    assert n_functions(blocks, fit.columns, 3) == 1


def test_the_worth_is_the_likelihood_less_the_price_of_all_coefficients(blocks, regressions):
    fit = regressions.best(4, (0, 1))
    likelihood = softmax_likelihood(blocks.sample[:, fit.columns], blocks.levels[4])
    assert fit.worth == pytest.approx(likelihood - PRICE * 2 * (len(fit.columns) + 1), abs=0.1)


def test_no_common_number_of_functions_is_better(blocks, regressions):
    best = regressions.best(4, (0, 1, 3)).worth
    for size in (1, 2, 3, 4, 6, 8):
        columns = np.concatenate([blocks.columns(node, size) for node in (0, 1, 3)])
        likelihood = softmax_likelihood(blocks.sample[:, columns], blocks.levels[4])
        assert best > likelihood - PRICE * 2 * (len(columns) + 1) - 0.1


@pytest.mark.parametrize("parents", [(), (0,), (1, 3)])
def test_gains_tell_what_one_more_parent_adds(regressions, parents):
    gains = regressions.gains(4, parents)
    before = regressions.best(4, parents).worth
    for node in {0, 1, 2, 3} - set(parents):
        exact = regressions.best(4, tuple(sorted((*parents, node)))).worth - before
        # Quadratic near the fit before: exact for what adds little, near for what adds much.
        assert gains[node] == pytest.approx(exact, abs=1.0 + 0.25 * abs(exact))


def test_losses_tell_what_a_parent_adds(regressions):
    parents = (0, 1, 2, 3)
    losses = regressions.losses(4, parents)
    whole = regressions.best(4, parents).worth
    for at, node in enumerate(parents):
        fewer = tuple(each for each in parents if each != node)
        exact = whole - regressions.best(4, fewer).worth
        assert losses[at] == pytest.approx(exact, abs=1.0 + 0.35 * abs(exact))
    assert losses.argmin() == 2
    assert losses[2] < 0


def test_binary_classes_depend_on_classes_too(regressions):
    gains = regressions.gains(3, ())
    assert gains[4] > 0
    assert gains[2] < 0


def test_answers_do_not_depend_on_what_is_remembered(blocks, regressions, monkeypatch):
    kept = [regressions.best(4, parents).worth for parents in ((0,), (1,), (0,))]
    monkeypatch.setattr(module, "_CACHE_BYTES", 0)
    forgetful = LogisticRegressions(blocks, PRICE)
    assert [forgetful.best(4, parents).worth for parents in ((0,), (1,), (0,))] == kept


def test_more_functions_than_rows_allow_are_not_tried():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 6))).add_prefix("x")
    frame["k"] = np.where(frame["x0"] + rng.logistic(size=40) > 0, "yes", "no")
    made = Blocks.from_table(Table(frame))
    fit = LogisticRegressions(made, 1.3).best(6, (0, 1, 2, 3, 4, 5))
    assert len(fit.columns) < 40
    assert np.isfinite(fit.worth)


def test_classes_of_many_levels_are_left_to_quick_regressions(blocks):
    assert LogisticRegressions(blocks, PRICE).is_cheap(4)
    # Coefficients of a class grow with its levels: two of "three", one of "pair".
    regressions = LogisticRegressions(blocks, PRICE, 3 * N_ROWS * 5 * 8**2)
    assert regressions.is_cheap(3)
    assert not regressions.is_cheap(4)


def test_a_copy_of_a_parent_adds_nothing():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    kind = np.where(x + rng.logistic(size=200) > 0, "yes", "no")
    frame = pd.DataFrame({"x": x, "copy": 2 * x + 1, "kind": kind})
    made = LogisticRegressions(Blocks.from_table(Table(frame)), 1.3)
    assert made.gains(2, (0,))[1] == pytest.approx(-1.3, abs=0.01)
    np.testing.assert_allclose(made.losses(2, (0, 1)), -1.3, atol=0.05)
    assert np.isfinite(made.gains(2, (0, 1))).all()
    assert made.best(2, (0, 1)).worth == pytest.approx(made.best(2, (0,)).worth - 1.3, abs=0.1)
