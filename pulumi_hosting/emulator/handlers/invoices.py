"""Invoices: list, read, PDF, pay from the balance, payment links; top-ups, which are invoices too."""

import re

from pulumi_hosting.emulator import dialects, faults, fulfilment, ledger, price_list
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import View, format_money
from pulumi_hosting.emulator.messages import Answer, Refusal, invalid
from pulumi_hosting.emulator.rows import AccountRow, InvoiceRow

PAYMENT_PAGE = "https://pay.hosting.example"


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
    return Answer(200, _pdf(call.view(invoice), call.account), headers)


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


# --- top-ups ----------------------------------------------------------------------------------------------


def get_topup_info(call: Call) -> Answer:
    view = {
        "currency": call.account.currency,
        "min": format_money(price_list.TOPUP_MIN),
        "max": format_money(price_list.TOPUP_MAX),
        "first_topup_bonus_percent": float(price_list.FIRST_TOPUP_BONUS_PERCENT),
        "first_topup_eligible": not call.account.topped_up,
        "gateways": list(price_list.GATEWAYS),
    }
    return Answer(200, view)


def create_topup(call: Call) -> Answer:
    amount, gateway = call.body.amount, call.body.gateway
    if not price_list.TOPUP_MIN <= amount <= price_list.TOPUP_MAX:
        raise invalid(amount="out_of_range")
    if gateway not in price_list.GATEWAYS:
        raise invalid(gateway="not_allowed")
    if call.simulated:
        # The id of an invoice that does not exist.
        number = 9_000_000_000 + call.store.count("id:fake")
    else:
        due_at, words = call.now + ledger.UNPAID_SECONDS, "Top-up of the balance"
        number = ledger.new_invoice(
            call.store, call.account, "topup", amount, words, gateway=gateway, due_at=due_at
        ).id
    return call.answer(201, amount=amount, **_payment_link(call, number, gateway))


def _payment_link(call: Call, invoice_id: int, gateway: str) -> dict[str, object]:
    """The page on which an invoice is paid."""
    page = f"{PAYMENT_PAGE}/{'sandbox' if call.simulated else gateway}/{invoice_id}"
    return {"invoice_id": invoice_id, "payment_url": page, "gateway": gateway}


# --- the PDF of an invoice: one page of text ----------------------------------------------------------------


def _pdf(view: View, account: AccountRow) -> bytes:
    """``view`` is the invoice as the API shows it. Characters outside Latin-1 become question marks."""
    lines = [
        f"Invoice {view['id']}",
        f"Account: {account.login} <{account.email}>",
        f"Status: {view['status']}",
        f"Type: {view['type']}",
        f"Created: {view['created_at']}",
        f"Paid: {view['paid_at'] or '-'}",
        *(f"{item['description']}: {item['amount']} {view['currency']}" for item in view["items"]),
        f"Total: {view['amount']} {view['currency']}",
    ]
    text = b"BT /F1 11 Tf 56 780 Td 16 TL %b ET" % b" ".join(b"(%b) Tj T*" % _escaped(line) for line in lines)
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] "
        b"/Resources << /Font << /F1 %b >> >> /Contents 4 0 R >>" % font,
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(text), text),
    )
    pdf, places = b"%PDF-1.4\n", b"0000000000 65535 f \n"
    for number, content in enumerate(objects, 1):
        places += b"%010d 00000 n \n" % len(pdf)
        pdf += b"%d 0 obj %b endobj\n" % (number, content)
    count = len(objects) + 1
    end = b"xref\n0 %d\n%btrailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    return pdf + end % (count, places, count, len(pdf))


def _escaped(line: str) -> bytes:
    return re.sub(rb"([\\()])", rb"\\\1", line.encode("latin-1", "replace"))
