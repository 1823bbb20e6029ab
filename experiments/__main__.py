"""Run experiments: ``python -m experiments [--quick] [PART ...]``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tqdm.auto import tqdm

from experiments.page import write_page
from experiments.parts import PARTS
from experiments.store import Store

HERE = Path(__file__).parent


def main(arguments: list[str]) -> None:
    """Run the parts that are named, or all, and write figures and the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="reduced sizes, minutes")
    parser.add_argument("--draw", action="store_true", help="only draw and write, from the tables")
    parser.add_argument("--out", type=Path, help="where tables, figures and the page go")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.parts) - set(PARTS))
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    folder = given.out or HERE / "results" / ("quick" if given.quick else "full")
    chosen = [PARTS[name] for name in given.parts or PARTS]
    store = Store(folder / "tables", say=tqdm.write)
    start = time.perf_counter()
    for part in tqdm(chosen, desc="experiments", unit=" parts"):
        if not given.draw:
            part.run(store, part.quick if given.quick else part.full)
        part.draw(store, folder / "figures")
    page = write_page(store, folder, is_quick=given.quick)
    tqdm.write(f"{page} after {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
