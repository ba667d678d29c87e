"""Deliveries: what is sent, when it is tried again, when it is given up; and once over a real socket."""

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
from tests.emulator.support import DAY, EmulatorHarness, code


def deliveries(lab: EmulatorHarness, hook: int, query: str = "") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lab.api("GET", f"/webhooks/{hook}/deliveries?{query}").json()["data"]
    return rows


def test_subscription_life(lab: EmulatorHarness) -> None:
    made = lab.subscribe("server.created")
    assert made["secret"].startswith("whsec_")
    assert len(made["secret"]) == 50
    (listed,) = lab.api("GET", "/webhooks").json()["data"]
    assert "secret" not in listed
    assert lab.api("GET", f"/webhooks/{made['id']}").json() == listed
    changed = lab.api("PATCH", f"/webhooks/{made['id']}", {"events": ["*"], "description": "d", "url": None, "active": False}).json()
    assert (changed["events"], changed["description"], changed["url"], changed["active"]) == (["*"], "d", made["url"], False)
    assert code(lab.api("PATCH", f"/webhooks/{made['id']}", {})) == "validation_error"
    assert code(lab.api("PATCH", f"/webhooks/{made['id']}", {"url": "https://10.0.0.1/"})) == "validation_error"
    assert code(lab.api("POST", f"/webhooks/{made['id']}/test")) == "conflict"
    lab.server()
    assert deliveries(lab, made["id"]) == []
    assert lab.api("DELETE", f"/webhooks/{made['id']}").json() == {"status": "deleted", "id": made["id"]}
    assert code(lab.api("GET", f"/webhooks/{made['id']}")) == "not_found"
    assert len(lab.api("GET", "/webhooks/events").json()["data"]) == 15


def test_envelope_and_signature(lab: EmulatorHarness) -> None:
    hook = lab.subscribe("server.created")
    server = lab.server()
    lab.advance(0)
    (attempt,) = lab.sent
    assert attempt.target == "http://127.0.0.1:9/in?a=1"
    event = json.loads(attempt.payload)
    assert event["id"] == attempt.headers["X-Webhook-Id"]
    assert event["id"].startswith("evt_")
    shown = lab.api("GET", f"/servers/{server}").json()
    assert event["data"] == {"object": {name: shown[name] for name in event["data"]["object"]}, "previous": None}
    assert (event["type"], event["livemode"], event["api_version"]) == ("server.created", True, "1")
    assert event["resource"] == f"/api/v1/servers/{server}"
    timestamp = attempt.headers["X-Webhook-Timestamp"]
    expected = hmac.new(hook["secret"].encode(), timestamp.encode() + b"." + attempt.payload, sha256).hexdigest()
    assert attempt.headers["X-Webhook-Signature"] == f"v1={expected}"
    assert attempt.headers["User-Agent"].endswith("-Webhooks/1.0")
    (row,) = deliveries(lab, hook["id"], "status=delivered&event_type=server.created")
    assert (row["status"], row["attempts"], row["dead"], row["last_status"], row["last_response"]) == ("delivered", 1, False, 200, "text")
    assert lab.api("GET", f"/webhooks/deliveries/{row['id']}").json()["payload"] == event


def test_previous_in_either_dialect(lab: EmulatorHarness) -> None:
    lab.control("PATCH", "/service", {"dialect": "live"})
    lab.subscribe("server.created")
    lab.server()
    lab.advance(0)
    assert list(json.loads(lab.sent[0].payload)["data"]) == ["object"]


def test_retries_then_dead_then_queued_again(lab: EmulatorHarness) -> None:
    hook = lab.subscribe("server.created")["id"]
    lab.receiver_status = 500
    lab.server()
    lab.advance(0)
    start, tries = lab.clock.now(), [lab.clock.now()]
    for wait in (60, 300, 900, 3600, 21600):
        lab.advance(wait - 1)
        assert len(lab.sent) == len(tries)
        lab.advance(1)
        tries.append(lab.clock.now())
        assert len(lab.sent) == len(tries)
    (row,) = deliveries(lab, hook, "status=dead")
    assert (row["attempts"], row["dead"], row["next_attempt_at"], row["last_error"]) == (6, True, None, "the receiver answered 500")
    assert [int(attempt.headers["X-Webhook-Timestamp"]) - start for attempt in lab.sent] == [moment - start for moment in tries]
    assert len({attempt.payload for attempt in lab.sent}) == 1
    assert len({attempt.headers["X-Webhook-Signature"] for attempt in lab.sent}) == 6
    lab.receiver_status = 204
    again = lab.api("POST", f"/webhooks/deliveries/{row['id']}/redeliver")
    assert (again.status_code, again.json()["status"], again.json()["delivery"]["status"]) == (202, "queued", "pending")
    assert code(lab.api("POST", f"/webhooks/deliveries/{row['id']}/redeliver")) == "conflict"
    lab.advance(0)
    assert lab.sent[-1].payload == lab.sent[0].payload
    assert deliveries(lab, hook)[0]["status"] == "delivered"


