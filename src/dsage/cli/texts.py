"""What is typed on the command line, as objects."""

from __future__ import annotations

import json
import re
from pathlib import Path

from dsage._check import check_member, refusal
from dsage.cli.shell import in_shell
from dsage.graphs import Graph
from dsage.structure import METHODS

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]*\.?[0-9]+)([smh]?)")


def as_seconds(text: str) -> float:
    """Return how long a time is.

    Examples
    --------
    >>> as_seconds("90"), as_seconds("90s"), as_seconds("1.5m"), as_seconds("1h30m")
    (90.0, 90.0, 90.0, 5400.0)
    """
    compact = text.strip().lower()
    parts = _PART.findall(compact)
    if "".join(number + unit for number, unit in parts) != compact or not parts:
        advice = "Give seconds, or a unit: 90, 90s, 5m, 1h30m"
        raise refusal("--time", "a time", text, advice)
    if any(not unit for _, unit in parts[:-1]):
        raise refusal("--time", "a time", text, "Give each number its unit")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not seconds > 0:
        raise refusal("--time", "above zero", text, "Give a longer time")
    return seconds


def as_graph_option(text: str) -> str | Graph | None:
    """Return what ``--graph`` names: a way to learn it, a graph in a file, or None for none.

    Examples
    --------
    >>> as_graph_option("learn"), as_graph_option("none")
    ('learn', None)
    """
    if text == "none":
        return None
    file = Path(text)
    if file.is_file():
        try:
            return Graph.load(file)
        except ValueError as error:
            raise ValueError(in_shell(str(error), path="--graph")) from error
    if file.suffix or len(file.parts) > 1:
        advice = "Write one with: dsage graph DATA --target COLUMN --out FILE.json"
        raise refusal("--graph", "a file that exists", text, advice, FileNotFoundError)
    return check_member(text, ("learn", "none", *METHODS), "--graph", "these names, or a file")


def read_groups(path: Path) -> dict[str, list[str]]:
    """Return groups of features from a file of JSON: names of groups, and lists of features."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        advice = "Look at the spelling"
        raise refusal(
            "--groups", "a file that exists", str(path), advice, FileNotFoundError
        ) from None
    except (OSError, ValueError) as error:
        raise refusal("--groups", "a file of JSON", str(path), f"It is not: {error}") from error
    is_mapping = isinstance(content, dict) and all(
        isinstance(held, list) and all(isinstance(name, str) for name in held)
        for held in content.values()
    )
    if not is_mapping or not content:
        advice = 'Write it as {"group": ["feature", "another"], ...}'
        raise refusal("--groups", "groups of names", str(path), advice)
    return {str(group): list(held) for group, held in content.items()}


def csv_options(sep: str | None, decimal: str, encoding: str) -> dict[str, str | None]:
    r"""Return how CSV is written, as :func:`dsage.data.files.read_table` takes it.

    Examples
    --------
    >>> csv_options("tab", ",", "latin-1")
    {'sep': '\t', 'decimal': ',', 'encoding': 'latin-1'}
    """
    sign = "\t" if sep in ("tab", "\\t") else sep
    return {"sep": sign, "decimal": decimal, "encoding": encoding}


def check_tolerance(tolerance: float | None) -> None:
    """Refuse a tolerance that is none, before any work is done."""
    if tolerance is not None and not 0 < tolerance <= 1:
        advice = "Give a share of the range of the values, such as 0.05"
        raise refusal("--tolerance", "above 0 and at most 1", tolerance, advice)


def check_jobs(jobs: int | None) -> None:
    """Refuse a number of processes that is none."""
    if jobs is not None and jobs != -1 and jobs < 1:
        advice = "Give -1 for all processors"
        raise refusal("--jobs", "1 or more, or -1", jobs, advice)


def check_test_size(size: float | None) -> None:
    """Refuse a size that is neither a share nor a number of rows."""
    if size is None or 0 < size < 1 or (size >= 1 and size == int(min(size, 1e15))):
        return
    advice = "Give a share such as 0.25, or a number of rows such as 100"
    raise refusal("--test-size", "a share below 1, or a whole number", size, advice)
