"""Deliveries: what is sent, retries, the end of retries; and delivery over HTTP."""

import hmac
import json
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import httpx
import pytest

from pulumi_hosting.emulator import running, webhook_delivery
from tests.emulator.support import DAY, OVER_HTTP, code
from tests.support.account import Account
from tests.support.waiting import HANG_SECONDS


def deliveries(account: Account, hook: int, query: str = "") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = account.api("GET", f"/webhooks/{hook}/deliveries?{query}").json()["data"]
    return rows


def test_subscriptions(account: Account) -> None:
    made = account.subscribe("server.created")
    assert made["secret"].startswith("whsec_")
    assert len(made["secret"]) == 50
    (listed,) = account.api("GET", "/webhooks").json()["data"]
    assert "secret" not in listed
    assert account.api("GET", f"/webhooks/{made['id']}").json() == listed
    changed = account.api(
        "PATCH",
        f"/webhooks/{made['id']}",
        {"events": ["*"], "description": "d", "url": None, "active": False},
    ).json()
    assert (changed["events"], changed["description"], changed["url"], changed["active"]) == (
        ["*"],
        "d",
        made["url"],
        False,
    )
    assert code(account.api("PATCH", f"/webhooks/{made['id']}", {})) == "validation_error"
    assert (
        code(account.api("PATCH", f"/webhooks/{made['id']}", {"url": "https://10.0.0.1/"}))
        == "validation_error"
    )
    assert code(account.api("POST", f"/webhooks/{made['id']}/test")) == "conflict"
    account.server()
    assert deliveries(account, made["id"]) == []
    assert account.api("DELETE", f"/webhooks/{made['id']}").json() == {"status": "deleted", "id": made["id"]}
    assert code(account.api("GET", f"/webhooks/{made['id']}")) == "not_found"
    assert len(account.api("GET", "/webhooks/events").json()["data"]) == 15


def test_envelope_and_signature(account: Account) -> None:
    hook = account.subscribe("server.created")
    server = account.server()
    account.advance(0)
    (attempt,) = account.sent
    assert attempt.target == "http://127.0.0.1:9/in?a=1"
    event = json.loads(attempt.payload)
    assert event["id"] == attempt.headers["X-Webhook-Id"]
    assert event["id"].startswith("evt_")
    shown = account.api("GET", f"/servers/{server}").json()
    assert event["data"] == {
        "object": {name: shown[name] for name in event["data"]["object"]},
        "previous": None,
    }
    assert (event["type"], event["livemode"], event["api_version"]) == ("server.created", True, "1")
    assert event["resource"] == f"/api/v1/servers/{server}"
    timestamp = attempt.headers["X-Webhook-Timestamp"]
    expected = hmac.new(
        hook["secret"].encode(), timestamp.encode() + b"." + attempt.payload, sha256
    ).hexdigest()
    assert attempt.headers["X-Webhook-Signature"] == f"v1={expected}"
    assert attempt.headers["User-Agent"].endswith("-Webhooks/1.0")
    (row,) = deliveries(account, hook["id"], "status=delivered&event_type=server.created")
    assert (row["status"], row["attempts"], row["dead"], row["last_status"], row["last_response"]) == (
        "delivered",
        1,
        False,
        200,
        "text",
    )
    assert account.api("GET", f"/webhooks/deliveries/{row['id']}").json()["payload"] == event


def test_previous_in_either_dialect(account: Account) -> None:
    account.control("PATCH", "/service", {"dialect": "live"})
    account.subscribe("server.created")
    account.server()
    account.advance(0)
    assert list(json.loads(account.sent[0].payload)["data"]) == ["object"]


