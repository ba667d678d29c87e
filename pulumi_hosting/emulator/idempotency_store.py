"""Stored responses: an Idempotency-Key keeps the first one for 7 days, compared by endpoint and body."""

import json
import re
from collections.abc import Collection
from hashlib import sha256

from pulumi_hosting.api.operations import KEY_MEMORY_SECONDS, KEY_PATTERN, Operation
from pulumi_hosting.emulator.formats import View, format_seconds
from pulumi_hosting.emulator.messages import Answer, ApiRequest, Refusal, invalid
from pulumi_hosting.emulator.rows import KeyRow, StoredResponse
from pulumi_hosting.emulator.store import Store

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
# Errors that go away without a new request: another change of the object is in progress.
TRANSIENT = frozenset(("operation_in_progress",))


def read(text: str | None) -> str:
    """Check an Idempotency-Key: 16 to 128 printable ASCII characters without spaces."""
    if not text:
        raise Refusal("idempotency_key_required")
    if not re.fullmatch(KEY_PATTERN, text):
        raise invalid(**{"Idempotency-Key": "invalid"})
    return text


def asked(
    store: Store, caller: KeyRow, key: str, operation: Operation, request: ApiRequest, data: View | None
) -> StoredResponse:
    """What is asked under an Idempotency-Key, as the row that stores its response, not added yet. Keys are
    compared within its ``scope``.

    By the variant ``key_memory`` a key belongs to the account in one mode, or to one API key; by
    ``body_comparison`` bodies are equal as JSON, or as bytes.
    """
    variants = store.service.readings
    scope = f"key{caller.id}" if variants["key_memory"] == "key" else f"{caller.account_id}{caller.mode}"
    parsed = variants["body_comparison"] == "parsed"
    content = _encode(data if data is not None else {}).encode() if parsed else request.body
    fingerprint = sha256(content).hexdigest()
    return StoredResponse(
        scope=scope,
        key=key,
        operation=operation.id,
        path=request.path,
        fingerprint=fingerprint,
        created_at=store.now,
    )


def recall(store: Store, asked: StoredResponse) -> StoredResponse | None:
    """The stored response of the same request, or ``None``. Refuses a conflict and a request in progress."""
    stored = store.by_idempotency_key.get(f"{asked.scope}:{asked.key}")
    if stored is None:
        return None
    if store.now >= stored.created_at + KEY_MEMORY_SECONDS:
        store.remove(stored)
        return None
    if stored.asks != asked.asks:
        raise Refusal("idempotency_conflict")
    if stored.running:
        raise Refusal("idempotency_in_progress", retry_after=1)
    return stored


def is_kept(store: Store, response: Answer) -> bool:
    """Whether a response is stored. 401 and 429 are answered before the key is read."""
    if not 400 <= response.status < 500:
        return True
    variants = store.service.readings
    passing = isinstance(response.body, dict) and response.body.get("error", {}).get("code") in TRANSIENT
    return bool(variants["refusals_stored"] and (variants["transient_refusals_stored"] or not passing))


def remember(
    store: Store, asked: StoredResponse, response: Answer, once: Collection[str], request_id: str
) -> StoredResponse:
    """Store the response. Secrets that are shown only ``once`` are blanked."""
    body = response.body
    if isinstance(body, dict) and once:
        body = {**body, **{name: "" for name in once if name in body}}
    retry_after = response.headers.get("Retry-After")
    asked.status, asked.body, asked.request_id = response.status, body, request_id
    asked.retry_after = float(retry_after) if retry_after else None
    return store.add(asked)


def replay(store: Store, stored: StoredResponse, request_id: str) -> Answer:
    body = stored.body
    if isinstance(body, dict) and "error" in body:
        shown = stored.request_id if store.service.readings["replay_request_id"] == "stored" else request_id
        body = {"error": {**body["error"], "request_id": shown}}
    headers = {"Retry-After": format_seconds(stored.retry_after)} if stored.retry_after else {}
    return Answer(stored.status, body, headers)
