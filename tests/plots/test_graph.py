import matplotlib as mpl
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from dsage import Graph
from dsage.datasets import paper_graph
from dsage.plots import draw_graph


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


def test_the_target_and_its_blanket_stand_out():
    model = paper_graph("dag_s(3)")
    ax = draw_graph(model.graph, model.target)
    colours = {
        name: to_hex(box.get_bbox_patch().get_facecolor()) for name, box in boxes(ax).items()
    }
    blanket = model.graph.markov_blanket(model.target)
    others = set(model.graph.names) - set(blanket) - {model.target}
    assert len({colours[name] for name in blanket}) == 1
    assert len({colours[name] for name in others}) == 1
    assert len({colours[model.target], colours[blanket[0]], colours[min(others)]}) == 3


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
