"""A year of paid time: servers and domains that are kept by the nightly job and merges alone.

``python -m tests.a_year [--servers 50] [--domains 20] [--days 365]`` plays it on an emulator in this process.
Each night every object is compared and what ends is listed; a merge follows if a comparison asks for one. A
person only tops up, when the nightly list says that the balance does not cover something. At the end nothing
may be lost, each movement of money must have its reason, and each act must have been announced a week before.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.reports.account_objects import reading
from tests.provider.processes import Entry, Process, provider_process
from tests.support.account import Account

DAY = 86400
NIGHTLY = timedelta(days=14)  # as the job asks


@dataclass
class Year:
    """``lost``: objects that ended. ``acts``: of a person: the day, and the days that were left by then.
    ``busiest``: renewals by day."""

    servers: int = 50
    domains: int = 20
    days: int = 365
    account: Account = field(default_factory=Account)
    entries: list[tuple[str, Entry]] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    acts: list[tuple[int, float]] = field(default_factory=list)
    busiest: Counter[int] = field(default_factory=Counter)

    def play(self) -> "Year":
        self.account.control("PATCH", "/account", {"balance": "100000.00"})
        for day in range(self.days):
            if day < 10:  # bought over ten days, so that they do not all end at once
                self._buy(day)
            if day == 10:
                self.account.control("PATCH", "/account", {"balance": self._for_months(3)})
            self._night(day)
            self.account.advance(DAY)
            self._look()
        return self

    def _buy(self, day: int) -> None:
        run = self._process()
        for number in range(day, self.servers, 10):
            kind = number % 3  # renews itself, is kept paid by the month, and by the quarter
            kept: dict[str, object] = {"autoRenew": kind == 0} | ({"keepPaid": "7d"} if kind else {})
            given = {"tariffId": 1.0, "os": "debian-12", "name": f"web-{number}", **kept}
            given["months"] = 3.0 if kind == 2 else 1.0
            self.entries.append(("server", run.create("server", f"web-{number}", given)))
        for number in range(day, self.domains, 10):
            kept = {"autoRenew": bool(number % 2)} | ({} if number % 2 else {"keepPaid": "30d"})
            given = {"name": f"shop-{number}.com", **kept}
            self.entries.append(("domain", run.create("domain", f"shop-{number}", given)))

    def _for_months(self, months: int) -> str:
        """What the account needs for so long."""
        due = timedelta(days=30 * months)
        paid = paid_time_of(reading(self._process().session.client, lambda line: None, None))
        sums = [event.what.amount or Decimal(0) for event in paid.within(due)]
        return str(sum(sums, Decimal(0)).quantize(Decimal("0.01")))

    def _night(self, day: int) -> None:
        """The nightly job: what differs, and what ends. Then the merge, and what a person does."""
        preview = self._process()
        if any(self._differs(preview, kind, entry) for kind, entry in self.entries):
            self._merge(day)
        process = self._process()
        paid = paid_time_of(reading(process.session.client, lambda line: None, None))
        kept = {entry.id for _, entry in self.entries if entry.inputs.get("keepPaid")}
        for event in paid.objects:  # kept paid: renewed by a merge, from the balance
            if event.id in kept:
                paid = paid.declared(event.key, True)
        ends = [event for event in paid.uncovered(NIGHTLY) if event.at is not None]
        if ends:
            left = min((event.at - paid.now) / timedelta(days=1) for event in ends if event.at)
            self.acts.append((day, left))
            before = Decimal(str(paid.balance))
            self.account.control("PATCH", "/account", {"balance": str(before + Decimal(self._for_months(4)))})

    def _merge(self, day: int) -> None:
        run = self._process()
        for number, (kind, entry) in enumerate(self.entries):
            if self._differs(run, kind, entry):
                outputs = run.of(kind).update(entry.id, entry.outputs, entry.inputs)
                self.entries[number] = (kind, Entry(entry.id, outputs, entry.inputs))
                self.busiest[day] += 1

    @staticmethod
    def _differs(run: Process, kind: str, entry: Entry) -> bool:
        return run.of(kind).diff(entry.id, entry.outputs, entry.inputs).changes

    def _process(self) -> Process:
        return provider_process(self.account)

    def _look(self) -> None:
        for kind in ("servers", "domains"):
            for row in self.account.objects(kind):
                if row["status"] not in ("active", "stopped"):
                    self.lost.add(f"{kind} {row['id']} is {row['status']}")

    def unexplained(self) -> Iterator[str]:
        """Payments that are neither a purchase of the program, nor one renewal for each period that ended."""
        paid: Counter[str] = Counter()
        for row in self.account.ledger():
            if row["type"] == "payment":
                paid[str(row["object_id"])] += 1
            elif row["type"] not in ("adjustment", "topup"):
                yield f"{row['type']} of {row['amount']}"
        client = self._process().session.client
        for kind, entry in self.entries:
            found: Any = (
                client.servers.get(int(entry.id)) if kind == "server" else client.domains.get(int(entry.id))
            )
            until = found.billing.next_due_at if kind == "server" else found.expires_at
            months = 12 if kind == "domain" else int(entry.inputs.get("months", 1))
            spans = (until.year - found.created_at.year) * 12 + until.month - found.created_at.month
            payments = paid.pop(entry.id, 0)
            by_us = kind == "server" and entry.inputs.get("keepPaid")  # by the shortest period
            if months + (payments - 1) * (1 if by_us else months) != spans:
                yield f"{kind} {entry.id} is paid for {spans} months, by {payments} payments"
        yield from (f"{count} payments for {id}, which is in no state" for id, count in paid.items())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.a_year")
    for name, default in (("servers", 50), ("domains", 20), ("days", 365)):
        parser.add_argument(f"--{name}", type=int, default=default)
    year = Year(**vars(parser.parse_args())).play()
    problems = [*sorted(year.lost), *year.unexplained()]
    late = [act for act in year.acts if act[1] < 7]
    renewals, acts = sum(year.busiest.values()), len(year.acts)
    print(*problems, sep="\n")
    print(f"{year.days} days, {year.servers} servers, {year.domains} domains: {len(year.lost)} lost")
    print(f"{renewals} renewals by merges, {acts} acts of a person, {len(late)} of them announced too late")
    return 1 if problems or late or acts > 5 else 0


if __name__ == "__main__":
    raise SystemExit(main())
