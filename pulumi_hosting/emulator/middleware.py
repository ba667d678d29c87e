"""The life of a request: :data:`LIFE`, read from top to bottom. A gate lets the call pass, answers it, or raises a refusal.

The order matters: what is refused before :func:`recall_key` never uses up an Idempotency-Key (an armed answer, the staff switch, 401,
429, sandbox, account, scopes, content type, size, JSON, a missing key, the query); what comes after it (validation and the handler's own
answers) is the outcome that the key remembers. Every request with a valid key counts in its bucket, whatever becomes of it.
"""

import ipaddress
import re
from collections.abc import Callable
from contextlib import suppress

from pulumi_hosting.api.operations import (
    EXPENSIVE_PER_WINDOW,
    INVALID_KEYS_PER_WINDOW,
    MAX_BODY_BYTES,
    NORMAL_PER_WINDOW,
    OPERATIONS,
    WINDOW_SECONDS,
    Operation,
)
from pulumi_hosting.emulator import dialects, faults, idempotency_store, validation
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import format_seconds, uuid4_from_bytes
from pulumi_hosting.emulator.handlers import HANDLERS
from pulumi_hosting.emulator.messages import ApiError, Response
from pulumi_hosting.emulator.rate_limits import hit, too_many
from pulumi_hosting.emulator.rows import Key
from pulumi_hosting.emulator.webhook_delivery import Outbound

Step = Callable[[Call], Response | Outbound | None]

_UNSAFE = re.compile(r"[^A-Za-z0-9._:-]")


def identify_request(call: Call) -> None:
    """X-Request-ID: the caller's, cleaned, if anything is left of it; else a UUIDv4."""
    call.request_id = _UNSAFE.sub("", call.request.headers.get("x-request-id", ""))[:64] or uuid4_from_bytes(call.store.random("request"))


# --- routing ---------------------------------------------------------------------------------------------------------------------


class Router:
    """Finds an operation by method and path. Fixed segments win over placeholders."""

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        paths: dict[tuple[str, ...], dict[str, Operation]] = {}
        for operation in operations:
            paths.setdefault(tuple(operation.path.strip("/").split("/")), {})[operation.method] = operation
        self._by_length: dict[int, list[tuple[tuple[str, ...], dict[str, Operation]]]] = {}
        for segments, methods in sorted(paths.items(), key=lambda item: [s.startswith("{") for s in item[0]]):
            self._by_length.setdefault(len(segments), []).append((segments, methods))

    def __call__(self, method: str, path: str) -> tuple[Operation, dict[str, str]]:
        given = path[1:].split("/")
        for segments, methods in self._by_length.get(len(given), ()):
            ids = {}
            for want, got in zip(segments, given, strict=True):
                if want[0] == "{":
                    ids[want[1:-1]] = got
                elif want != got:
                    break
            else:
                if "" in ids.values():
                    break
                operation = methods.get(method)
                if operation is None:
                    raise ApiError("method_not_allowed", headers={"Allow": ", ".join(sorted(methods))})
                return operation, ids
        raise ApiError("not_found", "there is no such path")


route = Router(OPERATIONS)


def apply_faults(call: Call) -> Response | None:
    """Faults that were armed for this request; some of them answer at once."""
    if not call.store.faults:
        return None
    call.fault = faults.take(call.store, call.request.method, call.request.path)
    if call.fault.get("drop") == "before":
        return Response(0, drop=True)
    if "status" in call.fault:
        raise faults.refusal(call.fault, "status")
    return None


def find_operation(call: Call) -> None:
    call._operation, call.raw_ids = route(call.request.method, call.request.path)


def check_service_enabled(call: Call) -> None:
    """Staff switched the API off: 503 everywhere except ``GET /health``."""
    if not call.store.service.api_enabled and call.operation.id != "get_health":
        raise ApiError("api_disabled", retry_after=30)


# --- who calls -------------------------------------------------------------------------------------------------------------------


def presented_key(call: Call) -> Key | None:
    """The key that the request names, whatever may be done with it."""
    scheme, _, token = call.request.headers.get("authorization", "").partition(" ")
    return call.store.by_token.get(token.strip()) if scheme.lower() == "bearer" else None


def authenticate(call: Call) -> None:
    """A key that exists, is not revoked, is inside its window and used from an address of its allow-list."""
    if not call.operation.auth:
        return
    key = presented_key(call)
    if key is None or key.revoked_at is not None:
        _, reset, over = hit(call.store, f"invalid:{call.request.client}", INVALID_KEYS_PER_WINDOW, WINDOW_SECONDS, call.now)
        if over:
            raise too_many("normal", INVALID_KEYS_PER_WINDOW, reset, call.now, "too many requests with invalid keys from this address")
        raise ApiError("invalid_token", headers={"WWW-Authenticate": "Bearer"})
    call._key = key
    if call.request_log is not None:
        call.request_log.key_id = key.id
    if key.not_before is not None and call.now < key.not_before:
        raise ApiError("key_not_yet_valid")
    if key.expires_at is not None and call.now >= key.expires_at:
        raise ApiError("key_expired")
    if key.ip_allowlist and not allowed(call.request.client, key.ip_allowlist):
        raise ApiError("ip_not_allowed")
    key.last_used_at, key.last_used_ip = call.now, call.request.client


