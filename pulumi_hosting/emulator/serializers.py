"""Rows as the API shows them: what the API's models and the names of columns do not say."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import SCOPES
from pulumi_hosting.emulator import dialects, pricing
from pulumi_hosting.emulator import rows as r
from pulumi_hosting.emulator.formats import View, format_money, shown_as
from pulumi_hosting.emulator.store import Store

# Relative URLs in bodies have the deployment's own prefix; clients treat them as opaque.
API = "/api/v1"


def key(row: r.KeyRow, store: Store) -> View:
    return shown_as(m.ApiKey, row, active=row.revoked_at is None)


def me(row: r.KeyRow, store: Store) -> View:
    view = shown_as(
        m.Me,
        row,
        key=key(row, store),
        livemode=not row.is_test,
        available_scopes=list(SCOPES),
        sandbox_enabled=store.service.sandbox_enabled,
        api_version="1",
    )
    # no fields of the document; from the second one clients know an account that is not the one before
    return view | {"account": account(store.accounts[row.account_id], store), "emulator_start": store.start}


def account(row: r.AccountRow, store: Store) -> View:
    percent = row.group_discount_percent
    group = shown_as(m.Group, id=1, name="Partners", discount_percent=percent) if percent else None
    return shown_as(m.Account, row, group=group)


def transaction(row: r.MovementRow, store: Store) -> View:
    currency = store.accounts[row.account_id].currency
    return shown_as(m.Transaction, row, currency=currency, created_at=row.at)


def invoice(row: r.InvoiceRow, store: Store) -> View:
    view = shown_as(
        m.Invoice,
        row,
        type=dialects.INVOICE_TYPES(store.service.dialect).get(row.type, row.type),
        currency=store.accounts[row.account_id].currency,
        items=[shown_as(m.InvoiceItem, row)],
        pdf_url=f"{API}/invoices/{row.id}/pdf",
    )
    return view | {"refunded_amount": format_money(row.refunded)}  # no field of the document


def order(row: r.OrderRow, store: Store) -> View:
    return shown_as(
        m.Order,
        row,
        invoice_id=row.id,
        currency=store.accounts[row.account_id].currency,
        order_url=f"{API}/orders/{row.id}",
        tariff_name=None if row.tariff_id is None else store.tariffs[row.tariff_id].name,
    )


def location(row: r.LocationRow, store: Store) -> View:
    in_stock = any(t.in_stock and not t.disabled for t in store.tariffs.values() if t.location_id == row.id)
    return shown_as(m.Location, row, in_stock=in_stock)


def tariff(row: r.TariffRow, store: Store, account: r.AccountRow) -> View:
    monthly = pricing.group_price(account, row.price_monthly)
    return shown_as(
        m.Tariff,
        row,
        location=location(store.locations[row.location_id], store),
        resources=shown_as(m.CatalogResources, row, port_mbps=1000),
        price_monthly=monthly,
        list_price_monthly=row.price_monthly,
        currency=account.currency,
        periods=[
            shown_as(
                m.PeriodPrice,
                months=months,
                discount_percent=percent,
                total=pricing.discounted(monthly * months, (("period", percent),)).total,
            )
            for months, percent in pricing.PERIOD_PERCENT.items()
        ],
        hourly_available=row.price_hourly is not None,
        extra_ip_price_monthly=row.extra_ip_price,
    )


def zone(row: r.ZoneRow, currency: str) -> View:
    return shown_as(
        m.Zone,
        row,
        tld=f".{row.tld}",
        currency=currency,
        privacy_supported=row.privacy,
        transfer_supported=row.transfer,
    )


@lru_cache(256)
def _resources(cores: int, ram_mb: int, disk_gb: int) -> View:
    """What every server of a size has: one object in all answers, never changed."""
    return shown_as(m.ServerResources, vcpu=cores, ram_mb=ram_mb, disk_mb=disk_gb * 1024, disk_gb=disk_gb)


def server(row: r.ServerRow, store: Store) -> View:
    addresses = store.of(r.AddressRow, row.id).values()
    plan = store.tariffs[row.tariff_id]
    account = store.accounts[row.account_id]
    return shown_as(
        m.Server,
        row,
        tariff={"id": plan.id, "name": plan.name},
        location=store.locations[plan.location_id].name,
        primary_ip=next((address.address for address in addresses if address.primary), None),
        ips=[address.address for address in addresses],
        resources=_resources(plan.cpu_cores, plan.ram_mb, plan.disk_gb),
        flags=shown_as(
            m.ServerFlags,
            row,
            suspended=row.status == "suspended",
            pending_cancel=row.is_leaving,
        ),
        billing=shown_as(
            m.ServerBilling,
            row,
            price_monthly=pricing.group_price(account, plan.price_monthly),
            recurring_amount=pricing.recurring(store, row),
            currency=account.currency,
            extra_ips=sum([address.bought for address in addresses]),
        ),
        created_at=None if row.synthetic else row.created_at,
    )


def live_status(row: r.ServerRow, store: Store) -> View:
    """The measurements of the panel; fixed values for sandbox servers."""
    plan = store.tariffs[row.tariff_id]
    running = row.power == "running"
    uptime = 3600 if row.is_sandbox else int(store.now - row.power_since)
    return shown_as(
        m.ServerLiveStatus,
        row,
        server_id=row.id,
        cpu_percent=2.5 if running else 0.0,
        memory={"used_mb": plan.ram_mb // 4 if running else 0, "total_mb": plan.ram_mb},
        disk={"used_gb": plan.disk_gb * 0.1, "total_gb": plan.disk_gb},
        uptime_seconds=uptime if running else 0,
        checked_at=store.now,
    )


def address(row: r.AddressRow, store: Store) -> View:
    return shown_as(m.Ip, row, netmask="255.255.255.0" if row.version == 4 else None)


def domain(row: r.DomainRow, store: Store) -> View:
    return shown_as(
        m.Domain,
        row,
        tld=f".{row.tld}",
        status=domain_status(row, store),
        price_renew=store.zone_of(row).price_renew,
        currency=store.accounts[row.account_id].currency,
    )


def domain_status(row: r.DomainRow, store: Store) -> str:
    if row.blocked:
        return dialects.BLOCKED_DOMAIN_STATUS(store.service.dialect) or row.status
    return row.status


def delivery(row: r.DeliveryRow, store: Store, *, read: bool = False) -> View:
    """``read``: the read of one delivery shows the event itself in every dialect."""
    view = shown_as(m.Delivery, row, dead=row.status == "dead", payload=json.loads(row.payload))
    if not (read or dialects.DELIVERY_PAYLOAD(store.service.dialect)):
        del view["payload"]
    return view


_VIEWS: Mapping[str, Callable[[Any, Store], View]] = {
    r.AccountRow.kind: account,
    r.KeyRow.kind: key,
    r.ServerRow.kind: server,
    r.AddressRow.kind: address,
    r.InvoiceRow.kind: invoice,
    r.MovementRow.kind: transaction,
    r.OrderRow.kind: order,
    r.SshKeyRow.kind: lambda row, store: shown_as(m.SshKey, row),
    r.DomainRow.kind: domain,
    r.SubscriptionRow.kind: lambda row, store: shown_as(m.Subscription, row),
    r.DeliveryRow.kind: delivery,
    r.LocationRow.kind: location,
    r.ImageRow.kind: lambda row, store: shown_as(m.OsImage, row),
    r.ZoneRow.kind: lambda row, store: zone(row, next(iter(store.accounts.values())).currency),
    r.TariffRow.kind: lambda row, store: tariff(row, store, next(iter(store.accounts.values()))),
}


def view_of(row: r.Row, store: Store) -> View:
    """A row as the API shows it; tariffs and zones with the prices of the first account."""
    return _VIEWS[row.kind](row, store)
