"""The errors of resources and actions: stops that we decide, not the service."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from pulumi_hosting.api.error_codes import KEY_REFUSED
from pulumi_hosting.client.exceptions import (
    ANY_REQUEST,
    CallError,
    HostingError,
    InvalidResponse,
    RateLimitTimeout,
)
from pulumi_hosting.client.exceptions import AmbiguousMatch as AmbiguousMatch
from pulumi_hosting.client.exceptions import OrderFailed as OrderFailed
from pulumi_hosting.client.exceptions import ResourceError as ResourceError
from pulumi_hosting.client.exceptions import WaitTimeout as WaitTimeout

AWAITED = "run again: the run waits for it until seven days after its order, and does not pay again"
"""The next step after a wait for a purchase. The service remembers keys for as long."""


class LimitExceeded(ResourceError):
    """A charge would go beyond the limit of the run, or cannot be compared with it. Nothing was ordered."""


class NoSuchObject(ResourceError):
    """The id or name that was given names nothing on this account."""


class WrongMode(ResourceError):
    """A key of the other mode, live or test, would change the object. Nothing was sent."""


class Unchangeable(ResourceError):
    """The declared difference cannot be made in place. Nothing was changed."""


class KeyLacksScope(ResourceError):
    """The API key may not do what is declared. Nothing was sent."""


class ResourceConflict(ResourceError):
    """An object that this declaration did not make stands where it would create one. ``id`` names it."""

    def __init__(self, message: str, id: str) -> None:
        self.id = id
        super().__init__(message)


class NotOurs(ResourceError):
    """The object with the id of a state must not be changed or deleted: a later run or another resource took
    it over, it is another object than the recorded one, or it is gone and another one stands in its place.
    Nothing was done. A frontend adds its ``Next:``, since it knows what names the declaration.

    - ``id``: the object that is there; ``tag``: the ownership tag on it.
    - ``reason``: ``later run`` (of the same resource), ``another's`` tag, another ``object`` than the
      recorded one, or ``elsewhere``: the recorded one is gone, and what is there has another id.
    """

    def __init__(
        self,
        id: str,
        tag: str | None,
        reason: Literal["later run", "another's", "object", "elsewhere"],
        message: str,
    ) -> None:
        self.id, self.tag, self.reason = id, tag, reason
        super().__init__(message)


class StillOrdered(ResourceError):
    """A deletion of a purchase that has not arrived and was charged; nothing was deleted. ``id`` names it,
    ``why`` says what happened. A frontend adds how to forget the declaration."""

    def __init__(self, title: str, id: str, why: str) -> None:
        self.title, self.id, self.why = title, id, f"{why}; nothing was deleted"
        super().__init__(f"{self.why}. Next: run again later")


class Failed(ResourceError):
    """What the service answered, in words that fit the action. ``status``, ``code``, ``request_id``,
    ``idempotency_key`` are the call's.
    """

    def __init__(self, message: str, error: HostingError) -> None:
        self.status: int | None = getattr(error, "status", None)
        unread = "invalid_response" if isinstance(error, InvalidResponse) else None
        self.code: str | None = getattr(error, "code", unread)
        self.request_id: str | None = getattr(error, "request_id", None)
        self.idempotency_key: str | None = getattr(error, "idempotency_key", None)
        self.attempts: int = getattr(error, "attempts", 0)
        self.outcome_unknown: bool = getattr(error, "outcome_unknown", False)
        self.fields: dict[str, str] = dict(getattr(error, "fields", None) or {})
        super().__init__(message)


@contextmanager
def failing_with(error: HostingError) -> Iterator[None]:
    """For a read that decides what became of a write that failed with ``error``: if the read fails too, raise
    ``error``. It says whether the outcome is unknown; the error of a read never does.
    """
    try:
        yield
    except HostingError:
        raise error from None


def about(error: HostingError, called: str) -> None:
    """Let the line of ``error`` begin with what a person calls the object (``server 'web'``), unless it
    speaks of that first: some are of the setting that is wrong, or of the price."""
    if isinstance(error, CallError | RateLimitTimeout) or error.subject == ANY_REQUEST:
        error.subject = called or error.subject
    elif isinstance(error, ResourceError):
        title = re.escape(re.sub(r" ('.*'|\d+)$", "", called))
        speaks_of_it = rf"(an? |the |there is no |order \S+ (for|of) )?{title}s?\b"
        error.subject = "" if re.match(speaks_of_it, str(error.args[0])) else called
        again = rf"(\d [A-Z]+ (?:were charged )?for ){title} \S+, "  # what a renewal costs names it too
        error.args = (re.sub(again, r"\1", str(error.args[0])),)


def and_then(error: Exception, step: str) -> str:
    """``Next:`` and the step that follows from ``error``: if the service refused the key, what the key
    needs comes first.
    """
    if isinstance(error, CallError) and getattr(error, "code", "") in KEY_REFUSED:
        return f"{error.advice}, then {step}"
    return f"Next: {step}"
