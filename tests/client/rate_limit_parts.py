"""What the tests of the windows of a key are made of. All times are exact in binary."""

from typing import Any

from pulumi_hosting.api.operations import BY_ID
from pulumi_hosting.client.rate_limit.windows import (
    READ,
    Ticket,
    Window,
)

EPOCH = 1_700_000_000.0
NOW = 1024.0
RESET = int(NOW) + 30
SERVER, SEARCH, ADDRESSES = (
    BY_ID[name] for name in ("get_server", "check_domain_availability", "list_server_ips")
)


def ticket(number: int = 1, priority: int = READ, **facts: Any) -> Ticket:
    return Ticket(number, 7, priority, **{"joined": NOW, **facts})


def sent(number: int = 1, granted: float = NOW, **facts: Any) -> Ticket:
    return ticket(number, granted=granted, taken=True, **facts)


def window(**facts: Any) -> Window:
    """One whose end is known: ten requests, 30 seconds left."""
    return Window(**{"limit": 10, "reset": NOW + 30, "confirmed": True, "parallel": 4, **facts})


def values(some: Any, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(some, name) for name in names)
