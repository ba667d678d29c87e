"""Verify, parse and sign webhook deliveries (API document, "Events").

    event = verify(request.body, request.headers, "whsec_…")  # the raw bytes, before any parsing
    if event.type == "server.created":
        ...

The service may deliver an event twice and in any order. Remember ``event.id`` for 31 days, because deliveries
are repeated by hand for that long, and remember it after the work is done, not before. Answer any 2xx within
10 seconds.
"""

import hashlib
import hmac
import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from pulumi_hosting.api.models.webhooks import EVENT_HEADER, ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import ConfigurationError, WebhookRejected
from pulumi_hosting.client.responses import has_odd_number
from pulumi_hosting.webhooks.event import DeliveredEvent

__all__ = [
    "EVENT_HEADER",
    "ID_HEADER",
    "MAX_BODY_BYTES",
    "SIGNATURE_HEADER",
    "TIMESTAMP_HEADER",
    "TOLERANCE_SECONDS",
    "DeliveredEvent",
    "Headers",
    "Secrets",
    "parse",
    "sign",
    "verify",
    "verify_signature",
]

TOLERANCE_SECONDS = 300
MAX_BODY_BYTES = 1024 * 1024

Secrets = str | bytes | Secret | Sequence[str | bytes | Secret]
Headers = Mapping[str, object] | Iterable[tuple[object, object]]


def verify(
    body: bytes | str,
    headers: Headers,
    secret: Secrets,
    *,
    now: float | None = None,
    tolerance: float = TOLERANCE_SECONDS,
) -> DeliveredEvent:
    """Verify a delivery and return its event.

    - ``body``: the raw bytes as they were received, or their text, which is encoded as UTF-8.
    - ``headers``: a mapping or pairs, names in any case, strings or bytes. A value may be a list.
    - ``secret``: the subscription's ``whsec_…``, or several while one replaces another.
    - ``now``: unix seconds; without it the clock of this machine.
    - ``tolerance``: how many seconds the time of the delivery may be off, before or after.

    Raises ``WebhookRejected`` for a delivery that cannot be trusted, ``ConfigurationError`` for an empty
    secret or arguments of a wrong type.
    """
    pairs, body = _pairs(headers), _encoded(body)
    verify_signature(body, pairs, secret, now=now, tolerance=tolerance)
    event = parse(bytes(body))
    # The signature covers the body only: an id or a type in the headers that differs was changed by a
    # stranger.
    named = _header(pairs, ID_HEADER)
    if named is None:
        raise WebhookRejected(f"{ID_HEADER} is missing")
    if named != event.id:
        raise WebhookRejected(f"{ID_HEADER} is not the id of the event")
    if _header(pairs, EVENT_HEADER) not in (None, event.type):
        raise WebhookRejected(f"{EVENT_HEADER} is not the type of the event")
    return event


def verify_signature(
    body: bytes | str,
    headers: Headers,
    secret: Secrets,
    *,
    now: float | None = None,
    tolerance: float = TOLERANCE_SECONDS,
) -> None:
    """Verify the signature and the time only, as :func:`verify` does. Raises ``WebhookRejected``,
    ``ConfigurationError``."""
    keys = _keys(secret)
    if not _is_number(tolerance) or not 0 <= tolerance < math.inf or not (now is None or _is_number(now)):
        raise ConfigurationError("now and tolerance must be numbers of seconds, tolerance not below 0")
    pairs, body = _pairs(headers), _encoded(body)
    if not isinstance(body, bytes | bytearray | memoryview):
        raise ConfigurationError(
            "the body must be the raw bytes of the request, or their text. Next: pass them before the "
            "request is parsed"
        )
    if len(body) > MAX_BODY_BYTES:
        raise WebhookRejected("the body is larger than any event")
    stamp = _header(pairs, TIMESTAMP_HEADER) or ""
    if not re.fullmatch(r"[0-9]{1,12}", stamp):
        raise WebhookRejected(f"{TIMESTAMP_HEADER} is missing or not a number of seconds")
    if not abs((time.time() if now is None else now) - int(stamp)) <= tolerance:
        raise WebhookRejected(
            f"the delivery's time is more than {tolerance:g} s away. Next: check the clock of this machine"
        )
    # All are compared, also after a match: the time that it takes must not depend on the secret.
    schemes = [part.strip().partition("=") for part in (_header(pairs, SIGNATURE_HEADER) or "").split(",")]
    # Other schemes than v1 are skipped.
    candidates = [value.encode(errors="replace").lower() for scheme, _, value in schemes if scheme == "v1"]
    matches = [
        hmac.compare_digest(_signature(bytes(body), key, stamp), one) for key in keys for one in candidates
    ]
    if not any(matches):
        raise WebhookRejected(f"no signature in {SIGNATURE_HEADER} matches the body and the secret")


def parse(body: bytes) -> DeliveredEvent:
    """Parse a body whose signature was verified. Raises ``WebhookRejected`` when it is not an event."""
    if not has_odd_number(body):
        try:
            return DeliveredEvent.model_validate_json(body)
        except ValidationError:
            pass  # reported below: pydantic's error holds the body, and must not be the context
    raise WebhookRejected("the body is not an event: id, type, created_at and data are needed")


def sign(body: bytes, secret: str | Secret, timestamp: int) -> dict[str, str]:
    """Sign a delivery of ``body`` at ``timestamp`` (unix seconds) and return its headers. For tests of
    receivers.

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


def _encoded(body: bytes | str) -> bytes:
    """What AWS Lambda and others hand over as text. The signature decides whether it is what was sent."""
    return body.encode(errors="surrogatepass") if isinstance(body, str) else body


def _keys(secret: Secrets) -> list[bytes]:
    is_one = isinstance(secret, str | bytes) or not isinstance(secret, Sequence)
    given: Any = [secret] if is_one else secret
    if not all(isinstance(one, str | bytes | Secret) for one in given):
        raise ConfigurationError("the webhook secret must be text, bytes or a Secret, or several of them")
    # A real secret has no lone surrogates. One that has matches nothing, and no error shows it.
    keys = [
        one if isinstance(one, bytes) else Secret(one).reveal().encode(errors="surrogatepass")
        for one in given
    ]
    # Anyone can sign with an empty key.
    if not keys or not all(key.strip() for key in keys):
        raise ConfigurationError("the webhook secret is empty. Next: give the whsec_… of the subscription")
    return keys


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pairs(headers: Headers) -> list[tuple[str, str]]:
    """The headers as pairs of strings; a value that is a list becomes several pairs. Raises
    ``ConfigurationError`` for anything else."""
    items: Any = headers.items() if isinstance(headers, Mapping) else headers
    with suppress(TypeError, ValueError):
        pairs = [(name, value if isinstance(value, list | tuple) else [value]) for name, value in items]
        return [(_text(name), _text(value)) for name, values in pairs for value in values]
    raise ConfigurationError("the headers must be a mapping or pairs of strings")


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise TypeError
    return value


def _header(pairs: Iterable[tuple[str, str]], name: str) -> str | None:
    found = [value for key, value in pairs if key.lower() == name.lower()]
    if len(found) > 1:
        raise WebhookRejected(f"{name} is there more than once")
    return found[0] if found else None


def _signature(body: bytes, key: bytes, stamp: str) -> bytes:
    return hmac.new(key, stamp.encode() + b"." + body, hashlib.sha256).hexdigest().encode()
