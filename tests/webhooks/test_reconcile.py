"""Events that never arrived: fetched from the emulator's log of deliveries, in this process."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.api.models import Delivery
from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.in_process_transport import Transport
from pulumi_hosting.emulator.webhook_delivery import send
from pulumi_hosting.webhooks.receiver import ReceiverOptions
from tests.support.account import Account
from tests.webhooks.support import Receivers, body, no_pause, signed, until

ORIGIN = "https://hooks.example.org"


class Subscriber:
    """An account with a subscription. Its deliveries go where ``route`` says, over HTTP; without a route they
    fail."""

    def __init__(self, dialect: str) -> None:
        self.account = Account(Clock(), dialect=dialect)  # in real time, as the receiver
        self.account.core.send = send
        made = self.client().webhooks.create(url=f"{ORIGIN}/hosting", events=["*"])
        self.id, self.secret = made.id, made.secret.reveal()
        self.servers = 0

    def client(self) -> Client:
        return Client(self.account.live_key, "http://127.0.0.1/v1", transport=Transport(self.account.core))

    def route(self, url: str | None) -> None:
        self.account.control("PUT", "/webhook-routes", {} if url is None else {ORIGIN: url})

    def order(self) -> str:
        """Order a server; the id of the event that says so."""
        self.servers += 1
        self.account.order(name=f"web-{self.servers}")
        self.account.advance(0)
        return next(row.event_id for row in self.deliveries() if row.event_type == "server.created") or ""

    def deliveries(self) -> list[Delivery]:
        return list(self.client().webhooks.deliveries.list(self.id))

    @property
    def lists_asked(self) -> int:
        """How often a client asked for the list of deliveries."""
        return sum("/deliveries" in path for path in self.account.requested("GET"))

    def options(self) -> dict[str, Any]:
        """What a receiver of this account's events is started with."""
        return {
            "secret": self.secret,
            "subscription": self.id,
            "parts": {"client": self.client(), "sleep": no_pause},
        }


@pytest.fixture(params=["spec", "live"])
def subscriber(request: pytest.FixtureRequest) -> Subscriber:
    return Subscriber(request.param)


def test_events_missed_while_down_are_handed_over_once(subscriber: Subscriber, receivers: Receivers) -> None:
    """They come from the log of deliveries. When the service delivers one later all the same, it is not
    handed over again."""
    missed = subscriber.order()

    async def first() -> None:
        async with receivers.run(**subscriber.options()) as running:
            fetched = (await running.events.take_through(missed))[-1]
            assert (fetched.via, fetched.event.type) == ("reconciliation", "server.created")
            assert fetched.headers == {"X-Webhook-Id": missed, "X-Webhook-Event": "server.created"}
            subscriber.route(running.origin)
            # The service tries again within the minute: accepted, known, not handed over again.
            await asyncio.to_thread(subscriber.account.advance, 61)
            assert {row.status for row in await asyncio.to_thread(subscriber.deliveries)} == {"delivered"}
            fresh = await asyncio.to_thread(subscriber.order)
            events = await running.events.take_through(fresh)
            assert {received.via for received in events} == {"delivery"}
            # Fetched or delivered, an event has the same fields.
            delivered = events[-1]
            assert set(fetched.payload) == set(delivered.payload)
            assert set(fetched.event.object) == set(delivered.event.object)

    async def second() -> None:
        subscriber.route(None)
        known = {row.event_id for row in await asyncio.to_thread(subscriber.deliveries)}
        lost = await asyncio.to_thread(subscriber.order)
        unknown = {row.event_id for row in await asyncio.to_thread(subscriber.deliveries)} - known
        async with receivers.run(**subscriber.options()) as running:
            events = await running.events.take_through(lost)
            assert [received.event.id for received in events if received.event.type == "server.created"] == [
                lost
            ]
            # What is known is not asked for again.
            told = f"{len(unknown)} events were missed and are handed over now"
            await until(lambda: [line for line in receivers.lines() if "events were missed" in line][1:])
            assert receivers.lines()[-1] == told

    asyncio.run(first())
    asyncio.run(second())
    assert subscriber.account.live_key not in receivers.log.text
    assert subscriber.secret not in receivers.log.text


