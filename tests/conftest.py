import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from dsage.estimate.parallel import helpers

# A busy machine is no failure.
settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for no examples in tests: there are none."""
    found = yield
    return [each for each in found if not isinstance(each, DoctestModule)]


@pytest.fixture(autouse=True)
def _no_helpers(monkeypatch):
    """Start no processes: tests run in parallel themselves."""
    monkeypatch.setattr(helpers, "_SECONDS_ALONE", float("inf"))
