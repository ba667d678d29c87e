"""State: URNs, Pulumi's deployment JSON, the dependency graph."""

import json
from typing import Any

import pytest

from pulumi_hosting.offline import InvalidConfiguration
from pulumi_hosting.offline.model.graph import Graph, rebuild
from pulumi_hosting.offline.model.property_values import UNKNOWN, ResourceReference, SecretValue
from pulumi_hosting.offline.model.state import PendingOperation, ResourceState, Snapshot
from pulumi_hosting.offline.model.urns import (
    is_provider,
    make_urn,
    package_of,
    provider_id,
    provider_urn,
    qualified_type,
    urn_name,
    urn_type,
)
from pulumi_hosting.offline.storage.deployment_json import (
    deployment_from_json,
    deployment_to_text,
    resource_from_json,
    resource_text,
    resource_to_json,
)
from pulumi_hosting.offline.storage.passphrase import Crypter
from tests.offline.test_secrets import PULUMI_SALT

CRYPTER = Crypter("x", PULUMI_SALT)
STACK = "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev"


def thing(name: str, **fields: Any) -> ResourceState:
    return ResourceState(
        make_urn("dev", "p", "", "toy:index:Thing", name),
        "toy:index:Thing",
        custom=True,
        id=f"{name}#1",
        **fields,
    )


def test_urns() -> None:
    parent = make_urn("dev", "p", STACK, "a:b:C", "outer")
    assert parent == "urn:pulumi:dev::p::a:b:C::outer"
    child = make_urn("dev", "p", parent, "toy:index:Thing", "in::ner")
    assert child == "urn:pulumi:dev::p::a:b:C$toy:index:Thing::in::ner"
    assert (qualified_type(child), urn_type(child), urn_name(child)) == (
        "a:b:C$toy:index:Thing",
        "toy:index:Thing",
        "in::ner",
    )
    assert is_provider("pulumi:providers:toy")
    assert package_of("pulumi:providers:toy") == package_of("toy:index:Thing") == "toy"
    assert (provider_urn("urn:x::1-2"), provider_id("urn:x::1-2")) == ("urn:x", "1-2")


def test_a_resource_is_saved_and_read() -> None:
    state = thing(
        "a",
        inputs={"note": SecretValue({"deep": [1, None]}), "size": 2, "ref": ResourceReference("urn:r", "9")},
        outputs={"out": SecretValue("hush")},
        protect=True,
        dependencies=["urn:b"],
        property_dependencies={"note": ["urn:b"]},
        custom_timeouts={"create": 90},
        import_id="i",
        refresh_before_update=True,
        init_errors=["late"],
    )
    data = json.loads(resource_text(state, CRYPTER))
    assert "hush" not in json.dumps(data)
    assert (data["importID"], data["refreshBeforeUpdate"], data["customTimeouts"]) == (
        "i",
        True,
        {"create": 90},
    )
    assert "delete" not in data
    again = resource_from_json(data, CRYPTER)
    assert resource_to_json(again, None) == resource_to_json(state, None)
    assert again.inputs == state.inputs


def test_unknown_fields_are_kept() -> None:
    data = {"urn": "urn:x", "custom": True, "type": "t", "stackTrace": [{"sourcePosition": "a.py#1"}]}
    assert resource_to_json(resource_from_json(data, CRYPTER), CRYPTER)["stackTrace"] == data["stackTrace"]


def test_the_text_is_cached_until_a_change() -> None:
    state = thing("a", outputs={"out": SecretValue("hush")})
    first = resource_text(state, CRYPTER)
    assert resource_text(state, CRYPTER) is first
    state.protect = True
    assert resource_text(state, CRYPTER) != first
    assert state.copy().saved_text is None


def test_a_deployment_is_saved_and_read() -> None:
    snapshot = Snapshot(
        [thing("a", inputs={"n": SecretValue(1)})],
        [PendingOperation("creating", thing("b"))],
        {"extensions": {"x": {}}},
    )
    data = json.loads(deployment_to_text(snapshot, CRYPTER))
    assert data["secrets_providers"] == {"type": "passphrase", "state": {"salt": PULUMI_SALT}}
    again = deployment_from_json(data, CRYPTER)
    assert [state.urn for state in again.resources] == [state.urn for state in snapshot.resources]
    assert (again.pending[0].type, again.pending[0].resource.name, again.extra) == (
        "creating",
        "b",
        {"extensions": {"x": {}}},
    )
    # Nothing changed, nothing is encrypted again.
    assert json.loads(deployment_to_text(again, CRYPTER))["resources"] == data["resources"]
    assert json.loads(deployment_to_text(again, None))["resources"][0]["inputs"]["n"]["plaintext"] == "1"


