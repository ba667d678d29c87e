"""A delivery that fails, raises or cannot be sent does not block other deliveries."""

import contextlib
import logging
import threading
from collections.abc import Iterator

import httpx
import pytest

from pulumi_hosting.emulator import asgi, webhook_delivery
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.core import Core
from tests.emulator.support import GOOD, ODD, SERVER, assert_deliveries_work, subscribe
from tests.support.account import Account
from tests.support.waiting import HANG_SECONDS


@pytest.mark.parametrize(
    "error", [UnicodeEncodeError("ascii", "é", 0, 1, "no"), KeyError("x"), RuntimeError("x"), ValueError("x")]
)
def test_an_attempt_that_raises_counts_as_failed(error: Exception, any_dialect: Account) -> None:
    good, bad = subscribe(any_dialect, GOOD), subscribe(any_dialect, "https://hooks.example.org/bad")

    def send(attempt: webhook_delivery.Attempt) -> webhook_delivery.AttemptOutcome:
        if attempt.target and attempt.target.endswith("/bad"):
            raise error
        return any_dialect.receive(attempt)

    any_dialect.core.send = send
    for _ in range(3):
        any_dialect.server()
        any_dialect.advance(0)
    assert len(any_dialect.sent) == 6  # server.created and invoice.paid of three servers
    rows = any_dialect.api("GET", f"/webhooks/{bad}/deliveries").json()["data"]
    assert {(row["status"], row["last_status"], row["attempts"]) for row in rows} == {("pending", None, 1)}
    assert all(type(error).__name__ in row["last_error"] for row in rows)
    answer = any_dialect.api("POST", f"/webhooks/{bad}/test")
    assert (answer.status_code, answer.json()["ok"], answer.json()["status"]) == (200, False, None)
    assert any_dialect.api("POST", f"/webhooks/{good}/test").json()["ok"] is True


def test_a_delivery_that_cannot_be_prepared_does_not_block_others(account: Account) -> None:
    hook = subscribe(account, GOOD)
    broken = subscribe(account, "https://hooks.example.org/broken")
    account.core.store.subscriptions[broken].url = "https://[broken/"
    account.server()
    account.advance(0)
    assert {row["status"] for row in account.api("GET", f"/webhooks/{hook}/deliveries").json()["data"]} == {
        "delivered"
    }
    assert {row["status"] for row in account.api("GET", f"/webhooks/{broken}/deliveries").json()["data"]} == {
        "pending"
    }
    answer = account.api("POST", f"/webhooks/{broken}/test")
    assert (answer.status_code, answer.json()["ok"]) == (200, False)


def test_a_url_beyond_ascii_is_percent_encoded(any_dialect: Account) -> None:
    hook = subscribe(any_dialect, ODD)
    assert any_dialect.api("GET", f"/webhooks/{hook}").json()["url"] == ODD
    assert any_dialect.api("POST", f"/webhooks/{hook}/test").json()["ok"] is True
    assert any_dialect.sent[-1].target == "http://127.0.0.1:9/%C3%A9?q=%C3%B6%E2%82%AC"
    already = subscribe(any_dialect, "https://hooks.example.org/a%20b/?x=%2F&y=1")
    any_dialect.api("POST", f"/webhooks/{already}/test")
    assert any_dialect.sent[-1].target == "http://127.0.0.1:9/a%20b/?x=%2F&y=1"


def test_a_reset_during_an_attempt(account: Account) -> None:
    subscribe(account, GOOD)
    hooks = []

    def reset_meanwhile(attempt: webhook_delivery.Attempt) -> webhook_delivery.AttemptOutcome:
        account.core.send = account.receive
        account.control("POST", "/reset", {})
        hooks.append(subscribe(account, GOOD))  # the same id in the new store
        return webhook_delivery.AttemptOutcome(None, "late", None)

    account.core.send = reset_meanwhile
    account.server()
    account.advance(0)
    shown = account.api("GET", f"/webhooks/{hooks[0]}").json()
    assert (shown["failures_in_row"], shown["last_delivery_at"]) == (0, None)
    assert_deliveries_work(account)


# --- with a real clock ------------------------------------------------------------------------------------


@pytest.fixture
def delivery_loop() -> Iterator[tuple[Core, threading.Event]]:
    """A core with a real clock and a delivery loop; the event is set by an attempt at ``/good``."""
    import asyncio

    core, arrived = Core(clock=Clock()), threading.Event()
    core.announce("http://emulator/v1", "http://emulator/_control", 1)

    def send(attempt: webhook_delivery.Attempt) -> webhook_delivery.AttemptOutcome:
        if attempt.target is None or not attempt.target.endswith("/good"):
            raise UnicodeEncodeError("ascii", "é", 0, 1, "no")
        arrived.set()
        return webhook_delivery.AttemptOutcome(200, None, "")

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


def test_the_delivery_loop_survives_errors(
    delivery_loop: tuple[Core, threading.Event],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from pulumi_hosting.emulator.in_process_transport import Transport

    caplog.set_level(logging.ERROR)
    core, arrived = delivery_loop
    http = httpx.Client(transport=Transport(core), base_url="http://emulator/v1")
    http.headers["Authorization"] = f"Bearer {core.ready_line['live_key']}"
    core.store.service.routes = {"https://hooks.example.org": "http://127.0.0.1:9"}
    for path in ("bad", "good"):
        http.post(
            "/webhooks", json={"url": f"https://hooks.example.org/{path}", "events": ["server.created"]}
        ).raise_for_status()
    deliver = core.deliver_due
    failed = threading.Event()

    def fail_once() -> None:
        monkeypatch.setattr(core, "deliver_due", deliver)
        failed.set()
        raise RuntimeError("an error in the delivery loop")

    monkeypatch.setattr(core, "deliver_due", fail_once)
    http.post("/servers", json=SERVER, headers={"Idempotency-Key": "0123456789abcdef"}).raise_for_status()
    assert failed.wait(HANG_SECONDS)
    core.wake()
    assert arrived.wait(HANG_SECONDS)
    arrived.clear()
    http.post("/servers", json=SERVER, headers={"Idempotency-Key": "0123456789abcdeg"}).raise_for_status()
    assert arrived.wait(HANG_SECONDS)
    assert "an error in the delivery loop" in caplog.text
