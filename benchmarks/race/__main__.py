"""Race dsage against other packages on the same problems, each package in its own environment.

Run: python -m benchmarks.race [--seconds S] [--seeds N] [--only NAME ...] [--growth]
     [--truths] [--publish]

Runs are stored in benchmarks/results/race.csv, and not repeated unless --only names them. --truths
computes the true values again; --publish only writes the page.
"""

from __future__ import annotations

import argparse
import csv
import json
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.race.environments import PACKAGES
from benchmarks.race.problems import GROWTH, RECIPES, make
from benchmarks.race.processes import FOLDER, run_module
from benchmarks.race.publish import publish
from benchmarks.race.truth import Truth, find_truth
from benchmarks.table import RESULTS

RUNS, TRUTHS = RESULTS / "race.csv", RESULTS / "race_truths.json"
_ENTRANTS = ("dsage", "sage", "fippy", "shapiq", "shap", "hidimstat")
_RUN = ("package", "problem", "way", "seed", "effort")
FIELDS = (*_RUN, "cpu", "rows", "peak", "values", "se", "fault")
# A run that takes so many times its seconds is ended.
_PATIENCE = 20.0


def run_package(package: str, name: str, seconds: float, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the runs of a package on a problem, and why it ended if that was before the last."""
    arguments = [str(FOLDER / "problems"), name, str(seconds), str(seed)]
    faults: list[str] = []
    patience = 60.0 + _PATIENCE * seconds
    runs = list(run_module(package, "runner", arguments, patience, faults.append))
    for fault in faults:
        print(f"  {package}: {fault}", flush=True)
    if faults:
        nothing = {"effort": 0, "cpu": 0.0, "rows": 0, "peak": 0, "values": [], "se": None}
        way = f"{package}, other ways" if runs else package
        runs.append({"problem": name, "way": way, "seed": seed, **nothing, "fault": faults[0]})
    for run in runs:
        yield {"package": package, "fault": "", **run}


def read_runs() -> list[dict[str, Any]]:
    """Return the runs that are kept."""
    if not RUNS.exists():
        return []
    with RUNS.open(encoding="utf-8", newline="") as file:
        return [
            line
            | {
                "seed": int(line["seed"]),
                "effort": int(line["effort"]),
                "cpu": float(line["cpu"]),
                "rows": int(line["rows"]),
                "peak": int(line["peak"]),
                "values": json.loads(line["values"]),
                "se": json.loads(line["se"]),
                "fault": line.get("fault", ""),
            }
            for line in csv.DictReader(file)
        ]


def write_runs(runs: Sequence[dict[str, Any]]) -> None:
    """Keep runs."""
    with RUNS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for run in runs:
            values = json.dumps([_short(each) for each in run["values"]])
            se = json.dumps(None if run["se"] is None else [_short(each) for each in run["se"]])
            writer.writerow(run | {"cpu": _short(run["cpu"]), "values": values, "se": se})


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def read_truths() -> dict[str, Truth]:
    """Return the truths that are kept."""
    if not TRUTHS.exists():
        return {}
    kept = json.loads(TRUTHS.read_text(encoding="utf-8"))
    return {
        name: Truth(np.array(each["values"]), np.array(each["se"]), each["source"])
        for name, each in kept.items()
    }


def write_truths(truths: dict[str, Truth]) -> None:
    """Keep truths."""
    kept = {
        name: {
            "values": [_short(value) for value in each.values],
            "se": [_short(value) for value in each.se],
            "source": each.source,
        }
        for name, each in truths.items()
    }
    TRUTHS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main(given: argparse.Namespace) -> None:
    """Make problems and truths, run everything that is missing, and publish."""
    warnings.simplefilter("ignore")
    (FOLDER / "problems").mkdir(parents=True, exist_ok=True)
    names = given.only or [*RECIPES, *(GROWTH if given.growth else ())]
    truths, runs = read_truths(), read_runs()
    if given.only and not given.publish:
        runs = [run for run in runs if run["problem"] not in names]
    for name in [] if given.publish else names:
        problem = make(name)
        problem.save(FOLDER / "problems")
        if given.truths or name not in truths:
            print(f"{name}: the truth", flush=True)
            truths[name] = find_truth(problem, given.truth_seconds)
            write_truths(truths)
        for package in _ENTRANTS:
            if any(run["package"] == package and run["problem"] == name for run in runs):
                continue
            print(f"{name}: {package}", flush=True)
            seconds = given.seconds * RECIPES[name].patience if name in RECIPES else given.seconds
            for seed in range(given.seeds):
                runs += run_package(package, name, seconds, seed)
            write_runs(runs)
    publish(runs, truths, PACKAGES, given.seconds, [*RECIPES, *GROWTH])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of a package and a seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=[*RECIPES, *GROWTH], metavar="NAME")
    parser.add_argument("--growth", action="store_true", help="also more and more features")
    parser.add_argument("--truths", action="store_true", help="compute the truths anew")
    parser.add_argument("--truth-seconds", type=float, default=600.0, help="of a long run")
    parser.add_argument("--publish", action="store_true", help="only write the page")
    main(parser.parse_args())