def test_an_empty_deployment() -> None:
    assert deployment_from_json({}, None).resources == []
    assert "resources" not in json.loads(deployment_to_text(Snapshot(), CRYPTER))


def test_plain_secrets_are_read_and_encrypted_ones_need_a_passphrase() -> None:
    shown = resource_to_json(thing("a", inputs={"n": SecretValue("x"), "u": UNKNOWN}), None)
    assert resource_from_json(shown, None).inputs == {"n": SecretValue("x"), "u": UNKNOWN}
    hidden = resource_to_json(thing("a", inputs={"n": SecretValue("x")}), CRYPTER)
    with pytest.raises(InvalidConfiguration, match="passphrase"):
        resource_from_json(hidden, None)


def test_an_unknown_reference_is_written() -> None:
    data = resource_to_json(thing("a", inputs={"r": ResourceReference("urn:r", UNKNOWN, "1.0")}), None)
    assert data["inputs"]["r"]["packageVersion"] == "1.0"


# The graph.


def family() -> list[ResourceState]:
    stack = ResourceState(STACK, "pulumi:pulumi:Stack")
    component = ResourceState("urn:pulumi:dev::p::c:c:C::box", "c:c:C", parent=STACK)
    a = thing("a", parent=component.urn)
    b = thing("b", parent=STACK, dependencies=[component.urn])
    c = thing("c", parent=STACK, property_dependencies={"x": [b.urn]})
    return [stack, component, a, b, c]


def test_dependencies() -> None:
    stack, component, a, b, c = states = family()
    graph = Graph(states)
    assert graph.dependencies_of(a) == [component]
    assert graph.dependencies_of(b) == [stack, component, a]  # a component means its children too
    assert graph.all_dependencies_of(c) == {id(state) for state in (stack, component, a, b)}
    assert graph.depending_on(component) == [b, c]
    assert graph.depending_on(component, with_children=True) == [a, b, c]
    assert graph.depending_on(component, ignore=[b.urn]) == []
    assert graph.depending_on(thing("stranger")) == []


def test_depths() -> None:
    stack, component, a, b, c = states = family()
    depths = Graph(states).depths(states)
    assert [depths[id(state)] for state in (stack, component, a, b, c)] == [0, 1, 2, 3, 4]
    assert Graph(states).depths([a, b]) == {id(a): 0, id(b): 1}


def test_a_replaced_resource_after_its_dependents_blocks_none() -> None:
    new, old = thing("a"), thing("a", delete=True)
    b = thing("b", dependencies=[new.urn])
    graph = Graph([new, b, old])
    assert graph.dependencies_of(b) == [new]
    assert graph.depending_on(old) == []


def test_an_alias_has_the_same_place() -> None:
    states = family()
    *_, b, c = states
    graph = Graph(states)
    refreshed = b.copy()
    graph.alias(refreshed, b)
    assert refreshed in graph
    assert graph.depending_on(refreshed) == [c]
    assert graph.depths([refreshed, c])[id(c)] == 1


def test_references_to_removed_resources_are_removed() -> None:
    stack, component, a, b, c = family()
    c.dependencies, c.deleted_with, c.replace_with = [b.urn, stack.urn], b.urn, [b.urn]
    grandchild = thing("g", parent=a.urn)
    kept = rebuild([stack, component, grandchild, c])
    assert [state.name for state in kept] == ["p-dev", "box", "g", "c"]
    assert (c.dependencies, c.property_dependencies, c.deleted_with, c.replace_with) == (
        [stack.urn],
        {},
        "",
        [],
    )
    assert grandchild.parent == ""  # its parent's parent is not known once the parent is gone from the list


def test_an_orphan_gets_its_grandparent() -> None:
    outer = ResourceState("urn:pulumi:dev::p::c:c:C::outer", "c:c:C", parent=STACK)
    inner = ResourceState("urn:pulumi:dev::p::c:c:C$c:c:C::inner", "c:c:C", parent=outer.urn)
    leaf = thing("leaf", parent=inner.urn)
    stack = ResourceState(STACK, "pulumi:pulumi:Stack")
    assert rebuild([stack, outer, inner, leaf])[-1].parent == inner.urn
