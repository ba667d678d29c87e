"""The days after the first `up` of a rehearsal: the clock jumps to each day on which a run can say something
new of the paid time. What is lost is recorded with what announced it.
"""

import json
import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pulumi_hosting.client.client import Client
from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.planning.paid_time import PaidTime
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.facts import JsonObject
from pulumi_hosting.rehearsal.outcome import Loss
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session

EVENTS = ("server.suspended", "server.terminated", "invoice.overdue", "balance.low", "domain.expiring")
"""What a subscription can tell of paid time."""
NIGHTLY = timedelta(days=14)
"""How far the nightly job looks ahead: `pulumi-hosting renewals --days 14`."""
_MARKS = (timedelta(days=14), timedelta(days=7), timedelta(days=1), timedelta(0))
"""So long before the end the words of a warning change; it begins ``Prepaid.near`` before."""
_TOGETHER = timedelta(hours=1)
"""Moments this near to each other are one stop: one `up` buys its objects one after the other."""
_LATER = timedelta(minutes=1)
"""A stop is so long after its moment: the service tells times to the second."""
_LOW = timedelta(days=7)
"""The days before a due date of which ``balance.low`` tells."""
_LOST = (("server", "suspended", "next_due_at"), ("domain", "expired", "expires_at"))
_ORIGIN = "https://rehearsal.example.org"


class _Inbox(ThreadingHTTPServer):
    """Receives the events of a subscription."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.events: list[JsonObject] = []


class _Receiver(BaseHTTPRequestHandler):
    server: _Inbox

    def do_POST(self) -> None:
        self.server.events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """The report has a line for each loss, and none for each delivery."""


class PaidDays:
    """``days`` on an emulator's account, with a subscription of its own that is removed at the end.

    ``losses``: what was suspended, terminated or expired so far.
    """

    def __init__(self, control: Control, base_url: str, days: int) -> None:
        self.control, self.days = control, timedelta(days=days)
        self.losses: list[Loss] = []
        limits = {"rate_per_minute": 10**6, "rate_expensive_per_minute": 10**6}
        self._key = control("POST", "/keys", {"mode": "live", **limits})["key"]
        self._api = Control(base_url)
        readings = control("PATCH", "/service", {})["readings"]
        self._terminated_after = timedelta(days=readings["terminated_after_days"])
        self._said: list[tuple[datetime, str, str]] = []
        self._paid_until: dict[tuple[str, str], tuple[datetime | None, datetime]] = {}
        """Until when each object was paid at the last look, and the look that saw it first."""

    def __enter__(self) -> "PaidDays":
        self.inbox = _Inbox()
        threading.Thread(target=self.inbox.serve_forever, args=(0.05,), daemon=True).start()
        self.control("PUT", "/webhook-routes", {_ORIGIN: f"http://127.0.0.1:{self.inbox.server_port}"})
        body = {"url": f"{_ORIGIN}/", "events": EVENTS}
        made = self._api("POST", "/webhooks", body, Authorization=f"Bearer {self._key}")
        self.subscription = str(made["id"])
        return self

    def __exit__(self, *error: object) -> None:
        self.control("DELETE", f"/webhooks/{self.subscription}")
        self.inbox.shutdown()
        self.inbox.server_close()

    def stops(self) -> Iterator[int]:
        """Move the clock until ``days`` are over. Yields the number of each day on which a run may say
        something new; between two of them the account may be changed.
        """
        paid = self._look()
        began, end = paid.now, paid.now + self.days
        while paid.now < end:
            moments = {
                at: by_run for at, by_run in _moments(paid, self._terminated_after) if paid.now < at <= end
            }
            first = min(moments, default=end)
            together = [at for at in moments if at <= first + _TOGETHER]
            self._advance(max(together, default=end) + _LATER - paid.now)
            paid = self._look()
            lines = [paid.described(event) for event in paid.uncovered(NIGHTLY)]
            self.heard("nightly job", lines, paid.now)
            if any(moments[at] for at in together):
                yield round((paid.now - began) / timedelta(days=1))
                paid = self._look()

    def heard(self, by: str, lines: Iterable[str], at: datetime | None = None) -> None:
        """Note what a run, the nightly job or an event said, by default at the time of the last look."""
        self._said += [(at or self._now, by, line) for line in lines]

    def _look(self) -> PaidTime:
        with Client(self._key, self._api.url, read_only=True) as client:
            paid = paid_time_of(Request(Session(client), identity="rehearsal"))
        for what in paid.objects:
            known = self._paid_until.get(what.key)
            if known is None or known[0] != what.until:
                self._paid_until[what.key] = what.until, paid.now
        self._now = paid.now
        return paid

    def _advance(self, time: timedelta) -> None:
        self.control("POST", "/clock", {"advance": time.total_seconds()})
        events, self.inbox.events = self.inbox.events, []
        for event in events:
            self.heard(event["type"], [_subject(event)], datetime.fromisoformat(event["created_at"]))
        objects = self.control("GET", "/objects")
        for kind, status, field in _LOST:
            for row in objects[f"{kind}s"]:
                if row["status"] == status:
                    self._lose(kind, row, datetime.fromtimestamp(row[field], UTC))
        for event in events:
            found = event["data"]["object"]
            if event["type"] == "server.terminated" and found["status"] == "terminated":
                self._lose("server", found, datetime.fromisoformat(event["created_at"]))
                self.control.outside.add(("server", str(found["id"])))

    def _lose(self, kind: str, row: JsonObject, at: datetime) -> None:
        key = kind, str(row["id"])
        if (*key, at) in {(loss.kind, loss.id, loss.at) for loss in self.losses}:
            return
        billing = row.get("billing") or row
        since = self._paid_until[key][1] if key in self._paid_until else at
        announced: dict[str, int] = {}
        for moment, by, line in self._said:
            is_low = by == "balance.low" and billing["auto_renew"] and moment >= at - _LOW - _LATER
            if (is_low or f"{kind} {row['id']} (" in line) and moment >= since:
                announced.setdefault(by, round((at - moment) / timedelta(days=1)))
        self.losses.append(Loss(kind, key[1], str(row["name"]), str(row["status"]), at, announced))


def _moments(paid: PaidTime, terminated_after: timedelta) -> Iterator[tuple[datetime, bool]]:
    """When something may be said of what is not covered, and whether a run says it or only the nightly
    job. ``terminated_after``: so long after its end a suspended server is terminated."""
    found: dict[datetime, bool] = {}
    for event in paid.events:
        if event.kind in ("ends", "short") and event.at is not None:
            for mark in (event.what.near, *_MARKS):
                at = event.at - mark
                found[at] = found.get(at, False) or mark <= event.what.near
        if event.what.ended == "suspended" and event.at is not None:
            found[event.at + terminated_after] = True
    yield from found.items()


def _subject(event: JsonObject) -> str:
    """The objects of an event, as the lines of a run name them."""
    found: JsonObject = event["data"]["object"]
    kind = event["type"].partition(".")[0]
    if kind == "invoice":
        named = [("server", item.get("server_id")) for item in found["items"]]
        named += [("domain", item.get("domain_id")) for item in found["items"]]
        return ", ".join(f"{kind} {id} ()" for kind, id in named if id)
    return f"{kind} {found.get('id')} ({found.get('name')})"
