"""The pipeline of a request: :data:`PIPELINE`, in this order. A step passes the call on, answers it, or
raises an Refusal.

The order matters. What is refused before :func:`replay_stored_response` never uses up an Idempotency-Key:
faults with a status, the staff switch, 401, 429, sandbox, account, scopes, content type, size, JSON, a
missing key, the query. What comes after it, validation and the handler's own answers, is stored under the
key. Every request with a valid API key counts in its rate bucket, whatever its outcome.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Generic, TypeVar

from pulumi_hosting.api.operations import (
    EXPENSIVE_PER_WINDOW,
    INVALID_KEYS_PER_WINDOW,
    MAX_BODY_BYTES,
    NORMAL_PER_WINDOW,
    WINDOW_SECONDS,
    Operation,
    area_at,
)
from pulumi_hosting.emulator import dialects, faults, idempotency_store, validation
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import format_seconds
from pulumi_hosting.emulator.handlers import HANDLERS
from pulumi_hosting.emulator.messages import Answer, Refusal
from pulumi_hosting.emulator.rate_limits import hit, too_many
from pulumi_hosting.emulator.rows import KeyRow
from pulumi_hosting.emulator.webhook_delivery import Outbound

Step = Callable[[Call], Answer | Outbound | None]

_UNSAFE = re.compile(r"[^A-Za-z0-9._:-]")


def identify_request(call: Call) -> None:
    """X-Request-ID: the caller's without characters that are not allowed; a UUIDv4 if nothing is left."""
    sent = call.request.headers.get("x-request-id")
    call.request_id = (sent and _UNSAFE.sub("", sent)[:64]) or _uuid(call.store.random("request").hex())


def _uuid(digits: str) -> str:
    """A UUIDv4 of random hexadecimal digits."""
    return f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:18]}-{digits[18:30]}"


# --- routing ----------------------------------------------------------------------------------------------


R = TypeVar("R")


class Router(Generic[R]):
    """Finds what answers a method of a path, given by texts such as ``GET /servers/{server_id}``. A fixed
    segment takes precedence over a placeholder.
    """

    def __init__(self, rows: Mapping[str, R]) -> None:
        paths: dict[str, dict[str, R]] = {}
        for route, row in rows.items():
            method, _, path = route.partition(" ")
            paths.setdefault(path, {})[method] = row
        by_precedence = sorted(paths, key=lambda path: [part[:1] == "{" for part in path.split("/")])
        self._paths = [
            (re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path)), paths[path]) for path in by_precedence
        ]

    def __call__(self, method: str, path: str) -> tuple[R, dict[str, str]]:
        for pattern, methods in self._paths:
            if found := pattern.fullmatch(path):
                if row := methods.get(method):
                    return row, found.groupdict()
                raise Refusal("method_not_allowed", headers={"Allow": ", ".join(sorted(methods))})
        raise Refusal("not_found", "there is no such path")


@lru_cache(1024)
def route(method: str, path: str) -> tuple[Operation, Mapping[str, str]]:
    """The operation and the path parameters, as text. Raises ``Refusal``: 404 or 405."""
    return _router(path[1:].partition("/")[0])(method, path)


@lru_cache(64)
def _router(first: str) -> Router[Operation]:
    """The router of the paths that begin like this: the rows of other areas are not loaded for it."""
    return Router({operation.route: operation for operation in area_at(f"/{first}")})


def apply_faults(call: Call) -> Answer | None:
    """Take the faults armed for this request; ``drop: before`` and ``status`` answer it."""
    if not call.store.faults:
        return None
    call.fault = faults.take(call.store, call.request.method, call.request.path)
    if call.fault.get("drop") == "before":
        return Answer(0, drop=True)
    if "status" in call.fault:
        raise faults.refusal(call.fault, "status")
    return None


def find_operation(call: Call) -> None:
    call.operation, call.raw_ids = route(call.request.method, call.request.path)


def check_service_enabled(call: Call) -> None:
    """503 while staff has switched the API off, except for ``GET /health``."""
    if not call.store.service.api_enabled and call.operation.id != "get_health":
        raise Refusal("api_disabled", retry_after=30)


def answer_without_key(call: Call) -> Answer | Outbound | None:
    """Operations that need no key are answered whatever else was sent. From here on there is a key."""
    return None if call.operation.auth else run_handler(call)


# --- the caller -------------------------------------------------------------------------------------------


def presented_key(call: Call) -> KeyRow | None:
    """The key in the request, valid or not."""
    scheme, _, token = call.request.headers.get("authorization", "").partition(" ")
    return call.store.by_token.get(token.strip()) if scheme.lower() == "bearer" else None


def authenticate(call: Call) -> None:
    """The key exists, is not revoked or expired, and comes from an address of its allow-list."""
    key = presented_key(call)
    if key is None or key.revoked_at is not None:
        _, reset, over = hit(
            call.store, f"invalid:{call.request.client}", INVALID_KEYS_PER_WINDOW, WINDOW_SECONDS
        )
        if over:
            words = "too many requests with invalid keys from this address"
            raise too_many(call.store, "normal", INVALID_KEYS_PER_WINDOW, reset, words)
        raise Refusal("invalid_token", headers={"WWW-Authenticate": "Bearer"})
    call.key = key
    call.account = call.store.accounts[key.account_id]
    call.request_log.key_id = key.id
    if key.not_before is not None and call.now < key.not_before:
        raise Refusal("key_not_yet_valid")
    if key.expires_at is not None and call.now >= key.expires_at:
        raise Refusal("key_expired")
    if key.ip_allowlist and not allowed(call.request.client, key.ip_allowlist):
        raise Refusal("ip_not_allowed")
    key.last_used_at, key.last_used_ip = call.now, call.request.client


