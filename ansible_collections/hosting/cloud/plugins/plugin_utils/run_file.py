# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the tasks of one run of Ansible share. They run in forks, so it is kept in private files of the run's own directory.

Ansible makes that directory when it starts and removes it when it ends. The files of a run that was killed stay: the next run reports what
they say was charged, and marks them as reported, since a worker that outlived its run may still write to them.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.hosting.cloud.plugins.module_utils.ledger import Ledger, beyond
from ansible_collections.hosting.cloud.plugins.module_utils.planned import Effect, Planned

if TYPE_CHECKING:
    from pulumi_hosting.session.cost import Cost

UNKNOWN = "?"
"""The account of a key that the controller does not know: it counts towards every account, and every account towards it."""
CHARGED, PREDICTED, PLANNED = "hosting.cloud.charged.json", "hosting.cloud.predicted.json", "hosting.cloud.planned.json"
_RANDOM_LETTERS = 8  # tempfile's, after the process id in the name of the run's directory


class RunLedger(Ledger):
    """The ledger of this run for one ``account``. ``holder`` names the task's process, so that a booking which several hosts share is
    dropped with the last of them."""

    def __init__(self, file: Path, account: str, holder: str) -> None:
        self._file, self._account, self._holder = file, account, holder

    def book(self, identity: str, cost: Cost, limit: Decimal | None) -> str | None:
        with locked(self._file) as content:
            if reason := content.get("stopped", {}).get(self._account):
                return str(reason)
            bookings = content.setdefault("booked", {})
            name = f"{self._account} {identity}"
            holders = sorted({*bookings.get(name, {}).get("holders", ()), self._holder})
            total = spent(content, self._account, without=name).get(cost.currency, Decimal(0)) + cost.amount
            if limit is not None and total > limit:
                return beyond(cost, total, limit)
            bookings[name] = {"account": self._account, "amount": str(cost.amount), "currency": cost.currency, "holders": holders}
            return None

    def settle(self, identity: str, charged: Mapping[str, Any] | None) -> None:
        with locked(self._file) as content:
            bookings = content.setdefault("booked", {})
            name = f"{self._account} {identity}"
            booking = bookings.pop(name, None)
            if charged is not None:
                content.setdefault("spent", []).append({"account": self._account, **charged})
            others = [holder for holder in booking["holders"] if holder != self._holder] if booking else []
            if others:  # they send the same purchase; it is counted once
                amount = "0" if charged is not None else booking["amount"]
                bookings[name] = {**booking, "amount": amount, "holders": others}

    def claim(self, movement: str) -> bool:
        with locked(self._file) as content:
            claimed = content.setdefault("claimed", [])
            name = f"{self._account} {movement}"
            if name in claimed:
                return False
            claimed.append(name)
            return True

    def stop(self, reason: str) -> None:
        with locked(self._file) as content:
            content.setdefault("stopped", {})[self._account] = reason

    @property
    def stopped(self) -> str | None:
        if not self._file.exists():
            return None
        with locked(self._file) as content:
            found = content.get("stopped", {}).get(self._account)
            return None if found is None else str(found)

    def spent(self) -> dict[str, str]:
        """What the run has charged, or may have, by currency."""
        with locked(self._file) as content:
            return {currency: str(amount) for currency, amount in spent(content, self._account).items()}


def spent(content: Mapping[str, Any], account: str, without: str = "") -> dict[str, Decimal]:
    """Settled and booked amounts by currency, without the booking of this name."""
    rows = [*content.get("spent", ()), *(row for name, row in content.get("booked", {}).items() if name != without)]
    totals: dict[str, Decimal] = {}
    for row in rows:
        if account == UNKNOWN or row["account"] in (account, UNKNOWN):
            totals[row["currency"]] = totals.get(row["currency"], Decimal(0)) + Decimal(row["amount"])
    return totals


def of_killed_runs(folder: Path) -> list[str]:
    """One line for each run that was killed and had charged something; they are reported once. ``folder``: this run's directory."""
    lines = []
    for file in sorted(folder.parent.glob(f"ansible-local-*/{CHARGED}")):
        pid = file.parent.name.removeprefix("ansible-local-")[:-_RANDOM_LETTERS]
        if file.parent == folder or not pid.isdigit() or file.stat().st_uid != os.getuid() or _lives(int(pid)):
            continue
        with locked(file) as content:
            rows = {account for name in ("spent", "booked") for account in _accounts(content, name)}
            amounts = [f"{amount} {currency}" for account in sorted(rows) for currency, amount in spent(content, account).items() if amount]
            if content.get("reported"):
                amounts = []  # a worker that outlived the run has written to it since
            content["reported"] = True
        if amounts:
            lines.append(f"an earlier run of Ansible was killed after it had charged, or may have charged, {' and '.join(amounts)}")
    return lines


def _accounts(content: Mapping[str, Any], name: str) -> list[str]:
    rows = content.get(name, ())
    return [row["account"] for row in (rows.values() if isinstance(rows, Mapping) else rows)]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def planned(folder: Path, account: str) -> Planned:
    """What the earlier tasks of this check run would have done to the account."""
    file = folder / PLANNED

    def load() -> list[Effect]:
        if not file.exists():
            return []
        with locked(file) as content:
            return list(content.get(account, []))

    def store(effect: Effect) -> None:
        with locked(file) as content:
            content.setdefault(account, []).append(effect)

    return Planned(load, store)


def forget_planned(folder: Path) -> None:
    """A task of this run has really changed something: what check mode predicted before is no longer the account's future."""
    (folder / PLANNED).unlink(missing_ok=True)


@contextmanager
def locked(file: Path) -> Iterator[dict[str, Any]]:
    """The content of a JSON file, for one process at a time; changes are kept."""
    with open(os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+", encoding="utf-8") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        text = opened.read()
        content: dict[str, Any] = json.loads(text) if text else {}
        yield content
        opened.seek(0)
        opened.truncate()
        json.dump(content, opened)
