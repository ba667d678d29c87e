# Copyright: (c) 2026, the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# ruff: noqa: S101 — assert is how pytest asks
"""The event source: what it hands to the rules, and what it takes from its options. The receiver itself is
replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from ansible_collections.hosting.cloud.extensions.eda.plugins.event_source import webhook
from pulumi_hosting.webhooks.receiver import ReceivedEvent, ReceiverOptions
from pulumi_hosting.webhooks.signature import parse

BODY = (
    b'{"id": "evt_1", "type": "server.created", "created_at": "2026-01-02T03:04:05Z", "data": {"object": '
    b'{"id": 11}}}'
)
PAYLOAD = {
    "id": "evt_1",
    "type": "server.created",
    "created_at": "2026-01-02T03:04:05Z",
    "data": {"object": {"id": 11}},
}
META = {
    "uuid": "evt_1",
    "endpoint": "/hosting",
    "headers": {"X-Webhook-Id": "evt_1"},
    "received_at": "2026-01-02T03:04:06Z",
    "via": "delivery",
}


class FakeReceiver:
    """Hands over one event, then waits to be cancelled, or for an acknowledgement."""

    def __init__(self, options: ReceiverOptions) -> None:
        self.options = options
        self.acknowledges: bool | None = None
        self.acknowledged: asyncio.Queue[str] = asyncio.Queue()
        made.append(self)

    async def run(
        self, handle: Callable[[ReceivedEvent], Awaitable[None]], *, acknowledge: bool = True
    ) -> None:
        self.acknowledges = acknowledge
        headers, at = {"X-Webhook-Id": "evt_1"}, datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC)
        await handle(ReceivedEvent(parse(BODY), PAYLOAD, headers, at, "delivery"))
        await asyncio.Event().wait()

    async def acknowledge(self, event_id: str) -> None:
        await self.acknowledged.put(event_id)


made: list[FakeReceiver] = []


@pytest.fixture
def fake_receiver(monkeypatch: pytest.MonkeyPatch) -> None:
    made.clear()
    monkeypatch.setattr(webhook, "Receiver", FakeReceiver)


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.usefixtures("fake_receiver")
def test_an_event_is_payload_and_meta() -> None:
    async def play() -> None:
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(1)
        task = asyncio.create_task(webhook.main(queue, {"port": 0, "path": "/hosting", "feedback": False}))
        assert await queue.get() == {"payload": PAYLOAD, "meta": META}
        assert made[0].acknowledges is True
        await cancelled(task)

    asyncio.run(play())


@pytest.mark.usefixtures("fake_receiver")
def test_feedback_acknowledges_what_the_rules_confirm() -> None:
    """With ``feedback: true`` ansible-rulebook hands in a second queue, and puts each event there once its
    engine has it."""

    async def play() -> None:
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(1)
        feedback: asyncio.Queue[dict[str, Any]] = asyncio.Queue(1)
        args = {"port": 0, "path": "/hosting", "feedback": True, "eda_feedback_queue": feedback}
        task = asyncio.create_task(webhook.main(queue, args))
        await feedback.put(await queue.get())
        assert await made[0].acknowledged.get() == "evt_1"
        assert made[0].acknowledges is False
        await cancelled(task)

    asyncio.run(play())


def test_the_documented_options_are_those_of_the_receiver() -> None:
    options = yaml.safe_load(webhook.DOCUMENTATION)["options"]
    fields = ReceiverOptions.model_fields
    assert set(options) == {*fields, "feedback"}
    assert {name for name, option in options.items() if option.get("required")} == {"port"}
    defaults = {
        name: option["default"]
        for name, option in options.items()
        if "default" in option and name != "feedback"
    }
    assert defaults == {
        name: fields[name].default for name in fields if fields[name].default is not None and name != "port"
    }


def test_every_example_can_be_used() -> None:
    for example in yaml.safe_load(webhook.EXAMPLES):
        ReceiverOptions.from_values(example["hosting.cloud.webhook"])
