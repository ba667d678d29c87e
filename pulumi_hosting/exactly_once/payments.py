"""What the account shows of the money of purchases: invoices, and the movements of the balance (API document,
"Invoices", "Balance").
"""

from __future__ import annotations  # models that only a hint names are not loaded

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice

from pulumi_hosting.api import models as m
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ApiError, Forbidden, NotFound

IP_PURCHASES = ("ip_purchase", "vds_addon")
DOMAIN_PURCHASES = ("domain_registration", "domain_purchase", "domain_transfer")
"""What deployments call the invoice of the purchase of an address, and of a domain."""
_LATEST = 50

CLOCKS_DIFFER = timedelta(seconds=5)
"""What two times of the service may differ by, with rounding."""


@dataclass(frozen=True, slots=True)
class Payment:
    """The money of one purchase.

    - ``invoice_id``, ``status``: its invoice. ``paid``, ``returned``: what left the balance for it, and what
      came back, in ``currency``.
    - ``at``: when it was paid; None if it was not.
    """

    invoice_id: int
    status: str
    paid: Decimal
    returned: Decimal
    currency: str
    at: datetime | None = None

    @property
    def is_returned(self) -> bool:
        """Whether nothing of it is kept: it was paid and returned, or never paid."""
        return self.paid <= self.returned

    @property
    def charged(self) -> str:
        """What was paid, as a clause."""
        return f"{self.paid} {self.currency} were charged, invoice {self.invoice_id}"

    @property
    def sentence(self) -> str:
        """Where the money is, as a clause."""
        invoice = f"invoice {self.invoice_id}"
        if not self.paid:
            return f"nothing was charged, {invoice}"
        if self.is_returned:
            return f"{self.returned} {self.currency} were returned, {invoice}"
        kept = self.paid - self.returned
        back = f"{self.returned} {self.currency} were returned and " if self.returned else ""
        return f"{back}{kept} {self.currency} were not returned, {invoice}"


def payment(client: Client, invoice_id: int) -> Payment | None:
    """The money of an invoice; None if the key may not see it, or there is none."""
    try:
        return _payment(client, client.invoices.get(invoice_id))
    except (Forbidden, NotFound):
        return None


def _payment(client: Client, invoice: m.Invoice) -> Payment:
    """By the movements of the balance; if the key may not see them, by the invoice's status."""
    was_paid = invoice.paid_at is not None or invoice.status in ("paid", "refunded")
    paid = invoice.amount if was_paid else Decimal(0)
    returned = Decimal(0)
    if invoice.status in ("refunded", "cancelled") and paid:
        returned, since = paid, invoice.created_at or invoice.paid_at
        with suppress(ApiError):
            if since is not None:
                paid, returned = movements(client, since - CLOCKS_DIFFER).get(invoice.id, (paid, paid))
    at = invoice.paid_at or (invoice.created_at if was_paid else None)
    return Payment(invoice.id, invoice.status, paid, returned, invoice.currency, at)


def movements(client: Client, since: datetime) -> dict[int, tuple[Decimal, Decimal]]:
    """What left the balance and what came back since then, by invoice. Raises what the request raises."""
    found: dict[int, tuple[Decimal, Decimal]] = {}
    for movement in client.balance.transactions(since=since):
        if movement.invoice_id is not None:
            paid, returned = found.get(movement.invoice_id, (Decimal(0), Decimal(0)))
            if movement.direction == "debit":
                paid += movement.amount
            else:
                returned += movement.amount
            found[movement.invoice_id] = paid, returned
    return found


def is_of(invoice: m.Invoice, types: Collection[str], **of: int) -> bool:
    """Whether the invoice is of one of these ``types`` (any, if none is named) and for what ``of`` names: a
    ``server_id``, a ``domain_id`` or an ``invoice_id``."""
    ((name, id),) = of.items()
    ids = {invoice.id} if name == "invoice_id" else {getattr(item, name) for item in invoice.items or ()}
    return id in ids and (not types or invoice.type in types)


def first_since(
    client: Client, since: datetime, until: datetime, types: Collection[str], **of: int
) -> Payment | None:
    """The money of the first invoice that was paid in this time, and that :func:`is_of` means; None if the
    key may not see it, it is not among the latest, or it was returned."""

    def is_meant(invoice: m.Invoice) -> bool:
        return (
            invoice.paid_at is not None and since <= invoice.paid_at <= until and is_of(invoice, types, **of)
        )

    try:
        meant = [invoice for invoice in islice(client.invoices.list(), _LATEST) if is_meant(invoice)]
    except (Forbidden, NotFound):
        return None
    paid = _payment(client, meant[-1]) if meant else None
    return None if paid is None or paid.is_returned else paid


def payments_since(
    client: Client, since: datetime, concerns: Callable[[m.Invoice], bool]
) -> Iterator[Payment]:
    """The purchases that were paid or returned since then, and that are meant. Raises what the requests
    raise."""
    for invoice_id, (paid, returned) in movements(client, since).items():
        invoice = client.invoices.get(invoice_id)
        if concerns(invoice):
            yield replace(_payment(client, invoice), paid=paid, returned=returned)