def allowed(client: str, networks: list[str]) -> bool:
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return False
    return any(address in ipaddress.ip_network(network, strict=False) for network in networks)


def count_against_rate_limit(call: Call) -> None:
    """Count the call in the bucket of its operation and key; every answer from here on has the bucket's
    headers.
    """
    if call.request.query:
        # A query that cannot be parsed is refused by check_query; the call counts all the same.
        with suppress(Refusal):
            call.raw_query = validation.read_query(call.operation, call.request.query)
    expensive = call.operation.is_expensive(call.raw_query) or (
        call.operation.live_expensive and dialects.ADDRESS_READS_EXPENSIVE(call.dialect)
    )
    bucket = "expensive" if expensive else "normal"
    own = call.key.rate_expensive_per_minute if expensive else call.key.rate_per_minute
    limit = own if own is not None else EXPENSIVE_PER_WINDOW if expensive else NORMAL_PER_WINDOW
    remaining, reset, over = hit(call.store, f"{call.key.id}:{bucket}", limit, WINDOW_SECONDS)
    call.headers["X-RateLimit-Limit"] = str(limit)
    call.headers["X-RateLimit-Remaining"] = str(remaining)
    call.headers["X-RateLimit-Reset"] = str(reset)
    call.request_log.bucket = bucket
    if over:
        raise too_many(call.store, bucket, limit, reset)


def check_sandbox(call: Call) -> None:
    """Test keys: refused while the sandbox is off, and by operations that do not support it."""
    if not call.key.is_test:
        return
    if not call.store.service.sandbox_enabled:
        raise Refusal("sandbox_disabled")
    if call.operation.sandbox == "forbidden":
        raise Refusal("sandbox_not_supported")


def check_account(call: Call) -> None:
    """The account is not suspended and may use the API."""
    if call.account.suspended:
        raise Refusal("account_suspended")
    if not call.account.api_enabled:
        raise Refusal("api_disabled_for_account")


def check_scopes(call: Call) -> None:
    """The key has every scope of the operation."""
    missing = [scope for scope in call.operation.scopes if scope not in call.key.scopes]
    if missing:
        raise Refusal("insufficient_scope", details={"required": missing})


# --- the content ------------------------------------------------------------------------------------------


def read_body(call: Call) -> None:
    """Size, content type, JSON."""
    if len(call.request.body) > MAX_BODY_BYTES:
        raise Refusal("payload_too_large")
    call.data = validation.read_body(call.operation, call.request.headers, call.request.body)


def require_idempotency_key(call: Call) -> None:
    """Operations that need an Idempotency-Key have a valid one."""
    if call.operation.is_keyed:
        call.idempotency_key = idempotency_store.read(call.request.headers.get("idempotency-key"))


def check_query(call: Call) -> None:
    """Checked before the Idempotency-Key: the query is not part of "same endpoint and body"."""
    if call.request.query and not call.raw_query:  # nothing of it could be read before
        call.raw_query = validation.read_query(call.operation, call.request.query)
    call.query = validation.check_query(call.operation, call.raw_query)


def replay_stored_response(call: Call) -> Answer | None:
    """Answer with the stored response of the same request and Idempotency-Key, if there is one."""
    store, key = call.store, call.idempotency_key
    if key is None:
        return None
    asked = idempotency_store.asked(store, call.key, key, call.operation, call.request, call.data)
    stored = idempotency_store.recall(store, asked)
    if stored is not None:
        call.request_log.replayed = True
        return idempotency_store.replay(store, stored, call.request_id)
    call.asked = asked
    return None


def validate(call: Call) -> None:
    """Path and body against the models of the operation."""
    call.ids = validation.path_ids(call.raw_ids)
    call.body = validation.check_body(call.operation, call.data) if call.operation.is_write else None


def fail_upstream(call: Call) -> None:
    """The fault ``refunded`` on an operation that does not charge: the panel fails and nothing changes."""
    if "refunded" in call.fault and "insufficient_funds" not in call.operation.codes:
        raise faults.refusal(call.fault, "refunded")


def run_handler(call: Call) -> Answer | Outbound:
    """The handler of the operation; 501 when there is none."""
    handler = HANDLERS.get(call.operation.id)
    if handler is None:
        raise Refusal("not_implemented", f"the emulator has no handler for {call.operation.id}", status=501)
    return handler(call)


PIPELINE: tuple[Step, ...] = (
    identify_request,
    apply_faults,
    find_operation,
    check_service_enabled,
    answer_without_key,
    authenticate,
    count_against_rate_limit,
    check_sandbox,
    check_account,
    check_scopes,
    read_body,
    require_idempotency_key,
    check_query,
    replay_stored_response,
    validate,
    fail_upstream,
    run_handler,
)


# --- responses --------------------------------------------------------------------------------------------


def add_common_headers(call: Call, response: Answer) -> None:
    """The headers every response has."""
    headers = response.headers
    headers["X-Request-ID"] = call.request_id
    headers.setdefault("Cache-Control", "no-store")
    headers |= call.headers
    key = getattr(call, "key", None) or presented_key(call)
    if key is not None and key.is_test:
        headers["X-Sandbox"] = "true"


def error_response(error: Refusal, request_id: str) -> Answer:
    """The error envelope, with ``Retry-After`` for 429 and 503."""
    response = Answer(error.status, error.body(request_id), dict(error.headers))
    retry_after = 1 if error.retry_after is None and error.status in (429, 503) else error.retry_after
    if retry_after is not None:
        response.headers["Retry-After"] = format_seconds(retry_after)
    return response
