"""The page of the architecture names files that exist, and every package."""

import re
from pathlib import Path

import pytest

import dsage

SOURCE = Path(dsage.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
TABLES = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
PATHS = sorted(set(re.findall(r"`([\w/]+(?:/|\.py|\.js))`", "\n".join(TABLES))))


@pytest.mark.parametrize("path", PATHS)
def test_a_path_of_the_page_exists(path):
    assert (SOURCE / path).exists()


def test_every_package_is_on_the_page():
    packages = {f"{init.parent.name}/" for init in SOURCE.glob("*/__init__.py")}
    modules = {module.name for module in SOURCE.glob("[a-z]*.py")}
    assert packages | modules <= set(PATHS)
