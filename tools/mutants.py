"""Change the code at random places, one at a time, and count the changes that the tests notice.

``python tools/mutants.py`` samples mutants of the numerical packages. A mutant is killed when a
test of its own package fails or computes far too long. Only tests that execute the changed line
are run, the fastest first, as many as fit into ``--seconds``. Survivors are listed with the reasons
that ``tools/mutants.toml`` gives for them; those that are marked as equivalent there do not count.
The table is written to ``benchmarks/results/mutants.md``. Coverage and verdicts are kept in
``.mutants``: with ``--resume`` an interrupted run continues.

Measuring which tests execute which lines takes as long as the tests do. With ``--near 2`` the two
test files that refer to a module most are run instead; ``--survivors --near 8`` then repeats this
for the survivors with eight files, except for those known to be equivalent.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter

ROOT = Path(__file__).parents[1]
PACKAGES = ("games", "estimate", "samplers", "structure", "graphs")
KNOWN = ROOT / "tools" / "mutants.toml"
TABLE = ROOT / "benchmarks" / "results" / "mutants.md"
# A mutant may loop for ever: it is killed after this many times the usual time, and a start-up.
# This is processor time, so that a busy machine kills nothing; a mutant that waits for ever is
# killed after ten times as long.
_PATIENCE, _START_UP, _WAITING = 3.0, 60.0, 10.0
# Shorter expressions are shown with their whole line.
_SHORT = 8

_COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_ARITHMETIC = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "+",
    ast.Pow: "*", ast.BitAnd: "|", ast.BitOr: "&", ast.MatMult: "*",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A changed place in a file.

    Attributes
    ----------
    path : str
        The file, from the root of the repository.
    line : int
        Its line.
    function : str
        The function around it.
    start, stop : int
        Which bytes are replaced.
    replacement : str
        What replaces them.
    before, after : str
        The expression or statement around the place, for readers.
    """

    path: str
    line: int
    function: str
    start: int
    stop: int
    replacement: str
    before: str
    after: str

    @property
    def package(self) -> str:
        """The package of the file."""
        return Path(self.path).parts[2]

    @property
    def key(self) -> str:
        """What names the mutant in `mutants.toml`: it survives changes elsewhere in the file."""
        module = ".".join(Path(self.path).with_suffix("").parts[1:])
        return f"{module}:{self.function}: {self.before} -> {self.after}"

    @property
    def name(self) -> str:
        """What names the mutant in the verdicts: the same change may be possible at two places."""
        return f"{self.key} at {self.start}"


