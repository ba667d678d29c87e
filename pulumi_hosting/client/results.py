"""What calls give back when it is not one plain model: short lists, walks over pages, files, and answers
without a body.

Everything here carries ``meta`` (:class:`~pulumi_hosting.api.metadata.Meta`), as the models do.
"""

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NoReturn, Self, TypeVar, overload
from urllib.parse import unquote

from pulumi_hosting.api.metadata import Meta
from pulumi_hosting.api.models.body import Page, Response
from pulumi_hosting.api.secrets import clean_text
from pulumi_hosting.client.exceptions import InvalidInput, InvalidResponse
from pulumi_hosting.client.unset import UNSET as UNSET
from pulumi_hosting.client.unset import Given as Given
from pulumi_hosting.client.unset import given as given

R = TypeVar("R", bound=Response)
P = TypeVar("P")


@dataclass(frozen=True, slots=True, repr=False)
class Damaged:
    """An item of a list that could not be read: in the place of the object, which must not be taken for
    absent.

    ``known_id`` is the object's id if that could be read, else ``None``; ``reason`` says what is wrong
    with it. To skip such items, ask ``isinstance(item, Damaged)``, or use :func:`readable`. Any other use, of
    ``id`` if it is unknown too, raises ``InvalidResponse``: a list that holds one proves no absence.
    """

    operation: str = field(compare=False)
    known_id: int | None
    reason: str
    request_id: str | None = field(default=None, compare=False)

    @property
    def id(self) -> int:
        """The object's id. Raises ``InvalidResponse`` if it could not be read."""
        if self.known_id is None:
            raise self.error()
        return self.known_id

    def error(self) -> InvalidResponse:
        """What is raised for it."""
        what = f"item {self.known_id}" if self.known_id is not None else "an item"
        return InvalidResponse(
            f"{what} of the list could not be read: {self.reason}",
            operation=self.operation,
            request_id=self.request_id,
            partial={} if self.known_id is None else {"id": self.known_id},
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.error()

    def __repr__(self) -> str:
        return f"<Damaged item {self.known_id} of {self.operation}: {self.reason}>"


def whole(items: Iterable[R]) -> list[R]:
    """The items as a list, if all of them could be read: use it before concluding that something is absent.

    Raises ``InvalidResponse`` for the first damaged one.
    """
    found = list(items)
    for item in found:
        if isinstance(item, Damaged):
            raise item.error()
    return found


def readable(items: Iterable[R]) -> tuple[list[R], list[Damaged]]:
    """The items that could be read, and the damaged ones."""
    found: list[Any] = list(items)
    return [item for item in found if not isinstance(item, Damaged)], [
        item for item in found if isinstance(item, Damaged)
    ]


def matching(items: Iterable[R], matches: Callable[[R], bool]) -> list[R]:
    """The items that match. If none does and one is damaged, which could be the one: ``InvalidResponse``,
    never an empty list.
    """
    good, damaged = readable(items)
    found = [item for item in good if matches(item)]
    if not found and damaged:
        raise damaged[0].error()
    return found


class Done(Response):
    """The answer of an operation that has none to give: it is done."""


class File(bytes):
    """The bytes of a file, with its :attr:`name` as the service gives it, and :attr:`meta`."""

    name: str
    """A file name without directories, such as ``invoice-812.pdf``."""
    meta: Meta | None = None

    def __new__(cls, content: bytes, name: str = "document.pdf") -> Self:
        file = super().__new__(cls, content)
        file.name = name
        return file

    def __getnewargs__(self) -> tuple[bytes, str]:  # type: ignore[override]  # of bytes: without a name
        return bytes(self), self.name

    def save(self, path: str | os.PathLike[str] = ".", *, overwrite: bool = False) -> Path:
        """Write the file to ``path``, and return where it is. A directory gets a file of its :attr:`name`.

        Raises ``FileExistsError`` if a file is there already, unless ``overwrite``; ``OSError`` if it
        cannot be written.
        """
        place = Path(path)
        place = place / self.name if place.is_dir() else place
        with place.open("wb" if overwrite else "xb") as opened:
            opened.write(self)
        return place

    def __repr__(self) -> str:
        return f"<File of {len(self)} bytes>"


_EXTENDED_NAME = re.compile(r"filename\*\s*=\s*UTF-8'[^']*'([^;\s]+)", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"""filename\s*=\s*(?:"([^"]*)"|([^;\s"]+))""", re.IGNORECASE)


def file_name(disposition: str) -> str:
    """The name in a ``Content-Disposition`` header, made safe: no directories, no hidden file, no characters
    that a file system or a terminal reads as something else.
    """
    found = _EXTENDED_NAME.search(disposition)
    if found is not None:
        name = unquote(found[1], errors="replace")
    else:
        plain = _PLAIN_NAME.search(disposition)
        name = (plain[1] or plain[2] or "") if plain is not None else ""
    name = re.sub(r"[^\w.\- ]", "_", clean_text(re.split(r"[/\\]", name)[-1], 120)).strip(" .")
    return name or "document.pdf"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RawResponse:
    """The answer to :meth:`Client.request`: ``data`` is its parsed JSON (``None`` without a body, ``File``
    for a PDF), ``meta`` how it was obtained.

    Secrets in ``data`` are ``Secret``, and its objects do not print their values.
    """

    data: Any
    meta: Meta

    def __repr__(self) -> str:
        return f"<RawResponse {self.meta.status} to {self.meta.operation}>"


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

    def first(self) -> R | None:
        """The first item, ``None`` of an empty list."""
        return self._items[0] if self._items else None

    def all(self) -> list[R]:
        """The items as a list. Raises ``InvalidResponse`` if one of them could not be read."""
        return whole(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Items):
            return self._items == other._items
        return list(self._items) == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as for a list: the models in it are compared by value

    def __repr__(self) -> str:
        return f"Items({list(self._items)!r})"


class _Paged(Generic[P]):
    """A list with cursors. ``fetch`` asks for the page at a cursor."""

    def __init__(
        self,
        operation: str,
        fetch: Callable[[str | None], P],
        cursor: str | None = None,
        max_items: int | None = None,
    ) -> None:
        self._operation, self._fetch, self._cursor = operation, fetch, cursor
        self._max_items = checked_maximum(max_items)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"whether {self._operation} has items is not known before it is asked; use first(), which is "
            "None if it has none"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._operation}>"


