"""Invoices: list, read, PDF, pay from the balance, payment links."""

from pulumi_hosting.emulator import dialects, faults, fulfilment, ledger, pdf, price_list, serializers
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import format_money
from pulumi_hosting.emulator.handlers.balance import PAYMENT_PAGE
from pulumi_hosting.emulator.messages import ApiError, Response, invalid
from pulumi_hosting.emulator.rows import Invoice


def list_invoices(call: Call) -> Response:
    types = None if call.query.type is None else dialects.invoice_types_meant(call.query.type)
    rows = (
        row
        for row in call.store.newest(Invoice, call.account.id)
        if (call.query.status is None or row.status == call.query.status)
        and (types is None or row.type in types)
    )
    return call.page(rows, lambda row: serializers.invoice(row, call.store))


def get_invoice(call: Call) -> Response:
    return Response(200, serializers.invoice(call.own(Invoice, call.ids["invoice_id"]), call.store))


def get_invoice_pdf(call: Call) -> Response:
    invoice = call.own(Invoice, call.ids["invoice_id"])
    headers = {
        "Content-Type": "application/pdf",
        "Content-Disposition": f'attachment; filename="invoice-{invoice.id}.pdf"',
    }
    return Response(200, pdf.invoice(serializers.invoice(invoice, call.store), call.account), headers)


def _unpaid(call: Call) -> Invoice:
    invoice = call.own(Invoice, call.ids["invoice_id"])
    if invoice.status != "not_paid":
        raise ApiError("conflict", f"the invoice is {invoice.status}", details={"status": invoice.status})
    return invoice


def pay_invoice(call: Call) -> Response:
    invoice = _unpaid(call)
    if invoice.type == "topup":
        # A top-up raises the balance; paying it from the balance would do nothing.
        raise ApiError("conflict", "a top-up is paid through its gateway")
    ledger.require(call.account, invoice.amount)
    if "refunded" in call.fault:
        if not call.simulated:
            ledger.move(
                call.store,
                call.account,
                -invoice.amount,
                "payment",
                invoice.description,
                call.now,
                call.cause,
                invoice_id=invoice.id,
            )
            ledger.move(
                call.store,
                call.account,
                invoice.amount,
                "refund",
                invoice.description,
                call.now,
                call.cause,
                invoice_id=invoice.id,
            )
        raise faults.refusal(call.fault, "refunded")
    after = call.balance_after(invoice.amount)
    if not call.simulated:
        ledger.pay(call.store, call.account, invoice, call.now, call.cause)
        after = call.account.balance
        fulfilment.deliver(call.scheduler, invoice, call.now)
    return Response(
        200,
        {
            "invoice_id": invoice.id,
            "status": "paid",
            "amount": format_money(invoice.amount),
            "currency": call.account.currency,
            "balance_after": format_money(after),
        },
    )


def create_invoice_payment_link(call: Call) -> Response:
    invoice = _unpaid(call)
    gateway = call.body.gateway
    if gateway is not None and gateway not in price_list.GATEWAYS:
        raise invalid(gateway="not_allowed")
    if gateway is None:
        gateway = invoice.gateway if invoice.gateway in price_list.GATEWAYS else price_list.GATEWAYS[0]
    row = call.draft(invoice)
    row.gateway = gateway
    return Response(
        200,
        {
            "invoice_id": invoice.id,
            "payment_url": f"{PAYMENT_PAGE}/{'sandbox' if call.simulated else gateway}/{invoice.id}",
            "gateway": gateway,
        },
    )
