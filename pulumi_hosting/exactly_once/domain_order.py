"""Ordering a domain once (API document, "Domains"): what is special about it.

The name is unique at the registry, so a second order of it cannot be a second purchase. But a refusal because
the name is taken proves nothing about who has it: only after an unknown outcome does a domain that is found
belong to this order.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pulumi_hosting.api import models as m
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import exceptions
from pulumi_hosting.exactly_once.idempotency_keys import KEY_MEMORY, KeyRing, KeyWalk
from pulumi_hosting.exactly_once.local_files import turn
from pulumi_hosting.exactly_once.payments import CLOCKS_DIFFER, DOMAIN_PURCHASES, Payment, payment
from pulumi_hosting.exactly_once.purchase import Evidence, Purchase, Verdict, When, judge
from pulumi_hosting.session.domain_names import ascii_name
from pulumi_hosting.session.request import Request

Answer = m.DomainOrderResult | m.DomainTransferResult


@dataclass(frozen=True, slots=True)
class OrderedDomain:
    """``domain``: as the account shows it; None while it does not. ``answer``: None if it was lost, and the
    account shows the domain. ``is_replay``: it was charged by an earlier run."""

    domain: m.Domain | None
    answer: Answer | None
    is_replay: bool = False


# --- what the account shows of the orders of a domain, and where their money is

_PENDING = ("pending", "transfer_pending")


def became_of(request: Request, name: str, ordered_at: datetime | None) -> Verdict:
    """What became of the newest order of a name. ``ordered_at``: when that was; None if it is not known."""
    rows = [row for row in request.client.domains.list() if ascii_name(row.name) == name]
    alive = [row for row in rows if row.status != "cancelled" or row.blocked is True]
    newest = max(rows, key=lambda row: row.id, default=None)
    began = ordered_at or (newest.created_at if newest else None)
    paid = _newest_payment(request, name, rows, began)
    is_there, status = any(row.status not in _PENDING for row in alive), newest.status if newest else None
    return judge(Evidence(is_there, status, paid, request.age_of(began)))


def _newest_payment(
    request: Request, name: str, rows: Iterable[m.Domain], began: datetime | None
) -> Payment | None:
    """The money of the newest order of the name; None if the key may not see it. ``began``: when that was."""
    since = request.service_now() - KEY_MEMORY
    if began is not None:
        since = min(since, began - CLOCKS_DIFFER)
    ids = {row.id for row in rows}
    with suppress(exceptions.Forbidden, exceptions.NotFound):
        for invoice in request.client.invoices.list():
            if invoice.created_at is not None and invoice.created_at < since:
                break
            known = {item.domain_id for item in invoice.items or ()}
            if invoice.type in DOMAIN_PURCHASES and (ids & known or concerns(request, invoice, name)):
                return payment(request.client, invoice.id)
    return None


def concerns(request: Request, invoice: m.Invoice, name: str) -> bool:
    """Whether an invoice of a domain is one of the name: not of ``my-shop.com`` if that is ``shop.com``."""
    texts = (invoice.description, *(item.description for item in invoice.items or ()))
    whole = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)")
    if any(whole.search(text.lower()) for text in texts if text):
        return True
    id = next((item.domain_id for item in invoice.items or () if item.domain_id is not None), None)
    with suppress(exceptions.NotFound):
        return id is not None and ascii_name(request.client.domains.get(id).name) == name
    return False


# --- ordering it


class DomainOrder(Purchase[Answer, OrderedDomain]):
    """One resource's order of one name. Carry it out within :meth:`turn_of_name`.

    - ``body``: of a registration, or of a transfer if there is an ``auth_code``;
    - ``find``: the domain of the name on the account, read again.
    """

    def __init__(
        self,
        request: Request,
        body: dict[str, Any],
        auth_code: Secret | None,
        find: Callable[[], m.Domain | None],
    ) -> None:
        self.body, self.auth_code, self.find = body, auth_code, find
        self.name: str = body["name"]
        operation = "register_domain" if auth_code is None else "transfer_domain"
        # What is sent beside the name is no part of the key, and no key is made of a secret.
        self.keys = KeyRing.of(request.client, request.identity, operation, {"name": self.name})
        super().__init__(request, f"order of {self.name}", "domain")
        self.concerns = lambda found: found.type in DOMAIN_PURCHASES and concerns(request, found, self.name)

    def turn_of_name(self) -> AbstractContextManager[object]:
        """One order of a name at a time, on this machine. Raises ``LocalFilesError``."""
        return turn(self.request, f"domain {self.name}", f"ordering {self.name}")

    def walk(self) -> KeyWalk:
        return KeyWalk(self.keys, is_cheap=True)

    def was_placed(self) -> bool:
        """Whether an interrupted run of this resource ordered the name: a key that is bound replays an
        accepted order.
        """
        renew = self.request.client.domains.renew
        walk = KeyWalk(self.keys, ask=lambda id, key: renew(id, years=1, idempotency_key=key))
        return any(True for _ in self.replays(walk))

    def look(self, when: When) -> OrderedDomain | None:
        """It was not there before: if the outcome is unknown, a domain of the name is what was ordered."""
        if when in ("lost", "failed") or (when == "conflict" and self.request.name_is_identity):
            return OrderedDomain(found, None) if (found := self.find()) else None
        return None

    def send(self, idempotency_key: str) -> Answer:
        domains = self.request.client.domains
        if self.auth_code is not None:
            return domains.transfer(**self.body, auth_code=self.auth_code, idempotency_key=idempotency_key)
        return domains.register(**self.body, idempotency_key=idempotency_key)

    def accept(self, answer: Answer, walk: KeyWalk) -> OrderedDomain | None:
        found = None if self.request.client.is_test_key else self.find()
        if found is not None or self.request.client.is_test_key:
            return OrderedDomain(found, answer)
        if answer.domain_id is not None:
            return None  # registered, and not there: the replay of an order whose domain has gone since
        # No answer shows whether it is a replay. What was paid just now is ours; of an older order the
        # account shows the outcome.
        if walk.is_fresh or self._was_paid_just_now():
            return OrderedDomain(None, answer)
        verdict = became_of(self.request, self.name, None)
        if verdict.is_over:
            self.request.warn(f"{verdict.sentence(f'an earlier order of {self.name}')}: ordering again")
            return None
        return OrderedDomain(None, answer, is_replay=verdict.payment is not None)

    def _was_paid_just_now(self) -> bool:
        """An order that has ended by now is one of before, however short ago it was paid."""
        client = self.request.client
        with suppress(exceptions.ApiError):
            if kept := [paid for paid in self.payments() if not paid.is_returned]:
                ended = {row.id for row in client.domains.list() if row.status == "cancelled"}
                paid_for = (client.invoices.get(paid.invoice_id).items or () for paid in kept)
                return any(ended.isdisjoint(item.domain_id for item in items) for items in paid_for)
        return False

    def is_outdated(self, error: exceptions.ApiError, /) -> bool:
        """Nothing was charged with a refusal, and the name guards the next try."""
        with suppress(exceptions.ApiError, exceptions.TransportError):
            if isinstance(error, exceptions.DomainUnavailable):
                return self.request.client.domains.availability(name=self.name).available
        return isinstance(error, exceptions.UpstreamRejected)
