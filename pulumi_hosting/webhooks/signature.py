"""Webhook deliveries: whether one can be trusted, and what it says (API document, "Events").

    event = verify(request.body, request.headers, "whsec_…")      # the raw bytes, before any parsing
    if event.type == "server.created":
        ...

The service may deliver an event twice and in any order: remember ``event.id`` for 31 days (redeliveries by hand come that late), and
remember it after the work is done, not before. Answer any 2xx within 10 seconds.
"""

import hashlib
import hmac
import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from pulumi_hosting.api.models import Event
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import ConfigurationError, WebhookRejected
from pulumi_hosting.client.responses import has_odd_number

SIGNATURE_HEADER = "X-Webhook-Signature"
TIMESTAMP_HEADER = "X-Webhook-Timestamp"
ID_HEADER = "X-Webhook-Id"
EVENT_HEADER = "X-Webhook-Event"
TOLERANCE_SECONDS = 300
MAX_BODY_BYTES = 1024 * 1024

Secrets = str | bytes | Secret | Sequence[str | bytes | Secret]
Headers = Mapping[str, Any] | Iterable[tuple[Any, Any]]


def verify(body: bytes, headers: Headers, secret: Secrets, *, now: float | None = None, tolerance: float = TOLERANCE_SECONDS) -> Event:
    """The event of a delivery that can be trusted.

    - ``body``: the raw bytes as they were received. ``headers``: a mapping or pairs, names in any case, texts or bytes; a value may be a
      list, as some frameworks have it.
    - ``secret``: the subscription's ``whsec_…``, or several (while one replaces another).
    - ``now``: unix seconds, default this machine's clock; ``tolerance``: how many seconds the delivery's time may be off, either way.

    Raises ``WebhookRejected`` for everything that must not be trusted, ``ConfigurationError`` for an empty secret.
    """
    headers = _pairs(headers)
    verify_signature(body, headers, secret, now=now, tolerance=tolerance)
    event = parse(bytes(body))
    # The signature covers the body only: an id or a type beside it that says otherwise was put there by somebody else.
    named = _header(headers, ID_HEADER)
    if named is None:
        raise WebhookRejected(f"{ID_HEADER} is missing")
    if named != event.id:
        raise WebhookRejected(f"{ID_HEADER} is not the id of the event")
    if _header(headers, EVENT_HEADER) not in (None, event.type):
        raise WebhookRejected(f"{EVENT_HEADER} is not the type of the event")
    return event


def verify_signature(
    body: bytes, headers: Headers, secret: Secrets, *, now: float | None = None, tolerance: float = TOLERANCE_SECONDS
) -> None:
    """Checks signature and time alone, as :func:`verify` does. Raises ``WebhookRejected``, ``ConfigurationError``."""
    keys = _keys(secret)
    if not _is_number(tolerance) or not 0 <= tolerance < math.inf or not (now is None or _is_number(now)):
        raise ConfigurationError("now and tolerance must be numbers of seconds, tolerance not below 0")
    headers = _pairs(headers)
    if not isinstance(body, bytes | bytearray | memoryview):
        raise ConfigurationError("the body must be the raw bytes of the request: parsing and printing it again changes them")
    if len(body) > MAX_BODY_BYTES:
        raise WebhookRejected("the body is larger than any event")
    stamp = _header(headers, TIMESTAMP_HEADER) or ""
    if not re.fullmatch(r"[0-9]{1,12}", stamp, re.ASCII):
        raise WebhookRejected(f"{TIMESTAMP_HEADER} is missing or not a number of seconds")
    if not abs((time.time() if now is None else now) - int(stamp)) <= tolerance:
        raise WebhookRejected(f"the delivery's time is more than {tolerance:g} s away: is the clock of this machine right?")
    # Everything is compared, also after a match: how long it takes tells nothing.
    offered = _signatures(_header(headers, SIGNATURE_HEADER) or "")
    matches = [hmac.compare_digest(_signature(bytes(body), key, stamp), one) for key in keys for one in offered]
    if not any(matches):
        raise WebhookRejected(f"no signature in {SIGNATURE_HEADER} fits the body and the secret")


def parse(body: bytes) -> Event:
    """The event of a body whose signature has been checked. Raises ``WebhookRejected`` when it is none."""
    if not has_odd_number(body):
        try:
            return Event.model_validate_json(body)
        except ValidationError:
            pass  # said below, without pydantic's error as context: it holds the body
    raise WebhookRejected("the body is not an event: id, type, created_at and data are needed")


def sign(body: bytes, secret: str | Secret, timestamp: int) -> dict[str, str]:
    """The headers of a delivery of ``body`` at ``timestamp`` (unix seconds), as the service would send them: for tests of receivers.

    The body must be an event. Raises ``WebhookRejected``, ``ConfigurationError``.
    """
    event = parse(body)
    stamp = str(int(timestamp))
    (key,) = _keys(secret)
    return {
        SIGNATURE_HEADER: "v1=" + _signature(body, key, stamp).decode(),
        TIMESTAMP_HEADER: stamp,
        ID_HEADER: event.id,
        EVENT_HEADER: event.type,
    }


def _keys(secret: Secrets) -> list[bytes]:
    given: list[Any] = [secret] if isinstance(secret, str | bytes | Secret) else list(secret) if isinstance(secret, Sequence) else []
    if not all(isinstance(one, str | bytes | Secret) for one in given):
        raise ConfigurationError("the webhook secret must be text, bytes or a Secret, or several of them")
    # No key has characters outside of Unicode; should one, it fits nothing, and no error shows it.
    keys = [one if isinstance(one, bytes) else Secret(one).reveal().encode("utf-8", "surrogatepass") for one in given]
    # An empty key would accept what anybody can sign.
    if not keys or not all(key.strip() for key in keys):
        raise ConfigurationError("the webhook secret is empty: give the whsec_… of the subscription")
    return keys


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pairs(headers: Headers) -> list[tuple[str, str]]:
    """The headers as pairs of texts, a value that is a list as several pairs. Raises ``ConfigurationError`` for what is none."""
    items: Any = headers.items() if isinstance(headers, Mapping) else headers
    found: list[tuple[str, str]] = []
    try:
        for name, value in items:
            values = value if isinstance(value, list | tuple) else [value]
            found += [(_text(name), _text(one)) for one in values]
    except (TypeError, ValueError):
        found = []
        items = None
    if items is None:
        raise ConfigurationError("the headers must be a mapping or pairs of texts")
    return found


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise TypeError
    return value


def _header(headers: Headers, name: str) -> str | None:
    found = [value for key, value in _pairs(headers) if key.lower() == name.lower()]
    if len(found) > 1:
        raise WebhookRejected(f"{name} is there more than once")
    return found[0] if found else None


def _signatures(header: str) -> list[bytes]:
    """The ``v1`` signatures of the header, in hex of any case; other schemes are skipped, and what is not ASCII fits nothing."""
    schemes = [part.strip().partition("=") for part in header.split(",")]
    return [value.encode("ascii", "replace").lower() for scheme, _, value in schemes if scheme == "v1"]


def _signature(body: bytes, key: bytes, stamp: str) -> bytes:
    return hmac.new(key, stamp.encode() + b"." + body, hashlib.sha256).hexdigest().encode()
