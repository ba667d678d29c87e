"""The one table of operations (API document, "Endpoints" and "Limits"), in the document's order. Each area
has a module.

The client sends by it, the emulator routes and guards by it, the OpenAPI document and the reference page are
written from it, and the contract tests loop over it. Nothing else keeps a list of operations: a fact about an
operation is a column of its row.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module

from pulumi_hosting.api.operations.operation import METHODS as METHODS
from pulumi_hosting.api.operations.operation import ExtraLimit as ExtraLimit
from pulumi_hosting.api.operations.operation import Operation as Operation
from pulumi_hosting.api.operations.operation import Paging as Paging
from pulumi_hosting.api.operations.operation import RetryClass as RetryClass
from pulumi_hosting.api.operations.operation import Sandbox as Sandbox

# Limits (API document, "Limits", "Idempotency", "Sandbox"). Rate limits hold per key and fixed window.
WINDOW_SECONDS = 60
NORMAL_PER_WINDOW = 120
EXPENSIVE_PER_WINDOW = 20
INVALID_KEYS_PER_WINDOW = 30
MAX_BODY_BYTES = 64 * 1024
KEY_LENGTH = range(16, 129)
KEY_PATTERN = f"^[!-~]{{{KEY_LENGTH.start},{KEY_LENGTH.stop - 1}}}$"
"""An Idempotency-Key is printable ASCII without spaces."""
KEY_MEMORY_SECONDS = 7 * 24 * 3600
SANDBOX_SERVER_SECONDS = 24 * 3600

SCOPES: Mapping[str, str] = {
    "account:read": "read the account",
    "balance:read": "read balance, transactions, top-up info",
    "balance:topup": "create top-ups",
    "invoices:read": "read invoices and their PDF",
    "invoices:pay": "pay from the balance, create payment links",
    "servers:read": "read servers, live status, addresses, SSH keys, orders, refund quotes",
    "servers:manage": "power, reinstall, password reset, reverse DNS, edits, add and remove SSH keys",
    "servers:order": "order, renew, buy and release addresses",
    "servers:delete": "delete with refund",
    "domains:read": "read domains and availability",
    "domains:manage": "auto-renew, privacy, name servers",
    "domains:order": "register, renew, transfer",
    "keys:read": "list API keys",
    "webhooks:manage": "subscriptions, deliveries, test, redeliver",
}
"""The scopes of API keys (API document, "Authentication"), and the usual sets of them."""

_READ = tuple(scope for scope in SCOPES if scope.endswith(":read"))
PRESETS: Mapping[str, tuple[str, ...]] = {
    "read_only": _READ,
    "operate": (*_READ, "servers:manage", "servers:order", "domains:manage", "invoices:pay"),
    "full": tuple(SCOPES),
}

AREAS = ("meta", "account", "invoices", "catalog", "servers", "ssh_keys", "domains", "api_keys", "webhooks")
"""The modules of the areas, in the document's order. What needs one area loads its module alone."""

OPERATIONS: tuple[Operation, ...]
BY_ID: Mapping[str, Operation]
GROUPS: Mapping[str, str]
"""What the groups of operations are about, by their place in the client. ``meta``: the client's own methods.
"""


def by_id(operations: Iterable[Operation]) -> Mapping[str, Operation]:
    """These rows of the table by their ids."""
    return {operation.id: operation for operation in operations}


def area_at(path: str) -> tuple[Operation, ...]:
    """The rows of the area that has paths with the beginning of ``path``; none if no area has any.

    Areas are loaded until it is found; the one with the name of the beginning comes first.
    """
    first = path[1:].partition("/")[0]
    own_name = first.replace("-", "_")
    for name in sorted(AREAS, key=lambda name: name != own_name):
        if any(operation.path[1:].partition("/")[0] == first for operation in _area(name)):
            return _area(name)
    return ()


def _area(name: str) -> tuple[Operation, ...]:
    rows: tuple[Operation, ...] = import_module(f"{__name__}.{name}").OPERATIONS
    return rows


def __getattr__(name: str) -> object:
    """The whole table, loaded when it is first used."""
    if name not in ("OPERATIONS", "BY_ID", "GROUPS"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    operations = tuple(operation for area in AREAS for operation in _area(area))
    groups = {
        group: text for area in AREAS for group, text in import_module(f"{__name__}.{area}").GROUPS.items()
    }
    globals().update(OPERATIONS=operations, BY_ID=by_id(operations), GROUPS=groups)
    return globals()[name]
