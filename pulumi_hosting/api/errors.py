"""Everything that can go wrong, and the words for it.

    HostingError
    ├── ConfigurationError       key, base URL or option unusable; nothing was sent
    ├── InvalidInput             arguments refused before anything was sent; ``fields`` says which
    ├── WriteRefused             a write while only reading is allowed (check mode, preview); nothing was sent
    ├── TransportError           no usable answer; ``outcome_unknown`` tells whether the request may have been processed
    │   ├── TimedOut             the answer, or the total deadline, took too long
    │   └── RedirectRefused      the service answered 3xx: a wrong base URL, never followed
    ├── InvalidResponse          an answer that is not what the API document describes
    ├── WebhookRejected          a delivery whose signature, time or body cannot be trusted
    └── ApiError                 the service refused; one class per status, a few per code
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

The table :data:`CODES` is the one list of error codes (API document, section "Errors"); classes, messages, the emulator's statuses and
the reference page of the docs are made from it. A code that is not in it falls back to the class of its HTTP status.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from pulumi_hosting.api.redact import clean_text


@dataclass(frozen=True, slots=True)
class Code:
    """One error code: the status it comes with, what it means, and what to do next."""

    code: str
    status: int
    meaning: str
    remedy: str


CODES: Mapping[str, Code] = {
    row.code: row
    for row in (
        Code("invalid_request", 400, "the request cannot be read", "check the JSON and the parameters"),
        Code("validation_error", 400, "a field has a value that is not allowed", "correct the fields named in the message"),
        Code("invalid_cursor", 400, "the page cursor is damaged or belongs to other filters", "start again from the first page"),
        Code("idempotency_key_required", 400, "the operation needs an Idempotency-Key", "send one of 16 to 128 characters"),
        Code("os_not_allowed", 400, "the image cannot be installed on this tariff", "choose an image listed for the tariff"),
        Code("invalid_period", 400, "the period is not offered", "use months 1, 3, 6 or 12, or hours on an hourly tariff"),
        Code("invalid_action", 400, "the action does not exist", "use start, stop or restart"),
        Code("upstream_rejected", 400, "the panel or registrar refused the request", "read the message; nothing was saved"),
        Code("invalid_token", 401, "the API key is not valid", "check HOSTING_API_KEY, or create a key in the web cabinet"),
        Code("key_expired", 401, "the API key has expired", "create a new key in the web cabinet"),
        Code("key_not_yet_valid", 401, "the API key is not valid yet", "wait for its not_before, or use another key"),
        Code("insufficient_funds", 402, "the balance does not cover the price; nothing was charged", "top up the balance and run again"),
        Code("insufficient_scope", 403, "the API key lacks a scope", "give the key the scopes named in the message"),
        Code("ip_not_allowed", 403, "the API key may not be used from this address", "add the address to the key's allow-list"),
        Code("account_suspended", 403, "the account is suspended", "contact the provider"),
        Code("api_disabled_for_account", 403, "the API is switched off for this account", "contact the provider"),
        Code("sandbox_not_supported", 403, "test keys cannot use this operation", "use a live key"),
        Code("sandbox_disabled", 403, "test keys are switched off by the provider", "use a live key"),
        Code("server_blocked", 403, "the server is locked by staff", "contact the provider"),
        Code("domain_blocked", 403, "the domain is locked by staff", "contact the provider"),
        Code("not_found", 404, "the object does not exist on this account", "check the id and the account of the key"),
        Code("method_not_allowed", 405, "the path does not support this method", "check the base URL"),
        Code("conflict", 409, "the object's present state does not allow this", "read the object and decide again"),
        Code("idempotency_conflict", 409, "the Idempotency-Key was used for another request", "use a new key for a new request"),
        Code("idempotency_in_progress", 409, "the first request with this key is still running", "repeat with the same key later"),
        Code("operation_in_progress", 409, "another change of this server is running", "wait until it is finished and run again"),
        Code("service_state", 409, "the server's status does not allow this", "read the server and decide again"),
        Code("no_capacity", 409, "the tariff is out of stock", "choose another tariff or location, or try later"),
        Code("tariff_unavailable", 409, "the tariff cannot be ordered", "choose another tariff"),
        Code("ip_limit_reached", 409, "the server has as many addresses as it may", "release one, or choose another tariff"),
        Code("domain_taken", 409, "somebody owns this domain already", "choose another name, or transfer it with its auth code"),
        Code("domain_exists", 409, "the domain is on this account already", "adopt it instead of registering it"),
        Code("cancel_pending", 409, "a cancellation of the service is pending", "withdraw it in the web cabinet first"),
        Code("payload_too_large", 413, "the request body is larger than 64 KB", "send less"),
        Code("unsupported_media_type", 415, "the request body is not JSON", "send application/json"),
        Code("rate_limited", 429, "too many requests with this key", "wait for Retry-After"),
        Code("server_error", 500, "the service failed", "report the request id to the provider"),
        Code(
            "upstream_error",
            502,
            "the panel, registrar or gateway failed",
            "run again later; nothing was charged unless the message says so",
        ),
        Code("api_disabled", 503, "the API is switched off by the provider", "run again later"),
        Code("upstream_unavailable", 503, "the panel, registrar or gateway is not reachable", "run again later"),
        Code("temporarily_unavailable", 503, "the service is not available at the moment", "run again later"),
        Code("upstream_timeout", 504, "the panel or registrar did not answer in time", "repeat with the same Idempotency-Key"),
    )
}


class HostingError(Exception):
    """Base of every error of this package. ``str()`` is one line for a person: what is wrong and what to do next."""


class ConfigurationError(HostingError):
    """An API key, base URL or option that cannot be used. Nothing was sent."""


class InvalidInput(HostingError):
    """Arguments that the API document does not allow, refused before anything was sent.

    ``fields`` maps the field's name to what is wrong with it; no value is repeated, so a secret cannot leak through it.
    """

    def __init__(self, fields: Mapping[str, str], subject: str = "the request") -> None:
        self.fields = dict(fields)
        self.subject = subject
        super().__init__(f"{subject} is not valid: " + "; ".join(f"{name}: {reason}" for name, reason in self.fields.items()))


class WriteRefused(HostingError):
    """A write was attempted where only reads are allowed (check mode, preview). Nothing was sent."""


class TransportError(HostingError):
    """No usable answer came. ``outcome_unknown`` is true when the request may have reached the service and been processed."""

    def __init__(self, message: str, *, outcome_unknown: bool, request_id: str | None = None) -> None:
        self.outcome_unknown = outcome_unknown
        self.request_id = request_id
        super().__init__(message)


class TimedOut(TransportError):
    """The answer, or the total deadline of all attempts, took too long."""


class RedirectRefused(TransportError):
    """The service answered with a redirect. None is followed, since it would carry the API key elsewhere: check the base URL."""


class InvalidResponse(HostingError):
    """An answer that is not what the API document describes: not JSON, a required field absent, or a wrong type.

    For a write the outcome is what ``status`` says, but its result could not be read; ``request_id`` helps the provider find it.
    """

    def __init__(self, message: str, *, operation: str = "", status: int | None = None, request_id: str | None = None) -> None:
        self.operation = operation
        self.status = status
        self.request_id = request_id
        super().__init__(message)


class WebhookRejected(HostingError):
    """A webhook delivery that must not be trusted: bad signature, timestamp out of tolerance, or a body that is no event."""


class ApiError(HostingError):
    """The service refused a request (API document, section "Errors").

    Attributes: ``status`` (HTTP), ``code`` (may be one this version does not know), ``message`` (English, not stable), ``request_id``,
    ``details`` (depends on the code), ``retry_after`` (seconds or ``None``), ``operation`` (id of the operation),
    ``fields`` (field name → reason, for validation errors).
    """

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
        super().__init__(self._line())

    def _line(self) -> str:
        row = CODES.get(self.code)
        parts = [self._what(row), *(f"{name}: {reason}" for name, reason in self.fields.items())]
        line = "; ".join(part for part in parts if part)
        # A code of a later version is treated as its status is.
        advice = row or next((known for known in CODES.values() if known.status == self.status), None)
        if advice:
            line += f". Next: {advice.remedy}"
        where = f"{self.operation}: " if self.operation else ""
        request = f", request {self.request_id}" if self.request_id else ""
        return f"{where}{line} ({self.status} {self.code}{request})"

    def _what(self, row: Code | None) -> str:
        """What happened, in a few words; classes with figures of their own say them here."""
        if row is None:
            return self.message or f"the service answered {self.status}"
        # A message that only repeats the code's meaning, or the fields that follow, says nothing new.
        said = {row.meaning, self.code, "; ".join(f"{name}: {reason}" for name, reason in self.fields.items())}
        return row.meaning if not self.message or self.message in said else f"{row.meaning} — {self.message}"


def _fields(raw: object) -> dict[str, str]:
    """``details.fields`` as published (an object) or as a list of ``{field, message}``; whatever else is ignored, never an error."""
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


class BadRequest(ApiError):
    """400."""


class ValidationFailed(BadRequest):
    """400 ``validation_error``; ``fields`` names the fields."""


class OsNotAllowed(BadRequest):
    """400 ``os_not_allowed``."""


class InvalidPeriod(BadRequest):
    """400 ``invalid_period``."""


class UpstreamRejected(BadRequest):
    """400 ``upstream_rejected``: the panel or registrar refused, nothing was saved."""


class Unauthorized(ApiError):
    """401."""


class InsufficientFunds(ApiError):
    """402: nothing was charged or created. ``required``, ``balance``, ``shortfall`` are ``Decimal`` (or ``None``) in ``currency``."""

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


class Forbidden(ApiError):
    """403."""


class InsufficientScope(Forbidden):
    """403 ``insufficient_scope``; ``required`` lists the missing scopes."""

    @property
    def required(self) -> tuple[str, ...]:
        raw = self.details.get("required")
        return tuple(clean_text(str(scope), 64) for scope in raw) if isinstance(raw, list) else ()

    def _what(self, row: Code | None) -> str:
        return f"the API key lacks a scope: {', '.join(self.required)}" if self.required else super()._what(row)


class ServerBlocked(Forbidden):
    """403 ``server_blocked``."""


class DomainBlocked(Forbidden):
    """403 ``domain_blocked``."""


class SandboxRefused(Forbidden):
    """403 ``sandbox_not_supported`` or ``sandbox_disabled``."""


class NotFound(ApiError):
    """404: absent on this account; objects of other accounts too."""


class MethodNotAllowed(ApiError):
    """405."""


class Conflict(ApiError):
    """409."""


class IdempotencyConflict(Conflict):
    """409 ``idempotency_conflict``."""


class IdempotencyInProgress(Conflict):
    """409 ``idempotency_in_progress``."""


class OperationInProgress(Conflict):
    """409 ``operation_in_progress``."""


class ServiceState(Conflict):
    """409 ``service_state``; ``service_status`` is the server's status where the answer names it."""

    @property
    def service_status(self) -> str | None:
        raw = self.details.get("status")
        return clean_text(raw, 64) if isinstance(raw, str) else None


