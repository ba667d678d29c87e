"""Passes events on to another receiver over HTTP: as CloudEvents, or as Ansible's event streams verify them.

The service signs ``<time>.<body>``. Event streams verify an HMAC of the body alone, so they cannot take its
deliveries; a relay verifies that signature and signs the body again.

- At least once, in the order of arrival. An event is acknowledged when the other side has answered 2xx;
  until then it is sent again, with pauses of 1 to 60 seconds, and later events wait. A kill loses none.
- 400, 413, 415 and 422 refuse an event for good: it is logged, kept, and sent again at the next start.
- The id and time of the event are passed on, so that the other side can drop what it knows or what is older.
"""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Self

import httpx

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import ConfigurationError, HostingError
from pulumi_hosting.webhooks.background import log, retry_until_success
from pulumi_hosting.webhooks.receiver import ReceivedEvent

HUB_SIGNATURE_HEADER = "X-Hub-Signature-256"
"""``sha256=`` and the HMAC of the body alone, in hex, as event streams of the type HMAC expect it."""
TIMEOUT_SECONDS = 10.0
_REFUSED = frozenset({400, 413, 415, 422})


class Form(StrEnum):
    """How an event is passed on: ``cloudevents``: in the structured mode of CloudEvents 1.0 over HTTP;
    ``eda``: as the service delivered it, with a signature of the body.
    """

    CLOUDEVENTS = "cloudevents"
    EDA = "eda"


class EventRefused(HostingError):
    """The other side will never take this event."""


class Relay:
    """Passes on each event that a ``Receiver`` hands over.

    - ``to``: an http or https URL without a user. ``secret``: what the body is signed with; the form ``eda``
      needs one.
    - ``transport``: what sends. ``sleep``: waits between two attempts.

    Used in ``async with``, which closes its connections.

    Raises ``ConfigurationError`` for a URL or secret that cannot be used.
    """

    def __init__(
        self,
        to: str,
        form: Form,
        secret: Secret,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        try:
            url = httpx.URL(to)
        except httpx.InvalidURL:
            url = httpx.URL()
        if url.scheme not in ("http", "https") or not url.host or url.userinfo:
            raise ConfigurationError(
                "--to must be an http or https URL without a user or password. Next: give the URL to post to"
            )
        if form is Form.EDA and not secret:
            raise ConfigurationError(
                "the form eda needs a secret. Next: set HOSTING_RELAY_SECRET to that of the event stream"
            )
        self._url, self._form, self._secret = url, form, secret
        self._client = httpx.AsyncClient(timeout=TIMEOUT_SECONDS, transport=transport)
        self._sleep = sleep

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def __call__(self, received: ReceivedEvent) -> None:
        """Return when the event was taken. Raises ``EventRefused`` if it never will be."""
        body, headers = self._message(received)
        refusal = await retry_until_success(
            f"cannot relay event {received.event.id}", lambda: self._post(body, headers), self._sleep
        )
        if refusal:
            log.error("event %s was refused: HTTP %d", received.event.id, refusal)
            raise EventRefused(f"HTTP {refusal}")

    def _message(self, received: ReceivedEvent) -> tuple[bytes, dict[str, str]]:
        if self._form is Form.EDA:
            shown, kind = received.payload, "application/json"
        else:
            shown, kind = cloud_event(received), "application/cloudevents+json"
        body = json.dumps(shown, ensure_ascii=False).encode()
        headers = {"Content-Type": kind}
        if self._secret:
            signature = hmac.new(self._secret.reveal().encode(), body, hashlib.sha256).hexdigest()
            headers[HUB_SIGNATURE_HEADER] = f"sha256={signature}"
        return body, headers

    async def _post(self, body: bytes, headers: dict[str, str]) -> int:
        """0 if it was taken, the status if it was refused for good. Raises ``OSError`` for what may pass."""
        try:
            response = await self._client.post(self._url, content=body, headers=headers)
        except httpx.HTTPError as error:
            raise OSError(f"{type(error).__name__} from {self._url.host}") from None
        if response.status_code in _REFUSED:
            return response.status_code
        if not response.is_success:
            raise OSError(f"{self._url.host} answered HTTP {response.status_code}")
        return 0


def cloud_event(received: ReceivedEvent) -> dict[str, object]:
    """The event in the JSON format of CloudEvents 1.0. ``data`` is that of the API document, "Events"."""
    event = received.event
    return {
        "specversion": "1.0",
        "id": event.id,
        "source": "urn:hosting-client-api:v1",
        "type": event.type,
        "time": received.payload["created_at"],
        "datacontenttype": "application/json",
        "data": received.payload["data"],
    }
