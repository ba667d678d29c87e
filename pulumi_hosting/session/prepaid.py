"""What is paid in advance: until when, and whether the service renews it (API document, "Resources and their
fields", "States and transitions")."""

from __future__ import annotations  # models that only a hint names are not loaded

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from pulumi_hosting.api import models as m

ENDED = frozenset({"suspended", "expired", "pending_cancel"})
"""The statuses of an object whose paid time is over, or will not be renewed any more."""
_NEAR = (timedelta(hours=24), timedelta(days=30))  # the shortest and the longest warning


@dataclass(frozen=True, slots=True)
class Prepaid:
    """One object that is paid until a moment, and what its renewal costs.

    - ``until``: end of the paid time; None where it is not known. ``protected_until``: it is not suspended
      before this, though its renewal is due.
    - ``months``: how many a renewal pays; 0: it is paid by the hour, and ``amount`` is that of a day.
    - ``ended``: one of ``ENDED`` where its time is over, or is bound to be; else empty. ``is_locked``: staff
      locked it, so nothing renews it. ``is_cancelled``: its end is approved, also while it is suspended.
    - ``invoice``: the id of an unpaid invoice of its renewal, if there is one.

    An invoice that is to be paid is one too: ``until`` is the last moment to pay it.
    """

    kind: str
    id: str
    name: str
    until: datetime | None
    amount: Decimal | None
    months: int
    renews: bool
    ended: str = ""
    protected_until: datetime | None = None
    invoice: str = ""
    is_locked: bool = False
    is_cancelled: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What names it on the account."""
        return self.kind, self.id

    @property
    def label(self) -> str:
        """Kind, id and name, as messages have them."""
        return f"{self.kind} {self.id} ({self.name})" if self.id else f"{self.kind} {self.name}"

    @property
    def near(self) -> timedelta:
        """How long before its end a warning begins: a third of the paid period, 24 hours to 30 days."""
        third = timedelta(days=365.25 / 12 / 3) * self.months
        return min(max(third, _NEAR[0]), _NEAR[1])

    @property
    def safe_until(self) -> datetime | None:
        """Until when it is not suspended for want of payment; None where that is not known."""
        return self.until and max(self.until, self.protected_until or self.until)

    def is_suspended_by_staff(self, now: datetime) -> bool:
        """Whether it is suspended though it is paid."""
        return self.ended == "suspended" and self.safe_until is not None and self.safe_until > now

    def may_be_renewed(self, now: datetime) -> bool:
        """Whether a run may pay for it: staff has neither locked nor suspended it, and no end is approved."""
        return not (self.is_locked or self.is_cancelled or self.is_suspended_by_staff(now))

    def is_near(self, now: datetime) -> bool:
        """Whether its end is so near that a warning begins."""
        return self.safe_until is not None and self.safe_until - now <= self.near


def of_server(found: m.Server) -> Prepaid:
    """A server of the account; its bought addresses are paid with it."""
    billing, flags = found.billing, found.flags
    until = billing.next_due_at if billing else None
    renews = bool(billing and billing.auto_renew)
    amount, months = (billing.recurring_amount, billing.months or 1) if billing else (None, 1)
    if amount is not None and billing and billing.cycle == "hourly":
        amount, months = amount * 24, 0
    safe = flags.protected_until if flags else None
    what = Prepaid("server", str(found.id), found.name, until, amount, months, renews, _ended(found), safe)
    what = replace(what, is_cancelled=_is_leaving(found))
    return _locked(what) if flags and flags.blocked else what


def _locked(what: Prepaid) -> Prepaid:
    return replace(what, renews=False, is_locked=True)


def _ended(found: m.Server) -> str:
    flags = found.flags
    if found.status == "suspended" or (flags and flags.suspended):
        return "suspended"
    return "pending_cancel" if _is_leaving(found) else ""


def _is_leaving(found: m.Server) -> bool:
    return found.status == "pending_cancel" or bool(found.flags and found.flags.pending_cancel)


def with_invoices(objects: Iterable[Prepaid], unpaid: Iterable[m.Invoice]) -> list[Prepaid]:
    """The objects, each with the unpaid invoice of its renewal, and the unpaid invoices of renewals and fees
    that name none of them."""
    invoices = [found for found in unpaid if found.type.endswith(("_renewal", "late_fee"))]
    of = {key: str(found.id) for found in invoices for key in _paid_by(found)}
    known = [replace(what, invoice=of.get(what.key, "")) for what in objects]
    attached = {what.invoice for what in known}
    return known + [of_invoice(found) for found in invoices if str(found.id) not in attached]


def _paid_by(found: m.Invoice) -> Iterator[tuple[str, str]]:
    for item in found.items or ():
        if item.server_id is not None:
            yield "server", str(item.server_id)
        if item.domain_id is not None:
            yield "domain", str(item.domain_id)


def of_invoice(found: m.Invoice) -> Prepaid:
    """An invoice that is not paid yet."""
    name = found.description or found.type
    return Prepaid("invoice", str(found.id), name, found.due_at, found.amount, 1, renews=False)


def of_domain(found: m.Domain, amount: Decimal | None) -> Prepaid:
    """A domain of the account. ``amount``: the price of one more year."""
    status = found.status if found.status in ENDED else ""
    what = Prepaid(
        "domain", str(found.id), found.name, found.expires_at, amount, 12, bool(found.auto_renew), status
    )
    return _locked(what) if found.blocked else what
