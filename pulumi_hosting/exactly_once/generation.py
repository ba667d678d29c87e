"""Which of an order's keys this machine remembers as used, as notes in the private directory.

A help only: without the note (another machine) an order begins with the first key and asks for the next free
one. The note is written once the service has accepted an order, and names the object.
"""

from collections.abc import Collection
from contextlib import suppress
from typing import Any

from pulumi_hosting.api.values import id_number
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.session.request import Request

ORDER_PREFIX = "order:"
"""Begins the id of a server of which only the order is known."""
_KIND = "order"


def first(request: Request, attempt: int, known: Collection[str]) -> int:
    """The first generation whose key may be unused. ``attempt``: a part of the keys; ``known``: ids of
    objects that are this declaration's already, or gone."""
    note = _read(request)
    if note.get("attempt") != attempt or not isinstance(note.get("generation"), int):
        return 0
    return int(note["generation"]) + (bool(note.get("over")) or note.get("id") in known)


def remember(request: Request, attempt: int, generation: int, id: str) -> None:
    """The service accepted an order with the key of this generation."""
    _write(request, {"attempt": attempt, "generation": generation, "id": id, "over": False})


def order_under_way(request: Request, attempt: int) -> int | None:
    """The number of the order of which this machine has not seen what it came to; of ``attempt`` or a later
    one."""
    note = _read(request)
    is_meant = not note.get("over") and int(note.get("attempt") or 0) >= attempt
    return id_number(str(note.get("id")).removeprefix(ORDER_PREFIX)) if is_meant and _is_order(note) else None


def arrived(request: Request, id: str) -> None:
    """The object of the order that the note names is there."""
    note = _read(request)
    if _is_order(note):
        _write(request, {**note, "id": id})


def is_over(request: Request, id: str) -> None:
    """The object is deleted: the key that it was ordered with is of the past."""
    note = _read(request)
    if note.get("id") == id or _is_order(note):
        _write(request, {**note, "over": True})


def _is_order(note: dict[str, Any]) -> bool:
    return str(note.get("id")).startswith(ORDER_PREFIX)


def _read(request: Request) -> dict[str, Any]:
    if not request.client.is_test_key:
        with suppress(local_files.LocalFilesError):
            if local_files.may_have(request.client, _KIND):
                return local_files.read(*_place(request), survives=False, kind=_KIND)
    return {}


def _write(request: Request, note: dict[str, Any]) -> None:
    if not request.client.is_test_key:
        with suppress(local_files.LocalFilesError):
            local_files.write(*_place(request), note, survives=False, kind=_KIND)


def _place(request: Request) -> tuple[local_files.Scope, str]:
    return local_files.account_scope(request.client), f"generation of {request.identity}"
