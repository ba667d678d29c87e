"""The dynamic providers, asked as the SDK's provider process asks them, without an engine."""

import subprocess
import sys
import traceback
from typing import Any

import pytest
from pulumi.dynamic import Config, ConfigureRequest
from pulumi.output import Unknown

from pulumi_hosting.provider import adapter, dynamic, failures, provider_session
from pulumi_hosting.provider.provider_session import ProviderSession
from tests.provider.processes import session_on
from tests.support.account import Account

PROPS: dict[str, Any] = {
    "tariffId": 1.0,
    "os": "debian-12",
    "name": "web",
    "__identity": "pulumi:t/dev/server/web",
    "__provider": "x",
}


TIMEOUTS = {"create": 90.0, "update": 60.0, "delete": 30.0, "read": 10.0}


def some(outs: dict[str, Any] | None) -> dict[str, Any]:
    assert outs is not None
    return outs


def unknown() -> Any:
    make: Any = Unknown
    return make()


@pytest.fixture
def provider(account: Account, monkeypatch: pytest.MonkeyPatch) -> dynamic.ServerProvider:
    monkeypatch.setattr("sys.tracebacklimit", 0, raising=False)
    environ = {"HOSTING_API_KEY": account.live_key, "HOSTING_BASE_URL": account.base_url}
    session = session_on(account, account.transport(), environ)
    monkeypatch.setattr(provider_session, "SESSION", session)
    made = dynamic.ServerProvider()
    made.configure(ConfigureRequest(Config({}, "t")))
    return made


def test_the_life_of_a_server(provider: dynamic.ServerProvider) -> None:
    checked = provider.check({}, PROPS)
    assert checked.failures == []
    assert checked.inputs["tariffId"] == 1
    made = provider.create(checked.inputs)
    first = some(made.outs)
    assert made.id.isdigit()
    assert isinstance(first["rootPassword"], str)
    assert first["__managed"] == ["name", "os", "tariff_id"]
    assert not provider.diff(made.id, first, checked.inputs).changes
    renamed = provider.check(checked.inputs, {**PROPS, "name": "www"}).inputs
    found = provider.diff(made.id, first, renamed)
    assert found.changes
    assert found.replaces == []
    outs = some(provider.update(made.id, first, renamed).outs)
    assert outs["name"] == "www"
    assert outs["rootPassword"] == first["rootPassword"]
    seen = provider.read(made.id, outs)
    assert seen.id == made.id
    assert seen.inputs == {
        "name": "www",
        "os": "debian-12",
        "tariffId": 1,
        "__identity": "pulumi:t/dev/server/web",
    }
    provider.delete(made.id, outs)
    gone = provider.read(made.id, outs)
    assert (gone.id, gone.outs) == ("", {})
    provider.delete(made.id, outs)


@pytest.mark.parametrize("own", [None, 5.0])
def test_each_step_waits_as_long_as_its_timeout_says(
    provider: dynamic.ServerProvider,
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    own: float | None,
) -> None:
    waited: list[Any] = []
    request = adapter.Adapter._request

    def recorded(serving: adapter.Adapter, props: Any) -> Any:
        made = request(serving, props)
        waited.append(made.wait_timeout)
        return made

    monkeypatch.setattr(adapter.Adapter, "_request", recorded)
    props = {**PROPS, "__timeouts": TIMEOUTS, **({} if own is None else {"waitTimeout": own})}
    inputs = provider.check({}, props).inputs
    steps: list[tuple[str, Any]] = []

    def step(name: str, answer: Any) -> Any:
        steps.append((name, waited[-1]))
        return answer

    waited.clear()
    made = step("create", provider.create(inputs))
    seen = step("read", provider.read(made.id, some(made.outs)))
    renamed = provider.check(inputs, {**props, "name": "www"}).inputs
    changed = step("update", provider.update(made.id, some(seen.outs), renamed))
    for outs in (made.outs, seen.outs, changed.outs):
        assert some(outs)["__timeouts"] == TIMEOUTS
        assert some(outs).get("waitTimeout") == own
    assert not provider.diff(made.id, some(changed.outs), renamed).changes
    step("delete", provider.delete(made.id, some(changed.outs)))
    expected = {name: TIMEOUTS[name] if own is None else own for name in TIMEOUTS}
    assert dict(steps) == expected
    assert not [server for server in account.objects("servers") if server["status"] == "active"]
    assert sorted(row["direction"] for row in account.ledger()) == ["credit", "debit"]


@pytest.mark.emulator(provisioning_delay=60)
@pytest.mark.parametrize("waiting", [{"waitTimeout": 0.1}, {"__timeouts": {"create": 0.1}}])
@pytest.mark.parametrize("fault", [None, {"status": 400, "code": "invalid_request"}])
def test_an_order_that_is_in_no_state_says_so(
    provider: dynamic.ServerProvider,
    account: Account,
    fault: dict[str, Any] | None,
    waiting: dict[str, Any],
) -> None:
    """Whether the waiting time is over, or looking at the order failed: the order is paid, and only an
    `up` can find it.
    """
    account.fault({"panel_timeout": "active"}, method="POST", path="^/servers$")
    if fault:
        account.fault(fault, method="GET", path="^/orders/[0-9]+$", times=9)
    inputs = provider.check({}, {**PROPS, **waiting}).inputs
    with pytest.raises(failures.StepFailed) as failed:
        provider.create(inputs)
    message = str(failed.value)
    assert message.endswith(
        "; order 40001 is paid and in no state. Next: pulumi up, which waits for it; run it before destroy"
    ), message
    assert message.count("Next:") == 1
    account.control("DELETE", "/faults")
    with pytest.raises(failures.StepFailed) as again:
        provider.create(inputs)
    assert "order 40001" in str(again.value)
    assert str(again.value).endswith(" Next: pulumi up, which waits for it; run it before destroy")
    account.advance(120)
    made = provider.create(inputs).id
    assert [str(server["id"]) for server in account.objects("servers")] == [made]
    (charge,) = account.ledger()
    assert charge["operation"] == "create_server"


