"""Calls on accounts and their keys and invoices, as staff, billing and the payment gateway make them."""

import ipaddress
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pulumi_hosting.api.operations import PRESETS, SCOPES
from pulumi_hosting.emulator import (
    events,
    fulfilment,
    ledger,
    periods,
    pricing,
    serializers,
    server_lifecycle,
)
from pulumi_hosting.emulator.control.endpoint import (
    LEFT_OUT,
    Amount,
    Balance,
    Body,
    ControlError,
    Percent,
    Route,
    Timestamp,
    account_of,
    assign,
    columns_of,
    find,
)
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.formats import format_money
from pulumi_hosting.emulator.rows import AccountRow, InvoiceRow, KeyRow
from pulumi_hosting.emulator.store import OPENING_BALANCE

# --- keys --------------------------------------------------------------------------------------------------


def _granted(scopes: list[str]) -> list[str]:
    """Scopes and the scopes of presets, each once."""
    granted: list[str] = []
    for scope in scopes:
        if scope not in SCOPES and scope not in PRESETS:
            raise ValueError(f"{scope!r} is neither a scope nor a preset ({', '.join(PRESETS)})")
        granted += [name for name in PRESETS.get(scope, (scope,)) if name not in granted]
    return granted


def _networks(networks: list[str]) -> list[str]:
    try:
        for network in networks:
            ipaddress.ip_network(network, strict=False)
    except ValueError as error:
        raise ValueError(f"must hold addresses or networks: {error}") from error
    return networks


_LISTED = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)


class KeyBody(Body):
    mode: Literal["live", "test"]
    name: str | None = None
    scopes: Annotated[list[str], _LISTED, AfterValidator(_granted)] = LEFT_OUT
    ip_allowlist: Annotated[list[str], AfterValidator(_networks)] = LEFT_OUT
    not_before: Timestamp = None
    expires_at: Timestamp = None
    rate_per_minute: int | None = Field(None, ge=0, le=1_000_000)
    rate_expensive_per_minute: int | None = Field(None, ge=0, le=1_000_000)
    account_id: int = LEFT_OUT


def create_key(core: Core, body: KeyBody) -> object:
    columns = body.given() | {"name": body.name if body.name is not None else f"{body.mode} key"}
    account = account_of(core, columns.pop("account_id", None))
    key = core.store.new_key(account, columns.pop("mode"), **columns)
    events.of(core.store, "key.created", key)
    return {"id": key.id, "key": key.token}


def revoke_key(core: Core, id: int) -> object:
    key = find(core.store.keys, id, "key")
    events.revoke(core.store, key, "revoked by staff")
    return {"id": key.id}


# --- accounts ---------------------------------------------------------------------------------------------


class NewAccountBody(Body):
    balance: Balance = OPENING_BALANCE
    currency: str = "EUR"


def create_account(core: Core, body: NewAccountBody) -> object:
    """A second account, with a live and a test key."""
    account = core.store.new_account(balance=body.balance, currency=body.currency)
    keys = {key.mode: key.token for key in core.store.keys.values() if key.account_id == account.id}
    return {"account_id": account.id, "live_key": keys["live"], "test_key": keys["test"]}


AccountBody = columns_of(
    AccountRow,
    account_id=int,
    balance=Balance,
    group_discount_percent=Percent,
    loyalty_discount_percent=Percent,
    referral_percent=Percent,
)


def edit_account(core: Core, body: Body) -> object:
    """A new balance is an adjustment in the ledger, so that the ledger always adds up; a ban revokes keys."""
    given = body.given()
    account = account_of(core, given.get("account_id"))
    assign(account, body, "account_id", "balance")
    for key in core.store.of(KeyRow, account.id).values() if account.banned else ():
        events.revoke(core.store, key, "the account is banned")
    change = given.get("balance", account.balance) - account.balance
    if change:
        ledger.move(core.store, account, change, "adjustment", "Adjusted by staff", ledger.CONTROL)
    return {**serializers.account(account, core.store), "balance": format_money(account.balance)}


# --- invoices ---------------------------------------------------------------------------------------------


class InvoiceBody(Body):
    type: Literal["other", "vds_purchase"] = "other"
    amount: Amount = Decimal("1.00")
    description: str = "Other"
    tariff_id: int = 1
    os: str = "debian-12"
    name: str = "control panel"
    account_id: int = LEFT_OUT


def create_invoice(core: Core, body: InvoiceBody) -> object:
    """An unpaid invoice from the control panel: ``other`` with an amount, or ``vds_purchase``, which orders a
    server once paid.
    """
    store, account = core.store, account_of(core, body.account_id)
    amount, words, plan = body.amount, body.description, None
    if body.type == "vds_purchase":
        tariff = find(store.tariffs, body.tariff_id, "tariff")
        if store.image(body.os) is None:
            raise ControlError("os: must be an image of the catalog")
        amount, words = pricing.price(store, account, tariff, months=1).total, f"Server {body.name}"
        until = periods.months_after(store.now, 1)
        plan = server_lifecycle.plan(account.id, body.name, tariff, body.os, until)
    due_at = store.now + ledger.UNPAID_SECONDS
    invoice = ledger.new_invoice(store, account, body.type, amount, words, gateway=None, due_at=due_at)
    if plan is not None:
        store.add(server_lifecycle.order_of(invoice, plan, "invoice_created", store.now))
    return serializers.invoice(invoice, store)


def _with_status(core: Core, id: int, status: str) -> InvoiceRow:
    """The invoice of that id; 409 if it has another status."""
    invoice = find(core.store.invoices, id, "invoice")
    if invoice.status != status:
        raise ControlError(f"invoice {invoice.id} is {invoice.status}", 409)
    return invoice


def confirm_invoice(core: Core, id: int) -> object:
    """The payment gateway confirms a top-up or a payment link."""
    invoice = _with_status(core, id, "not_paid")
    fulfilment.confirm(core.store, invoice)
    return serializers.invoice(invoice, core.store)


def refund_invoice(core: Core, id: int) -> object:
    """Staff returns the money of a paid invoice; what it paid for and has not come yet does not come."""
    invoice = _with_status(core, id, "paid")
    fulfilment.call_off(core.store, invoice, ledger.CONTROL)
    return serializers.invoice(invoice, core.store)


ROUTES = (
    Route("POST", "/keys", create_key),
    Route("DELETE", "/keys/{id}", revoke_key),
    Route("POST", "/accounts", create_account),
    Route("PATCH", "/account", edit_account, AccountBody),
    Route("POST", "/invoices", create_invoice),
    Route("POST", "/invoices/{id}/confirm", confirm_invoice),
    Route("POST", "/invoices/{id}/refund", refund_invoice),
)
