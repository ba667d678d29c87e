"""Removes keys and passwords from the request log, for the control interface and for state files."""

import json
import re
from typing import Any

from pydantic_core import to_json

from pulumi_hosting.api.secrets import SECRET_FIELDS, clean_text
from pulumi_hosting.emulator.formats import format_timestamp
from pulumi_hosting.emulator.rows import RequestLog

MASK = "**********"
_SECRET_PAIR = re.compile(rf'("(?:{"|".join(sorted(SECRET_FIELDS))})"\s*:\s*")[^"]*')
_SECRET_PARAMETER = re.compile(rf"((?:^|&)(?:{'|'.join(sorted(SECRET_FIELDS))})=)[^&]*")
_CODE = re.compile(r'"code"\s*:\s*"([a-z_]+)"')
_SECRET_TEXT = re.compile(r"vk_(live|test)_[A-Za-z0-9]+|whsec_[A-Za-z0-9]+")


def masked(value: Any) -> Any:
    """``value`` without keys and passwords."""
    if isinstance(value, dict):
        return {
            name: MASK if name in SECRET_FIELDS and item else masked(item) for name, item in value.items()
        }
    if isinstance(value, list):
        return [masked(item) for item in value]
    return _SECRET_TEXT.sub(MASK, value) if isinstance(value, str) else value


def _shown(text: str) -> Any:
    """The JSON of a body, masked; a string if it is not JSON or nested too deeply to be written."""
    try:
        value = masked(json.loads(text)) if text else None
        to_json(value)
    except (ValueError, RecursionError):
        # Not JSON, perhaps truncated: whatever looks like a secret field is masked.
        return masked(_SECRET_PAIR.sub(rf"\1{MASK}", text))
    return value


def request_line(row: RequestLog) -> str:
    """A request and its answer in one line, masked: ``2026-11-22T13:06:21Z POST /v1/servers 402
    insufficient_funds (key 1, normal)``. A connection that was closed has no status.
    """
    query = _SECRET_PARAMETER.sub(rf"\1{MASK}", row.query)
    parts = [row.method, f"/v1{row.path}" + (f"?{query}" if query else "")]
    parts.append("no answer" if row.status is None else str(row.status))
    if row.status is not None and row.status >= 400 and (found := _CODE.search(row.response)):
        parts.append(found[1])
    facts = [f"key {row.key_id}" if row.key_id else "", row.bucket or "", "replayed" if row.replayed else ""]
    if known := ", ".join(filter(None, facts)):
        parts.append(f"({known})")
    at = format_timestamp(float(int(row.at)))
    return clean_text(f"{at} {masked(' '.join(parts))}", 500)


def logged_request(row: RequestLog) -> dict[str, Any]:
    return {
        "seq": row.id,
        "method": row.method,
        "path": row.path,
        "query": row.query,
        "headers": _headers(row.headers),
        "body": _shown(row.body),
        "key_id": row.key_id,
        "status": row.status,
        "response": _shown(row.response),
        "bucket": row.bucket,
        "at": format_timestamp(row.at),
        "replayed": row.replayed,
    }


def columns(row: dict[str, Any]) -> dict[str, Any]:
    """The columns of a request log entry, masked, for a state file."""
    kept = {**row, "headers": _headers(row["headers"])}
    for name in ("body", "response"):
        if row[name]:
            value = _shown(row[name])
            kept[name] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return kept


def _headers(headers: dict[str, str]) -> dict[str, str]:
    return {
        name: "Bearer " + MASK if name == "authorization" else masked(value)
        for name, value in headers.items()
    }
