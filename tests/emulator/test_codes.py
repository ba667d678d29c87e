"""Every error code of the table occurs, with its status."""

from collections.abc import Callable

import httpx
import pytest

from pulumi_hosting.api.error_codes import CODES
from pulumi_hosting.emulator.middleware import route
from tests.emulator.support import DAY, PUBLIC_KEY, code, details
from tests.support.account import START, Account

SERVER = {"tariff_id": 1, "os": "debian-12"}


def conflict(account: Account) -> httpx.Response:
    account.api("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY})
    return account.api("POST", "/ssh-keys", {"name": "b", "public_key": PUBLIC_KEY})


def idempotency_conflict(account: Account) -> httpx.Response:
    key = account.idempotency_key()
    account.api("POST", "/servers", SERVER, key=key)
    return account.api("POST", "/servers", {**SERVER, "name": "other"}, key=key)


def in_flight(account: Account) -> httpx.Response:
    """The same request, sent while the response to the first is delayed."""
    key = account.idempotency_key()
    again: list[httpx.Response] = []
    account.while_waiting = lambda: again.append(account.api("POST", "/servers", SERVER, key=key))
    account.fault({"delay": 1})
    first = account.api("POST", "/servers", SERVER, key=key)
    assert first.status_code == 201
    return again[0]


def in_progress(account: Account) -> httpx.Response:
    account.core.store.provisioning_delay = 60
    server = account.server()
    account.api("POST", f"/servers/{server}/actions/reinstall", {"os": "debian-12"})
    return account.api("POST", f"/servers/{server}/actions/power", {"action": "stop"})


def blocked(account: Account) -> httpx.Response:
    server = account.server()
    account.control("PATCH", f"/servers/{server}", {"blocked": True})
    return account.api("PATCH", f"/servers/{server}", {"notes": "x"})


def blocked_domain(account: Account) -> httpx.Response:
    domain = account.domain()
    account.control("PATCH", f"/domains/{domain}", {"blocked": True})
    return account.api("PATCH", f"/domains/{domain}", {"auto_renew": True})


def suspended(account: Account) -> httpx.Response:
    server = account.server()
    account.control("PATCH", f"/servers/{server}", {"status": "suspended"})
    return account.api("POST", f"/servers/{server}/actions/power", {"action": "stop"})


def to_be_cancelled(account: Account) -> httpx.Response:
    server = account.server()
    account.control("PATCH", f"/servers/{server}", {"status": "pending_cancel"})
    return account.api("POST", f"/servers/{server}/renew", {"months": 1})


def too_many_addresses(account: Account) -> httpx.Response:
    server = account.server()
    for _ in range(3):
        account.api("POST", f"/servers/{server}/ips")
    return account.api("POST", f"/servers/{server}/ips")


def disabled_tariff(account: Account) -> httpx.Response:
    account.control("PATCH", "/tariffs/1", {"disabled": True})
    return account.api("POST", "/servers", SERVER)


def domain_of_another_account(account: Account) -> httpx.Response:
    other = account.control("POST", "/accounts", {})["live_key"]
    account.call(other, "POST", "/domains", {"name": "example.com"})
    return account.api("POST", "/domains", {"name": "example.com"})


def low_on_balance(account: Account) -> httpx.Response:
    account.control("PATCH", "/account", {"balance": "1.00"})
    return account.api("POST", "/servers", SERVER)


def rate_limited(account: Account) -> httpx.Response:
    key = account.new_key(rate_per_minute=1)
    account.call(key, "GET", "/me")
    return account.call(key, "GET", "/me")


def account_with(**switches: bool) -> Callable[[Account], httpx.Response]:
    def provoke(account: Account) -> httpx.Response:
        account.control("PATCH", "/account", switches)
        return account.api("GET", "/me")

    return provoke


def service_with(**switches: bool) -> Callable[[Account], httpx.Response]:
    def provoke(account: Account) -> httpx.Response:
        account.control("PATCH", "/service", switches)
        return account.test("GET", "/me")

    return provoke


def fault(status: int, code: str) -> Callable[[Account], httpx.Response]:
    def provoke(account: Account) -> httpx.Response:
        account.fault({"status": status, "code": code})
        return account.api("GET", "/balance")

    return provoke


def failed_upstream(account: Account) -> httpx.Response:
    account.fault({"refunded": 502, "code": "upstream_error"})
    return account.api("POST", "/servers", SERVER)


def broken(account: Account) -> httpx.Response:
    """An internal error is answered too."""
    account.core.store.accounts[1001].balance = None  # type: ignore[assignment]  # the bug
    return account.api("GET", "/balance")


CALLS: dict[str, Callable[[Account], httpx.Response]] = {
    "invalid_request": lambda account: account.api(
        "POST", "/servers", content=b"{", headers={"Content-Type": "application/json"}
    ),
    "validation_error": lambda account: account.api("POST", "/ssh-keys", {"name": "a"}),
    "invalid_cursor": lambda account: account.api("GET", "/servers?cursor=nonsense"),
    "idempotency_key_required": lambda account: account.api("POST", "/servers", SERVER, key=None),
    "os_not_allowed": lambda account: account.api("POST", "/servers", {"tariff_id": 5, "os": "windows-2022"}),
    "invalid_period": lambda account: account.api("POST", "/servers", {**SERVER, "months": 2}),
    "invalid_action": lambda account: account.api(
        "POST", f"/servers/{account.server()}/actions/power", {"action": "explode"}
    ),
    "upstream_rejected": lambda account: account.api(
        "POST", "/domains/transfers", {"name": "moved.com", "auth_code": "WRONG-1"}
    ),
    "invalid_token": lambda account: account.call("vk_live_unknown", "GET", "/me"),
    "key_expired": lambda account: account.call(account.new_key(expires_at=START), "GET", "/me"),
    "key_not_yet_valid": lambda account: account.call(account.new_key(not_before=START + 1), "GET", "/me"),
    "insufficient_funds": low_on_balance,
    "insufficient_scope": lambda account: account.call(
        account.new_key(scopes=["balance:read"]), "GET", "/servers"
    ),
    "ip_not_allowed": lambda account: account.call(
        account.new_key(ip_allowlist=["10.0.0.0/8"]), "GET", "/me"
    ),
    "account_suspended": account_with(suspended=True),
    "api_disabled_for_account": account_with(api_enabled_for_account=False),
    "sandbox_not_supported": lambda account: account.test("GET", "/webhooks"),
    "sandbox_disabled": service_with(sandbox_enabled=False),
    "server_blocked": blocked,
    "domain_blocked": blocked_domain,
    "not_found": lambda account: account.api("GET", "/servers/12345"),
    "method_not_allowed": lambda account: account.api("PUT", "/servers"),
    "conflict": conflict,
    "idempotency_conflict": idempotency_conflict,
    "idempotency_in_progress": in_flight,
    "operation_in_progress": in_progress,
    "service_state": suspended,
    "no_capacity": lambda account: account.api("POST", "/servers", {"tariff_id": 4, "os": "debian-12"}),
    "tariff_unavailable": disabled_tariff,
    "ip_limit_reached": too_many_addresses,
    "domain_taken": domain_of_another_account,
    "domain_exists": lambda account: (
        account.domain(),
        account.api("POST", "/domains", {"name": "example.com"}),
    )[1],
    "cancel_pending": to_be_cancelled,
    "payload_too_large": lambda account: account.api("POST", "/servers", {**SERVER, "name": "x" * 65536}),
    "unsupported_media_type": lambda account: account.api(
        "POST", "/servers", content=b"a=1", headers={"Content-Type": "text/plain"}
    ),
    "rate_limited": rate_limited,
    "server_error": broken,
    "upstream_error": failed_upstream,
    "api_disabled": service_with(api_enabled=False),
    "upstream_unavailable": fault(503, "upstream_unavailable"),
    "temporarily_unavailable": fault(503, "temporarily_unavailable"),
    "upstream_timeout": fault(504, "upstream_timeout"),
}


def test_every_code_has_a_call() -> None:
    assert set(CALLS) == set(CODES)


@pytest.mark.parametrize("name", CALLS)
def test_code(name: str, account: Account) -> None:
    response = CALLS[name](account)
    assert code(response) == name
    assert ("Retry-After" in response.headers) == (
        response.status_code in (429, 503) or name == "idempotency_in_progress"
    )


@pytest.mark.parametrize("name", [name for name in CALLS if name != "method_not_allowed"])
def test_the_table_declares_the_code(name: str, account: Account) -> None:
    request = CALLS[name](account).request
    operation, _ = route(request.method, request.url.path.removeprefix("/v1"))
    # Faults may use any code.
    armed = name in ("upstream_unavailable", "temporarily_unavailable", "upstream_timeout")
    assert armed or name in operation.error_codes


def test_details(account: Account) -> None:
    assert details(CALLS["insufficient_funds"](Account())) == {
        "required": "5.00",
        "balance": "1.00",
        "shortfall": "4.00",
        "currency": "EUR",
    }
    assert details(CALLS["insufficient_scope"](Account())) == {"required": ["servers:read"]}
    assert details(CALLS["rate_limited"](Account())) == {"bucket": "normal", "limit": 1}
    assert details(CALLS["service_state"](Account())) == {"status": "suspended"}
    assert details(CALLS["validation_error"](Account())) == {"fields": {"public_key": "required"}}
    assert details(CALLS["invalid_period"](Account())) == {"fields": {"months": "invalid_period"}}


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        ("/servers", {"tariff_id": "1", "os": "debian-12"}, {"tariff_id": "wrong_type"}),
        ("/servers", {"tariff_id": 99, "os": "debian-12"}, {"tariff_id": "unknown"}),
        ("/servers", {**SERVER, "colour": "red"}, {"colour": "unknown"}),
        ("/servers", {**SERVER, "password": "short"}, {"password": "invalid"}),
        ("/servers", {**SERVER, "name": "no spaces"}, {"name": "invalid"}),
        ("/servers", {**SERVER, "ssh_key_ids": [7]}, {"ssh_key_ids": "unknown"}),
        ("/servers", {**SERVER, "promo_code": "NOSUCH"}, {"promo_code": "invalid"}),
        (
            "/servers",
            {**SERVER, "custom_fields": {str(n): "x" for n in range(31)}},
            {"custom_fields": "too_many"},
        ),
        ("/ssh-keys", {"name": "", "public_key": PUBLIC_KEY}, {"name": "too_short"}),
        ("/ssh-keys", {"name": "a", "public_key": "ssh-rsa AAAA"}, {"public_key": "invalid"}),
        ("/ssh-keys", {"name": "a", "public_key": "ssh-rsa A"}, {"public_key": "invalid"}),
        (
            "/balance/topup",
            {"amount": "10.00", "gateway": "card", "return_url": "x"},
            {"return_url": "unknown"},
        ),
        ("/balance/topup", {"amount": "10.001", "gateway": "card"}, {"amount": "invalid"}),
        ("/balance/topup", {"amount": "1.00", "gateway": "card"}, {"amount": "out_of_range"}),
        ("/balance/topup", {"amount": "10.00", "gateway": "cash"}, {"gateway": "not_allowed"}),
        ("/domains", {"name": "example.com", "nameservers": ["a.b.c"]}, {"nameservers": "too_few"}),
        ("/domains", {"name": "example.com", "promo_code": "EXPIRED50"}, {"promo_code": "invalid"}),
        ("/domains", {"name": "example.nowhere"}, {"name": "unsupported_tld"}),
        ("/domains", {"name": "-bad-.com"}, {"name": "invalid"}),
        ("/domains", {"name": "com"}, {"name": "invalid"}),
        ("/webhooks", {"url": "https://127.0.0.1/", "events": ["*"]}, {"url": "not_public"}),
        ("/webhooks", {"url": "https://localhost/", "events": ["*"]}, {"url": "not_public"}),
        ("/webhooks", {"url": "https://2130706433/", "events": ["*"]}, {"url": "not_public"}),
        ("/webhooks", {"url": "https://[fe80::1]/", "events": ["*"]}, {"url": "not_public"}),
        ("/webhooks", {"url": "https://a.example.org:x/", "events": ["*"]}, {"url": "invalid"}),
        ("/webhooks", {"url": "http://a.example.org/", "events": ["*"]}, {"url": "invalid"}),
        ("/webhooks", {"url": "https://a.example.org/", "events": ["no.such"]}, {"events": "unknown"}),
    ],
)
def test_fields(path: str, body: dict[str, object], fields: dict[str, str], account: Account) -> None:
    response = account.api("POST", path, body)
    assert (code(response), details(response)) == ("validation_error", {"fields": fields})
    assert account.control("GET", "/ledger") == []


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("limit=0", {"limit": "out_of_range"}),
        ("limit=101", {"limit": "out_of_range"}),
        ("limit=ten", {"limit": "invalid"}),
        ("limit=1&limit=2", {"limit": "repeated"}),
        ("status=happy", {"status": "not_allowed"}),
        ("ip=" + "1" * 46, {"ip": "too_long"}),
        ("name=web", {"name": "unknown"}),
    ],
)
def test_query_fields(query: str, fields: dict[str, str], account: Account) -> None:
    response = account.api("GET", f"/servers?{query}")
    assert (code(response), details(response)) == ("validation_error", {"fields": fields})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"amount": "12.30", "gateway": "card"}, "12.30"),
        ({"amount": 12.3, "gateway": "card"}, "12.30"),
        ({"amount": 12, "gateway": "card"}, "12.00"),
    ],
)
def test_amounts_are_strings_or_numbers(body: dict[str, object], expected: str, account: Account) -> None:
    assert account.api("POST", "/balance/topup", body).json()["amount"] == expected