def test_retries_then_dead_then_redelivered(account: Account) -> None:
    hook = account.subscribe("server.created")["id"]
    account.receiver_status = 500
    account.server()
    account.advance(0)
    start, tries = account.clock.now(), [account.clock.now()]
    for wait in (60, 300, 900, 3600, 21600):
        account.advance(wait - 1)
        assert len(account.sent) == len(tries)
        account.advance(1)
        tries.append(account.clock.now())
        assert len(account.sent) == len(tries)
    (row,) = deliveries(account, hook, "status=dead")
    assert (row["attempts"], row["dead"], row["next_attempt_at"], row["last_error"]) == (
        6,
        True,
        None,
        "the receiver answered 500",
    )
    assert [int(attempt.headers["X-Webhook-Timestamp"]) - start for attempt in account.sent] == [
        moment - start for moment in tries
    ]
    assert len({attempt.payload for attempt in account.sent}) == 1
    assert len({attempt.headers["X-Webhook-Signature"] for attempt in account.sent}) == 6
    account.receiver_status = 204
    again = account.api("POST", f"/webhooks/deliveries/{row['id']}/redeliver")
    assert (again.status_code, again.json()["status"], again.json()["delivery"]["status"]) == (
        202,
        "queued",
        "pending",
    )
    assert code(account.api("POST", f"/webhooks/deliveries/{row['id']}/redeliver")) == "conflict"
    account.advance(0)
    assert account.sent[-1].payload == account.sent[0].payload
    assert deliveries(account, hook)[0]["status"] == "delivered"


def test_all_retries_in_one_advance_of_the_clock(account: Account) -> None:
    account.subscribe("server.created")
    account.receiver_status = None
    account.server()
    account.advance(DAY)
    stamps = [int(attempt.headers["X-Webhook-Timestamp"]) for attempt in account.sent]
    assert [later - earlier for earlier, later in pairwise(stamps)] == [60, 300, 900, 3600, 21600]


def test_disabled_after_twenty_failures(account: Account) -> None:
    hook = account.subscribe("server.created")["id"]
    account.receiver_status = None
    for _ in range(4):
        account.server()
        account.advance(DAY)
    shown = account.api("GET", f"/webhooks/{hook}").json()
    assert (shown["active"], shown["failures_in_row"]) == (False, 20)
    assert shown["disabled_reason"]
    assert shown["disabled_at"]
    (email,) = account.objects("emails")
    assert (email["to"], email["subject"]) == (
        "demo@example.com",
        f"Webhook subscription {hook} is disabled: {shown['disabled_reason']}",
    )
    assert len(account.sent) == 20
    account.server()
    assert len(deliveries(account, hook)) == 4
    enabled = account.api("PATCH", f"/webhooks/{hook}", {"active": True}).json()
    assert (
        enabled["active"],
        enabled["failures_in_row"],
        enabled["disabled_at"],
        enabled["disabled_reason"],
    ) == (True, 0, None, None)
    account.receiver_status = 200
    account.advance(DAY)
    assert deliveries(account, hook)[0]["status"] == "delivered"


def test_rotation_stops_the_old_secret_at_once(account: Account) -> None:
    hook = account.subscribe("server.created")
    account.receiver_status = 500
    account.server()
    account.advance(0)
    answer = account.api("POST", f"/webhooks/{hook['id']}/rotate-secret").json()
    assert set(answer) == {"id", "secret"}
    assert answer["secret"] != hook["secret"]
    account.advance(60)
    attempt = account.sent[-1]
    timestamp = int(attempt.headers["X-Webhook-Timestamp"])
    assert attempt.headers["X-Webhook-Signature"] == webhook_delivery.signature(
        answer["secret"], timestamp, attempt.payload
    )


def test_ping(account: Account) -> None:
    hook = account.subscribe("server.created")["id"]
    good = account.api("POST", f"/webhooks/{hook}/test").json()
    assert (good["ok"], good["status"], good["detail"], good["delivery"]["status"]) == (
        True,
        200,
        None,
        "delivered",
    )
    event = json.loads(account.sent[-1].payload)
    assert (event["type"], event["data"]["object"], event["resource"]) == (
        "ping",
        {"subscription_id": hook, "message": "pong"},
        None,
    )
    account.receiver_status = None
    bad = account.api("POST", f"/webhooks/{hook}/test").json()
    assert (bad["ok"], bad["status"], bad["detail"], bad["delivery"]["status"]) == (
        False,
        None,
        "the connection failed",
        "dead",
    )
    assert account.api("GET", f"/webhooks/{hook}").json()["failures_in_row"] == 0


