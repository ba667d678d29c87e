"""The account that a command asks: ``HOSTING_API_KEY`` and ``HOSTING_BASE_URL``, as for every other program.

A key is never an option: options stay in the history of the shell and in the list of processes.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import click

from pulumi_hosting.api.secrets import quoted
from pulumi_hosting.cli.output import print_warning
from pulumi_hosting.cli.progress import ProgressLine
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ConfigurationError, HostingError
from pulumi_hosting.client.words import COMMAND_LINE
from pulumi_hosting.reports.account_objects import reading
from pulumi_hosting.reports.report import CannotAnswer, Step
from pulumi_hosting.session.errors import about
from pulumi_hosting.session.request import Request

_STEP = re.compile(r"(?<=Next: )(?:correct|give) [^.;(]*")
"""The part of a line that may name fields."""
TIMEOUT_VARIABLE = "HOSTING_RATE_LIMIT_TIMEOUT"


def connect(progress: ProgressLine, *, read_only: bool = True) -> Client:
    """The client of the environment, which may only read by default. ``HOSTING_RATE_LIMIT_TIMEOUT`` bounds
    its waits for the rate limit, which are named on standard error, above the bar. Raises
    ``ConfigurationError``.
    """
    given = os.environ.get(TIMEOUT_VARIABLE, "").strip() or "600"
    try:
        client = Client(read_only=read_only, rate_limit_timeout=float(given))
    except ValueError:
        raise ConfigurationError(
            f"{TIMEOUT_VARIABLE} must be a number of seconds, not {quoted(given)}. Next: correct it"
        ) from None
    client.words = COMMAND_LINE
    client.rate_limiter.on_wait = progress.above(partial(click.echo, err=True))
    return client


def line_of(error: HostingError) -> str:
    """The line of an error, with the settings, commands and options of the command line."""
    error._words = COMMAND_LINE
    options = {str(one.name): one.opts[0] for one in click.get_current_context().command.params}
    fields = rf"(?<!-)\b({'|'.join(options)})\b"
    return _STEP.sub(lambda step: re.sub(fields, lambda field: options[field[0]], step[0]), str(error))


@contextmanager
def asking(*, read_only: bool = True, called: str = "") -> Iterator[tuple[Request, ProgressLine]]:
    """A request for the account of the environment, and the bar meanwhile. What the client or the
    account refuses ends the command. ``called``: what the command is about, as messages call it.
    """
    with ProgressLine() as progress:
        try:
            with connect(progress, read_only=read_only) as client:
                yield reading(client, progress.above(print_warning), _mode()), progress
        except HostingError as error:
            about(error, called)
            raise CannotAnswer(line_of(error)) from None


@contextmanager
def reading_account() -> Iterator[tuple[Request, Step]]:
    """The same for a report, which only reads and shows its steps."""
    with asking() as (request, progress):
        yield request, progress.step


def _mode() -> str | None:
    """The only mode in which something may be changed. Raises ``ConfigurationError``."""
    given = os.environ.get("HOSTING_MODE", "").strip()
    if given not in ("", "live", "test"):
        raise ConfigurationError("HOSTING_MODE must be live or test. Next: correct HOSTING_MODE")
    return given or None
