"""The report of a flow along edges."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import dsage
from dsage.report import flow_report_data, to_html, write_flow_report


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["cause", "<b>effect"])
    X["<b>effect"] += X["cause"]
    y = pd.Series(X["<b>effect"] + rng.normal(size=200), name="y")
    graph = dsage.Graph([*X.columns, "y"], [("cause", "<b>effect"), ("<b>effect", "y")])
    return dsage.explain_flow(
        lambda X: X["<b>effect"], X, y, X, y, graph=graph, loss="squared_error",
        n_orderings=1, random_state=0, progress=False,
    )  # fmt: skip


def test_the_data_hold_every_edge_column_and_mechanism(found):
    data = flow_report_data(found)
    json.dumps(data, allow_nan=False)
    tables = data["tables"]
    assert len(tables["edges"]["lines"]) == len(found.edges)
    assert len(tables["nodes"]["lines"]) == 4 * len(found.nodes)
    assert [line[0] for line in tables["mechanisms"]["lines"]] == list(found.nodes)
    for table in tables.values():
        assert {len(line) for line in table["lines"]} == {len(table["columns"])}
    assert data["headline"][2].startswith("Most reaches the model through <b>effect: ")
    assert data["picture"].startswith("iVBOR")


def test_a_page_holds_names_as_text_and_loads_nothing(found, tmp_path):
    page = to_html(flow_report_data(found), "flow")
    assert "<b>effect" not in page
    assert not re.search(r"(src|href)=.https?:", page)
    file = write_flow_report(found, tmp_path / "flow.html")
    assert file.read_text(encoding="utf-8") == page
    assert found.report(tmp_path / "again.html").exists()


def test_features_that_are_set_have_their_own_words(found):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    graph = dsage.Graph(["X1", "target"], [])
    set_ = dsage.explain_flow(
        lambda X: X[:, 0], X, X[:, 0], X, X[:, 0], graph=graph, sources="do", n_orderings=1,
        loss="squared_error", random_state=0, progress=False,
    )  # fmt: skip
    data = flow_report_data(set_)
    assert data["headline"][1].startswith("The largest source is setting X1, with ")
    assert data["meaning"][0]["term"] == "Setting a feature"
