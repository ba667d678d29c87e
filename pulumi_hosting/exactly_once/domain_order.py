"""Ordering a domain once (API document, "Domains"): what is special about it.

The name is unique at the registry, so a second order of it cannot be a second purchase. But a refusal because
the name is taken proves nothing about who has it: only after an unknown outcome does a domain that is found
belong to this order.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pulumi_hosting.api import models as m
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import (
    ApiError,
    DomainUnavailable,
    TransportError,
    UpstreamRejected,
)
from pulumi_hosting.exactly_once.domain_facts import became_of, concerns
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing
from pulumi_hosting.exactly_once.key_probe import KeyWalk
from pulumi_hosting.exactly_once.payments import DOMAIN_PURCHASES
from pulumi_hosting.exactly_once.purchase import Purchase, When
from pulumi_hosting.exactly_once.turns import turn
from pulumi_hosting.session.request import Request

Answer = m.DomainOrderResult | m.DomainTransferResult


@dataclass(frozen=True, slots=True)
class OrderedDomain:
    """``domain``: as the account shows it; None while it does not. ``answer``: None if it was lost, and the
    account shows the domain. ``is_replay``: it was charged by an earlier run."""

    domain: m.Domain | None
    answer: Answer | None
    is_replay: bool = False


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
        super().__init__(request, f"order of {self.name}", "domain", concerns=self._is_of_the_name)

    def _is_of_the_name(self, invoice: m.Invoice) -> bool:
        return invoice.type in DOMAIN_PURCHASES and concerns(self.request, invoice, self.name)

    def turn_of_name(self) -> AbstractContextManager[object]:
        """One order of a name at a time, on this machine. Raises ``LocalFilesError``."""
        return turn(self.request, f"domain {self.name}", f"ordering {self.name}")

    def walk(self) -> KeyWalk:
        return KeyWalk(self.keys, is_cheap=True)

    def was_placed(self) -> bool:
        """Whether an interrupted run of this resource ordered the name: a key that is bound replays an
        accepted order.
        """
        return any(True for _ in self.replays(KeyWalk(self.keys, ask=self._ask)))

    def _ask(self, id: int, key: str) -> object:
        return self.request.client.domains.renew(id, years=1, idempotency_key=key)

    def look(self, when: When) -> OrderedDomain | None:
        """It was not there before: if the outcome is unknown, a domain of the name is what was ordered."""
        if when in ("lost", "failed") or (when == "conflict" and self.request.name_is_identity):
            return OrderedDomain(found, None) if (found := self.find()) else None
        return None

    def send(self, key: str, /) -> Answer:
        domains = self.request.client.domains
        if self.auth_code is not None:
            return domains.transfer(**self.body, auth_code=self.auth_code, idempotency_key=key)
        return domains.register(**self.body, idempotency_key=key)

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
        try:
            return any(not paid.is_returned for paid in self.payments())
        except ApiError:
            return False

    def is_outdated(self, error: ApiError, /) -> bool:
        """Nothing was charged with a refusal, and the name guards the next try."""
        if isinstance(error, DomainUnavailable):
            try:
                return self.request.client.domains.availability(name=self.name).available
            except (ApiError, TransportError):
                return False
        return isinstance(error, UpstreamRejected)
