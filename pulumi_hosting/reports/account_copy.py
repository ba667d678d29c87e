"""``import --account-file``: a copy of the account for the emulator's option ``--account``, made with reads
alone. No secret is in it: what a URL may hold of one is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from pulumi_hosting.api import models as m
from pulumi_hosting.api.models.body import Response
from pulumi_hosting.client.exceptions import Forbidden
from pulumi_hosting.client.results import readable
from pulumi_hosting.reports.new_files import must_be_free, write
from pulumi_hosting.reports.report import Asking, Report, not_read
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text, holds_secrets, without_secrets

HEAD = "# Written by `pulumi-hosting import --account-file`, for: pulumi-hosting emulator --account FILE\n"
Entry = dict[str, Any]
"""The columns of an object; sections by name."""


def run(asking: Asking, file: Path) -> Report:
    must_be_free([file])
    with asking() as (request, step):
        content: Entry = {}
        unread: dict[str, str] = {}
        for number, (section, read) in enumerate(_SECTIONS.items(), 1):
            step(number, len(_SECTIONS), f"reading {section}")
            try:
                content[section] = read(request)
            except Forbidden as error:
                unread[section] = str(error)
    _add_what_is_not_sold(content)
    _add_paid_periods(content)
    write({file: HEAD + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)})
    counts = {name: len(entries) for name, entries in content.items() if isinstance(entries, list)}
    masked = [row["url"] for row in content.get("subscriptions", ()) if "…" in row["url"]]
    warnings = [f"{url}: what may be secret in it is left out; a plan shows it as a change" for url in masked]
    warnings += [not_read(name, reason) for name, reason in unread.items()]
    lines = [f"{name}: {count}" for name, count in counts.items() if count]
    lines += ["", f"written: {file}", "", f"Next:\n  pulumi-hosting emulator --account {file}"]
    facts = {"written": [str(file)], "counts": counts, "not_read": unread}
    return Report(facts, lines, warnings, 1 if unread else 0)


def _add_what_is_not_sold(content: Entry) -> None:
    """Tariffs and zones of what the account has that the catalog does not list any more."""
    for section, kind, key in (("servers", "tariffs", "id"), ("domains", "zones", "tld")):
        for entry in content.get(section, ()):
            one, known = entry.pop(kind), content.setdefault(kind, [])
            if one and str(one[key]) not in {str(row[key]).lstrip(".") for row in known}:
                known.append(one)


def _add_paid_periods(content: Entry) -> None:
    """Those of a server's refund to its invoices."""
    periods = {id: one for entry in content.get("servers", ()) for id, one in entry.pop("paid").items()}
    for invoice in content.get("invoices", ()):
        invoice |= periods.get(invoice["id"], {})


def _columns(found: Response, names: str, **other: object) -> Entry:
    """These fields and ``other`` ones, as YAML has them; what is null is left out."""
    given = {name: getattr(found, name) for name in names.split()} | other
    return {name: _plain(value) for name, value in given.items() if value is not None}


def _plain(value: Any) -> object:
    if isinstance(value, tuple | list):
        return [*value]
    return value if isinstance(value, bool | int) else as_text(value)


def _all(request: Request, found: Iterable[Any]) -> Iterator[Any]:
    """What could be read, the oldest first, and a warning for each of the rest."""
    good, damaged = readable(found)
    for one in damaged:
        request.warn(str(one.error()))
    yield from sorted(good, key=lambda row: getattr(row, "id", None) or 0)


def _account(request: Request) -> Entry:
    account, balance = request.client.account.get(), request.client.balance.get()
    group = account.group.discount_percent if account.group else None
    percents = {"group_discount_percent": group, "loyalty_discount_percent": account.loyalty_discount_percent}
    shown = {name: str(value) for name, value in percents.items() if value}
    return {**_columns(account, "id currency", balance=balance.balance), **shown}


def _tariff(found: m.Tariff) -> Entry:
    return _columns(
        found,
        "id name description price_hourly in_stock non_refundable excluded_os max_extra_ips",
        location_id=found.location and found.location.id,
        price_monthly=found.list_price_monthly or found.price_monthly,
        extra_ip_price=found.extra_ip_price_monthly,
    ) | (_columns(found.resources, "cpu_cores ram_mb disk_gb") if found.resources else {})


