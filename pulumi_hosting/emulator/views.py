"""Rows as the API shows them. Both spellings of a field are sent wherever they are two names."""

import json
from typing import Any

from pulumi_hosting.api.models import EVENT_TYPES
from pulumi_hosting.api.operations import SCOPES
from pulumi_hosting.emulator import catalog, dialects, money
from pulumi_hosting.emulator.wire import money as text
from pulumi_hosting.emulator.wire import stamp
from pulumi_hosting.emulator.world import (
    Account,
    Address,
    Delivery,
    Domain,
    Invoice,
    Key,
    Movement,
    Order,
    Server,
    SshKey,
    Subscription,
    Tariff,
    World,
)

# Relative addresses inside bodies carry the deployment's own prefix; clients treat them as opaque.
API = "/api/v1"

EVENT_WORDS = dict(
    zip(
        EVENT_TYPES,
        (
            "a server was created",
            "a server was suspended",
            "a server was resumed",
            "a server was deleted",
            "a server was reinstalled",
            "a new invoice",
            "an invoice was paid",
            "an invoice is overdue",
            "the balance is low",
            "a domain became active",
            "a domain expires soon",
            "a domain was renewed",
            "an API key was created",
            "an API key was revoked",
            "a test",
        ),
        strict=True,
    )
)


def key(row: Key) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "hint": row.hint,
        "mode": row.mode,
        "scopes": row.scopes,
        "ip_allowlist": row.ip_allowlist,
        "rate_per_minute": row.rate_per_minute,
        "rate_expensive_per_minute": row.rate_expensive_per_minute,
        "not_before": stamp(row.not_before),
        "expires_at": stamp(row.expires_at),
        "revoked_at": stamp(row.revoked_at),
        "last_used_at": stamp(row.last_used_at),
        "active": row.revoked_at is None,
        "revoked_reason": row.revoked_reason,
        "last_used_ip": row.last_used_ip,
        "created_at": stamp(row.created_at),
    }


def me(row: Key, world: World) -> dict[str, Any]:
    return {
        "key": key(row),
        "account_id": row.account_id,
        "account": account(world.accounts[row.account_id]),
        "livemode": not row.is_test,
        "scopes": row.scopes,
        "available_scopes": list(SCOPES),
        "sandbox_enabled": world.service.sandbox_enabled,
        "api_version": "1",
    }


def account(row: Account) -> dict[str, Any]:
    percent = row.group_discount_percent
    return {
        "id": row.id,
        "login": row.login,
        "email": row.email,
        "name": None,
        "company": None,
        "currency": row.currency,
        "group": {"id": 1, "name": "Partners", "discount_percent": float(percent)} if percent else None,
        "loyalty_discount_percent": float(row.loyalty_discount_percent),
        "email_verified": row.email_verified,
        "two_factor_enabled": row.two_factor_enabled,
        "created_at": stamp(row.created_at),
    }


def transaction(row: Movement, currency: str) -> dict[str, Any]:
    return {
        "id": row.id,
        "direction": row.direction,
        "amount": text(row.amount),
        "currency": currency,
        "type": row.type,
        "gateway": row.gateway,
        "description": row.description,
        "invoice_id": row.invoice_id,
        "created_at": stamp(row.at),
    }


def ledger_entry(row: Movement) -> dict[str, Any]:
    return {
        "id": row.id,
        "at": stamp(row.at),
        "account_id": row.account_id,
        "amount": text(row.amount),
        "direction": row.direction,
        "type": row.type,
        "operation": row.operation,
        "object_id": row.object_id,
        "invoice_id": row.invoice_id,
        "idempotency_key": row.idempotency_key,
        "request_seq": row.request_seq,
    }


def invoice(row: Invoice, world: World) -> dict[str, Any]:
    item: dict[str, Any] = {"description": row.description, "amount": text(row.amount)}
    item["server_id"], item["domain_id"] = row.server_id, row.domain_id
    return {
        "id": row.id,
        "status": row.status,
        "type": dialects.invoice_type(row.type, world.service.dialect),
        "amount": text(row.amount),
        "refunded_amount": text(row.refunded),
        "currency": world.accounts[row.account_id].currency,
        "description": row.description,
        "gateway": row.gateway,
        "created_at": stamp(row.created_at),
        "due_at": stamp(row.due_at),
        "paid_at": stamp(row.paid_at),
        "cancelled_at": stamp(row.cancelled_at),
        "items": [item],
        "pdf_url": f"{API}/invoices/{row.id}/pdf",
    }