def test_all_retries_in_one_leap_of_the_clock(lab: EmulatorHarness) -> None:
    lab.subscribe("server.created")
    lab.receiver_status = None
    lab.server()
    lab.advance(DAY)
    stamps = [int(attempt.headers["X-Webhook-Timestamp"]) for attempt in lab.sent]
    assert [later - earlier for earlier, later in pairwise(stamps)] == [60, 300, 900, 3600, 21600]


def test_disabled_after_twenty_failures(lab: EmulatorHarness) -> None:
    hook = lab.subscribe("server.created")["id"]
    lab.receiver_status = None
    for _ in range(4):
        lab.server()
        lab.advance(DAY)
    shown = lab.api("GET", f"/webhooks/{hook}").json()
    assert (shown["active"], shown["failures_in_row"]) == (False, 20)
    assert shown["disabled_reason"]
    assert shown["disabled_at"]
    assert len(lab.sent) == 20
    lab.server()
    assert len(deliveries(lab, hook)) == 4
    enabled = lab.api("PATCH", f"/webhooks/{hook}", {"active": True}).json()
    assert (enabled["active"], enabled["failures_in_row"], enabled["disabled_at"], enabled["disabled_reason"]) == (True, 0, None, None)
    lab.receiver_status = 200
    lab.advance(DAY)
    assert deliveries(lab, hook)[0]["status"] == "delivered"


def test_rotation_stops_the_old_secret_at_once(lab: EmulatorHarness) -> None:
    hook = lab.subscribe("server.created")
    lab.receiver_status = 500
    lab.server()
    lab.advance(0)
    answer = lab.api("POST", f"/webhooks/{hook['id']}/rotate-secret").json()
    assert set(answer) == {"id", "secret"}
    assert answer["secret"] != hook["secret"]
    lab.advance(60)
    attempt = lab.sent[-1]
    timestamp = int(attempt.headers["X-Webhook-Timestamp"])
    assert attempt.headers["X-Webhook-Signature"] == webhook_delivery.signature(answer["secret"], timestamp, attempt.payload)


def test_ping(lab: EmulatorHarness) -> None:
    hook = lab.subscribe("server.created")["id"]
    good = lab.api("POST", f"/webhooks/{hook}/test").json()
    assert (good["ok"], good["status"], good["detail"], good["delivery"]["status"]) == (True, 200, None, "delivered")
    event = json.loads(lab.sent[-1].payload)
    assert (event["type"], event["data"]["object"], event["resource"]) == ("ping", {"subscription_id": hook, "message": "pong"}, None)
    lab.receiver_status = None
    bad = lab.api("POST", f"/webhooks/{hook}/test").json()
    assert (bad["ok"], bad["status"], bad["detail"], bad["delivery"]["status"]) == (False, None, "the connection failed", "dead")
    assert lab.api("GET", f"/webhooks/{hook}").json()["failures_in_row"] == 0


def test_an_origin_without_a_route_is_unreachable(lab: EmulatorHarness) -> None:
    lab.subscribe("server.created")
    lab.control("PUT", "/webhook-routes", {})
    lab.server()
    lab.advance(0)
    assert lab.sent[0].target is None
    assert webhook_delivery.send(lab.sent[0]).error == "the address is not reachable"


def test_the_log_is_kept_for_a_while(lab: EmulatorHarness) -> None:
    hook = lab.subscribe("server.created")["id"]
    lab.server()
    lab.advance(14 * DAY - 1)
    (row,) = deliveries(lab, hook)
    lab.api("POST", f"/webhooks/deliveries/{row['id']}/redeliver")
    lab.advance(1)
    assert len(deliveries(lab, hook)) == 1  # delivered again, so its 14 days began anew
    lab.advance(14 * DAY)
    assert deliveries(lab, hook) == []
    lab.receiver_status = 500
    lab.server()
    lab.advance(DAY)
    lab.advance(28 * DAY)
    assert len(deliveries(lab, hook, "status=dead")) == 1
    lab.advance(2 * DAY)
    assert deliveries(lab, hook, "status=dead") == []


def test_events_of_another_account_and_of_keys(lab: EmulatorHarness) -> None:
    lab.subscribe("*")
    other = lab.control("POST", "/accounts", {})["live_key"]
    lab.order(other)
    key = lab.new_key()
    lab.call(key, "DELETE", f"/keys/{lab.call(key, 'GET', '/me').json()['key']['id']}")
    lab.control("DELETE", f"/keys/{lab.control('POST', '/keys', {'mode': 'test'})['id']}")
    lab.advance(0)
    assert [attempt.headers["X-Webhook-Event"] for attempt in lab.sent] == ["key.created", "key.revoked"] * 2


