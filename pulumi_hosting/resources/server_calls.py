"""What is asked and sent for one server: shared reads, remarks, calls with their waits, and whether the
server with the id of a state is this resource's (``exactly_once.ownership_check``).
"""

from __future__ import annotations  # models that only a hint names are not loaded

import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import check_server_name, id_number, passes
from pulumi_hosting.client import exceptions
from pulumi_hosting.exactly_once import address_list, order_facts
from pulumi_hosting.exactly_once.idempotency_keys import SCHEME
from pulumi_hosting.exactly_once.ownership_check import Comparison, compare, differences, must_be_own
from pulumi_hosting.exactly_once.ownership_tag import is_tag, split_tag
from pulumi_hosting.exactly_once.server_search import machine, tagged_elsewhere
from pulumi_hosting.resources.server_fields import ServerInputs, ServerState, is_simulated
from pulumi_hosting.session import errors
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS
from pulumi_hosting.session.request import WHOLE_RUN, Request
from pulumi_hosting.session.text import age, as_text, name_in


def remark_on_same_name(request: Request, name: str) -> None:
    """What other declarations have, or what is being ordered, under the name."""
    if request.client.is_test_key or request.name_is_identity:
        return
    ownership = request.ownership
    twins = ownership.name(request.identity, name, request.label)
    for server in order_facts.living_servers(request):
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
    if (order := order_facts.pending_order(request, name)) is not None:
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


def server_lately(request: Request, id: str) -> m.Server | None:
    """The server as it was read at most half a minute ago, else as it is now; None if it is gone."""
    now = request.clock.monotonic()
    known: m.Server | None = request.reads.snapshot.row(
        ORDERS_AND_SERVERS, "list_servers", id, now, order_facts.SNAPSHOT_AGE
    )
    return order_facts.living_server(request, id) if known is None or known.is_gone else known


def server_at_first(request: Request, id: str) -> m.Server | None:
    """The server as this run first saw it. Where the key may not read it, that is found out once."""
    refused = request.shared(("servers refused",), list[exceptions.HostingError], WHOLE_RUN)
    if refused:
        raise refused[0]

    def seen() -> m.Server | None:
        now = request.clock.monotonic()
        known: m.Server | None = request.reads.snapshot.row(
            ORDERS_AND_SERVERS, "list_servers", id, now, WHOLE_RUN
        )
        if known is None:
            known = request.by_id(ORDERS_AND_SERVERS, "list_servers", id, WHOLE_RUN)
            if known is None or known.is_gone:
                return order_facts.server_by_id(request, id)
        return known

    try:
        return request.shared(("server at first", id), seen, WHOLE_RUN)
    except exceptions.HostingError as error:
        refused.append(error)
        raise


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
    except exceptions.HostingError:
        return " with its further addresses"
    named = []
    for ip in further:
        price = "" if ip.price_monthly is None else f", {ip.price_monthly} {currency}".rstrip() + " a month"
        named.append(f"address {ip.address} (id {ip.id}){price}")
    return f" with {' and '.join(named)}" if named else ""


def left_with_server(request: Request, id: str, error: exceptions.HostingError) -> str | None:
    """Which bought addresses and PTR records are there because the deletion of the server failed with
    ``error``, and how an engine that forgot them finds them again. None where there are none.
    """
    named, adopt, words = "its addresses and PTR records", "adopt_id", request.client.words
    # a list of its addresses shows that it is there
    may_be_gone = isinstance(error, exceptions.CallError) and error.outcome_unknown
    # without a connection the list would be waited for once more
    if id_number(id) is not None and not isinstance(error, exceptions.TransportError):
        with suppress(exceptions.HostingError):
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


WITHOUT_ADOPTED = "Next: correct adopt_id, or leave it out to order one"
"""What to do if the adopted server is gone."""


def adoptable_server(request: Request, id: str, declared: Mapping[str, Any]) -> m.Server:
    """The server that ``adopt_id`` names. Raises ``ResourceError`` if there is none, or if it is not what
    is ``declared``.
    """
    server = order_facts.living_server(request, id)
    if server is None:
        raise errors.ResourceError(f"adopt_id: no active server {id} on this account. {WITHOUT_ADOPTED}")
    billing = server.billing
    shown = {**machine(server), "billing_cycle": billing.cycle if billing else None}
    kept = {} if passes(check_server_name, str(declared.get("name"))) else {"name": server.name}
    if differing := differences(shown | kept, declared):  # another name could not be sent
        raise errors.ResourceError(
            f"adopt_id: server {id} is not as declared: {'; '.join(differing)}. Next: declare it as it is"
        )
    return server


def must_have_scope_for(request: Request, inputs: ServerInputs) -> None:
    """Stop before anything is paid if the key may order a server but not set the inputs that an order cannot
    carry.
    """
    late = [name for name in sorted(inputs.late()) if getattr(inputs, name) is not None]
    if late and "servers:manage" not in request.client.key_owner.get().scopes:
        raise errors.ResourceError(
            f"the API key lacks the scope servers:manage, which {' and '.join(late)} need once the server "
            "is there; nothing was ordered. Next: give the key that scope, or leave them out"
        )


