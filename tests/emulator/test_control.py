"""The control interface, call by call."""

import json
import re
from typing import Any

import pytest

from pulumi_hosting.api.operations import PRESETS, SCOPES
from tests.emulator.support import PUBLIC_KEY, SERVER, code
from tests.support.account import Account


def test_the_ready_line_again(account: Account) -> None:
    line = account.control("GET", "/")
    assert set(line) == {"base_url", "control_url", "console_url", "live_key", "test_key", "pid", "now"}
    assert line["now"] == "2029-04-15T08:00:00Z"
    assert re.fullmatch(r"vk_live_[a-z0-9]{40}", line["live_key"])
    assert re.fullmatch(r"vk_test_[a-z0-9]{40}", line["test_key"])


def test_a_fresh_account(account: Account) -> None:
    found, objects = account.api("GET", "/account").json(), account.control("GET", "/objects")
    assert (found["currency"], account.balance()) == ("EUR", "1000.00")
    tariffs = account.api("GET", "/catalog/tariffs").json()["data"]
    assert len(tariffs) >= 4
    assert len({tariff["location"]["code"] for tariff in tariffs}) == 2
    for trait in ("hourly_available", "excluded_os", "non_refundable"):
        assert any(tariff[trait] for tariff in tariffs)
    assert any(not tariff["in_stock"] for tariff in tariffs)
    assert len(account.api("GET", "/catalog/os").json()["data"]) >= 5
    zones = account.api("GET", "/catalog/zones").json()["data"]
    assert len(zones) == 4
    assert [
        sum(not zone[trait] for zone in zones) for trait in ("privacy_supported", "transfer_supported")
    ] == [1, 1]
    assert len(account.api("GET", "/balance/topup-info").json()["gateways"]) == 3
    assert [key["scopes"] for key in account.api("GET", "/keys").json()["data"]] == [list(SCOPES)] * 2
    for kind in (
        "servers",
        "domains",
        "ssh_keys",
        "invoices",
        "subscriptions",
        "orders",
        "addresses",
        "deliveries",
    ):
        assert objects[kind] == []


def test_a_seed_makes_everything_reproducible() -> None:
    first, second, other = Account(seed=7), Account(seed=7), Account(seed=8)
    assert (first.live_key, first.test_key) == (second.live_key, second.test_key)
    assert first.live_key != other.live_key
    one, two = first.api("POST", "/servers", SERVER), second.api("POST", "/servers", SERVER)
    assert (one.json(), one.headers["X-Request-ID"]) == (two.json(), two.headers["X-Request-ID"])


def test_reset(account: Account) -> None:
    account.server()
    account.fault({"status": 503})
    account.variant(refusals_stored=False)
    account.control("PATCH", "/service", {"dialect": "live", "sandbox_enabled": False})
    account.new_key()
    account.advance(60)
    known = account.control("POST", "/reset", {"seed": 1}, status=400)
    assert known == {"error": "unknown field: seed; known: none"}
    assert account.control("POST", "/reset", {})["now"] == "2029-04-15T08:01:00Z"
    test_a_fresh_account(account)
    assert account.control("GET", "/ledger") == []
    assert account.test("GET", "/me").status_code == 200
    assert account.control("PATCH", "/service", {}) == {
        "api_enabled": True,
        "sandbox_enabled": True,
        "dialect": "spec",
        "readings": {
            "transient_refusals_stored": True,
            "refusals_stored": True,
            "replay_request_id": "fresh",
            "key_memory": "account",
            "body_comparison": "parsed",
            "deleted_servers": "gone",
            "duplicate_ssh_key": "conflict",
            "sandbox_echo": "none",
            "balance_low": "due_dates",
            "early_renewal": "any_time",
            "suspended_renewal": "allowed",
            "expired_renewal": "allowed",
            "terminated_after_days": 14,
        },
    }