def _zone(found: m.Zone) -> Entry:
    price = found.price_transfer if found.transfer_supported is not False else None
    privacy = found.privacy_supported
    names = "tld price_register price_renew min_years max_years"
    return _columns(found, names, price_transfer=price, privacy=privacy)


def _server(request: Request, found: m.Server) -> Entry:
    billing, flags = found.billing, found.flags
    ips = [
        _columns(
            ip,
            "id address version primary ptr added_at",
            bought=ip.price_monthly is not None and ip.price_monthly > 0,
            price_monthly=ip.price_monthly,
        )
        for ip in _all(request, request.client.servers.ips.list(found.id))
    ]
    columns = _columns(
        found, "id name hostname status os notes created_at", tariff_id=found.tariff and found.tariff.id
    )
    if billing:
        columns |= _columns(billing, "cycle months next_due_at auto_renew promo_code")
    if flags:
        columns |= _columns(flags, "blocked expired is_test synthetic")
    tariff: Entry | None = None
    if found.tariff:
        tariff = _columns(found.tariff, "id", name=found.tariff.name or "not sold")
        if found.resources:
            tariff |= _columns(found.resources, "disk_gb ram_mb", cpu_cores=found.resources.vcpu)
        tariff |= {"price_monthly": "0.00"} | (_columns(billing, "price_monthly") if billing else {})
        if billing and billing.cycle == "hourly":
            tariff |= _columns(billing, "", price_hourly=billing.recurring_amount)
        tariff["disabled"] = True
    refund = request.client.servers.refund_quote(found.id)
    paid = {item.invoice_id: _columns(item, "period_start period_end") for item in refund.breakdown or ()}
    return {**columns, "ips": ips, "tariffs": tariff, "paid": paid}


def _domain(found: m.Domain) -> Entry:
    price = as_text(found.price_renew)
    tld = found.name.partition(".")[2]
    zone = price and {"tld": tld, "price_register": price, "price_renew": price}
    names = "id name status created_at registered_at expires_at auto_renew privacy nameservers locked blocked"
    return {**_columns(found, names), "zones": zone}


def _subscription(found: m.Subscription) -> Entry:
    url = without_secrets(found.url) if holds_secrets(found.url) else found.url
    return _columns(found, "id events description active created_at", url=url)


def _invoice(found: m.Invoice) -> Entry:
    item = found.items[0] if found.items else None
    shown = _columns(item, "server_id domain_id") if item else {}
    names = "id type status amount description gateway created_at due_at paid_at cancelled_at"
    return {**_columns(found, names), **shown}


def _list(read: Callable[[Request], Iterable[Any]], columns: Callable[[Any], Entry]) -> Any:
    return lambda request: [columns(found) for found in _all(request, read(request))]


_SECTIONS: Mapping[str, Callable[[Request], Any]] = {
    "account": _account,
    "locations": _list(
        lambda request: request.client.catalog.locations(),
        lambda found: _columns(
            found, "id code", **{name: getattr(found, name) or "" for name in ("name", "country", "city")}
        ),
    ),
    "tariffs": _list(lambda request: request.client.catalog.tariffs(), _tariff),
    "images": _list(
        lambda request: request.client.catalog.os_images(),
        lambda found: _columns(
            found, "slug family version supports_ssh_keys min_disk_gb", name=found.name or found.slug
        ),
    ),
    "zones": _list(lambda request: request.client.catalog.zones(), _zone),
    "ssh_keys": _list(
        lambda request: request.client.ssh_keys.list(),
        lambda found: _columns(found, "id name public_key created_at"),
    ),
    "servers": lambda request: [
        _server(request, found) for found in _all(request, request.client.servers.list()) if not found.is_gone
    ],
    "domains": _list(lambda request: request.client.domains.list(), _domain),
    "subscriptions": _list(lambda request: request.client.webhooks.list(), _subscription),
    "invoices": _list(lambda request: request.client.invoices.list(), _invoice),
}
