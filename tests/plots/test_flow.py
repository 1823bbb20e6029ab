import dataclasses

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import same_color
from matplotlib.patches import FancyArrowPatch

import dsage
from dsage import plots
from dsage.plots.flow import _LESS, _MORE, _NOTHING


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    X[:, 1] += X[:, 0]
    y = X[:, 1] + rng.normal(size=300)
    graph = dsage.Graph(["X1", "X2", "y"], [("X1", "X2"), ("X2", "y")])
    # What the model takes from the first feature does harm.
    return dsage.explain_flow(
        lambda X: X[:, 1] - 0.5 * X[:, 0], X, y, X, y, graph=graph, target="y",
        loss="squared_error", n_orderings=1, random_state=0, progress=False,
    )  # fmt: skip


def arrows(ax):
    return [each for each in ax.patches if isinstance(each, FancyArrowPatch)]


def test_widths_are_values_and_colours_their_signs(found):
    ax = found.plot.flow()
    ax.figure.draw_without_rendering()
    lines = found.to_frame().query("kind != 'source'")
    drawn = sorted(arrows(ax), key=lambda arrow: arrow.get_arrowstyle().tail_width)
    assert len(drawn) == len(lines)
    ranked = lines.iloc[np.argsort(np.abs(lines["value"]), kind="stable")]
    for arrow, value in zip(drawn, ranked["value"], strict=True):
        color = _NOTHING if value == 0 else _MORE if value > 0 else _LESS
        assert same_color(arrow.get_facecolor()[:3], color)
        share = abs(value) / lines["value"].abs().max()
        assert arrow.get_arrowstyle().tail_width == pytest.approx(0.6 + 8.4 * share, abs=1e-3)
    assert found["X1", "model"]["value"] < 0
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[:3] == ["reduces the risk (squared error)", "increases it", "carries nothing"]


def test_labels_have_values_and_errors(found):
    texts = [text.get_text() for text in found.plot.flow().texts]
    line = found["X1", "X2"]
    half = (line["upper_total"] - line["lower_total"]) / 2
    assert f"{line['value']:.2f} ± {half:.2f}" in texts
    assert any(text.startswith("X1\nown ") for text in texts)
    assert f"model\n{found.reduction:.4g} in all" in texts
    few = [text.get_text() for text in found.plot.flow(top=0).texts]
    assert len(few) == 4  # the nodes and the model


def test_a_node_may_be_called_model(found):
    names = {"X1": "model", "X2": "X2", "y": "y"}
    edges = tuple(
        edge._replace(
            source=names.get(edge.source, edge.source),
            target=names.get(edge.target, edge.target),
        )
        for edge in found.edges
    )
    graph = dsage.Graph(["model", "X2", "y"], [("model", "X2"), ("X2", "y")])
    renamed = dataclasses.replace(found, edges=edges, nodes=("model", "X2"), graph=graph)
    assert len(arrows(plots.flow(renamed))) == len(arrows(plots.flow(found)))


def test_other_results_are_refused():
    with pytest.raises(TypeError, match="explanation must be a FlowExplanation"):
        plots.flow("flow")