def test_clock(account: Account) -> None:
    assert account.control("POST", "/clock", {"advance": 1.5})["now"] == "2029-04-15T08:00:01.500Z"
    assert account.call(None, "GET", "/health").json()["time"] == "2029-04-15T08:00:01.500Z"
    for body in (
        {},
        {"advance": -1},
        {"advance": "1"},
        {"advance": True},
        {"advance": 1e12},
        {"advance": 1, "back": 1},
    ):
        account.control("POST", "/clock", body, status=400)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets(preset: str, account: Account) -> None:
    key = account.new_key(scopes=preset, name="p")
    me = account.call(key, "GET", "/me").json()
    assert (me["scopes"], me["key"]["name"]) == (list(PRESETS[preset]), "p")
    assert (
        account.call(
            account.new_key(scopes=["read_only", "servers:manage", "servers:read"]), "GET", "/me"
        ).json()["scopes"][-1]
        == "servers:manage"
    )


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"mode": "both"},
        {"mode": "live", "scopes": ["everything"]},
        {"mode": "live", "ip_allowlist": ["house"]},
        {"mode": "live", "expires_at": "tomorrow"},
        {"mode": "live", "expires_at": "2029-04-15T08:00:00"},
        {"mode": "live", "rate_per_minute": "1"},
        {"mode": "live", "colour": "red"},
        {"mode": "live", "account_id": 7},
    ],
)
def test_invalid_new_keys(body: dict[str, Any], account: Account) -> None:
    response = account.http.post("/_control/keys", json=body)
    assert response.status_code in (400, 404)
    assert isinstance(response.json()["error"], str)


def test_a_ban_revokes_all_keys(account: Account) -> None:
    account.subscribe("key.revoked")
    other = account.control("POST", "/accounts", {})["live_key"]
    account.control("PATCH", "/account", {"banned": True})
    assert code(account.api("GET", "/me")) == code(account.test("GET", "/me")) == "invalid_token"
    assert account.call(other, "GET", "/me").status_code == 200
    keys = [row for row in account.objects("keys") if row["revoked_at"]]
    assert [(row["mode"], row["revoked_reason"]) for row in keys] == [
        ("live", "the account is banned"),
        ("test", "the account is banned"),
    ]
    account.advance(0)
    sent = [json.loads(attempt.payload) for attempt in account.sent]
    assert [(event["type"], event["data"]["object"]["id"]) for event in sent] == [
        ("key.revoked", row["id"]) for row in keys
    ]


def test_a_referral_reward_is_taken_back_with_a_refund(account: Account) -> None:
    server = account.server()
    account.control("PATCH", "/account", {"referral_percent": "10"})
    quote = account.api("GET", f"/servers/{server}/refund-quote").json()
    amounts = [quote[name] for name in ("gross_amount", "referral_adjustment", "amount")]
    assert amounts == ["5.00", "0.50", "4.50"]
    answer = account.api("DELETE", f"/servers/{server}").json()
    assert (answer["refund"]["amount"], answer["balance_after"]) == ("4.50", "999.50")
    assert account.balance() == "999.50"
    moved = [(row["type"], row["amount"], row["direction"]) for row in account.ledger()[-2:]]
    assert moved == [("refund", "5.00", "credit"), ("referral", "0.50", "debit")]
    shown = account.api("GET", "/transactions").json()["data"][0]
    assert (shown["type"], shown["amount"]) == ("referral", "0.50")


def test_account(account: Account) -> None:
    changed = account.control(
        "PATCH", "/account", {"balance": "20.5", "email_verified": False, "loyalty_discount_percent": 2.5}
    )
    assert (changed["balance"], changed["email_verified"], changed["loyalty_discount_percent"]) == (
        "20.50",
        False,
        2.5,
    )
    (movement,) = account.control("GET", "/ledger")
    assert (movement["amount"], movement["direction"], movement["type"], movement["operation"]) == (
        "979.50",
        "debit",
        "adjustment",
        "control",
    )
    other = account.control("POST", "/accounts", {"balance": "7.00", "currency": "USD"})
    account.control("PATCH", "/account", {"account_id": other["account_id"], "suspended": True})
    assert code(account.call(other["test_key"], "GET", "/me")) == "account_suspended"
    assert account.api("GET", "/me").status_code == 200
    for body in (
        {"balance": "much"},
        {"balance": True},
        {"suspended": 1},
        {"group_discount_percent": 101},
        {"account_id": "x"},
        {"login": "x"},
    ):
        account.control("PATCH", "/account", body, status=400)


