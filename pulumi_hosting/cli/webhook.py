"""The work of `pulumi-hosting webhook listen` and `webhook relay`."""

import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import click

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.cli.connection import line_of
from pulumi_hosting.cli.output import cannot_listen, printable
from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.client.redis_store import Redis, store_at
from pulumi_hosting.client.settings import STORE_VARIABLE, checked_store
from pulumi_hosting.client.shared_store import StoreRefused
from pulumi_hosting.reports.report import CannotAnswer, Unusable
from pulumi_hosting.webhooks.delivery_store import EventStore
from pulumi_hosting.webhooks.receiver import ReceivedEvent, Receiver, ReceiverOptions
from pulumi_hosting.webhooks.relay import Form, Relay
from pulumi_hosting.webhooks.shared_event_store import SharedEventStore

RELAY_SECRET = "HOSTING_RELAY_SECRET"  # noqa: S105  # the name of a variable

Receive = Callable[[Callable[[ReceivedEvent], Awaitable[None]]], Awaitable[None]]


def listen(port: int, host: str, path: str, state_file: Path | None, as_json: bool) -> None:
    async def show(received: ReceivedEvent) -> None:
        click.echo(_line(received, as_json))
        sys.stdout.flush()

    async def print_events(receive: Receive) -> None:
        await receive(show)

    with tempfile.TemporaryDirectory(prefix="webhook-") as home:
        kept = state_file or Path(home) / "events.sqlite"
        _run({"port": port, "host": host, "path": path, "state_file": kept}, print_events)


def relay(to: str, form: str, port: int, host: str, path: str, state_file: Path | None) -> None:
    secret = Secret(os.environ.get(RELAY_SECRET, "").strip())

    async def pass_on(receive: Receive) -> None:
        async with Relay(to, Form(form), secret) as handler:
            await receive(handler)

    def open_store(path: Path) -> EventStore | SharedEventStore:
        return SharedEventStore(shared, to) if isinstance(shared, Redis) else EventStore(path)

    try:
        shared = None if state_file else store_at(checked_store(os.environ.get(STORE_VARIABLE)))
    except ConfigurationError as error:
        raise Unusable(line_of(error)) from None
    _run({"port": port, "host": host, "path": path, "state_file": state_file}, pass_on, open_store)


def _run(
    options: dict[str, object],
    work: Callable[[Receive], Coroutine[Any, Any, None]],
    open_store: Callable[[Path], EventStore | SharedEventStore] = EventStore,
) -> None:
    """Receive until Ctrl-C. ``work`` calls what receives with the handler of events."""
    # What the receiver says: where it listens, and what it refuses. It logs no secret and no body.
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING)
    logging.getLogger("pulumi_hosting.webhooks").setLevel(logging.INFO)
    signal.signal(signal.SIGTERM, _end_once)
    try:
        receiver = Receiver(ReceiverOptions.from_values(options), open_store=open_store)
        asyncio.run(work(partial(receiver.run, wait_for_port=False)))
    except OSError as error:
        raise CannotAnswer(cannot_listen(str(options["host"]), int(str(options["port"])), error)) from None
    except (ConfigurationError, StoreRefused) as error:
        raise Unusable(line_of(error)) from None
    except KeyboardInterrupt:
        click.echo("stopped", err=True)


def _end_once(*_: object) -> None:
    """End as with Ctrl-C. A second signal does not disturb the end: `timeout` sends two."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.raise_signal(signal.SIGINT)


def _line(received: ReceivedEvent, as_json: bool) -> str:
    at = received.received_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    if as_json:
        return json.dumps({"received_at": at, "event": received.payload}, ensure_ascii=False)
    event = received.event
    named = " ".join(str(event.object[key]) for key in ("id", "name", "url") if event.object.get(key))
    return printable(f"{at}  {event.type}  {named}  ({event.id})".replace("\n", "?"))
