"""`pulumi-hosting doctor` with every kind of problem, and without any."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator import Running
from pulumi_hosting.reports import doctor
from pulumi_hosting.reports.checks import Check
from tests.reports.conftest import Command, Owner
from tests.support.account import Account


def lines(output: str) -> dict[str, str]:
    """Check → its line."""
    return {
        line[9:21].strip(): line
        for line in output.splitlines()
        if line[:7].strip() in ("ok", "note", "warning", "problem")
    }


def asked(owner: Owner) -> list[str]:
    return [f"{row['method']} {row['path']}" for row in owner.control("GET", "/requests")]


def test_everything_is_right(owner: Owner, command: Command) -> None:
    shown = command("doctor")
    assert shown.exit_code == 0, shown.output
    found = lines(shown.output)
    assert found["key"] == (
        "ok       key           a live key: changes are real, and cost money unless this is an emulator"
    )
    assert found["base URL"].endswith(owner.emulator.base_url)
    for name in (
        "service",
        "clock",
        "account",
        "mode",
        "expiry",
        "allow-list",
        "scopes",
        "balance",
        "limits",
        "paid time",
    ):
        assert found[name].startswith("ok "), found[name]
    assert "the service's API matches this version (62 operations)" in found["contract"]
    assert "1000.00 EUR" in found["balance"]
    assert owner.emulator.live_key not in shown.output
    assert owner.emulator.live_key[-4:] not in found["key"]
    assert asked(owner) == [
        "GET /health",
        "GET /me",
        "GET /balance",
        "GET /servers",
        "GET /domains",
        "GET /invoices",
        "GET /balance",
        "GET /openapi.json",
    ]
    assert owner.control("GET", "/ledger") == []


def test_a_test_key_lacks_nothing_that_it_can_use(owner: Owner, command: Command) -> None:
    scopes = [scope for scope in owner.client.me().scopes if scope != "webhooks:manage"]
    key = owner.control("POST", "/keys", {"mode": "test", "scopes": scopes})["key"]
    found = lines(command("doctor", key=key).output)
    assert found["key"].startswith("ok       key           a test key")
    assert found["mode"] == "ok       mode          test"
    assert found["scopes"].startswith("ok ")


def test_without_anything_it_says_what_is_missing_first(command: Command) -> None:
    shown = command("doctor", HOSTING_API_KEY="", HOSTING_BASE_URL="")
    assert shown.exit_code == 1
    first, second, third, *_ = shown.output.splitlines()
    assert first == (
        "problem  key           no API key. Next: export HOSTING_API_KEY=…, with a key from the control panel"
    )
    assert second.startswith("problem  base URL      no base URL. Next: export HOSTING_BASE_URL=")
    assert third.startswith("warning  service       not asked")
    assert {"local files", "package", "pulumi", "plugin", "ansible-core", "collection"} <= {
        *lines(shown.output)
    }


def test_without_a_key_the_service_is_checked_all_the_same(owner: Owner, command: Command) -> None:
    found = lines(command("doctor", HOSTING_API_KEY="").output)
    assert found["key"].startswith("problem ")
    assert found["service"].startswith("ok ")
    assert found["contract"].startswith("ok ")
    assert "account" not in found
    assert asked(owner) == ["GET /health", "GET /openapi.json"]


def test_a_key_that_is_no_key_is_not_shown(command: Command) -> None:
    shown = command("doctor", HOSTING_API_KEY="my secret key")
    assert shown.exit_code == 1
    assert lines(shown.output)["key"].startswith("problem  key           the API key has characters")
    assert "secret" not in shown.output


def test_a_key_of_another_form_is_named(command: Command) -> None:
    shown = command("doctor", HOSTING_API_KEY="abcdefghijklmnop").output
    assert shown.startswith("warning  key           it begins with neither vk_live_ nor vk_test_")


@pytest.mark.parametrize(
    ("url", "next_step"),
    [
        ("http://api.example.org/v1", "https"),
        ("https://user:pass@api.example.org/v1", "user name or password"),
        ("nothing", "Next: export HOSTING_BASE_URL="),
    ],
)
def test_a_base_url_that_cannot_be_used(command: Command, url: str, next_step: str) -> None:
    shown = command("doctor", HOSTING_BASE_URL=url)
    assert shown.exit_code == 1
    assert lines(shown.output)["base URL"].startswith("problem ")
    assert next_step in lines(shown.output)["base URL"]
    assert "pass@" not in shown.output


def test_a_base_url_without_v1_is_corrected(emulator: Running, command: Command) -> None:
    origin = emulator.base_url.removesuffix("/v1")
    shown = command("doctor", HOSTING_BASE_URL=origin)
    assert shown.exit_code == 1
    found = lines(shown.output)
    assert found["base URL"].endswith(f"Next: export HOSTING_BASE_URL={origin}/v1")
    assert found["service"].endswith(f"Next: export HOSTING_BASE_URL={origin}/v1")


def test_another_version_of_the_api_is_named(emulator: Running, command: Command) -> None:
    origin = emulator.base_url.removesuffix("/v1")
    found = lines(command("doctor", HOSTING_BASE_URL=f"{origin}/v2").output)
    assert "this package speaks version 1" in found["base URL"]
    assert found["service"].startswith("problem ")


def test_without_a_network(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SECONDS", 0.2)
    shown = command("doctor", HOSTING_BASE_URL="http://127.0.0.1:9/v1")
    assert shown.exit_code == 1
    found = lines(shown.output)
    assert found["service"].startswith("problem  service       cannot reach 127.0.0.1:9")
    assert "Next: check the base URL (HOSTING_BASE_URL) and the network" in found["service"]
    assert found["package"].startswith("ok ")


def future(**time: float) -> str:
    return (datetime.now(UTC) + timedelta(**time)).strftime("%Y-%m-%dT%H:%M:%SZ")


KEYS: dict[str, tuple[dict[str, Any], str, str]] = {
    "expired": (
        {"expires_at": "2020-01-01T00:00:00Z"},
        "expiry",
        "the API key has expired (401 key_expired, ",
    ),
    "not valid yet": ({"not_before": "2100-01-01T00:00:00Z"}, "expiry", "(401 key_not_yet_valid, "),
    "allow-list": (
        {"ip_allowlist": ["10.0.0.0/8"]},
        "allow-list",
        "Next: add this machine's address to the key's allow-list",
    ),
}


@pytest.mark.parametrize(("options", "check", "text"), KEYS.values(), ids=KEYS)
def test_a_key_that_is_refused(
    owner: Owner, command: Command, options: dict[str, Any], check: str, text: str
) -> None:
    key = owner.control("POST", "/keys", {"mode": "live", **options})["key"]
    shown = command("doctor", key=key)
    assert shown.exit_code == 1
    assert lines(shown.output)[check].startswith("problem ")
    assert text in lines(shown.output)[check]
    assert "Next: " in lines(shown.output)[check]
    assert lines(shown.output)["contract"].startswith("ok ")
    assert key not in shown.output


def test_a_revoked_key(owner: Owner, command: Command) -> None:
    made = owner.control("POST", "/keys", {"mode": "live"})
    owner.control("DELETE", f"/keys/{made['id']}")
    shown = command("doctor", key=made["key"])
    assert shown.exit_code == 1
    problem = [line for line in shown.output.splitlines() if line.startswith("problem ")]
    assert len(problem) == 1
    assert "the API key is not valid (401 invalid_token, get_me, request " in problem[0]
    assert (
        "Next: export HOSTING_API_KEY=…, with a key from the control panel: this one may be revoked"
        in problem[0]
    )


SWITCHES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "API off": ("/service", {"api_enabled": False}, "service", "staff have switched the API off"),
    "test keys off": ("/service", {"sandbox_enabled": False}, "mode", "sandbox_disabled"),
    "suspended": ("/account", {"suspended": True}, "account", "account_suspended"),
    "no API for the account": (
        "/account",
        {"api_enabled_for_account": False},
        "account",
        "api_disabled_for_account",
    ),
}


@pytest.mark.parametrize(("path", "change", "check", "text"), SWITCHES.values(), ids=SWITCHES)
def test_what_staff_have_switched_off(
    owner: Owner, command: Command, path: str, change: dict[str, Any], check: str, text: str
) -> None:
    owner.control("PATCH", path, change)
    key = owner.emulator.test_key
    shown = command("doctor", key=key)
    assert shown.exit_code == 1
    problems = [line for line in shown.output.splitlines() if line.startswith(f"problem  {check} ")]
    assert any(text in line and "Next: " in line for line in problems), shown.output
    assert shown.output.count("problem  ") == 1, "one cause is one problem"


def test_missing_scopes_by_resource_and_module(owner: Owner, command: Command) -> None:
    key = owner.control("POST", "/keys", {"mode": "live", "scopes": "read_only"})["key"]
    shown = command("doctor", key=key)
    assert shown.exit_code == 0
    assert lines(shown.output)["scopes"].startswith("warning  scopes        the key lacks balance:topup, ")
    details = [line.strip() for line in shown.output.splitlines() if line.startswith(" " * 20)]
    assert (
        "resource Server lacks servers:order, servers:manage to create; servers:manage to update; "
        "servers:delete to delete"
    ) in details
    assert "module hosting.cloud.ssh_key lacks servers:manage" in details
    assert not [line for line in details if "server_info" in line]


def test_the_balance_is_not_read_without_its_scope(owner: Owner, command: Command) -> None:
    key = owner.control("POST", "/keys", {"mode": "live", "scopes": ["servers:read"]})["key"]
    assert lines(command("doctor", key=key).output)["balance"] == (
        "warning  balance       not read: the key lacks balance:read. Next: give the key balance:read"
    )
    assert "GET /balance" not in asked(owner)


def test_an_empty_balance(owner: Owner, command: Command) -> None:
    owner.control("PATCH", "/account", {"balance": "0.00"})
    found = lines(command("doctor").output)
    assert found["balance"].startswith("warning  balance       0.00 EUR")
    assert "Next: top up" in found["balance"]


def test_a_key_that_ends_soon(owner: Owner, command: Command) -> None:
    soon = owner.control("POST", "/keys", {"mode": "live", "expires_at": future(days=3, hours=1)})["key"]
    late = owner.control("POST", "/keys", {"mode": "live", "expires_at": future(days=300)})["key"]
    assert (
        "in 3 days. Next: create another in the control panel"
        in lines(command("doctor", key=soon).output)["expiry"]
    )
    assert lines(command("doctor", key=late).output)["expiry"].startswith("ok ")


def test_an_address_on_the_allow_list(owner: Owner, command: Command) -> None:
    key = owner.control("POST", "/keys", {"mode": "live", "ip_allowlist": ["127.0.0.0/8"]})["key"]
    assert lines(command("doctor", key=key).output)["allow-list"] == (
        "ok       allow-list    this machine's address is on it"
    )


def test_few_requests_are_left(owner: Owner, command: Command) -> None:
    key = owner.control("POST", "/keys", {"mode": "live", "rate_per_minute": 3})["key"]
    found = lines(command("doctor", key=key).output)
    assert "2 of 3 normal requests left" in found["limits"]
    assert found["limits"].endswith("; expensive ones: not named by the service")
    made = {"mode": "live", "rate_expensive_per_minute": 7}
    other = lines(command("doctor", key=owner.control("POST", "/keys", made)["key"]).output)
    assert other["limits"].endswith("; expensive ones: 7 each minute")
    again = lines(command("doctor", key=key).output)
    assert again["limits"].startswith("warning  limits        0 of 3 normal requests left in this minute")


def test_a_declared_mode_that_the_key_has_not(command: Command) -> None:
    shown = command("doctor", HOSTING_MODE="test")
    assert shown.exit_code == 1
    assert lines(shown.output)["mode"] == (
        "problem  mode          HOSTING_MODE is test, and this is a live key: every change is refused. "
        "Next: use a test key, or unset HOSTING_MODE"
    )


@pytest.mark.parametrize(
    ("seconds", "status", "text"),
    [
        (20, "ok", "this machine's clock is accurate to a few seconds"),
        (-100, "warning", "this machine's clock is 100 s behind"),
        (400, "problem", "this machine's clock is 400 s ahead: webhook deliveries are refused"),
    ],
)
def test_a_wrong_clock(account: Account, seconds: int, status: str, text: str) -> None:
    clock = clock_of(account, "https://api.example.com/v1", seconds)
    assert (clock.status, clock.text) == (status, text)
    assert clock.facts == {"seconds_ahead": seconds}
    assert bool(clock.next) == (status != "ok")


def test_an_emulator_may_have_a_time_of_its_own(account: Account) -> None:
    clock = clock_of(account, "http://127.0.0.1:1/v1", -(10**7))
    assert (clock.status, clock.next, clock.facts) == ("note", "", {"seconds_ahead": -(10**7)})
    assert clock.text == "the service on this machine has a time of its own, 10000000 s ahead"


def clock_of(account: Account, base_url: str, ahead: int) -> Check:
    """The clock of a machine that is so many seconds ahead of the account's service."""
    now = datetime.fromtimestamp(account.clock.now() + ahead, UTC)
    with Client(account.live_key, base_url, transport=account.transport()) as client:
        return doctor._clock(client, lambda: now)