@pytest.mark.parametrize(
    "body",
    [
        {"dialect": "klingon"},
        {"readings": {"no_such": 1}},
        {"readings": {"refusals_stored": "yes"}},
        {"readings": {"refusals_stored": 1}},
        {"readings": []},
        {"api_enabled": 1},
        {"x": 1},
    ],
)
def test_invalid_service_settings(body: dict[str, Any], account: Account) -> None:
    assert account.control("PATCH", "/service", body, status=400)["error"]


def test_server_drift(account: Account) -> None:
    server = account.server()
    drift = {
        "name": "drifted",
        "notes": "n",
        "auto_renew": False,
        "expired": True,
        "power": "unknown",
        "os": "debian-11",
    }
    account.control("PATCH", f"/servers/{server}", drift)
    shown = account.api("GET", f"/servers/{server}?include=live").json()
    assert (shown["name"], shown["notes"], shown["os"], shown["live"]["power"]) == (
        "drifted",
        "n",
        "debian-11",
        "unknown",
    )
    assert (shown["billing"]["auto_renew"], shown["flags"]["expired"]) == (False, True)
    account.control("PATCH", f"/servers/{server}", {"status": "terminated"})
    assert code(account.api("GET", f"/servers/{server}")) == "not_found"
    account.control("DELETE", f"/servers/{server}")
    for body in ({"status": "happy"}, {"power": "full"}, {"name": 1}, {"colour": 1}):
        account.control("PATCH", f"/servers/{server}", body, status=400)
    account.control("PATCH", "/servers/1", {}, status=404)
    account.control("DELETE", "/servers/1", status=404)


def test_drift_of_other_objects(account: Account) -> None:
    server, domain, hook = account.server(), account.domain(), account.subscribe()["id"]
    account.api("POST", f"/servers/{server}/ips")
    address = account.api("GET", f"/servers/{server}/ips").json()["data"][-1]["id"]
    assert (
        account.control("PATCH", f"/servers/{server}/ips/{address}", {"ptr": "a.example.com"})["ptr"]
        == "a.example.com"
    )
    account.control("PATCH", f"/servers/{account.server()}/ips/{address}", {"ptr": None}, status=404)
    account.control("DELETE", f"/servers/{server}/ips/{address}")
    assert len(account.api("GET", f"/servers/{server}/ips").json()["data"]) == 2

    key = account.api("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY}).json()["id"]
    assert account.control("PATCH", f"/ssh-keys/{key}", {"name": "b"})["name"] == "b"
    account.control("DELETE", f"/ssh-keys/{key}")
    assert account.api("GET", "/ssh-keys").json()["data"] == []

    changes = {"auto_renew": True, "privacy": False, "nameservers": ["a.example.net"], "status": "expired"}
    assert {
        name: account.control("PATCH", f"/domains/{domain}", changes)[name] for name in changes
    } == changes
    account.control("PATCH", f"/domains/{domain}", {"status": "odd"}, status=400)
    account.control("DELETE", f"/domains/{domain}")
    assert code(account.api("GET", f"/domains/{domain}")) == "not_found"
    account.fault({"registrar": "pending"})
    account.register("pending.com")
    pending = account.api("GET", "/domains").json()["data"][0]["id"]
    assert account.control("PATCH", f"/domains/{pending}", {"status": "active"})["expires_at"]

    assert (
        account.control(
            "PATCH", f"/webhooks/{hook}", {"active": False, "events": ["ping"], "description": "d"}
        )["description"]
        == "d"
    )
    account.control("PATCH", f"/webhooks/{hook}", {"events": ["odd"]}, status=400)
    account.server()
    account.control("DELETE", f"/webhooks/{hook}")
    assert account.api("GET", "/webhooks").json()["data"] == []


def test_duplicate_ssh_keys(account: Account) -> None:
    body = {"name": "a", "public_key": PUBLIC_KEY}
    assert account.api("POST", "/ssh-keys", body).status_code == 201
    assert (
        code(account.api("POST", "/ssh-keys", {**body, "public_key": PUBLIC_KEY.rsplit(" ", 1)[0]}))
        == "conflict"
    )
    account.variant(duplicate_ssh_key="second")
    assert account.api("POST", "/ssh-keys", body).status_code == 201
    assert len(account.api("GET", "/ssh-keys").json()["data"]) == 2


def test_invoices(account: Account) -> None:
    for body in ({"type": "odd"}, {"amount": "x"}, {"type": "vds_purchase", "os": "odd"}):
        account.control("POST", "/invoices", body, status=400)
    account.control("POST", "/invoices", {"type": "vds_purchase", "tariff_id": 99}, status=404)
    account.control("POST", "/invoices/1/confirm", status=404)
    account.control("PATCH", "/tariffs/99", {}, status=404)


# --- faults -----------------------------------------------------------------------------------------------


def test_after_and_times(account: Account) -> None:
    account.fault({"status": 503}, method="get", path="^/me$", after=1, times=2)
    account.api("GET", "/balance")
    assert [account.api("GET", "/me").status_code for _ in range(4)] == [200, 503, 503, 200]


def test_a_fault_with_a_status(account: Account) -> None:
    account.fault(
        {
            "status": 503,
            "code": "temporarily_unavailable",
            "retry_after": 2.5,
            "message": "m",
            "details": {"a": 1},
        }
    )
    response = account.api("GET", "/me")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "2.5")
    assert response.json()["error"] == {
        "code": "temporarily_unavailable",
        "message": "m",
        "details": {"a": 1},
        "request_id": response.headers["X-Request-ID"],
    }
    account.fault({"status": 418})
    assert account.api("GET", "/me").json()["error"]["code"] == "server_error"
    account.fault({"status": 429, "code": "brand_new"})
    response = account.api("GET", "/me")
    assert (response.status_code, response.json()["error"]["code"]) == (429, "brand_new")


