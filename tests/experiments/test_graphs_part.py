"""The table of graphs, at a tiny size."""

import pytest

from experiments.graphs import GRAPHS, Sizes
from experiments.store import Store

TINY = Sizes(graphs=("dag_s(2)", "dag_m(4)"), n_queries=20_000, n_orderings=50)


@pytest.fixture
def messages():
    return []


@pytest.fixture
def store(tmp_path, messages):
    store = Store(tmp_path, say=messages.append)
    GRAPHS.run(store, TINY)
    return store


def test_shares_agree_with_the_paper(store):
    table = store.read("graphs").set_index("graph")
    assert table["is_exhaustive"].tolist() == [True, False]
    assert table["n_queries"].tolist() == [9 * 2**8, 20_000]
    assert table["share"].tolist() == pytest.approx([0.556, 0.274], abs=0.012)
    assert table["target_degree"].tolist() == [2, 3]
    assert table.loc["dag_s(2)", "se"] == 0
    assert table["share_along"].between(0, 1).all()


def test_stored_lines_are_not_computed_again(store, messages):
    messages.clear()
    GRAPHS.run(store, TINY)
    assert messages == []


def test_figure_is_small(store, tmp_path):
    GRAPHS.draw(store, tmp_path / "figures")
    (figure,) = (tmp_path / "figures").iterdir()
    text = figure.read_text()
    assert "dag_m(4)" in text
    assert len(text) < 60_000


def test_section_has_our_results_and_the_papers(store):
    section = GRAPHS.describe(store)
    assert "| dag_s(2) | 2 | 2 | 0.556 | 0.556 |" in section
    assert "agree with the paper in all 2 graphs. So do the shares" in section
    assert "10 nodes, we ask all queries. For the others, we ask 20,000 random" in section
    assert "largest in dag_m(4)" in section


def test_section_reports_a_difference(store):
    table = store.read("graphs")
    table.loc[0, ["share", "target_degree"]] = 0.6, 3
    table["share_along"] = table["share"]
    table.to_csv(store.folder / "graphs.csv", index=False)
    section = GRAPHS.describe(store)
    assert "The degree of the target differs from the paper in dag_s(2)." in section
    assert "differ by more than rounding and chance in dag_s(2), by at most 0.04" in section
    assert "do not differ by more than chance" in section
