"""What the account shows about servers: shared reads, and remarks for the user."""

from __future__ import annotations  # models that only a hint names are not loaded

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import id_number
from pulumi_hosting.client.exceptions import (
    CallError,
    HostingError,
    NotFound,
    TransportError,
)
from pulumi_hosting.exactly_once import address_list, catalog_reads
from pulumi_hosting.exactly_once.order_facts import (
    SNAPSHOT_AGE,
    living_servers,
    orders_and_servers,
    pending_order,
)
from pulumi_hosting.exactly_once.ownership_check import differences
from pulumi_hosting.exactly_once.server_search import REPORT_AGE, machine
from pulumi_hosting.resources.fingerprints import fingerprint
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.key_owner import account
from pulumi_hosting.session.reads_by_id import known_by_id, was_read_singly
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import age, as_text, name_in

_RUN = 86400.0  # seconds; longer than a run takes
_DUE_SOON = timedelta(days=7)


def remark_on_same_name(request: Request, name: str) -> None:
    """What other declarations have, or what is being ordered, under the name."""
    if request.client.is_test_key or request.name_is_identity:
        return
    ownership = request.ownership
    twins = ownership.name(request.identity, name, request.label)
    for server in living_servers(request):
        if server.name != name or str(server.id) in request.owned:
            continue  # also under the name it had before a rename
        owner, labels = ownership.owner(str(server.id)), ownership.labels(str(server.id))
        if owner in (None, request.identity) or request.label in labels:
            continue  # also under the identity it had before a rename
        if owner is not None and ownership.named(owner) in (None, name):
            twins |= labels or {owner}
    if twins:
        others = ", ".join(sorted(set(map(name_in, twins))))
        request.warn(
            f"another server of this program is named {name!r} too ({others}): each of them is a server of "
            "its own. Next: give one of them another name, unless that is meant"
        )
    if (order := pending_order(request, name)) is not None:
        when = f", placed {age(request.service_now() - order.created_at)} ago" if order.created_at else ""
        price = f", {order.amount} {order.currency or ''}".rstrip() if order.amount is not None else ""
        request.warn(
            f"a server named {name!r} is being created (order {order.invoice_id}{when}{price}): it is "
            "waited for, and taken over if an interrupted run of this program ordered it; another one is "
            "ordered only if that order fails"
        )


def how_it_ended(id: str, server: m.Server | None, name: str | None, next_due_at: str | None) -> str:
    """How a server has ended, as far as the account shows it. ``server``: what a read of it shows, if
    anything."""
    how = "is gone from the account" if server is None else f"was {server.status}"
    due = f" (last due {next_due_at[:10]})" if next_due_at else ""
    return f"server {id}{f' ({name})' if name else ''} {how}{due}"


def shared_server(request: Request, id: str, max_age: float = REPORT_AGE) -> m.Server | None:
    """The server as a list shows it, at most ``max_age`` seconds old, else as it is; None where nothing shows
    it any more."""
    server: m.Server | None
    if request.name_is_identity:
        server = known_by_id(
            request,
            ORDERS_AND_SERVERS,
            "list_servers",
            id,
            max_age,
            lambda: orders_and_servers(request, max_age),
        )
        if server is None or server.is_gone:
            server = server_by_id(request, id)
            was_read_singly(request, "list_servers", id, server)
        return server
    now, walk = request.clock.monotonic, request.reads.walks["list_servers"]
    server = walk.find(id, lambda: request.client.servers.list().pages(), now, max_age)
    if server is None or server.is_gone:
        server = server_by_id(request, id)
        walk.remember(id, server)
    return server


def server_lately(request: Request, id: str) -> m.Server | None:
    """The server as it was read at most half a minute ago, else as it is now; None if it is gone."""
    now = request.clock.monotonic()
    known: m.Server | None = request.reads.walks["list_servers"].known(
        id, now, SNAPSHOT_AGE
    ) or request.reads.snapshot.row(ORDERS_AND_SERVERS, "list_servers", id, now, SNAPSHOT_AGE)
    return living_server(request, id) if known is None or known.is_gone else known


