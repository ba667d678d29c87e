"""Servers and their addresses (API document, "Servers")."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.results import UNSET, Given, Items, Pages, given
from pulumi_hosting.client.services.base import Caller, Service, hidden

ServerStatus = Literal["active", "stopped", "suspended", "pending_cancel", "cancelled", "terminated"]


class ServersService(Service):
    """``client.servers``

    A server locked by staff answers every write with ``ServerBlocked``, one with another change under way with ``OperationInProgress``.
    """

    def __init__(self, caller: Caller) -> None:
        super().__init__(caller)
        self.ips = IpsArea(caller)

    def list(
        self,
        *,
        cursor: Given[str] = UNSET,
        limit: Given[int] = UNSET,
        status: Given[ServerStatus] = UNSET,
        ip: Given[str] = UNSET,
    ) -> Pages[m.Server]:
        """Servers, newest first; a test key also sees its sandbox servers. Scope ``servers:read``.

        ``ip`` matches any address of a server. ``limit``: items per page, 1..100 (default 100). ``cursor``: start at that page.
        """
        return self._caller.pages("list_servers", query=given(cursor=cursor, limit=limit, status=status, ip=ip))

    def create(
        self,
        *,
        tariff_id: int,
        os: str,
        name: Given[str] = UNSET,
        password: Given[str | Secret] = UNSET,
        months: Given[m.Months] = UNSET,
        hours: Given[int] = UNSET,
        billing_cycle: Given[m.BillingCycle] = UNSET,
        promo_code: Given[str] = UNSET,
        ssh_key_ids: Given[Sequence[int]] = UNSET,
        custom_fields: Given[Mapping[str, str]] = UNSET,
        idempotency_key: str | None = None,
    ) -> m.ServerCreated | m.Order:
        """Orders a server: ``ServerCreated`` when it exists, ``Order`` while it is being created (read it until it is active).

        Charged from the balance. Scope ``servers:order``. Expensive.

        - ``os``: slug of an image; ``name``: letters, digits and ``. _ -``, made up when absent.
        - ``password``: root password, 8..64 characters with a letter and a digit; when absent one is generated and given once, in
          ``ServerCreated.root_password``, and never in an ``Order``.
        - ``months`` 1, 3, 6 or 12 (default 1), or ``hours`` 1..720 on hourly tariffs (some deployments take 1 only), not both.
        - ``ssh_key_ids``: keys of the account to install; ``custom_fields``: up to 30 texts.
        - ``idempotency_key``: 16..128 characters, made when absent; the same key and arguments again never buy twice, and the answer
          then has no password.

        Raises ``InsufficientFunds`` (nothing charged), ``NoCapacity``, ``OsNotAllowed``, ``InvalidPeriod``, ``ValidationFailed``.
        """
        password = hidden(password)
        body = given(
            tariff_id=tariff_id,
            os=os,
            name=name,
            password=password,
            months=months,
            hours=hours,
            billing_cycle=billing_cycle,
            promo_code=promo_code,
            ssh_key_ids=ssh_key_ids if ssh_key_ids is UNSET else [*ssh_key_ids],
            custom_fields=custom_fields if custom_fields is UNSET else {**custom_fields},
        )
        found: m.ServerCreated | m.Order = self._caller.call("create_server", body=body, idempotency_key=idempotency_key)
        return found

    def get(self, server_id: int, *, include: Given[Literal["live"]] = UNSET) -> m.ServerDetail:
        """One server with its refund quote; ``include="live"`` adds panel data and makes the call expensive. Scope ``servers:read``.

        Raises ``NotFound``; with ``live`` also ``ServiceState`` for servers without a panel record.
        """
        found: m.ServerDetail = self._caller.call("get_server", server_id, query=given(include=include))
        return found

    def update(
        self, server_id: int, *, auto_renew: Given[bool] = UNSET, name: Given[str] = UNSET, notes: Given[str | None] = UNSET
    ) -> m.Server:
        """Changes what is given, at least one; ``notes`` ``None`` clears them. Scope ``servers:manage``. Raises ``NotFound``."""
        body = given(auto_renew=auto_renew, name=name, notes=notes)
        found: m.Server = self._caller.call("update_server", server_id, body=body)
        return found

    def delete(self, server_id: int, *, idempotency_key: str | None = None) -> m.DeleteResult:
        """Deletes a server with its data; the unused part of what was paid is credited. Scope ``servers:delete``.

        ``idempotency_key``: 16..128 characters, made when absent. Raises ``ServiceState`` when it is deleted already, ``NotFound``,
        ``Unavailable`` when the panel failed (nothing changed).
        """
        found: m.DeleteResult = self._caller.call("delete_server", server_id, idempotency_key=idempotency_key)
        return found

    def status(self, server_id: int) -> m.ServerLiveStatus:
        """Power, load in percent, memory, disk and uptime in seconds, from the panel now. Scope ``servers:read``. Expensive.

        Raises ``ServiceState`` for servers without a panel record, ``NotFound``.
        """
        found: m.ServerLiveStatus = self._caller.call("get_server_status", server_id)
        return found

    def refund_quote(self, server_id: int) -> m.RefundQuote:
        """What a deletion would credit now. Scope ``servers:read``. Raises ``NotFound``."""
        found: m.RefundQuote = self._caller.call("get_server_refund_quote", server_id)
        return found

    def power(self, server_id: int, *, action: Literal["start", "stop", "restart"]) -> m.ActionResult:
        """Starts, stops or restarts a server; accepted, not yet done. Scope ``servers:manage``. Never repeated by itself.

        Raises ``ServiceState`` for a suspended server, ``NotFound``.
        """
        found: m.ActionResult = self._caller.call("power_server", server_id, body={"action": action})
        return found

    def reinstall(
        self, server_id: int, *, os: str, password: Given[str | Secret] = UNSET, ssh_key_ids: Given[Sequence[int]] = UNSET
    ) -> m.ReinstallResult:
        """Installs an image anew. ALL DATA OF THE SERVER IS LOST. Scope ``servers:manage``. Never repeated by itself.

        ``os``: slug of an image its tariff allows; ``password``: as in :meth:`create`, generated and given once when absent.
        Raises ``OsNotAllowed``, ``ServiceState``, ``NotFound``.
        """
        password = hidden(password)
        keys = ssh_key_ids if ssh_key_ids is UNSET else [*ssh_key_ids]
        found: m.ReinstallResult = self._caller.call("reinstall_server", server_id, body=given(os=os, password=password, ssh_key_ids=keys))
        return found

    def reset_password(self, server_id: int) -> m.ResetPasswordResult:
        """A new root password, given this once. Scope ``servers:manage``. Never repeated by itself.

        At most 5 calls in 5 minutes per server: ``RateLimited``. Raises ``ServiceState``, ``NotFound``.
        """
        found: m.ResetPasswordResult = self._caller.call("reset_server_password", server_id)
        return found

    def renew(
        self,
        server_id: int,
        *,
        months: Given[m.Months] = UNSET,
        hours: Given[int] = UNSET,
        idempotency_key: str | None = None,
    ) -> m.RenewResult:
        """Pays in advance, on top of the current period. Scope ``servers:order``.

        Exactly one of ``months`` 1, 3, 6, 12 (monthly servers) and ``hours`` 1..720, on some deployments 1..2160 (hourly servers).
        ``idempotency_key``: 16..128 characters, made when absent. Raises ``InsufficientFunds`` (nothing charged), ``InvalidPeriod``,
        ``ServiceState``, ``NotFound``.
        """
        found: m.RenewResult = self._caller.call(
            "renew_server", server_id, body=given(months=months, hours=hours), idempotency_key=idempotency_key
        )
        return found


class IpsArea(Service):
    """``client.servers.ips``"""

    def list(self, server_id: int) -> Items[m.Ip]:
        """The addresses of a server, v4 and v6. Scope ``servers:read``. Expensive on some deployments. Raises ``NotFound``."""
        return self._caller.items("list_server_ips", server_id)

    def quote(self, server_id: int) -> m.IpQuote:
        """What one more address costs now and per month. Scope ``servers:read``. Expensive on some deployments. Raises ``NotFound``."""
        found: m.IpQuote = self._caller.call("get_server_ip_quote", server_id)
        return found

    def add(self, server_id: int, *, count: Given[Literal[1]] = UNSET, idempotency_key: str | None = None) -> m.IpAdded:
        """Buys one IPv4 address. It appears in :meth:`list` later; the answer does not name it. Scope ``servers:order``. Expensive.

        ``count`` can only be 1 and is best left out. ``idempotency_key``: 16..128 characters, made when absent.
        Raises ``IpLimitReached``, ``InsufficientFunds`` (nothing charged), ``OperationInProgress``, ``NotFound``.
        """
        found: m.IpAdded = self._caller.call("add_server_ip", server_id, body=given(count=count), idempotency_key=idempotency_key)
        return found

    def delete(self, server_id: int, ip_id: int) -> m.IpDeleted:
        """Releases an additional address, without refund. Scope ``servers:order``. Never repeated by itself.

        Raises ``Conflict`` for the primary address, ``NotFound``.
        """
        found: m.IpDeleted = self._caller.call("delete_server_ip", server_id, ip_id)
        return found

    def set_ptr(self, server_id: int, ip_id: int, *, domain: str | None) -> m.PtrRecord:
        """Sets the reverse DNS name of an address; ``None`` or an empty text removes it. Scope ``servers:manage``.

        ``domain``: a host name of at least two labels. Never repeated by itself. Raises ``UpstreamRejected``, ``NotFound``.
        """
        # An empty text removes the record everywhere; null is the younger spelling.
        found: m.PtrRecord = self._caller.call("set_server_ip_ptr", server_id, ip_id, body={"domain": domain or ""})
        return found
