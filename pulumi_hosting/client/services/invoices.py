"""Invoices, and the server orders that they carry (API document, "Invoices", "Orders")."""

from typing import Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.client.results import UNSET, File, Given, Pages, given
from pulumi_hosting.client.services.base import Service

InvoiceStatus = Literal["not_paid", "paid", "cancelled", "refunded", "pending", "failed"]
InvoiceType = Literal[
    "topup",
    "vds_purchase",
    "vds_renewal",
    "ip_purchase",
    "domain_registration",
    "domain_renewal",
    "domain_transfer",
    "other",
    "vds_addon",
    "domain_purchase",
    "late_fee",
    "dedicated_purchase",
    "dedicated_renewal",
]


class InvoicesService(Service):
    """``client.invoices``"""

    def list(
        self,
        *,
        cursor: Given[str] = UNSET,
        limit: Given[int] = UNSET,
        status: Given[InvoiceStatus] = UNSET,
        type: Given[InvoiceType] = UNSET,
    ) -> Pages[m.Invoice]:
        """Invoices, newest first. Scope ``invoices:read``.

        Statuses ``pending`` and ``failed`` and the types from ``vds_addon`` on exist on some deployments only. ``limit``: items per page,
        1..100 (default 100). ``cursor``: start at that page.
        """
        return self._caller.pages("list_invoices", query=given(cursor=cursor, limit=limit, status=status, type=type))

    def get(self, invoice_id: int) -> m.Invoice:
        """One invoice with its items. Scope ``invoices:read``. Raises ``NotFound``."""
        found: m.Invoice = self._caller.call("get_invoice", invoice_id)
        return found

    def pdf(self, invoice_id: int) -> File:
        """The invoice as a PDF file. Scope ``invoices:read``. Expensive. Raises ``NotFound``."""
        found: File = self._caller.call("get_invoice_pdf", invoice_id)
        return found

    def pay(self, invoice_id: int, *, idempotency_key: str | None = None) -> m.PayInvoiceResult:
        """Pays an invoice from the balance, at once. Scope ``invoices:pay``.

        ``idempotency_key``: 16..128 characters, made when absent. Raises ``InsufficientFunds`` (nothing changed), ``Conflict``,
        ``NotFound``.
        """
        found: m.PayInvoiceResult = self._caller.call("pay_invoice", invoice_id, idempotency_key=idempotency_key)
        return found

    def payment_link(self, invoice_id: int, *, gateway: Given[str] = UNSET) -> m.PaymentLink:
        """A link to pay the invoice through a gateway; default the one it has. Scope ``invoices:pay``. Never repeated by itself.

        Raises ``Conflict``, ``NotFound``.
        """
        found: m.PaymentLink = self._caller.call("create_invoice_payment_link", invoice_id, body=given(gateway=gateway))
        return found


class OrdersService(Service):
    """``client.orders``"""

    def list(
        self, *, cursor: Given[str] = UNSET, limit: Given[int] = UNSET, status: Given[Literal["provisioning"]] = UNSET
    ) -> Pages[m.Order]:
        """Server orders that are still being created, newest first; finished ones are not in it. Scope ``servers:read``.

        ``limit``: items per page, 1..100 (default 100). ``cursor``: start at that page.
        """
        return self._caller.pages("list_orders", query=given(cursor=cursor, limit=limit, status=status))

    def get(self, invoice_id: int) -> m.Order:
        """One server order, finished ones too, by the id of its invoice. Scope ``servers:read``. Raises ``NotFound``."""
        found: m.Order = self._caller.call("get_order", invoice_id)
        return found
