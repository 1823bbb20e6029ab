import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_graphs_example_prints_its_answers_and_writes_its_files(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["graphs.py", str(tmp_path / "out")])
    runpy.run_path(str(EXAMPLES / "graphs.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Markov blanket" in printed
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "graph.dot",
        "graph.json",
        "graph.png",
    }


def test_sage_example_prints_a_ranking_and_an_audit(capsys):
    runpy.run_path(str(EXAMPLES / "sage.py"), run_name="__main__")
    printed = capsys.readouterr().out
    lines = [line.split()[0] for line in printed.splitlines() if line.strip()]
    assert lines.count("bmi") == lines.count("s5") == 2
    assert "The audit" in printed


def test_cluster_example_gives_the_same_bits_with_and_without_a_dead_worker(capsys):
    pytest.importorskip("distributed")
    runpy.run_path(str(EXAMPLES / "cluster.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.count("The same to the bit") == printed.count(": True") == 2
