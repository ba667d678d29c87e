"""What a run is given: where the deployment is, the keys, and what it may do."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Protocol

import httpx


class WaitingClock(Protocol):
    """The time of the deployment. A test advances a manual clock in place of sleeping."""

    def now(self) -> float:
        """Unix seconds."""

    def sleep(self, seconds: float) -> None: ...


class RealClock:
    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """A webhook as it arrived. Names of headers are in lower case."""

    headers: Mapping[str, str]
    body: bytes


class WebhookReceiver(Protocol):
    """Receives webhooks at a public ``url`` and answers each with the status ``answer``."""

    url: str
    answer: int

    def deliveries(self) -> list[WebhookDelivery]:
        """All that arrived so far, oldest first."""


@dataclass(slots=True)
class RunSettings:
    """``live_key``: without it the run only reads and simulates. ``narrow_key``: one that lacks scopes, for
    the checks of scopes. ``spend``: what the run may be charged at most, refunds not counted. ``domain``: a
    name that may be registered. ``state_file``: keeps the answers of the live part, so that a killed run
    continues and orders nothing twice; it holds passwords and secrets and is readable by its owner only.
    ``progress``: called with the number, the total and the name of each part that begins.
    """

    base_url: str
    test_key: str | None = field(default=None, repr=False)
    live_key: str | None = field(default=None, repr=False)
    narrow_key: str | None = field(default=None, repr=False)
    spend: Decimal = Decimal(0)
    domain: str | None = None
    receiver: WebhookReceiver | None = None
    max_requests: int = 2000
    state_file: Path | None = None
    transport: httpx.BaseTransport | None = None
    clock: WaitingClock = field(default_factory=RealClock)
    progress: Callable[[int, int, str], object] = lambda number, total, title: None
