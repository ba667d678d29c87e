"""An order of a domain that the registrar has not confirmed, and its outcome."""

from datetime import datetime
from typing import Protocol

from pulumi_hosting.exactly_once.domain_order import became_of
from pulumi_hosting.exactly_once.purchase import Verdict
from pulumi_hosting.session.errors import StillOrdered
from pulumi_hosting.session.request import Request


class OrderedDomainState(Protocol):
    """What of a domain's state tells of its order."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def mode(self) -> str | None: ...
    @property
    def created_at(self) -> str | None: ...


def is_under_way(state: OrderedDomainState) -> bool:
    """Whether the state is that of an order that the registrar had not confirmed. An import knows no name."""
    return bool(state.name) and state.status in ("pending", "transfer_pending") and state.mode != "test"


def ordered(state: OrderedDomainState) -> str:
    """The order, in words."""
    if state.status == "transfer_pending":
        return f"the transfer of {state.name}"
    return f"the registration of {state.name}"


def fate(request: Request, state: OrderedDomainState) -> Verdict:
    """What became of the order."""
    ordered_at = None if state.created_at is None else datetime.fromisoformat(state.created_at)
    return became_of(request, state.name, ordered_at)


def forget_order(request: Request, state: OrderedDomainState) -> None:
    """Forget an order whose domain is not there. Raises ``StillOrdered`` if it may still come, or its charge
    is kept."""
    wait = request.poller()
    while not (verdict := fate(request, state)).is_over:
        if wait.over:
            why = f"{ordered(state)} is under way, and its auto-renew cannot be turned off yet"
            raise StillOrdered("domain", state.id, why)
        request.info(f"waiting for {ordered(state)}")
        wait.pause()
    if not verdict.may_be_forgotten:
        raise StillOrdered("domain", state.id, verdict.sentence(ordered(state)))
    request.warn(f"{verdict.sentence(ordered(state))}; nothing is left to remove")
