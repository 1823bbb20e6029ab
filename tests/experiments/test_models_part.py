import pytest

from experiments import models
from tiny_parts import DATA, draw_and_describe, has_provenance, run_twice


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def store(folder):
    sizes = models.Sizes(graphs=("dag_s(2)", "dag_sm(3)"), data=DATA)
    store, said = run_twice(models.MODELS_PART, sizes, folder)
    assert not said
    return store


def test_each_graph_has_both_models(store):
    table = store.read("models")
    assert has_provenance(table)
    assert table.groupby("graph")["model"].apply(list).to_list() == [["lm", "rf"]] * 2
    assert table["mse"].between(0, 2).all()
    assert table["r2"].between(-1, 1).all()


def test_the_section_has_our_errors_and_the_papers(store, folder):
    figures, text = draw_and_describe(models.MODELS_PART, store, folder)
    assert figures == ["models.svg"]
    first = store.read("models").iloc[0]
    assert f"| dag_s(2) | {first['mse']:.3f} | 0.541 | {first['r2']:.3f} | 0.495 |" in text
    assert "200 rows and tested on 40" in text


def test_the_verdict_depends_on_the_results(store):
    table = models.beside(store)
    table["deviation"] = 0.5
    assert "agree with the paper up to chance" in models._verdict(table, "lm")
    table["deviation"] = 5.0
    verdict = models._verdict(table, "lm")
    assert "larger in 2 of these. Here it was trained on fewer rows" in verdict
