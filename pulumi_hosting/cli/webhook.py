"""`pulumi-hosting webhook`."""

import asyncio
import errno
import json
import logging
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulumi_hosting.cli.connection import Failed, Unusable
from pulumi_hosting.cli.lazy import Group

if TYPE_CHECKING:
    from pulumi_hosting.webhooks.receiver import ReceivedEvent


@click.group(cls=Group)
def webhook() -> None:
    """Receive webhooks on this machine.

    Example: HOSTING_WEBHOOK_SECRET=whsec_… pulumi-hosting webhook listen --port 5000
    """


@webhook.command()
@click.option("--port", type=click.IntRange(0, 65535), default=5000, show_default=True, help="0: a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--path", default="/", show_default=True, help="The path of the subscription's URL.")
@click.option(
    "--state-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep events in this file, so that none is printed twice and none is lost between two runs. Without "
    "it nothing is kept.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def listen(port: int, host: str, path: str, state_file: Path | None, as_json: bool) -> None:
    """Print the events that the service delivers, until Ctrl-C.

    The secret of the subscription is read from HOSTING_WEBHOOK_SECRET, several separated by commas. A
    delivery without a valid signature is answered with 401 and not printed; standard error says so. The
    service delivers to https only: put a proxy or a tunnel that terminates TLS in front. Exit codes: 0 after
    Ctrl-C, 1 where it cannot listen, 2 without a usable secret.

    Example: HOSTING_WEBHOOK_SECRET=whsec_… pulumi-hosting webhook listen --json
    """
    from pulumi_hosting.client.exceptions import ConfigurationError
    from pulumi_hosting.webhooks.receiver import Receiver, ReceiverOptions
    from pulumi_hosting.webhooks.receiver_options import SECRET_VARIABLE

    if not os.environ.get(SECRET_VARIABLE, "").replace(",", " ").strip():
        raise Unusable(f"no webhook secret. Next: export {SECRET_VARIABLE}=…, the subscription's whsec_…")
    # What the receiver says: where it listens, and what it refuses. It logs no secret and no body.
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING)
    logging.getLogger("pulumi_hosting.webhooks").setLevel(logging.INFO)
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    async def show(received: "ReceivedEvent") -> None:
        click.echo(_line(received, as_json))
        sys.stdout.flush()

    with tempfile.TemporaryDirectory(prefix="webhook-") as home:
        kept = state_file or Path(home) / "events.sqlite"
        options = {"port": port, "host": host, "path": path, "state_file": kept}
        try:
            receiver = Receiver(ReceiverOptions.from_values(options))
            asyncio.run(receiver.run(show, wait_for_port=False))
        except OSError as error:
            raise Failed(_not_listening(host, port, error)) from None
        except ConfigurationError as error:
            raise Unusable(str(error)) from None
        except KeyboardInterrupt:
            click.echo("stopped", err=True)


def _not_listening(host: str, port: int, error: OSError) -> str:
    is_taken = error.errno == errno.EADDRINUSE
    why = "another program uses it" if is_taken else error.strerror or str(error)
    return (
        f"cannot listen on {host}, port {port}: {why}. Next: give another --{'port' if is_taken else 'host'}"
    )


def _line(received: "ReceivedEvent", as_json: bool) -> str:
    at = received.received_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    if as_json:
        return json.dumps({"received_at": at, "event": received.payload}, ensure_ascii=False)
    event = received.event
    named = " ".join(str(event.object[key]) for key in ("id", "name", "url") if event.object.get(key))
    line = f"{at}  {event.type}  {named}  ({event.id})"
    return "".join(char if char.isprintable() else "?" for char in line)  # a terminal obeys what is not
