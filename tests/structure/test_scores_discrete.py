"""Discrete scores: definitions, weights, chunks, large tables."""

from __future__ import annotations

import itertools
from math import lgamma, log

import numpy as np
import pandas as pd
import pytest

from dsage.structure.counts import Counts
from dsage.structure.scores import discrete as discrete_module
from dsage.structure.scores.dirichlet import K2, BDeu
from dsage.structure.scores.discrete import DiscreteLikelihood


def data(seed: int, n_rows: int = 80) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    a, b = generator.integers(0, 3, n_rows), generator.integers(0, 2, n_rows)
    c = (a + b + (generator.random(n_rows) < 0.3)) % 4
    return pd.DataFrame({"a": a, "b": b, "c": c})


def all_tables(frame: pd.DataFrame) -> list[list[int]]:
    """Return the counts of c's categories for every configuration of a and b, seen or not."""
    return [
        [int(((frame["a"] == i) & (frame["b"] == j) & (frame["c"] == k)).sum()) for k in range(4)]
        for i, j in itertools.product(range(3), range(2))
    ]


def test_the_likelihood_is_that_of_relative_frequencies():
    frame = data(0)
    expected = (
        sum(n * log(n / sum(row)) for row in all_tables(frame) for n in row if n) - 0.7 * 3 * 6
    )
    score = DiscreteLikelihood(Counts.from_frame(frame), penalty=0.7)
    assert score.family(2, (0, 1)) == pytest.approx(expected, rel=1e-12)


def test_k2_is_the_marginal_likelihood_of_uniform_priors():
    frame = data(1)
    expected = sum(
        lgamma(4) - lgamma(sum(row) + 4) + sum(lgamma(n + 1) for n in row)
        for row in all_tables(frame)
    )
    assert K2(Counts.from_frame(frame)).family(2, (0, 1)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("iss", [0.01, 1.0, 20.0])
def test_bdeu_is_the_marginal_likelihood_of_equivalent_uniform_priors(iss):
    frame = data(2)
    expected = sum(
        lgamma(iss / 6)
        - lgamma(iss / 6 + sum(row))
        + sum(lgamma(iss / 24 + n) - lgamma(iss / 24) for n in row)
        for row in all_tables(frame)
    )
    score = BDeu(Counts.from_frame(frame), iss=iss)
    assert score.family(2, (0, 1)) == pytest.approx(expected, rel=1e-11)


def makers():
    return [
        lambda counts: DiscreteLikelihood(counts, penalty=1.0),
        K2,
        BDeu,
    ]


@pytest.mark.parametrize("make", makers())
def test_repeated_rows_count_as_often_as_they_occur(make):
    frame = data(3, 500)
    counts = Counts.from_frame(frame)
    assert len(counts.rows) < 30
    many = frame.assign(row=range(500))
    distinct = make(Counts.from_frame(many))
    repeated = make(counts)
    for node in range(3):
        parents = tuple(sorted({0, 1, 2} - {node}))
        assert repeated.family(node, parents) == pytest.approx(
            distinct.family(node, parents), rel=1e-12
        )
        np.testing.assert_allclose(
            repeated.additions(node, ()), distinct.additions(node, ())[:3], rtol=1e-12
        )


@pytest.mark.parametrize("budget", ["_KEY_BYTES", "_TABLE_BYTES"])
@pytest.mark.parametrize("make", makers())
def test_chunks_and_lookups_do_not_change_the_answer(make, budget, monkeypatch):
    counts = Counts.from_frame(data(4))
    expected = [make(counts).additions(node, ()) for node in range(3)]
    monkeypatch.setattr(discrete_module, budget, 1)
    monkeypatch.setattr(discrete_module, "_MOST_TABULATED", 0)
    for node in range(3):
        np.testing.assert_allclose(make(counts).additions(node, ()), expected[node], rtol=1e-12)


@pytest.mark.parametrize("make", makers())
def test_parents_with_more_configurations_than_memory_are_scored(make):
    generator = np.random.default_rng(0)
    # 50**12 configurations, of which at most 40 occur.
    frame = pd.DataFrame(generator.integers(0, 50, size=(40, 13))).rename(columns=str)
    score = make(Counts.from_frame(frame))
    assert np.isfinite(score.family(0, tuple(range(1, 13))))


def test_a_constant_variable_gains_nothing():
    score = DiscreteLikelihood(Counts.from_frame(data(5).assign(k="same")), penalty=1.0)
    assert score.family(3, ()) == 0.0
    assert score.family(2, (3,)) == pytest.approx(score.family(2, ()), rel=1e-12)


def test_bad_settings_are_refused():
    counts = Counts.from_frame(data(0))
    with pytest.raises(ValueError, match="iss must be in"):
        BDeu(counts, iss=0.0)
    with pytest.raises(ValueError, match="iss must be in"):
        BDeu(counts, iss=np.inf)
    with pytest.raises(ValueError, match="penalty must be in"):
        DiscreteLikelihood(counts, penalty=-1.0)
