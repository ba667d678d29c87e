"""Nothing a client sends and no state it can reach stops the deliveries or answers without an envelope."""

import contextlib
import json
import logging
import random
import re
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from typing import Any

import httpx
import pytest

from pulumi_hosting.api.operations import OPERATIONS, Operation
from pulumi_hosting.emulator import asgi, tasks, webhook_delivery
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.handlers import HANDLERS
from pulumi_hosting.emulator.rows import Row
from tests.emulator.support import DAY, EmulatorHarness, code
from tests.emulator.test_contract import SCENES

SERVER = {"tariff_id": 1, "os": "debian-12"}
GOOD, ODD = "https://hooks.example.org/good", "https://hooks.example.org/é?q=ö€"


def subscribe(lab: EmulatorHarness, url: str) -> int:
    lab.control("PUT", "/webhook-routes", {"https://hooks.example.org": "http://127.0.0.1:9"})
    id: int = lab.api("POST", "/webhooks", {"url": url, "events": ["server.created", "invoice.paid"]}).json()["id"]
    return id


def still_delivers(lab: EmulatorHarness) -> None:
    """An event that happens now arrives."""
    lab.core.send = lab._receive
    hook = subscribe(lab, "https://hooks.example.org/later")
    seen = len(lab.sent)
    lab.server()
    lab.advance(0)
    assert [attempt.target for attempt in lab.sent[seen:] if attempt.target and attempt.target.endswith("/later")], hook


# --- deliveries ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [UnicodeEncodeError("ascii", "é", 0, 1, "no"), KeyError("x"), RuntimeError("x"), ValueError("x")])
def test_an_attempt_that_raises_is_a_failed_attempt(error: Exception, both: EmulatorHarness) -> None:
    good, bad = subscribe(both, GOOD), subscribe(both, "https://hooks.example.org/bad")

    def send(attempt: webhook_delivery.Attempt) -> webhook_delivery.Outcome:
        if attempt.target and attempt.target.endswith("/bad"):
            raise error
        return both._receive(attempt)

    both.core.send = send
    for _ in range(3):
        both.server()
        both.advance(0)
    assert len(both.sent) == 6  # server.created and invoice.paid of three servers
    rows = both.api("GET", f"/webhooks/{bad}/deliveries").json()["data"]
    assert {(row["status"], row["last_status"], row["attempts"]) for row in rows} == {("pending", None, 1)}
    assert all(type(error).__name__ in row["last_error"] for row in rows)
    answer = both.api("POST", f"/webhooks/{bad}/test")
    assert (answer.status_code, answer.json()["ok"], answer.json()["status"]) == (200, False, None)
    assert both.api("POST", f"/webhooks/{good}/test").json()["ok"] is True


def test_a_delivery_that_cannot_be_prepared_does_not_hold_up_the_others(lab: EmulatorHarness) -> None:
    hook = subscribe(lab, GOOD)
    broken = subscribe(lab, "https://hooks.example.org/broken")
    lab.core.store.subscriptions[broken].url = "https://[broken/"
    lab.server()
    lab.advance(0)
    assert {row["status"] for row in lab.api("GET", f"/webhooks/{hook}/deliveries").json()["data"]} == {"delivered"}
    assert {row["status"] for row in lab.api("GET", f"/webhooks/{broken}/deliveries").json()["data"]} == {"pending"}
    answer = lab.api("POST", f"/webhooks/{broken}/test")
    assert (answer.status_code, answer.json()["ok"]) == (200, False)


def test_an_address_beyond_ascii_is_sent_percent_encoded(both: EmulatorHarness) -> None:
    hook = subscribe(both, ODD)
    assert both.api("GET", f"/webhooks/{hook}").json()["url"] == ODD
    assert both.api("POST", f"/webhooks/{hook}/test").json()["ok"] is True
    assert both.sent[-1].target == "http://127.0.0.1:9/%C3%A9?q=%C3%B6%E2%82%AC"
    already = subscribe(both, "https://hooks.example.org/a%20b/?x=%2F&y=1")
    both.api("POST", f"/webhooks/{already}/test")
    assert both.sent[-1].target == "http://127.0.0.1:9/a%20b/?x=%2F&y=1"