def test_dead_deliveries_count_and_what_another_receiver_accepted_does_not(
    subscriber: Subscriber, receivers: Receivers, tmp_path: Path
) -> None:
    async def play() -> None:
        async with receivers.run(
            secret=subscriber.secret, state_file=str(tmp_path / "elsewhere")
        ) as elsewhere:
            subscriber.route(elsewhere.origin)
            handled = await asyncio.to_thread(subscriber.order)
            await elsewhere.events.take_through(handled)
        subscriber.route(None)
        lost = await asyncio.to_thread(subscriber.order)
        await asyncio.to_thread(subscriber.account.advance, 86400)  # every attempt has failed
        async with receivers.run(**subscriber.options()) as running:
            events = await running.events.take_through(lost)
            assert handled not in [received.event.id for received in events]
        # With lookback 0 every missed event is too old.
        fresh, asked = body("evt_fresh"), subscriber.lists_asked
        async with receivers.run(
            **subscriber.options(), lookback=0, state_file=str(tmp_path / "young")
        ) as running:
            await until(lambda: subscriber.lists_asked > asked)
            assert await running.deliver(fresh, signed(fresh, subscriber.secret)) == 200
            assert await running.events.ids() == ["evt_fresh"]

    asyncio.run(play())
    assert len([line for line in receivers.lines() if "events were missed" in line]) == 1


@pytest.mark.parametrize("subscriber", ["live"], indirect=True)  # where each event is fetched
def test_a_service_that_fails_is_asked_again(subscriber: Subscriber, receivers: Receivers) -> None:
    missed = subscriber.order()
    subscriber.account.fault(
        {"status": 500, "code": "server_error"}, method="GET", path="^/webhooks", times=2
    )
    subscriber.account.fault(
        {"status": 500, "code": "server_error"}, method="GET", path="^/webhooks/deliveries/"
    )
    # One event that cannot be had keeps no other waiting.
    subscriber.account.fault(
        {"status": 404, "code": "not_found"}, method="GET", path="^/webhooks/deliveries/", after=1
    )

    async def play() -> None:
        async with receivers.run(**subscriber.options()) as running:
            await running.events.take_through(missed)

    asyncio.run(play())
    lines = receivers.lines()
    assert [
        line
        for line in lines
        if line.startswith("cannot ask for missed events: ") and line.endswith("trying again in 1 s")
    ]
    assert [
        line
        for line in lines
        if line.startswith("cannot fetch missed event evt_") and line.endswith("trying again in 1 s")
    ]
    assert len([line for line in lines if "continuing without it until the next start" in line]) == 1


def test_without_a_client_of_its_own_it_is_made_of_the_options(
    subscriber: Subscriber, receivers: Receivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    missed = subscriber.order()
    client = subscriber.client()
    monkeypatch.setattr(ReceiverOptions, "client", lambda options: client)

    async def play() -> None:
        async with receivers.run(**{**subscriber.options(), "parts": {"sleep": no_pause}}) as running:
            await running.events.take_through(missed)

    asyncio.run(play())


def test_what_cannot_be_asked_for_ends_nothing(subscriber: Subscriber, receivers: Receivers) -> None:
    async def play() -> None:
        async with receivers.run(**{**subscriber.options(), "subscription": 4711}) as running:
            await until(
                lambda: [
                    line
                    for line in receivers.lines()
                    if "cannot ask for missed events, continuing without" in line
                ]
            )
            assert await running.deliver(body("evt_1"), signed(body("evt_1"), subscriber.secret)) == 200
        subscriber.client().webhooks.update(subscriber.id, active=False)
        async with receivers.run(**subscriber.options()):
            await until(
                lambda: [
                    line for line in receivers.lines() if f"subscription {subscriber.id} is disabled" in line
                ]
            )

    asyncio.run(play())
