"""Which servers of the account may belong to a resource: by ownership tag, and by name."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import NotFound
from pulumi_hosting.client.results import readable
from pulumi_hosting.exactly_once import generation
from pulumi_hosting.exactly_once.idempotency_keys import KEY_MEMORY
from pulumi_hosting.exactly_once.order_facts import Wanted, orders_and_servers
from pulumi_hosting.exactly_once.ownership_check import after_others_spoke, differences, why_not_taken_over
from pulumi_hosting.exactly_once.ownership_tag import is_tag, is_tag_of, ownership_tag, split_tag, takeovers
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS
from pulumi_hosting.session.errors import AmbiguousMatch, ResourceConflict
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import age, alias_option, if_renamed

REPORT_AGE = 60.0  # seconds for which orders and servers, once listed, are believed by a report


def tag_of(server: m.Server) -> str | None:
    return split_tag(server.notes)[1]


def may_be_proven(request: Request, server: m.Server) -> bool:
    """Whether a key could still tell: no other resource's tag is on the server, and younger than the
    memory for keys.
    """
    if is_tag(tag_of(server)):
        return False
    ordered = request.age_of(server.created_at)
    return ordered is None or ordered <= KEY_MEMORY


def name_conflict(request: Request, server: m.Server, attempt: int) -> ResourceConflict:
    """The refusal to order beside a living server of the same name that nothing shows to be this
    declaration's. If another resource has it, the first advice is a name with the stack in it; the alias, if
    that resource is of this stack."""
    since = f", created {server.created_at:%Y-%m-%d}" if server.created_at else ""
    take_over, another = f"set adopt_id to {server.id} to take it over", "choose another name"
    steps, last = f"{take_over}, {another}", ""
    if is_tag(tag := tag_of(server)):
        names = [name for name in (server.name, server.hostname) if name]
        old = next((name for name in names if is_tag_of(tag, _sibling(request.identity, name))), None)
        if old is not None:
            steps = f"{if_renamed(old)}{steps}"
        else:
            with_stack = "-".join([server.name, *request.identity.split("/")[1:2]])
            steps = f"{another}, such as {with_stack}, {take_over}"
            alias = alias_option("old-name")
            last = f"; if this resource had another name in the program before, add {alias}"
    return ResourceConflict(
        f"a server named {server.name!r} exists already (id {server.id}{since}) and nothing shows that this "
        f"declaration ordered it; nothing was ordered. Next: {steps}, or set order_attempt to "
        f"{attempt + 1} to order one more of that name{last}",
        id=str(server.id),
    )


def _sibling(identity: str, name: str) -> str:
    """The identity of a resource of the same stack and kind with another name."""
    return f"{identity.rpartition('/')[0]}/{name}"


def tag_identity(request: Request, name: str | None) -> str:
    """The identity that the tag of a server of this name is made of. If the name is the identity, it moves
    with the name, whatever names the server in a task."""
    return _sibling(request.identity, name) if request.name_is_identity and name else request.identity


Undone = Literal["ordered", "deleted", "done"]
"""What a declaration of a server does not do, or one of what belongs to a server (``done``)."""


def refuse_renamed(request: Request, name: str, undone: Undone, attempt: int = 0) -> None:
    """For frontends that know a server by its name alone: raise ``ResourceConflict`` if the tag of a living
    server shows that it was ordered under ``name`` and it has another name by now. Passed over is one that
    another declaration of the run has, and one that was ordered with a lower ``attempt``.
    """
    noted_server = _noted_server(request, name, attempt)
    noted = noted_server.id if noted_server else None
    renamed = after_others_spoke(
        request,
        lambda: [
            server
            for server in candidates(request, lambda server: server.name != name)
            if (server.id == noted or _takeovers(request, server, name) >= attempt)
            and not request.is_declared(str(server.id), server.name)
        ],
    )
    if renamed:
        another = max([attempt, *(_takeovers(request, server, name) for server in renamed)]) + 1
        evidence = "this machine's note of its order" if renamed[0].id == noted else "its ownership tag"
        raise _renamed_conflict(renamed[0], name, evidence, undone, another)


def _takeovers(request: Request, server: m.Server, name: str) -> int:
    """How often the declaration of this ``name`` took the server over, by its tag; -1 without its tag."""
    tag = tag_of(server)
    return takeovers(tag) if tag is not None and is_tag_of(tag, tag_identity(request, name)) else -1


def _noted_server(request: Request, name: str, attempt: int) -> m.Server | None:
    """The living server whose order this machine noted for this declaration of a ``name``, if no run has seen
    it arrive since, so that it has no tag."""
    number = generation.order_under_way(request, attempt)
    if number is None:
        return None
    with suppress(NotFound):
        order = request.client.orders.get(number)
        for server in candidates(request, lambda server: server.id == order.server_id):
            if order.server_name in (None, name) and not is_tag(tag_of(server)):
                return server
    return None


def refuse_renamed_order(request: Request, name: str, server: m.Server, attempt: int) -> None:
    """The same for the ``server`` that an idempotency key of ``name`` names, unless another identity's tag
    shows that it is that one's by now. Of a resource that has a state of its own nothing tells whether it was
    lost and renamed by hand, or belongs to a declaration that was renamed with it."""
    if not request.name_is_identity:
        raise ResourceConflict(
            f"this resource's order already created server {server.id}, now named {server.name!r}; nothing "
            f"was ordered. Next: {if_renamed(server.name)}set adopt_id to {server.id} to take it over, or "
            f"order_attempt to {attempt + 1} to order another",
            id=str(server.id),
        )
    tag = tag_of(server)
    is_ours = not is_tag(tag) or is_tag_of(tag, tag_identity(request, name))
    if is_ours and not request.is_declared(str(server.id), server.name):
        raise _renamed_conflict(server, name, "the idempotency key of its order", "ordered", attempt + 1)


def _renamed_conflict(
    server: m.Server, name: str, evidence: str, undone: Undone, another: int
) -> ResourceConflict:
    declare = f"let a task before this one declare server {server.name!r}"
    advice = {
        "ordered": f"set id: {server.id} in this task, which names it {name!r} again; or, to order another "
        f"one beside it, set order_attempt: {another}, or {declare}",
        "deleted": f"set id: {server.id} in place of the name to delete it; if it is to stay, {declare}",
        "done": f"set server_id: {server.id} in place of server_name",
    }
    return ResourceConflict(
        f"server {server.id} was ordered as {name!r}, as {evidence} shows, and is named {server.name!r} now; "
        f"nothing was {undone}. Next: {advice[undone]}",
        id=str(server.id),
    )


def unproven(request: Request, name: str) -> m.Server | None:
    """The living server of the name of which only sending the order's key could prove that it is this
    declaration's. One that another declaration claims within a second does not count. Raises what an order
    would raise: if no key can prove it any more, or if a proof is not enough for a takeover."""
    found = after_others_spoke(request, lambda: candidates(request, lambda server: server.name == name))
    provable = next((server for server in found if may_be_proven(request, server)), None)
    if found and (provable is None or why_not_taken_over(request, request.age_of(provable.created_at))):
        raise name_conflict(request, found[0], 0)
    return provable


TAGGED = "it carries this resource's ownership tag"


def not_as_wanted(server: m.Server, wanted: Wanted) -> tuple[str, ...]:
    """How the machine differs, in words: notes, and with them a tag, can be copied to another one."""
    return differences(machine(server), {"tariff_id": wanted.tariff_id, "os": wanted.os})


def machine(server: m.Server) -> dict[str, Any]:
    """Its tariff and image; None if the account does not show them."""
    return {"tariff_id": server.tariff.id if server.tariff else None, "os": server.os}


def find_tagged(
    request: Request, wanted: Wanted, *, attempt: int = 0, lenient: bool = False
) -> m.Server | None:
    """The living server that carries this identity's tag and that no state in this run has: what an
    interrupted run, or another backend with the same names, has ordered.

    Raises ``AmbiguousMatch`` for several, and ``ResourceConflict`` for one that must not be taken over
    automatically: under another name by now (it may belong to a resource that was renamed with it), another
    machine, ordered longer ago than keys are remembered, or any under ``strict`` without a scope. An
    ``attempt`` above 0 asks for another one beside it, and the former three are passed over. ``lenient``:
    whatever its age.
    """
    begins = ownership_tag(request.identity).rstrip("]")
    tagged = candidates(request, lambda server: begins in (server.notes or ""))
    own = [server for server in tagged if is_tag_of(tag_of(server), request.identity)]
    if own and attempt > 0:
        own = [
            server
            for server in own
            if server.name == wanted.name
            and not not_as_wanted(server, wanted)
            and (request.age_of(server.created_at) or timedelta()) <= KEY_MEMORY
        ]
    if len(own) > 1:
        named = ", ".join(repr(server.name) for server in own)
        raise AmbiguousMatch(
            f"the ownership tag {ownership_tag(request.identity)} of this resource (on servers {named})",
            [str(server.id) for server in own],
            give="set adopt_id to the id",
        )
    server = own[0] if own else _noted_server(request, wanted.name, attempt) if wanted.name else None
    if server is None or (not own and server.name == wanted.name):
        return None
    carries = "carries this resource's ownership tag"
    if server.name != wanted.name:
        raise ResourceConflict(
            f"server {server.id} {carries if own else 'was ordered for this resource'} and is named "
            f"{server.name!r}, not {wanted.name!r}; nothing was ordered. Next: {if_renamed(server.name)}set "
            f"adopt_id={server.id} to take it over, or order_attempt={attempt + 1} to order another one",
            id=str(server.id),
        )
    if differing := not_as_wanted(server, wanted):
        raise ResourceConflict(
            f"server {server.id} ({server.name}) {carries} and is another machine ({', '.join(differing)}); "
            f"nothing was ordered. Next: set order_attempt={attempt + 1} to order another one, or declare "
            f"what it is and set adopt_id={server.id} to take it over",
            id=str(server.id),
        )
    if not lenient:
        must_be_allowed(request, server, carries, attempt)
    return server


def must_be_allowed(request: Request, server: m.Server, evidence: str, attempt: int = 0) -> None:
    """Raise ``ResourceConflict`` if a server of which ``evidence`` says that it is this identity's
    must not be taken over automatically.
    """
    ordered = request.age_of(server.created_at)
    why = why_not_taken_over(request, ordered)
    if why is None:
        return
    when = f"{age(ordered)} ago" if ordered is not None else "at an unknown time"
    raise ResourceConflict(
        f"server {server.id} ({server.name}) {evidence} and was ordered {when}: {why}; nothing was ordered. "
        f"Next: set adopt_id={server.id} to take it over, or order_attempt={attempt + 1} to order another "
        "one; if this run was asked to replace it, run it again with --refresh",
        id=str(server.id),
    )


def tagged_elsewhere(request: Request, max_age: float) -> m.Server | None:
    """The living server that carries this identity's tag and that no state in this run has; the newest of
    several. Asked if the server of a state is gone. ``max_age``: seconds for which a list is believed. One
    that another entry of the state claims within a second does not count."""

    def found() -> list[m.Server]:
        listed, _ = readable(request.session.listed(ORDERS_AND_SERVERS, "list_servers", max_age))
        return [
            server
            for server in listed
            if is_tag_of(tag_of(server), request.identity)
            and not (server.is_gone or server.is_sandbox or request.ownership.owner(str(server.id)))
        ]

    return max(after_others_spoke(request, found), key=lambda server: server.id, default=None)


def candidates(request: Request, is_meant: Callable[[m.Server], bool]) -> list[m.Server]:
    """The living servers that may be meant and that no declaration of this run is known to have. Each order
    asks for them among all servers of the account, so ``is_meant`` comes first.
    """
    # A simulated order buys nothing beside a real server of the name; only what a test key made itself could
    # be a lost one.
    simulated = request.client.is_test_key
    return [
        server
        for server in orders_and_servers(request)[1]
        if is_meant(server)
        and server.is_sandbox == simulated
        and not (server.is_gone or request.has_owner(str(server.id)))
    ]
