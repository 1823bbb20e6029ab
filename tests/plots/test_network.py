import dataclasses

import matplotlib as mpl
import pandas as pd
import pytest

import plot_cases as cases
from explanations import make_explanation

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch

from dsage import Graph
from dsage.datasets import paper_graph
from dsage.plots import draw_graph, graph


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def boxes(ax):
    return {text.get_text(): text for text in ax.texts}


def test_every_node_and_edge_is_drawn():
    graph = Graph(list("abcy"), [("a", "b"), ("b", "y"), ("y", "a")], [("c", "y")])
    ax = draw_graph(graph)
    ax.figure.draw_without_rendering()
    assert set(boxes(ax)) == set(graph.names)
    assert len(ax.patches) == 4
    assert ax.get_legend() is None


def test_indicators_of_missing_values_are_dashed():
    indicators = {"no a": ["a"]}
    ax = draw_graph(Graph(["a", "no a", "y"], [("no a", "y")], indicators=indicators), "y")
    styles = {name: box.get_bbox_patch().get_linestyle() for name, box in boxes(ax).items()}
    assert styles == {"a": "-", "no a": "--", "y": "-"}
    assert "indicator of missing values" in [
        text.get_text() for text in ax.get_legend().get_texts()
    ]
    # An explanation may show the target and its blanket only.
    whole = Graph(["a", "no a", "b", "y"], [("no a", "y")], indicators=indicators)
    shown = dataclasses.replace(make_explanation(), graph=whole, target="y", edge_strength=None)
    part = boxes(graph(shown, blanket_only=True))
    assert set(part) == {"no a", "y"}
    assert part["no a"].get_bbox_patch().get_linestyle() == "--"


def test_the_target_and_its_blanket_stand_out():
    model = paper_graph("dag_s(3)")
    ax = draw_graph(model.graph, model.target)
    colors = {name: to_hex(box.get_bbox_patch().get_facecolor()) for name, box in boxes(ax).items()}
    blanket = model.graph.markov_blanket(model.target)
    others = set(model.graph.names) - set(blanket) - {model.target}
    assert len({colors[name] for name in blanket}) == 1
    assert len({colors[name] for name in others}) == 1
    assert len({colors[model.target], colors[blanket[0]], colors[min(others)]}) == 3


def test_causes_stand_to_the_left_of_effects_and_no_two_nodes_overlap():
    model = paper_graph("dag_m(3)")
    ax = draw_graph(model.graph)
    position = {name: box.get_position() for name, box in boxes(ax).items()}
    assert all(position[tail][0] < position[head][0] for tail, head in model.graph.edges)
    assert len(set(position.values())) == len(model.graph)


def test_long_names_stay_inside_the_figure():
    names = ["a feature with quite a long name", "another one of about that length", "target"]
    ax = draw_graph(Graph(names, [(names[0], "target"), (names[1], "target")]))
    ax.figure.draw_without_rendering()
    frame = ax.figure.bbox
    for text in ax.texts:
        extent = text.get_bbox_patch().get_window_extent()
        assert frame.x0 <= extent.x0
        assert extent.x1 <= frame.x1


def test_names_are_not_read_as_formulas(tmp_path):
    graph = Graph(["$x", "a_{", "$\\frac$"], [("$x", "a_{")])
    draw_graph(graph).figure.savefig(tmp_path / "graph.png")


def test_something_else_than_a_graph_is_refused():
    with pytest.raises(TypeError, match=r"graph must be a dsage\.Graph; got 'str'"):
        draw_graph("graph")


def test_draws_where_told():
    _, ax = plt.subplots()
    assert draw_graph(Graph(["a"], []), ax=ax) is ax


def arrows(ax):
    return [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]


def explained(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_surer_edges_are_wider_and_darker():
    model = Graph(["a", "b", "y"], [("a", "y"), ("b", "y"), ("a", "b")])
    # The second edge was found the other way round only, and the third never.
    strength = pd.DataFrame({"from": ["a", "y"], "to": ["y", "b"], "share_either": [1.0, 0.4]})
    ax = draw_graph(model, strength=strength)
    widths = [arrow.get_linewidth() for arrow in arrows(ax)]
    paleness = [sum(arrow.get_edgecolor()[:3]) for arrow in arrows(ax)]
    by_edge = dict(zip(model.edges, zip(widths, paleness, strict=True), strict=True))
    assert by_edge["a", "y"][0] > by_edge["b", "y"][0] > by_edge["a", "b"][0] > 0
    assert by_edge["a", "y"][1] < by_edge["b", "y"][1] < by_edge["a", "b"][1] < 3
    assert len(explained(ax)) == 2


def test_strength_needs_its_columns():
    frame = pd.DataFrame({"from": ["a"], "to": ["b"]})
    with pytest.raises(
        ValueError, match=r"strength must be a frame with the columns .*'share_either'"
    ):
        draw_graph(Graph(["a", "b"], [("a", "b")]), strength=frame)


def test_the_graph_of_a_run_has_target_blanket_and_strengths():
    explanation = make_explanation(3)
    ax = graph(explanation)
    assert set(boxes(ax)) == {*explanation.feature_names, explanation.target}
    assert explained(ax)[:2] == ["target", "its Markov blanket"]
    assert len(explained(ax)) == 4
    unsure = dataclasses.replace(explanation, edge_strength=None)
    assert len(explained(graph(unsure))) == 2


def test_of_a_large_graph_only_the_blanket_is_drawn_and_that_is_said():
    explanation = cases.made_up(cases.plain_names(60))
    ax = graph(explanation)
    blanket = explanation.graph.markov_blanket("target")
    assert set(boxes(ax)) == {"target", *blanket}
    title = f"the target and its Markov blanket: {len(blanket) + 1} of 61 nodes"
    assert ax.get_legend().get_title().get_text() == title
    assert len(boxes(graph(explanation, blanket_only=False))) == 61
    small = graph(cases.made_up(cases.plain_names(4)), blanket_only=True)
    assert set(boxes(small)) == {"target", "feature 0", "feature 3"}


def test_the_blanket_keeps_its_edges():
    edges = [("a", "y"), ("b", "a"), ("y", "c"), ("d", "c")]
    explanation = dataclasses.replace(
        cases.made_up(list("abcd")), graph=Graph(list("abcdy"), edges, [("a", "c")]), target="y"
    )
    ax = graph(explanation, blanket_only=True)
    assert {"y", "a", "c", "d"} <= set(boxes(ax))
    kept = [edge for edge in edges if set(edge) <= set(boxes(ax))]
    assert len(arrows(ax)) == len(kept) + 1


def test_without_a_graph_there_is_nothing_to_draw():
    with pytest.raises(ValueError, match=r"explanation must be .*graph"):
        graph(make_explanation(2, audited=False))
