"""Domains (API document, "Domains"). There is no operation that deletes one."""

from collections.abc import Sequence
from typing import Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.results import UNSET, Given, Pages, given
from pulumi_hosting.client.services.base import Service, hidden

DomainStatus = Literal["pending", "active", "expired", "transfer_pending", "cancelled"]


class DomainsService(Service):
    """``client.domains``. A domain locked by staff answers every write with ``DomainBlocked``."""

    def availability(self, *, name: str) -> m.Availability:
        """Whether a name, in Unicode or punycode, can be registered, and its price. Scope ``domains:read``. Expensive."""
        found: m.Availability = self._caller.call("check_domain_availability", query={"name": name})
        return found

    def list(self, *, cursor: Given[str] = UNSET, limit: Given[int] = UNSET, status: Given[DomainStatus] = UNSET) -> Pages[m.Domain]:
        """Domains, newest first. Scope ``domains:read``.

        ``limit``: items per page, 1..100 (default 100). ``cursor``: start at that page.
        """
        return self._caller.pages("list_domains", query=given(cursor=cursor, limit=limit, status=status))

    def get(self, domain_id: int) -> m.Domain:
        """One domain. Scope ``domains:read``. Raises ``NotFound``."""
        found: m.Domain = self._caller.call("get_domain", domain_id)
        return found

    def register(
        self,
        *,
        name: str,
        years: Given[int] = UNSET,
        nameservers: Given[Sequence[str]] = UNSET,
        privacy: Given[bool] = UNSET,
        auto_renew: Given[bool] = UNSET,
        promo_code: Given[str] = UNSET,
        idempotency_key: str | None = None,
    ) -> m.DomainOrderResult:
        """Registers a domain: ``status`` ``registered``, or ``pending`` until the registrar confirms. Scope ``domains:order``.

        - ``years``: 1..10 within the zone's bounds, default 1; ``nameservers``: 2..4 different host names (some deployments take two),
          default the provider's own.
        - ``privacy``: the default differs between deployments, so give it; ``auto_renew``: some refuse it here, :meth:`update` takes it
          everywhere.
        - ``idempotency_key``: 16..128 characters, made when absent.

        Raises ``DomainUnavailable``, ``InsufficientFunds`` (nothing charged), ``UpstreamRejected``, ``InvalidPeriod``.
        """
        body = given(
            name=name,
            years=years,
            nameservers=nameservers if nameservers is UNSET else [*nameservers],
            privacy=privacy,
            auto_renew=auto_renew,
            promo_code=promo_code,
        )
        found: m.DomainOrderResult = self._caller.call("register_domain", body=body, idempotency_key=idempotency_key)
        return found

    def set_nameservers(self, domain_id: int, *, nameservers: Sequence[str]) -> m.Domain:
        """Replaces the whole set: 2..4 different host names (some deployments take two). Scope ``domains:manage``.

        Never repeated by itself. Raises ``UpstreamRejected``, ``Conflict``, ``NotFound``.
        """
        found: m.Domain = self._caller.call("set_domain_nameservers", domain_id, body={"nameservers": [*nameservers]})
        return found

    def update(self, domain_id: int, *, auto_renew: Given[bool] = UNSET, privacy: Given[bool] = UNSET) -> m.Domain:
        """Changes auto-renew and WHOIS privacy, at least one. Scope ``domains:manage``. Never repeated by itself.

        Raises ``UpstreamRejected`` when the registrar refuses (nothing is saved then), ``Conflict``, ``NotFound``.
        """
        found: m.Domain = self._caller.call("update_domain", domain_id, body=given(auto_renew=auto_renew, privacy=privacy))
        return found

    def renew(self, domain_id: int, *, years: int, idempotency_key: str | None = None) -> m.DomainRenewResult:
        """Pays 1..10 further ``years``. Scope ``domains:order``.

        ``status``: ``renewed``, or ``pending_sync`` or ``pending`` until the new date is seen.

        ``idempotency_key``: 16..128 characters, made when absent. Raises ``InsufficientFunds`` (nothing charged), ``UpstreamRejected``,
        ``Conflict``, ``NotFound``.
        """
        found: m.DomainRenewResult = self._caller.call("renew_domain", domain_id, body={"years": years}, idempotency_key=idempotency_key)
        return found

    def transfer(
        self,
        *,
        name: str,
        auth_code: str | Secret,
        nameservers: Given[Sequence[str]] = UNSET,
        privacy: Given[bool] = UNSET,
        auto_renew: Given[bool] = UNSET,
        idempotency_key: str | None = None,
    ) -> m.DomainTransferResult:
        """Transfers a domain in; takes days. ``auth_code`` is the EPP code of the present registrar. Scope ``domains:order``.

        ``nameservers``, ``privacy`` and ``auto_renew`` are taken by some deployments only: change them once the domain is there.
        ``idempotency_key``: 16..128 characters, made when absent. Raises ``DomainUnavailable``, ``InsufficientFunds`` (nothing charged),
        ``UpstreamRejected``.
        """
        auth_code = hidden(auth_code)
        body = given(
            name=name,
            auth_code=auth_code,
            nameservers=nameservers if nameservers is UNSET else [*nameservers],
            privacy=privacy,
            auto_renew=auto_renew,
        )
        found: m.DomainTransferResult = self._caller.call("transfer_domain", body=body, idempotency_key=idempotency_key)
        return found
