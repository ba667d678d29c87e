"""What is on an account and what was charged, in words that do not depend on ids and times."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

Control = Callable[[str, str], Any]
"""Calls the control interface, as ``control("GET", "/objects")``."""
_SERVICE = ("billing", "control")
_GONE = ("cancelled", "terminated")
_TAG = re.compile(r"\[iac[^]]*\]")
"""An ownership tag, which also tells which attempt ordered the server."""


def charges(control: Control) -> Counter[str]:
    """Charges by operation, without automatic ones."""
    return Counter(
        row["operation"]
        for row in control("GET", "/ledger")
        if row["direction"] == "debit" and row["operation"] not in _SERVICE
    )


def objects(control: Control) -> Counter[str]:
    """What lives."""
    found, at = control("GET", "/objects"), Counter[str]()
    names = {row["id"]: row["name"] for row in found["servers"]}
    at.update(
        f"server {row['name']} {row['os']} {row['status']} {row['auto_renew']} "
        f"{_TAG.sub('', row['notes'] or '').strip()}"
        for row in found["servers"]
        if row["status"] not in _GONE
    )
    at.update(
        f"address of {names.get(row['server_id'])} {row['ptr']}"
        for row in found["addresses"]
        if row["server_id"] in names and (row["bought"] or row["ptr"])
    )
    at.update(
        f"domain {row['name']} {row['auto_renew']} {row['nameservers']}"
        for row in found["domains"]
        if row["status"] not in _GONE
    )
    at.update(f"ssh key {row['name']} {row['fingerprint']}" for row in found["ssh_keys"])
    at.update(f"webhook {row['url']} {row['events']} {row['active']}" for row in found["subscriptions"])
    at.update(
        f"top-up {row['amount']}"
        for row in found["invoices"]
        if row["type"] == "topup" and row["status"] not in ("cancelled", "refunded")
    )
    return at


def differences(control: Control, charged: Counter[str], living: Counter[str]) -> list[str]:
    """How the account differs from one where so much was charged and these live."""
    found = objects(control)
    return [
        *charged_twice(control, charged),
        *(f"too much: {name}" for name in (found - living).elements()),
        *(f"missing: {name}" for name in (living - found).elements()),
    ]


def charged_twice(control: Control, charged: Counter[str]) -> list[str]:
    """What was charged beyond that."""
    return [f"charged too often: {name}" for name in (charges(control) - charged).elements()]
