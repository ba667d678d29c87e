"""One emulated account in this process: its objects, its ledger, its requests, its clock and its faults."""

from decimal import Decimal
from typing import Any

import httpx

from pulumi_hosting.emulator.in_process_transport import Transport
from tests.emulator.support import EmulatorHarness

GONE = ("cancelled", "terminated")
"""States of servers that are deleted."""


class Account(EmulatorHarness):
    """An :class:`EmulatorHarness` with what tests ask of an account."""

    base_url = "http://127.0.0.1:1/v1"
    """What clients of ``transport()`` are given; nothing listens there."""

    def transport(self) -> httpx.BaseTransport:
        """A client's way to the account. What the emulator delays is not waited for."""
        return Transport(self.core, sleep=lambda seconds: None)

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """``servers``, ``addresses``, ``domains``, ``ssh_keys``, ``subscriptions``, ``orders`` or
        ``invoices``, as the emulator stores them.
        """
        return list(self.control("GET", "/objects")[kind])

    @property
    def living(self) -> list[dict[str, Any]]:
        """Servers that are not deleted."""
        return [server for server in self.objects("servers") if server["status"] not in GONE]

    @property
    def living_ids(self) -> list[str]:
        return [str(server["id"]) for server in self.living]

    def ledger(self) -> list[dict[str, Any]]:
        """Every movement of money."""
        return list(self.control("GET", "/ledger"))

    def moved(self, *types: str) -> Decimal:
        """What was charged, less what was credited."""
        rows = [row for row in self.ledger() if row["type"] in (types or ("payment", "refund"))]
        return sum(
            (Decimal(row["amount"]) * (1 if row["direction"] == "debit" else -1) for row in rows), Decimal(0)
        )

    @property
    def charges(self) -> int:
        """Purchases less refunds, counted."""
        rows = [row for row in self.ledger() if row["type"] in ("payment", "refund")]
        return sum(1 if row["direction"] == "debit" else -1 for row in rows)

    def requested(self, method: str) -> list[str]:
        """Paths of the requests with this method."""
        return [entry["path"] for entry in self.control("GET", "/requests") if entry["method"] == method]
