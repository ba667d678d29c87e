"""What calls give back when it is not one plain model: short lists, walks over pages, files, and answers without a body.

Everything here carries ``meta`` (:class:`~pulumi_hosting.api.meta.Meta`), as the models do.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, Generic, TypeAlias, TypeVar, overload

from pulumi_hosting.api.errors import InvalidResponse
from pulumi_hosting.api.meta import Meta
from pulumi_hosting.api.models import Page, Response

T = TypeVar("T")
R = TypeVar("R", bound=Response)


class Unset(Enum):
    """The type of :data:`UNSET`."""

    UNSET = "not given"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset.UNSET
"""Not given: the field is not sent. ``None`` is sent as ``null``, which for some fields means "clear"."""

Given: TypeAlias = T | Unset


def given(**arguments: Any) -> dict[str, Any]:
    """Those arguments that were given."""
    return {name: value for name, value in arguments.items() if value is not UNSET}


class Done(Response):
    """The answer of an operation that has none to give: it is done."""


class File(bytes):
    """The bytes of a file, with :attr:`meta`."""

    meta: Meta | None = None

    def __repr__(self) -> str:
        return f"<File of {len(self)} bytes>"


class Document(dict[str, Any]):
    """An open JSON object, with :attr:`meta`."""

    meta: Meta | None = None


class Items(Sequence[R]):
    """A short list, whole and unchangeable."""

    def __init__(self, items: Sequence[R], meta: Meta | None = None) -> None:
        self._items = tuple(items)
        self.meta = meta

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[R, ...]: ...
    def __getitem__(self, index: int | slice) -> R | tuple[R, ...]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Items):
            return self._items == other._items
        return list(self._items) == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as for a list: the models in it are compared by value

    def __repr__(self) -> str:
        return f"Items({list(self._items)!r})"


class Pages(Generic[R]):
    """A list that is read as it is walked: ``for server in client.servers.list()``.

    Every loop over it is a walk of its own, from the first page (or from the ``cursor`` given), one request per page when it is needed.
    The service promises no duplicates and no gaps within a walk; items added meanwhile may be missed. A cursor that comes twice would
    walk in circles, so it is an :class:`~pulumi_hosting.api.errors.InvalidResponse`. Errors of a page are raised where the loop stands.
    """

    def __init__(self, operation: str, fetch: Callable[[str | None], Page[R]], cursor: str | None = None) -> None:
        self._operation = operation
        self._fetch = fetch
        self._cursor = cursor

    def pages(self) -> Iterator[Page[R]]:
        """The pages one by one; each is a model with ``data``, ``next_cursor`` and ``meta``."""
        cursor = self._cursor
        used = {cursor}
        while True:
            page = self._fetch(cursor)
            yield page
            # A deployment may leave the cursor out, or empty, on the last page.
            if not page.next_cursor:
                return
            cursor = page.next_cursor
            if cursor in used:
                request_id = page.meta.request_id if page.meta else None
                raise InvalidResponse(
                    f"{self._operation}: the service gave the same page cursor twice",
                    operation=self._operation,
                    status=page.meta.status if page.meta else None,
                    request_id=request_id,
                )
            used.add(cursor)

    def __iter__(self) -> Iterator[R]:
        for page in self.pages():
            yield from page.data

    def __repr__(self) -> str:
        return f"<Pages of {self._operation}>"
