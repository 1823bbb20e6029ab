import logging
from pathlib import Path

from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports


def test_imports_only_go_down_the_layers(monkeypatch):
    # The linter disables all loggers that exist, and other tests of this process look at ours.
    monkeypatch.setattr(logging.getLogger("dsage"), "disabled", False)
    monkeypatch.chdir(Path(__file__).parents[1])
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == EXIT_STATUS_SUCCESS
