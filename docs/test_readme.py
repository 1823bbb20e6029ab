"""The code and the commands of the README, as they stand there."""

import ast
import doctest
import inspect
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
from dsage.structure import stability

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
SHOWN = re.search(r"```text\n(SAGE values.*?)```", TEXT, re.DOTALL)
BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
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
    def quick(table, n_resamples, *args, **options):
        return stability(table, min(n_resamples, 3), *args, **options)

    monkeypatch.setattr("dsage.cli.data.stability", quick)
    monkeypatch.setattr("dsage.structure.resolve.stability", quick)
    monkeypatch.chdir(folder)
    for command in COMMANDS:
        result = CliRunner().invoke(app, [*shlex.split(command)[1:]], catch_exceptions=False)
        assert result.exit_code == 0, f"{command}\n{result.output}"
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "again.html").read_text(encoding="utf-8") == (
        folder / "report.html"
    ).read_text(encoding="utf-8")


def test_the_table_is_what_the_code_prints():
    code = doctest.DocTestParser().get_doctest(TEXT, {}, "README", str(README), 0)
    # Other tests run at the same time, and more threads would wait for each other.
    with threadpool_limits(1, user_api="openmp"):
        failed = doctest.DocTestRunner().run(code, clear_globs=False).failed
    assert not failed
    assert str(code.globs["explanation"]).startswith(SHOWN[1].rstrip())


def test_the_example_is_the_code():
    script = runpy.run_path(str(README.parent / "examples" / "readme.py"))
    example = ast.parse(inspect.getsource(script["explain_penguins"])).body[0].body[1:]
    code = ast.parse("".join(each.source for each in doctest.DocTestParser().get_examples(TEXT)))
    statements = [each for each in code.body if isinstance(each, ast.Assign)]
    statements[-1] = ast.Return(statements[-1].value)
    assert list(map(ast.unparse, example)) == list(map(ast.unparse, statements))
