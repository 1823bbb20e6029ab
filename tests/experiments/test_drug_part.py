import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from drug_data import drug_file
from dsage import Graph
from dsage.datasets import DRUG_FEATURES
from dsage.games import LossGame
from dsage.samplers import Gaussian
from experiments import drug
from experiments.page import write_page
from experiments.store import Store
from tiny_parts import draw_and_describe, has_provenance, run_twice


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("drug")


@pytest.fixture(scope="module")
def store(folder):
    sizes = drug.Sizes(n_runs=2, n_orderings=1, n_rows=12, n_draws=2, n_splits=2, exact=())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DSAGE_DRUG_DATA", str(drug_file()))
        store, said = run_twice(drug.DRUG, sizes, folder)
    assert not said
    return store


def test_runs_have_all_features_and_skip_some(store):
    table = store.read("drug")
    assert has_provenance(table)
    features = table.groupby(["setting", "run"])["feature"].apply(tuple)
    assert features.tolist() == [DRUG_FEATURES] * 4
    assert table["share_skipped"].between(0, 1).all()
    never = table["share_skipped"] == 0
    assert (table.loc[never, "sage"] == table.loc[never, "dsage"]).all()


def test_graphs_have_shares_to_skip(store):
    table = store.read("drug_graphs")
    learned_from = list(zip(table["setting"], table["split"], strict=True))
    assert learned_from == [("authors", 0), ("ours", 0), ("ours", 1)]
    assert table["share_skipped"].between(0.05, 0.95).all()


def test_the_graph_of_the_authors_skips_the_share_in_the_paper(store):
    line = store.read("drug_graphs").iloc[0]
    assert line["share_skipped"] == pytest.approx(0.38, abs=0.005)
    assert line["neighbours"].split() == ["Gender", "Age"]


def test_the_model_is_better_than_the_share_of_users(store):
    for _, line in store.read("drug_model").iterrows():
        assert (line["n_train"], line["n_test"]) == (1319, 566)
        assert line["cross_entropy"] < line["cross_entropy_of_share"]


def test_the_section_compares_with_the_paper(store, folder):
    figures, text = draw_and_describe(drug.DRUG, store, folder)
    assert figures == ["drug_authors.svg", "drug_ours.svg"]
    assert "| 2 runs, SAGE and d-SAGE |" in text
    assert "| 12 h 14 min, at most 2,590 orderings |" in text
    assert "the share of surpluses that can be skipped agrees with the paper: 38 %" in text


class Small:
    """A split of data with three features, one of which is separated."""

    def __init__(self):
        generator = np.random.default_rng(0)
        self.X = pd.DataFrame(generator.normal(size=(60, 3)), columns=["a", "b", "c"])
        self.y = (self.X["a"] + self.X["b"] + generator.normal(size=60) > 0).astype(int)
        self.oracle = Graph(["a", "b", "c", "y"], [("a", "y"), ("b", "y")]).oracle("y")

    def game(self, sizes, seed):
        model = LogisticRegression().fit(self.X, self.y)
        sampler = Gaussian().fit(self.X)
        return LossGame(model, sampler, self.X, self.y, n_draws=4, random_state=seed)


def test_all_orderings_are_averaged_over():
    sizes = drug.Sizes()
    found = {
        way: pd.DataFrame(drug._exact(Small(), sizes, way, 0)).set_index("feature")
        for way in drug.WAYS
    }
    assert [int(frame["n_coalitions"].iloc[0]) for frame in found.values()] == [8, 8, 4]
    assert all(frame["is_exact"].all() for frame in found.values())
    assert found["SAGE"].loc["c", "value"] != 0
    assert found["d-SAGE, skip"].loc["c", "value"] == 0
    assert found["d-SAGE, boundary"].loc["c", "value"] == 0


def test_values_over_all_orderings_are_shown(store, folder):
    lines = [
        {"feature": name, "value": 0.0123, "lower": 0.01, "upper": 0.02, "n_coalitions": 4096}
        for name in DRUG_FEATURES
    ]
    other = Store(folder / "with_exact")
    for name in ("drug_model", "drug_graphs", "drug"):
        shutil.copy(store.folder / f"{name}.csv", other.folder)
    for way in drug.WAYS:
        shift = 0.5 * (way == "d-SAGE, boundary")
        made_up = [line | {"value": 0.0123 + shift, "seconds": 9.0} for line in lines]
        key = {"setting": "authors", "way": way}
        other.unit("drug_values", key, lambda made_up=made_up: made_up, seed=0)
    figures, text = draw_and_describe(drug.DRUG, other, folder)
    assert figures == ["drug_authors.svg", "drug_ours.svg"]
    assert "| SAGE, all orderings | 9 s, 4,096 coalitions | - | - |" in text
    assert "0.0123 (0.0100 to 0.0200)" in text
    assert "Values at boundaries rely more on the graph" in text


def test_without_the_data_the_part_says_so(tmp_path, monkeypatch):
    def nothing():
        raise ConnectionError("The drug consumption data could not be downloaded.")

    monkeypatch.setattr(drug, "drug_consumption", nothing)
    store = Store(tmp_path / "tables")
    with pytest.warns(UserWarning, match="could not be downloaded"):
        drug.DRUG.run(store, drug.DRUG.quick)
    page = write_page(store, {"drug": drug.DRUG}, tmp_path / "paper.md", "figures", is_quick=True)
    assert "set `DSAGE_DRUG_DATA`" in page.read_text(encoding="utf-8")
