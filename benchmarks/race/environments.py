"""Create an environment for each package, with pinned versions; all of them can read the models."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

PACKAGES = {
    "sage": "sage-importance==0.0.6",
    "fippy": "fippy==0.2.0",
    "shapiq": "shapiq==1.4.1",
    "shap": "shap==0.51.0",
    "hidimstat": "hidimstat==0.4.0",
    "pgmpy": "pgmpy==1.1.2",
    "causallearn": "causal-learn==0.1.4.8",
}
"""The package of each environment."""

# Those of the models, which are pickled; and what hidimstat needs without saying so.
_COMMON = ("numpy", "scipy", "scikit-learn", "pandas", "joblib", "lightgbm", "packaging")
_ROOT = Path(__file__).parents[2]


def environment(package: str, folder: Path) -> Path:
    """Return the interpreter of a package's environment, made if it is not there."""
    place = folder / package
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = place / "installed"
    wanted = f"{PACKAGES[package]} {sys.version}"
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == wanted):
        venv.create(place, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        versions = ["--constraint", str(_ROOT / "constraints.txt")]
        subprocess.run([*install, *versions, PACKAGES[package], *_COMMON], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return python