class _Finder(ast.NodeVisitor):
    """Finds the places of a file that can be changed."""

    def __init__(self, path: Path) -> None:
        self.source = path.read_bytes()
        self.path = str(path.relative_to(ROOT))
        self.starts = [0]
        for line in self.source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.functions: list[str] = []
        self.found: list[Mutant] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Visit the body of a function; its annotations and defaults are left alone."""
        if node.name in ("__repr__", "_repr_html_"):
            return
        self.functions.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.functions.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Visit the methods of a class."""
        self.functions.append(node.name)
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                self.visit(statement)
        self.functions.pop()

    def visit_Raise(self, node: ast.Raise) -> None:
        """Leave the texts of errors alone."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visit the value, not the annotation."""
        if node.value is not None:
            self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Change the operator of a comparison."""
        if len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
            self._between(node.left, node.comparators[0], _COMPARISONS[type(node.ops[0])], node)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Change an arithmetic operator."""
        is_text = isinstance(node.left, (ast.JoinedStr, ast.Constant)) and isinstance(
            getattr(node.left, "value", ""), str
        )
        if type(node.op) in _ARITHMETIC and not is_text:
            self._between(node.left, node.right, _ARITHMETIC[type(node.op)], node)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Exchange "and" and "or"."""
        self._between(
            node.values[0],
            node.values[1],
            "or" if isinstance(node.op, ast.And) else "and",
            node,
        )
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Drop a "not" or a sign."""
        if isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
            self._add(node, self._text(node.operand))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change a number or a boolean."""
        if isinstance(node.value, bool):
            self._add(node, str(not node.value))
        elif isinstance(node.value, int):
            self._add(node, str(node.value + 1))
        elif isinstance(node.value, float):
            self._add(node, repr(node.value * 2 + 0.5))

    def visit_If(self, node: ast.If) -> None:
        """Never take a branch."""
        self._add(node.test, "False")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Leave out an update."""
        self._add(node, "pass")
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts alone."""

    def visit_Call(self, node: ast.Call) -> None:
        """Leave the words of warnings and checks alone, and what makes no difference.

        These are whether `zip` requires equal lengths, and the -1 of `reshape`: NumPy takes any
        negative number for the length that is left.
        """
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("warn", "refusal", "Text") or name.startswith("check_"):
            return
        is_reshape = isinstance(node.func, ast.Attribute) and node.func.attr == "reshape"
        self.visit(node.func)
        for argument in node.args:
            if not (is_reshape and ast.unparse(argument) == "-1"):
                self.visit(argument)
        for keyword in node.keywords:
            if not (name == "zip" and keyword.arg == "strict"):
                self.visit(keyword.value)

    def _offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _text(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.source.decode(), node) or ""

    def _between(self, left: ast.expr, right: ast.expr, after: str, node: ast.expr) -> None:
        start = self._offset(left.end_lineno or 0, left.end_col_offset or 0)
        stop = self._offset(right.lineno, right.col_offset)
        gap = self.source[start:stop].decode()
        if gap.strip(" \n()") and "#" not in gap:
            operator = gap.strip(" \n()")
            at = start + gap.index(operator)
            self._record(left.end_lineno or 0, at, at + len(operator), node, after)

    def _add(self, node: ast.expr | ast.stmt, after: str) -> None:
        start = self._offset(node.lineno, node.col_offset)
        stop = self._offset(node.end_lineno or 0, node.end_col_offset or 0)
        self._record(node.lineno, start, stop, node, after)

    def _record(self, line: int, start: int, stop: int, node: ast.AST, after: str) -> None:
        if not self.functions:
            return
        changed = self.source[:start] + after.encode() + self.source[stop:]
        try:
            ast.parse(changed)
        except SyntaxError:
            return
        around = self._offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        end = self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        if end - around < _SHORT:
            around, end = self.starts[line - 1], self.starts[line]
        before = " ".join(self.source[around:end].decode().split())
        new = self.source[around:start].decode() + after + self.source[stop:end].decode()
        function = ".".join(self.functions)
        self.found.append(
            Mutant(self.path, line, function, start, stop, after, before, " ".join(new.split()))
        )


def find_mutants(packages: Iterable[str] = PACKAGES) -> list[Mutant]:
    """Return all mutants of the packages."""
    found: list[Mutant] = []
    for package in packages:
        for path in sorted((ROOT / "src" / "dsage" / package).rglob("*.py")):
            finder = _Finder(path)
            finder.visit(ast.parse(finder.source))
            found += finder.found
    return found


class Coverage:
    """Which tests execute which lines, and how long each takes.

    Parameters
    ----------
    folder : Path
        Where the measurement is kept; an earlier one is used again.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.tests: dict[tuple[str, int], set[str]] = {}
        self.seconds: dict[str, float] = {}

    def measure(self, package: str) -> None:
        """Run the tests of a package once, and read which lines each executes."""
        data, times = self._folder / f"{package}.coverage", self._folder / f"{package}.json"
        if not times.exists():
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
            command += [f"--cov=dsage.{package}", "--cov-context=test", "--cov-report=", "-n", "2"]
            command += [f"--junitxml={self._folder / package}.xml", "-o", "junit_family=xunit1"]
            source = {"PYTHONPATH": str(ROOT / "src"), "COVERAGE_FILE": str(data)}
            environment = {**os.environ, **source}
            subprocess.run([*command, f"tests/{package}"], cwd=ROOT, env=environment, check=True)
            times.write_text(json.dumps(_durations(self._folder / f"{package}.xml")))
        self.seconds |= json.loads(times.read_text())
        self._read(data)

    def _read(self, data: Path) -> None:
        with sqlite3.connect(data) as base:
            files = dict(base.execute("select id, path from file"))
            contexts = dict(base.execute("select id, context from context"))
            rows = base.execute("select file_id, context_id, numbits from line_bits").fetchall()
        for file, context, bits in rows:
            test = contexts[context].rsplit("|", 1)[0]
            if not test or "/src/dsage/" not in files[file]:
                continue
            path = "src/dsage/" + files[file].rsplit("/src/dsage/", 1)[1]
            for number, byte in enumerate(bits):
                for bit in range(8):
                    if byte & (1 << bit):
                        self.tests.setdefault((path, 8 * number + bit), set()).add(test)

    def of(self, mutant: Mutant) -> list[str]:
        """Return the tests of the mutant's own package that execute its line, fastest first."""
        own = f"tests/{mutant.package}/"
        found = self.tests.get((mutant.path, mutant.line), set())
        mine = [test for test in found if test.startswith(own)]
        return sorted(mine, key=lambda test: (self.seconds.get(test, 1.0), test))

    def fastest(self, n_tests: int) -> list[str]:
        """Return the fastest tests of all packages."""
        return sorted(self.seconds, key=lambda test: (self.seconds[test], test))[:n_tests]

    def within(self, tests: list[str], most: float) -> tuple[list[str], float]:
        """Return the first tests, at least one, that take at most so long, and their time."""
        chosen, seconds = [], 0.0
        for test in tests:
            took = self.seconds.get(test, 1.0)
            if chosen and seconds + took > most:
                break
            chosen.append(test)
            seconds += took
        return chosen, seconds