def wait_until(request: Request, id: str, done: Callable[[m.Server], bool], seconds: float) -> m.Server:
    """The server once ``done``; after ``seconds`` as it is, since not every deployment shows the change."""
    wait = request.poller(seconds)
    while True:
        server = order_facts.living_server(request, id)
        if server is None:
            raise errors.ResourceError(f"server {id} was deleted meanwhile. Next: run again")
        # A simulated change is accepted and may never show.
        if done(server) or request.client.is_test_key or wait.over:
            return server
        request.info(f"server {id}: waiting for the change to show")
        wait.pause()


def send_reinstall(request: Request, id: str, os: str, body: dict[str, Any]) -> m.ReinstallResult:
    """Install ``os`` on it. Sent once: if the response is lost, a person must look at the server."""
    request.warn(f"server {id} is reinstalled with {os}: its disk is erased")
    try:
        return request.client.servers.reinstall(int(id), os=os, **body)
    except exceptions.CallError as error:
        if not error.outcome_unknown:
            raise
        raise errors.ResourceError(
            f"{error.summary} — whether server {id} was reinstalled is not known. Next: look at it before "
            "running again: a run that still shows the change erases the disk once more"
        ) from None


def delete_server(request: Request, server: m.Server) -> None:
    """Delete it, wait while another operation runs, and report the credit and the addresses that are
    deleted with it.
    """
    id = str(server.id)
    along = addresses_along(request, server)

    def send() -> m.DeleteResult:
        # A new key each time: a stored failure would otherwise block the deletion for seven days.
        key = f"{SCHEME}-delete-{uuid.uuid4().hex}"
        return request.client.servers.delete(server.id, idempotency_key=key)

    try:
        result = request.when_free(f"server {id}", send)
    except exceptions.NotFound:
        request.gone.add(id)
        return
    except exceptions.OperationInProgress:
        raise
    except (
        exceptions.TransportError,
        exceptions.Unavailable,
        exceptions.ServerError,
        exceptions.Conflict,
    ) as error:
        with errors.failing_with(error):
            left = order_facts.living_server(request, id)
        if left is not None:
            raise
        return
    credit = ""
    if result.refunded is not None:
        request.credited(result.refunded, result.currency)
        credit = f"{';' if along else ','} {result.refunded} {result.currency or ''}".rstrip() + " credited"
    if along or credit:
        request.info(f"server {id} deleted{along}{credit}")


_TITLE = "server"


def is_checked(request: Request, state: ServerState | None) -> bool:
    """Whether the state is more than what the account shows now: not where the name is the identity, and
    nothing that a test key simulates need show."""
    return state is not None and not request.name_is_identity and not is_simulated(state.id)


def must_be_this_server(
    request: Request, state: ServerState, server: m.Server, intent: Literal["changed", "deleted"]
) -> Comparison:
    """Raise ``NotOurs`` unless the server may be changed or deleted. If its tag is missing, the order is
    asked which server it made."""
    tag, order = _tag(server), f"server of order {state.invoice_id}"
    shown = {"name": server.name, "created_at": as_text(server.created_at)}
    compared = _compare(request, state, tag, shown)
    invoice_id = id_number(state.invoice_id)
    if compared.decision != "stop" and not is_tag(tag) and invoice_id is not None:
        compared = _compare(request, state, tag, {**shown, order: _made_by(request, invoice_id)})
    must_be_own(request, compared, _TITLE, state.id, tag, intent)
    return compared


def must_be_readable(
    request: Request, state: ServerState, tag: str | None, created_at: str | None
) -> Comparison:
    """Raise ``NotOurs`` if it is another server than the recorded one. Its name is no sign of that: a person
    may have changed it, which is a difference to show."""
    compared = _compare(request, state, tag, {"created_at": created_at})
    if compared.differences:
        text = f"{_TITLE} {state.id}: {compared.why}; the state stays as it was"
        raise errors.NotOurs(state.id, tag, "object", text)
    return compared


def must_stand_nowhere_else(
    request: Request, state: ServerState, intent: Literal["changed", "deleted"]
) -> None:
    """Raise ``NotOurs`` if the server of the state is gone, and another one carries this resource's tag: the
    state is an old one."""
    other = tagged_elsewhere(request, order_facts.SNAPSHOT_AGE)
    if other is not None:
        text = f"{_TITLE} {state.id} is gone, and {described(other)}; nothing was {intent}"
        raise errors.NotOurs(str(other.id), _tag(other), "elsewhere", text)


def described(server: m.Server) -> str:
    """What is known of a server that carries this resource's tag and is in no state."""
    billing = server.billing
    price = ""
    if billing is not None and billing.price_monthly is not None:
        price = f", {billing.price_monthly} {billing.currency or ''}".rstrip() + " a month,"
    return f"{_TITLE} {server.id} ({server.name}){price} carries this resource's ownership tag"


def _compare(
    request: Request, state: ServerState, tag: str | None, shown: Mapping[str, str | None]
) -> Comparison:
    order = f"server of order {state.invoice_id}"
    recorded = {"name": state.name, "created_at": state.created_at, order: state.id}
    return compare(
        request.identity, recorded_tag=state.ownership_tag, shown_tag=tag, recorded=recorded, shown=shown
    )


def _tag(server: m.Server) -> str | None:
    return split_tag(server.notes)[1]


def _made_by(request: Request, invoice_id: int) -> str | None:
    """The id of the server that an order made; None if nothing tells."""
    try:
        made = request.client.orders.get(invoice_id).server_id
    except (exceptions.NotFound, exceptions.Forbidden):
        return None
    return None if made is None else str(made)
