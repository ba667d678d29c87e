"""The exceptions of this package.

    HostingError
    ├── ConfigurationError       key, base URL or option unusable; nothing was sent
    ├── InvalidInput             arguments refused before anything was sent; ``fields`` says which
    ├── WriteRefused             a write while only reading is allowed (check mode, preview); nothing was sent
    ├── WebhookRejected          a delivery whose signature, time or body cannot be trusted
    ├── CallError                of a call that was sent; ``outcome_unknown`` tells whether it may have been processed
    ├── TransportError           (a CallError) no usable answer
    │   ├── TimedOut             the answer, or the total deadline, took too long
    │   └── RedirectRefused      the service answered 3xx: a wrong base URL, never followed
    ├── InvalidResponse          (a CallError) a response that is not what the API document describes
    └── ApiError                 (a CallError) the service refused; one class per status, a few per code
        ├── BadRequest (400)             ValidationFailed, OsNotAllowed, InvalidPeriod, UpstreamRejected
        ├── Unauthorized (401)
        ├── InsufficientFunds (402)
        ├── Forbidden (403)              InsufficientScope, ServerBlocked, DomainBlocked, SandboxRefused
        ├── NotFound (404)
        ├── MethodNotAllowed (405)
        ├── Conflict (409)               IdempotencyConflict, IdempotencyInProgress, OperationInProgress, ServiceState,
        │                                NoCapacity, IpLimitReached, DomainUnavailable
        ├── PayloadTooLarge (413)
        ├── UnsupportedMediaType (415)
        ├── RateLimited (429)
        ├── ServerError (500)
        └── Unavailable (502, 503, 504)

Errors of a call that was sent are :class:`CallError`: ``TransportError``, ``InvalidResponse`` and
``ApiError``. Each carries ``operation``, ``request_id``, ``idempotency_key``, ``attempts`` and
``outcome_unknown``. All errors can be pickled and copied; secrets stay behind.

A code that is not in :data:`CODES` falls back to the class of its HTTP status.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

from pulumi_hosting.api.error_codes import CODES as CODES
from pulumi_hosting.api.error_codes import Code as Code
from pulumi_hosting.api.secrets import clean_text


class HostingError(Exception):
    """Base of every error of this package. ``str()`` is one line for a person: what is wrong and what to do
    next.
    """

    def __reduce__(self) -> Any:
        # Not by calling the class again, as exceptions do: its arguments are not those of the message.
        return _restored, (type(self), self.args, _portable(vars(self)))


def _restored(kind: type[HostingError], args: tuple[Any, ...], facts: dict[str, Any]) -> HostingError:
    error = kind.__new__(kind, *args)
    vars(error).update(facts)
    return error


def _portable(value: Any) -> Any:
    """What of an error's facts may leave the process: plain values and other errors. A secret, or any other
    object, becomes None.
    """
    if isinstance(value, Mapping):
        return {name: _portable(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(_portable(item) for item in value)
    return value if isinstance(value, str | int | float | Decimal | datetime | HostingError) else None


class ConfigurationError(HostingError):
    """An API key, base URL or option that cannot be used. Nothing was sent."""


class InvalidInput(HostingError):
    """Arguments that the API document does not allow, refused before anything was sent.

    ``fields`` maps the field's name to what is wrong with it; no value is repeated, so a secret cannot leak
    through it.
    """

    def __init__(self, fields: Mapping[str, str], subject: str = "the request") -> None:
        self.fields = dict(fields)
        self.subject = subject
        super().__init__((f"{subject} is not valid: ") + "; ".join(f"{name}: {reason}" for name, reason in self.fields.items()))


class WriteRefused(HostingError):
    """A write was attempted where only reads are allowed (check mode, preview). Nothing was sent."""


class CallError(HostingError):
    """An error of a call that was sent.

    - ``operation``: id of the operation. ``request_id``: the service's, or the one that was sent where none
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
        return f"{self.args[0]}{self._facts(self.outcome_unknown)}"

    @property
    def advice(self) -> str:
        """What is known of the outcome, and what to do next."""
        if not self.outcome_unknown:
            return f"Next: {self._remedy}" if self._remedy else ""
        which = "An earlier attempt" if self._because_of_earlier else "The request"
        if self.idempotency_key:
            return (
                f"{which} may have been processed. Next: repeat the same call with "
                f'idempotency_key="{self.idempotency_key}"; '
                "the service carries it out once only"
            )
        return f"{which} may have been processed. Next: look whether it was before sending it again"

    def __str__(self) -> str:
        advice = self.advice
        return (f"{self.args[0]}. {advice}{self._facts(False)}") if advice else f"{self.args[0]}{self._facts(False)}"

    def _facts(self, with_key: bool) -> str:
        """Status, code and request id in brackets, where they are known; the key where the advice does not
        name it.
        """
        key = f"key {self.idempotency_key}" if with_key and self.idempotency_key else ""
        parts = [part for part in (self._status(), f"request {self.request_id}" if self.request_id else "", key) if part]
        return f" ({', '.join(parts)})" if parts else ""

    def _status(self) -> str:
        return ""

    def sent_as(
        self, *, request_id: str | None, idempotency_key: str | None, attempts: int, outcome_unknown: bool, because_of_earlier: bool
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
    _remedy = "check the base URL and the network, then run again"

    def __init__(self, message: str, *, outcome_unknown: bool, request_id: str | None = None, operation: str = "") -> None:
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
    _remedy = "check the base URL"

    @property
    def advice(self) -> str:
        return super().advice.replace("Next: ", "Next: check the base URL, then ") if self.outcome_unknown else ("Next: check the base URL")


class InvalidResponse(CallError):
    """An answer that is not what the API document describes: not JSON, a required field absent, or a wrong
    type.

    For a write the outcome is what ``status`` says, but its result could not be read completely. ``partial``
    holds what could be: ids, sums of money (``Decimal``) and secrets by their field names, for example
    ``server_id``, ``invoice_id``, ``charged``.
    """

    _remedy = "check the base URL, or report it to the provider"

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
        known = ", ".join(f"{name} {value}" for name, value in self.partial.items() if isinstance(value, int | Decimal))
        return (f"What could be read: {known}. " if known else "") + super().advice


class WebhookRejected(HostingError):
    """A webhook delivery that must not be trusted: bad signature, timestamp out of tolerance, or a body that
    is no event.
    """


class ApiError(CallError):
    """The service refused a request (API document, section "Errors").

    Attributes: ``status`` (HTTP), ``code`` (may be one this version does not know), ``message`` (English, not
    stable), ``request_id``, ``details`` (depends on the code), ``retry_after`` (seconds or ``None``),
    ``operation`` (id of the operation), ``fields`` (field name → reason, for validation errors).

    A class names the statuses and codes that it stands for.
    """

    _by_status: ClassVar[dict[int, type["ApiError"]]] = {}
    _by_code: ClassVar[dict[str, type["ApiError"]]] = {}

    def __init_subclass__(cls, statuses: tuple[int, ...] = (), codes: tuple[str, ...] = ()) -> None:
        super().__init_subclass__()
        ApiError._by_status.update(dict.fromkeys(statuses, cls))
        ApiError._by_code.update(dict.fromkeys(codes, cls))

    def __init__(
        self,
        *,
        status: int,
        code: str,
        message: str,
        request_id: str | None = None,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        operation: str = "",
    ) -> None:
        self.status = status
        self.code = clean_text(code, 64)
        self.message = clean_text(message)
        self.request_id = clean_text(request_id, 128) if request_id else None
        self.details = dict(details or {})
        self.retry_after = retry_after
        self.operation = operation
        self.fields = _fields(self.details.get("fields"))
        row = CODES.get(self.code)
        # A code of a later version is treated as its status is.
        advice = row or next((known for known in CODES.values() if known.status == status), None)
        self._remedy = advice.remedy if advice else ""
        parts = [self._what(row), *(f"{name}: {reason}" for name, reason in self.fields.items())]
        super().__init__((f"{operation}: " if operation else "") + "; ".join(part for part in parts if part))

    def _status(self) -> str:
        return f"{self.status} {self.code}"

    def _what(self, row: Code | None) -> str:
        """What happened, in a few words; classes with figures of their own say them here."""
        if row is None:
            return self.message or f"the service answered {self.status}"
        # A message that only repeats the meaning of the code, or the fields that follow, is left out.
        known = {row.meaning, self.code, "; ".join(f"{name}: {reason}" for name, reason in self.fields.items())}
        return row.meaning if not self.message or self.message in known else f"{row.meaning} — {self.message}"


def _fields(raw: object) -> dict[str, str]:
    """``details.fields`` as published (an object) or as a list of ``{field, message}``; anything else is
    ignored.
    """
    if isinstance(raw, Mapping):
        return {clean_text(str(name), 100): clean_text(str(reason), 200) for name, reason in raw.items()}
    if isinstance(raw, list):
        rows = [row for row in raw if isinstance(row, Mapping) and "field" in row]
        return {clean_text(str(row["field"]), 100): clean_text(str(row.get("message", row.get("code", "invalid"))), 200) for row in rows}
    return {}


def _money(raw: object) -> Decimal | None:
    try:
        return Decimal(raw) if isinstance(raw, str) else None
    except InvalidOperation:
        return None


class BadRequest(ApiError, statuses=(400,)):
    """400."""


class ValidationFailed(BadRequest, codes=("validation_error",)):
    """400 ``validation_error``; ``fields`` names the fields."""


class OsNotAllowed(BadRequest, codes=("os_not_allowed",)):
    """400 ``os_not_allowed``."""


class InvalidPeriod(BadRequest, codes=("invalid_period",)):
    """400 ``invalid_period``."""


class UpstreamRejected(BadRequest, codes=("upstream_rejected",)):
    """400 ``upstream_rejected``: the panel or registrar refused, nothing was saved."""


class Unauthorized(ApiError, statuses=(401,)):
    """401."""


class InsufficientFunds(ApiError, statuses=(402,)):
    """402: nothing was charged or created. ``required``, ``balance``, ``shortfall`` are ``Decimal`` (or
    ``None``) in ``currency``.
    """

    @property
    def required(self) -> Decimal | None:
        return _money(self.details.get("required"))

    @property
    def balance(self) -> Decimal | None:
        return _money(self.details.get("balance"))

    @property
    def shortfall(self) -> Decimal | None:
        return _money(self.details.get("shortfall"))

    @property
    def currency(self) -> str:
        return clean_text(str(self.details.get("currency", "")), 8)

    def _what(self, row: Code | None) -> str:
        if self.required is None:
            return super()._what(row)
        figures = (
            f"{self.required} {self.currency} needed, {self.balance} {self.currency} available, {self.shortfall} {self.currency} short"
        )
        return f"{CODES['insufficient_funds'].meaning}: {figures}"


class Forbidden(ApiError, statuses=(403,)):
    """403."""


class InsufficientScope(Forbidden, codes=("insufficient_scope",)):
    """403 ``insufficient_scope``; ``required`` lists the missing scopes."""

    @property
    def required(self) -> tuple[str, ...]:
        raw = self.details.get("required")
        return tuple(clean_text(str(scope), 64) for scope in raw) if isinstance(raw, list) else ()

    def _what(self, row: Code | None) -> str:
        return (f"the API key lacks a scope: {', '.join(self.required)}") if self.required else super()._what(row)


class ServerBlocked(Forbidden, codes=("server_blocked",)):
    """403 ``server_blocked``."""


class DomainBlocked(Forbidden, codes=("domain_blocked",)):
    """403 ``domain_blocked``."""


class SandboxRefused(Forbidden, codes=("sandbox_not_supported", "sandbox_disabled")):
    """403 ``sandbox_not_supported`` or ``sandbox_disabled``."""


class NotFound(ApiError, statuses=(404,)):
    """404: absent on this account; objects of other accounts too."""


class MethodNotAllowed(ApiError, statuses=(405,)):
    """405."""


class Conflict(ApiError, statuses=(409,)):
    """409."""


class IdempotencyConflict(Conflict, codes=("idempotency_conflict",)):
    """409 ``idempotency_conflict``."""


class IdempotencyInProgress(Conflict, codes=("idempotency_in_progress",)):
    """409 ``idempotency_in_progress``."""


class OperationInProgress(Conflict, codes=("operation_in_progress",)):
    """409 ``operation_in_progress``."""


class ServiceState(Conflict, codes=("service_state",)):
    """409 ``service_state``: the server or domain is in a state that does not allow this."""


class NoCapacity(Conflict, codes=("no_capacity", "tariff_unavailable")):
    """409 ``no_capacity`` or ``tariff_unavailable``."""


class IpLimitReached(Conflict, codes=("ip_limit_reached",)):
    """409 ``ip_limit_reached``."""


class DomainUnavailable(Conflict, codes=("domain_taken", "domain_exists")):
    """409 ``domain_taken`` or ``domain_exists``; see ``code``."""


class PayloadTooLarge(ApiError, statuses=(413,)):
    """413."""


class UnsupportedMediaType(ApiError, statuses=(415,)):
    """415."""


class RateLimited(ApiError, statuses=(429,)):
    """429; ``bucket`` is ``normal`` or ``expensive`` where the answer names it."""

    @property
    def bucket(self) -> str | None:
        raw = self.details.get("bucket")
        return clean_text(raw, 32) if isinstance(raw, str) else None


class ServerError(ApiError):
    """500, and any 5xx without a class of its own."""


class Unavailable(ApiError, statuses=(502, 503, 504)):
    """502, 503, 504."""


def error_class(status: int, code: str) -> type[ApiError]:
    """The class for an answer: by code where it has one, else by status; an unknown 4xx or 5xx is
    ``ApiError`` or ``ServerError``.
    """
    return ApiError._by_code.get(code) or ApiError._by_status.get(status) or (ServerError if status >= 500 else ApiError)
