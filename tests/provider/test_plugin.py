"""The plugin: the life of a resource, import, secrets, identity, orders under way."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.protobuf import empty_pb2
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import (
    engine_pb2,
    provider_pb2,
)

from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.plugin.marshal import SECRET, SIGNATURE, UNKNOWN, marshal, unmarshal
from tests.provider.plugin_client import (
    KEY,
    NOT_AT_ALL,
    SERVER,
    SLOW,
    WEB,
    Asked,
    Refused,
    asked,
    reseen,
)
from tests.support.programs import PUBLIC_KEY
from tests.support.waiting import HANG_SECONDS


def test_the_life_of_a_server(plugin: Asked, emulator: Any) -> None:
    inputs = plugin.inputs(SERVER, {**WEB, "notes": "one"})
    assert unmarshal(inputs).values == {**WEB, "notes": "one", "name": "web"}

    predicted = plugin.create(SERVER, inputs, preview=True)
    assert predicted.id == ""
    seen = unmarshal(predicted.properties).values
    assert seen["name"] == "web"
    assert seen["charged"] == "5.00"
    assert predicted.properties.fields["ip"].string_value == UNKNOWN
    assert plugin.control("GET", "/objects")["servers"] == []
    (announced,) = plugin.engine.lines
    assert announced.message.startswith("will charge 5.00 EUR")

    with asked(emulator) as updating:
        made = updating.create(SERVER, updating.inputs(SERVER, {**WEB, "notes": "one"}))
        (told,) = updating.engine.lines  # one line for each order: it takes as long as a request
    assert told.message.startswith("charged 5.00 EUR")
    assert made.id.isdigit()
    outputs = unmarshal(made.properties).values
    assert outputs["charged"] == "5.00"
    # the same as a dynamic resource's, so that a stack can be taken over
    assert outputs["__identity"] == "pulumi:toys/dev/server/web"

    same = plugin.diff(
        SERVER,
        made.id,
        made.properties,
        plugin.inputs(SERVER, {**WEB, "notes": "one"}, unmarshal(inputs).values),
    )
    assert same.changes == provider_pb2.DiffResponse.DIFF_NONE
    assert same.hasDetailedDiff

    renamed = plugin.inputs(SERVER, {**WEB, "notes": "two", "name": "www"}, unmarshal(inputs).values)
    found = plugin.diff(SERVER, made.id, made.properties, renamed)
    assert found.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert sorted(found.diffs) == ["name", "notes"]
    assert {key: item.kind for key, item in found.detailedDiff.items()} == {"name": 4, "notes": 4}  # UPDATE
    assert not found.replaces
    previewed = plugin.update(SERVER, made.id, made.properties, renamed, preview=True)
    assert unmarshal(previewed.properties).values["name"] == "www"
    updated = plugin.update(SERVER, made.id, made.properties, renamed)
    after = unmarshal(updated.properties).values
    assert (after["name"], after["notes"], after["rootPassword"]) == ("www", "two", outputs["rootPassword"])

    plugin.control("PATCH", f"/servers/{made.id}", {"notes": "changed in the control panel"})
    with asked(emulator) as refreshing:
        live = refreshing.read(SERVER, made.id, updated.properties, renamed)
    assert live.id == made.id
    assert unmarshal(live.inputs).values == {**WEB, "name": "www", "notes": "changed in the control panel"}

    plugin.configure()  # the next command: within one, what is to stay as it is is not deleted
    plugin.delete(SERVER, made.id, live.properties)
    assert plugin.read(SERVER, made.id, live.properties, renamed).id == ""
    plugin.delete(SERVER, made.id, live.properties)


def test_a_preview_shows_nothing_that_the_change_makes_uncertain(plugin: Asked) -> None:
    inputs = plugin.inputs(SERVER, WEB)
    made = plugin.create(SERVER, inputs)
    assert unmarshal(made.properties).values["status"] == "active"
    stopped = plugin.inputs(SERVER, {**WEB, "power": "stopped"}, unmarshal(inputs).values)
    predicted = plugin.update(SERVER, made.id, made.properties, stopped, preview=True).properties
    assert predicted.fields["status"].string_value == UNKNOWN
    after = unmarshal(plugin.update(SERVER, made.id, made.properties, stopped).properties).values
    assert after["status"] == "stopped"
    known = {name: value for name, value in unmarshal(predicted).values.items() if name != "status"}
    assert known == {name: after.get(name) for name in known}


def test_a_change_that_replaces_says_so_for_its_property(plugin: Asked) -> None:
    inputs, id, outputs = plugin.made()
    found = plugin.diff(SERVER, id, outputs, reseen(inputs, os="ubuntu-24.04", notes="new"))
    assert list(found.replaces) == ["os"]
    # UPDATE_REPLACE, UPDATE
    assert {key: item.kind for key, item in found.detailedDiff.items()} == {"os": 5, "notes": 4}


def test_an_unknown_value_is_handed_on_and_may_replace(plugin: Asked) -> None:
    inputs, id, outputs = plugin.made(news={**WEB, "sshKeyIds": []})
    later = plugin.inputs(
        SERVER, {**WEB, "rebuild": "replace", "sshKeyIds": [UNKNOWN]}, unmarshal(inputs).values
    )
    assert later.fields["sshKeyIds"].list_value.values[0].string_value == UNKNOWN
    assert list(plugin.diff(SERVER, id, outputs, later).replaces) == ["sshKeyIds"]


# --- import


def test_an_import_finds_outputs_and_inputs_that_then_show_no_difference(plugin: Asked) -> None:
    _, id, outputs = plugin.made(news={**WEB, "notes": "one"})
    found = plugin.read(SERVER, id)
    assert found.id == id
    inputs = unmarshal(found.inputs).values
    assert {"name": "web", "tariffId": 1, "os": "debian-12", "notes": "one"}.items() <= inputs.items()
    assert not any(key.startswith("__") for key in inputs)
    seen = unmarshal(found.properties).values
    assert seen["ip"] == unmarshal(outputs).values["ip"]
    assert seen["__identity"] == "pulumi:toys/dev/server/web"
    assert (
        plugin.diff(SERVER, id, found.properties, found.inputs).changes == provider_pb2.DiffResponse.DIFF_NONE
    )
    key_inputs, key, _ = plugin.made(KEY, {"name": "me", "publicKey": PUBLIC_KEY})
    assert unmarshal(plugin.read(KEY, key).inputs).values == unmarshal(key_inputs).values


def test_an_import_of_what_is_not_there_fails(plugin: Asked) -> None:
    with pytest.raises(
        Refused,
        match=r"there is no server with id 4242 on this account. Next: correct the "
        r"id",
    ):
        plugin.read(SERVER, "4242")


# --- secrets


def test_what_was_secret_comes_back_secret(plugin: Asked) -> None:
    answer = plugin.check(SERVER, {**WEB, "notes": "hush", "password": "Abcdefg1"}, secrets=("notes",))
    assert unmarshal(answer.inputs).secrets == {"notes", "password"}
    made = plugin.create(SERVER, answer.inputs)
    assert {"notes", "password", "rootPassword"} <= unmarshal(made.properties).secrets
    live = plugin.read(SERVER, made.id, made.properties, answer.inputs)
    assert {"notes", "password", "rootPassword"} <= unmarshal(live.properties).secrets
    assert {"notes", "password"} <= unmarshal(live.inputs).secrets
    updated = plugin.update(SERVER, made.id, made.properties, reseen(answer.inputs, notes="quiet"))
    assert {"notes", "password", "rootPassword"} <= unmarshal(updated.properties).secrets
    predicted = plugin.create(SERVER, answer.inputs, preview=True).properties
    assert predicted.fields["rootPassword"].struct_value.fields[SIGNATURE].string_value == SECRET


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"password": "cAnary"}, "password"),
        ({"sshKeyIds": ["cAnary"]}, "sshKeyIds"),
        ({"nonsense": "cAnary"}, "nonsense"),
    ],
)
def test_a_failed_check_names_its_field_in_the_reason_alone(
    plugin: Asked, wrong: dict[str, Any], field: str
) -> None:
    (failure,) = plugin.check(SERVER, {**WEB, **wrong}).failures
    assert failure.property == ""  # else the engine prints the value
    assert failure.reason.startswith(f"{field}: ")
    assert "cAnary" not in failure.reason


def test_a_defect_is_one_line_without_values(
    plugin: Asked, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("cAnary")

    _, id, outputs = plugin.made()
    monkeypatch.setattr(Adapter, "delete", broken)
    with pytest.raises(Refused, match="defect of pulumi-hosting") as refused:
        plugin.delete(SERVER, id, outputs)
    assert "cAnary" not in refused.value.message
    assert "\n" not in refused.value.message
    assert caplog.text == ""


def test_a_refusal_of_the_service_is_one_line_with_its_code(plugin: Asked) -> None:
    inputs = plugin.inputs(SERVER, WEB)
    plugin.control("PATCH", "/account", {"balance": "0.01"})
    with pytest.raises(Refused, match="insufficient_funds") as refused:
        plugin.create(SERVER, inputs)
    assert refused.value.partial is None
    assert "\n" not in refused.value.message


def test_a_type_that_is_none_of_ours_is_refused(plugin: Asked) -> None:
    with pytest.raises(
        Refused,
        match=r"there is no resource hosting:index:Cloud in hosting. Next: correct "
        r"the type, one of .*Server",
    ):
        plugin.check("urn:pulumi:dev::toys::hosting:index:Cloud::web", {})


# --- identity


@pytest.mark.parametrize(
    ("urn", "identity"),
    [
        ("urn:pulumi:dev::toys::my:mod:Shop$hosting:index:Server::a", "pulumi:toys/dev/server/my:mod:Shop/a"),
        ("urn:pulumi:dev::toys::hosting:index:Server::a::b", "pulumi:toys/dev/server/a::b"),
    ],
)
def test_the_urn_names_the_declaration(plugin: Asked, urn: str, identity: str) -> None:
    made = plugin.create(urn, plugin.inputs(urn, {**WEB, "name": "a"}))
    assert unmarshal(made.properties).values["__identity"] == identity


def test_a_declaration_taken_over_keeps_its_identity(plugin: Asked) -> None:
    inputs, id, outputs = plugin.made()
    old = reseen(outputs, __identity="pulumi:toys/dev/server/before", __provider="gASV")
    before = {**unmarshal(inputs).values, "__identity": "pulumi:toys/dev/server/before", "__provider": "gASV"}
    checked = plugin.inputs(SERVER, WEB, before)
    assert not any(key.startswith("__") for key in checked.fields)
    assert plugin.diff(SERVER, id, old, checked).changes == provider_pb2.DiffResponse.DIFF_NONE
    updated = plugin.update(SERVER, id, old, reseen(checked, notes="two"))
    assert unmarshal(updated.properties).values["__identity"] == "pulumi:toys/dev/server/before"
    live = plugin.read(SERVER, id, old, marshal(before))
    assert unmarshal(live.properties).values["__identity"] == "pulumi:toys/dev/server/before"
    assert not any(key.startswith("__") for key in live.inputs.fields)


# --- what is not ready yet


@pytest.mark.emulator(clock="manual", provisioning_delay=60)
def test_an_order_under_way_is_saved_and_the_next_read_brings_the_server(plugin: Asked) -> None:
    plugin.control("POST", "/faults", SLOW)
    inputs = plugin.inputs(SERVER, WEB)
    with pytest.raises(Refused, match="is still provisioning") as refused:
        plugin.create(SERVER, inputs, timeout=NOT_AT_ALL)
    partial = refused.value.partial
    assert partial.id.startswith("order:")
    assert partial.refresh_before_update
    assert list(partial.reasons) == [refused.value.message]
    kept = unmarshal(partial.properties).values
    assert kept["__identity"] == "pulumi:toys/dev/server/web"
    assert "waitTimeout" not in kept

    with pytest.raises(Refused) as again:  # a success would keep the order's id for good
        plugin.update(SERVER, partial.id, partial.properties, inputs)
    assert again.value.partial.refresh_before_update

    with pytest.raises(Refused) as still:
        plugin.read(SERVER, partial.id, partial.properties, inputs, timeout=NOT_AT_ALL)
    assert still.value.partial.id == partial.id
    assert still.value.partial.refresh_before_update
    assert unmarshal(still.value.partial.inputs).values == unmarshal(inputs).values

    plugin.control("POST", "/clock", {"advance": 61})
    (server,) = plugin.control("GET", "/objects")["servers"]
    ready = plugin.read(SERVER, partial.id, partial.properties, inputs)
    assert ready.id == str(server["id"])
    assert unmarshal(ready.inputs).values == unmarshal(inputs).values
    outputs = unmarshal(ready.properties)
    assert outputs.values["__managed"] == ["name", "os", "tariff_id"]
    assert (
        plugin.diff(SERVER, ready.id, ready.properties, inputs).changes == provider_pb2.DiffResponse.DIFF_NONE
    )


@pytest.mark.emulator(clock="manual", provisioning_delay=60)
def test_waiting_is_reported_under_the_resource_and_ends_when_the_run_is_cancelled(plugin: Asked) -> None:
    plugin.control("POST", "/faults", SLOW)
    inputs = plugin.inputs(SERVER, WEB)
    plugin.engine.awaited = "provisioning"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(plugin.create, SERVER, inputs)
        assert plugin.engine.heard.wait(HANG_SECONDS)
        plugin("Cancel", empty_pb2.Empty())
        with pytest.raises(Refused, match=r"cancelled while waiting. Next: run again") as refused:
            waiting.result()
    assert refused.value.partial.id.startswith("order:")
    line = next(line for line in plugin.engine.lines if "provisioning" in line.message)
    assert line.urn == SERVER
    assert line.severity == engine_pb2.INFO


@pytest.mark.emulator(clock="manual", provisioning_delay=60)
def test_a_waiting_time_of_the_program_comes_before_the_custom_timeout(plugin: Asked) -> None:
    plugin.control("POST", "/faults", SLOW)
    inputs = plugin.inputs(SERVER, {**WEB, "waitTimeout": NOT_AT_ALL})
    with pytest.raises(Refused, match="is still provisioning") as refused:
        plugin.create(SERVER, inputs, timeout=3600)
    assert unmarshal(refused.value.partial.properties).values["waitTimeout"] == NOT_AT_ALL


def test_sixteen_steps_at_once(plugin: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    everybody = threading.Barrier(16, timeout=HANG_SECONDS)
    monkeypatch.setattr(Adapter, "delete", lambda *_: everybody.wait())
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: plugin.delete(SERVER, str(number), Struct()), range(16)))
    assert not everybody.broken


def test_what_is_declared_after_an_import_and_never_shown_is_compared_from_then_on(plugin: Asked) -> None:
    id = plugin.made()[1]
    found = plugin.read(SERVER, id)  # as an import asks
    declared = plugin.inputs(SERVER, {**WEB, "password": "Abcdefg1"}, unmarshal(found.inputs).values)
    none = provider_pb2.DiffResponse.DIFF_NONE
    assert plugin.diff(SERVER, id, found.properties, declared).changes == none
    # The engine saw no difference: it has the password among the inputs alone.
    again = plugin.inputs(
        SERVER, {**WEB, "password": "Zyxwvut9", "rebuild": "replace"}, unmarshal(declared).values
    )
    changed = plugin(
        "Diff",
        provider_pb2.DiffRequest(id=id, urn=SERVER, olds=found.properties, news=again, old_inputs=declared),
    )
    assert list(changed.replaces) == ["password"]
    live = plugin.read(SERVER, id, found.properties, declared)
    assert unmarshal(live.inputs).values["password"] == "Abcdefg1"
    assert "password" in unmarshal(live.inputs).secrets


# --- what stands where an object would be created


@pytest.mark.usefixtures("waits_take_no_time")
@pytest.mark.parametrize("name", ["web", "Web Server"])
def test_a_server_of_the_name_is_a_warning_in_the_preview_and_stops_the_creation(
    plugin: Asked, name: str
) -> None:
    """``preview --import-file`` writes nothing if the preview fails."""
    id = plugin.control("POST", "/servers", {"name": "web", "created_at": "2026-01-01T00:00:00Z"})["id"]
    plugin.control("PATCH", f"/servers/{id}", {"name": name})
    inputs = plugin.inputs(SERVER, {**WEB, "name": name})
    assert plugin.engine.lines == []
    assert not plugin.create(SERVER, inputs, preview=True).id
    (warned,) = plugin.engine.lines
    assert (warned.severity, f"set adopt_id to {id}" in warned.message) == (engine_pb2.WARNING, True)
    with pytest.raises(Refused, match="exists already" if name == "web" else "name: may contain only"):
        plugin.create(SERVER, inputs)
    assert [server["id"] for server in plugin.control("GET", "/objects")["servers"]] == [id]
    plugin.configure(strict=True)
    (failure,) = plugin.check(SERVER, {**WEB, "name": name}).failures
    assert f"set adopt_id to {id}" in failure.reason


def test_a_name_that_cannot_be_sent_and_that_nothing_has_is_refused_in_the_preview(plugin: Asked) -> None:
    (failure,) = plugin.check(SERVER, {**WEB, "name": "Web Server"}).failures
    assert "name: may contain only" in failure.reason
