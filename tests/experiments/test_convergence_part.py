from itertools import product

import pandas as pd
import pytest

from experiments import convergence, convergence_figures
from tiny_parts import DATA, draw_and_describe, has_provenance, run_twice


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("convergence")


@pytest.fixture(scope="module")
def store(folder):
    sizes = convergence.Sizes(
        graphs=("dag_s(2)", "dag_m(2)"),
        curves=("dag_m(2)",),
        data=DATA,
        lm_orderings={10: 30, 50: 30},
        rf_orderings={10: 10, 50: 10},
        lm_rows=8,
        rf_rows=8,
        n_jobs=1,
    )
    store, said = run_twice(convergence.CONVERGENCE, sizes, folder)
    assert not said
    return store


def test_both_estimands_have_errors_at_the_same_looks(store):
    table = store.read("convergence")
    assert has_provenance(table)
    assert (table["mean_se"].dropna() >= 0).all()
    looks = table.groupby(["graph", "model", "values"])["n_orderings"].apply(tuple)
    for case in product(("dag_s(2)", "dag_m(2)"), ("lm", "rf")):
        assert looks[(*case, "SAGE")] == looks[(*case, "d-SAGE")]
        assert looks[(*case, "SAGE")][-1] >= 10


def test_values_that_are_always_skipped_have_no_error(store):
    table = store.read("convergence_curves")
    assert (table.groupby("model")["feature"].nunique() == 30).all()
    skipped = table[(table["values"] == "d-SAGE") & (table["value"] == 0)]
    assert len(skipped)
    assert (skipped["se"] == 0).all()


def test_the_section_compares_the_errors(store, folder):
    figures, text = draw_and_describe(convergence.CONVERGENCE, store, folder)
    assert figures == [
        "convergence_errors.svg",
        "convergence_lm_dag_m_2.svg",
        "convergence_rf_dag_m_2.svg",
    ]
    assert "| dag_m(2) | LM |" in text
    assert "d-SAGE's small values converge faster" in text


@pytest.mark.parametrize(
    ("small", "word"), [(1.0, "This holds here everywhere"), (2.0, "not hold")]
)
def test_the_verdict_depends_on_the_results(small, word):
    line = {"model": "lm", "SAGE: largest": 1.0, "d-SAGE: largest": 1.0, "SAGE: smallest": 2.0}
    table = pd.DataFrame([line | {"d-SAGE: smallest": small, "d-SAGE: smallest, zero": 0.5}])
    assert word in convergence_figures._verdict(table)
