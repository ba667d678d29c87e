"""The one list of error codes (API document, section "Errors"): classes, messages, the emulator's statuses
and docs are made from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass


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
        Code(
            "validation_error",
            400,
            "a field has a value that is not allowed",
            "correct the fields named in the message",
        ),
        Code(
            "invalid_cursor",
            400,
            "the page cursor is damaged or belongs to other filters",
            "start again from the first page",
        ),
        Code(
            "idempotency_key_required",
            400,
            "the operation needs an Idempotency-Key",
            "send one of 16 to 128 characters",
        ),
        Code(
            "os_not_allowed",
            400,
            "the image cannot be installed on this tariff",
            "choose an image listed for the tariff",
        ),
        Code(
            "invalid_period",
            400,
            "the period is not offered",
            "use months 1, 3, 6 or 12, or hours on an hourly tariff",
        ),
        Code("invalid_action", 400, "the action does not exist", "use start, stop or restart"),
        Code(
            "upstream_rejected",
            400,
            "the panel or registrar refused the request",
            "read the message; nothing was saved",
        ),
        Code(
            "invalid_token",
            401,
            "the API key is not valid",
            "check HOSTING_API_KEY, or create a key in the control panel",
        ),
        Code("key_expired", 401, "the API key has expired", "create a new key in the control panel"),
        Code(
            "key_not_yet_valid",
            401,
            "the API key is not valid yet",
            "wait for its not_before, or use another key",
        ),
        Code(
            "insufficient_funds",
            402,
            "the balance does not cover the price; nothing was charged",
            "top up the balance and run again",
        ),
        Code(
            "insufficient_scope",
            403,
            "the API key lacks a scope",
            "give the key the scopes named in the message",
        ),
        Code(
            "ip_not_allowed",
            403,
            "the API key may not be used from this address",
            "add the address to the key's allow-list",
        ),
        Code("account_suspended", 403, "the account is suspended", "contact the provider"),
        Code(
            "api_disabled_for_account",
            403,
            "the API is switched off for this account",
            "contact the provider",
        ),
        Code("sandbox_not_supported", 403, "test keys cannot use this operation", "use a live key"),
        Code("sandbox_disabled", 403, "test keys are switched off by the provider", "use a live key"),
        Code("server_blocked", 403, "the server is locked by staff", "contact the provider"),
        Code("domain_blocked", 403, "the domain is locked by staff", "contact the provider"),
        Code(
            "not_found",
            404,
            "not found on this account: deleted outside, or the key belongs to another account",
            "check the id and the account of the key",
        ),
        Code("method_not_allowed", 405, "the path does not support this method", "check the base URL"),
        Code(
            "conflict",
            409,
            "the object's present state does not allow this",
            "read the object and decide again",
        ),
        Code(
            "idempotency_conflict",
            409,
            "the Idempotency-Key was used for another request",
            "use a new key for a new request",
        ),
        Code(
            "idempotency_in_progress",
            409,
            "the first request with this key is still running",
            "repeat with the same key later",
        ),
        Code(
            "operation_in_progress",
            409,
            "another change of this server is running",
            "wait until it is finished and run again",
        ),
        Code(
            "service_state",
            409,
            "the server's status does not allow this",
            "read the server and decide again",
        ),
        Code(
            "no_capacity",
            409,
            "the tariff is out of stock",
            "choose another tariff or location, or try later",
        ),
        Code("tariff_unavailable", 409, "the tariff cannot be ordered", "choose another tariff"),
        Code(
            "ip_limit_reached",
            409,
            "the server has as many addresses as it may",
            "release one, or choose another tariff",
        ),
        Code(
            "domain_taken",
            409,
            "this domain is already registered",
            "choose another name, or transfer it with its auth code",
        ),
        Code(
            "domain_exists",
            409,
            "the domain is on this account already",
            "adopt it instead of registering it",
        ),
        Code(
            "cancel_pending",
            409,
            "a cancellation of the service is pending",
            "withdraw it in the control panel first",
        ),
        Code("payload_too_large", 413, "the request body is larger than 64 KB", "send less"),
        Code("unsupported_media_type", 415, "the request body is not JSON", "send application/json"),
        Code("rate_limited", 429, "too many requests with this key", "wait for Retry-After"),
        Code("server_error", 500, "the service failed", "report the request id to the provider"),
        Code(
            "upstream_error",
            502,
            "the panel, registrar or gateway failed",
            "run again later",
        ),
        Code("api_disabled", 503, "the API is switched off by the provider", "run again later"),
        Code(
            "upstream_unavailable",
            503,
            "the panel, registrar or gateway is not reachable",
            "run again later",
        ),
        Code("temporarily_unavailable", 503, "the service is not available at the moment", "run again later"),
        Code(
            "upstream_timeout",
            504,
            "the panel or registrar did not answer in time",
            "repeat with the same Idempotency-Key",
        ),
    )
}

KEY_REFUSED = frozenset(
    {
        "invalid_token",
        "key_expired",
        "key_not_yet_valid",
        "ip_not_allowed",
        "account_suspended",
        "api_disabled_for_account",
        "sandbox_disabled",
    }
)
"""Codes by which the service refuses a key, whatever it is asked for: running again changes nothing until
their remedy is done.
"""