class Near:
    """The files of tests that are named after a module, import it, or name its parts most often.

    Parameters
    ----------
    n_files : int
        How many files are run for a mutant.
    """

    # What a file may take: far more than it does.
    _SECONDS = 60.0

    def __init__(self, n_files: int) -> None:
        self._n_files = n_files

    def measure(self, package: str) -> None:
        """Do nothing: the files are read when they are asked for."""

    def of(self, mutant: Mutant) -> list[str]:
        """Return the files of tests of the mutant's own package, the nearest first."""
        scores: dict[str, int] = {}
        for weight, path in self._modules(Path(mutant.path)):
            module = _module_pattern(path)
            parts = re.findall(r"^(?:class|def) ([a-zA-Z]\w*)", path.read_text(), re.MULTILINE)
            for tests in sorted((ROOT / "tests" / mutant.package).rglob("test_*.py")):
                text = tests.read_text(encoding="utf-8")
                score = 1000 * (tests.stem == f"test_{path.stem}") + 100 * bool(module.search(text))
                score += sum(min(len(re.findall(rf"\b{part}\b", text)), 20) for part in parts)
                name = str(tests.relative_to(ROOT))
                scores[name] = scores.get(name, 0) + weight * score
        return sorted(scores, key=lambda tests: -scores[tests])[: self._n_files]

    @staticmethod
    def _modules(path: Path) -> list[tuple[int, Path]]:
        """Return a module and those of its package that use it, with their weights."""
        pattern, package = _module_pattern(ROOT / path), ROOT.joinpath(*path.parts[:3])
        users = [each for each in package.rglob("*.py") if pattern.search(each.read_text())]
        return [(100, ROOT / path), *((1, each) for each in sorted(users))]

    def within(self, tests: list[str], most: float) -> tuple[list[str], float]:  # noqa: ARG002
        """Return the tests, and the time that they may take."""
        return tests, self._SECONDS * len(tests)

    def fastest(self, n_tests: int) -> list[str]:  # noqa: ARG002
        """Return tests that are quick."""
        return ["tests/graphs/test_bits.py"]


