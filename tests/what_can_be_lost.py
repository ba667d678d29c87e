"""Each way to lose an object, and who says so how many days before: played on an emulator in this process.

``python -m tests.what_can_be_lost --write`` writes docs/what-can-be-lost.md.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.planning.paid_time import PaidTime
from pulumi_hosting.reports.account_objects import reading
from pulumi_hosting.reports.metrics import metrics
from tests.ansible.in_process import Play
from tests.provider.processes import Entry, Process, provider_process
from tests.support.account import Account

PAGE = Path(__file__).parent.parent / "docs" / "what-can-be-lost.md"
DAY = 86400
SERVER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12", "name": "web"}
DOMAIN: dict[str, Any] = {"name": "shop.com"}
EVENTS = frozenset(
    {"balance.low", "domain.expiring", "invoice.overdue", "server.suspended", "server.terminated"}
)
PLACES = ("preview", "check mode", "drift", "nightly job", "renewals", "exporter", "webhook")


@dataclass(frozen=True)
class Way:
    """``title``: what happens. ``kind`` and ``given``: what is declared. ``before``: what is done to the
    account at the start, ``at_the_end`` what makes the loss; without it the paid time ends, after ``days``.
    """

    title: str
    kind: str
    given: dict[str, Any]
    days: float = 30
    before: Callable[[Account, str], object] = lambda account, id: None
    at_the_end: Callable[[Account, str], object] | None = None


def _control(
    method: str, path: str, json: Mapping[str, Any] | None = None
) -> Callable[[Account, str], object]:
    return lambda account, id: account.control(method, path.format(id), json and dict(json))


def _balance(left: str) -> Callable[[Account, str], object]:
    return _control("PATCH", "/account", {"balance": left})


WAYS = (
    Way("a server that does not renew itself", "server", {**SERVER, "auto_renew": False}),
    Way("a server whose renewal the balance does not cover", "server", SERVER, before=_balance("1.00")),
    Way(
        "a server by the hour that does not renew itself",
        "server",
        {**SERVER, "tariff_id": 3, "hours": 72, "auto_renew": False},
        days=3,
    ),
    Way("a domain that does not renew itself", "domain", DOMAIN, days=365),
    Way(
        "a domain whose renewal the balance does not cover",
        "domain",
        {**DOMAIN, "auto_renew": True},
        days=365,
        before=_balance("1.00"),
    ),
    Way(
        "a server whose renewal keep_paid cannot pay",
        "server",
        {**SERVER, "auto_renew": False, "keep_paid": "7d"},
        before=_balance("1.00"),
    ),
    Way(
        "a server whose cancellation is approved",
        "server",
        SERVER,
        before=_control("PATCH", "/servers/{}", {"status": "pending_cancel"}),
    ),
    Way(
        "a server that staff suspends",
        "server",
        SERVER,
        10,
        at_the_end=_control("PATCH", "/servers/{}", {"status": "suspended"}),
    ),
    Way(
        "a server that staff ends",
        "server",
        SERVER,
        10,
        at_the_end=_control("PATCH", "/servers/{}", {"status": "terminated"}),
    ),
    Way(
        "a server that is deleted in the control panel",
        "server",
        SERVER,
        10,
        at_the_end=_control("DELETE", "/servers/{}"),
    ),
    Way(
        "a domain that is cancelled",
        "domain",
        DOMAIN,
        10,
        at_the_end=_control("PATCH", "/domains/{}", {"status": "cancelled"}),
    ),
)


@dataclass
class Played:
    """One way, played: the days before the loss (negative: after it) on which each place said so first."""

    way: Way
    account: Account = field(default_factory=Account)
    said: dict[str, float] = field(default_factory=dict)

    def play(self) -> "Played":
        way, account = self.way, self.account
        account.subscribe("*")
        first = self._process()
        camel = {
            "".join((a, *map(str.capitalize, b))): value
            for name, value in way.given.items()
            for a, *b in [name.split("_")]
        }
        entry = first.create(way.kind, "one", camel)
        way.before(account, entry.id)
        account.sent.clear()
        elapsed = 0.0
        for left in (*(d for d in (45, 30, 21, 14, 10, 7, 5, 3, 2, 1) if d < way.days), 0.05, -1.0):
            account.advance((way.days - left + 0.01 - elapsed) * DAY)  # a little less is left
            elapsed = way.days - left + 0.01
            if left < 0 and way.at_the_end is not None:
                way.at_the_end(account, entry.id)
                account.advance(60)  # events are delivered
            for place in self._telling(entry):
                self.said.setdefault(place, left)
        return self

    def _process(self) -> Process:
        return provider_process(self.account)

    def _telling(self, entry: Entry) -> Iterator[str]:
        """The places that say something today."""
        way, id = self.way, entry.id
        run = self._process()
        has_drift = run.of(way.kind).diff(id, entry.outputs, entry.inputs).changes
        if any("warning: " in line for line in run.lines):
            yield "preview"
        read = self._process().of(way.kind).read(id, entry.outputs, entry.inputs)
        after = read is None or self._process().of(way.kind).diff(read[0], read[1], entry.inputs).changes
        if has_drift or after:
            yield "drift"
        check = Play(self.account, check_mode=True)(way.kind, **way.given)
        if check["warnings"] or check["changed"] or check["failed"]:
            yield "check mode"
        paid = paid_time_of(reading(run.session.client, lambda line: None, None))
        ours = {(way.kind, id), (way.kind, way.given["name"])}
        uncovered = [event for event in paid.uncovered(timedelta(days=14)) if event.what.key in ours]
        if uncovered:
            yield "renewals"
        if uncovered or has_drift or after:
            yield "nightly job"
        if self._alerts(paid, id):
            yield "exporter"
        if any(json.loads(sent.payload).get("type") in EVENTS for sent in self.account.sent):
            yield "webhook"

    def _alerts(self, paid: PaidTime, id: str) -> bool:
        """Whether a rule of examples/prometheus would fire for the object: it has ended, or ends within seven
        days and is not covered."""
        values = {
            (metric.name, sample.labels.get("id")): sample.value
            for metric in metrics(paid, 0.0)
            for sample in metric.samples
        }
        ends = values.get(("hosting_paid_until_timestamp_seconds", id))
        soon = ends is not None and ends - datetime.timestamp(paid.now) < 7 * DAY
        return ("hosting_ended", id) in values or (soon and values.get(("hosting_covered", id)) == 0)


def row(way: Way, said: Mapping[str, float]) -> str:
    """The line of the page."""
    return f"| {way.title} | {' | '.join(_cell(said, place) for place in PLACES)} |"


def table() -> str:
    """The table of the page, of what happens now."""
    head = [f"| Way to lose it | {' | '.join(PLACES)} |", "|---" * (len(PLACES) + 1) + "|"]
    return "\n".join([*head, *(row(way, Played(way).play().said) for way in WAYS)]) + "\n"


def _cell(said: Mapping[str, float], place: str) -> str:
    left = said.get(place)
    if left is None:
        return ""
    return "after" if left < 0 else "1 hour" if left < 1 else f"{left:g} day{'s' if left > 1 else ''}"


if __name__ == "__main__":
    found = table()
    if "--write" in sys.argv:
        text = PAGE.read_text(encoding="utf-8").partition("| Way to lose it")[0]
        PAGE.write_text(text + found, encoding="utf-8")
    print(found)
