"""Types of the fields that several control calls have."""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import AfterValidator, PlainValidator

from pulumi_hosting.emulator.control.endpoint import ControlError
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.formats import format_timestamp, parse_timestamp
from pulumi_hosting.emulator.rows import Account

MAX_AMOUNT = Decimal(10) ** 12


def _amount(least: Decimal, most: Decimal = MAX_AMOUNT) -> Callable[[Any], Decimal]:
    def check(value: Any) -> Decimal:
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


def _timestamp(value: Any) -> float | None:
    if value is None:
        return None
    try:
        moment = (
            float(value)
            if isinstance(value, int | float) and not isinstance(value, bool)
            else parse_timestamp(value)
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


def find(table: Mapping[int, Any], id: int, what: str) -> Any:
    """A row by its id; 404 if there is none."""
    row = table.get(id)
    if row is None:
        raise ControlError(f"there is no {what} {id}", 404)
    return row


def account_of(core: Core, account_id: int | None) -> Account:
    """The account of that id; without one the first account."""
    if account_id is None:
        return next(iter(core.store.accounts.values()))
    account: Account = find(core.store.accounts, account_id, "account")
    return account
