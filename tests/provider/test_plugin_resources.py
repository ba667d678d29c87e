"""Every resource through the plugin: what it creates it reads, and what it imports is what was declared."""

from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

from pulumi_hosting.provider.plugin.marshal import unmarshal
from pulumi_hosting.provider.plugin.servicer import resource_of
from pulumi_hosting.resources import RESOURCES
from tests.provider.plugin_client import NOT_AT_ALL, SERVER, WEB, Asked, Refused, asked
from tests.support.programs import PUBLIC_KEY

PARENT = "${server}"
DECLARED: dict[str, dict[str, Any]] = {
    "hosting:index:Server": {**WEB, "notes": "one", "autoRenew": True, "power": "running"},
    "hosting:index:Domain": {
        "name": "Example-1.com",
        "nameservers": ["ns2.example.net.", "NS1.example.net"],
        "autoRenew": False,
    },
    "hosting:index:SshKey": {"name": "me", "publicKey": PUBLIC_KEY},
    "hosting:index:ServerIp": {"serverId": PARENT},
    "hosting:index:Ptr": {"serverId": PARENT, "domain": "Mail.example.com."},
    "hosting:index:WebhookSubscription": {
        "url": "https://Hooks.example.com/x",
        "events": ["server.created", "balance.low"],
    },
}


def test_what_is_declared_here_are_resources() -> None:
    assert {resource_of(f"urn:pulumi:dev::toys::{token}::x").kind for token in DECLARED} <= set(RESOURCES)


@pytest.mark.parametrize("token", DECLARED)
def test_what_was_made_is_read_and_imported_without_a_difference(
    plugin: Asked,  # a fixture of another file, by its name
    emulator: Any,
    dialect: str,
    token: str,
) -> None:
    parent = plugin.made(SERVER, {**WEB, "name": "base"})[1] if PARENT in DECLARED[token].values() else ""
    declared = {name: parent if value == PARENT else value for name, value in DECLARED[token].items()}
    urn = f"urn:pulumi:dev::toys::{token}::web"
    inputs, id, outputs = plugin.made(urn, declared)
    assert isinstance(id, str)
    assert id
    none = provider_pb2.DiffResponse.DIFF_NONE
    again = plugin.inputs(urn, declared, unmarshal(inputs).values)
    assert plugin.diff(urn, id, outputs, again).changes == none

    with asked(emulator) as later:  # the next command of the engine is another process
        live = later.read(urn, id, outputs, inputs)
        assert live.id == id
        assert unmarshal(live.inputs).values == unmarshal(inputs).values
        assert unmarshal(outputs).secrets <= unmarshal(live.properties).secrets

        found = later.read(urn, id)
        assert found.id == id
        # the program declares what was imported
        assert later.diff(urn, id, found.properties, inputs).changes == none
        assert (
            later.diff(urn, id, found.properties, later.inputs(urn, unmarshal(found.inputs).values)).changes
            == none
        )

    with asked(emulator) as last:
        last.delete(urn, id, outputs)
        last.delete(urn, id, outputs)
    with asked(emulator) as last:
        gone = last.read(urn, id, outputs, inputs).id == ""
        assert gone is (token != "hosting:index:Domain")  # of which no deletion exists: it is only forgotten


@pytest.mark.parametrize("token", DECLARED)
def test_an_import_of_what_is_not_there_fails(
    plugin: Asked, token: str
) -> None:  # a fixture of another file, by its name
    base = plugin.made(SERVER, {**WEB, "name": "base"})[1]
    id = {"hosting:index:ServerIp": f"{base}/4242", "hosting:index:Ptr": f"{base}/198.51.100.77"}.get(
        token, "4242"
    )
    with pytest.raises(Refused, match=rf"there is no .* with id {id} .*Next: "):
        plugin.read(f"urn:pulumi:dev::toys::{token}::web", id)


@pytest.mark.emulator(clock="manual", ip_delay=60)
def test_an_address_that_is_assigned_later_is_saved_and_the_next_read_brings_it(
    plugin: Asked,
) -> None:  # a fixture of another file, by its name
    server = plugin.made()[1]
    urn = "urn:pulumi:dev::toys::hosting:index:ServerIp::spare"
    inputs = plugin.inputs(urn, {"serverId": server})
    with pytest.raises(Refused) as refused:
        plugin.create(urn, inputs, timeout=NOT_AT_ALL)
    partial = refused.value.partial
    assert partial.refresh_before_update
    with pytest.raises(Refused) as again:
        plugin.update(urn, partial.id, partial.properties, inputs)
    assert again.value.partial.refresh_before_update
    plugin.control("POST", "/clock", {"advance": 61})
    ready = plugin.read(urn, partial.id, partial.properties, inputs)
    assert ready.id != partial.id
    assert unmarshal(ready.properties).values["address"]
    assert plugin.diff(urn, ready.id, ready.properties, inputs).changes == provider_pb2.DiffResponse.DIFF_NONE
    assert len(plugin.control.ledger()) == 2
