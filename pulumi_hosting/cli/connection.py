"""The account that a command asks: ``HOSTING_API_KEY`` and ``HOSTING_BASE_URL``, as for every other program.

A key is never an option: options stay in the history of the shell and in the list of processes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import click

from pulumi_hosting.cli.progress import Progress
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ConfigurationError, HostingError

TIMEOUT_VARIABLE = "HOSTING_RATE_LIMIT_TIMEOUT"


class Failed(click.ClickException):
    """A command that could not do its work: one line, exit code 1."""

    def show(self, file: object = None) -> None:
        click.echo(f"error: {self.message}", err=True)


class Unusable(Failed):
    """The command cannot begin with what it was given: exit code 2."""

    exit_code = 2


def connect(progress: Progress) -> Client:
    """The client of the environment, which may only read; ``HOSTING_RATE_LIMIT_TIMEOUT`` bounds its waits for
    the rate limit, which are told on standard error, above the bar. Raises ``ConfigurationError``.
    """
    given = os.environ.get(TIMEOUT_VARIABLE, "").strip() or "600"
    try:
        client = Client(read_only=True, rate_limit_timeout=float(given))
    except ValueError:
        raise ConfigurationError(
            f"{TIMEOUT_VARIABLE} must be a number of seconds. Next: correct {TIMEOUT_VARIABLE}"
        ) from None
    client.rate_limiter.on_wait = progress.above(partial(click.echo, err=True))
    return client


@contextmanager
def account(progress: Progress) -> Iterator[Client]:
    """The client of the environment, which may only read. What the client or the account refuses ends the
    command with one line and exit code 1.
    """
    try:
        with connect(progress) as client:
            yield client
    except HostingError as error:
        raise Failed(str(error)) from None


@contextmanager
def files() -> Iterator[None]:
    """While files of the command line are read: one that cannot be used ends the command with exit code 2."""
    try:
        yield
    except ValueError as error:
        raise Unusable(str(error)) from None
