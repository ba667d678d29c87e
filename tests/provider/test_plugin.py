"""The plugin, asked over gRPC as the engine asks it."""

import contextlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)

from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.plugin.engine_log import engine_address
from pulumi_hosting.provider.plugin.marshal import SECRET, SIGNATURE, UNKNOWN, Properties, marshal, unmarshal
from pulumi_hosting.provider.plugin.servicer import Plugin, serve
from pulumi_hosting.rehearsal.control_client import Control
from tests.support.programs import PUBLIC_KEY
from tests.support.waiting import HANG_SECONDS

SERVER = "urn:pulumi:dev::toys::hosting:index:Server::web"
KEY = "urn:pulumi:dev::toys::hosting:index:SshKey::me"
WEB = {"tariffId": 1, "os": "debian-12"}
SLOW = {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}
NOT_AT_ALL = 1e-9  # seconds: as long as it takes to ask once


class Engine(engine_pb2_grpc.EngineServicer):
    """The engine's side: what plugins say to people arrives here."""

    def __init__(self) -> None:
        self.lines: list[Any] = []
        self.heard = threading.Event()
        self.awaited = "nothing"

    def Log(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.lines.append(request)
        if self.awaited in request.message:
            self.heard.set()
        return empty_pb2.Empty()


class Refused(Exception):
    """An error of the plugin; ``partial``: what it says exists nevertheless."""

    def __init__(self, error: grpc.RpcError) -> None:
        self.message = error.details() or ""
        self.code = error.code()
        self.partial: Any = None
        metadata: Any = error.trailing_metadata() or ()
        for key, value in metadata:
            if key == "grpc-status-details-bin":
                (detail,) = status_pb2.Status.FromString(value).details
                self.partial = provider_pb2.ErrorResourceInitFailed()
                assert detail.Unpack(self.partial)
        super().__init__(self.message)


@dataclass
class Asked:
    """A plugin and the wire to it."""

    stub: provider_pb2_grpc.ResourceProviderStub
    engine: Engine
    control: Control
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self, method: str, request: Any) -> Any:
        try:
            return getattr(self.stub, method)(request)
        except grpc.RpcError as error:
            raise Refused(error) from None

    def configure(self, name: str = "default", **settings: Any) -> None:
        urn = f"urn:pulumi:dev::toys::pulumi:providers:hosting::{name}"
        self(
            "Configure",
            provider_pb2.ConfigureRequest(
                urn=urn, name=name, args=marshal({**self.settings, **settings}, {"apiKey"})
            ),
        )

    def check(
        self,
        urn: str,
        news: dict[str, Any],
        olds: dict[str, Any] | None = None,
        secrets: tuple[str, ...] = (),
    ) -> Any:
        name = urn.rsplit("::", 1)[1]
        return self(
            "Check",
            provider_pb2.CheckRequest(
                urn=urn, name=name, olds=marshal(olds or {}), news=marshal(news, secrets)
            ),
        )

    def inputs(self, urn: str, news: dict[str, Any], olds: dict[str, Any] | None = None) -> Struct:
        answer = self.check(urn, news, olds)
        assert not answer.failures
        inputs: Struct = answer.inputs
        return inputs

    def create(self, urn: str, inputs: Struct, **rest: Any) -> Any:
        return self("Create", provider_pb2.CreateRequest(urn=urn, properties=inputs, **rest))

    def diff(self, urn: str, id: str, olds: Struct, news: Struct) -> Any:
        return self("Diff", provider_pb2.DiffRequest(urn=urn, id=id, olds=olds, news=news))

    def update(self, urn: str, id: str, olds: Struct, news: Struct, **rest: Any) -> Any:
        return self("Update", provider_pb2.UpdateRequest(urn=urn, id=id, olds=olds, news=news, **rest))

    def read(
        self, urn: str, id: str, outputs: Struct | None = None, inputs: Struct | None = None, **rest: Any
    ) -> Any:
        return self(
            "Read",
            provider_pb2.ReadRequest(
                urn=urn, id=id, properties=outputs or Struct(), inputs=inputs or Struct(), **rest
            ),
        )

    def delete(self, urn: str, id: str, outputs: Struct, **rest: Any) -> None:
        self("Delete", provider_pb2.DeleteRequest(urn=urn, id=id, properties=outputs, **rest))

    def made(self, urn: str = SERVER, news: dict[str, Any] | None = None) -> tuple[Struct, str, Struct]:
        inputs = self.inputs(urn, news or WEB)
        answer = self.create(urn, inputs)
        return inputs, answer.id, answer.properties


