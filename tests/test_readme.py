"""The commands of the README, as they stand there."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

pytest.importorskip("typer", reason="the command line needs the extra cli")

from typer.testing import CliRunner

from dsage.cli.app import app
from dsage.datasets import load_penguins

README = Path(__file__).parents[1] / "README.md"
SHOWN = re.search(r"```text\n(SAGE values.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
BLOCKS = re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the data that the commands speak of."""
    place = tmp_path_factory.mktemp("readme")
    load_penguins().to_csv(place / "penguins.csv", index=False)
    return place


def test_there_are_commands_to_run():
    assert len(COMMANDS) >= 4
    assert all(command.startswith("dsage ") for command in COMMANDS)


def test_the_commands_run_one_after_the_other(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for command in COMMANDS:
        result = CliRunner().invoke(app, [*shlex.split(command)[1:]], catch_exceptions=False)
        assert result.exit_code == 0, f"{command}\n{result.output}"
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "again.html").read_text(encoding="utf-8") == (
        folder / "report.html"
    ).read_text(encoding="utf-8")


def test_the_table_is_what_the_example_prints():
    script = runpy.run_path(str(README.parent / "examples" / "readme.py"))
    # Other tests run at the same time, and more threads would wait for each other.
    with threadpool_limits(1, user_api="openmp"):
        printed = str(script["explain_penguins"]())
    assert printed.startswith(SHOWN[1].rstrip())
