"""The one list of error codes (API document, section "Errors"): classes, messages, the emulator's statuses
and docs are made from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One error code: the status it comes with, what it means, and what to do next, with the names of a
    frontend's words in braces (``client.words``)."""

    code: str
    status: int
    meaning: str
    remedy: str


def parted(line: str) -> tuple[str, str]:
    """What a message says is wrong, without the full stop, and its next step; empty if it has none.

    >>> parted("os: is required. Next: correct os"), parted("gone")
    (('os: is required', 'correct os'), ('gone', ''))
    """
    wrong, _, step = line.partition("Next: ")
    return wrong.rstrip(". "), step


_TABLE = """
400 invalid_request | the request cannot be read | correct what the message names
400 validation_error | a field has a value that is not allowed | correct the fields named in the message
400 invalid_cursor | the page cursor is damaged or belongs to other filters | {again}, from the beginning
400 idempotency_key_required | the operation needs an Idempotency-Key | report it to pulumi-hosting, which sends one
400 os_not_allowed | the image cannot be installed on this tariff | choose an image listed for the tariff
400 invalid_period | the period is not offered | use months 1, 3, 6 or 12; on an hourly tariff hours, 1 if more are refused
400 invalid_action | the action does not exist | use start, stop or restart
400 upstream_rejected | the panel or registrar refused the request | read the message; nothing was saved
401 invalid_token | the API key is not valid | check {api_key}, or create a key in the control panel
401 key_expired | the API key has expired | create a new key in the control panel
401 key_not_yet_valid | the API key is not valid yet | wait for its not_before, or use another key
402 insufficient_funds | the balance does not cover the price; nothing was charged | top up the balance, then {again}
403 insufficient_scope | the API key lacks a scope | give the key the scopes named in the message
403 ip_not_allowed | the API key may not be used from this address | add the address to the key's allow-list
403 account_suspended | the account is suspended | contact the provider
403 api_disabled_for_account | the API is switched off for this account | contact the provider
403 sandbox_not_supported | test keys cannot use this operation | use a live key
403 sandbox_disabled | test keys are switched off by the provider | use a live key
403 server_blocked | the server is locked by staff | contact the provider
403 domain_blocked | the domain is locked by staff | contact the provider
404 not_found | not found on this account: deleted outside, or the key belongs to another account | check the id and the account of the key
405 method_not_allowed | the path does not support this method | check the base URL ({base_url})
409 conflict | the object's present state does not allow this | look at the object, then {again}
409 idempotency_conflict | the Idempotency-Key was used for another request | use a new key for a new request
409 idempotency_in_progress | the first request with this key is still running | {again} later
409 operation_in_progress | another change of this server is running | wait until it is finished, then {again}
409 service_state | the server's status does not allow this | look at the server, then {again}
409 no_capacity | the tariff is out of stock | choose another tariff or location, or try later
409 tariff_unavailable | the tariff cannot be ordered | choose another tariff
409 ip_limit_reached | the server has as many addresses as it may | release one, or choose another tariff
409 domain_taken | this domain is already registered | choose another name, or transfer it with its auth code
409 domain_exists | the domain is on this account already | take it over, or choose another name
409 cancel_pending | a cancellation of the service is pending | withdraw it in the control panel first
413 payload_too_large | the request body is larger than 64 KB | shorten its texts
415 unsupported_media_type | the request body is not JSON | check the base URL ({base_url})
429 rate_limited | too many requests with this key | {again} later
500 server_error | the service failed | report the request id to the provider
502 upstream_error | the panel, registrar or gateway failed | {again} later
503 api_disabled | the API is switched off by the provider | {again} later
503 upstream_unavailable | the panel, registrar or gateway is not reachable | {again} later
503 temporarily_unavailable | the service is not available at the moment | {again} later
504 upstream_timeout | the panel or registrar did not answer in time | {again} later
"""
"""Status, code, what it means, and what to do next."""


def _code(row: str) -> Code:
    named, meaning, remedy = row.split(" | ")
    status, code = named.split()
    return Code(code, int(status), meaning, remedy)


CODES: Mapping[str, Code] = {found.code: found for found in map(_code, _TABLE.strip().splitlines())}

_ACCESS_REFUSED = ("ip_not_allowed", "account_suspended", "api_disabled_for_account", "sandbox_disabled")
KEY_REFUSED = frozenset((*_ACCESS_REFUSED, *(code for code, found in CODES.items() if found.status == 401)))
"""Codes by which the service refuses a key, whatever it is asked for: running again changes nothing until
their remedy is done.
"""
