"""What the account shows of the orders of a domain, and where their money is."""

import re
from collections.abc import Iterable
from datetime import datetime

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import Forbidden, NotFound
from pulumi_hosting.exactly_once.idempotency_keys import KEY_MEMORY
from pulumi_hosting.exactly_once.payments import CLOCKS_DIFFER, DOMAIN_PURCHASES, Payment, payment
from pulumi_hosting.exactly_once.purchase import Evidence, Verdict, judge
from pulumi_hosting.session.domain_names import ascii_name
from pulumi_hosting.session.request import Request

_PENDING = ("pending", "transfer_pending")


def became_of(request: Request, name: str, ordered_at: datetime | None) -> Verdict:
    """What became of the newest order of a name. ``ordered_at``: when that was; None if it is not known."""
    rows = [row for row in request.client.domains.list() if ascii_name(row.name) == name]
    alive = [row for row in rows if row.status != "cancelled" or row.blocked is True]
    newest = max(rows, key=lambda row: row.id, default=None)
    began = ordered_at or (newest.created_at if newest else None)
    paid = _newest_payment(request, name, rows, began)
    return judge(
        Evidence(
            is_there=any(row.status not in _PENDING for row in alive),
            status=newest.status if newest else None,
            payment=paid,
            age=None if began is None else request.service_now() - began,
        )
    )


def _newest_payment(
    request: Request, name: str, rows: Iterable[m.Domain], began: datetime | None
) -> Payment | None:
    """The money of the newest order of the name; None if the key may not see it. ``began``: when that was."""
    since = request.service_now() - KEY_MEMORY
    if began is not None:
        since = min(since, began - CLOCKS_DIFFER)
    ids = {row.id for row in rows}
    try:
        for invoice in request.client.invoices.list():
            if invoice.created_at is not None and invoice.created_at < since:
                break
            known = {item.domain_id for item in invoice.items or ()}
            if invoice.type in DOMAIN_PURCHASES and (ids & known or concerns(request, invoice, name)):
                return payment(request.client, invoice.id)
    except (Forbidden, NotFound):
        pass
    return None


def concerns(request: Request, invoice: m.Invoice, name: str) -> bool:
    """Whether an invoice of a domain is one of the name: not of ``my-shop.com`` if that is ``shop.com``."""
    texts = (invoice.description, *(item.description for item in invoice.items or ()))
    whole = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)")
    if any(whole.search(text.lower()) for text in texts if text):
        return True
    for item in invoice.items or ():
        if item.domain_id is not None:
            try:
                return ascii_name(request.client.domains.get(item.domain_id).name) == name
            except NotFound:
                return False
    return False
