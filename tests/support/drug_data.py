"""Find the drug consumption data, which is not part of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).parents[3] / "shared" / "data" / "drug_consumption.csv"


def drug_file() -> Path:
    """Return the path of the file, or skip the test."""
    named = os.environ.get("DSAGE_DRUG_DATA")
    place = Path(named) if named else _BESIDE
    if not place.is_file():
        pytest.skip("no drug consumption data: set DSAGE_DRUG_DATA to the file")
    return place
