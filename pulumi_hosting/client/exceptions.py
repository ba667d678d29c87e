"""The exceptions of this package. All of them can be imported from ``pulumi_hosting``.

    HostingError
    ├── ConfigurationError       key, base URL or option unusable; nothing was sent
    ├── InvalidInput             arguments refused before anything was sent; ``fields`` says which
    ├── WriteRefused             a write while only reading is allowed (check mode, preview); nothing was sent
    ├── RateLimitTimeout         the rate limit left no room within ``rate_limit_timeout``; nothing was sent
    ├── ResourceError            stopped here, not by the service
    │   ├── OrderFailed          an order was accepted and not delivered; its charge was returned
    │   ├── WaitTimeout          something asynchronous did not finish in time
    │   └── AmbiguousMatch       several objects have the name
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

A code that this version does not know becomes the class of its HTTP status.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

from pulumi_hosting.api.error_codes import CODES as CODES
from pulumi_hosting.api.error_codes import Code as Code
from pulumi_hosting.api.secrets import clean_text
from pulumi_hosting.client.call_errors import *  # noqa: F403  # the others of the tree above
from pulumi_hosting.client.call_errors import CallError as CallError

NO_ENVELOPE = "http_404"
"""The code of a 404 that proves nothing: one without the API's envelope, or at a base URL that may be wrong."""


class ApiError(CallError):
    """The service refused a request (API document, section "Errors").

    Attributes: ``status`` (HTTP), ``code`` (may be one this version does not know), ``message`` (English, not
    stable), ``request_id``, ``details`` (depends on the code), ``retry_after`` (seconds or ``None``),
    ``operation`` (id of the operation), ``fields`` (field name → reason, for validation errors).

    A class names the statuses and codes that it stands for. ``given`` says in words what a refused field held.
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
        given: Callable[[str], str] = lambda name: "",
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
        parts = [self._what(row), *(f"{name}: {reason}{given(name)}" for name, reason in self.fields.items())]
        super().__init__("; ".join(part for part in parts if part))

    def _status(self) -> str:
        return f"{self.status} {self.code}"

    def _what(self, row: Code | None) -> str:
        """What happened, in a few words; classes with figures of their own say them here."""
        if row is None:
            return self.message or f"the service answered {self.status}"
        # A message that only repeats the meaning of the code, or the fields that follow, is left out.
        known = {
            row.meaning,
            self.code,
            "; ".join(f"{name}: {reason}" for name, reason in self.fields.items()),
        }
        return row.meaning if not self.message or self.message in known else f"{row.meaning} — {self.message}"


def _fields(raw: object) -> dict[str, str]:
    """``details.fields`` as published (an object) or as a list of ``{field, message}``; anything else is
    ignored.
    """
    if isinstance(raw, list):
        rows = [row for row in raw if isinstance(row, Mapping) and "field" in row]
        raw = {str(row["field"]): row.get("message", row.get("code", "invalid")) for row in rows}
    found = raw if isinstance(raw, Mapping) else {}
    return {clean_text(str(name), 100): clean_text(str(reason), 200) for name, reason in found.items()}


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
            f"{self.required} {self.currency} needed, {self.balance} {self.currency} available, "
            f"{self.shortfall} {self.currency} short"
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
        return (
            f"the API key lacks a scope: {', '.join(self.required)}" if self.required else super()._what(row)
        )


class ServerBlocked(Forbidden, codes=("server_blocked",)):
    """403 ``server_blocked``."""


class DomainBlocked(Forbidden, codes=("domain_blocked",)):
    """403 ``domain_blocked``."""


class SandboxRefused(Forbidden, codes=("sandbox_not_supported", "sandbox_disabled")):
    """403 ``sandbox_not_supported`` or ``sandbox_disabled``."""


class NotFound(ApiError, statuses=(404,)):
    """404: absent on this account; objects of other accounts too. Raised only if this client has had an
    answer to ``GET /me`` at its base URL; any other 404 is an ``ApiError`` with the code ``http_404``."""


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
    """429; ``bucket`` is ``normal`` or ``expensive`` if the answer names it."""

    @property
    def bucket(self) -> str | None:
        raw = self.details.get("bucket")
        return clean_text(raw, 32) if isinstance(raw, str) else None


class ServerError(ApiError):
    """500, and any 5xx without a class of its own."""


class Unavailable(ApiError, statuses=(502, 503, 504)):
    """502, 503, 504."""


def error_class(status: int, code: str) -> type[ApiError]:
    """The class for an answer: by code if it has one, else by status; an unknown 4xx or 5xx is
    ``ApiError`` or ``ServerError``.
    """
    return (
        ApiError._by_code.get(code)
        or ApiError._by_status.get(status)
        or (ServerError if status >= 500 else ApiError)
    )