def test_a_reset_while_an_attempt_is_under_way(lab: EmulatorHarness) -> None:
    subscribe(lab, GOOD)
    hooks = []

    def reset_meanwhile(attempt: webhook_delivery.Attempt) -> webhook_delivery.Outcome:
        lab.core.send = lab._receive
        lab.control("POST", "/reset", {})
        hooks.append(subscribe(lab, GOOD))  # the same id in the new world
        return webhook_delivery.Outcome(None, "late", None)

    lab.core.send = reset_meanwhile
    lab.server()
    lab.advance(0)
    shown = lab.api("GET", f"/webhooks/{hooks[0]}").json()
    assert (shown["failures_in_row"], shown["last_delivery_at"]) == (0, None)
    still_delivers(lab)


# --- what happens by itself ------------------------------------------------------------------------------------------------------


def _order_coming(lab: EmulatorHarness) -> Row:
    lab.core.scheduler.provisioning_delay = 60
    lab.fault({"panel_timeout": "active"})
    return lab.core.store.orders[lab.api("POST", "/servers", SERVER).json()["invoice_id"]]


def _server(lab: EmulatorHarness) -> Row:
    return lab.core.store.servers[lab.server()]


def _address_coming(lab: EmulatorHarness) -> Row:
    lab.core.scheduler.ip_delay = 60
    server = lab.server()
    lab.api("POST", f"/servers/{server}/ips")
    return lab.core.store.servers[server]


def _reinstalling(lab: EmulatorHarness) -> Row:
    lab.core.scheduler.provisioning_delay = 60
    server = lab.server()
    lab.api("POST", f"/servers/{server}/actions/reinstall", {"os": "ubuntu-24.04"})
    return lab.core.store.servers[server]


def _sandbox_server(lab: EmulatorHarness) -> Row:
    return lab.core.store.servers[lab.test("POST", "/servers", SERVER).json()["server"]["id"]]


def _unpaid(lab: EmulatorHarness) -> Row:
    server = lab.server()
    lab.api("PATCH", f"/servers/{server}", {"auto_renew": False})
    lab.advance(32 * DAY)
    return lab.core.store.servers[server]


def _invoice(lab: EmulatorHarness) -> Row:
    return lab.core.store.invoices[lab.control("POST", "/invoices", {})["id"]]


def _pending_domain(lab: EmulatorHarness) -> Row:
    lab.fault({"registrar": "pending"})
    lab.register()
    return next(iter(lab.core.store.domains.values()))


def _domain(lab: EmulatorHarness) -> Row:
    return lab.core.store.domains[lab.domain()]


def _renewing_domain(lab: EmulatorHarness) -> Row:
    domain = lab.domain()
    lab.fault({"registrar": "pending"})
    lab.api("POST", f"/domains/{domain}/renew", {"years": 1})
    return lab.core.store.domains[domain]


def _renewed_domain(lab: EmulatorHarness) -> Row:
    domain = lab.domain()
    lab.api("POST", f"/domains/{domain}/renew", {"years": 1})
    return lab.core.store.domains[domain]


def _delivery(lab: EmulatorHarness) -> Row:
    lab.subscribe("invoice.created")
    lab.control("POST", "/invoices", {})
    lab.advance(0)
    return next(iter(lab.core.store.deliveries.values()))


TASKS: dict[str, Callable[[EmulatorHarness], Row]] = {
    "finish_order": _order_coming,
    "assign_address": _address_coming,
    "finish_reinstall": _reinstalling,
    "drop_sandbox_server": _sandbox_server,
    "server_due": _server,
    "terminate_server": _unpaid,
    "invoice_overdue": _invoice,
    "sync_domain": _pending_domain,
    "extend_domain": _renewing_domain,
    "domain_expiring": _domain,
    "domain_renewed": _renewed_domain,
    "domain_due": _domain,
    "forget_delivery": _delivery,
}


def test_every_kind_of_task_is_tried() -> None:
    assert set(TASKS) == set(tasks.TASKS)


@pytest.mark.parametrize("what", tasks.TASKS)
def test_a_task_whose_object_is_gone_does_nothing(what: str, both: EmulatorHarness, caplog: pytest.LogCaptureFixture) -> None:
    row = TASKS[what](both)
    assert what in {task.what for task in both.core.store.tasks.values() if task.object_id == row.id}
    both.core.store.remove(row)
    both.core.scheduler.provisioning_delay = both.core.scheduler.ip_delay = 0
    before = both.control("GET", "/ledger")
    both.advance(400 * DAY)
    assert both.control("GET", "/ledger") == before
    assert not caplog.records
    still_delivers(both)


