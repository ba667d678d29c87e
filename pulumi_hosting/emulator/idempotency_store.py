"""Stored responses: an Idempotency-Key keeps the first one for 7 days, compared by endpoint and body."""

import json
import re
from collections.abc import Collection
from hashlib import sha256
from typing import Any, NamedTuple

from pulumi_hosting.api.operations import KEY_LENGTH, KEY_MEMORY_SECONDS, Operation
from pulumi_hosting.emulator.formats import format_seconds
from pulumi_hosting.emulator.messages import Answer, Refusal, invalid
from pulumi_hosting.emulator.rows import KeyRow, StoredResponse
from pulumi_hosting.emulator.store import Store

_PRINTABLE = re.compile("[!-~]+")
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
# Errors that go away without a new request: another change of the object is in progress.
TRANSIENT = frozenset(("operation_in_progress",))


def read(text: str | None) -> str:
    """Check an Idempotency-Key: 16 to 128 printable ASCII characters without spaces."""
    if not text:
        raise Refusal("idempotency_key_required")
    if len(text) not in KEY_LENGTH or not _PRINTABLE.fullmatch(text):
        raise invalid(**{"Idempotency-Key": "invalid"})
    return text


class Asked(NamedTuple):
    """A request under an Idempotency-Key: what another request with the key must equal, and ``scope``, within
    which keys are compared.
    """

    scope: str
    key: str
    operation: str
    path: str
    fingerprint: str


def asked(
    store: Store, caller: KeyRow, key: str, operation: Operation, path: str, data: Any, raw: bytes
) -> Asked:
    """By the variant ``key_memory`` a key belongs to the account in one mode, or to one API key; by
    ``body_comparison`` bodies are equal as JSON, or as bytes.
    """
    variants = store.service.readings
    scope = f"key{caller.id}" if variants["key_memory"] == "key" else f"{caller.account_id}{caller.mode}"
    if variants["body_comparison"] == "parsed":
        raw = _encode(data if data is not None else {}).encode()
    return Asked(scope, key, operation.id, path, sha256(raw).hexdigest())


def recall(store: Store, asked: Asked, now: float) -> StoredResponse | None:
    """The stored response of the same request, or ``None``. Refuses a conflict and a request in progress."""
    stored = store.by_idempotency_key.get(f"{asked.scope}:{asked.key}")
    if stored is None:
        return None
    if now >= stored.created_at + KEY_MEMORY_SECONDS:
        store.remove(stored)
        return None
    if (stored.operation, stored.path, stored.fingerprint) != asked[2:]:
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
    store: Store, asked: Asked, response: Answer, once: Collection[str], request_id: str, now: float
) -> StoredResponse:
    """Store the response. Secrets that are shown only ``once`` are blanked."""
    body = response.body
    if isinstance(body, dict) and once:
        body = {**body, **{name: "" for name in once if name in body}}
    retry_after = response.headers.get("Retry-After")
    return store.add(
        StoredResponse(
            *asked,
            created_at=now,
            status=response.status,
            body=body,
            request_id=request_id,
            retry_after=float(retry_after) if retry_after else None,
        )
    )


def replay(store: Store, stored: StoredResponse, request_id: str) -> Answer:
    body = stored.body
    if isinstance(body, dict) and "error" in body:
        shown = stored.request_id if store.service.readings["replay_request_id"] == "stored" else request_id
        body = {"error": {**body["error"], "request_id": shown}}
    headers = {"Retry-After": format_seconds(stored.retry_after)} if stored.retry_after else {}
    return Answer(stored.status, body, headers)
