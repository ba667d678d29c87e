"""Bodies made of columns, and types of the fields that several control calls have."""

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Annotated, Any, TypeVar, get_args

from pydantic import Field, PlainValidator, create_model

from pulumi_hosting.emulator.control.endpoint import LEFT_OUT, Body, ControlError
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.formats import format_timestamp, parse_timestamp
from pulumi_hosting.emulator.rows import AccountRow, Editable, Row

R = TypeVar("R", bound=Row)

MAX_AMOUNT = Decimal(10) ** 12


def _timestamp(value: object) -> float | None:
    if value is None:
        return None
    try:
        moment = (
            float(value)
            if isinstance(value, int | float) and not isinstance(value, bool)
            else parse_timestamp(str(value))
        )
        format_timestamp(moment)
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise ValueError("must be an RFC 3339 timestamp or unix seconds") from error
    return moment


Amount = Annotated[Decimal, Field(ge=0, le=MAX_AMOUNT, decimal_places=4)]
Balance = Annotated[Decimal, Field(ge=-MAX_AMOUNT, le=MAX_AMOUNT, decimal_places=4)]
Percent = Annotated[Decimal, Field(ge=0, le=100, decimal_places=4)]
Timestamp = Annotated[float | None, PlainValidator(_timestamp)]


def columns_of(row: type[Row], **kinds: object) -> type[Body]:
    """A body with the editable columns of ``row``, each of which may be left out.

    ``kinds``: the types of columns that are checked otherwise than their own type says, and of fields that
    are no columns.
    """
    marks = {
        column.name: (column.type, mark)
        for column in fields(row)
        for mark in get_args(column.type)
        if isinstance(mark, Editable)
    }
    known: dict[str, Any] = {name: (kind, LEFT_OUT) for name, kind in kinds.items() if name not in marks}
    for name, (kind, mark) in marks.items():
        known[name] = (kinds.get(name, kind), Field(LEFT_OUT, alias=mark.name))
    return create_model(f"{row.__name__}Body", __base__=Body, **known)


def assign(row: Row, body: Body, *apart: str) -> None:
    """Set the columns that were sent, those in ``apart`` left out."""
    for name, value in body.given().items():
        if name not in apart:
            setattr(row, name, value)


def find(table: Mapping[int, R], id: int, what: str) -> R:
    """A row by its id; 404 if there is none."""
    row = table.get(id)
    if row is None:
        raise ControlError(f"there is no {what} {id}", 404)
    return row


def account_of(core: Core, account_id: int | None) -> AccountRow:
    """The account of that id; without one the first account."""
    if account_id is None:
        return next(iter(core.store.accounts.values()))
    return find(core.store.accounts, account_id, "account")
