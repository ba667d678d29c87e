"""Provider processes and the account they work on, in this process: what one command of an engine asks, and what is there afterwards."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator.transport import Transport
from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.conversion import IDENTITY
from pulumi_hosting.provider.session import InterruptibleClock, Session
from pulumi_hosting.resources import RESOURCES
from tests.emulator.support import EmulatorHarness

WEB: dict[str, Any] = {"tariffId": 1.0, "os": "debian-12", "name": "web"}
GONE = ("cancelled", "terminated")


class MovedClock(InterruptibleClock):
    """Sleeping moves the account's time; nothing is waited for."""

    def __init__(self, lab: EmulatorHarness) -> None:
        super().__init__()
        self.lab, self.elapsed = lab, 0.0

    def monotonic(self) -> float:
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        self.elapsed += seconds
        self.lab.advance(seconds)


@dataclass
class Entry:
    """One entry of a stack's state."""

    id: str
    outputs: dict[str, Any]
    inputs: dict[str, Any]


@dataclass
class Process:
    """One provider process."""

    lab: EmulatorHarness
    settings: dict[str, Any]
    transport: httpx.BaseTransport
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        def connect(key: Secret | None, base_url: str | None, **options: Any) -> Client:
            return Client(key, base_url, transport=self.transport, sleep=lambda seconds: None, **options)

        self.session = Session({}, connect)
        self.session.clock = MovedClock(self.lab)
        self.session.configure({"apiKey": self.lab.live_key, "baseUrl": "http://127.0.0.1:1/v1", **self.settings})

    def of(self, kind: str, *, native: bool = False) -> Adapter:
        return Adapter(RESOURCES[kind], self.session, self.lines.append, ids_may_change=native)

    def check(self, kind: str, name: str, given: dict[str, Any], olds: dict[str, Any] | None = None) -> dict[str, Any]:
        inputs, failures = self.of(kind).check(olds or {}, {**given, IDENTITY: f"pulumi:t/dev/{kind}/{name}"})
        assert failures == {}
        return inputs

    def create(self, kind: str, name: str, given: dict[str, Any]) -> Entry:
        inputs = self.check(kind, name, given)
        return Entry(*self.of(kind).create(inputs), inputs)

    def refresh(self, kind: str, entry: Entry) -> Entry:
        """As engines do: read, then compare what was read with the old inputs."""
        found = self.of(kind).read(entry.id, entry.outputs, entry.inputs)
        assert found is not None
        self.of(kind).diff(found[0], found[1], entry.inputs)
        return Entry(found[0], found[1], entry.inputs)

    def delete(self, kind: str, entry: Entry) -> None:
        self.of(kind).delete(entry.id, entry.outputs)


class Account(EmulatorHarness):
    """The account, and what is on it."""

    def process(self, transport: httpx.BaseTransport | None = None, **settings: Any) -> Process:
        return Process(self, settings, transport or Transport(self.core, sleep=lambda seconds: None))

    def objects(self, kind: str) -> list[dict[str, Any]]:
        return list(self.control("GET", "/objects")[kind])

    @property
    def living(self) -> list[str]:
        return [str(server["id"]) for server in self.objects("servers") if server["status"] not in GONE]

    def moved(self, *types: str) -> Decimal:
        """What was charged, less what was credited."""
        rows = [row for row in self.control("GET", "/ledger") if row["type"] in (types or ("payment", "refund"))]
        return sum((Decimal(row["amount"]) * (1 if row["direction"] == "debit" else -1) for row in rows), Decimal(0))

    def requested(self, method: str) -> list[str]:
        return [entry["path"] for entry in self.control("GET", "/requests") if entry["method"] == method]


Step = Callable[[], Any]
