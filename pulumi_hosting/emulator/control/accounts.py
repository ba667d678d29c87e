"""Calls on accounts and their keys and invoices, as staff, billing and the payment gateway make them."""

import ipaddress
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from starlette.routing import Route

from pulumi_hosting.api.operations import PRESETS, SCOPES
from pulumi_hosting.emulator import (
    called_off,
    events,
    fulfilment,
    ledger,
    price_list,
    pricing,
    serializers,
    server_lifecycle,
)
from pulumi_hosting.emulator.control.body_fields import Amount, Balance, Percent, Timestamp, account_of, find
from pulumi_hosting.emulator.control.endpoint import LEFT_OUT, Body, ControlError, endpoint
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.rows import Invoice, Order
from pulumi_hosting.emulator.store import OPENING_BALANCE

# How long an invoice made by staff may stay unpaid before it is overdue.
UNPAID_SECONDS = 3 * 86400

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


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class KeyBody(Body):
    mode: Literal["live", "test"]
    name: str | None = None
    scopes: Annotated[list[str], BeforeValidator(_listed), AfterValidator(_granted)] = Field(
        default_factory=lambda: list(SCOPES)
    )
    ip_allowlist: Annotated[list[str], AfterValidator(_networks)] = Field(default_factory=list)
    not_before: Timestamp = None
    expires_at: Timestamp = None
    rate_per_minute: int | None = Field(None, ge=0, le=1_000_000)
    rate_expensive_per_minute: int | None = Field(None, ge=0, le=1_000_000)
    account_id: int = LEFT_OUT


def create_key(core: Core, body: KeyBody) -> Any:
    key = core.store.new_key(
        account_of(core, body.account_id),
        body.mode,
        core.clock.now(),
        name=body.name if body.name is not None else f"{body.mode} key",
        scopes=body.scopes,
        ip_allowlist=body.ip_allowlist,
        not_before=body.not_before,
        expires_at=body.expires_at,
        rate_per_minute=body.rate_per_minute,
        rate_expensive_per_minute=body.rate_expensive_per_minute,
    )
    events.of_key(core.store, "key.created", key, core.clock.now())
    return {"id": key.id, "key": key.token}


def revoke_key(core: Core, id: int) -> Any:
    key = find(core.store.keys, id, "key")
    if key.revoked_at is None:
        key.revoked_at, key.revoked_reason = core.clock.now(), "revoked by staff"
        events.of_key(core.store, "key.revoked", key, core.clock.now())
    return {"id": key.id}


# --- accounts ---------------------------------------------------------------------------------------------


class NewAccountBody(Body):
    balance: Balance = OPENING_BALANCE
    currency: str = "EUR"


def create_account(core: Core, body: NewAccountBody) -> Any:
    """A second account, with a live and a test key."""
    account = core.store.new_account(core.clock.now(), balance=body.balance, currency=body.currency)
    keys = {key.mode: key.token for key in core.store.keys.values() if key.account_id == account.id}
    return {"account_id": account.id, "live_key": keys["live"], "test_key": keys["test"]}


class AccountBody(Body):
    account_id: int = LEFT_OUT
    balance: Balance = LEFT_OUT
    email_verified: bool = LEFT_OUT
    suspended: bool = LEFT_OUT
    api_enabled_for_account: bool = LEFT_OUT
    group_discount_percent: Percent = LEFT_OUT
    loyalty_discount_percent: Percent = LEFT_OUT


def edit_account(core: Core, body: AccountBody) -> Any:
    """A new balance is an adjustment in the ledger, so that the ledger always adds up."""
    account = account_of(core, body.account_id)
    for name, value in body.given().items():
        if name not in ("account_id", "balance"):
            setattr(account, "api_enabled" if name == "api_enabled_for_account" else name, value)
    if "balance" in body.given() and body.balance != account.balance:
        change = body.balance - account.balance
        ledger.move(
            core.store, account, change, "adjustment", "Adjusted by staff", core.clock.now(), ledger.CONTROL
        )
    return {**serializers.account(account), "balance": str(account.balance)}


# --- invoices ---------------------------------------------------------------------------------------------


class InvoiceBody(Body):
    type: Literal["other", "vds_purchase"] = "other"
    amount: Amount = Decimal("1.00")
    description: str = "Other"
    tariff_id: int = 1
    os: str = "debian-12"
    name: str = "control panel"
    account_id: int = LEFT_OUT


def create_invoice(core: Core, body: InvoiceBody) -> Any:
    """An unpaid invoice from the control panel: ``other`` with an amount, or ``vds_purchase``, which orders a
    server once paid.
    """
    invoice = _server_order(core, body) if body.type == "vds_purchase" else _other_invoice(core, body)
    return serializers.invoice(invoice, core.store)


def _other_invoice(core: Core, body: InvoiceBody) -> Invoice:
    now = core.clock.now()
    account = account_of(core, body.account_id)
    due_at = now + UNPAID_SECONDS
    return ledger.new_invoice(
        core.store, account, "other", body.amount, body.description, now, gateway=None, due_at=due_at
    )


def _server_order(core: Core, body: InvoiceBody) -> Invoice:
    store, now, account = core.store, core.clock.now(), account_of(core, body.account_id)
    tariff = find(store.tariffs, body.tariff_id, "tariff")
    if body.os not in price_list.IMAGES:
        raise ControlError("os: must be an image of the catalog")
    amount = pricing.price(store, account, tariff, months=1).total
    invoice = ledger.new_invoice(
        store,
        account,
        "vds_purchase",
        amount,
        f"Server {body.name}",
        now,
        gateway=None,
        due_at=now + UNPAID_SECONDS,
    )
    store.add(
        Order(
            id=invoice.id,
            account_id=account.id,
            status="invoice_created",
            outcome="active",
            tariff_id=tariff.id,
            server_name=body.name,
            amount=amount,
            created_at=now,
            updated_at=now,
            plan=server_lifecycle.monthly_plan(account.id, body.name, tariff, body.os, now),
        )
    )
    return invoice


def confirm_invoice(core: Core, id: int) -> Any:
    """The payment gateway confirms a top-up or a payment link."""
    invoice: Invoice = find(core.store.invoices, id, "invoice")
    if invoice.status != "not_paid":
        raise ControlError(f"invoice {invoice.id} is {invoice.status}", 409)
    fulfilment.confirm(core.scheduler, invoice, core.clock.now())
    return serializers.invoice(invoice, core.store)


def refund_invoice(core: Core, id: int) -> Any:
    """Staff returns the money of a paid invoice; what it paid for and has not come yet does not come."""
    invoice: Invoice = find(core.store.invoices, id, "invoice")
    if invoice.status != "paid":
        raise ControlError(f"invoice {invoice.id} is {invoice.status}", 409)
    called_off.call_off(core.store, invoice, core.clock.now(), ledger.CONTROL)
    return serializers.invoice(invoice, core.store)


ROUTES = (
    Route("/keys", endpoint(create_key), methods=["POST"]),
    Route("/keys/{id:int}", endpoint(revoke_key), methods=["DELETE"]),
    Route("/accounts", endpoint(create_account), methods=["POST"]),
    Route("/account", endpoint(edit_account), methods=["PATCH"]),
    Route("/invoices", endpoint(create_invoice), methods=["POST"]),
    Route("/invoices/{id:int}/confirm", endpoint(confirm_invoice), methods=["POST"]),
    Route("/invoices/{id:int}/refund", endpoint(refund_invoice), methods=["POST"]),
)
