import pandas as pd
import pytest

from experiments import runtime, runtime_figures
from tiny_parts import DATA, draw_and_describe, has_provenance, run_twice


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runtime")


@pytest.fixture(scope="module")
def store(folder):
    sizes = runtime.Sizes(
        graphs=("dag_s(2)", "dag_m(2)"), data=DATA, n_rows=8, n_orderings={10: 4, 50: 2}, n_times=1
    )
    store, said = run_twice(runtime.RUNTIME, sizes, folder)
    assert not said
    return store


def test_plain_sage_skips_nothing_and_both_have_the_same_orderings(store):
    table = store.read("runtime")
    assert has_provenance(table)
    sage, skip = table[table["values"] == "SAGE"], table[table["values"] == "d-SAGE"]
    assert (sage["share_skipped"] == 0).all()
    assert (skip["share_skipped"] > 0).all()
    assert sage["n_orderings"].tolist() == skip["n_orderings"].tolist() == [4, 4, 2, 2]
    # Every prefix but the whole, on 8 rows with 10 draws.
    assert sage["n_predictions"].tolist() == [4 * 9 * 80] * 2 + [2 * 49 * 80] * 2
    assert (skip["n_predictions"].to_numpy() < sage["n_predictions"].to_numpy()).all()


def test_the_models_of_a_graph_have_the_same_orderings(store):
    savings = runtime_figures.savings(store)
    assert savings.groupby("graph")["share"].nunique().tolist() == [1, 1]


def test_savings_are_one_minus_the_ratio(store):
    table, savings = store.read("runtime"), runtime_figures.savings(store)
    sage, skip = table.iloc[0], table.iloc[1]
    assert savings["saving"].iloc[0] == pytest.approx(1 - skip["seconds"] / sage["seconds"])
    with_graph = skip["seconds"] + skip["seconds_graph"]
    assert savings["saving_with_graph"].iloc[0] == pytest.approx(1 - with_graph / sage["seconds"])


def test_the_section_shows_the_shares(store, folder):
    figures, text = draw_and_describe(runtime.RUNTIME, store, folder)
    assert figures == ["runtime.svg"]
    assert text.count("| dag_s(2) |") == 2
    assert "| 56 % |" in text  # the share in the paper


def test_one_at_a_time_saves_the_time_of_skipped_surpluses(store):
    alone = store.read("runtime_alone")
    assert has_provenance(alone)
    for suffix in ("", "_true"):
        share, skipped = alone[f"share_skipped{suffix}"], alone[f"seconds_skipped{suffix}"]
        assert share.between(0, 1, inclusive="neither").all()
        assert (skipped < alone["seconds"]).all()
    # The loop has the same orderings, so it skips the same surpluses.
    along = runtime_figures.savings(store)
    assert along["share"].tolist() == pytest.approx(alone["share_skipped"].tolist())


@pytest.mark.parametrize(("saving", "word"), [(0.5, "this holds"), (0.1, "this does not hold")])
def test_the_verdict_depends_on_the_results(saving, word):
    line = {"model": "lm", "share": 0.5, "predictions": 0.4, "saving": saving, "share_true": 0.6}
    line |= {"saving_alone": 0.5, "saving_true": 0.2, "alone": 2.0, "sage": 1.0, "paper_share": 0.5}
    table = pd.DataFrame([line, line | {"model": "rf"}]).assign(saving_with_graph=saving)
    verdict = runtime_figures._verdict(table)
    assert f"Along whole orderings, in our loop, {word}" in verdict
    assert "One surplus at a time, this holds" in verdict
    assert "With the true graph, this does not hold" in verdict