def server_at_first(request: Request, id: str) -> m.Server | None:
    """The server as this run first saw it. Where the key may not read it, that is found out once."""
    refused = request.shared(("servers refused",), list[HostingError], _RUN)
    if refused:
        raise refused[0]

    def seen() -> m.Server | None:
        now = request.clock.monotonic()
        known: m.Server | None = request.reads.snapshot.row(ORDERS_AND_SERVERS, "list_servers", id, now, _RUN)
        return known or shared_server(request, id, _RUN)

    try:
        return request.shared(("server at first", id), seen, _RUN)
    except HostingError as error:
        refused.append(error)
        raise


def renewal_remarks(request: Request, server: m.Server) -> list[str]:
    """Whether the server will be switched off within days: it is not renewed, or the balance is not
    enough.
    """
    billing, now = server.billing, request.service_now()
    if billing is None or billing.next_due_at is None or billing.next_due_at - now > _DUE_SOON:
        return []
    due = billing.next_due_at
    named = f"server {server.id} ({server.name}) {'was' if due < now else 'is'} due on {due:%Y-%m-%d}"
    if billing.auto_renew is False:
        return [f"{named} and auto-renew is off: it is suspended then. Next: renew it, or set auto_renew"]
    balance = catalog_reads.balance(request)
    paid = [
        other.billing
        for other in request.reads.walks["list_servers"].whole(
            lambda: request.client.servers.list().pages(), request.clock.monotonic, _RUN
        )
        if not other.is_gone and other.billing and other.billing.auto_renew and other.billing.next_due_at
    ]
    needed = sum(
        (
            bill.recurring_amount or Decimal(0)
            for bill in paid
            if bill.next_due_at and bill.next_due_at <= due
        ),
        Decimal(0),
    )
    if balance is None or balance.balance >= needed:
        return []
    return [
        f"{named}, and the balance of {balance.balance} {balance.currency} does not cover the {needed} "
        f"{balance.currency} that are due by then: it is suspended if they are not paid. Next: top up "
        f"{needed - balance.balance} {balance.currency}"
    ]


def known_keys(request: Request, wanted: Iterable[str]) -> dict[str, m.SshKey]:
    """The keys of the account by id; a list from before one of the wanted keys was added is not believed."""
    known: dict[str, m.SshKey] = {}
    for fresh in (False, True):
        if fresh:
            request.reads.forget("ssh_keys")
        known = {str(key.id): key for key in catalog_reads.ssh_keys(request)}
        if known.keys() >= set(wanted):
            break
    return known


def installed_keys(request: Request, ids: list[str] | None) -> list[m.SshKey]:
    """The keys with these ids; none if there are no ids, or not all of them can be told."""
    if not ids:
        return []
    try:
        known = known_keys(request, ids)
        return [known[id] for id in ids]
    except (HostingError, KeyError):
        return []


def added(keys: list[m.SshKey]) -> dict[str, str | None]:
    """Id → when the key was added to the account."""
    return {str(key.id): as_text(key.created_at) for key in keys}


def fingerprints(keys: list[m.SshKey]) -> list[str] | None:
    """The fingerprints of these keys; None if there are none, or one cannot be read."""
    try:
        return sorted({key.fingerprint or fingerprint(key.public_key) for key in keys}) or None
    except ValueError:
        return None


def fingerprints_of(request: Request, ids: list[str] | None) -> list[str] | None:
    """The fingerprints of the keys with these ids; None if not all of them can be told."""
    return fingerprints(installed_keys(request, ids))


def purchase_of(request: Request, server: m.Server) -> m.Invoice | None:
    """The invoice of the order of a server, if it is among the latest purchases and the key may see them; one
    request, shared.
    """

    def fetch() -> dict[int, m.Invoice]:
        try:
            latest = islice(request.client.invoices.list(type="vds_purchase", limit=100), 100)
            return {
                item.server_id: invoice
                for invoice in latest
                for item in invoice.items or ()
                if item.server_id is not None
            }
        except HostingError:
            return {}

    return request.shared(("purchases",), fetch).get(server.id)


def living_server(request: Request, id: str) -> m.Server | None:
    """The server, unless it is gone."""
    server = server_by_id(request, id)
    return None if server is None or server.is_gone else server


