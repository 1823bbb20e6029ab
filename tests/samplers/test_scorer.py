"""Scores of blocks: the MSEv against what is exact for a linear model of Gaussian features."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dsage._random import Streams
from dsage.data.groups import Groups
from dsage.data.layout import Layout
from dsage.samplers.base import check_sampler
from dsage.samplers.comparing import Table
from dsage.samplers.energy import column_means, column_scales, energy_scores
from dsage.samplers.gaussian import Gaussian
from dsage.samplers.marginal import Marginal
from dsage.samplers.noise import Noise
from dsage.samplers.sequential import Sequential
from dsage.samplers.splits import Block, make_blocks

COVARIANCE = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, 0.5], [0.3, 0.5, 1.0]])
WEIGHTS = np.array([1.0, -2.0, 0.5])


def table_of(n_rows, players=None, seed=0):
    X = np.random.default_rng(seed).multivariate_normal(
        np.zeros(3), COVARIANCE, n_rows, method="cholesky"
    )
    frame = pd.DataFrame(X, columns=list("abc"))
    return Table.of(frame, Layout.of(frame), players=players, streams=Streams(seed))


def linear(rows):
    return rows.to_numpy() @ WEIGHTS


def scores_of(sampler, table, predict, n_draws=8):
    """The scores of all pieces of all blocks."""
    scorer = table.scorer(predict, n_draws)
    blocks = make_blocks(table.parts, table.players, 7, table.streams)
    return [scores for block in blocks for scores in scorer(sampler, block)]


def row_means(pieces):
    """The MSEv of each row; there are three features, so all coalitions are scored."""
    weights = np.array([1 / 3, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9])
    sizes = np.argsort([0, 1, 1, 2, 1, 2, 2], kind="stable")
    assert len(pieces[0].msev) == 7
    return np.concatenate([weights @ each.msev[sizes] for each in pieces])


def conditional_variance(known):
    """The variance of a linear model given known features."""
    unknown = ~known
    left = COVARIANCE[np.ix_(unknown, unknown)]
    if known.any():
        both = COVARIANCE[np.ix_(unknown, known)]
        left = left - both @ np.linalg.solve(COVARIANCE[np.ix_(known, known)], both.T)
    return WEIGHTS[unknown] @ left @ WEIGHTS[unknown]


def test_the_msev_of_the_truth_is_the_mean_conditional_variance():
    table = table_of(4000)
    truth = Gaussian.from_moments(np.zeros(3), COVARIANCE, names=["a", "b", "c"])
    piece = next(make_blocks(table.parts, table.players, 7, table.streams)).pieces[0]
    exact = piece.weights @ [conditional_variance(known) for known in piece.known]
    spread = np.concatenate(table.scorer(linear, 8).outputs).var()
    found = row_means(scores_of(truth, table, linear))
    error = found.std() / np.sqrt(500)
    assert abs(found.mean() - exact / spread) < 4 * error
    assert error < 0.05


@pytest.mark.parametrize("sampler", [Gaussian(), Marginal()])
def test_the_expected_msev_does_not_depend_on_the_number_of_draws(sampler):
    table = table_of(4000)
    fitted = check_sampler(sampler.clone().fit(table.X))
    few, many = (row_means(scores_of(fitted, table, linear, n_draws)) for n_draws in (2, 64))
    difference = few - many
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(difference))


def test_outputs_of_a_model_are_summed_and_shifts_and_scales_do_not_matter():
    table = table_of(400)
    fitted = Gaussian().fit(table.X)
    one = scores_of(fitted, table, linear)[0].msev
    scaled = scores_of(fitted, table, lambda rows: 5.0 - 3.0 * linear(rows))[0].msev
    np.testing.assert_allclose(scaled, one)
    both = scores_of(fitted, table, lambda rows: np.stack([linear(rows), -linear(rows)], axis=1))
    np.testing.assert_allclose(both[0].msev, one)


def test_a_constant_model_and_no_model_have_no_msev():
    table = table_of(400)
    fitted = Gaussian().fit(table.X)
    for predict in (None, lambda rows: np.ones(len(rows))):
        scores = scores_of(fitted, table, predict)[0]
        assert scores.msev is None
        assert (scores.energy != 0).all()


def test_members_of_a_group_are_known_together():
    table = table_of(400, Groups({"pair": ["a", "c"]}, ["a", "b", "c"]))
    for block in make_blocks(table.parts, table.players, 8, table.streams):
        for piece in block.pieces:
            assert len(piece.known) == 3
            assert (piece.known[:, 0] == piece.known[:, 2]).all()
            assert piece.weights.sum() == pytest.approx(1.0)


def test_a_sampler_without_a_layout_and_integer_columns_are_scored_as_a_model_sees_them():
    X = pd.DataFrame({"a": np.arange(400) % 7, "b": np.arange(400) % 5})
    table = Table.of(X, Layout.of(X), streams=Streams(0))

    class Own:
        def __init__(self, blur):
            self.blur = blur

        def fit(self, X):
            return self

        def draw(self, X, known, noise):
            drawn = np.floor(5 * noise) + self.blur * (noise - 0.5)
            return np.where(known, X[:, None], drawn)

    def predict(rows):
        assert rows.dtypes.tolist() == X.dtypes.tolist()
        return rows["a"] * 1.0

    exact, blurred = (scores_of(check_sampler(Own(blur)), table, predict)[0] for blur in (0.0, 0.9))
    np.testing.assert_array_equal(blurred.energy, exact.energy)
    np.testing.assert_array_equal(blurred.msev, exact.msev)


class Counting(Gaussian):
    """Counts its calls."""

    n_calls = 0

    def draw_rows(self, rows, known, noise):
        type(self).n_calls += 1
        return super().draw_rows(rows, known, noise)


@pytest.mark.parametrize("has_gaps", [False, True])
def test_a_coalition_of_several_pieces_is_drawn_once_with_the_same_scores(has_gaps):
    X = table_of(400).X
    if has_gaps:
        X = X.mask(np.random.default_rng(1).random(X.shape) < 0.2)
    table = Table.of(X, Layout.of(X), streams=Streams(0))
    scorer, sampler = table.scorer(None, 8), Counting().fit(X)
    block = next(make_blocks(table.parts, table.players, 7, table.streams))
    assert len(block.pieces) > 1
    Counting.n_calls = 0
    together = scorer(sampler, block)
    assert Counting.n_calls == 7
    for piece, scores in zip(block.pieces, together, strict=True):
        alone = scorer(sampler, Block(block.part, block.at, (piece,)))[0]
        np.testing.assert_allclose(scores.energy, alone.energy, rtol=1e-12)


def test_the_model_is_asked_once_about_all_held_out_rows():
    table, sizes = table_of(100), []
    assert len(table.parts) == 4

    def predict(rows):
        sizes.append(len(rows))
        return linear(rows)

    outputs = table.scorer(predict, 8).outputs
    assert sizes == [100]
    for part, found in zip(table.parts, outputs, strict=True):
        np.testing.assert_allclose(found[:, 0], linear(part.test), rtol=1e-12)


@pytest.mark.parametrize(("n_outputs", "has_gaps"), [(1, True), (3, False)])
def test_scores_are_those_of_plain_loops(n_outputs, has_gaps):
    """Two sets of draws, each a net of its own for every pair of a coalition and a row."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=90)
    X = pd.DataFrame({"a": 5 * a, "c": np.where(a > 0, "u", "v"), "b": a + rng.normal(size=90)})
    if has_gaps:
        X.loc[rng.random(90) < 0.3, "b"] = np.nan
    layout = Layout.of(X)
    table = Table.of(X, layout, streams=Streams(3))
    weights = rng.normal(size=(2, n_outputs))

    def predict(rows):
        columns = np.column_stack([np.nan_to_num(rows["a"]) ** 2, rows["c"] == "u"])
        return columns @ weights if n_outputs > 1 else (columns @ weights)[:, 0]

    scorer, sampler = table.scorer(predict, 4), Sequential(random_state=0)
    if has_gaps:
        sampler = Marginal()
    sampler.fit(X)
    assert (scorer.n_draws, scorer.has_model) == (4, True)
    every = np.concatenate([part.at for part in table.parts])
    outputs = predict(X.iloc[every]).reshape(len(every), -1)
    noise = Noise(Streams(3), 3, n_replicates=2, n_draws=2)
    matrix, n_predicted = layout.encode(X), len(every)
    for number, whole in enumerate(make_blocks(table.parts, table.players, 7, table.streams)):
        if number == 2:
            break
        block = replace(whole, pieces=whole.pieces[:1])
        held = matrix[table.parts[block.part].at]
        for piece, scores in zip(block.pieces, scorer(sampler, block), strict=True):
            rows = held[piece.rows]
            for at, known in enumerate(piece.known):
                draws = sampler.draw_rows(rows, known, noise(piece.pairs(at), 0))
                expected = energy_scores(
                    rows, draws, np.flatnonzero(~known), layout.n_categories,
                    column_scales(matrix), in_two_sets=True, center=column_means(held),
                )  # fmt: skip
                np.testing.assert_allclose(scores.energy[at], expected, rtol=1e-9, atol=1e-12)
                for place, (row, own) in enumerate(zip(rows, draws, strict=True)):
                    exact = predict(layout.decode(row[None])).reshape(-1)
                    means = [
                        predict(layout.decode(half)).reshape(2, -1).mean(axis=0)
                        for half in (own[:2], own[2:])
                    ]
                    product = ((exact - means[0]) * (exact - means[1])).sum()
                    expected = product / outputs.var(axis=0).sum()
                    assert scores.msev[at, place] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        n_predicted += 4 * block.n_pairs
        assert scorer.n_predicted == n_predicted
        assert scorer.predict_seconds > 0