def test_an_origin_without_a_route_is_unreachable(account: Account) -> None:
    account.subscribe("server.created")
    account.control("PUT", "/webhook-routes", {})
    account.server()
    account.advance(0)
    assert account.sent[0].target is None
    assert webhook_delivery.send(account.sent[0]).error == "the address is not reachable"


def test_the_delivery_log_expires(account: Account) -> None:
    hook = account.subscribe("server.created")["id"]
    account.server()
    account.advance(14 * DAY - 1)
    (row,) = deliveries(account, hook)
    account.api("POST", f"/webhooks/deliveries/{row['id']}/redeliver")
    account.advance(1)
    assert len(deliveries(account, hook)) == 1  # redelivered, so its 14 days start again
    account.advance(14 * DAY)
    assert deliveries(account, hook) == []
    account.receiver_status = 500
    account.server()
    account.advance(DAY)
    account.advance(28 * DAY)
    assert len(deliveries(account, hook, "status=dead")) == 1
    account.advance(2 * DAY)
    assert deliveries(account, hook, "status=dead") == []


def test_events_of_another_account_and_of_keys(account: Account) -> None:
    account.subscribe("*")
    other = account.control("POST", "/accounts", {})["live_key"]
    account.order(other)
    key = account.new_key()
    account.call(key, "DELETE", f"/keys/{account.call(key, 'GET', '/me').json()['key']['id']}")
    account.control("DELETE", f"/keys/{account.control('POST', '/keys', {'mode': 'test'})['id']}")
    account.advance(0)
    assert [attempt.headers["X-Webhook-Event"] for attempt in account.sent] == [
        "key.created",
        "key.revoked",
    ] * 2


def test_a_subscription_deleted_during_an_attempt(account: Account) -> None:
    hook = account.subscribe("server.created")["id"]
    receive = account.core.send

    def delete_meanwhile(attempt: webhook_delivery.Attempt) -> webhook_delivery.AttemptOutcome:
        account.control("DELETE", f"/webhooks/{hook}")
        return receive(attempt)

    account.core.send = delete_meanwhile
    account.server()
    account.advance(0)
    assert account.core.store.deliveries == {}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://hooks.example.org/x", None),
        ("https://93.184.216.34/", None),
        ("https://localhost/", "not_public"),
        ("https://printer.local/", "not_public"),
        ("https://192.168.0.1/", "not_public"),
        ("https://[::1]/", "not_public"),
        ("https://0x7f.1/", "not_public"),
        ("https://intranet/", "not_public"),
        ("https://[broken/", "invalid"),
    ],
)
def test_public_addresses(url: str, problem: str | None) -> None:
    assert webhook_delivery.url_problem(url) == problem


@pytest.mark.parametrize(
    "target",
    ["http://example.com", "https://127.0.0.1", "http://10.0.0.1", "http://127.0.0.1:x", "nonsense", 7],
)
def test_routes_stay_on_this_machine(target: object) -> None:
    with pytest.raises(ValueError, match="loopback"):
        webhook_delivery.check_routes({"https://a.example.org": target})
    with pytest.raises(ValueError, match="not an https origin"):
        webhook_delivery.check_routes({"http://a.example.org": "http://127.0.0.1:1"})


def test_origins_are_compared_without_their_default_port() -> None:
    assert webhook_delivery.origin("https://A.example.org:443/x") == "https://a.example.org"
    assert webhook_delivery.origin("https://a.example.org:8443/x") == "https://a.example.org:8443"


# --- over a real socket -----------------------------------------------------------------------------------


class Receiver(ThreadingHTTPServer):
    """Records what it receives and answers with ``status``."""

    daemon_threads = True

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 200
        self.arrived = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(b"x" * 2000)
        self.server.arrived.set()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("clock", ["real", "manual"])
