"""Bodies made of columns, and types of the fields that several control calls have."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, Field, PlainValidator, create_model

from pulumi_hosting.emulator.control.endpoint import LEFT_OUT, Body, ControlError
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.formats import format_timestamp, parse_timestamp
from pulumi_hosting.emulator.rows import AccountRow, Editable, Row

R = TypeVar("R", bound=Row)

MAX_AMOUNT = Decimal(10) ** 12


def _amount(least: Decimal, most: Decimal = MAX_AMOUNT) -> Callable[[object], Decimal]:
    def check(value: object) -> Decimal:
        try:
            amount = Decimal(str(value))
        except InvalidOperation as error:
            raise ValueError("must be a decimal number as a string") from error
        if isinstance(value, bool) or not amount.is_finite() or not least <= amount <= most:
            raise ValueError(f"must be a decimal number from {least} to {most}")
        if amount != amount.quantize(Decimal("0.0001")):
            raise ValueError("must not have more than four fraction digits")
        return amount

    return check


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


def one_of(*words: str) -> AfterValidator:
    """One of ``words``."""

    def check(value: str) -> str:
        if value not in words:
            raise ValueError(f"must be one of {', '.join(words)}, given {value!r}")
        return value

    return AfterValidator(check)


Amount = Annotated[Decimal, PlainValidator(_amount(Decimal(0)))]
Balance = Annotated[Decimal, PlainValidator(_amount(-MAX_AMOUNT))]
Percent = Annotated[Decimal, PlainValidator(_amount(Decimal(0), Decimal(100)))]
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
