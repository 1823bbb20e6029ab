"""The recipes of docs/structure.md, run as they stand there."""

import re
import warnings
from pathlib import Path

import pytest

import dsage
from dsage.datasets import paper_graph
from dsage.graphs import compare_graphs

PAGE = Path(__file__).parents[2] / "docs" / "structure.md"
MODEL = paper_graph("dag_s(2)")


def recipe(learner):
    """Return the functions of the code block that imports from `learner`."""
    pytest.importorskip(learner, reason=f"{learner} is not installed")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (block,) = (text for text in blocks if text.startswith(f"from {learner}"))
    definitions = block[: block.index("dsage.learn_graph")]
    scope = {}
    exec(definitions, scope)
    return scope


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("learner", "name"),
    [("causallearn", "with_pc"), ("causallearn", "with_ges"), ("pgmpy", "with_pgmpy")],
)
def test_recipe_learns_a_graph_that_tells_separations(learner, name):
    data = MODEL.sample(3000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = dsage.learn_graph(data, method=recipe(learner)[name])
    assert graph.names == tuple(data.columns)
    assert compare_graphs(MODEL.graph, graph, MODEL.target).f1 > 0.8
