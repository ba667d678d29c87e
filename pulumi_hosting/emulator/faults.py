"""Faults: which request one applies to, and how it changes the response."""

import re

from pulumi_hosting.api.error_codes import CODES
from pulumi_hosting.emulator.messages import Answer, Refusal
from pulumi_hosting.emulator.rows import Columns
from pulumi_hosting.emulator.store import Store

# The code of a fault that gives only a status, if that is not the first code of that status in the table.
USUAL_CODE = {503: "temporarily_unavailable"}


def take(store: Store, method: str, path: str) -> Columns:
    """The actions for this request, merged; every matching fault counts it. ``path`` is without /v1."""
    actions: Columns = {}
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


def refusal(action: Columns, kind: str) -> Refusal:
    """The error of a ``status`` or ``refunded`` action."""
    status = action[kind]
    code = (
        action.get("code")
        or USUAL_CODE.get(status)
        or next((row.code for row in CODES.values() if row.status == status), "server_error")
    )
    return Refusal(
        code,
        action.get("message", ""),
        status=status,
        retry_after=action.get("retry_after"),
        details=action.get("details"),
    )


def change_response(response: Answer, fault: Columns) -> None:
    """What a fault does to the response of a request that was processed."""
    if "patch" in fault and isinstance(response.body, dict):
        response.body = merge(response.body, fault["patch"])
    headers: dict[str, str | None] = fault.get("headers", {})  # `None` removes one
    lower = {name.lower() for name in headers}
    response.headers = {name: text for name, text in response.headers.items() if name.lower() not in lower}
    response.headers |= {name.title(): text for name, text in headers.items() if text is not None}
    response.without = frozenset(name.lower() for name, text in headers.items() if text is None)
    response.delay = fault.get("delay", 0.0)
    response.drop = fault.get("drop") == "after"
    response.truncate = fault.get("truncate")


def merge(body: object, patch: object) -> object:
    """Deep-merge ``patch`` into ``body``: objects are merged, everything else is replaced."""
    if isinstance(body, dict) and isinstance(patch, dict):
        return {**body, **{name: merge(body.get(name), value) for name, value in patch.items()}}
    return patch
