import runpy
import sys
from pathlib import Path

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
