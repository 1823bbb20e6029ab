"""The recipes of docs/structure.md, run as they stand there."""

import re
import warnings
from pathlib import Path

import pytest

import dsage
from dsage.datasets import paper_graph
from dsage.graphs import PartialGraph, as_graph, compare_graphs

PAGE = Path(__file__).parents[2] / "docs" / "structure.md"
MODEL = paper_graph("dag_s(2)")


def recipe(learner, name):
    """Return the function `name` of the code block that imports from `learner`."""
    pytest.importorskip(learner, reason=f"{learner} is not installed")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (block,) = (text for text in blocks if f"def {name}(" in text)
    definitions = block[: block.index("\ndsage.")]
    scope = {}
    exec(definitions, scope)
    return scope[name]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("learner", "name"),
    [("causallearn", "with_pc"), ("causallearn", "with_ges"), ("pgmpy", "with_pgmpy")],
)
def test_recipe_learns_a_graph_that_tells_separations(learner, name):
    data = MODEL.sample(3000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = dsage.learn_graph(data, method=recipe(learner, name))
    assert graph.names == tuple(data.columns)
    assert compare_graphs(MODEL.graph, graph, MODEL.target).f1 > 0.8


@pytest.mark.filterwarnings("ignore")
def test_recipe_of_fci_learns_a_partial_graph():
    data = MODEL.sample(3000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = as_graph(recipe("causallearn", "with_fci")(data))
    assert isinstance(graph, PartialGraph)
    oracle = graph.oracle(MODEL.target, [name for name in data.columns if name != MODEL.target])
    assert compare_graphs(MODEL.graph, oracle, MODEL.target).f1 > 0.8
