"""Logistic regressions that start from those on other columns."""

import numpy as np
import pandas as pd
import pytest

from dsage.data.table import Table
from dsage.structure.blocks import Blocks
from dsage.structure.scores import softmax
from dsage.structure.scores.near_fits import NearFits
from dsage.structure.scores.softmax import softmax_likelihood

N = 3_000


@pytest.fixture(scope="module")
def blocks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    odds = np.column_stack([np.zeros(N), 2 * X[:, 0], np.sin(2 * X[:, 1]) - X[:, 2]])
    data = pd.DataFrame(X, columns=list("abcd"))
    data["y"] = pd.Categorical((odds + rng.gumbel(size=odds.shape)).argmax(axis=1).astype(str))
    return Blocks.from_table(Table(data))


def columns_of(blocks, parents):
    return np.concatenate([blocks.columns(parent) for parent in parents])


ASKED = [(0, 1, 2), (0, 1), (0, 1, 2, 3), (3,), (0, 1, 2), (1, 2)]


def test_likelihoods_are_the_largest(blocks):
    fits = NearFits(blocks)
    for parents in ASKED:
        columns = columns_of(blocks, parents)
        rows = blocks.sample[:, columns]
        inner = blocks.correlation[np.ix_(columns, columns)]
        expected = softmax_likelihood(rows, blocks.levels[4], inner)
        assert fits.likelihood(4, columns, rows) == pytest.approx(expected, abs=0.25)


def test_what_was_asked_before_saves_steps(blocks, monkeypatch):
    asked = []
    ask = softmax._Fit._loss
    monkeypatch.setattr(softmax._Fit, "_loss", lambda self, at: asked.append(0) or ask(self, at))
    fits, counts = NearFits(blocks), []
    for parents in ((0, 1, 2), (0, 1, 2, 3), (0, 1, 2)):
        columns = columns_of(blocks, parents)
        asked.clear()
        fits.likelihood(4, columns, blocks.sample[:, columns])
        counts.append(len(asked))
    assert max(counts[1:]) < counts[0]
    # The very same columns: a look, and one step at most.
    assert counts[2] <= 2