def server_by_id(request: Request, id: str) -> m.Server | None:
    """The server; None where nothing shows it any more."""
    try:
        return request.client.servers.get(int(id))
    except NotFound:
        return None


def addresses_along(request: Request, server: m.Server) -> str:
    """The bought addresses that are deleted with ``server``, as a part of a sentence; empty where it
    shows its primary ones alone.
    """
    if sum(":" not in address for address in server.ips or ()) < 2:
        return ""
    currency = (server.billing.currency if server.billing else None) or ""
    try:
        further = [
            ip
            for ip in request.client.servers.ips.list(int(server.id))
            if not ip.primary and ip.ip_version == 4
        ]
    except HostingError:
        return " with its further addresses"
    named = [
        f"address {ip.address} (id {ip.id})"
        + ("" if ip.price_monthly is None else f", {ip.price_monthly} {currency}".rstrip() + " a month")
        for ip in further
    ]
    return f" with {' and '.join(named)}" if named else ""


def left_with_server(request: Request, id: str, error: HostingError) -> str | None:
    """Which bought addresses and PTR records are there because the deletion of the server failed with
    ``error``, and how an engine that forgot them finds them again. None where there are none.
    """
    named, adopt, words = "its addresses and PTR records", "adopt_id", request.client.words
    # a list of its addresses shows that it is there
    may_be_gone = isinstance(error, CallError) and error.outcome_unknown
    # without a connection the list would be waited for once more
    if id_number(id) is not None and not isinstance(error, TransportError):
        with suppress(HostingError):
            request.clock.raise_if_cancelled()  # then nothing more is asked
            found = address_list.of_server(request, id, fresh=True)
            bought = [ip for ip in found or () if not ip.primary and ip.ip_version == 4]
            parts = [f"address {ip.address} (id {id}/{ip.id})" for ip in bought]
            parts += [f"PTR record {ip.ptr} of {ip.address}" for ip in found or () if ip.ptr]
            if found is not None and not parts:
                return None
            may_be_gone = may_be_gone and found is None
            named = ", ".join(parts) or named
            adopt = " or ".join(f'adopt_id="{ip.address}"' for ip in bought) or adopt
    if may_be_gone:
        return (
            f"whether server {id} was deleted is not known, and with it what goes with it: {named}. If it "
            f"was declared with server=, it has left the state. Next: {words.read}, which shows whether the "
            f"server is there; if it is, {words.apply} finds what goes with it again and pays nothing (an "
            f"address bought more than seven days ago: with {adopt}), and {words.remove} deletes it with the "
            "server"
        )
    return (
        f"server {id} was not deleted, and neither was what goes with it: {named}. If it was declared with "
        f"server=, it has left the state, though it was reported as deleted. Next: {words.apply} finds it "
        f"again and pays nothing (an address bought more than seven days ago: with {adopt}), or "
        f"{words.remove} deletes it with the server"
    )


def adoptable_server(request: Request, id: str, declared: Mapping[str, Any]) -> m.Server:
    """The server that ``adopt_id`` names. Raises ``ResourceError`` if there is none, or if it is not what
    is ``declared``.
    """
    server = living_server(request, id)
    if server is None:
        raise ResourceError(
            f"adopt_id: no active server {id} on this account. Next: correct adopt_id, or "
            "leave it out to order one"
        )
    billing = server.billing
    shown = {**machine(server), "billing_cycle": billing.cycle if billing else None}
    if differing := differences(shown, declared):
        raise ResourceError(
            f"adopt_id: server {id} is not the declared one: {'; '.join(differing)}. Next: declare what it is"
        )
    return server


def must_have_scope_for(request: Request, late: Sequence[str]) -> None:
    """Stop before anything is paid if the key may order a server but not set ``late``, the inputs that an
    order cannot carry.
    """
    if late and "servers:manage" not in account(request.client).scopes:
        raise ResourceError(
            f"the API key lacks the scope servers:manage, which {' and '.join(late)} need once the server "
            "is there; nothing was ordered. Next: give the key that scope, or leave them out"
        )
