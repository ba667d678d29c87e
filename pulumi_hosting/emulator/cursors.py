"""Signed page cursors: bound to the operation, the filters and the account, so that none can be forged or carried elsewhere."""

import base64
import hmac
import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, TypeVar

from pulumi_hosting.emulator.messages import ApiError
from pulumi_hosting.emulator.rows import Row

DEFAULT_LIMIT = 50

T = TypeVar("T", bound=Row)


def _signature(seed: int, binding: str, position: int) -> str:
    return hmac.new(f"cursor:{seed}".encode(), f"{binding}:{position}".encode(), sha256).hexdigest()[:32]


def binding(operation: str, account_id: int, mode: str, filters: Mapping[str, Any]) -> str:
    """What a cursor is bound to. The page size is not part of it: a walk may change it."""
    kept = {name: str(value) for name, value in sorted(filters.items()) if name not in ("cursor", "limit") and value is not None}
    return json.dumps([operation, account_id, mode, kept], separators=(",", ":"))


def seal(seed: int, bound: str, position: int) -> str:
    return base64.urlsafe_b64encode(f"{position}.{_signature(seed, bound, position)}".encode()).decode().rstrip("=")


def unseal(seed: int, bound: str, cursor: str) -> int:
    """The position in a cursor; 400 ``invalid_cursor`` when it is damaged or belongs to another list."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        digits, signature = text.split(".")
        position = int(digits)
    except ValueError as error:
        raise ApiError("invalid_cursor") from error
    if not hmac.compare_digest(signature.encode(), _signature(seed, bound, position).encode()) or seal(seed, bound, position) != cursor:
        raise ApiError("invalid_cursor")
    return position


def cut(rows: Iterable[T], limit: int, after: int | None) -> tuple[list[T], bool]:
    """At most ``limit`` of ``rows`` (newest first) that are older than position ``after``, and whether more follow."""
    page: list[T] = []
    for row in rows:
        if after is not None and row.seq >= after:
            continue
        if len(page) == limit:
            return page, True
        page.append(row)
    return page, False
