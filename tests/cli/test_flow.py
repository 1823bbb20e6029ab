"""``dsage flow`` from files to flows."""

import json
from pathlib import Path

import pandas as pd
import pytest

from dsage import FlowExplanation, Graph

LM = ("data.csv", "--target", "outcome", "--fit", "lm", "--graph", "graph.json")
FEW = ("--time", "0.1s")


@pytest.fixture(autouse=True)
def _graph(dsage):
    names = ["dose", "age", "idle", "outcome"]
    edges = [("dose", "age"), ("dose", "outcome"), ("age", "outcome")]
    Graph(names, edges).save("graph.json")


def test_flow_is_shown_and_written(dsage):
    files = (
        "--out",
        "f.dsage",
        "--csv",
        "f.csv",
        "--json",
        "f.json",
        "--plot",
        "f.png",
        "--report",
        "f.html",
    )
    ran = dsage("flow", *LM, *FEW, *files)
    assert ran.code == 0, ran.err
    assert "along the graph of outcome, squared_error reduced by" in ran.out
    frame = pd.read_csv("f.csv")
    assert frame.query("kind == 'edge'")[["source", "target"]].to_numpy()[0].tolist() == [
        "dose",
        "age",
    ]
    assert len(json.loads(Path("f.json").read_text())) == len(frame)
    assert FlowExplanation.load("f.dsage").sources == "noise"
    assert "dsage report of a flow" in Path("f.html").read_text(encoding="utf-8")
    assert Path("f.png").read_bytes().startswith(b"\x89PNG")


def test_formulas_in_the_table_are_disarmed_unless_it_is_raw(dsage):
    table = pd.read_csv("data.csv").rename(columns={"idle": "=1+1"})
    table.to_csv("data.csv", index=False)
    Graph(["dose", "age", "=1+1", "outcome"], [("dose", "outcome")]).save("graph.json")
    for options, name in (((), "'=1+1"), (("--raw-csv",), "=1+1")):
        ran = dsage("flow", *LM, *FEW, "--csv", "f.csv", "--quiet", *options)
        assert ran.code == 0, ran.err
        assert name in pd.read_csv("f.csv")["source"].tolist()


def test_features_are_set_and_graphs_learned(dsage):
    ran = dsage("flow", *LM, *FEW, "--sources", "do", "--model-first", "--quiet")
    assert ran.code == 0, ran.err
    assert "do" in ran.out
    assert "noise" not in ran.out
    learned = ("data.csv", "--target", "outcome", "--fit", "lm", "--graph", "learn")
    ran = dsage("flow", *learned, *FEW, "--tiers", "dose,idle;age;outcome")
    assert ran.code == 0, ran.err
    assert ["dose", "age"] in [line.split()[:2] for line in ran.out.splitlines()]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--sources", "nose"), "--sources must be one of the sources; got 'nose'. Did you mean"),
        (("--graph", "none"), "--graph must be a graph; got 'none'"),
        (("--graph", "other.json"), "--graph must be a file that exists"),
        (("--tiers", "dose;age"), "unless the graph is learned"),
        (("--sampler", "gaussian"), "No such option: --sampler"),
        (("--csv", "data.csv"), "--csv must be a different file from DATA"),
    ],
)
def test_wrong_options_are_refused(dsage, options, text):
    assert text in dsage("flow", *LM, *options).error


def test_graphs_without_a_flow_are_refused(dsage):
    Graph(["dose", "age", "idle", "outcome"], [("dose", "age"), ("age", "dose")]).save("graph.json")
    assert "--graph must be acyclic; got [['dose', 'age']]" in dsage("flow", *LM).error