def test_a_service_with_another_contract(owner: Owner, command: Command) -> None:
    fault = {
        "path": "^/openapi.json$",
        "times": 5,
        "action": {
            "patch": {
                "paths": {"/me": {"get": None}, "/tickets": {"get": {}}},
                "components": {"schemas": {"Balance": {"properties": {"balance": {"type": "number"}}}}},
            }
        },
    }
    owner.control("POST", "/faults", fault)
    shown = command("doctor")
    assert shown.exit_code == 1
    assert lines(shown.output)["contract"].startswith(
        "problem  contract      2 differences, 2 of which can make calls fail; 1 addition"
    )
    details = [line.strip() for line in shown.output.splitlines() if line.startswith(" " * 20)]
    assert "missing: get_me (calls can fail)" in details
    assert (
        "changed: get_balance, answer 200: balance: number at the service, string here (calls can fail)"
        in details
    )
    assert "added: GET /tickets" in details
    named = {
        (row["kind"], row["operation"])
        for check in json.loads(command("doctor", "--json").output)["checks"]
        if check["name"] == "contract"
        for row in check["differences"]
    }
    assert named == {("missing", "get_me"), ("changed", "get_balance"), ("added", "GET /tickets")}


def test_one_difference_is_one(owner: Owner, command: Command) -> None:
    fault = {"path": "^/openapi.json$", "action": {"patch": {"paths": {"/me": {"get": None}}}}}
    owner.control("POST", "/faults", fault)
    found = lines(command("doctor").output)["contract"]
    assert found.startswith("problem  contract      1 difference, 1 of which can make calls fail; ")