def _module_pattern(path: Path) -> re.Pattern[str]:
    """Return a pattern that finds the name of a module."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return re.compile(re.escape(".".join(parts)) + r"\b")


def _durations(report: Path) -> dict[str, float]:
    """Return the seconds of each test in a JUnit report."""
    from xml.etree import ElementTree

    return {
        f"{case.get('file')}::{case.get('name')}": float(case.get("time") or 0.0)
        for case in ElementTree.parse(report).iter("testcase")
    }


class Runner:
    """A copy of ``src`` to change, and a process that runs tests on it.

    Parameters
    ----------
    folder : Path
        An empty folder for the copy.
    """

    def __init__(self, folder: Path) -> None:
        self._source = folder / "src"
        self._listed = folder / "tests.txt"
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("__pycache__"))
        # Without dsage itself, which comes from the copy.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [sys.executable, ROOT / "tools" / "mutant_runner.py"],
            cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def judge(self, mutant: Mutant, tests: list[str], seconds: float) -> str:
        """Return "killed", "timeout", "survived" or "not covered".

        `seconds` is how long the tests take without the change.
        """
        if not tests:
            return "not covered"
        place = self._source / Path(mutant.path).relative_to("src")
        original = place.read_bytes()
        changed = mutant.replacement.encode()
        place.write_bytes(original[: mutant.start] + changed + original[mutant.stop :])
        try:
            status = self._run(tests, _START_UP + _PATIENCE * seconds)
        finally:
            place.write_bytes(original)
        if status in (-signal.SIGXCPU, -signal.SIGKILL):
            return "timeout"
        return "killed" if status else "survived"

    def check(self, tests: list[str]) -> None:
        """Require that tests pass without a change, as all would be killed otherwise."""
        if status := self._run(tests, _START_UP):
            raise SystemExit(f"Without a change, {tests} have the status {status}.")

    def _run(self, tests: list[str], seconds: float) -> int:
        self._listed.write_text("\n".join(tests) + "\n")
        job = {"source": str(self._source), "tests": str(self._listed)}
        limits = {"seconds": seconds, "wait": _WAITING * seconds}
        self._process.stdin.write(json.dumps(job | limits) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def judge_all(
    mutants: list[Mutant], coverage: Coverage | Near, n_jobs: int, most_seconds: float
) -> Iterator[tuple[Mutant, str]]:
    """Yield each mutant with its verdict, several at a time, each in a copy of the source."""
    with tempfile.TemporaryDirectory() as folder:
        runners = [Runner(Path(folder) / str(number)) for number in range(n_jobs)]
        free: SimpleQueue[Runner] = SimpleQueue()
        for runner in runners:
            runner.check(coverage.fastest(20))
            free.put(runner)

        def run(mutant: Mutant) -> str:
            runner = free.get()
            tests, seconds = coverage.within(coverage.of(mutant), most_seconds)
            try:
                return runner.judge(mutant, tests, seconds)
            finally:
                free.put(runner)

        with ThreadPoolExecutor(n_jobs) as pool:
            running = {pool.submit(run, mutant): mutant for mutant in mutants}
            for done in as_completed(running):
                yield running[done], done.result()
        for runner in runners:
            runner.close()


def write_table(
    verdicts: dict[Mutant, str],
    reasons: dict[str, dict[str, str]],
    options: argparse.Namespace,
) -> str:
    """Return the table of packages and the list of survivors."""
    equivalent = {key for key, entry in reasons.items() if entry.get("equivalent")}
    n_possible = len(find_mutants(options.packages))
    about = (
        f"Written by `make mutants`: {len(verdicts)} mutants, sampled with seed {options.seed} from"
        f" {n_possible:,}. A mutant is a small change of the code; it is killed if a test of its"
        " own package fails or hangs. Equivalent mutants do not count."
    )
    if options.near:
        about += " Only the files of tests that are nearest to a module were run."
    lines = [
        "# Mutants",
        "",
        about,
        "",
        "| package | sampled | equivalent | killed | survived | killed, % |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for package in (*options.packages, "all"):
        own = {m: v for m, v in verdicts.items() if package in (m.package, "all")}
        n_equivalent = sum(m.key in equivalent for m, v in own.items() if v not in _KILLED)
        n_killed = sum(verdict in _KILLED for verdict in own.values())
        n_counted = len(own) - n_equivalent
        share = f"{100 * n_killed / n_counted:.0f}" if n_counted else "-"
        n_left = n_counted - n_killed
        lines.append(
            f"| {package} | {len(own)} | {n_equivalent} | {n_killed} | {n_left} | {share} |"
        )
    lines += ["", "## Survivors", "", "| place | change | reason |", "|---|---|---|"]
    for mutant, verdict in sorted(verdicts.items(), key=lambda item: item[0].key):
        if verdict in _KILLED:
            continue
        entry = reasons.get(mutant.key, {})
        reason = entry.get("equivalent") or entry.get("reason") or verdict
        prefix = "equivalent: " if entry.get("equivalent") else ""
        change = f"`{mutant.before}` -> `{mutant.after}`".replace("|", "\\|")
        module = ".".join(Path(mutant.path).with_suffix("").parts[1:])
        lines.append(f"| {module}, `{mutant.function}` | {change} | {prefix}{reason} |")
    return "\n".join(lines) + "\n"


_KILLED = ("killed", "timeout")


def main() -> None:
    """Sample mutants, judge them, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which mutants")
    parser.add_argument("--packages", nargs="+", default=PACKAGES, help="which packages")
    parser.add_argument("--table", type=Path, default=TABLE, help="where the table is written")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--work", type=Path, default=ROOT / ".mutants", help="folder for coverage")
    parser.add_argument("--seconds", type=float, default=300.0, help="time of tests for a mutant")
    parser.add_argument("--near", type=int, metavar="N", help="run the N nearest files of tests")
    parser.add_argument("--resume", action="store_true", help="keep the verdicts of the last run")
    parser.add_argument("--survivors", action="store_true", help="judge the last survivors again")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    coverage = Near(options.near) if options.near else Coverage(options.work)
    reasons = tomllib.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.exists() else {}
    for package in options.packages:
        coverage.measure(package)
    kept = options.work / "verdicts.json"
    is_continued = options.resume or options.survivors
    last = json.loads(kept.read_text()) if is_continued and kept.exists() else {}
    mutants = random.Random(options.seed).sample(find_mutants(options.packages), options.number)
    verdicts = {mutant: last[mutant.name] for mutant in mutants if mutant.name in last}
    left = [mutant for mutant in mutants if mutant not in verdicts]
    if options.survivors:
        left += [
            mutant
            for mutant, verdict in verdicts.items()
            if verdict not in _KILLED and not reasons.get(mutant.key, {}).get("equivalent")
        ]
    start = perf_counter()
    for mutant, verdict in judge_all(left, coverage, options.jobs, options.seconds):
        verdicts[mutant] = verdict
        kept.write_text(json.dumps({each.name: found for each, found in verdicts.items()}))
        took = perf_counter() - start
        print(f"{len(verdicts):4d} {took:6.0f} s  {verdict:11s} {mutant.key}", flush=True)
    options.table.write_text(write_table(verdicts, reasons, options), encoding="utf-8")
    print(options.table.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
