"""Runs against an emulator in this process, whose clock moves in place of sleeping."""

from decimal import Decimal
from typing import Any

from pulumi_hosting.certify import Conformance, RunSettings, WebhookDelivery, run
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.in_process_transport import Transport
from pulumi_hosting.emulator.webhook_delivery import Attempt, AttemptOutcome

BASE_URL = "http://emulator/v1"


class WebhookReceiver:
    """Takes the deliveries of an emulator without a network."""

    url = "https://hooks.certify.example.org/"
    answer = 200

    def __init__(self, core: Core) -> None:
        self._seen: list[WebhookDelivery] = []
        core.send = self.receive

    def receive(self, attempt: Attempt) -> AttemptOutcome:
        headers = {name.lower(): value for name, value in attempt.headers.items()}
        self._seen.append(WebhookDelivery(headers, attempt.payload))
        return AttemptOutcome(self.answer, None if self.answer < 300 else "refused", "")

    def deliveries(self) -> list[WebhookDelivery]:
        return list(self._seen)


class Advancing:
    """A sleep advances the emulator."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def now(self) -> float:
        return self._core.clock.now()

    def sleep(self, seconds: float) -> None:
        self._core.advance(seconds)


def emulator(dialect: str = "spec", readings: dict[str, object] | None = None, **options: Any) -> Core:
    core = Core(clock=Clock(manual=True, start=1_790_000_000.0), dialect=dialect, **options)
    core.store.service.readings |= readings or {}
    core.announce(BASE_URL, "http://emulator/_control", 0)
    return core


def narrow_key(core: Core) -> str:
    """A live key without a scope."""
    account = next(iter(core.store.accounts.values()))
    return core.store.new_key(account, "live", name="narrow", scopes=[]).token


def settings(core: Core, **given: Any) -> RunSettings:
    """Everything is allowed, unless ``given`` says otherwise."""
    keys = {name: core.ready_line[name] for name in ("live_key", "test_key")}
    return RunSettings(
        **{
            "base_url": BASE_URL,
            **keys,
            "narrow_key": narrow_key(core),
            "spend": Decimal(200),
            "domain": "certify-example.com",
            "receiver": WebhookReceiver(core),
            "transport": Transport(core),
            "clock": Advancing(core),
            **given,
        }
    )


def certified(core: Core, **given: Any) -> Conformance:
    return run(settings(core, **given))
