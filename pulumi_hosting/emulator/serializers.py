"""Rows as the API shows them. Where dialects name a field differently, both names are sent."""

import json
from typing import Any

from pulumi_hosting.api.models.field_types import EVENT_TYPES
from pulumi_hosting.api.operations import SCOPES
from pulumi_hosting.emulator import dialects, price_list, pricing
from pulumi_hosting.emulator.formats import format_money, format_timestamp
from pulumi_hosting.emulator.rows import (
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
)
from pulumi_hosting.emulator.store import Store

# Relative URLs in bodies have the deployment's own prefix; clients treat them as opaque.
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
        "not_before": format_timestamp(row.not_before),
        "expires_at": format_timestamp(row.expires_at),
        "revoked_at": format_timestamp(row.revoked_at),
        "last_used_at": format_timestamp(row.last_used_at),
        "active": row.revoked_at is None,
        "revoked_reason": row.revoked_reason,
        "last_used_ip": row.last_used_ip,
        "created_at": format_timestamp(row.created_at),
    }


def me(row: Key, store: Store) -> dict[str, Any]:
    return {
        "key": key(row),
        "account_id": row.account_id,
        "account": account(store.accounts[row.account_id]),
        "livemode": not row.is_test,
        "scopes": row.scopes,
        "available_scopes": list(SCOPES),
        "sandbox_enabled": store.service.sandbox_enabled,
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
        "created_at": format_timestamp(row.created_at),
    }


def transaction(row: Movement, currency: str) -> dict[str, Any]:
    return {
        "id": row.id,
        "direction": row.direction,
        "amount": format_money(row.amount),
        "currency": currency,
        "type": row.type,
        "gateway": row.gateway,
        "description": row.description,
        "invoice_id": row.invoice_id,
        "created_at": format_timestamp(row.at),
    }


def ledger_entry(row: Movement) -> dict[str, Any]:
    return {
        "id": row.id,
        "at": format_timestamp(row.at),
        "account_id": row.account_id,
        "amount": format_money(row.amount),
        "direction": row.direction,
        "type": row.type,
        "operation": row.operation,
        "object_id": row.object_id,
        "invoice_id": row.invoice_id,
        "idempotency_key": row.idempotency_key,
        "request_seq": row.request_seq,
    }


def invoice(row: Invoice, store: Store) -> dict[str, Any]:
    item: dict[str, Any] = {"description": row.description, "amount": format_money(row.amount)}
    item["server_id"], item["domain_id"] = row.server_id, row.domain_id
    return {
        "id": row.id,
        "status": row.status,
        "type": dialects.invoice_type(row.type, store.service.dialect),
        "amount": format_money(row.amount),
        "refunded_amount": format_money(row.refunded),
        "currency": store.accounts[row.account_id].currency,
        "description": row.description,
        "gateway": row.gateway,
        "created_at": format_timestamp(row.created_at),
        "due_at": format_timestamp(row.due_at),
        "paid_at": format_timestamp(row.paid_at),
        "cancelled_at": format_timestamp(row.cancelled_at),
        "items": [item],
        "pdf_url": f"{API}/invoices/{row.id}/pdf",
    }


def order(row: Order, store: Store, *, read: bool = False) -> dict[str, Any]:
    """``read``: reads of orders have two fields more than the 202 of an order."""
    view = {
        "invoice_id": row.id,
        "status": row.status,
        "server_id": row.server_id,
        "tariff_id": row.tariff_id,
        "amount": format_money(row.amount),
        "currency": store.accounts[row.account_id].currency,
        "created_at": format_timestamp(row.created_at),
        "updated_at": format_timestamp(row.updated_at),
        "order_url": f"{API}/orders/{row.id}",
        "failure_reason": row.failure_reason,
    }
    if read:
        view |= {
            "server_name": row.server_name,
            "tariff_name": None if row.tariff_id is None else store.tariffs[row.tariff_id].name,
        }
    return view


def location(row: price_list.Location, store: Store) -> dict[str, Any]:
    in_stock = any(t.in_stock and not t.disabled for t in store.tariffs.values() if t.location_id == row.id)
    return {
        "id": row.id,
        "code": row.code,
        "name": row.name,
        "country": row.country,
        "city": row.city,
        "in_stock": in_stock,
    }


def tariff(row: Tariff, store: Store, account: Account) -> dict[str, Any]:
    monthly = pricing.group_price(account, row.price_monthly)
    periods = [
        {
            "months": months,
            "discount_percent": float(percent),
            "total": format_money(pricing.discounted(monthly * months, [("period", percent)]).total),
        }
        for months, percent in pricing.PERIOD_PERCENT.items()
    ]
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "location": location(price_list.LOCATIONS[row.location_id], store),
        "resources": {
            "cpu_cores": row.cpu_cores,
            "ram_mb": row.ram_mb,
            "disk_gb": row.disk_gb,
            "bandwidth_tb": None,
            "port_mbps": 1000,
        },
        "price_monthly": format_money(monthly),
        "list_price_monthly": format_money(row.price_monthly),
        "price_hourly": None if row.price_hourly is None else format_money(row.price_hourly),
        "currency": account.currency,
        "periods": periods,
        "hourly_available": row.price_hourly is not None,
        "in_stock": row.in_stock,
        "non_refundable": row.non_refundable,
        "excluded_os": row.excluded_os,
        "extra_ip_price_monthly": format_money(row.extra_ip_price),
        "max_extra_ips": row.max_extra_ips,
    }


