"""Internal errors and invalid bodies are answered in the right form, and everything continues."""

import json
from typing import Any

import pytest

from pulumi_hosting.emulator.handlers import HANDLERS
from tests.emulator.support import DAY, GOOD, assert_deliveries_work, assert_reads_work, code, subscribe
from tests.support.account import Account


def test_an_error_in_a_handler_is_a_500(
    any_dialect: Account, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(call: object) -> None:
        raise KeyError("bug")

    monkeypatch.setattr("pulumi_hosting.emulator.middleware.HANDLERS", {**HANDLERS, "get_me": fail})
    response = any_dialect.api("GET", "/me", headers={"X-Request-ID": "mine"})
    assert (response.status_code, code(response), response.headers["X-Request-ID"]) == (
        500,
        "server_error",
        "mine",
    )
    assert "mine" in caplog.text


def test_a_response_that_cannot_be_encoded_is_a_500(
    any_dialect: Account, caplog: pytest.LogCaptureFixture
) -> None:
    """JSON cannot hold half a surrogate pair."""
    any_dialect.fault({"patch": {"hint": ""}})
    assert (
        any_dialect.http.post(
            "/_control/faults",
            content=rb'{"action": {"patch": {"hint": '
            rb'"\ud800"}}}',
        ).status_code
        == 400
    )
    next(iter(any_dialect.core.store.faults.values())).action = {"patch": {"hint": "\ud800"}}
    response = any_dialect.api("GET", "/me")
    assert (response.status_code, code(response)) == (500, "server_error")
    assert response.headers["X-Request-ID"] in caplog.text
    assert any_dialect.api("GET", "/me").status_code == 200
    assert any_dialect.http.get("/_control/requests").status_code == 200


def test_an_error_in_a_control_call_is_a_500(
    account: Account, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: object) -> None:
        raise KeyError("bug")

    monkeypatch.setattr(account.core, "reset", fail)
    assert "KeyError" in account.control("POST", "/reset", {}, status=500)["error"]
    assert "KeyError" in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/keys", {"mode": "live", "scopes": 5}),
        ("POST", "/keys", {"mode": "live", "scopes": [[]]}),
        ("POST", "/keys", {"mode": ["live"]}),
        ("POST", "/keys", {"mode": "live", "ip_allowlist": 5}),
        ("POST", "/keys", {"mode": "live", "ip_allowlist": [5]}),
        ("POST", "/keys", {"mode": "live", "expires_at": 1e300}),
        ("POST", "/keys", {"mode": "live", "not_before": -1e300}),
        ("POST", "/keys", {"mode": "live", "rate_per_minute": -1}),
        ("POST", "/servers", {"tariff_id": []}),
        ("POST", "/servers", {"tariff_id": {}}),
        ("POST", "/invoices", {"type": "vds_purchase", "tariff_id": []}),
        ("POST", "/invoices", {"type": "vds_purchase", "os": []}),
        ("POST", "/invoices", {"amount": "1e999999"}),
        ("POST", "/invoices", {"amount": "-1.00"}),
        ("POST", "/invoices", {"amount": "0.00001"}),
        ("PATCH", "/account", {"balance": "1e999999"}),
        ("PATCH", "/account", {"balance": "NaN"}),
        ("POST", "/accounts", {"balance": "Infinity"}),
        ("PATCH", "/tariffs/1", {"price_monthly": "-1.00"}),
        ("PATCH", "/tariffs/1", {"price_monthly": "1e30"}),
        ("POST", "/clock", {"advance": 1e300}),
        ("POST", "/clock", {"advance": "1"}),
        ("PATCH", "/service", {"dialect": []}),
        ("PATCH", "/service", {"readings": []}),
        ("POST", "/faults", {"action": {"status": 503, "retry_after": float("inf")}}),
        ("POST", "/faults", {"action": {"status": 503}, "after": True}),
        ("PUT", "/webhook-routes", {"https://[broken": "http://127.0.0.1:1"}),
        ("PUT", "/webhook-routes", {"https://a.example.org:x": "http://127.0.0.1:1"}),
        ("PUT", "/webhook-routes", {"https://a.example.org": "http://127.0.0.1:99999"}),
        ("PATCH", "/webhooks/{hook}", {"url": "https://[broken/"}),
        ("PATCH", "/webhooks/{hook}", {"url": "ftp://a.example.org/"}),
        ("PATCH", "/webhooks/{hook}", {"events": [[]]}),
        ("PATCH", "/domains/{domain}", {"nameservers": [1, {}]}),
        ("PATCH", "/domains/{domain}", {"status": []}),
        ("PATCH", "/servers/{server}", {"status": []}),
        ("PATCH", "/servers/{server}", {"power": []}),
    ],
)
def test_invalid_control_bodies(method: str, path: str, body: dict[str, Any], account: Account) -> None:
    path = path.format(hook=subscribe(account, GOOD), domain=account.domain(), server=account.server())
    # json.dumps writes NaN and Infinity.
    response = account.http.request(method, f"/_control{path}", content=json.dumps(body))
    assert (response.status_code, set(response.json())) == (400, {"error"}), response.text
    assert_reads_work(account)


@pytest.mark.parametrize(
    "raw", [b"[" * 20_000, b'{"a":' * 10_000, b"\xff", b'{"advance": ' + b"9" * 5000 + b"}"]
)
def test_bodies_that_cannot_be_parsed(raw: bytes, account: Account) -> None:
    assert account.http.post("/_control/clock", content=raw).status_code == 400
    assert (
        account.api("POST", "/servers", content=raw, headers={"Content-Type": "application/json"}).status_code
        == 400
    )
    assert account.http.get("/_control/requests").status_code == 200
    assert_reads_work(account)


def test_the_clock_stops_at_the_year_9000(account: Account) -> None:
    account.server()
    century = 100 * 365 * DAY
    while True:
        response = account.http.post("/_control/clock", json={"advance": century})
        if response.status_code != 200:
            break
    assert (response.status_code, set(response.json())) == (400, {"error"})
    account.control("PATCH", "/account", {"balance": "1000.00"})
    assert_reads_work(account)
    assert_deliveries_work(account)
