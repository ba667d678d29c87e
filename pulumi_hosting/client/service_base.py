"""What the generated services are made of."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar, cast

from pulumi_hosting.api.models.body import Response
from pulumi_hosting.api.operations import Operation
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import AmbiguousMatch
from pulumi_hosting.client.polling import Poller
from pulumi_hosting.client.results import matching


class Caller(Protocol):
    """The three ways to call an operation, and the wait between calls: of a ``Client``, or awaited of an
    ``AsyncClient``.
    """

    def call(
        self,
        operation: Operation,
        *ids: int | str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        idempotency_key: str | None = None,
    ) -> Any: ...

    def pages(
        self,
        operation: Operation,
        *ids: int | str,
        query: Mapping[str, object] | None = None,
        max_items: int | None = None,
    ) -> Any: ...

    def items(
        self, operation: Operation, *ids: int | str, query: Mapping[str, object] | None = None
    ) -> Any: ...

    def poller(self, seconds: float, longest: float) -> Poller: ...

    def sleep(self, seconds: float) -> Any: ...


class Service:
    """A group of operations."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._caller!r}>"


T = TypeVar("T")
R = TypeVar("R", bound=Response)


def named(items: Iterable[R], name: str, what: str) -> R | None:
    """The one of the items that has this name and still exists; ``None`` if there is none.

    Raises ``AmbiguousMatch`` for several, and ``InvalidResponse`` if one that cannot be read could be it.
    """
    found = [
        item
        for item in matching(items, lambda item: getattr(item, "name", None) == name)
        if not getattr(item, "is_gone", False)
    ]
    if len(found) > 1:
        raise AmbiguousMatch(f"{what} {name!r}", [str(getattr(item, "id", "")) for item in found])
    return found[0] if found else None


def hidden(argument: T) -> T:
    """A secret argument as a ``Secret``, so that no traceback with local variables shows it."""
    return cast("T", Secret(argument)) if isinstance(argument, str) else argument
