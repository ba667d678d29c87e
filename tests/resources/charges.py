"""What the tests of actions that charge share."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator.periods import months_after
from tests.resources.actions import server
from tests.resources.conftest import ResourceHarness

READINGS: list[dict[str, Any]] = [{}, {"refusals_stored": False}, {"key_memory": "key"}]


def names(readings: Any) -> str:
    if isinstance(readings, bool):
        return "processed" if readings else "unsent"
    return "-".join(f"{name}={value}" for name, value in readings.items()) or "defaults"


def client(harness: ResourceHarness) -> Client:
    return harness.context().client


def billing(harness: ResourceHarness, id: str) -> m.ServerBilling:
    found = client(harness).servers.get(int(id)).billing
    assert found is not None
    return found


def due(harness: ResourceHarness, id: str) -> datetime:
    found = billing(harness, id).next_due_at
    assert found is not None
    return found


def domain(harness: ResourceHarness, name: str = "example-1.com", years: int = 1) -> str:
    return str(client(harness).domains.register(name=name, years=years, privacy=False).domain_id)


def expires(harness: ResourceHarness, id: str) -> datetime:
    found = client(harness).domains.get(int(id)).expires_at
    assert found is not None
    return found


def later(moment: datetime, months: int) -> datetime:
    """By the calendar, as the service counts."""
    return datetime.fromtimestamp(months_after(moment.timestamp(), months), UTC)


def text(moment: datetime) -> str:
    return moment.isoformat()


# --- the ones that charge, told alike ----------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A charge: how its object comes to be, what asks for it, and the operation and path that it goes by."""

    kind: str
    make: Callable[[ResourceHarness], str]
    desired: Callable[[ResourceHarness, str], dict[str, Any]]
    operation: str
    path: str


def _unpaid_renewal(harness: ResourceHarness) -> str:
    """The invoice of a renewal that the balance did not cover."""
    id = server(harness)
    harness.control("PATCH", f"/servers/{id}", {"auto_renew": False})
    harness.control("POST", "/clock", {"advance": 31 * 86400})
    return str(next(iter(client(harness).invoices.list(type="vds_renewal", status="not_paid"))).id)


CASES = [
    Case(
        "server_renew",
        server,
        lambda harness, id: {"id": id, "until": text(due(harness, id) + timedelta(days=20))},
        "renew_server",
        "^/servers/[0-9]+/renew$",
    ),
    Case(
        "domain_renew",
        domain,
        lambda harness, id: {"id": id, "until": text(expires(harness, id) + timedelta(days=20))},
        "renew_domain",
        "^/domains/[0-9]+/renew$",
    ),
    Case(
        "invoice_pay",
        _unpaid_renewal,
        lambda harness, id: {"id": id},
        "pay_invoice",
        "^/invoices/[0-9]+/pay$",
    ),
]


each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)


def charges(harness: ResourceHarness, case: Case) -> int:
    """Charges of the operation that were not returned."""
    rows = [row for row in harness.account.ledger() if row["operation"] == case.operation]
    return sum(1 if row["direction"] == "debit" else -1 for row in rows)


def charged(harness: ResourceHarness, case: Case) -> Decimal:
    return sum(
        (Decimal(row["amount"]) for row in harness.account.ledger() if row["operation"] == case.operation),
        Decimal(0),
    ).copy_abs()


def set_balance(harness: ResourceHarness, amount: str) -> None:
    harness.control("PATCH", "/account", {"balance": amount})
