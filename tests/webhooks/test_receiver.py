"""A receiver as a whole, over HTTP: whom it trusts, and that each event is handed over once, and not less."""

import asyncio
import gzip
import json
import socket
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.webhooks.delivery_store import EventStore
from pulumi_hosting.webhooks.receiver import Limits, ReceivedEvent, Receiver, ReceiverOptions
from tests.webhooks.support import (
    OTHER_SECRET,
    SECRET,
    Events,
    Receivers,
    body,
    no_pause,
    signed,
    until,
)


def pending(state_file: Path) -> list[str]:
    with closing(sqlite3.connect(state_file)) as db:
        return [id for (id,) in db.execute("SELECT id FROM events WHERE done_at IS NULL ORDER BY number")]


# --- whom it trusts


def test_only_trusted_deliveries_are_kept(receivers: Receivers) -> None:
    raw, other = body("evt_1"), body("evt_2")
    good = signed(raw)

    def without(name: str) -> dict[str, str]:
        return {key: value for key, value in good.items() if key != name}

    untrusted: dict[str, tuple[bytes, Mapping[str, str]]] = {
        "unsigned": (raw, {}),
        "signed with another secret": (raw, signed(raw, "whsec_unknown")),
        "replayed": (raw, signed(raw, age=301)),
        "from the future": (raw, signed(raw, age=-302)),
        "another body": (other, good),
        "changed by a space": (raw + b" ", good),
        "another id": (raw, {**good, "X-Webhook-Id": "evt_9"}),
        "another type": (raw, {**good, "X-Webhook-Event": "ping"}),
        "no time": (raw, without("X-Webhook-Timestamp")),
        "no signature": (raw, without("X-Webhook-Signature")),
        "another scheme": (
            raw,
            {**good, "X-Webhook-Signature": good["X-Webhook-Signature"].replace("v1=", "v2=")},
        ),
        "compressed": (gzip.compress(raw), {**good, "Content-Encoding": "gzip"}),
        "empty": (b"", good),
    }

    async def play() -> None:
        async with receivers.run(secret=[OTHER_SECRET, SECRET]) as running:
            answers = {
                name: await running.http.post("/hosting", content=sent, headers=headers)
                for name, (sent, headers) in untrusted.items()
            }
            assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(
                untrusted, 401
            )
            # the same for all: a sender learns nothing
            assert {answer.text for answer in answers.values()} == {"401\n"}
            assert await running.deliver(raw, path="/other") == 404
            largest = raw + b" " * (64 * 1024 - len(raw))
            assert await running.deliver(largest + b" ") == 413
            assert running.events.offered == []
            assert await running.deliver(largest) == 200
            assert await running.deliver(other, signed(other, OTHER_SECRET, age=240)) == 200
            assert await running.events.ids(2) == ["evt_1", "evt_2"]

    asyncio.run(play())
    # One line for all of them.
    assert [line for line in receivers.lines() if "refused" in line] == [
        "refused a delivery from 127.0.0.1: X-Webhook-Timestamp is missing or not a number of seconds"
    ]
    receivers.assert_no_secret_is_logged()


