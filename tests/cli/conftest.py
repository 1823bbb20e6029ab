import pytest
from typer.testing import CliRunner

from cli_case import Ran, table
from dsage.cli.app import app


@pytest.fixture
def dsage(tmp_path, monkeypatch):
    """Run a command in a folder of its own; it has data.csv, data.parquet and test.csv."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    table().to_csv("data.csv", index=False)
    table().to_parquet("data.parquet")
    table(40, seed=1).to_csv("test.csv", index=False)

    def run(*arguments):
        return Ran(CliRunner().invoke(app, [str(argument) for argument in arguments]))

    return run
