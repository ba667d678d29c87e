"""Invoices (API document, "Invoices")."""

from collections.abc import Mapping

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations.operation import Operation

GROUPS: Mapping[str, str] = {"invoices": 'Invoices (API document, "Invoices").'}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "list_invoices",
        "GET /invoices",
        "invoices.list",
        "Invoices, newest first",
        {200: m.Page[m.Invoice]},
        ("invoices:read",),
        query=m.InvoiceListQuery,
    ),
    Operation(
        "get_invoice",
        "GET /invoices/{invoice_id}",
        "invoices.get",
        "One invoice",
        {200: m.Invoice},
        ("invoices:read",),
    ),
    Operation(
        "get_invoice_pdf",
        "GET /invoices/{invoice_id}/pdf",
        "invoices.pdf",
        "One invoice as PDF",
        {200: bytes},
        ("invoices:read",),
        expensive=True,
    ),
    Operation(
        "pay_invoice",
        "POST /invoices/{invoice_id}/pay",
        "invoices.pay",
        "Pay an invoice from the balance",
        {200: m.PayInvoiceResult},
        ("invoices:pay",),
        is_keyed=True,
        codes=("insufficient_funds", "conflict"),
        description="The balance is charged at once. With ``InsufficientFunds`` nothing changes.",
    ),
    Operation(
        "create_invoice_payment_link",
        "POST /invoices/{invoice_id}/payment-link",
        "invoices.payment_link",
        "A link to pay an invoice through a gateway",
        {200: m.PaymentLink},
        ("invoices:pay",),
        request=m.PaymentLinkRequest,
        body_optional=True,
        codes=("conflict",),
    ),
)
