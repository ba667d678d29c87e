"""URNs and aliases."""

from typing import Any

import pytest
from pulumi.runtime.proto.alias_pb2 import Alias

from pulumi_hosting.offline.errors import PluginError
from pulumi_hosting.offline.generator.decisions import NameClash, Names
from pulumi_hosting.offline.model.goals import Goal
from pulumi_hosting.offline.model.state import ResourceState
from pulumi_hosting.offline.model.urns import make_urn
from tests.offline.test_state import STACK

TYPE = "toy:index:Thing"


def urn(name: str, parent: str = "", *, type: str = TYPE, stack: str = "dev", project: str = "p") -> str:
    return make_urn(stack, project, parent, type, name)


def olds(*urns: str) -> dict[str, ResourceState]:
    return {item: ResourceState(item, TYPE) for item in urns}


def alias_of(**spec: Any) -> Alias:
    return Alias(spec=Alias.Spec(**spec))


def goal(name: str, *aliases: Alias, type: str = TYPE, parent: str = "") -> Goal:
    return Goal(ResourceState("", type, parent=parent), name, aliases)


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
        (alias_of(name="before"), urn("before")),
        (alias_of(type="toy:index:Old"), urn("now", type="toy:index:Old")),
        (alias_of(stack="prod", project="q"), urn("now", stack="prod", project="q")),
        (alias_of(parentUrn=STACK, name="before"), urn("before")),
        (alias_of(parentUrn=urn("box")), urn("now", urn("box"))),
        (alias_of(noParent=True, name="before"), urn("before")),
        (Alias(urn="urn:pulumi:x::y::z::w"), "urn:pulumi:x::y::z::w"),
    ],
)
def test_an_alias_finds_the_old_resource(alias: Alias, old: str) -> None:
    names = Names("dev", "p")
    state, found = names.find_old(names.claim("", TYPE, "now"), goal("now", alias, parent=STACK), olds(old))
    assert (state and state.urn, found) == (old, old)
    assert names.current(old) == urn("now")


def test_a_resource_under_its_own_name_needs_no_alias() -> None:
    names = Names("dev", "p")
    state, found = names.find_old(urn("a"), goal("a", alias_of(name="b")), olds(urn("a"), urn("b")))
    assert (state and state.urn, found) == (urn("a"), "")
    assert names.find_old(urn("c"), goal("c", alias_of(name="d")), {}) == (None, "")


def test_children_of_a_renamed_parent() -> None:
    names = Names("dev", "p")
    parent = names.claim("", "c:c:C", "new")
    names.find_old(parent, goal("new", alias_of(name="old"), type="c:c:C"), olds(urn("old", type="c:c:C")))
    old_parent = urn("old", type="c:c:C")
    for name, was, aliases in (("new-disk", "old-disk", []), ("volume", "drive", [alias_of(name="drive")])):
        child = names.claim(parent, TYPE, name)
        expected = urn(was, old_parent)
        assert names.find_old(child, goal(name, *aliases, parent=parent), olds(expected))[1] == expected


def test_two_resources_cannot_have_one_alias() -> None:
    names = Names("dev", "p")
    before = olds(urn("old"))
    names.find_old(names.claim("", TYPE, "first"), goal("first", alias_of(name="old")), before)
    with pytest.raises(NameClash, match=r"conflicting with 'urn.*first'"):
        names.find_old(names.claim("", TYPE, "second"), goal("second", alias_of(name="old")), before)
    with pytest.raises(NameClash, match="conflicting with alias on resource"):
        names.find_old(names.claim("", TYPE, "old"), goal("old"), before)
