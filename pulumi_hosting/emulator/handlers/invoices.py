"""Invoices: list, read, PDF, pay from the balance, payment links."""

from pulumi_hosting.emulator import dialects, faults, fulfilment, ledger, pdf, price_list
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.handlers.balance import _payment_link
from pulumi_hosting.emulator.messages import Answer, Refusal, invalid
from pulumi_hosting.emulator.rows import InvoiceRow


def list_invoices(call: Call) -> Answer:
    types = None if call.query.type is None else dialects.invoice_types_meant(call.query.type)
    rows = (
        row
        for row in call.store.newest(InvoiceRow, call.account.id)
        if (call.query.status is None or row.status == call.query.status)
        and (types is None or row.type in types)
    )
    return call.page(rows)


def get_invoice(call: Call) -> Answer:
    return Answer(200, call.view(call.own(InvoiceRow, call.ids["invoice_id"])))


def get_invoice_pdf(call: Call) -> Answer:
    invoice = call.own(InvoiceRow, call.ids["invoice_id"])
    headers = {
        "Content-Type": "application/pdf",
        "Content-Disposition": f'attachment; filename="invoice-{invoice.id}.pdf"',
    }
    return Answer(200, pdf.invoice(call.view(invoice), call.account), headers)


def _unpaid(call: Call) -> InvoiceRow:
    invoice = call.own(InvoiceRow, call.ids["invoice_id"])
    if invoice.status != "not_paid":
        raise Refusal("conflict", f"the invoice is {invoice.status}", details={"status": invoice.status})
    return invoice


def pay_invoice(call: Call) -> Answer:
    invoice = _unpaid(call)
    if invoice.type == "topup":
        # A top-up raises the balance; paying it from the balance would do nothing.
        raise Refusal("conflict", "a top-up is paid through its gateway")
    ledger.require(call.account, invoice.amount)
    if "refunded" in call.fault:
        if not call.simulated:
            account, words = call.account, invoice.description
            for signed, type in ((-invoice.amount, "payment"), (invoice.amount, "refund")):
                ledger.move(call.store, account, signed, type, words, call.cause, invoice_id=invoice.id)
        raise faults.refusal(call.fault, "refunded")
    if not call.simulated:
        ledger.pay(call.store, invoice, call.cause)
        fulfilment.deliver(call.store, invoice)
    after = call.balance_after(invoice.amount)
    return call.answer(200, invoice, invoice_id=invoice.id, status="paid", balance_after=after)


def create_invoice_payment_link(call: Call) -> Answer:
    invoice = _unpaid(call)
    gateway = call.body.gateway
    if gateway is not None and gateway not in price_list.GATEWAYS:
        raise invalid(gateway="not_allowed")
    if gateway is None:
        gateway = invoice.gateway if invoice.gateway in price_list.GATEWAYS else price_list.GATEWAYS[0]
    call.draft(invoice).gateway = gateway
    return Answer(200, _payment_link(call, invoice.id, gateway))