def order(row: Order, world: World, *, read: bool = False) -> dict[str, Any]:
    """``read``: the two reads of orders show two names more than the 202 of the order itself."""
    view = {
        "invoice_id": row.id,
        "status": row.status,
        "server_id": row.server_id,
        "tariff_id": row.tariff_id,
        "amount": text(row.amount),
        "currency": world.accounts[row.account_id].currency,
        "created_at": stamp(row.created_at),
        "updated_at": stamp(row.updated_at),
        "order_url": f"{API}/orders/{row.id}",
        "failure_reason": row.failure_reason,
    }
    if read:
        view |= {"server_name": row.server_name, "tariff_name": None if row.tariff_id is None else world.tariffs[row.tariff_id].name}
    return view


def location(row: catalog.Place, world: World) -> dict[str, Any]:
    in_stock = any(t.in_stock and not t.disabled for t in world.tariffs.values() if t.location_id == row.id)
    return {"id": row.id, "code": row.code, "name": row.name, "country": row.country, "city": row.city, "in_stock": in_stock}


def tariff(row: Tariff, world: World, account: Account) -> dict[str, Any]:
    monthly = money.group_price(account, row.price_monthly)
    periods = [
        {
            "months": months,
            "discount_percent": float(percent),
            "total": text(money.discounted(monthly * months, [("period", percent)]).total),
        }
        for months, percent in money.PERIOD_PERCENT.items()
    ]
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "location": location(catalog.LOCATIONS[row.location_id], world),
        "resources": {
            "cpu_cores": row.cpu_cores,
            "ram_mb": row.ram_mb,
            "disk_gb": row.disk_gb,
            "bandwidth_tb": None,
            "port_mbps": 1000,
        },
        "price_monthly": text(monthly),
        "list_price_monthly": text(row.price_monthly),
        "price_hourly": None if row.price_hourly is None else text(row.price_hourly),
        "currency": account.currency,
        "periods": periods,
        "hourly_available": row.price_hourly is not None,
        "in_stock": row.in_stock,
        "non_refundable": row.non_refundable,
        "excluded_os": row.excluded_os,
        "extra_ip_price_monthly": text(row.extra_ip_price),
        "max_extra_ips": row.max_extra_ips,
    }


def image(row: catalog.Image) -> dict[str, Any]:
    return {
        "slug": row.slug,
        "name": row.name,
        "family": row.family,
        "version": row.version,
        "supports_ssh_keys": row.supports_ssh_keys,
        "min_disk_gb": row.min_disk_gb,
    }


def zone(row: catalog.Ending, currency: str) -> dict[str, Any]:
    return {
        "tld": f".{row.tld}",
        "price_register": text(row.price_register),
        "price_renew": text(row.price_renew),
        "price_transfer": None if row.price_transfer is None else text(row.price_transfer),
        "currency": currency,
        "min_years": row.min_years,
        "max_years": row.max_years,
        "privacy_supported": row.privacy,
        "transfer_supported": row.transfer,
    }


