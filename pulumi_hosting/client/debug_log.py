"""``HOSTING_LOG=debug``: a line on standard error for every attempt of a request, for support cases.

A line holds method, path, status, seconds, attempt, request id and Idempotency-Key; never a query, header or
body, so that no API key, password, auth code or webhook secret can be in it. What looks like one is masked
all the same. The lines come from the logger ``pulumi_hosting``; a program that configures :mod:`logging` gets
them there without the variable.
"""

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping

from pulumi_hosting.api.secrets import clean_text, without_tokens
from pulumi_hosting.client.call_errors import ConfigurationError
from pulumi_hosting.client.requests import HttpRequest

VARIABLE = "HOSTING_LOG"

log = logging.getLogger("pulumi_hosting")


def to_standard_error(line: str) -> None:
    """Where lines are shown unless :func:`show_with` says otherwise."""
    print(line, file=sys.stderr, flush=True)


class _Lines(logging.Handler):
    """Shows each record as one line."""

    def __init__(self) -> None:
        super().__init__()
        self.show: Callable[[str], None] = to_standard_error
        formatter = logging.Formatter(
            "%(asctime)s.%(msecs)03dZ pulumi-hosting[%(process)d] %(message)s", "%Y-%m-%dT%H:%M:%S"
        )
        formatter.converter = time.gmtime
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.show(without_tokens(clean_text(self.format(record), 2000)))
        except (OSError, ValueError):  # standard error is closed: the request matters more
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # logging's name
        """Nothing: there is nowhere to report it."""


_LINES = _Lines()
_LEVEL_BEFORE = logging.NOTSET


def follow_environment(environ: Mapping[str, str] | None = None) -> None:
    """Show the lines, or stop showing them, as ``HOSTING_LOG`` says now. Raises ``ConfigurationError`` for a
    value that it does not know.
    """
    global _LEVEL_BEFORE
    given = (os.environ if environ is None else environ).get(VARIABLE, "").strip()
    if given.lower() not in ("", "debug"):
        raise ConfigurationError(
            f"{VARIABLE} has a value that is not known. Next: set it to debug, or unset it"
        )
    if bool(given) == (_LINES in log.handlers):
        return
    if given:
        _LEVEL_BEFORE = log.level
        log.setLevel(logging.DEBUG)
        log.addHandler(_LINES)
    else:
        log.setLevel(_LEVEL_BEFORE)
        log.removeHandler(_LINES)


def show_with(show: Callable[[str], None]) -> None:
    """Show the lines with this function: for processes whose standard error is not shown."""
    _LINES.show = show


def attempt(request: HttpRequest, what: str, seconds: float, number: int, request_id: str | None) -> None:
    """Log attempt ``number`` of a request, from 1: its outcome, and after how many seconds."""
    facts = [f"{seconds:.3f} s", f"attempt {number}"]
    facts += [f"request {request_id}"] if request_id else []
    facts += [f"key {request.idempotency_key}"] if request.idempotency_key is not None else []
    line = f"{request.operation.method} {request.path}: {what} ({', '.join(facts)})"
    log.debug("%s", request.redact(line))
