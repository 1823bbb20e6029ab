"""The names of the package, which are imported when they are used."""

import importlib
import types

import pytest

import dsage


@pytest.mark.parametrize("name", dsage.__all__)
def test_every_public_name_is_there(name):
    assert getattr(dsage, name) is not None
    assert name in dir(dsage)


def test_explain_stays_the_function_where_its_module_is_imported():
    module = importlib.import_module("dsage.explain")
    assert dsage.explain is module.explain
    # What an import of a module does to its package.
    dsage.explain = types.ModuleType("dsage.explain")
    assert dsage.explain is module.explain


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match="module 'dsage' has no attribute 'explian'"):
        dsage.explian  # noqa: B018