def allowed(client: str, networks: list[str]) -> bool:
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return False
    return any(address in ipaddress.ip_network(network, strict=False) for network in networks)


def count_against_rate_limit(call: Call) -> None:
    """The bucket of the operation, per key; its headers are on every answer from here on."""
    call.raw_query = {}
    if not call.operation.auth:
        return
    if call.request.query:
        # A query that cannot be read is refused later, by its own gate; the call counts all the same.
        with suppress(ApiError):
            call.raw_query = validation.read_query(call.operation, call.request.query)
    expensive = call.operation.is_expensive(call.raw_query)
    if call.operation.live_expensive and dialects.ADDRESS_READS_EXPENSIVE(call.dialect):
        expensive = True
    bucket = "expensive" if expensive else "normal"
    own = call.key.rate_expensive_per_minute if expensive else call.key.rate_per_minute
    limit = own if own is not None else EXPENSIVE_PER_WINDOW if expensive else NORMAL_PER_WINDOW
    remaining, reset, over = hit(call.store, f"{call.key.id}:{bucket}", limit, WINDOW_SECONDS, call.now)
    call.headers["X-RateLimit-Limit"] = str(limit)
    call.headers["X-RateLimit-Remaining"] = str(remaining)
    call.headers["X-RateLimit-Reset"] = str(reset)
    if call.request_log is not None:
        call.request_log.bucket = bucket
    if over:
        raise too_many(bucket, limit, reset, call.now)


def check_sandbox(call: Call) -> None:
    """Test keys: switched off by the provider, or not supported by the operation."""
    if call.known_key is None or not call.key.is_test:
        return
    if not call.store.service.sandbox_enabled:
        raise ApiError("sandbox_disabled")
    if call.operation.sandbox == "forbidden":
        raise ApiError("sandbox_not_supported")


def check_account(call: Call) -> None:
    if call.known_key is None:
        return
    if call.account.suspended:
        raise ApiError("account_suspended")
    if not call.account.api_enabled:
        raise ApiError("api_disabled_for_account")


def check_scopes(call: Call) -> None:
    if call.known_key is None:
        return
    missing = [scope for scope in call.operation.scopes if scope not in call.key.scopes]
    if missing:
        raise ApiError("insufficient_scope", details={"required": missing})


# --- what it says ----------------------------------------------------------------------------------------------------------------


def read_body(call: Call) -> None:
    """Size, content type, JSON."""
    if len(call.request.body) > MAX_BODY_BYTES:
        raise ApiError("payload_too_large")
    call.data = validation.read_body(call.operation, call.request.headers, call.request.body)


def require_idempotency_key(call: Call) -> None:
    """Keyed operations need an Idempotency-Key."""
    if call.operation.is_keyed:
        idempotency_store.read(call.request.headers.get("idempotency-key"))


def check_query(call: Call) -> None:
    """The query is no part of "same endpoint and body", so it is checked whether the key is known or not."""
    call.raw_query = validation.read_query(call.operation, call.request.query) if call.request.query else {}
    if call.operation.auth:
        call.query = validation.check_query(call.operation, call.raw_query)


def replay_stored_response(call: Call) -> Response | None:
    """Keyed operations: the stored outcome of the same request, if there is one."""
    if not call.operation.is_keyed:
        return None
    text = idempotency_store.read(call.request.headers.get("idempotency-key"))
    print = idempotency_store.fingerprint(call.store, call.data, call.request.body)
    stored = idempotency_store.recall(call.store, call.key, text, call.operation, call.request.path, print, call.now)
    if stored is not None:
        if call.request_log is not None:
            call.request_log.replayed = True
        return idempotency_store.replay(call.store, stored, call.request_id)
    call.idempotency_key, call.fingerprint = text, print
    return None


def validate(call: Call) -> None:
    """Path and body against the models of the operation."""
    call.ids = validation.path_ids(call.raw_ids)
    call.body = validation.check_body(call.operation, call.data) if call.operation.is_write else None


def fail_upstream(call: Call) -> None:
    """The fault ``refunded`` on an operation that does not charge: the panel fails, nothing changes."""
    if "refunded" in call.fault and "insufficient_funds" not in call.operation.codes:
        raise faults.refusal(call.fault, "refunded")


def run_handler(call: Call) -> Response | Outbound:
    return HANDLERS[call.operation.id](call)


PIPELINE: tuple[Step, ...] = (
    identify_request,
    apply_faults,
    find_operation,
    check_service_enabled,
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


# --- on the way out --------------------------------------------------------------------------------------------------------------


def add_common_headers(call: Call, response: Response) -> None:
    """The headers every answer has."""
    headers = response.headers
    headers["X-Request-ID"] = call.request_id
    headers.setdefault("Cache-Control", "no-store")
    headers |= call.headers
    key = call.known_key or presented_key(call)
    if key is not None and key.is_test:
        headers["X-Sandbox"] = "true"


def error_response(refusal: ApiError, request_id: str) -> Response:
    response = Response(refusal.status, refusal.body(request_id), dict(refusal.headers))
    retry_after = refusal.retry_after
    if retry_after is None and refusal.status in (429, 503):
        retry_after = 1
    if retry_after is not None:
        response.headers["Retry-After"] = format_seconds(retry_after)
    return response
