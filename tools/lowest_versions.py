"""Print the lowest allowed version of every dependency as constraints for pip.

``python tools/lowest_versions.py > lowest.txt`` reads pyproject.toml. Development tools are left
out: only packages that users install are tested at their lowest version, and polars, which is not
an extra.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
# torch is installed by hand, xgboost is tested with its build for CPUs.
LEFT_OUT = {"dev", "docs", "mutants", "paper", "learners", "torch", "xgboost"}
# Users pass its frames. The lowest scikit-learn picks columns by name from those of polars 1 only.
FRAMES = "polars"


def lowest_versions() -> list[str]:
    """Return a line ``name==version`` for each dependency."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = list(project["dependencies"])
    for name, needed in extras.items():
        if name not in LEFT_OUT:
            wanted += needed
    wanted += [line for line in extras["dev"] if line.startswith(FRAMES)]
    found = (re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", line) for line in wanted)
    return sorted({f"{match[1]}=={match[2]}" for match in found if match})


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest_versions()) + "\n")
