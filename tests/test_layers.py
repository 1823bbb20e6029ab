from pathlib import Path

from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports


def test_imports_only_go_down_the_layers(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[1])
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == EXIT_STATUS_SUCCESS
