"""Build the package, and test the result in an otherwise empty environment.

``python tools/release_check.py`` writes a source archive and a wheel to ``dist``, checks what they
hold, installs the wheel into a fresh environment, runs ``dsage demo`` there, and then some of the
tests, from the source archive without its ``src``, so that they test the installed package. It
needs hatchling, and pip must be able to fetch the dependencies.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
# Fast tests of every layer that need no more than the command line's extra.
TESTS = (
    *("tests/test_package.py", "tests/test_check.py", "tests/test_file_limits.py"),
    *("tests/graphs/test_separation.py", "tests/orderings", "tests/data/test_csv_text.py"),
    *("tests/result/test_saving.py", "tests/estimate/running/test_checkpoint.py"),
)
_NEEDED = ("dsage/py.typed", "dsage/datasets/penguins.csv", "dsage/cli/app.py")
_UNWANTED = ("tests/", "benchmarks/", "tools/", "experiments/")


def _run(*command: object, cwd: Path = ROOT, clean: bool = False) -> None:
    """Run a command; stop if it fails. `clean` hides this checkout from Python."""
    print("$", *command, flush=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if clean:
        environment.pop("PYTHONPATH", None)
    subprocess.run(list(map(str, command)), cwd=cwd, env=environment, check=True)


def build() -> tuple[Path, Path]:
    """Return the wheel and the source archive, built anew."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run(sys.executable, "-m", "hatchling", "build", "--directory", DIST)
    [wheel], [archive] = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, archive


def check_content(wheel: Path, archive: Path) -> None:
    """Stop if a file is missing, or if something is in the wheel that does not belong there."""
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        [about] = [name for name in names if name.endswith("METADATA")]
        text = file.read(about).decode()
    missing = [name for name in _NEEDED if name not in names]
    spare = [name for name in names if name.startswith(_UNWANTED)]
    if missing or spare:
        raise SystemExit(f"The wheel lacks {missing}, and has {spare}.")
    version = next(line for line in text.splitlines() if line.startswith("Version: "))
    with tarfile.open(archive) as file:
        sources = [name.partition("/")[2] for name in file.getnames()]
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "paper.md", "paper.bib", "Makefile"):
        if name not in sources:
            raise SystemExit(f"The source archive lacks {name}.")
    print(f"{version}, {len(names)} files in the wheel, {len(sources)} in the source archive")


def test(wheel: Path, archive: Path, tests: list[str], *, use_constraints: bool) -> None:
    """Install the wheel into a fresh environment, and try it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pins = ["--constraint", ROOT / "constraints.txt"] if use_constraints else []
        _run(*install, *pins, f"{wheel}[cli]", cwd=folder, clean=True)
        _run(python, "-m", "pip", "check", cwd=folder, clean=True)
        _run(python, "-m", "dsage.cli", "--version", cwd=folder, clean=True)
        _run(python, "-m", "dsage.cli", "demo", "--report", "report.html", cwd=folder, clean=True)
        if not (folder / "report.html").stat().st_size:
            raise SystemExit("The demo wrote no report.")
        _run(*install, *pins, "pytest", "hypothesis", cwd=folder, clean=True)
        with tarfile.open(archive) as file:
            file.extractall(folder / "sources", filter="data")
        [sources] = (folder / "sources").iterdir()
        # So that only the installed package can be imported.
        shutil.rmtree(sources / "src")
        _run(python, "-m", "pytest", "--quiet", *tests, cwd=sources, clean=True)


def main() -> None:
    """Build, check and test."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tests", nargs="*", default=list(TESTS), help="tests to run")
    parser.add_argument("--newest", action="store_true", help="with the newest dependencies")
    options = parser.parse_args()
    wheel, archive = build()
    check_content(wheel, archive)
    test(wheel, archive, options.tests, use_constraints=not options.newest)
    print(f"{wheel.name} and {archive.name} can be released.")


if __name__ == "__main__":
    main()
