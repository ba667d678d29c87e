"""Whether the server with the id of a state is this resource's: see ``exactly_once.ownership_check``."""

from typing import Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import id_number
from pulumi_hosting.client.exceptions import Forbidden, NotFound
from pulumi_hosting.exactly_once.order_facts import SNAPSHOT_AGE
from pulumi_hosting.exactly_once.ownership_check import Comparison, compare, must_be_own
from pulumi_hosting.exactly_once.ownership_tag import is_tag, split_tag
from pulumi_hosting.exactly_once.server_search import tagged_elsewhere
from pulumi_hosting.resources.server_fields import ServerState, is_simulated
from pulumi_hosting.session.errors import NotOurs
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

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
    compared = _compare(request, state, server, name=True)
    invoice_id = id_number(state.invoice_id)
    if compared.decision != "stop" and not is_tag(_tag(server)) and invoice_id is not None:
        compared = _compare(request, state, server, name=True, made=_made_by(request, invoice_id))
    must_be_own(request, compared, _TITLE, state.id, _tag(server), intent)
    return compared


def must_be_readable(request: Request, state: ServerState, server: m.Server) -> Comparison:
    """Raise ``NotOurs`` if it is another server than the recorded one. Its name is no sign of that: a person
    may have changed it, which is a difference to show."""
    compared = _compare(request, state, server)
    if compared.differences:
        text = f"{_TITLE} {state.id}: {compared.why}; the state stays as it was"
        raise NotOurs(state.id, _tag(server), "object", text)
    return compared


def must_stand_nowhere_else(
    request: Request, state: ServerState, intent: Literal["changed", "deleted"]
) -> None:
    """Raise ``NotOurs`` if the server of the state is gone, and another one carries this resource's tag: the
    state is an old one."""
    other = tagged_elsewhere(request, SNAPSHOT_AGE)
    if other is not None:
        text = f"{_TITLE} {state.id} is gone, and {described(other)}; nothing was {intent}"
        raise NotOurs(str(other.id), _tag(other), "elsewhere", text)


def described(server: m.Server) -> str:
    """What is known of a server that carries this resource's tag and is in no state."""
    billing = server.billing
    price = ""
    if billing is not None and billing.price_monthly is not None:
        price = f", {billing.price_monthly} {billing.currency or ''}".rstrip() + " a month,"
    return f"{_TITLE} {server.id} ({server.name}){price} carries this resource's ownership tag"


def _compare(
    request: Request, state: ServerState, server: m.Server, *, name: bool = False, made: str | None = None
) -> Comparison:
    order = f"server of order {state.invoice_id}"
    return compare(
        request.identity,
        recorded_tag=state.ownership_tag,
        shown_tag=_tag(server),
        recorded={
            "name": state.name if name else None,
            "created_at": state.created_at,
            order: state.id,
        },
        shown={"name": server.name, "created_at": as_text(server.created_at), order: made},
    )


def _tag(server: m.Server) -> str | None:
    return split_tag(server.notes)[1]


def _made_by(request: Request, invoice_id: int) -> str | None:
    """The id of the server that an order made; None if nothing tells."""
    try:
        made = request.client.orders.get(invoice_id).server_id
    except (NotFound, Forbidden):
        return None
    return None if made is None else str(made)
