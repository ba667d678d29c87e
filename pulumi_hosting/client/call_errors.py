"""The exceptions that do not depend on an answer's code. :mod:`pulumi_hosting.client.exceptions` has them
all.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from pulumi_hosting.client.words import PYTHON, Words


class HostingError(Exception):
    """Base of every error of this package. ``str()`` is one line for a person: what is wrong and what to do
    next.
    """

    subject: str = ""
    """What the line begins with: what it is about, as a person calls it (``server 'web'``)."""
    _words: Words = PYTHON
    """The words of what to do next."""
    _key_source: str = "{api_key}"
    """Where the key of the call is set (``Settings.key_source``)."""

    def __reduce__(self) -> Any:
        # Not by calling the class again, as exceptions do: its arguments are not those of the message.
        return _restored, (type(self), self.args, _portable(vars(self)))


def _restored(kind: type[HostingError], args: tuple[object, ...], facts: dict[str, object]) -> HostingError:
    error = kind.__new__(kind, *args)
    vars(error).update(facts)
    return error


def _portable(value: object) -> object:
    """What of an error's facts may leave the process: plain values and other errors. A secret, or any other
    object, becomes None.
    """
    if isinstance(value, Mapping):
        return {name: _portable(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(_portable(item) for item in value)
    return value if isinstance(value, str | int | float | Decimal | datetime | HostingError | Words) else None


class ConfigurationError(HostingError):
    """An API key, base URL or option that cannot be used. Nothing was sent."""

    def __str__(self) -> str:
        return self._words.fill(super().__str__())


def with_next_step(text: str, fields: Iterable[str]) -> str:
    """What is wrong with the ``fields``, and what to do next if the ``text`` does not say it already.

    >>> with_next_step("os: is required", ["os"])
    'os: is required. Next: correct os'
    """
    names = [name for name in fields if name.removeprefix("--").replace("-", "_").isidentifier()]
    return text if "Next: " in text or not names else f"{text.rstrip('.')}. Next: correct {', '.join(names)}"


ANY_REQUEST = "the request"
"""The subject of refused arguments if nothing better is known."""


def _named(error: HostingError) -> str:
    return f"{error.subject}: " if error.subject else ""


class InvalidInput(HostingError):
    """Arguments that the API document does not allow, refused before anything was sent.

    ``fields`` maps the field's name to what is wrong with it; no value that may be a secret is repeated.
    """

    def __init__(self, fields: Mapping[str, str], subject: str = ANY_REQUEST) -> None:
        self.fields, self.subject = dict(fields), subject
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in self.fields.items()))

    def __str__(self) -> str:
        said = f"{self.subject} is not valid: " if self.subject else ""
        return with_next_step(f"{said}{self.args[0]}", self.fields)


class WriteRefused(HostingError):
    """A write was attempted while only reads are allowed (check mode, preview). Nothing was sent."""


class RateLimitTimeout(HostingError):
    """The rate limit left no room for a request within ``rate_limit_timeout``. Nothing was sent.

    ``operation``: its id; ``bucket``: ``normal`` or ``expensive``; ``waited``: seconds; ``summary``: what is
    wrong, without what to do next. ``step``: that, if waiting longer does not help.
    """

    def __init__(self, summary: str, *, operation: str, bucket: str, waited: float, step: str = "") -> None:
        self.summary, self.step = summary, step
        self.operation, self.bucket, self.waited = operation, bucket, waited
        super().__init__(summary)

    def __str__(self) -> str:
        step = self.step or "{again} later, or raise {rate_limit_timeout}"
        return f"{_named(self)}{self.summary}. Next: {self._words.fill(step)}"


class CallError(HostingError):
    """An error of a call that was sent.

    - ``operation``: id of the operation. ``request_id``: the service's, or the one that was sent if none
      came back; of the last attempt.
    - ``idempotency_key``: the key of a keyed operation, for a safe repetition: the service carries out one
      request per key. Not a secret.
    - ``attempts``: how many requests the call took.
    - ``outcome_unknown``: this attempt or an earlier one of the call may have been processed. Never true for
      a read.
    """

    operation: str = ""
    request_id: str | None = None
    idempotency_key: str | None = None
    attempts: int = 0
    outcome_unknown: bool = False
    _remedy: str = ""
    _because_of_earlier: bool = False

    @property
    def summary(self) -> str:
        """What is wrong, without what to do next: for callers who know the next step better."""
        return f"{_named(self)}{self.args[0]}{self._facts(self.outcome_unknown)}"

    @property
    def advice(self) -> str:
        """What is known of the outcome, and what to do next."""
        if not self.outcome_unknown:
            step = self._remedy.replace("{api_key}", self._key_source)
            return f"Next: {self._words.fill(step)}" if step else ""
        which = "An earlier attempt" if self._because_of_earlier else "The request"
        if self.idempotency_key:
            step = self._words.repeat.format(key=self.idempotency_key)
        else:
            step = f"look whether it was, then {self._words.again}"
        return f"{which} may have been processed. Next: {step}"

    def __str__(self) -> str:
        advice = self.advice
        names_key = self.idempotency_key is not None and self.idempotency_key in advice
        facts = self._facts(with_key=self.outcome_unknown and not names_key)
        return f"{_named(self)}{self.args[0]}{f'. {advice}' if advice else ''}{facts}"

    def _facts(self, with_key: bool = False) -> str:
        """Status, code, operation and request id in brackets, if they are known; the key if the advice does
        not name it.
        """
        parts = (
            self._status(),
            self.operation,
            f"request {self.request_id}" if self.request_id else "",
            f"key {self.idempotency_key}" if with_key and self.idempotency_key else "",
        )
        known = ", ".join(filter(None, parts))
        return f" ({known})" if known else ""

    def _status(self) -> str:
        return ""

    def sent_as(
        self,
        *,
        request_id: str | None = None,
        idempotency_key: str | None = None,
        attempts: int = 0,
        outcome_unknown: bool = False,
        because_of_earlier: bool = False,
    ) -> None:
        """Record how the call was sent. For the client."""
        self.request_id = self.request_id or request_id
        self.idempotency_key, self.attempts = idempotency_key, attempts
        self.outcome_unknown, self._because_of_earlier = outcome_unknown, because_of_earlier


class TransportError(CallError):
    """No usable answer came. ``outcome_unknown`` is true when the request may have reached the service and
    been processed.
    """

    is_final: bool = False
    """Whether asking again is pointless: a redirect, or a failure inside a transport of the caller's own."""
    _remedy = "check the base URL ({base_url}) and the network, then {again}"

    def __init__(
        self, message: str, *, outcome_unknown: bool, request_id: str | None = None, operation: str = ""
    ) -> None:
        self.outcome_unknown = outcome_unknown
        self.request_id = request_id
        self.operation = operation
        super().__init__(message)

    @property
    def advice(self) -> str:
        return super().advice if self.outcome_unknown else f"Nothing was changed. {super().advice}"


