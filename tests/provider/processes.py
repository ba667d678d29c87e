"""Provider processes and the account they work on, in this process: what one command of an engine asks,
and what is there afterwards.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.client import Client
from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.names import IDENTITY
from pulumi_hosting.provider.provider_session import InterruptibleClock, ProviderSession
from pulumi_hosting.resources import RESOURCES
from tests.support.account import Account

WEB: dict[str, Any] = {"tariffId": 1.0, "os": "debian-12", "name": "web"}


class AdvancingClock(InterruptibleClock):
    """Sleeping moves the account's time; nothing is waited for."""

    def __init__(self, account: Account) -> None:
        super().__init__()
        self.account, self.elapsed = account, 0.0

    def monotonic(self) -> float:
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        self.elapsed += seconds
        self.account.advance(seconds)


def session_on(
    account: Account, transport: httpx.BaseTransport, environ: Mapping[str, str]
) -> ProviderSession:
    """The session of a provider process, whose waits move the account's clock."""

    def connect(key: Secret | None, base_url: str | None, **options: Any) -> Client:
        return Client(
            key,
            base_url,
            transport=transport,
            clock=account.clock.now,
            sleep=lambda seconds: None,
            **options,
        )

    session = ProviderSession(environ, connect)
    session.clock = AdvancingClock(account)
    return session


@dataclass
class Entry:
    """One entry of a stack's state."""

    id: str
    outputs: dict[str, Any]
    inputs: dict[str, Any]


@dataclass
class Process:
    """One provider process."""

    account: Account
    settings: dict[str, Any]
    transport: httpx.BaseTransport
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.session = session_on(self.account, self.transport, {})
        self.session.configure(
            {"apiKey": self.account.live_key, "baseUrl": self.account.base_url, **self.settings}
        )

    def of(self, kind: str, *, native: bool = False) -> Adapter:
        return Adapter(RESOURCES[kind], self.session, self.lines.append, ids_may_change=native)

    def check(
        self, kind: str, name: str, given: dict[str, Any], olds: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        inputs, failures = self._checked(kind, name, given, olds or {})
        assert failures == {}
        return inputs

    def refused(self, kind: str, name: str, given: dict[str, Any]) -> str:
        """The one failure of a check as a whole."""
        ((field, why),) = self._checked(kind, name, given, {})[1].items()
        assert field == ""
        return why

    def _checked(
        self, kind: str, name: str, given: dict[str, Any], olds: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        return self.of(kind).check(olds, {**given, IDENTITY: f"pulumi:t/dev/{kind}/{name}"})

    def made(self, kind: str, name: str, given: dict[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """Id, outputs and inputs of a creation."""
        entry = self.create(kind, name, given)
        return entry.id, entry.outputs, entry.inputs

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


def provider_process(
    account: Account, transport: httpx.BaseTransport | None = None, **settings: Any
) -> Process:
    """A new provider process with these settings."""
    return Process(account, settings, transport or account.transport())


Start = Callable[..., Process]
"""Starts a process with the given settings."""