@contextlib.contextmanager
def asked(emulator: Any) -> Iterator[Asked]:
    engine = Engine()
    engine_server = grpc.server(ThreadPoolExecutor(4))
    engine_pb2_grpc.add_EngineServicer_to_server(engine, engine_server)
    address = f"127.0.0.1:{engine_server.add_insecure_port('127.0.0.1:0')}"
    engine_server.start()
    plugin = Plugin()
    server, port = serve(plugin)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = provider_pb2_grpc.ResourceProviderStub(channel)
        settings = {"apiKey": emulator.live_key, "baseUrl": emulator.base_url}
        made = Asked(stub, engine, Control(emulator.control_url), settings)
        made("Handshake", provider_pb2.ProviderHandshakeRequest(engine_address=address))
        made.configure()
        yield made
        plugin.end()
        server.stop(None).wait()
    plugin.engine.close()
    engine_server.stop(None).wait()
    plugin.session.client.close()


@pytest.fixture
def plugin(emulator: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    for variable in ("HOSTING_API_KEY", "HOSTING_BASE_URL", "HOSTING_MODE", "HOSTING_MAX_CHARGE"):
        monkeypatch.delenv(variable, raising=False)
    with asked(emulator) as made:
        yield made


def reseen(struct: Struct, **changes: Any) -> Struct:
    """The same properties, some changed, the same ones secret."""
    received = unmarshal(struct)
    return marshal({**received.values, **changes}, received.secrets)


# --- a resource's life


def test_the_life_of_a_server(plugin: Asked) -> None:
    inputs = plugin.inputs(SERVER, {**WEB, "notes": "one"})
    assert unmarshal(inputs).values == {**WEB, "notes": "one", "name": "web"}

    predicted = plugin.create(SERVER, inputs, preview=True)
    assert predicted.id == ""
    seen = unmarshal(predicted.properties).values
    assert seen["name"] == "web"
    assert seen["charged"] == "5.00"
    assert predicted.properties.fields["ip"].string_value == UNKNOWN
    assert plugin.control("GET", "/objects")["servers"] == []

    made = plugin.create(SERVER, inputs)
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
    live = plugin.read(SERVER, made.id, updated.properties, renamed)
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
def test_waiting_is_told_under_the_resource_and_ends_when_the_run_is_cancelled(plugin: Asked) -> None:
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


# --- configuration


@pytest.mark.parametrize("settings", [{"mode": "cAnary"}, {"maxCharge": "cAnary"}])
def test_wrong_settings_are_refused_by_name(plugin: Asked, settings: dict[str, Any]) -> None:
    answer = plugin("CheckConfig", provider_pb2.CheckRequest(news=marshal({**plugin.settings, **settings})))
    (failure,) = answer.failures
    assert failure.property == ""
    assert failure.reason.startswith(f"{next(iter(settings))}: must be ")
    assert "cAnary" not in failure.reason


def test_the_api_key_is_a_secret_whatever_the_program_says(plugin: Asked) -> None:
    answer = plugin(
        "CheckConfig", provider_pb2.CheckRequest(news=marshal({"apiKey": "k", "baseUrl": UNKNOWN}))
    )
    assert unmarshal(answer.inputs).secrets == {"apiKey"}
    assert answer.inputs.fields["baseUrl"].string_value == UNKNOWN


def test_any_other_setting_configures_anew_and_replaces_nothing(plugin: Asked) -> None:
    def changes(olds: dict[str, Any], news: dict[str, Any]) -> Any:
        return plugin(
            "DiffConfig",
            provider_pb2.DiffRequest(old_inputs=marshal(olds, {"apiKey"}), news=marshal(news, {"apiKey"})),
        )

    kinds = provider_pb2.DiffResponse
    assert changes({"apiKey": "a"}, {"apiKey": "a"}).changes == kinds.DIFF_NONE
    for olds, news in (
        ({"apiKey": "a"}, {"apiKey": "b"}),
        ({"hosting:apiKey": "a", "toys:x": "y"}, {"apiKey": "a"}),
        ({}, {"mode": "live"}),
    ):
        answer = changes(olds, news)
        assert answer.changes == kinds.DIFF_SOME
        assert not answer.replaces
        assert not answer.deleteBeforeReplace


def test_the_environment_comes_before_the_stack_and_a_declared_provider_before_both(
    plugin: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = plugin.control("POST", "/accounts", {})
    monkeypatch.setenv("HOSTING_API_KEY", other["live_key"])
    plugin.configure("second", baseUrl=plugin.settings["baseUrl"])
    plugin.made(news={**WEB, "name": "declared"})
    plugin.configure("default_0_1_0", apiKey="vk_live_stale")
    servers = {server["name"]: server for server in plugin.control("GET", "/objects")["servers"]}
    assert servers["declared"]["account_id"] != other["account_id"]


# --- the rest of the protocol


def test_the_schema_names_every_resource_it_serves(plugin: Asked) -> None:
    schema = json.loads(plugin("GetSchema", provider_pb2.GetSchemaRequest(version=0)).schema)
    assert schema["name"] == "hosting"
    assert schema["version"] == plugin("GetPluginInfo", empty_pb2.Empty()).version
    for token in schema["resources"]:
        urn = f"urn:pulumi:dev::toys::{token}::x"
        assert plugin.check(urn, {"nonsense": 1}).failures


def test_lookups_answer(plugin: Asked) -> None:
    answer = plugin("Invoke", provider_pb2.InvokeRequest(tok="hosting:index:getMe", args=Struct()))
    found = unmarshal(getattr(answer, "return")).values
    assert found["livemode"] is True
    with pytest.raises(Refused, match="not_found"):
        plugin(
            "Invoke",
            provider_pb2.InvokeRequest(tok="hosting:index:getServer", args=marshal({"serverId": 4242})),
        )


def test_it_attaches_maps_nothing_and_has_no_components(plugin: Asked) -> None:
    assert plugin("Attach", plugin_pb2.PluginAttach(address="127.0.0.1:1")) == empty_pb2.Empty()
    assert plugin("GetMapping", provider_pb2.GetMappingRequest(key="terraform")).data == b""
    assert not plugin("GetMappings", provider_pb2.GetMappingsRequest(key="terraform")).providers
    for method, request in (
        ("Construct", provider_pb2.ConstructRequest()),
        ("Call", provider_pb2.CallRequest()),
    ):
        with pytest.raises(Refused, match="hosting") as refused:
            plugin(method, request)
        assert refused.value.code is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        (["127.0.0.1:1"], "127.0.0.1:1"),
        (["--logtostderr", "-v=9", "--tracing", "file:/x", "127.0.0.1:1"], "127.0.0.1:1"),
        (["127.0.0.1:1", "--tracing", "http://127.0.0.1:9411"], "127.0.0.1:1"),
        (["--logtostderr", "--tracing=x", "127.0.0.1:1", "-v=3"], "127.0.0.1:1"),
        ([], ""),
    ],
)
def test_the_engines_address_is_found_among_its_arguments(arguments: list[str], address: str) -> None:
    assert engine_address(arguments) == address


def test_opened_values_do_not_show() -> None:
    assert "cAnary" not in repr(Properties({"password": "cAnary"}, frozenset({"password"})))


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
