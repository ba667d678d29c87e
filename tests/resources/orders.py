"""What the tests of orders of servers share."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pulumi_hosting.planning.check import check
from pulumi_hosting.resources.server_powers import SERVER
from tests.resources.conftest import GOOD, EmulatorClock, ResourceHarness

WEEK = 7 * 24 * 3600
IDENTITY = "pulumi:t/dev/server/web-1"
READINGS: list[dict[str, Any]] = [
    {},
    {"refusals_stored": False},
    {"replay_request_id": "stored"},
    {"key_memory": "key"},
    {"body_comparison": "bytes"},
    {"deleted_servers": "listed"},
]


def names(readings: dict[str, Any]) -> str:
    return "-".join(f"{name}={value}" for name, value in readings.items()) or "defaults"


def exchanges_of_an_order() -> list[tuple[int, bool]]:
    """Every exchange of an order (me, orders, servers, order, mark), cut before and after it."""
    return [(number, after) for number in range(5) for after in (False, True)]


@dataclass
class WrongClock(EmulatorClock):
    """This machine's time is ``days`` away from the service's."""

    days: float = 0

    def now(self) -> datetime:
        return super().now() + timedelta(days=self.days)


def predicted(harness: ResourceHarness, inputs: dict[str, Any] | None = None, **context: Any) -> Any:
    return SERVER.takeover(harness.context(**context), check(SERVER, inputs or GOOD).inputs)
