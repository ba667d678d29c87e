"""Stored responses: an Idempotency-Key keeps the first one for 7 days, compared by endpoint and body."""

import json
import re
from hashlib import sha256
from typing import Any

from pulumi_hosting.api.operations import KEY_LENGTH, KEY_MEMORY_SECONDS, Operation
from pulumi_hosting.emulator.formats import format_seconds
from pulumi_hosting.emulator.messages import ApiError, Response, invalid
from pulumi_hosting.emulator.rows import Key, StoredResponse
from pulumi_hosting.emulator.store import Store

_PRINTABLE = re.compile("[!-~]+")
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
# Errors that go away without a new request: another change of the object is in progress.
TRANSIENT = frozenset(("operation_in_progress",))


def read(text: str | None) -> str:
    """Check an Idempotency-Key: 16 to 128 printable ASCII characters without spaces."""
    if not text:
        raise ApiError("idempotency_key_required")
    if len(text) not in KEY_LENGTH or not _PRINTABLE.fullmatch(text):
        raise invalid(**{"Idempotency-Key": "invalid"})
    return text


def scope(store: Store, key: Key) -> str:
    """What a stored response belongs to, by the variant ``key_memory``: the account in one mode, or one API
    key.
    """
    return f"key{key.id}" if store.service.variants["key_memory"] == "key" else f"{key.account_id}{key.mode}"


def fingerprint(store: Store, data: Any, raw: bytes) -> str:
    """Equal for equal bodies, by the variant ``body_comparison``: the same JSON, or the same bytes."""
    if store.service.variants["body_comparison"] == "parsed":
        raw = _encode(data if data is not None else {}).encode()
    return sha256(raw).hexdigest()


def recall(
    store: Store, key: Key, text: str, operation: Operation, path: str, print: str, now: float
) -> StoredResponse | None:
    """The stored response of the same request, or ``None``. Refuses a conflict and a request in progress."""
    stored = store.by_idempotency_key.get(f"{scope(store, key)}:{text}")
    if stored is None:
        return None
    if now >= stored.created_at + KEY_MEMORY_SECONDS:
        store.remove(stored)
        return None
    if (stored.operation, stored.path, stored.fingerprint) != (operation.id, path, print):
        raise ApiError("idempotency_conflict")
    if stored.running:
        raise ApiError("idempotency_in_progress", retry_after=1)
    return stored


def is_kept(store: Store, response: Response) -> bool:
    """Whether a response is stored. 401 and 429 are answered before the key is read."""
    if not 400 <= response.status < 500:
        return True
    variants = store.service.variants
    passing = isinstance(response.body, dict) and response.body.get("error", {}).get("code") in TRANSIENT
    return bool(variants["refusals_stored"] and (variants["transient_refusals_stored"] or not passing))


def remember(
    store: Store,
    key: Key,
    text: str,
    operation: Operation,
    path: str,
    print: str,
    response: Response,
    request_id: str,
    now: float,
) -> StoredResponse:
    """Store the response. Secrets that are shown only once are blanked."""
    body = response.body
    if isinstance(body, dict) and operation.once:
        body = {**body, **{name: "" for name in operation.once if name in body}}
    retry_after = response.headers.get("Retry-After")
    return store.add(
        StoredResponse(
            scope=scope(store, key),
            key=text,
            operation=operation.id,
            path=path,
            fingerprint=print,
            created_at=now,
            status=response.status,
            body=body,
            request_id=request_id,
            retry_after=float(retry_after) if retry_after else None,
        )
    )


def replay(store: Store, stored: StoredResponse, request_id: str) -> Response:
    body = stored.body
    if isinstance(body, dict) and "error" in body:
        shown = stored.request_id if store.service.variants["replay_request_id"] == "stored" else request_id
        body = {"error": {**body["error"], "request_id": shown}}
    headers = {"Retry-After": format_seconds(stored.retry_after)} if stored.retry_after else {}
    return Response(stored.status, body, headers)
