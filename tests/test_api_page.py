"""The page of the API is written from the public names, and is up to date."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_the_api_page_lists_every_public_name():
    spec = importlib.util.spec_from_file_location("make_api", DOCS / "make_api.py")
    make_api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_api)
    written = (DOCS / "api.md").read_text(encoding="utf-8")
    assert written == make_api.write_api(), "run: python docs/make_api.py"
