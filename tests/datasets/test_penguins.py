import hashlib
from importlib import resources
from pathlib import Path

import pandas as pd
import pytest

from dsage.datasets import load_penguins


def test_the_table_is_the_published_one():
    penguins = load_penguins()
    assert penguins.columns.tolist() == [
        *("species", "island", "bill_length_mm", "bill_depth_mm", "flipper_length_mm"),
        *("body_mass_g", "sex", "year"),
    ]
    counts = penguins["species"].value_counts().to_dict()
    assert counts == {"Adelie": 152, "Gentoo": 124, "Chinstrap": 68}
    assert penguins["body_mass_g"].mean() == pytest.approx(4201.754, abs=0.001)
    assert penguins["year"].value_counts().to_dict() == {2009: 120, 2008: 114, 2007: 110}


def test_missing_values_are_as_they_are():
    missing = load_penguins().isna().sum()
    assert missing.to_dict() == {
        **dict.fromkeys(("species", "island", "year"), 0),
        **dict.fromkeys(("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"), 2),
        "sex": 11,
    }


def test_classes_are_categories():
    dtypes = load_penguins().dtypes
    assert dtypes[dtypes == "category"].index.tolist() == ["species", "island", "sex"]
    assert pd.api.types.is_integer_dtype(dtypes["year"])


def test_the_readme_says_which_file_it_is():
    folder = resources.files("dsage.datasets")
    content = (folder / "penguins.csv").read_bytes()
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert hashlib.md5(content, usedforsecurity=False).hexdigest() in text
    assert "CC0" in text


def test_the_wheel_has_the_data():
    wheel = pytest.importorskip("hatchling.builders.wheel")
    root = Path(__file__).parents[2]
    files = wheel.WheelBuilder(str(root)).recurse_included_files()
    names = {file.distribution_path.replace("\\", "/") for file in files}
    for name in ("penguins.csv", "paper_graphs.json", "README.md"):
        assert f"dsage/datasets/{name}" in names
