"""Tests that faster ways to score families, and to rule out changes, find the same."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from dsage.data.table import Table
from dsage.graphs import Graph, random_dag
from dsage.structure import last_check
from dsage.structure.blocks import Blocks
from dsage.structure.scores import noise
from dsage.structure.scores.approximation import Approximation
from dsage.structure.scores.base import Score
from dsage.structure.scores.basis import BasisScore
from dsage.structure.scores.block_gaussian import BlockRegressions
from dsage.structure.scores.products import ProductRegressions
from dsage.structure.searches.boss import boss

N_ROWS = 1_500


def curved(n_nodes, n_rows=N_ROWS, seed=0, *, has_class=False):
    """Draw numbers that depend on others by curves, with skewed noise."""
    rng = np.random.default_rng(seed)
    graph = random_dag(n_nodes, 3, random_state=seed)
    values = {}
    for name in graph.topological_order():
        effects = (
            np.sin(1.5 * values[parent]) + 0.5 * values[parent] for parent in graph.parents(name)
        )
        values[name] = sum(effects) + rng.gamma(2.0, 0.5, n_rows)
    frame = pd.DataFrame(values)[list(graph.names)]
    if has_class:
        frame["class"] = np.where(frame.iloc[:, 0] + rng.normal(size=n_rows) > 1.0, "p", "q")
    return frame


def blocks_of(frame):
    return Blocks.from_table(Table(frame))


@pytest.mark.parametrize("has_class", [False, True])
class TestRegressions:
    """Blocks of equal widths, as of numbers alone, take shorter ways."""

    @pytest.fixture
    def blocks(self, has_class):
        return blocks_of(curved(5, has_class=has_class))

    @staticmethod
    def make(blocks, *responses):
        return BlockRegressions(
            blocks.correlation,
            [blocks.columns(node) for node in range(len(blocks.names))],
            *responses,
        )

    def test_widths_are_equal_without_classes(self, blocks, has_class):
        assert (self.make(blocks).width is None) == has_class

    @pytest.mark.parametrize("parents", [(1,), (1, 3), (1, 2, 4)])
    def test_growing_and_leaving_out_are_regressions_of_their_own(self, blocks, parents):
        made, response = self.make(blocks), blocks.responses[:, 0]
        left, alone = made.grown(response, parents, each=True)
        fresh = self.make(blocks)
        np.testing.assert_allclose(alone, fresh.left(response, parents, each=True), atol=1e-6)
        for other in {1, 2, 3, 4} - set(parents):
            expected = fresh.left(response, tuple(sorted((*parents, other))), each=True)
            np.testing.assert_allclose(left[other], expected, atol=1e-5)
        without = made.left_without(response, parents, each=True)
        for at in range(len(parents)):
            expected = fresh.left(response, parents[:at] + parents[at + 1 :], each=True)
            np.testing.assert_allclose(without[at], expected, atol=1e-5)

    def test_columns_that_are_not_kept_change_nothing(self, blocks):
        response = blocks.responses[:, 0]
        one, other = self.make(blocks), self.make(blocks, response)
        for found in ("left", "left_with", "left_without"):
            results = [
                getattr(made, found)(response, parents, each=True)
                for made in (one, other)
                for parents in ((1, 2), (1, 2, 3))
            ]
            np.testing.assert_allclose(results[0], results[2], atol=1e-10)
            np.testing.assert_allclose(results[1], results[3], atol=1e-10)

    def test_several_responses_have_the_slopes_of_each(self, blocks):
        made, responses = self.make(blocks), blocks.responses[:, 0]
        columns, slopes = made.slopes(responses, (1, 3))
        predicted = blocks.predict(columns, slopes)
        for at in range(2):
            own = made.slopes(responses[at : at + 1], (1, 3))[1][:, 0]
            np.testing.assert_allclose(slopes[:, at], own, atol=1e-10)
            expected = blocks.thinned[:, columns] @ own
            np.testing.assert_allclose(predicted[:, at], expected, atol=1e-9)
            np.testing.assert_allclose(blocks.predict(columns, own), expected, atol=1e-9)

    def test_a_family_that_was_grown_scores_as_a_new_one(self, blocks):
        one = Approximation(blocks)
        for node, parents in ((0, ()), (0, (1, 2)), (3, (0, 1, 4))):
            added, family = one.growth(node, parents)
            assert family == pytest.approx(Approximation(blocks).family(node, parents), abs=1e-3)
            assert one.family(node, parents) == family
            for other in set(range(5)) - {node, *parents}:
                more = tuple(sorted((*parents, other)))
                expected = Approximation(blocks).family(node, more)
                assert added[other] == pytest.approx(expected, abs=1e-2)


def test_columns_of_products_are_those_of_all_pairs():
    blocks = blocks_of(curved(4, has_class=True))
    products = ProductRegressions(blocks, 0, itertools.combinations(range(5), 2))
    columns, n_products = products.columns((0, 2, 4))
    assert n_products == 3
    rows, _ = products.rows_of(columns)
    plain = rows[:, :3]
    for at, (one, other) in enumerate([(1, 0), (2, 0), (2, 1)]):
        made = plain[:, one] * plain[:, other]
        assert np.corrcoef(made, rows[:, 3 + at])[0, 1] == pytest.approx(1.0)
    # Asked again, they come from memory.
    assert products.columns((0, 2, 4))[0] is columns


@pytest.mark.parametrize("size", [2, 6])
def test_the_tilt_is_the_best_of_its_kind(size):
    standard = np.random.default_rng(0).gamma(2.0, size=2_000)
    standard = (standard - standard.mean()) / standard.std()
    bins = np.minimum((noise.ndtr(standard) * 64).astype(int), 63)
    tilts = noise._FIRST[size]
    moments = noise._TILTS.T @ (np.bincount(bins, minlength=64) / 2_000)

    def loss(weights):
        return np.log(np.exp(tilts @ weights).mean()) - moments[:size] @ weights

    best = minimize(loss, np.zeros(size)).fun
    gain, _ = noise._fit(size, moments, np.zeros(6), 1e-9)
    assert gain == pytest.approx(-best, abs=1e-4)


class Counting(Score):
    """A score that counts the families that are scored exactly."""

    is_approximate = True

    def __init__(self, score, margin):
        self.names, self.margin = score.names, margin
        self._score = score
        self.asked = set()

    def family(self, node, parents):
        self.asked.add((node, parents))
        return self._score.family(node, parents)

    def removals(self, node, parents):
        self.asked.add((node, parents))
        return self._score.removals(node, parents)

    def growth(self, node, parents):
        return self._score.growth(node, parents)

    def quick(self, node, parents):
        return self._score.quick(node, parents)


class TestRulingOut:
    """Places of an order that approximate scores rule out would not have been taken."""

    @staticmethod
    @functools.cache
    def make(seed):
        table = Table(curved(9, seed=seed))
        return BasisScore(table, Blocks.from_table(table))

    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_the_graph_is_the_same_with_fewer_exact_scores(self, seed):
        score = self.make(seed)
        assert score.margin is not None
        found = []
        for margin in (None, score.margin):
            counting = Counting(score, margin)
            result = boss(counting, order=sorted(score.names, reverse=True))
            found.append((result.graph, result.score, len(counting.asked)))
        assert found[0][0] == found[1][0]
        assert found[0][1] == pytest.approx(found[1][1])
        assert found[1][2] < found[0][2]

    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_a_margin_without_end_rules_out_nothing(self, seed):
        score = self.make(seed)
        one, other = Counting(score, None), Counting(score, math.inf)
        order = sorted(score.names, reverse=True)
        assert boss(one, order=order).graph == boss(other, order=order).graph
        assert one.asked == other.asked

    def test_nothing_is_ruled_out_beside_classes(self):
        table = Table(curved(4, has_class=True))
        assert BasisScore(table, Blocks.from_table(table)).margin is None


def test_products_that_the_last_check_does_not_look_at_would_not_be_put_back(monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(2_000, 6)), columns=list("abcdef"))
    frame["b"] += 0.9 * frame["a"]
    frame["t"] = frame["a"] + frame["b"] * frame["c"] + frame["d"] * frame["e"]
    frame["t"] += rng.normal(size=2_000)
    graph = Graph([*"abcdef", "t"], [("a", "b"), ("a", "t"), ("b", "t")])
    blocks = blocks_of(frame)
    some = last_check.reject_claims(graph, blocks, "t")
    monkeypatch.setattr(last_check, "_SPREAD_LEFT", -1.0)
    every = last_check.reject_claims(graph, blocks, "t")
    assert [each[:2] for each in every] == [each[:2] for each in some]
    p_values = [[each.p_value for each in found] for found in (every, some)]
    np.testing.assert_allclose(*p_values, rtol=1e-6)
    assert {"c", "d", "e"} <= {each.tail for each in some}
