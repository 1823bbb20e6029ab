import numpy as np
import pytest

from dsage.datasets import PAPER_GRAPHS, PaperGraph, paper_graph


@pytest.mark.parametrize("name", PAPER_GRAPHS)
def test_paper_graphs_are_standardised_dags_with_the_printed_target_degree(name):
    model = paper_graph(name)
    assert isinstance(model, PaperGraph)
    assert model.graph.is_dag
    size = {"s": 10, "sm": 20, "m": 50, "l": 100}[name.split("_")[1].split("(")[0]]
    assert len(model.graph) == size
    np.testing.assert_allclose(np.diag(model.covariance()), 1.0, atol=1e-12)
    degree = len(model.graph.parents(model.target)) + len(model.graph.children(model.target))
    assert degree == model.printed["target_degree"]


@pytest.mark.parametrize("name", PAPER_GRAPHS)
def test_best_linear_model_has_the_printed_error(name):
    """The paper's linear model was fitted on 8,000 rows and tested on 2,000.

    The mean of 2,000 squared normal residuals has the relative standard error sqrt(2 / 2000); the
    fit on 8,000 rows inflates the error by about d / 8000.
    """
    model = paper_graph(name)
    precision = np.linalg.inv(model.covariance())
    at = model.graph.names.index(model.target)
    expected = 1 / precision[at, at] * (1 + len(model.graph) / 8000)
    assert abs(model.printed["mse_lm"] - expected) <= 3.5 * expected * np.sqrt(2 / 2000) + 0.0005


def test_each_call_returns_a_model_of_its_own():
    one = paper_graph("dag_s(2)")
    one.printed["mse_lm"] = -1.0
    one.weights.clear()
    other = paper_graph("dag_s(2)")
    assert other.printed["mse_lm"] == 0.541
    assert len(other.weights) == 8


def test_repr_names_the_graph_and_the_target():
    assert repr(paper_graph("dag_s(2)")).startswith("PaperGraph('dag_s(2)', target='X8', Graph(10")


def test_an_unknown_graph_is_refused_with_a_suggestion():
    with pytest.raises(ValueError, match=r"name must be one of the paper's graphs; got 'dag_s'\."):
        paper_graph("dag_s")
