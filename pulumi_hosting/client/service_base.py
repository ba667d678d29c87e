"""What the generated services are made of."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from pulumi_hosting.api.operations import Operation
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.results import Items, Pages


class Caller(Protocol):
    """The three ways to call an operation; see :class:`~pulumi_hosting.client.client.Client`."""

    def call(
        self,
        operation: Operation,
        *ids: int | str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any: ...

    def pages(
        self, operation: Operation, *ids: int | str, query: Mapping[str, Any] | None = None
    ) -> Pages[Any]: ...

    def items(
        self, operation: Operation, *ids: int | str, query: Mapping[str, Any] | None = None
    ) -> Items[Any]: ...


class Service:
    """A group of operations."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._caller!r}>"


T = TypeVar("T")


def hidden(argument: T) -> T | Secret:
    """A secret argument as a ``Secret``, so that no traceback with local variables shows it."""
    return Secret(argument) if isinstance(argument, str) else argument
