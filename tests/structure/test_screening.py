"""Tests of the look at wide tables that decides whether lines suffice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dsage.data.table import Table
from dsage.graphs import random_dag, random_linear_gaussian
from dsage.structure import automatic, search_graph
from dsage.structure.screening import find_suspects
from dsage.structure.source import as_data

N_NODES, N_ROWS = 120, 1_000


@pytest.fixture(scope="module")
def model():
    return random_linear_gaussian(random_dag(N_NODES, 2, random_state=0), random_state=0)


@pytest.fixture(scope="module")
def frame(model):
    return model.sample(N_ROWS, random_state=0)


def suspects(frame, parents):
    price, margin = np.log(len(frame)) / 2, 2 * np.log(frame.shape[1])
    return find_suspects(Table(frame), parents, price=price, margin=margin)


def true_parents(model):
    place = {name: node for node, name in enumerate(model.graph.names)}
    return [[place[each] for each in model.graph.parents(name)] for name in model.graph.names]


def test_linear_normal_columns_are_hardly_suspect(model, frame):
    # Only columns whose gain exceeds half of what they must gain; there are 14,280 pairs.
    assert len(suspects(frame, true_parents(model))) < 0.1 * N_NODES


def test_a_curved_effect_is_the_first_suspect(frame):
    rng = np.random.default_rng(1)
    curved = frame.assign(bent=np.cos(2 * frame["X7"]) + rng.normal(size=N_ROWS))
    found = suspects(curved, [[]] * (N_NODES + 1))
    at = {each.node: each.other for each in found}
    assert at[N_NODES] == list(frame.columns).index("X7")


def test_a_skewed_column_is_suspect(frame):
    rng = np.random.default_rng(1)
    skewed = frame.assign(skewed=rng.exponential(size=N_ROWS))
    assert suspects(skewed, [[]] * (N_NODES + 1))[0].node == N_NODES


def test_missing_values_are_no_reason_for_suspicion(frame):
    rng = np.random.default_rng(1)
    gaps = frame.mask(rng.random(frame.shape) < 0.05)
    table = as_data(gaps)
    price, margin = np.log(N_ROWS) / 2, 2 * np.log(len(table.names))
    found = find_suspects(table, [[]] * len(table.names), price=price, margin=margin)
    numbers = [each for each in found if table.names[each.node] in frame]
    assert len(numbers) < 0.2 * N_NODES


class TestDecision:
    """The choice of the score for tables that are taken for wide."""

    @pytest.fixture(autouse=True)
    def wide(self, monkeypatch):
        monkeypatch.setattr(automatic, "_MAX_COLUMNS", 20)
        monkeypatch.setattr(automatic, "_MAX_CLOSE", 6)

    @pytest.fixture
    def frame(self):
        graph = random_dag(30, 2, random_state=0)
        return random_linear_gaussian(graph, random_state=0).sample(500, random_state=0)

    def test_linear_tables_keep_the_extended_bic(self, frame):
        result = search_graph(frame, method="tabu", target="X1")
        assert (result.score_name, result.curved) == ("ebic", ())

    def test_one_curved_column_decides(self, frame):
        noise = np.random.default_rng(1).normal(size=len(frame))
        curved = frame.assign(bent=np.cos(2 * frame["X7"]) + 0.5 * noise)
        result = search_graph(curved, method="tabu")
        assert result.score_name == "basis"
        assert "bent" in result.curved
        assert {"X7", "bent"} in [set(edge) for edge in result.graph.edges]

    def test_skewed_columns_decide(self, frame):
        result = search_graph(np.exp(frame), method="tabu")
        assert result.score_name == "basis"
        assert result.curved


def test_a_number_of_few_values_is_looked_at():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=500), "n": rng.poisson(2.0, size=500) * 1.0})
    assert all(np.isfinite(each.gain) for each in suspects(frame, [[], []]))