def test_secrets_rotate_without_a_restart(receivers: Receivers, tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text(f"{SECRET}\n")

    async def play() -> None:
        async with receivers.run(secret_file=str(file)) as running:
            assert await running.deliver(body("evt_1")) == 200
            file.write_text(f"{OTHER_SECRET}\n\n")
            assert await running.deliver(body("evt_2")) == 401
            assert await running.deliver(body("evt_2"), signed(body("evt_2"), OTHER_SECRET)) == 200
            file.unlink()
            # Ours to fix: the service delivers it again.
            assert await running.deliver(body("evt_3"), signed(body("evt_3"), OTHER_SECRET)) == 503
            assert await running.events.ids(2) == ["evt_1", "evt_2"]

    asyncio.run(play())
    receivers.assert_no_secret_is_logged()


def test_the_secret_of_the_environment(receivers: Receivers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTING_WEBHOOK_SECRET", f"{OTHER_SECRET}, {SECRET}")

    async def play() -> None:
        async with receivers.run(secret=None) as running:
            assert await running.deliver(body("evt_1")) == 200

    asyncio.run(play())


def test_it_answers_https(receivers: Receivers, scheme: dict[str, Any]) -> None:
    async def play() -> None:
        async with receivers.run(**scheme) as running:
            assert running.origin.startswith("https://" if scheme else "http://127.0.0.1:")
            assert await running.deliver(body("evt_1")) == 200
            assert await running.events.ids() == ["evt_1"]

    asyncio.run(play())


# --- once, and not less


def test_each_event_once_across_restarts(receivers: Receivers, state_file: Path) -> None:
    raw = body("evt_1", "server.suspended")

    async def first() -> None:
        async with receivers.run() as running:
            assert [await running.deliver(raw) for _ in range(3)] == [200] * 3
            (received,) = await running.events.take()
            assert received.payload == json.loads(raw)
            assert (received.event.type, received.event.object, received.via) == (
                "server.suspended",
                {"id": 11},
                "delivery",
            )
            assert (received.headers["X-Webhook-Id"], received.headers["X-Webhook-Event"]) == (
                "evt_1",
                "server.suspended",
            )
            assert "X-Webhook-Signature" not in received.headers
            assert received.received_at.tzinfo is not None
            assert await running.deliver(body("evt_2")) == 200
            assert await running.events.ids() == ["evt_2"]

    async def second() -> None:
        async with receivers.run() as running:
            assert await running.deliver(raw) == 200
            assert await running.deliver(body("evt_3")) == 200
            assert await running.events.ids() == ["evt_3"]
            assert running.events.offered == ["evt_3"]

    asyncio.run(first())
    assert {path.stat().st_mode & 0o777 for path in state_file.parent.iterdir()} == {0o600}
    assert state_file.parent.stat().st_mode & 0o777 == 0o700
    asyncio.run(second())
    # Only the id of an acknowledged event stays.
    with closing(sqlite3.connect(state_file)) as db:
        rows = db.execute("SELECT id, body, headers FROM events ORDER BY number").fetchall()
    assert rows == [("evt_1", None, None), ("evt_2", None, None), ("evt_3", None, None)]


def test_an_event_comes_with_the_headers_that_tell_of_its_delivery(receivers: Receivers) -> None:
    raw = body("evt_1")
    sent = {name.lower(): value for name, value in signed(raw).items()}
    sent |= {"content-type": "application/json", "user-agent": "service/1", "x-other": "not shown"}

    async def play() -> None:
        before = datetime.now(UTC)
        async with receivers.run() as running:
            assert await running.deliver(raw, sent) == 200
            (received,) = await running.events.take()
        assert received.headers == {
            "X-Webhook-Id": "evt_1",
            "X-Webhook-Event": "server.created",
            "X-Webhook-Timestamp": sent["x-webhook-timestamp"],
            "User-Agent": "service/1",
            "Content-Type": "application/json",
        }
        assert before <= received.received_at <= datetime.now(UTC)
        assert received.received_at.tzinfo is UTC

    asyncio.run(play())


def test_its_parts_are_those_that_are_given(receivers: Receivers) -> None:
    """No time to answer in, and the one thread of the store."""
    threads: list[str] = []

    def open_store(path: Path) -> EventStore:
        threads.append(threading.current_thread().name)
        return EventStore(path)

    async def play() -> None:
        parts = {"limits": Limits(answer_seconds=0.0), "open_store": open_store}
        async with receivers.run(parts=parts) as running:
            assert await running.deliver(body("evt_1")) == 503

    asyncio.run(play())
    assert threads == ["pulumi-hosting-webhooks_0"]


def test_how_old_a_delivery_may_be_is_an_option(receivers: Receivers) -> None:
    raw = body("evt_1")

    async def play() -> None:
        async with receivers.run(tolerance=100) as running:
            assert await running.deliver(raw, signed(raw, age=200)) == 401
            assert await running.deliver(raw, signed(raw, age=50)) == 200

    asyncio.run(play())


def test_its_server_warns_in_the_same_log(receivers: Receivers) -> None:
    async def play() -> None:
        async with receivers.run(parts={"limits": Limits(connections=1)}) as running:
            address = running.http.base_url
            _, silent = await asyncio.open_connection(address.host, address.port)
            with closing(silent):
                assert await running.deliver(body("evt_1")) == 200

    asyncio.run(play())
    assert "1 connections are open: closed the one that was silent longest" in receivers.lines()


def test_a_handler_that_blocks_holds_no_answer_and_loses_nothing(receivers: Receivers) -> None:
    async def blocked() -> None:
        async with receivers.run() as running:
            assert [await running.deliver(body(f"evt_{number}")) for number in range(1, 5)] == [200] * 4
            # The first fits into the handler's queue; the second is offered once the first is acknowledged.
            await until(lambda: running.events.offered == ["evt_1", "evt_2"])

    async def later() -> None:
        async with receivers.run() as running:
            assert await running.deliver(body("evt_3")) == 200
            assert await running.events.ids(3) == ["evt_2", "evt_3", "evt_4"]

    async def at_last() -> None:
        async with receivers.run() as running:
            assert await running.deliver(body("evt_5")) == 200
            assert await running.events.ids() == ["evt_5"]

    asyncio.run(blocked())
    asyncio.run(later())
    asyncio.run(at_last())


def test_events_that_are_acknowledged_later(receivers: Receivers) -> None:
    async def unconfirmed() -> None:
        async with receivers.run(acknowledge=False) as running:
            for number in (1, 2, 3):
                assert await running.deliver(body(f"evt_{number}")) == 200
            await running.events.take(3)
            await running.receiver.acknowledge("evt_2")
            await running.receiver.acknowledge("evt_1")
            await running.receiver.acknowledge("evt_unknown")

    async def again() -> None:
        async with receivers.run(acknowledge=False) as running:
            assert await running.deliver(body("evt_4")) == 200
            assert await running.events.ids(2) == ["evt_3", "evt_4"]

    asyncio.run(unconfirmed())
    asyncio.run(again())


def test_a_handler_that_fails_ends_nothing(receivers: Receivers) -> None:
    class Failing(Events):
        async def handle(self, received: ReceivedEvent) -> None:
            if received.event.id == "evt_1":
                raise KeyError(SECRET)
            await super().handle(received)

    async def first() -> None:
        async with receivers.run(Failing()) as running:
            assert [await running.deliver(body(id)) for id in ("evt_1", "evt_2")] == [200, 200]
            assert await running.events.ids() == ["evt_2"]

    async def second() -> None:
        async with receivers.run() as running:
            assert await running.events.ids() == ["evt_1"]

    asyncio.run(first())
    assert (
        "event evt_1 was not handled (KeyError); it is handed over again at the next start"
    ) in receivers.lines()
    receivers.assert_no_secret_is_logged()
    asyncio.run(second())


def test_a_full_store_refuses_new_events(receivers: Receivers) -> None:
    async def play() -> None:
        async with receivers.run(
            parts={"open_store": lambda path: EventStore(path, max_pending=2)}
        ) as running:
            assert [await running.deliver(body(id)) for id in ("evt_1", "evt_2")] == [200, 200]
            await until(lambda: running.events.offered == ["evt_1", "evt_2"])
            assert [await running.deliver(body(id)) for id in ("evt_3", "evt_4")] == [200, 503]
            assert await running.events.ids(3) == ["evt_1", "evt_2", "evt_3"]
            assert await running.deliver(body("evt_4")) == 200

    asyncio.run(play())
    assert "could not keep a delivery, the service will try again: 2 events are pending" in receivers.lines()


def test_a_disk_that_fails_loses_nothing_and_ends_nothing(receivers: Receivers, state_file: Path) -> None:
    """A delivery that cannot be kept is not acknowledged to the service; a mark that cannot be written is
    written later."""

    class Failing(EventStore):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            for name in ("add", "next_pending", "acknowledge", "forget_old"):
                setattr(self, name, failing_once(getattr(self, name)))

    def failing_once(method: Callable[..., Any]) -> Callable[..., Any]:
        failures = iter([sqlite3.OperationalError("disk is\nfull")])

        def fails(*arguments: Any) -> Any:
            for failure in failures:
                raise failure
            return method(*arguments)

        return fails

    async def play() -> None:
        async with receivers.run(parts={"open_store": Failing, "sleep": no_pause}) as running:
            assert [await running.deliver(body("evt_1")) for _ in range(2)] == [503, 200]
            assert await running.deliver(body("evt_2")) == 200
            assert await running.events.ids(2) == ["evt_1", "evt_2"]

    asyncio.run(play())
    assert "could not keep a delivery, the service will try again: disk is full" in receivers.lines()
    assert "cannot read the store of events: disk is full; trying again in 1 s" in receivers.lines()
    # the mark, and the events of last month
    assert (
        receivers.lines().count("cannot write to the store of events: disk is full; trying again in 1 s") == 2
    )
    assert pending(state_file) == []


def test_a_port_and_a_state_file_in_use_are_waited_for(receivers: Receivers, state_file: Path) -> None:
    def start(port: int) -> "asyncio.Task[None]":
        options = ReceiverOptions.from_values({"port": port, "secret": SECRET, "state_file": str(state_file)})
        return asyncio.create_task(Receiver(options, sleep=no_pause).run(Events().handle))

    def logged(text: str) -> bool:
        return any(text in line for line in receivers.lines())

    async def play() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            first = start(taken.getsockname()[1])
            await until(lambda: logged("cannot listen: "))
            second = start(0)
            await until(
                lambda: logged(
                    f"cannot open the store of events: another process uses {state_file}; trying again in 2 s"
                )
            )
        await until(receivers.listening_on)
        first.cancel()
        lines = len(receivers.log.records)
        await until(lambda: receivers.listening_on(lines))
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)

    asyncio.run(play())


def test_a_state_file_of_another_program(receivers: Receivers, state_file: Path) -> None:
    async def play() -> None:
        async with receivers.run():
            pytest.fail("it started")

    state_file.parent.mkdir()
    state_file.write_text("not a database, but long enough to be read as one " * 100)
    with pytest.raises(ConfigurationError, match="state_file is not the state file of a receiver"):
        asyncio.run(play())
