import numpy as np
import pytest

from experiments import beyond, beyond_figures
from tiny_parts import DATA, draw_and_describe, has_provenance, run_twice


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("beyond")


@pytest.fixture(scope="module")
def store(folder):
    sizes = beyond.Sizes(
        graphs=("dag_s(2)",),
        data=DATA,
        lm_tolerance=0.1,
        rf_tolerance=0.1,
        lm_seconds=0.05,
        rf_seconds=0.05,
        min_units=4,
        rf_rows=8,
        rf_rows_per_ordering=8,
    )
    store, said = run_twice(beyond.BEYOND, sizes, folder)
    assert not said
    return store


def test_both_models_have_every_way(store):
    table = store.read("beyond")
    assert has_provenance(table)
    assert table.groupby("model")["way"].apply(tuple).tolist() == [tuple(beyond.WAYS)] * 2
    assert np.isfinite(table[["error", "evaluations_needed", "seconds_needed"]]).all(axis=None)


def test_costs_are_extrapolated_with_the_square_of_the_error(store):
    table = store.read("beyond")
    done, left = table[table["is_reached"]], table[~table["is_reached"]]
    assert len(done)
    assert len(left)
    assert (done["evaluations_needed"] == done["n_evaluated"]).all()
    times = np.maximum((left["error"] / left["tolerance"]) ** 2, 1)
    np.testing.assert_allclose(left["evaluations_needed"], left["n_evaluated"] * times, rtol=1e-6)


def test_factors_are_relative_to_plain_sage(store):
    table = store.read("beyond")
    table.loc[table["way"] == "SAGE, uniform", "evaluations_needed"] = 100.0
    table.loc[table["way"] == "d-SAGE, levels", "evaluations_needed"] = 4.0
    fewer = beyond_figures.factors(table, "lm", "evaluations_needed")
    assert fewer["SAGE, uniform"].tolist() == [1.0]
    assert fewer["d-SAGE, levels"].tolist() == [25.0]


def test_the_section_compares_the_ways(store, folder):
    figures, text = draw_and_describe(beyond.BEYOND, store, folder)
    assert figures == ["beyond.svg"]
    assert text.count("| dag_s(2) |") == 2
    for way in beyond.WAYS:
        assert f"| {way} |" in text


def test_a_budget_waits_for_units():
    class Progress:
        n_units, se = 3, np.ones(2)

    budget = beyond.PatientBudget(0.0, min_units=4)
    assert budget.reason(Progress) is None
    Progress.n_units = 4
    assert budget.reason(Progress) == "the time is used up"
    Progress.se = np.array([1.0, np.inf])
    assert budget.reason(Progress) is None
    Progress.se = np.ones(2)
    assert beyond.PatientBudget(60.0, min_units=4).reason(Progress) is None
