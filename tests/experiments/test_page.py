"""The page, and the imports of the experiments."""

import ast
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import experiments
from experiments.__main__ import FIGURES, PAGE, main
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
def test_experiments_import_only_public_names(path):
    for module, name in modules_of(path):
        parts = [*module.split("."), name]
        if parts[0] == "dsage":
            assert not any(part.startswith("_") for part in parts if part != "__version__"), parts
        assert parts[0] not in ("tests", "benchmarks")


def test_the_page_names_missing_parts(tmp_path):
    store = Store(tmp_path / "tables")
    page = write_page(store, PARTS, tmp_path / "paper.md", "figures", is_quick=True)
    text = page.read_text(encoding="utf-8")
    assert all(f"## {part.title}\n\n{part.missing}" in text for part in PARTS.values())


def test_an_unknown_part_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["grafs"])
    assert "no such part: grafs; the parts are graphs, structure" in capsys.readouterr().err


def test_a_run_writes_tables_figures_and_the_page(tmp_path, monkeypatch):
    part = PARTS["graphs"]
    small = replace(part, quick=replace(part.quick, graphs=("dag_s(2)",), n_orderings=20))
    monkeypatch.setitem(PARTS, "graphs", small)
    main(["--quick", "--out", str(tmp_path), "graphs"])
    table = (tmp_path / "tables" / "graphs.csv").read_bytes()
    figure = tmp_path / "figures" / "graphs_share.svg"
    page = (tmp_path / "paper.md").read_text(encoding="utf-8")
    assert "(figures/graphs_share.svg)" in page
    assert "**Sizes are reduced**" in page
    figure.unlink()
    main(["--quick", "--draw", "--out", str(tmp_path), "graphs"])
    assert figure.exists()
    assert (tmp_path / "tables" / "graphs.csv").read_bytes() == table
    assert (tmp_path / "paper.md").read_text(encoding="utf-8") == page


def test_the_makefile_installs_extras_that_exist():
    root = FOLDER.parent
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = re.findall(r"\$\(VENV\)/\.(\w+)", (root / "Makefile").read_text(encoding="utf-8"))
    assert "paper" in wanted
    assert set(wanted) <= set(extras["optional-dependencies"])


def test_the_published_page_follows_from_the_tables(tmp_path):
    store = Store(FOLDER / "results" / "full" / "tables")
    page = write_page(store, PARTS, tmp_path / "paper.md", FIGURES, is_quick=False)
    published = PAGE.read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8") == published
    figures = re.findall(r"\((\.\./experiments/[^)]+)\)", published)
    assert len(figures) > 20
    assert all((PAGE.parent / figure).exists() for figure in figures)