def test_a_service_without_its_document(owner: Owner, command: Command) -> None:
    owner.control(
        "POST",
        "/faults",
        {"path": "^/openapi.json$", "action": {"status": 404, "code": "not_found"}},
    )
    shown = command("doctor")
    contract = lines(shown.output)["contract"]
    assert contract.startswith("problem  contract      the service has no /openapi.json (404, request ")
    assert contract.endswith("): nothing was compared. Next: report it to the provider")
    assert shown.output.count("problem  ") == 1


def test_json(owner: Owner, command: Command) -> None:
    shown = command("doctor", "--json")
    found = json.loads(shown.output)
    assert found["problems"] == 0
    checks = {check["name"]: check for check in found["checks"]}
    assert checks["key"]["kind"] == "live"
    assert checks["balance"]["balance"] == "1000.00"
    assert checks["limits"]["limit"] == 120
    assert checks["scopes"]["missing"] == []
    assert checks["contract"]["differences"] == []
    assert {check["status"] for check in found["checks"]} <= {"ok", "note", "warning", "problem"}
    assert [check["name"] for check in found["checks"] if check["status"] == "ok" and check["next"]] == []
    assert found["schema_version"] == 1
    assert owner.emulator.live_key not in shown.output


def test_a_private_directory_that_others_can_use(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("shared")
    place.chmod(0o777)
    shown = command("doctor", HOSTING_RUNTIME_DIR=str(place))
    assert shown.exit_code == 1
    assert lines(shown.output)["local files"].startswith("problem ")


@pytest.mark.parametrize(
    ("base_url", "money"),
    [
        ("http://127.0.0.1:8080/v1", ", and cost money unless this is an emulator"),
        ("https://api.example.org/v1", " and cost money"),
        ("nowhere", " and cost money"),
    ],
)
def test_a_service_on_this_machine_may_be_an_emulator(base_url: str, money: str) -> None:
    found = doctor.checks({"HOSTING_API_KEY": "vk_live_Zebra4711", "HOSTING_BASE_URL": base_url})
    assert next(found).text == f"a live key: changes are real{money}"


def test_a_shared_store_that_does_not_answer(command: Command) -> None:
    shown = command("doctor", HOSTING_STORE="redis://team:hunter2@127.0.0.1:1/0")
    assert shown.exit_code == 1
    found = lines(shown.output)
    assert found["shared store"].startswith(
        "problem  shared store  the shared store redis://127.0.0.1:1 cannot be used: "
    )
    assert found["shared store"].endswith("takes this user and password, then run again")
    assert found["service"].endswith("not asked: there is no shared store that can be used")
    assert "hunter2" not in shown.output
