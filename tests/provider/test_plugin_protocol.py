"""The plugin: its settings, and the rest of the engine's protocol."""

import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import (
    plugin_pb2,
    provider_pb2,
)

from pulumi_hosting.provider.plugin.engine_log import engine_address
from pulumi_hosting.provider.plugin.marshal import UNKNOWN, Properties, marshal, unmarshal
from pulumi_hosting.provider.plugin.servicer import Plugin
from tests.provider.plugin_client import SERVER, WEB, Asked, Refused


@pytest.mark.parametrize("settings", [{"mode": "cAnary"}, {"maxCharge": "cAnary"}])
def test_wrong_settings_are_refused_by_name(plugin: Asked, settings: dict[str, Any]) -> None:
    answer = plugin("CheckConfig", provider_pb2.CheckRequest(news=marshal({**plugin.settings, **settings})))
    (failure,) = answer.failures
    assert failure.property == ""
    (name,) = settings
    assert failure.reason.startswith(f"{name}: must be ")
    assert failure.reason.endswith(f", not 'cAnary'. Next: correct {name}")
    news = marshal({**plugin.settings, **settings}, {name})
    (failure,) = plugin("CheckConfig", provider_pb2.CheckRequest(news=news)).failures
    assert failure.reason.startswith(f"{name}: must be ")
    assert "cAnary" not in failure.reason


def test_the_api_key_and_the_store_are_secrets_whatever_the_program_says(plugin: Asked) -> None:
    news = {"apiKey": "k", "store": "redis://team:hunter2@store", "baseUrl": UNKNOWN}
    answer = plugin("CheckConfig", provider_pb2.CheckRequest(news=marshal(news)))
    assert unmarshal(answer.inputs).secrets == {"apiKey", "store"}
    assert answer.inputs.fields["baseUrl"].string_value == UNKNOWN


def test_a_changed_setting_configures_again_and_replaces_nothing(plugin: Asked) -> None:
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


def test_the_environment_may_name_a_file_or_a_command_and_a_stack_may_not(
    plugin: Asked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def asks() -> bool:
        me = provider_pb2.InvokeRequest(tok="hosting:index:getMe", args=Struct())
        return bool(unmarshal(getattr(plugin("Invoke", me), "return")).values["livemode"])

    key = plugin.settings.pop("apiKey")
    plugin.configure(apiKeyCommand=f"touch {tmp_path / 'touched'}", apiKeyFile="/nowhere")
    with pytest.raises(Refused, match="HOSTING_API_KEY is not set"):
        asks()
    path = tmp_path / "key"
    path.write_text(key, encoding="utf-8")
    path.chmod(0o600)
    monkeypatch.setenv("HOSTING_API_KEY_FILE", str(path))
    plugin.configure(apiKey="vk_live_stale")
    assert asks()
    path.write_text("canary", encoding="utf-8")
    with pytest.raises(Refused, match="correct HOSTING_API_KEY_FILE") as caught:
        plugin.configure()
    assert "canary" not in str(caught.value)
    plugin.configure("second", apiKey=key)  # a declared provider does not read it
    assert asks()
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize(("name", "is_strict", "seconds"), [("second", False, 0.0), ("default", True, 60.0)])
def test_false_and_zero_are_settings_of_a_declared_provider(
    monkeypatch: pytest.MonkeyPatch, name: str, is_strict: bool, seconds: float
) -> None:
    monkeypatch.setenv("HOSTING_STRICT", "true")
    monkeypatch.setenv("HOSTING_RATE_LIMIT_TIMEOUT", "60")
    plugin, given = Plugin(), marshal({"strict": False, "rateLimitTimeout": 0.0})
    plugin.Configure(provider_pb2.ConfigureRequest(name=name, args=given), None)  # type: ignore[arg-type]  # for errors
    settings = plugin.session.settings
    assert (settings.strict, settings.rate_limit_timeout) == (is_strict, seconds)


# --- pulumi import


def test_an_import_says_once_which_classes_its_code_needs(plugin: Asked) -> None:
    """``pulumi import`` reads before it checks. ``.get`` in a program reads alone, and the option ``import_``
    checks first."""

    def remarks() -> int:
        return sum("pulumi_hosting.native" in line.message for line in plugin.engine.lines)

    _, id, _ = plugin.made()
    got, option, first, second = (f"{SERVER}-{number}" for number in range(4))
    plugin.read(got, id)
    plugin.check(option, WEB)
    plugin.read(option, id)
    plugin.check(option, WEB)
    assert remarks() == 0
    for urn in (first, second):
        live = plugin.read(urn, id).inputs
        plugin.check(urn, unmarshal(live).values)
    assert remarks() == 1


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


def test_unmarshalled_secrets_do_not_show() -> None:
    assert "cAnary" not in repr(Properties({"password": "cAnary"}, frozenset({"password"})))
