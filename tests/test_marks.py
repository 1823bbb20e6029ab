"""Tests that interrupt, kill or start clusters say so, so that they can be left out."""

import ast
from pathlib import Path

TESTS = Path(__file__).parent
# What a test does itself, or in a helper of its file, and how it is then marked.
SIGNS = {
    "raise KeyboardInterrupt": "interrupts",
    "main, signal.SIGINT)": "interrupts",
    "os.getpid(), signal.SIGINT)": "interrupts",
    "SIGKILL": "kills",
    "os.getpid(), 9)": "kills",
    "distributed.LocalCluster(": "cluster",
}


def marks_of(nodes):
    """The marks of functions, classes and modules, from their decorators and `pytestmark`."""
    found = set()
    for node in nodes:
        texts = list(map(ast.unparse, getattr(node, "decorator_list", ())))
        for line in node.body if isinstance(node, (ast.Module, ast.ClassDef)) else ():
            if isinstance(line, ast.Assign) and "pytestmark" in ast.unparse(line):
                texts.append(ast.unparse(line))
        found |= {mark for mark in SIGNS.values() for text in texts if f"mark.{mark}" in text}
    return found


def needs_of(text):
    return {mark for sign, mark in SIGNS.items() if sign in text}


def unmarked(file):
    """The tests of a file that lack a mark, with the marks that they lack."""
    written = file.read_text()
    if not needs_of(written):
        return
    tree = ast.parse(written)
    # Helpers, by name, and the marks of those who use them; helpers may use others.
    helpers = {
        each.name: ast.unparse(each)
        for each in tree.body
        if isinstance(each, (ast.FunctionDef, ast.ClassDef)) and not is_test(each)
    }
    for each in tree.body:
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            helpers[each.targets[0].id] = ast.unparse(each)
    needs = {name: needs_of(text) for name, text in helpers.items()}
    for _ in range(3):
        for name, text in helpers.items():
            used = names_in(text) & set(needs) - {name}
            needs[name] = needs[name].union(*(needs[other] for other in used))
    for parents, test in functions_of(tree):
        text = ast.unparse(test)
        used = (names_in(text) | {each.arg for each in test.args.args}) & set(needs)
        wanted = needs_of(text).union(*(needs[name] for name in used))
        if lacking := wanted - marks_of([tree, *parents, test]):
            yield test.name, sorted(lacking)


def is_test(node):
    return node.name.startswith(("test", "Test"))


def names_in(text):
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def functions_of(tree):
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and is_test(node):
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and is_test(each):
                    yield [node], each
        elif isinstance(node, ast.FunctionDef) and is_test(node):
            yield [], node


def test_tests_that_interrupt_kill_or_start_clusters_are_marked():
    files = sorted(TESTS.rglob("test_*.py"))
    assert len(files) > 200
    found = {}
    for file in files:
        if file != Path(__file__) and (lacking := dict(unmarked(file))):
            found[str(file.relative_to(TESTS))] = lacking
    assert found == {}


def test_a_mark_is_missed_where_a_helper_interrupts(tmp_path):
    file = tmp_path / "test_some.py"
    text = "def stop():\n    raise KeyboardInterrupt\n\n\n{}def test_it():\n    stop()\n"
    file.write_text(text.format(""))
    assert dict(unmarked(file)) == {"test_it": ["interrupts"]}
    file.write_text(text.format("@pytest.mark.interrupts\n"))
    assert dict(unmarked(file)) == {}
