"""Ordering a domain once (API document, "Domains").

The name is unique at the registry, so a second order of it cannot be a second purchase. Whether a lost or
stored answer is true is decided by what the account shows.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pulumi_hosting.api import models as m
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import (
    ApiError,
    DomainUnavailable,
    IdempotencyConflict,
    IdempotencyInProgress,
    InsufficientFunds,
    InvalidResponse,
    TransportError,
    UpstreamRejected,
)
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.exactly_once.idempotency_keys import SCHEME, KeyRing
from pulumi_hosting.exactly_once.key_probe import key_is_used, nonexistent_id
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.key_owner import account
from pulumi_hosting.session.request import Request

_GENERATIONS = 4


@dataclass(frozen=True, slots=True)
class OrderedDomain:
    """``domain``: as the account shows it; None while it does not."""

    domain: m.Domain | None
    answer: m.DomainOrderResult | m.DomainTransferResult


class DomainOrder:
    """One resource's order of one name.

    - ``body``: of a registration, or of a transfer where there is an ``auth_code``;
    - ``find``: the domain of the name on the account, read again.
    """

    def __init__(
        self,
        request: Request,
        body: dict[str, Any],
        auth_code: Secret | None,
        find: Callable[[], m.Domain | None],
    ) -> None:
        self.request, self.body, self.auth_code, self.find = request, body, auth_code, find
        self.name: str = body["name"]
        me = account(request.client)
        operation = "register_domain" if auth_code is None else "transfer_domain"
        # No key is made of a secret: the auth code is sent, and is no part of it.
        self.keys = KeyRing(me.account_id, me.livemode, request.identity, operation, body)

    def was_placed(self) -> bool:
        """Whether an interrupted run of this resource ordered the name: its key is used, and its replay is an
        accepted order.
        """
        for generation in range(_GENERATIONS):
            key = self.keys.key(generation)
            renew = self.request.client.domains.renew
            if not key_is_used(partial(renew, nonexistent_id(), years=1, idempotency_key=key)):
                return False
            try:
                self._send(key)
            except ApiError:
                continue
            return True
        return False

    def place(self) -> OrderedDomain | m.Domain:
        """Order it. The domain alone where the answer was lost and the account shows it."""
        self.request.clock.raise_if_cancelled()
        generation, repeated = 0, False
        key = self.keys.key(0)
        while True:
            try:
                if ordered := self._accepted(self._send(key)):
                    return ordered
                # Registered, and not there: the replay of an order whose domain has gone since.
                generation += 1
                if generation >= _GENERATIONS:
                    raise ResourceError(
                        f"{_GENERATIONS} orders of {self.name} within seven days are used up. Next: wait "
                        "for the oldest to be forgotten, or set adopt_id if it is on another record"
                    )
                key = self.keys.key(generation)
            except IdempotencyInProgress:
                raise
            except IdempotencyConflict:
                # Used by a probe, or by a transfer with another auth code: the name prevents a second
                # purchase.
                generation += 1
                if generation >= _GENERATIONS:
                    raise
                key = self.keys.key(generation)
            except InvalidResponse:
                if found := self.find():
                    return found  # it was ordered, and the answer could not be read
                raise
            except (ApiError, TransportError) as error:
                if found := self.find():
                    return found  # it was not there before: the order arrived, its answer did not
                if repeated or not self._may_be_outdated(error):
                    raise self._with_name(error) from None
                repeated = True
                key = f"{SCHEME}-{uuid.uuid4().hex}"

    def _send(self, key: str) -> m.DomainOrderResult | m.DomainTransferResult:
        domains = self.request.client.domains
        if self.auth_code is not None:
            return domains.transfer(**self.body, auth_code=self.auth_code, idempotency_key=key)
        return domains.register(**self.body, idempotency_key=key)

    def _accepted(self, answer: m.DomainOrderResult | m.DomainTransferResult) -> OrderedDomain | None:
        if self.request.client.is_test_key:
            return OrderedDomain(None, answer)
        found = self.find()
        return None if found is None and answer.domain_id is not None else OrderedDomain(found, answer)

    def _may_be_outdated(self, error: ApiError | TransportError) -> bool:
        """Whether a refusal may be a stored one that no longer holds. Nothing was charged with it, and
        the name guards the next try.
        """
        if isinstance(error, TransportError) or error.status in (401, 403, 429, 504):
            return False
        if isinstance(error, InsufficientFunds):
            balance = catalog_reads.balance(self.request, fresh=True)
            return error.required is not None and balance is not None and balance.balance >= error.required
        if isinstance(error, DomainUnavailable):
            try:
                return self.request.client.domains.availability(name=self.name).available
            except (ApiError, TransportError):
                return False
        return isinstance(error, UpstreamRejected) or error.status in (500, 502, 503)

    def _with_name(self, error: ApiError | TransportError) -> Exception:
        if isinstance(error, TransportError) or error.status >= 500:
            return ResourceError(
                f"{error} — whether {self.name} was ordered is not known; it is not among the domains of "
                "the account yet. Next: run again: the same order is repeated, and never carried out twice"
            )
        return error