@pytest.mark.parametrize("what", tasks.TASKS)
def test_a_task_that_fails_is_logged_and_the_next_one_runs(
    what: str, lab: EmulatorHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(store: object, task: object) -> None:
        raise KeyError(1)

    TASKS[what](lab)
    monkeypatch.setitem(tasks.TASKS, what, fail)
    lab.advance(400 * DAY)
    monkeypatch.undo()
    assert what in caplog.text
    still_delivers(lab)


@pytest.mark.parametrize("change", ["reinstall", "address"])
def test_a_sandbox_server_that_ends_while_something_is_on_its_way(change: str, dialect: str) -> None:
    lab = EmulatorHarness(dialect=dialect, provisioning_delay=120, ip_delay=120)
    lab.variant(sandbox_echo="server")
    server = lab.test("POST", "/servers", SERVER).json()["server"]["id"]
    lab.advance(DAY - 30)
    path = f"/servers/{server}/ips" if change == "address" else f"/servers/{server}/actions/reinstall"
    assert lab.test("POST", path, None if change == "address" else {"os": "debian-12"}).is_success
    lab.advance(200)
    assert code(lab.test("GET", f"/servers/{server}")) == "not_found"
    assert not [task for task in lab.core.store.tasks.values() if task.object_id == server]
    lab.core.scheduler.provisioning_delay = lab.core.scheduler.ip_delay = 0
    still_delivers(lab)


# --- whatever else goes wrong ----------------------------------------------------------------------------------------------------


def test_a_bug_of_a_handler_is_a_500_in_the_envelope(
    both: EmulatorHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(call: object) -> None:
        raise KeyError("bug")

    monkeypatch.setattr("pulumi_hosting.emulator.middleware.HANDLERS", {**HANDLERS, "get_me": fail})
    response = both.api("GET", "/me", headers={"X-Request-ID": "mine"})
    assert (response.status_code, code(response), response.headers["X-Request-ID"]) == (500, "server_error", "mine")
    assert "mine" in caplog.text


def test_an_answer_that_cannot_be_written_is_a_500_in_the_envelope(both: EmulatorHarness, caplog: pytest.LogCaptureFixture) -> None:
    """Half a surrogate pair is no text that JSON can carry."""
    both.fault({"patch": {"hint": ""}})
    assert both.http.post("/_control/faults", content=rb'{"action": {"patch": {"hint": "\ud800"}}}').status_code == 400
    next(iter(both.core.store.faults.values())).action = {"patch": {"hint": "\ud800"}}
    response = both.api("GET", "/me")
    assert (response.status_code, code(response)) == (500, "server_error")
    assert response.headers["X-Request-ID"] in caplog.text
    assert both.api("GET", "/me").status_code == 200
    assert both.http.get("/_control/requests").status_code == 200


def test_a_failure_of_a_control_call_is_an_error_in_its_form(
    lab: EmulatorHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: object) -> None:
        raise KeyError("bug")

    monkeypatch.setattr(lab.core, "reset", fail)
    assert "KeyError" in lab.control("POST", "/reset", {}, status=500)["error"]
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
def test_control_bodies_that_make_no_sense(method: str, path: str, body: dict[str, Any], lab: EmulatorHarness) -> None:
    path = path.format(hook=subscribe(lab, GOOD), domain=lab.domain(), server=lab.server())
    # allow_nan: as a careless client would write it.
    response = lab.http.request(method, f"/_control{path}", content=json.dumps(body))
    assert (response.status_code, set(response.json())) == (400, {"error"}), response.text
    every_read_works(lab)


@pytest.mark.parametrize("raw", [b"[" * 20_000, b'{"a":' * 10_000, b"\xff", b'{"advance": ' + b"9" * 5000 + b"}"])
def test_bodies_that_no_parser_likes(raw: bytes, lab: EmulatorHarness) -> None:
    assert lab.http.post("/_control/clock", content=raw).status_code == 400
    assert lab.api("POST", "/servers", content=raw, headers={"Content-Type": "application/json"}).status_code == 400
    assert lab.http.get("/_control/requests").status_code == 200
    every_read_works(lab)


def test_the_clock_ends_before_time_does(lab: EmulatorHarness) -> None:
    lab.server()
    century = 100 * 365 * DAY
    while True:
        response = lab.http.post("/_control/clock", json={"advance": century})
        if response.status_code != 200:
            break
    assert (response.status_code, set(response.json())) == (400, {"error"})
    lab.control("PATCH", "/account", {"balance": "1000.00"})
    every_read_works(lab)
    still_delivers(lab)


READS = ("/me", "/account", "/balance", "/transactions", "/invoices", "/servers", "/orders", "/ssh-keys", "/domains", "/keys", "/webhooks")


def every_read_works(lab: EmulatorHarness) -> None:
    """Also of what the control interface made."""
    key = lab.new_key(rate_per_minute=1000)
    assert {path: status for path in READS if (status := lab.call(key, "GET", path).status_code) != 200} == {}
    for path in ("/", "/objects", "/ledger", "/requests"):
        lab.control("GET", path)


# --- with a real clock -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def delivery_loop() -> Iterator[tuple[Core, threading.Event]]:
    """A core with a real clock and its courier; the event is set by an attempt at ``/good``."""
    import asyncio

    core, arrived = Core(clock=Clock()), threading.Event()
    core.announce("http://emulator/v1", "http://emulator/_control", 1)

    def send(attempt: webhook_delivery.Attempt) -> webhook_delivery.Outcome:
        if attempt.target is None or not attempt.target.endswith("/good"):
            raise UnicodeEncodeError("ascii", "é", 0, 1, "no")
        arrived.set()
        return webhook_delivery.Outcome(200, None, "")

    core.send = send
    loop = asyncio.new_event_loop()

    async def run() -> None:
        woken = asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(woken.set)

        core.wake = wake
        await asyncio.gather(asyncio.create_task(asgi.delivery_loop(core, woken)))

    def serve() -> None:
        asyncio.set_event_loop(loop)
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(run())

    thread = threading.Thread(target=serve)
    thread.start()
    yield core, arrived
    loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
    thread.join()
    loop.close()


def test_the_courier_survives_whatever_is_raised(
    delivery_loop: tuple[Core, threading.Event], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from pulumi_hosting.emulator.transport import Transport

    caplog.set_level(logging.ERROR)
    core, arrived = delivery_loop
    http = httpx.Client(transport=Transport(core), base_url="http://emulator/v1")
    http.headers["Authorization"] = f"Bearer {core.ready_line['live_key']}"
    core.store.service.routes = {"https://hooks.example.org": "http://127.0.0.1:9"}
    for path in ("bad", "good"):
        http.post("/webhooks", json={"url": f"https://hooks.example.org/{path}", "events": ["server.created"]}).raise_for_status()
    deliver = core.deliver_due
    failed = threading.Event()

    def fail_once() -> None:
        monkeypatch.setattr(core, "deliver_due", deliver)
        failed.set()
        raise RuntimeError("a bug of the courier")

    monkeypatch.setattr(core, "deliver_due", fail_once)
    http.post("/servers", json=SERVER, headers={"Idempotency-Key": "0123456789abcdef"}).raise_for_status()
    assert failed.wait(10)
    core.wake()
    assert arrived.wait(10)
    arrived.clear()
    http.post("/servers", json=SERVER, headers={"Idempotency-Key": "0123456789abcdeg"}).raise_for_status()
    assert arrived.wait(10)
    assert "a bug of the courier" in caplog.text


# --- states that calls lead to ---------------------------------------------------------------------------------------------------

FAULTS: tuple[dict[str, Any], ...] = (
    {"refunded": 502},
    {"panel_timeout": "active"},
    {"panel_timeout": "cancelled"},
    {"panel_timeout": "failed"},
    {"registrar": "pending"},
)


def edits(lab: EmulatorHarness, dice: random.Random) -> tuple[str, str, Any]:
    """A control call on something that exists."""
    objects = lab.control("GET", "/objects")
    calls: list[tuple[str, str, Any]] = [
        ("POST", "/clock", {"advance": dice.choice([0, 1, 59.5, 3600, DAY, 7 * DAY, 31 * DAY, 400 * DAY])}),
        ("PATCH", "/account", {"balance": dice.choice(["0.00", "1.00", "1000.00", "100000.00"])}),
        ("PATCH", "/account", {"group_discount_percent": dice.choice(["0", "33.3", "100"])}),
        ("PATCH", "/tariffs/1", {"price_monthly": dice.choice(["0.00", "5.00", "999.99"])}),
        ("PATCH", "/service", {"readings": {"sandbox_echo": dice.choice(["none", "server"])}}),
        ("PATCH", "/service", {"readings": {"deleted_servers": dice.choice(["gone", "listed"])}}),
    ]
    for row in objects["servers"]:
        status = dice.choice(["active", "stopped", "suspended", "pending_cancel", "cancelled", "terminated"])
        calls += [("DELETE", f"/servers/{row['id']}", None), ("PATCH", f"/servers/{row['id']}", {"status": status})]
        calls.append(("PATCH", f"/servers/{row['id']}", {"blocked": dice.random() < 0.3, "auto_renew": dice.random() < 0.5}))
    for row in objects["domains"]:
        status = dice.choice(["pending", "active", "expired", "transfer_pending", "cancelled"])
        calls += [("DELETE", f"/domains/{row['id']}", None), ("PATCH", f"/domains/{row['id']}", {"status": status})]
    for row in objects["addresses"]:
        calls.append(("DELETE", f"/servers/{row['server_id']}/ips/{row['id']}", None))
    calls += [("DELETE", f"/webhooks/{row['id']}", None) for row in objects["subscriptions"]]
    calls += [("DELETE", f"/ssh-keys/{row['id']}", None) for row in objects["ssh_keys"]]
    calls += [("POST", f"/invoices/{row['id']}/confirm", {}) for row in objects["invoices"] if row["status"] == "not_paid"]
    return dice.choice(calls)


@cache
def sample_bodies(dialect: str) -> dict[str, str]:
    """A body that each operation takes."""
    bodies = {}
    for operation in OPERATIONS:
        lab = EmulatorHarness(dialect=dialect)
        SCENES[operation.id](lab)
        bodies[operation.id] = lab.core.store.requests[-1].body
    return bodies


def path_to(lab: EmulatorHarness, operation: Operation, dice: random.Random) -> str:
    """The path of an operation, with ids of things that exist where there are any."""
    store = lab.core.store
    tables: dict[str, dict[int, Any]] = {
        "server_id": store.servers,
        "ip_id": store.addresses,
        "invoice_id": store.invoices,
        "domain_id": store.domains,
        "webhook_id": store.subscriptions,
        "delivery_id": store.deliveries,
        "tariff_id": store.tariffs,
        "key_id": store.ssh_keys if "ssh" in operation.path else store.keys,
    }
    return re.sub(r"\{(\w+)\}", lambda found: str(dice.choice([*tables[found[1]], 7])), operation.path)


@pytest.mark.parametrize("seed", range(5))
def test_no_state_leads_to_a_500_or_stops_the_deliveries(seed: int, dialect: str, caplog: pytest.LogCaptureFixture) -> None:
    """Random operations, simulated ones among them, on whatever exists, while staff edits it, time passes and things go wrong."""
    dice = random.Random(seed)  # noqa: S311  # a test
    lab = EmulatorHarness(dialect=dialect, provisioning_delay=dice.choice([0, 600]), ip_delay=dice.choice([0, 600]))
    bodies = sample_bodies(dialect)
    subscribe(lab, GOOD)
    for id in ("add_server_ip", "create_server", "register_domain", "create_ssh_key", "pay_invoice", "redeliver_webhook"):
        SCENES[id](lab)
    lab.order(tariff_id=3, hours=1)
    lab.test("POST", "/servers", SERVER)
    done: set[str] = set()
    for _ in range(100):
        if dice.random() < 0.2:
            method, path, body = edits(lab, dice)
            assert lab.http.request(method, f"/_control{path}", json=body).status_code < 500, path
            continue
        if dice.random() < 0.2:
            lab.fault(dice.choice(FAULTS))
        lab.receiver_status = dice.choice([200, 500, None])
        operation = dice.choice([row for row in OPERATIONS if row.id != "revoke_api_key"])
        options: dict[str, Any] = {"content": bodies[operation.id], "headers": {"Content-Type": "application/json"}}
        answer = lab.call(
            dice.choice([lab.live_key, lab.live_key, lab.test_key]),
            operation.method,
            path_to(lab, operation, dice),
            **(options if bodies[operation.id] else {}),
        )
        assert answer.status_code < 500 or answer.status_code == 502, (operation.id, answer.text)
        done |= {operation.id} if answer.is_success else set()
        lab.advance(dice.choice([0, 0, 61, 601, DAY]))
    assert not caplog.records
    assert len(done) > 15
    total = sum(Decimal(row["amount"]) * (1 if row["direction"] == "credit" else -1) for row in lab.control("GET", "/ledger"))
    assert Decimal(lab.control("GET", "/objects")["accounts"][0]["balance"]) == 1000 + total
    lab.control("DELETE", "/faults")
    lab.control("PATCH", "/account", {"balance": "1000.00"})
    lab.control("PATCH", "/tariffs/1", {"price_monthly": "5.00"})
    lab.core.scheduler.provisioning_delay, lab.receiver_status = 0, 200
    every_read_works(lab)
    still_delivers(lab)
