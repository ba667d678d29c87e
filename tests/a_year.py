"""A year of paid time: servers and domains that are kept by the nightly job and merges alone.

``python -m tests.a_year [--servers 50] [--domains 20] [--days 365]`` plays it on an emulator in this process.
Each night every object is compared and what ends is listed; a merge follows if a comparison asks for one. A
person only tops up, when the nightly list says that the balance does not cover something. At the end nothing
may be lost, each movement of money must have its reason, and each act must have been announced a week before.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx

from pulumi_hosting.api.casing import camel
from pulumi_hosting.emulator import running
from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.provider.provider_session import ProviderSession
from pulumi_hosting.rehearsal.engines import choose
from pulumi_hosting.reports.account_objects import reading
from tests.provider.processes import Entry, Process, provider_process
from tests.support.account import Account, AccountView
from tests.support.programs import Program, make_program

DAY = 86400
NIGHTLY = timedelta(days=14)  # as the job asks


@dataclass
class Year:
    """``lost``: objects that ended. ``acts``: of a person: the day, and the days that were left by then.
    ``busiest``: renewals by day."""

    servers: int = 50
    domains: int = 20
    days: int = 365
    at_once: bool = False
    account: AccountView = field(default_factory=Account)
    entries: list[tuple[str, Entry]] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    acts: list[tuple[int, float]] = field(default_factory=list)
    busiest: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    verdict: int = 1

    def play(self) -> "Year":
        self.account.control("PATCH", "/account", {"balance": "100000.00"})
        for day in range(self.days):
            if day < 10:
                self.buy(day)
            if day == 10:
                self.account.control("PATCH", "/account", {"balance": self._for_months(3)})
            self.night(day)
            self.account.advance(DAY)
            self._look()
        return self

    def declared(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Name, kind and inputs of each object."""
        for number in range(self.servers):
            kind = number % 3  # renews itself, is kept paid by the month, and after three months
            kept: dict[str, object] = {"auto_renew": kind == 0} | ({"keep_paid": "7d"} if kind else {})
            months = {"months": 3} if kind == 2 else {}
            name = f"web-{number}"
            yield name, "server", {"tariff_id": 1, "os": "debian-12", "name": name, **months, **kept}
        for number in range(self.domains):
            kept = {"auto_renew": bool(number % 2)} | ({} if number % 2 else {"keep_paid": "30d"})
            yield f"shop-{number}", "domain", {"name": f"shop-{number}.com", **kept}

    def buy(self, day: int) -> None:
        """Buy a tenth of it on each of ten days, or all on the first."""
        run = self.process()
        for number, (name, kind, given) in enumerate(self.declared()):
            if day == (0 if self.at_once else number % 10):
                inputs = {camel(field): _number(value) for field, value in given.items()}
                self.entries.append((kind, run.create(kind, name, inputs)))

    def _for_months(self, months: int) -> str:
        """What the account needs for so long."""
        due = timedelta(days=30 * months)
        paid = paid_time_of(reading(self.process().session.client, lambda line: None, None))
        sums = [event.what.amount or Decimal(0) for event in paid.within(due)]
        return str(sum(sums, Decimal(0)).quantize(Decimal("0.01")))

    def night(self, day: int) -> None:
        """The nightly job: what differs, and what ends. Then the merge, and what a person does."""
        preview = self.process()
        if any(self._differs(preview, kind, entry) for kind, entry in self.entries):
            self.merge(day)
        process = self.process()
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

    def merge(self, day: int) -> None:
        run = self.process()
        for number, (kind, entry) in enumerate(self.entries):
            if self._differs(run, kind, entry):
                outputs = run.of(kind).update(entry.id, entry.outputs, entry.inputs)
                self.entries[number] = (kind, Entry(entry.id, outputs, entry.inputs))
                self.busiest[day] += 1

    @staticmethod
    def _differs(run: Process, kind: str, entry: Entry) -> bool:
        return run.of(kind).diff(entry.id, entry.outputs, entry.inputs).changes

    def process(self) -> Process:
        """A provider process, in this one."""
        assert isinstance(self.account, Account)
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
        client = self.process().session.client
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

    def reported(self) -> "Year":
        """Print what happened."""
        self.problems = [*sorted(self.lost), *self.unexplained()]
        late = [left for _, left in self.acts if left < 7]
        renewals, acts = sum(self.busiest.values()), len(self.acts)
        print(*self.problems, sep="\n")
        print(f"{self.days} days, {self.servers} servers, {self.domains} domains: {len(self.lost)} lost")
        print(
            f"{renewals} renewals by merges, {acts} acts of a person, {len(late)} of them announced too late"
        )
        self.verdict = 1 if self.problems or late or acts > 5 else 0
        return self


def _number(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


class _OverHttp(Process):
    """A provider in this process, and the account behind a socket."""

    def __post_init__(self) -> None:
        self.session = ProviderSession({})
        self.session.configure(self.settings)


@dataclass
class YearOfProcesses(Year):
    """All is bought by ``up`` of a real engine, which also previews and merges on ``days_of_processes``."""

    days_of_processes: frozenset[int] = frozenset()

    @property
    def program(self) -> Program:
        assert isinstance(self.account, Program)
        return self.account

    def process(self) -> Process:
        key, url = self.program.stack.environ["HOSTING_API_KEY"], self.program.emulator.base_url
        return _OverHttp(Account(), {"apiKey": key, "baseUrl": url}, httpx.HTTPTransport())

    def buy(self, day: int) -> None:
        if day == 0:
            kinds = {"server": "Server", "domain": "Domain"}
            self.program.declare(
                {name.replace("-", "_"): (kinds[kind], given) for name, kind, given in self.declared()}
            )
            self.program.run(self.program.stack.up())
            for item in self.program.resources().values():
                kind = item["type"].rpartition(":")[2].lower()
                outputs = {name: value for name, value in item["outputs"].items() if name != "rootPassword"}
                self.entries.append((kind, Entry(item["id"], outputs, item["inputs"])))

    def merge(self, day: int) -> None:
        if day not in self.days_of_processes:
            super().merge(day)
            return
        before = len(self.account.ledger())
        found = self.program.stack.preview("--expect-no-changes")
        assert found.exit_code != 0, found.output
        self.program.run(self.program.stack.up())
        self.busiest[day] += len(self.account.ledger()) - before
        self.program.run(self.program.stack.preview("--expect-no-changes"))


def with_processes(planned: Year) -> Year:
    """The same year, with real processes on its twenty busiest days."""
    busiest = frozenset(day for day, _ in planned.busiest.most_common(20))
    with tempfile.TemporaryDirectory() as folder, running(clock="manual") as emulator:
        place = Path(folder)
        program = make_program(choose(), emulator, place / "program", place / "home", "native")
        year = YearOfProcesses(planned.servers, planned.domains, planned.days, at_once=True, account=program)
        year.days_of_processes = busiest
        return year.play().reported()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.a_year")
    help = "leave out the second time, with real processes on the busiest days"
    parser.add_argument("--in-process", action="store_true", help=help)
    for name, default in (("servers", 50), ("domains", 20), ("days", 365)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = vars(parser.parse_args())
    at_once = not options.pop("in_process")
    year = Year(**options, at_once=at_once).play().reported()
    if year.at_once:
        return max(year.verdict, with_processes(year).verdict)
    return year.verdict


if __name__ == "__main__":
    raise SystemExit(main())
