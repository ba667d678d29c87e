"""Armed misbehaviour: which request a fault applies to, and what it makes of it."""

import re
from collections.abc import Callable
from typing import Any

from pulumi_hosting.api.errors import CODES
from pulumi_hosting.emulator.messages import ApiError, Response
from pulumi_hosting.emulator.rows import Fault
from pulumi_hosting.emulator.store import Store

# Where an armed answer names no code: the usual one, if that is not the first of its status in the table.
USUAL_CODE = {503: "temporarily_unavailable"}

_NUMBER = (int, float)


# The words of an action, and what each may be.
KINDS: dict[str, Callable[[Any], bool]] = {
    "drop": lambda v: v in ("before", "after"),
    "truncate": lambda v: isinstance(v, int) and v >= 0,
    "delay": lambda v: isinstance(v, _NUMBER) and 0 <= v <= 600,
    "status": lambda v: isinstance(v, int) and 400 <= v <= 599,
    "refunded": lambda v: isinstance(v, int) and 400 <= v <= 599,
    "panel_timeout": lambda v: v in ("active", "cancelled", "failed"),
    "registrar": lambda v: v == "pending",
    "patch": lambda v: isinstance(v, dict),
    "headers": lambda v: isinstance(v, dict) and all(_is_header(name, text) for name, text in v.items()),
    "code": lambda v: isinstance(v, str),
    "retry_after": lambda v: isinstance(v, _NUMBER) and 0 <= v <= 86400,
    "message": lambda v: isinstance(v, str),
    "details": lambda v: isinstance(v, dict),
}


def arm(store: Store, spec: dict[str, Any]) -> Fault:
    """Check and add a fault; ``ValueError`` says what is wrong with it."""
    unknown = set(spec) - {"method", "path", "after", "times", "action"}
    if unknown:
        raise ValueError(f"unknown field of a fault: {', '.join(sorted(unknown))}")
    action = spec.get("action")
    if not isinstance(action, dict):
        raise ValueError("a fault needs an action")
    _check(action)
    path, method, after, times = spec.get("path"), spec.get("method"), spec.get("after", 0), spec.get("times", 1)
    if path is not None:
        try:
            re.compile(path)
        except (re.error, TypeError) as error:
            raise ValueError(f"path is not a regular expression: {error}") from error
    if not _whole(after) or after < 0 or not _whole(times) or times < 1:
        raise ValueError("after must be 0 or more, times 1 or more")
    if method is not None and not isinstance(method, str):
        raise ValueError("method must be a text")
    return store.add(store.make(Fault, method=method.upper() if method else None, path=path, after=after, times=times, action=action))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check(action: dict[str, Any]) -> None:
    for name, value in action.items():
        if name not in KINDS:
            raise ValueError(f"unknown action: {name}")
        if isinstance(value, bool) or not KINDS[name](value):
            raise ValueError(f"{name} cannot be {value!r}")
    if not set(action) - {"code", "retry_after", "message", "details"}:
        raise ValueError("the action does nothing")


def take(store: Store, method: str, path: str) -> dict[str, Any]:
    """The actions that apply to this request, merged; each armed fault counts it. ``path`` is what follows /v1."""
    actions: dict[str, Any] = {}
    for fault in list(store.faults.values()):
        if fault.method is not None and fault.method != method:
            continue
        if fault.path is not None and not re.search(fault.path, path):
            continue
        if fault.after > 0:
            fault.after -= 1
            continue
        actions.update(fault.action)
        fault.times -= 1
        if fault.times <= 0:
            store.remove(fault)
    return actions


def refusal(action: dict[str, Any], kind: str) -> ApiError:
    """The answer of a ``status`` or ``refunded`` action."""
    status = action[kind]
    code = (
        action.get("code") or USUAL_CODE.get(status) or next((row.code for row in CODES.values() if row.status == status), "server_error")
    )
    return ApiError(code, action.get("message", ""), status=status, retry_after=action.get("retry_after"), details=action.get("details"))


def _is_header(name: str, text: Any) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9-]+", name)) and (
        text is None or (isinstance(text, str) and text.isascii() and text.isprintable())
    )


def change_headers(response: Response, headers: dict[str, str | None]) -> None:
    """Set headers of an answer, or leave them out where the value is ``None``."""
    lower = {name.lower() for name in headers}
    response.headers = {name: text for name, text in response.headers.items() if name.lower() not in lower}
    response.headers |= {name.title(): text for name, text in headers.items() if text is not None}
    response.without = frozenset(name.lower() for name, text in headers.items() if text is None)


def merge(body: Any, patch: Any) -> Any:
    """Deep-merge ``patch`` into ``body``: objects are merged, everything else is replaced."""
    if isinstance(body, dict) and isinstance(patch, dict):
        return {**body, **{name: merge(body.get(name), value) for name, value in patch.items()}}
    return patch
