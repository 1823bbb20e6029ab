"""The page, and what the experiments may import."""

import ast
from pathlib import Path

import pytest

import experiments
from experiments.__main__ import main
from experiments.page import write_page
from experiments.parts import PARTS
from experiments.store import Store

FOLDER = Path(experiments.__file__).parent


def modules_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_experiments_import_only_what_is_public(path):
    for module, name in modules_of(path):
        parts = [*module.split("."), name]
        if parts[0] == "dsage":
            assert not any(part.startswith("_") for part in parts if part != "__version__"), parts
        assert parts[0] not in ("tests", "benchmarks")


def test_the_page_names_what_was_not_run(tmp_path):
    store = Store(tmp_path / "tables")
    page = write_page(store, PARTS, tmp_path / "paper.md", "figures", is_quick=True)
    text = page.read_text(encoding="utf-8")
    assert text.count("There are no tables of this part yet.") == len(PARTS)
    assert all(f"## {part.title}" in text for part in PARTS.values())


def test_a_part_that_is_none_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["grafs"])
    assert "no such part: grafs; the parts are graphs, structure" in capsys.readouterr().err
