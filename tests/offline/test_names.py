"""URNs and aliases."""

import pytest

from pulumi_hosting.offline.errors import PluginError
from pulumi_hosting.offline.generator.decisions import NameClash, Names
from pulumi_hosting.offline.model.goals import Alias, Goal
from pulumi_hosting.offline.model.state import ResourceState
from pulumi_hosting.offline.model.urns import make_urn
from tests.offline.test_state import STACK

TYPE = "toy:index:Thing"


def urn(name: str, parent: str = "", *, type: str = TYPE, stack: str = "dev", project: str = "p") -> str:
    return make_urn(stack, project, parent, type, name)


def olds(*urns: str) -> dict[str, ResourceState]:
    return {item: ResourceState(item, TYPE) for item in urns}


def test_a_name_is_used_once() -> None:
    names = Names("dev", "p")
    assert names.claim("", TYPE, "a") == urn("a")
    with pytest.raises(NameClash, match="giving it a unique name") as raised:
        names.claim("", TYPE, "a")
    assert raised.value.urn == urn("a")
    with pytest.raises(PluginError, match="could not find parent"):
        names.claim("urn:unknown", TYPE, "b")


@pytest.mark.parametrize(
    ("alias", "old"),
    [
        (Alias(name="before"), urn("before")),
        (Alias(type="toy:index:Old"), urn("now", type="toy:index:Old")),
        (Alias(stack="prod", project="q"), urn("now", stack="prod", project="q")),
        (Alias(parent=STACK, name="before"), urn("before")),
        (Alias(parent=urn("box")), urn("now", urn("box"))),
        (Alias(no_parent=True, name="before"), urn("before")),
        (Alias(urn="urn:pulumi:x::y::z::w"), "urn:pulumi:x::y::z::w"),
    ],
)
def test_an_alias_finds_the_old_resource(alias: Alias, old: str) -> None:
    names = Names("dev", "p")
    state, found = names.find_old(
        names.claim("", TYPE, "now"), Goal(TYPE, "now", parent=STACK, aliases=[alias]), olds(old)
    )
    assert (state and state.urn, found) == (old, old)
    assert names.current(old) == urn("now")


def test_a_resource_under_its_own_name_needs_no_alias() -> None:
    names = Names("dev", "p")
    state, found = names.find_old(
        urn("a"), Goal(TYPE, "a", aliases=[Alias(name="b")]), olds(urn("a"), urn("b"))
    )
    assert (state and state.urn, found) == (urn("a"), "")
    assert names.find_old(urn("c"), Goal(TYPE, "c", aliases=[Alias(name="d")]), {}) == (None, "")


def test_children_of_a_renamed_parent() -> None:
    names = Names("dev", "p")
    parent = names.claim("", "c:c:C", "new")
    names.find_old(parent, Goal("c:c:C", "new", aliases=[Alias(name="old")]), olds(urn("old", type="c:c:C")))
    old_parent = urn("old", type="c:c:C")
    for name, was, aliases in (("new-disk", "old-disk", []), ("volume", "drive", [Alias(name="drive")])):
        child = names.claim(parent, TYPE, name)
        expected = urn(was, old_parent)
        assert (
            names.find_old(child, Goal(TYPE, name, parent=parent, aliases=aliases), olds(expected))[1]
            == expected
        )


def test_two_resources_cannot_have_one_alias() -> None:
    names = Names("dev", "p")
    before = olds(urn("old"))
    names.find_old(names.claim("", TYPE, "first"), Goal(TYPE, "first", aliases=[Alias(name="old")]), before)
    with pytest.raises(NameClash, match=r"conflicting with 'urn.*first'"):
        names.find_old(
            names.claim("", TYPE, "second"), Goal(TYPE, "second", aliases=[Alias(name="old")]), before
        )
    with pytest.raises(NameClash, match="conflicting with alias on resource"):
        names.find_old(names.claim("", TYPE, "old"), Goal(TYPE, "old"), before)