def server(row: Server, world: World, *, addresses: list[Address] | None = None) -> dict[str, Any]:
    """``addresses`` stands in for those in the world when the server itself is not part of it (simulated writes)."""
    if addresses is None:
        addresses = list(world.of(Address, row.id).values())
    plan = world.tariffs[row.tariff_id]
    ips = [address.address for address in addresses]
    primary = next((address.address for address in addresses if address.primary), None)
    account = world.accounts[row.account_id]
    return {
        "id": row.id,
        "name": row.name,
        "hostname": row.hostname,
        "status": row.status,
        "tariff": {"id": plan.id, "name": plan.name},
        "location": catalog.LOCATIONS[plan.location_id].name,
        "os": row.os,
        "primary_ip": primary,
        "ip": primary,
        "ips": ips,
        "resources": {
            "vcpu": plan.cpu_cores,
            "cpu_cores": plan.cpu_cores,
            "ram_mb": plan.ram_mb,
            "disk_mb": plan.disk_gb * 1024,
            "disk_gb": plan.disk_gb,
        },
        "flags": {
            "blocked": row.blocked,
            "suspended": row.status == "suspended",
            "expired": row.expired,
            "pending_cancel": row.status == "pending_cancel",
            "protected_until": None,
            "is_test": row.is_test,
            "synthetic": row.synthetic,
        },
        "billing": {
            "cycle": row.cycle,
            "months": row.months,
            "price_monthly": text(money.group_price(account, plan.price_monthly)),
            "recurring_amount": text(money.recurring(world, row)),
            "currency": account.currency,
            "next_due_at": stamp(row.next_due_at),
            "auto_renew": row.auto_renew,
            "promo_code": row.promo_code,
            "extra_ips": sum(address.bought for address in addresses),
        },
        "notes": row.notes,
        "created_at": None if row.synthetic else stamp(row.created_at),
    }


def live_status(row: Server, world: World, now: float) -> dict[str, Any]:
    """What the panel measures; for sandbox servers a fixed snapshot made without one."""
    plan = world.tariffs[row.tariff_id]
    running = row.power == "running"
    uptime = 3600 if row.is_sandbox else int(now - row.power_since)
    return {
        "server_id": row.id,
        "power": row.power,
        "cpu_percent": 2.5 if running else 0.0,
        "memory": {"used_mb": plan.ram_mb // 4 if running else 0, "total_mb": plan.ram_mb},
        "disk": {"used_gb": plan.disk_gb * 0.1, "total_gb": plan.disk_gb},
        "uptime_seconds": uptime if running else 0,
        "checked_at": stamp(now),
    }


def address(row: Address) -> dict[str, Any]:
    return {
        "id": row.id,
        "address": row.address,
        "ip": row.address,
        "version": row.version,
        "primary": row.primary,
        "ptr": row.ptr,
        "gateway": None,
        "netmask": "255.255.255.0" if row.version == 4 else None,
        "price_monthly": text(row.price_monthly),
        "added_at": stamp(row.added_at),
    }


def ssh_key(row: SshKey) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "fingerprint": row.fingerprint,
        "type": row.type,
        "public_key": row.public_key,
        "created_at": stamp(row.created_at),
    }


def domain(row: Domain, world: World) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "tld": f".{row.tld}",
        "status": domain_status(row, world),
        "registered_at": stamp(row.registered_at),
        "expires_at": stamp(row.expires_at),
        "auto_renew": row.auto_renew,
        "privacy": row.privacy,
        "nameservers": row.nameservers,
        "locked": row.locked,
        "blocked": row.blocked,
        "price_renew": text(catalog.ZONES[row.tld].price_renew),
        "currency": world.accounts[row.account_id].currency,
        "created_at": stamp(row.created_at),
    }


def domain_status(row: Domain, world: World) -> str:
    if row.blocked:
        return dialects.BLOCKED_DOMAIN_STATUS(world.service.dialect) or row.status
    return row.status


def subscription(row: Subscription) -> dict[str, Any]:
    return {
        "id": row.id,
        "url": row.url,
        "events": row.events,
        "description": row.description,
        "active": row.active,
        "failures_in_row": row.failures_in_row,
        "disabled_at": stamp(row.disabled_at),
        "disabled_reason": row.disabled_reason,
        "last_delivery_at": stamp(row.last_delivery_at),
        "last_status": row.last_status,
        "created_at": stamp(row.created_at),
    }


def delivery(row: Delivery, *, payload: bool = False) -> dict[str, Any]:
    """``payload``: with the event itself, as the read of one delivery shows it."""
    view = {
        "id": row.id,
        "subscription_id": row.subscription_id,
        "event_id": row.event_id,
        "event_type": row.event_type,
        "status": row.status,
        "attempts": row.attempts,
        "next_attempt_at": stamp(row.next_attempt_at),
        "delivered_at": stamp(row.delivered_at),
        "dead": row.status == "dead",
        "last_status": row.last_status,
        "last_error": row.last_error,
        "last_response": row.last_response,
        "created_at": stamp(row.created_at),
    }
    if payload:
        view["payload"] = json.loads(row.payload)
    return view
