"""The one table of operations (API document, "Endpoints" and "Limits"), in the document's order. Each area
has a module.

The client sends by it, the emulator routes and guards by it, the OpenAPI document and the reference page are
written from it, and the contract tests loop over it. Nothing else keeps a list of operations: a fact about an
operation is a column of its row.
"""

from collections.abc import Mapping

from pulumi_hosting.api.operations import (
    account,
    api_keys,
    catalog,
    domains,
    invoices,
    servers,
    ssh_keys,
    webhooks,
)
from pulumi_hosting.api.operations.limits import (
    EXPENSIVE_PER_WINDOW,
    INVALID_KEYS_PER_WINDOW,
    KEY_LENGTH,
    KEY_MEMORY_SECONDS,
    MAX_BODY_BYTES,
    NORMAL_PER_WINDOW,
    SANDBOX_SERVER_SECONDS,
    WINDOW_SECONDS,
)
from pulumi_hosting.api.operations.operation import ExtraLimit, Method, Operation, Paging, RetryClass, Sandbox
from pulumi_hosting.api.operations.scopes import PRESETS, SCOPES

__all__ = [
    "BY_ID",
    "EXPENSIVE_PER_WINDOW",
    "GROUPS",
    "INVALID_KEYS_PER_WINDOW",
    "KEY_LENGTH",
    "KEY_MEMORY_SECONDS",
    "MAX_BODY_BYTES",
    "NORMAL_PER_WINDOW",
    "OPERATIONS",
    "PRESETS",
    "SANDBOX_SERVER_SECONDS",
    "SCOPES",
    "WINDOW_SECONDS",
    "ExtraLimit",
    "Method",
    "Operation",
    "Paging",
    "RetryClass",
    "Sandbox",
]

_AREAS = (account, invoices, catalog, servers, ssh_keys, domains, api_keys, webhooks)

OPERATIONS: tuple[Operation, ...] = tuple(operation for area in _AREAS for operation in area.OPERATIONS)
BY_ID: Mapping[str, Operation] = {operation.id: operation for operation in OPERATIONS}
GROUPS: Mapping[str, str] = {name: text for area in _AREAS for name, text in area.GROUPS.items()}
"""What the groups of operations are about, by their place in the client. ``meta``: the client's own methods.
"""
