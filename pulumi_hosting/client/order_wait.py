"""Waiting for the server of an order (API document, "Orders")."""

from collections.abc import Callable

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import BY_ID
from pulumi_hosting.client.exceptions import OrderFailed, WaitTimeout
from pulumi_hosting.client.service_base import Service


class OrderWait(Service):
    """The part of ``client.orders`` that is more than one call."""

    def wait(
        self,
        order: int | m.Order | m.ServerCreated,
        *,
        timeout: float = 600.0,
        poll_interval: float = 10.0,
        on_wait: Callable[[m.Order], None] | None = None,
    ) -> m.Server:
        """The server of an order, as soon as it exists.

            server = client.orders.wait(client.servers.create(tariff_id=1, os="debian-12"))

        The order is read again after 0.5 s, 1 s, 2 s and so on, at most ``poll_interval``; these reads yield
        to other requests at the rate limit. A wait changes nothing: it may be ended and begun again.

        Scope ``servers:read``. Raises ``OrderFailed`` when the order has failed or was cancelled, and its
        charge was returned; ``WaitTimeout`` when ``timeout`` is over, or when the invoice of the order is
        not paid yet; ``NotFound``, and what the calls raise.

        :param order: Number of the invoice, or what ``servers.create`` gave back. A ``ServerCreated`` is
            there already: nothing is asked.
        :param timeout: Seconds to wait for the server.
        :param poll_interval: Seconds between two reads at most.
        :param on_wait: Called with the order before each pause, to show progress.
        """
        if isinstance(order, m.ServerCreated):
            return order.server
        invoice_id = order.invoice_id if isinstance(order, m.Order) else order
        poller = self._caller.poller(timeout, poll_interval)
        while True:
            found: m.Order = self._caller.call(BY_ID["get_order"], invoice_id)
            if (server_id := _server_of(found, invoice_id, timeout if poller.over else None)) is not None:
                server: m.Server = self._caller.call(BY_ID["get_server"], server_id)
                return server
            if on_wait is not None:
                on_wait(found)
            self._caller.sleep(poller.next)
            poller.paused()


def _server_of(order: m.Order, invoice_id: int, waited: float | None) -> int | None:
    """The id of its server, None while there is none. Raises when there will be none, and, if the wait is
    over, after how many seconds it ``waited``."""
    if order.is_failed:
        reason = f": {order.failure_reason}" if order.failure_reason else ""
        raise OrderFailed(
            f"order {invoice_id} ended as {order.status}{reason}; its charge was returned to the "
            f"balance. Next: order again with another idempotency_key",
            invoice_id=invoice_id,
            status=order.status,
        )
    if order.is_active and order.server_id is not None:
        return order.server_id
    if order.awaits_payment:
        raise WaitTimeout(
            f"order {invoice_id} is not paid. Next: client.invoices.pay({invoice_id})",
            str(invoice_id),
        )
    if waited is not None:
        raise WaitTimeout(
            f"order {invoice_id} is {order.status} after {waited:.0f} s. Next: wait on with "
            f"client.orders.wait({invoice_id}), do not order again",
            str(invoice_id),
        )
    return None