def test_delivery_over_http(clock: str, receiver: Receiver) -> None:
    routes = {"https://hooks.example.org": receiver.url}
    with running(clock=clock, webhook_route=routes) as emulator, httpx.Client(**OVER_HTTP) as http:
        http.headers["Authorization"] = f"Bearer {emulator.live_key}"
        body = {"url": "https://hooks.example.org/in?q=1", "events": ["server.created", "server.terminated"]}
        hook = http.post(f"{emulator.base_url}/webhooks", json=body).json()
        order = {"tariff_id": 1, "os": "debian-12"}
        created = http.post(
            f"{emulator.base_url}/servers", json=order, headers={"Idempotency-Key": "0123456789abcdef"}
        ).json()
        assert receiver.arrived.wait(HANG_SECONDS)
        path, headers, raw = receiver.got[0]
        assert path == "/in?q=1"
        assert headers["X-Webhook-Signature"] == webhook_delivery.signature(
            hook["secret"], int(headers["X-Webhook-Timestamp"]), raw
        )
        assert json.loads(raw)["data"]["object"]["id"] == created["server"]["id"]

        receiver.status = 302
        answer = http.post(f"{emulator.base_url}/webhooks/{hook['id']}/test").json()
        assert (answer["ok"], answer["status"]) == (False, 302)

        # The call that moves the clock returns after the retry.
        receiver.status = 503
        server = created["server"]["id"]
        http.delete(f"{emulator.base_url}/servers/{server}", headers={"Idempotency-Key": "0123456789abcdeg"})
        http.post(f"{emulator.control_url}/clock", json={"advance": 0})
        seen = len(receiver.got)
        receiver.status = 200
        http.post(f"{emulator.control_url}/clock", json={"advance": 61})
        assert len(receiver.got) == seen + 1
        assert receiver.got[-1][2] == receiver.got[-2][2]
        rows = http.get(f"{emulator.base_url}/webhooks/{hook['id']}/deliveries").json()["data"]
        assert [row["status"] for row in rows] == ["delivered", "dead", "delivered"]
        assert rows[0]["last_response"] == "x" * 1000


def test_failures_of_a_real_receiver() -> None:
    def outcome(target: str) -> webhook_delivery.AttemptOutcome:
        return webhook_delivery.send(webhook_delivery.Attempt(target, {}, b"{}"))

    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        port = closed.server_port
    assert outcome(f"http://127.0.0.1:{port}/").error == "the connection failed: ConnectionRefusedError"


def test_a_receiver_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(webhook_delivery, "TIMEOUT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        assert webhook_delivery.send(webhook_delivery.Attempt(url, {}, b"{}")).error == (
            "no answer within 0.05 seconds"
        )


@pytest.mark.usefixtures("warm")
def test_undeliverable_urls_do_not_block_others(receiver: Receiver) -> None:
    """Over HTTP with a real clock: a URL beyond ASCII, and an origin that does not listen."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        unreachable = f"http://127.0.0.1:{closed.server_port}"
    routes = {"https://hooks.example.org": receiver.url, "https://dead.example.org": unreachable}
    with (
        running(webhook_route=routes) as emulator,
        httpx.Client(base_url=emulator.base_url, **OVER_HTTP) as http,
    ):
        http.headers["Authorization"] = f"Bearer {emulator.live_key}"
        hooks = {}
        for path in (
            "dead.example.org/",
            "hooks.example.org/%C3%A9",
            "hooks.example.org/é",
            "hooks.example.org/good",
        ):
            url = f"https://{path}"
            answer = http.post("/webhooks", json={"url": url, "events": ["invoice.paid"]})
            assert answer.status_code == 201, answer.text
            hooks[url] = answer.json()["id"]
        dead = http.post(f"/webhooks/{hooks['https://dead.example.org/']}/test").json()
        assert (dead["ok"], dead["status"]) == (False, None)
        for number in range(3):
            invoice = http.post(
                "/balance/topup",
                json={"amount": "10.00", "gateway": "card"},
                headers={"Idempotency-Key": "k" * (16 + number)},
            )
            http.post(
                f"{emulator.control_url}/invoices/{invoice.json()['invoice_id']}/confirm", json={}
            ).raise_for_status()
        http.post(f"{emulator.control_url}/clock", json={"advance": 0}).raise_for_status()
        paths = [path for path, _, _ in receiver.got]
        assert paths.count("/good") == 3
        assert paths.count("/%C3%A9") == 6
        assert http.get("/me").status_code == 200