class Pages(_Paged["Page[R]"], Generic[R]):
    """A list that is read as it is walked: ``for server in client.servers.list()``.

    Every loop over it is a walk of its own, from the first page (or from the ``cursor`` given), one request
    per page when it is needed. An item that could not be read is handed out as :class:`Damaged`.

    The service promises no duplicates and no gaps within a walk; items added meanwhile may be missed. A
    cursor that comes twice would walk in circles, so it is an :class:`InvalidResponse`. Errors of a page are
    raised where the loop stands. With ``max_items`` a loop ends after so many; ``pages()`` are those of the
    service, whatever it is.
    """

    def pages(self) -> "Iterator[Page[R]]":
        """The pages one by one; each is a model with ``data``, ``next_cursor`` and ``meta``."""
        cursor, used = self._cursor, {self._cursor}
        while True:
            page = self._fetch(cursor)
            yield page
            if not (cursor := _next_cursor(self._operation, page, used)):
                return

    def __iter__(self) -> Iterator[R]:
        return islice((item for page in self.pages() for item in page.data), self._max_items)

    def __getitem__(self, index: int) -> R:
        """The item at ``index`` from the start, one or more requests; ``IndexError`` if the list is
        shorter.
        """
        if index < 0:
            raise IndexError(
                f"{self._operation}: a list that is read as it is walked has no end to "
                "count from; use list(...)"
            )
        for place, item in enumerate(self):
            if place == index:
                return item
        raise IndexError(f"{self._operation}: the list has no item {index}")

    def first(self) -> R | None:
        """The first item, ``None`` of an empty list; one request. Whether there is any:
        ``client.servers.list().first() is not None``.
        """
        return next(iter(self), None)

    def all(self) -> list[R]:
        """All items as a list, all pages read. Raises ``InvalidResponse`` if one of them could not be
        read; ``list(...)`` has it as :class:`Damaged` instead.
        """
        return whole(self)

    def __len__(self) -> int:
        raise TypeError(
            f"how many items {self._operation} has is not known before all are read; use len(list(...))"
        )


class AsyncPages(_Paged[Awaitable["Page[R]"]], Generic[R]):
    """A list of an ``AsyncClient``, read as it is walked: ``async for server in client.servers.list()``, or
    whole: ``await client.servers.list()``.

    Walks, damaged items and errors are those of :class:`Pages`.
    """

    async def pages(self) -> "AsyncIterator[Page[R]]":
        """The pages one by one; each is a model with ``data``, ``next_cursor`` and ``meta``."""
        cursor, used = self._cursor, {self._cursor}
        while True:
            page = await self._fetch(cursor)
            yield page
            if not (cursor := _next_cursor(self._operation, page, used)):
                return

    async def __aiter__(self) -> AsyncIterator[R]:
        count = 0
        async for page in self.pages():
            for item in page.data:
                count += 1
                yield item
                if count == self._max_items:
                    return

    def __await__(self) -> Generator[Any, None, list[R]]:
        return self._list().__await__()

    async def _list(self) -> list[R]:
        return [item async for item in self]

    async def first(self) -> R | None:
        """The first item, ``None`` of an empty list; one request."""
        async for item in self:
            return item
        return None

    async def all(self) -> list[R]:
        """All items as a list. Raises ``InvalidResponse`` if one of them could not be read; ``await`` of the
        list itself has it as :class:`Damaged` instead.
        """
        return whole(await self)


def checked_maximum(max_items: int | None) -> int | None:
    """``max_items`` of a list. Raises ``InvalidInput`` if it is no whole number from 1."""
    if max_items is None or (type(max_items) is int and max_items > 0):
        return max_items
    raise InvalidInput({"max_items": "must be a whole number from 1"})


def _next_cursor(operation: str, page: "Page[R]", used: set[str | None]) -> str | None:
    """The cursor of the page after this one, which joins those that were ``used``. A deployment may leave it
    out, or empty, on the last page."""
    if page.next_cursor and page.next_cursor in used:
        raise InvalidResponse(
            "the service gave the same page cursor twice",
            operation=operation,
            status=page.meta.status if page.meta else None,
            request_id=page.meta.request_id if page.meta else None,
        )
    used.add(page.next_cursor)
    return page.next_cursor
