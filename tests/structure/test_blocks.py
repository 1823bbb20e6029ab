"""Tests of blocks: columns, correlations, samples and what is taken for a class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dsage.data.table import Table
from dsage.structure import blocks as module
from dsage.structure.blocks import Blocks
from dsage.structure.scores.block_gaussian import inverse_factor

N_ROWS = 3_000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    a = rng.normal(size=N_ROWS)
    return pd.DataFrame(
        {
            "a": a,
            "skewed": np.exp(2 * rng.normal(size=N_ROWS)),
            "class": rng.choice(list("uvw"), p=[0.2, 0.7, 0.1], size=N_ROWS),
            "binary": (a > 0).astype(int),
            "count": rng.poisson(3.0, size=N_ROWS),
        }
    )


def test_every_variable_has_its_columns(frame):
    blocks = Blocks.from_table(Table(frame))
    assert blocks.names == tuple(frame.columns)
    np.testing.assert_array_equal(blocks.is_class, [False, False, True, True, False])
    np.testing.assert_array_equal(blocks.widths[:4], [8, 8, 2, 1])
    owned = np.concatenate([blocks.columns(node) for node in range(5)])
    np.testing.assert_array_equal(owned, np.arange(blocks.widths.sum()))
    assert len(blocks.columns(0, 4)) == 4
    assert len(blocks.columns(2, 1)) == 2


def test_correlations_are_those_of_the_sample_if_it_has_all_rows(frame):
    blocks = Blocks.from_table(Table(frame))
    assert blocks.scale == 1.0
    np.testing.assert_allclose(blocks.sample.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(
        blocks.sample.T @ blocks.sample / N_ROWS, blocks.correlation, atol=1e-10
    )
    own = blocks.correlation[np.ix_(blocks.columns(0), blocks.columns(0))]
    np.testing.assert_allclose(own, np.eye(8), atol=1e-8)


def test_a_sample_stands_for_all_rows_and_chunks_change_nothing(frame, monkeypatch):
    whole = Blocks.from_table(Table(frame))
    monkeypatch.setattr(module, "_MAX_SAMPLE", 500)
    monkeypatch.setattr(module, "_SAMPLE_BYTES", 2**18)
    part = Blocks.from_table(Table(frame))
    assert len(part.sample) <= 500
    assert part.scale == N_ROWS / len(part.sample)
    np.testing.assert_allclose(part.correlation, whole.correlation, atol=1e-10)
    rows = np.linspace(0, N_ROWS - 1, len(part.sample)).round().astype(int)
    np.testing.assert_allclose(part.sample, whole.sample[rows], atol=1e-9)
    np.testing.assert_array_equal(part.levels[2], whole.levels[2][rows])


def test_skewed_numbers_may_be_scores_and_normal_ones_are_themselves(frame):
    blocks = Blocks.from_table(Table(frame))
    assert blocks.offsets[0, 0] == 0.0
    assert blocks.offsets[1, 0] == -np.inf
    # The negentropy of exp(2 z) per row: 1/2 log var(exp(2 z)) - 2 E[z] - log 2.
    exact = 0.5 * np.log(np.exp(8) - np.exp(4)) - np.log(2)
    assert blocks.offsets[1, 1] / N_ROWS == pytest.approx(exact, rel=0.3)
    # Counts have no density: one response is chosen.
    assert sorted(np.isfinite(blocks.offsets[:, 4]).tolist()) == [False, True]


def test_missing_numbers_are_zero_and_known_to_be_missing(frame):
    holes = frame[["a", "class"]].copy()
    holes.loc[::4, "a"] = np.nan
    blocks = Blocks.from_table(Table(holes).completed())
    assert blocks.names == ("a", "class", "a is missing")
    np.testing.assert_array_equal(blocks.is_class, [False, True, True])
    np.testing.assert_array_equal(blocks.absent[0], np.arange(N_ROWS) % 4 == 0)
    # Functions of what is present are uncorrelated with presence.
    between = blocks.correlation[np.ix_(blocks.columns(0), blocks.columns(2))]
    np.testing.assert_allclose(between, 0.0, atol=1e-8)


def test_sums_of_columns(frame):
    blocks = Blocks.from_table(Table(frame))
    columns, slopes = np.array([0, 1, 2, 9, 10, 4]), np.arange(6.0)
    np.testing.assert_allclose(
        blocks.predict(columns, slopes), blocks.thinned[:, columns] @ slopes, atol=1e-9
    )
    assert not blocks.predict(np.empty(0, int), np.empty(0)).any()


def test_without_correlations_the_rows_are_the_same(frame):
    table = Table(frame)
    with_them, without = Blocks.from_table(table), Blocks.from_table(table, correlate=False)
    assert without.correlation.size == 0
    np.testing.assert_allclose(without.sample, with_them.sample, atol=1e-9)
    np.testing.assert_array_equal(without.offsets, with_them.offsets)


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_a_skewed_number_is_worth_its_negentropy_in_each_row_that_has_it(share):
    rng = np.random.default_rng(0)
    x = np.exp(rng.normal(size=500))
    x[rng.random(500) < share] = np.nan
    frame = pd.DataFrame({"x": x, "y": rng.normal(size=500)})
    blocks = Blocks.from_table(Table(frame).completed())
    present = x[~np.isnan(x)]
    surplus = module.negentropy(present, module.normal_scores(present))
    assert blocks.offsets[1, 0] == pytest.approx(len(present) * surplus)


def test_the_inverse_factor_needs_independent_columns():
    matrix = np.array([[4.0, 2.0], [2.0, 5.0]])
    np.testing.assert_allclose(inverse_factor(matrix) @ np.linalg.cholesky(matrix), np.eye(2))
    with pytest.raises(np.linalg.LinAlgError, match="linear functions of others"):
        inverse_factor(np.array([[1.0, 2.0], [2.0, 1.0]]))