def image(row: price_list.OsImage) -> dict[str, Any]:
    return {
        "slug": row.slug,
        "name": row.name,
        "family": row.family,
        "version": row.version,
        "supports_ssh_keys": row.supports_ssh_keys,
        "min_disk_gb": row.min_disk_gb,
    }


def zone(row: price_list.Zone, currency: str) -> dict[str, Any]:
    return {
        "tld": f".{row.tld}",
        "price_register": format_money(row.price_register),
        "price_renew": format_money(row.price_renew),
        "price_transfer": None if row.price_transfer is None else format_money(row.price_transfer),
        "currency": currency,
        "min_years": row.min_years,
        "max_years": row.max_years,
        "privacy_supported": row.privacy,
        "transfer_supported": row.transfer,
    }


def server(row: Server, store: Store) -> dict[str, Any]:
    addresses = store.of(Address, row.id).values()
    plan = store.tariffs[row.tariff_id]
    primary = next((address.address for address in addresses if address.primary), None)
    account = store.accounts[row.account_id]
    return {
        "id": row.id,
        "name": row.name,
        "hostname": row.hostname,
        "status": row.status,
        "tariff": {"id": plan.id, "name": plan.name},
        "location": price_list.LOCATIONS[plan.location_id].name,
        "os": row.os,
        "primary_ip": primary,
        "ip": primary,
        "ips": [address.address for address in addresses],
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
            "price_monthly": format_money(pricing.group_price(account, plan.price_monthly)),
            "recurring_amount": format_money(pricing.recurring(store, row)),
            "currency": account.currency,
            "next_due_at": format_timestamp(row.next_due_at),
            "auto_renew": row.auto_renew,
            "promo_code": row.promo_code,
            "extra_ips": len(pricing.bought_addresses(store, row)),
        },
        "notes": row.notes,
        "created_at": None if row.synthetic else format_timestamp(row.created_at),
    }


def live_status(row: Server, store: Store, now: float) -> dict[str, Any]:
    """The measurements of the panel; fixed values for sandbox servers."""
    plan = store.tariffs[row.tariff_id]
    running = row.power == "running"
    uptime = 3600 if row.is_sandbox else int(now - row.power_since)
    return {
        "server_id": row.id,
        "power": row.power,
        "cpu_percent": 2.5 if running else 0.0,
        "memory": {"used_mb": plan.ram_mb // 4 if running else 0, "total_mb": plan.ram_mb},
        "disk": {"used_gb": plan.disk_gb * 0.1, "total_gb": plan.disk_gb},
        "uptime_seconds": uptime if running else 0,
        "checked_at": format_timestamp(now),
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
        "price_monthly": format_money(row.price_monthly),
        "added_at": format_timestamp(row.added_at),
    }


def ssh_key(row: SshKey) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "fingerprint": row.fingerprint,
        "type": row.type,
        "public_key": row.public_key,
        "created_at": format_timestamp(row.created_at),
    }


def domain(row: Domain, store: Store) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "tld": f".{row.tld}",
        "status": domain_status(row, store),
        "registered_at": format_timestamp(row.registered_at),
        "expires_at": format_timestamp(row.expires_at),
        "auto_renew": row.auto_renew,
        "privacy": row.privacy,
        "nameservers": row.nameservers,
        "locked": row.locked,
        "blocked": row.blocked,
        "price_renew": format_money(price_list.ZONES[row.tld].price_renew),
        "currency": store.accounts[row.account_id].currency,
        "created_at": format_timestamp(row.created_at),
    }


def domain_status(row: Domain, store: Store) -> str:
    if row.blocked:
        return dialects.BLOCKED_DOMAIN_STATUS(store.service.dialect) or row.status
    return row.status


def subscription(row: Subscription) -> dict[str, Any]:
    return {
        "id": row.id,
        "url": row.url,
        "events": row.events,
        "description": row.description,
        "active": row.active,
        "failures_in_row": row.failures_in_row,
        "disabled_at": format_timestamp(row.disabled_at),
        "disabled_reason": row.disabled_reason,
        "last_delivery_at": format_timestamp(row.last_delivery_at),
        "last_status": row.last_status,
        "created_at": format_timestamp(row.created_at),
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
        "next_attempt_at": format_timestamp(row.next_attempt_at),
        "delivered_at": format_timestamp(row.delivered_at),
        "dead": row.status == "dead",
        "last_status": row.last_status,
        "last_error": row.last_error,
        "last_response": row.last_response,
        "created_at": format_timestamp(row.created_at),
    }
    if payload:
        view["payload"] = json.loads(row.payload)
    return view