def test_deleted_while_an_attempt_was_under_way(lab: EmulatorHarness) -> None:
    hook = lab.subscribe("server.created")["id"]
    receive = lab.core.send

    def delete_meanwhile(attempt: webhook_delivery.Attempt) -> webhook_delivery.Outcome:
        lab.control("DELETE", f"/webhooks/{hook}")
        return receive(attempt)

    lab.core.send = delete_meanwhile
    lab.server()
    lab.advance(0)
    assert lab.core.store.deliveries == {}


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


@pytest.mark.parametrize("target", ["http://example.com", "https://127.0.0.1", "http://10.0.0.1", "http://127.0.0.1:x", "nonsense", 7])
def test_routes_stay_on_this_machine(target: object) -> None:
    with pytest.raises(ValueError, match="loopback"):
        webhook_delivery.check_routes({"https://a.example.org": target})
    with pytest.raises(ValueError, match="not an https origin"):
        webhook_delivery.check_routes({"http://a.example.org": "http://127.0.0.1:1"})


def test_origins_are_compared_without_their_default_port() -> None:
    assert webhook_delivery.origin("https://A.example.org:443/x") == "https://a.example.org"
    assert webhook_delivery.origin("https://a.example.org:8443/x") == "https://a.example.org:8443"


# --- over a real socket ----------------------------------------------------------------------------------------------------------


class Receiver(ThreadingHTTPServer):
    """Remembers what it got; ``status`` is what it answers."""

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


@pytest.mark.parametrize("clock", ["real", "manual"])
def test_really_delivered(clock: str, receiver: Receiver) -> None:
    routes = {"https://hooks.example.org": receiver.url}
    with running(clock=clock, webhook_route=routes) as emulator, httpx.Client() as http:
        http.headers["Authorization"] = f"Bearer {emulator.live_key}"
        body = {"url": "https://hooks.example.org/in?q=1", "events": ["server.created", "server.terminated"]}
        hook = http.post(f"{emulator.base_url}/webhooks", json=body).json()
        order = {"tariff_id": 1, "os": "debian-12"}
        created = http.post(f"{emulator.base_url}/servers", json=order, headers={"Idempotency-Key": "0123456789abcdef"}).json()
        assert receiver.arrived.wait(10)
        path, headers, raw = receiver.got[0]
        assert path == "/in?q=1"
        assert headers["X-Webhook-Signature"] == webhook_delivery.signature(hook["secret"], int(headers["X-Webhook-Timestamp"]), raw)
        assert json.loads(raw)["data"]["object"]["id"] == created["server"]["id"]

        receiver.status = 302
        answer = http.post(f"{emulator.base_url}/webhooks/{hook['id']}/test").json()
        assert (answer["ok"], answer["status"]) == (False, 302)

        # Failed, and tried again when the clock says so, before the call that moves it answers.
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
    def outcome(target: str) -> webhook_delivery.Outcome:
        return webhook_delivery.send(webhook_delivery.Attempt(target, {}, b"{}"))

    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        port = closed.server_port
    assert outcome(f"http://127.0.0.1:{port}/").error == "the connection failed: ConnectionRefusedError"


def test_a_silent_receiver(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(webhook_delivery, "TIMEOUT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        assert webhook_delivery.send(webhook_delivery.Attempt(url, {}, b"{}")).error == "no answer within 0.05 seconds"


def test_what_cannot_be_sent_as_it_is_holds_up_nothing(receiver: Receiver) -> None:
    """Over real sockets with a real clock: an address beyond ASCII, and one of an origin that nobody listens at."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        nobody = f"http://127.0.0.1:{closed.server_port}"
    routes = {"https://hooks.example.org": receiver.url, "https://dead.example.org": nobody}
    with running(webhook_route=routes) as emulator, httpx.Client(base_url=emulator.base_url) as http:
        http.headers["Authorization"] = f"Bearer {emulator.live_key}"
        hooks = {}
        for path in ("dead.example.org/", "hooks.example.org/%C3%A9", "hooks.example.org/é", "hooks.example.org/good"):
            url = f"https://{path}"
            answer = http.post("/webhooks", json={"url": url, "events": ["invoice.paid"]})
            assert answer.status_code == 201, answer.text
            hooks[url] = answer.json()["id"]
        dead = http.post(f"/webhooks/{hooks['https://dead.example.org/']}/test").json()
        assert (dead["ok"], dead["status"]) == (False, None)
        for number in range(3):
            invoice = http.post(
                "/balance/topup", json={"amount": "10.00", "gateway": "card"}, headers={"Idempotency-Key": "k" * (16 + number)}
            )
            httpx.post(f"{emulator.control_url}/invoices/{invoice.json()['invoice_id']}/confirm", json={}).raise_for_status()
        httpx.post(f"{emulator.control_url}/clock", json={"advance": 0}).raise_for_status()
        paths = [path for path, _, _ in receiver.got]
        assert paths.count("/good") == 3
        assert paths.count("/%C3%A9") == 6
        assert http.get("/me").status_code == 200