@pytest.mark.parametrize(
    "body", [b"[]", b"1", b"\xff", b'{"a": NaN}', b'{"a": "\\ud800"}', b"[" * 60000, b""]
)
def test_bodies_that_are_not_json_objects(body: bytes, account: Account) -> None:
    response = account.api("POST", "/ssh-keys", content=body, headers={"Content-Type": "application/json"})
    assert code(response) == "invalid_request"


def test_body_rules(account: Account) -> None:
    assert (
        code(account.api("POST", "/ssh-keys", content=b"", headers={"Content-Type": "text/plain"}))
        == "unsupported_media_type"
    )
    assert (
        code(account.api("POST", "/ssh-keys", content=b"{}", headers={"Content-Type": ""}))
        == "unsupported_media_type"
    )
    ok = account.api(
        "POST",
        f"/servers/{account.server()}/ips",
        {"count": 1},
        headers={"Content-Type": "application/json; charset=utf-8"},
    )
    assert ok.status_code == 200
    server = account.server()
    assert details(account.api("POST", f"/servers/{server}/ips", {"count": 2})) == {
        "fields": {"count": "not_allowed"}
    }
    assert details(account.api("DELETE", f"/servers/{server}", {"force": True})) == {
        "fields": {"force": "unknown"}
    }
    assert account.api("DELETE", f"/servers/{server}", {}).status_code == 200
    assert code(account.api("GET", "/transactions?since=2026-01-01T00:00:00")) == "validation_error"
    assert (
        account.api(
            "GET", "/transactions?since=2026-01-01T00:00:00%2B02:00&until=2026-01-01T00:00:00Z"
        ).status_code
        == 200
    )
    assert code(account.api("GET", "/me?x=%ff")) == "invalid_request"
    assert code(account.api("GET", "/catalog/os?tariff_id=99")) == "validation_error"


def test_clock_and_keys(account: Account) -> None:
    """The time window of a key follows the emulator's clock."""
    key = account.new_key(not_before=START + 10, expires_at="2029-04-16T00:00:00Z")
    assert code(account.call(key, "GET", "/me")) == "key_not_yet_valid"
    account.advance(10)
    assert account.call(key, "GET", "/me").status_code == 200
    account.advance(30 * DAY)
    assert code(account.call(key, "GET", "/me")) == "key_expired"
