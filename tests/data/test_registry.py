"""Parts register under a name, which finds them, their summaries and their traits."""

import sys

import pytest

from dsage.data.registry import Registry


@pytest.fixture
def tools():
    registry = Registry("tool", "the tools")
    registry.register("saw", summary="cuts", sharp=True)("the saw")
    registry.register("hammer", summary="hits")("the hammer")
    return registry


def test_parts_are_found_by_name_in_the_order_of_registration(tools):
    assert dict(tools) == {"saw": "the saw", "hammer": "the hammer"}
    assert tools.names() == ("saw", "hammer")
    assert len(tools) == 2
    assert tools.table() == [("saw", "cuts"), ("hammer", "hits")]
    assert tools.summary("hammer") == "hits"
    assert (tools.traits("saw"), tools.traits("hammer")) == ({"sharp": True}, {})


def test_register_decorates_a_class_and_leaves_it_as_it_is(tools):
    @tools.register("file", summary="smooths")
    class File:
        pass

    assert tools["file"] is File


@pytest.mark.parametrize("lookup", ["__getitem__", "summary", "traits", "remove"])
def test_an_unknown_name_is_refused_with_the_closest_one(tools, lookup):
    with pytest.raises(ValueError, match=r"^tool must be one of the tools.*'hamer'.*'hammer'\?"):
        getattr(tools, lookup)("hamer")


def test_membership_and_get_do_not_raise(tools):
    assert "saw" in tools
    assert "drill" not in tools
    assert 3 not in tools
    assert tools.get("drill") is None
    assert tools.get("saw") == "the saw"


def test_a_name_is_registered_once_until_it_is_removed(tools):
    with pytest.raises(ValueError, match=r"new to the tools; got 'saw'"):
        tools.register("saw", summary="cuts")
    tools.remove("saw")
    tools.register("saw", summary="cuts")("another saw")
    assert tools.names() == ("hammer", "saw")
    assert tools["saw"] == "another saw"


def test_a_new_file_in_the_package_is_enough_to_add_a_part(tmp_path, monkeypatch):
    package = tmp_path / "toolbox"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from dsage.data.registry import Registry\n"
        "TOOLS = Registry('tool', 'the tools', package='toolbox')\n"
    )
    (package / "drill.py").write_text(
        "from toolbox import TOOLS\nTOOLS.register('drill', summary='bores')('the drill')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("toolbox", "toolbox.drill"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    import toolbox

    assert "toolbox.drill" not in sys.modules
    assert toolbox.TOOLS.table() == [("drill", "bores")]
