"""Invoices: reading them, paying them from the balance, links to pay them elsewhere."""

from pulumi_hosting.emulator import catalog, dialects, faults, ledger, pdf, settling, views
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.handlers.balance import PAYMENT_PAGE
from pulumi_hosting.emulator.wire import Answer, Refusal, invalid
from pulumi_hosting.emulator.wire import money as text
from pulumi_hosting.emulator.world import Invoice


def list_invoices(call: Call) -> Answer:
    types = None if call.query.type is None else dialects.invoice_types_meant(call.query.type)
    rows = (
        row
        for row in call.world.newest(Invoice, call.account.id)
        if (call.query.status is None or row.status == call.query.status) and (types is None or row.type in types)
    )
    return call.page(rows, lambda row: views.invoice(row, call.world))


def get_invoice(call: Call) -> Answer:
    return Answer(200, views.invoice(call.own(Invoice, call.ids["invoice_id"]), call.world))


def get_invoice_pdf(call: Call) -> Answer:
    invoice = call.own(Invoice, call.ids["invoice_id"])
    headers = {"Content-Type": "application/pdf", "Content-Disposition": f'attachment; filename="invoice-{invoice.id}.pdf"'}
    return Answer(200, pdf.invoice(views.invoice(invoice, call.world), call.account), headers)


def _unpaid(call: Call) -> Invoice:
    invoice = call.own(Invoice, call.ids["invoice_id"])
    if invoice.status != "not_paid":
        raise Refusal("conflict", f"the invoice is {invoice.status}", details={"status": invoice.status})
    return invoice


def pay_invoice(call: Call) -> Answer:
    invoice = _unpaid(call)
    if invoice.type == "topup":
        # A top-up moves money onto the balance; paying it from there would move nothing.
        raise Refusal("conflict", "a top-up is paid through its gateway")
    ledger.require(call.account, invoice.amount)
    if "refunded" in call.fault:
        if not call.fake:
            ledger.move(
                call.world, call.account, -invoice.amount, "payment", invoice.description, call.now, call.cause, invoice_id=invoice.id
            )
            ledger.move(
                call.world, call.account, invoice.amount, "refund", invoice.description, call.now, call.cause, invoice_id=invoice.id
            )
        raise faults.refusal(call.fault, "refunded")
    after = call.balance_after(invoice.amount)
    if not call.fake:
        ledger.pay(call.world, call.account, invoice, call.now, call.cause)
        after = call.account.balance
        settling.deliver(call.world, invoice, call.now, call.core.provisioning_delay)
    return Answer(
        200,
        {
            "invoice_id": invoice.id,
            "status": "paid",
            "amount": text(invoice.amount),
            "currency": call.account.currency,
            "balance_after": text(after),
        },
    )


def create_invoice_payment_link(call: Call) -> Answer:
    invoice = _unpaid(call)
    gateway = call.body.gateway
    if gateway is not None and gateway not in catalog.GATEWAYS:
        raise invalid(gateway="not_allowed")
    if gateway is None:
        gateway = invoice.gateway if invoice.gateway in catalog.GATEWAYS else catalog.GATEWAYS[0]
    row = call.draft(invoice)
    row.gateway = gateway
    return Answer(
        200,
        {
            "invoice_id": invoice.id,
            "payment_url": f"{PAYMENT_PAGE}/{'sandbox' if call.fake else gateway}/{invoice.id}",
            "gateway": gateway,
        },
    )