def test_faults_can_be_cleared(account: Account) -> None:
    account.fault({"status": 503}, times=9)
    assert account.control("DELETE", "/faults") == {"cleared": 1}
    assert account.api("GET", "/me").status_code == 200


def test_faults_are_listed_and_removed_one_by_one(account: Account) -> None:
    account.fault({"status": 503}, method="get", path="^/me$", after=1, times=3)
    account.fault({"patch": {"key": "vk_live_0123456789"}}, path="^/none$")
    first, second = account.control("GET", "/faults")
    assert first == {
        "id": first["id"],
        "method": "GET",
        "path": "^/me$",
        "after": 1,
        "times": 3,
        "action": {"status": 503},
    }
    assert "0123456789" not in str(second)
    assert account.control("DELETE", f"/faults/{first['id']}") == {"id": first["id"]}
    account.control("DELETE", f"/faults/{first['id']}", status=404)
    assert account.control("GET", "/faults") == [second]


def test_patch(account: Account) -> None:
    account.fault({"patch": {"key": {"mode": "quantum"}, "extra": [1], "scopes": None}})
    me = account.api("GET", "/me").json()
    assert (me["key"]["mode"], me["key"]["name"], me["extra"], me["scopes"]) == ("quantum", "live", [1], None)
    account.fault({"patch": {"error": {"code": "brand_new"}}})
    assert account.api("GET", "/servers/1").json()["error"]["code"] == "brand_new"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": {}},
        {"action": {"code": "x"}},
        {"action": {"explode": 1}},
        {"action": {"drop": "now"}},
        {"action": {"truncate": -1}},
        {"action": {"delay": True}},
        {"action": {"status": 200}},
        {"action": {"delay": 1}, "path": "("},
        {"action": {"delay": 1}, "path": 1},
        {"action": {"delay": 1}, "after": -1},
        {"action": {"delay": 1}, "times": 0},
        {"action": {"delay": 1}, "method": 1},
        {"action": {"delay": 1}, "when": 1},
    ],
)
def test_invalid_faults(body: dict[str, Any], account: Account) -> None:
    account.control("POST", "/faults", body, status=400)


# --- requests and objects ---------------------------------------------------------------------------------


