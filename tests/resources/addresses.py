"""What the tests of bought addresses share."""

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest

from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.resources.server_ip import SERVER_IP, ServerIpInputs, ServerIpState
from tests.resources.conftest import EmulatorClock, KillingTransport, ProcessKilled, ResourceHarness
from tests.support.waiting import HANG_SECONDS

PURCHASE = "/ips"
A, B = "pulumi:t/dev/server_ip/a", "pulumi:t/prod/server_ip/a"
DAY = 86400


@dataclass
class KilledAtPurchase(KillingTransport):
    """Dies at the first purchase of an address, before it is sent or after it was processed."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and request.url.path.endswith(PURCHASE):
            self.at = len(self.sent)
        return super().handle_request(request)


@dataclass
class WrongClock(EmulatorClock):
    """This machine's clock is ``offset`` wrong."""

    offset: timedelta = timedelta(0)

    def now(self) -> datetime:
        return datetime.fromisoformat(self.control("GET", "/")["now"]) + self.offset


@dataclass
class TogetherTransport(KillingTransport):
    """Purchases of several runs leave together: each waits until the others want to send theirs as well,
    or have ended, or wait for a lock.
    """

    meeting: threading.Barrier = field(kw_only=True)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and request.url.path.endswith(PURCHASE):
            with suppress(threading.BrokenBarrierError):
                self.meeting.wait(HANG_SECONDS)
        return super().handle_request(request)


def inputs_of(server: str, **more: Any) -> ServerIpInputs:
    found = check(SERVER_IP, {"server_id": server, **more})
    assert not found.failures
    inputs: ServerIpInputs = found.inputs
    return inputs


def buy(
    harness: ResourceHarness,
    server: str,
    identity: str = A,
    *,
    adopt_id: str | None = None,
    order_attempt: int | None = None,
    **more: Any,
) -> ServerIpState:
    given = {
        name: value
        for name, value in (("adopt_id", adopt_id), ("order_attempt", order_attempt))
        if value is not None
    }
    state: ServerIpState = apply.create(
        harness.context(identity=identity, **more), SERVER_IP, inputs_of(server, **given)
    )
    return state


def bought(harness: ResourceHarness) -> list[str]:
    return [
        f"{row['server_id']}/{row['id']}"
        for row in harness.control("GET", "/objects")["addresses"]
        if row.get("bought")
    ]


def debits(harness: ResourceHarness) -> list[Decimal]:
    return [
        Decimal(str(row["amount"])) for row in harness.account.ledger() if row["operation"] == "add_server_ip"
    ]


def killed(harness: ResourceHarness, server: str, after: bool, **more: Any) -> None:
    with pytest.raises(ProcessKilled):
        buy(harness, server, transport=KilledAtPurchase(after=after), **more)
