"""What an Idempotency-Key remembers: the outcome of the first request, for 7 days, compared by endpoint and body."""

import json
from hashlib import sha256
from typing import Any

from pulumi_hosting.api.operations import KEY_LENGTH, KEY_MEMORY_SECONDS, Operation
from pulumi_hosting.emulator.wire import Answer, Refusal, invalid, seconds
from pulumi_hosting.emulator.world import Key, Stored, World

# Refusals that pass by themselves: something else is running on the object.
TRANSIENT = frozenset(("operation_in_progress",))


def read(text: str | None) -> str:
    """The key of a keyed operation: 16 to 128 printable ASCII characters without spaces."""
    if not text:
        raise Refusal("idempotency_key_required")
    if len(text) not in KEY_LENGTH or not all("!" <= letter <= "~" for letter in text):
        raise invalid(**{"Idempotency-Key": "invalid"})
    return text


def scope(world: World, key: Key) -> str:
    """Who shares a memory: by reading, the account in one mode, or one API key."""
    return f"key{key.id}" if world.service.readings["key_memory"] == "key" else f"{key.account_id}{key.mode}"


def fingerprint(world: World, data: Any, raw: bytes) -> str:
    """Equal for equal bodies: of the same JSON, or of the same bytes."""
    if world.service.readings["body_comparison"] == "parsed":
        raw = json.dumps(data if data is not None else {}, sort_keys=True, separators=(",", ":")).encode()
    return sha256(raw).hexdigest()


def recall(world: World, key: Key, text: str, operation: Operation, path: str, print: str, now: float) -> Stored | None:
    """The stored outcome of the same request; ``None`` if there is none; refuses a conflict and a request still running."""
    stored = world.by_idempotency_key.get(f"{scope(world, key)}:{text}")
    if stored is None:
        return None
    if now >= stored.created_at + KEY_MEMORY_SECONDS:
        world.remove(stored)
        return None
    if (stored.operation, stored.path, stored.fingerprint) != (operation.id, path, print):
        raise Refusal("idempotency_conflict")
    if stored.running:
        raise Refusal("idempotency_in_progress", retry_after=1)
    return stored


def is_kept(world: World, answer: Answer) -> bool:
    """Whether an outcome is remembered. 401 and 429 never get here: they are decided before a key is looked at."""
    if not 400 <= answer.status < 500:
        return True
    readings = world.service.readings
    passing = isinstance(answer.body, dict) and answer.body.get("error", {}).get("code") in TRANSIENT
    return bool(readings["refusals_stored"] and (readings["transient_refusals_stored"] or not passing))


def remember(
    world: World, key: Key, text: str, operation: Operation, path: str, print: str, answer: Answer, request_id: str, now: float
) -> Stored:
    """Keep the outcome, its secrets blanked: they are shown once and never stored here."""
    body = answer.body
    if isinstance(body, dict) and operation.once:
        body = {**body, **{name: "" for name in operation.once if name in body}}
    retry_after = answer.headers.get("Retry-After")
    return world.add(
        world.make(
            Stored,
            scope=scope(world, key),
            key=text,
            operation=operation.id,
            path=path,
            fingerprint=print,
            created_at=now,
            status=answer.status,
            body=body,
            request_id=request_id,
            retry_after=float(retry_after) if retry_after else None,
        )
    )


def replay(world: World, stored: Stored, request_id: str) -> Answer:
    body = stored.body
    if isinstance(body, dict) and "error" in body:
        shown = stored.request_id if world.service.readings["replay_request_id"] == "stored" else request_id
        body = {"error": {**body["error"], "request_id": shown}}
    headers = {"Retry-After": seconds(stored.retry_after)} if stored.retry_after else {}
    return Answer(stored.status, body, headers)
