"""Safety steps that are switched off, to show that a simulation notices."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from pulumi_hosting.exactly_once.address_purchase import AddressPurchase
from pulumi_hosting.exactly_once.server_order import ServerOrder


def _believed(self: ServerOrder, server_id: int, ordered_as: str | None) -> Any:
    """Any server that the service still shows, in whatever state."""
    return self.request.client.servers.get(server_id)


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


MUTANTS: Mapping[str, tuple[Any, str, Any]] = {
    "a dead server is believed": (ServerOrder, "_alive", _believed),
    "addresses of unknown origin are not looked for": (AddressPurchase, "unowned", _always([])),
}
"""What is switched off → where, and by what."""


@contextmanager
def switched_off(name: str) -> Iterator[None]:
    """Within, one safety step is missing."""
    owner, attribute, replacement = MUTANTS[name]
    with patch.object(owner, attribute, replacement):
        yield