class TimedOut(TransportError):
    """The answer, or the total deadline of all attempts, took too long."""


class RedirectRefused(TransportError):
    """The service answered with a redirect. None is followed, since it would carry the API key elsewhere:
    check the base URL.
    """

    is_final = True
    _remedy = "check the base URL ({base_url})"

    @property
    def advice(self) -> str:
        first = self._words.fill(f"Next: {self._remedy}")
        return super().advice.replace("Next: ", f"{first}, then ") if self.outcome_unknown else first


class InvalidResponse(CallError):
    """An answer that is not what the API document describes: not JSON, a required field absent, or a wrong
    type.

    A write may have been processed, so its ``outcome_unknown`` is true. ``partial`` holds what could be read:
    ids, sums of money (``Decimal``) and secrets by their field names, for example
    ``server_id``, ``invoice_id``, ``charged``.
    """

    _remedy = "check the base URL ({base_url}), or report it to the provider"

    def __init__(
        self,
        message: str,
        *,
        operation: str = "",
        status: int | None = None,
        request_id: str | None = None,
        partial: Mapping[str, Any] | None = None,
    ) -> None:
        self.operation = operation
        self.status = status
        self.request_id = request_id
        self.partial = dict(partial or {})
        super().__init__(message)

    @property
    def object_id(self) -> int | None:
        """Id of the object the answer is about: of the server, of the domain, else its own; ``None`` if
        unreadable. Never the id of an invoice: see ``invoice_id``."""
        return self._id("server_id", "domain_id", "id")

    @property
    def invoice_id(self) -> int | None:
        """Id of the invoice that the answer names; ``None`` if unreadable or absent."""
        return self._id("invoice_id")

    def _id(self, *names: str) -> int | None:
        found = next((self.partial[name] for name in names if name in self.partial), None)
        return found if isinstance(found, int) else None

    @property
    def charged(self) -> Decimal | None:
        """The sum that the response reports as charged; ``None`` if unreadable or absent."""
        found = self.partial.get("charged")
        return found if isinstance(found, Decimal) else None

    def _status(self) -> str:
        return str(self.status) if self.status is not None else ""

    @property
    def advice(self) -> str:
        known = ", ".join(
            f"{name} {value}" for name, value in self.partial.items() if isinstance(value, int | Decimal)
        )
        return (f"What could be read: {known}. " if known else "") + super().advice

    @property
    def summary(self) -> str:
        """What is wrong, with the key of an order or payment, which may have been made."""
        return f"{_named(self)}{self.args[0]}{self._facts(with_key=True)}"


class WebhookRejected(HostingError):
    """A webhook delivery that must not be trusted: bad signature, timestamp out of tolerance, or a body that
    is no event.
    """


# --- stops that are decided here, not by the service


class ResourceError(HostingError):
    """A stop decided by a resource, not by the service: one line with the object and the next step."""

    def __str__(self) -> str:
        return f"{_named(self)}{super().__str__()}"


class OrderFailed(ResourceError):
    """An order that was accepted and not delivered; its charge was returned.

    ``invoice_id`` and ``status`` (``failed`` or ``cancelled``) are those of the order, if it was read.
    """

    def __init__(self, message: str, *, invoice_id: int | None = None, status: str | None = None) -> None:
        self.invoice_id, self.status = invoice_id, status
        super().__init__(message)


class WaitTimeout(ResourceError):
    """Something asynchronous did not finish in time; running again continues it. ``id`` is what is known
    of the object by then.
    """

    def __init__(self, message: str, id: str) -> None:
        self.id = id
        super().__init__(message)


class AmbiguousMatch(ResourceError):
    """Several objects match a natural key."""

    def __init__(self, what: str, ids: list[str], give: str = "give the id") -> None:
        self.ids = ids
        super().__init__(
            f"{what} matches several objects: ids {', '.join(ids)}. Next: {give} of the one you mean"
        )