@pytest.mark.emulator(provisioning_delay=60)
def test_an_order_that_failed_is_not_called_paid(provider: dynamic.ServerProvider, account: Account) -> None:
    account.fault({"panel_timeout": "cancelled"}, method="POST", path="^/servers$")
    with pytest.raises(failures.StepFailed) as failed:
        provider.create(provider.check({}, PROPS).inputs)
    assert "ended as cancelled" in str(failed.value)
    assert "Next: pulumi up --refresh, which orders another one" in str(failed.value)
    assert "in no state" not in str(failed.value)
    assert sorted(row["direction"] for row in account.ledger()) == ["credit", "debit"]


def test_a_lookup_of_what_is_not_there_fails(provider: dynamic.ServerProvider) -> None:
    with pytest.raises(failures.StepFailed, match="there is no server with id 4242"):
        provider.read("4242", {})


def test_a_lookup_reads_with_the_id_alone(provider: dynamic.ServerProvider) -> None:
    made = provider.create(provider.check({}, PROPS).inputs)
    seen = provider.read(made.id, {})
    assert seen.outs is not None
    assert seen.outs["os"] == "debian-12"


def test_a_renamed_declaration_keeps_the_identity_of_its_object(provider: dynamic.ServerProvider) -> None:
    inputs = provider.check({"__identity": "old"}, {**PROPS, "__identity": "new"}).inputs
    assert inputs["__identity"] == "old"


def test_unknown_values_are_handed_on_and_may_replace(provider: dynamic.ServerProvider) -> None:
    later = unknown()
    checked = provider.check({}, {**PROPS, "rebuild": "replace", "sshKeyIds": [later]})
    assert checked.failures == []
    assert checked.inputs["sshKeyIds"] == [later]
    made = provider.create(provider.check({}, {**PROPS, "sshKeyIds": []}).inputs)
    assert provider.diff(made.id, some(made.outs), checked.inputs).replaces == ["sshKeyIds"]


def test_a_failure_names_its_field_in_the_reason_and_not_as_a_property(
    provider: dynamic.ServerProvider,
) -> None:
    (failure,) = provider.check({}, {**PROPS, "password": "cAnary"}).failures
    assert failure.property == ""
    assert failure.reason.startswith("password: ")
    assert "cAnary" not in failure.reason


def test_a_failure_names_fields_as_python_does_and_the_provider(provider: dynamic.ServerProvider) -> None:
    (failure,) = provider.check({}, {**PROPS, "tariffId": "one"}).failures
    assert failure.reason == ("tariff_id: must be a whole number, and is a text. Next: correct tariff_id")
    with pytest.raises(failures.StepFailed) as failed:
        provider.read("4242", {})
    (line,) = traceback.format_exception_only(failed.value)  # as the SDK sends it to the engine
    assert line.startswith("hosting: there is no server with id 4242")


def test_a_defect_is_reported_without_values(
    provider: dynamic.ServerProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        secret = "cAnary"
        raise KeyError(secret)

    monkeypatch.setattr(adapter.Adapter, "delete", broken)
    with pytest.raises(failures.StepFailed, match="defect of pulumi-hosting") as failed:
        provider.delete("1", PROPS)
    assert "cAnary" not in str(failed.value)
    assert failed.value.__cause__ is None


def test_the_environment_comes_before_the_configuration(account: Account) -> None:
    session = session_on(account, account.transport(), {"HOSTING_API_KEY": account.live_key})
    session.configure({"apiKey": "vk_live_ofTheStackConfiguration", "baseUrl": account.base_url})
    assert session.client.me().livemode is True


def test_the_session_does_not_show_its_key() -> None:
    key = "vk_live_" + "q7" * 20
    session = ProviderSession({})
    session.configure({"apiKey": key, "baseUrl": "https://api.example.org/v1"})
    assert key not in f"{session!r} {vars(session)!r} {session.client!r} {vars(session.client)!r}"


def test_a_provider_starts_without_the_command_line_of_httpx() -> None:
    code = (
        "import gc, sys\n"
        "from pulumi_hosting.provider.quick_imports import quick_imports\n"
        "with quick_imports():\n"
        "    import httpx\n"
        "assert httpx.Client and 'rich' not in sys.modules and gc.isenabled()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_plugin_starts_without_the_sdk() -> None:
    code = (
        "import sys\n"
        "from pulumi_hosting.provider.plugin import servicer\n"
        "assert servicer.rpc.CheckRequest and 'pulumi' not in sys.modules\n"
        "from pulumi.runtime.proto import provider_pb2\n"
        "assert provider_pb2.CheckRequest is servicer.rpc.CheckRequest"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
