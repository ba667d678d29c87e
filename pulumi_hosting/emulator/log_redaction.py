"""Removes keys and passwords from the request log, for the control interface and for state files."""

import json
import re
from typing import Any

from pydantic_core import to_json

from pulumi_hosting.api.secrets import MASK, SECRET_FIELDS, clean_text, is_secret_name, without_tokens
from pulumi_hosting.emulator.formats import format_timestamp
from pulumi_hosting.emulator.rows import Columns, RequestLog

_NAMES = "|".join(sorted(SECRET_FIELDS))
_SECRET_PAIR = re.compile(rf'("(?:{_NAMES})"\s*:\s*")[^"]*')
_SECRET_PARAMETER = re.compile(rf"((?:^|&)(?:{_NAMES})=)[^&]*")
_CODE = re.compile(rb'"code"\s*:\s*"([a-z_]+)"')


def masked(value: Any) -> Any:
    """``value`` without keys and passwords."""
    if isinstance(value, dict):
        return {name: MASK if is_secret_name(name) and item else masked(item) for name, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return without_tokens(value) if isinstance(value, str) else value


def _shown(sent: Any) -> Any:
    """The JSON of a body, masked; a string if it is not JSON or nested too deeply to be written. What a state
    file had is JSON already.
    """
    if not isinstance(sent, bytes):
        return sent
    text = sent.decode("utf-8", "replace")
    try:
        value = masked(json.loads(text)) if text else None
        to_json(value)
    except (ValueError, RecursionError):
        # Not JSON, perhaps truncated: whatever looks like a secret field is masked.
        return without_tokens(_SECRET_PAIR.sub(rf"\1{MASK}", text))
    return value


def _query(row: RequestLog) -> str:
    return without_tokens(_SECRET_PARAMETER.sub(rf"\1{MASK}", row.query))


def request_line(row: RequestLog) -> str:
    """A request and its answer in one line, masked: ``2026-11-22T13:06:21Z POST /v1/servers 402
    insufficient_funds (key 1, normal)``. A connection that was closed has no status.
    """
    query = f"?{_query(row)}" if row.query else ""
    parts = [row.method, ("" if row.stray else "/v1") + row.path + query]
    parts.append("no answer" if row.status is None else str(row.status))
    if row.status is not None and row.status >= 400 and (found := _CODE.search(row.response)):
        parts.append(found[1].decode())
    facts = [f"key {row.key_id}" if row.key_id else "", row.bucket or "", "replayed" if row.replayed else ""]
    if known := ", ".join(filter(None, facts)):
        parts.append(f"({known})")
    at = format_timestamp(float(int(row.at)))
    return clean_text(f"{at} {without_tokens(' '.join(parts))}", 500)


def masked_request(row: RequestLog) -> Columns:
    """The columns of a request and its answer, masked; bodies are JSON, or text if they are none."""
    key = {"authorization": f"Bearer {MASK}"} if "authorization" in row.headers else {}
    headers = {name: without_tokens(value) for name, value in row.headers.items()} | key
    shown = {"path": without_tokens(row.path), "query": _query(row), "headers": headers}
    return row.columns() | shown | {"body": _shown(row.body), "response": _shown(row.response)}


def logged_request(row: RequestLog) -> Columns:
    """A request and its answer as the control interface shows them; ``seq`` is the id."""
    view = masked_request(row) | {"at": format_timestamp(row.at)}
    del view["id"]
    return view
