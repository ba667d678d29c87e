"""The work of `pulumi-hosting webhook listen`."""

import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
from pathlib import Path

import click

from pulumi_hosting.cli.output import cannot_listen
from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.reports.report import CannotAnswer, Unusable
from pulumi_hosting.webhooks.receiver import ReceivedEvent, Receiver, ReceiverOptions
from pulumi_hosting.webhooks.receiver_options import SECRET_VARIABLE


def run(port: int, host: str, path: str, state_file: Path | None, as_json: bool) -> None:
    if not os.environ.get(SECRET_VARIABLE, "").replace(",", " ").strip():
        raise Unusable(f"no webhook secret. Next: export {SECRET_VARIABLE}=…, the subscription's whsec_…")
    # What the receiver says: where it listens, and what it refuses. It logs no secret and no body.
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING)
    logging.getLogger("pulumi_hosting.webhooks").setLevel(logging.INFO)
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    async def show(received: ReceivedEvent) -> None:
        click.echo(_line(received, as_json))
        sys.stdout.flush()

    with tempfile.TemporaryDirectory(prefix="webhook-") as home:
        kept = state_file or Path(home) / "events.sqlite"
        options = {"port": port, "host": host, "path": path, "state_file": kept}
        try:
            receiver = Receiver(ReceiverOptions.from_values(options))
            asyncio.run(receiver.run(show, wait_for_port=False))
        except OSError as error:
            raise CannotAnswer(cannot_listen(host, port, error)) from None
        except ConfigurationError as error:
            raise Unusable(str(error)) from None
        except KeyboardInterrupt:
            click.echo("stopped", err=True)


def _line(received: ReceivedEvent, as_json: bool) -> str:
    at = received.received_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    if as_json:
        return json.dumps({"received_at": at, "event": received.payload}, ensure_ascii=False)
    event = received.event
    named = " ".join(str(event.object[key]) for key in ("id", "name", "url") if event.object.get(key))
    line = f"{at}  {event.type}  {named}  ({event.id})"
    return "".join(char if char.isprintable() else "?" for char in line)  # a terminal obeys what is not
