import numpy as np
import pandas as pd
import pytest

from experiments import values, values_figures
from experiments.problem import problem, run_quietly, uniform_orderings
from experiments.store import seed_of
from tiny_parts import DATA, draw_and_describe, has_provenance, run_twice

SIZES = values.Sizes(
    graphs=("dag_s(2)", "dag_sm(3)"),
    data=DATA,
    n_runs=2,
    lm_orderings=4,
    rf_orderings={10: 3, 20: 2},
    rf_rows=8,
    n_jobs=1,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("values")


@pytest.fixture(scope="module")
def store(folder):
    store, said = run_twice(values.VALUES, SIZES, folder)
    assert not said
    return store


def test_runs_have_the_same_features_at_most_fifteen(store):
    table = store.read("values")
    assert has_provenance(table)
    sizes = table.groupby(["graph", "model", "run"]).size()
    assert sizes["dag_s(2)"].tolist() == [9] * 4
    assert sizes["dag_sm(3)"].tolist() == [15] * 4
    assert (table.groupby(["graph", "model", "feature"]).size() == 2).all()


def test_the_difference_equals_that_of_two_runs_along_the_same_orderings(store):
    seed = seed_of("values", "dag_s(2)", "rf", 0)
    at = problem("dag_s(2)", DATA)
    orderings = uniform_orderings(9, 3, seed)
    sage, skip = (
        run_quietly(
            at.game("rf", n_rows=8, seed=seed, draws=10),
            oracle=oracle,
            orderings=orderings,
            random_state=seed,
            audit=False,
            first_level="none",
            exact="never",
            semantics="skip",
        )
        for oracle in (None, at.oracle)
    )
    table = store.read("values")
    mine = table[(table["graph"] == "dag_s(2)") & (table["model"] == "rf") & (table["run"] == 0)]
    by_name = mine.set_index("feature").loc[list(sage.feature_names)]
    np.testing.assert_allclose(by_name["sage"], sage.values, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(
        by_name["difference"], skip.values - sage.values, rtol=1e-3, atol=1e-9
    )


def test_a_feature_that_is_never_skipped_does_not_change(store):
    table = store.read("values")
    assert (table.loc[table["n_skipped"] == 0, "difference"] == 0).all()
    assert (table.loc[table["n_skipped"] > 0, "low"] <= table["high"].dropna()).all()


def test_the_section_shows_values_and_changes(store, folder):
    figures, text = draw_and_describe(values.VALUES, store, folder)
    assert "values_lm.svg" in figures
    assert "values_rf_dag_sm.svg" in figures
    assert "| dag_s(2) | " in text
    assert "2 runs for each graph and model" in text


@pytest.mark.parametrize(("orders", "word"), [(3.0, "The first claim holds"), (1.0, "not hold")])
def test_the_verdict_depends_on_the_results(orders, word):
    line = {"graph": "a", "model": "lm", "orders": orders, "ratio": 10**-orders, "n_rows": 10}
    table = pd.DataFrame([line, line | {"model": "rf"}]).assign(change_top=0.1)
    text = values_figures._verdict(table)
    assert word in text
    assert "larger for the forest than for the linear model in 0 of 1 graphs" in text