def test_requests(account: Account) -> None:
    created = account.api(
        "POST", "/servers?x=1", {**SERVER, "password": "Passw0rd-canary"}, headers={"X-Request-ID": "r"}
    )
    account.api("POST", "/servers", {**SERVER, "password": "Passw0rd-canary"})
    account.api("GET", "/invoices/40001/pdf")
    first, second, third = account.control("GET", "/requests")
    assert set(first) == {
        "seq",
        "method",
        "path",
        "query",
        "headers",
        "body",
        "key_id",
        "status",
        "response",
        "bucket",
        "at",
        "replayed",
        "stray",
    }
    assert (first["method"], first["path"], first["query"], first["status"]) == (
        "POST",
        "/servers",
        "x=1",
        400,
    )
    assert (first["key_id"], first["bucket"], first["replayed"], first["at"]) == (
        501,
        "expensive",
        False,
        "2029-04-15T08:00:00Z",
    )
    assert first["headers"]["authorization"] == "Bearer **********"
    assert first["headers"]["x-request-id"] == "r"
    assert first["response"] == created.json()
    assert second["body"] == {**SERVER, "password": "**********"}
    assert second["response"]["root_password"] == "**********"
    assert third["response"] is None
    assert [row["seq"] for row in account.control("GET", "/requests?since=2")] == [3]
    assert [row["seq"] for row in account.control("GET", "/requests?since=1&last=1")] == [3]
    account.control("GET", "/requests?last=0", status=400)
    assert "canary" not in str(account.control("GET", "/requests"))
    assert account.live_key not in str(account.control("GET", "/requests"))
    account.control("GET", "/requests?since=x", status=400)
    account.api("POST", "/servers", content=b"{broken", headers={"Content-Type": "application/json"})
    assert account.control("GET", "/requests")[-1]["body"] == "{broken"
    account.api(
        "POST",
        "/servers",
        content=b'{"os": "x", "password" : "Passw0rd-can',
        headers={"Content-Type": "application/json"},
    )
    assert account.control("GET", "/requests")[-1]["body"] == '{"os": "x", "password" : "**********'


def test_objects_show_no_secret(account: Account) -> None:
    created, hook = account.order(), account.subscribe()
    text = str(account.control("GET", "/objects"))
    for secret in (created["root_password"], hook["secret"], account.live_key, account.test_key):
        assert secret not in text
    sandbox = account.test("POST", "/servers", SERVER).json()["server"]["id"]
    assert [row["id"] for row in account.control("GET", "/objects")["servers"]] == [
        created["server"]["id"],
        sandbox,
    ]
    account.api("DELETE", f"/servers/{created['server']['id']}")
    assert [row["id"] for row in account.control("GET", "/objects")["servers"]] == [sandbox]


def test_errors(account: Account) -> None:
    assert account.control("GET", "/nothing", status=404)["error"]
    assert account.control("GET", "/clock", status=405)["error"]
    for content in (b"{", b"[]"):
        response = account.http.post("/_control/clock", content=content)
        assert (response.status_code, set(response.json())) == (400, {"error"})
    account.control("PUT", "/webhook-routes", {"https://a.example.org": "http://example.com"}, status=400)


@pytest.mark.parametrize("delay", [0.1 + 0.2, 1 / 3, 1e-9])
def test_due_times_finer_than_the_clock(delay: float, account: Account) -> None:
    """A due time between two milliseconds is reached too."""
    account.core.store.provisioning_delay = delay
    account.fault({"panel_timeout": "active"})
    order = account.api("POST", "/servers", SERVER).json()["invoice_id"]
    account.advance(1)
    assert account.api("GET", f"/orders/{order}").json()["status"] == "active"


def test_no_secret_of_a_query_or_a_path_is_kept(account: Account) -> None:
    account.api("GET", f"/me?token=cAnary7word&a={account.live_key}")
    account.api("GET", f"/{account.test_key}")
    shown = str(account.control("GET", "/requests"))
    assert "token=**********&a=**********" in shown
    assert not [text for text in ("cAnary7word", account.live_key, account.test_key) if text in shown]