class NoCapacity(Conflict):
    """409 ``no_capacity`` or ``tariff_unavailable``."""


class IpLimitReached(Conflict):
    """409 ``ip_limit_reached``."""


class DomainUnavailable(Conflict):
    """409 ``domain_taken`` or ``domain_exists``; ``code`` tells which."""


class PayloadTooLarge(ApiError):
    """413."""


class UnsupportedMediaType(ApiError):
    """415."""


class RateLimited(ApiError):
    """429; ``bucket`` is ``normal`` or ``expensive`` where the answer names it."""

    @property
    def bucket(self) -> str | None:
        raw = self.details.get("bucket")
        return clean_text(raw, 32) if isinstance(raw, str) else None


class ServerError(ApiError):
    """500, and any 5xx without a class of its own."""


class Unavailable(ApiError):
    """502, 503, 504."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    402: InsufficientFunds,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    413: PayloadTooLarge,
    415: UnsupportedMediaType,
    429: RateLimited,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}

_BY_CODE: Mapping[str, type[ApiError]] = {
    "validation_error": ValidationFailed,
    "os_not_allowed": OsNotAllowed,
    "invalid_period": InvalidPeriod,
    "upstream_rejected": UpstreamRejected,
    "insufficient_scope": InsufficientScope,
    "server_blocked": ServerBlocked,
    "domain_blocked": DomainBlocked,
    "sandbox_not_supported": SandboxRefused,
    "sandbox_disabled": SandboxRefused,
    "idempotency_conflict": IdempotencyConflict,
    "idempotency_in_progress": IdempotencyInProgress,
    "operation_in_progress": OperationInProgress,
    "service_state": ServiceState,
    "no_capacity": NoCapacity,
    "tariff_unavailable": NoCapacity,
    "ip_limit_reached": IpLimitReached,
    "domain_taken": DomainUnavailable,
    "domain_exists": DomainUnavailable,
}


def error_class(status: int, code: str) -> type[ApiError]:
    """The class for an answer: by code where it has one, else by status; an unknown 4xx or 5xx is ``ApiError`` or ``ServerError``."""
    return _BY_CODE.get(code) or _BY_STATUS.get(status) or (ServerError if status >= 500 else ApiError)
