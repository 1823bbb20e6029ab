from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli_case import Ran, table
from dsage.cli.app import app


@cache
def files():
    """The contents of the files, which are made once."""
    data, test = table(), table(40, seed=1)
    return {
        "data.csv": data.to_csv(index=False).encode(),
        "data.parquet": data.to_parquet(),
        "test.csv": test.to_csv(index=False).encode(),
    }


@pytest.fixture
def dsage(tmp_path, monkeypatch):
    """Run a command in a folder of its own; it has data.csv, data.parquet and test.csv."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name, content in files().items():
        Path(name).write_bytes(content)

    def run(*arguments):
        return Ran(CliRunner().invoke(app, [str(argument) for argument in arguments]))

    return run
