"""The account, its balance, its movements, top-ups."""

from decimal import Decimal

from pulumi_hosting.emulator import ledger, price_list, pricing
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import format_money
from pulumi_hosting.emulator.messages import Answer, invalid
from pulumi_hosting.emulator.rows import MovementRow

PAYMENT_PAGE = "https://pay.hosting.example"


def get_account(call: Call) -> Answer:
    return Answer(200, call.view(call.account))


def get_balance(call: Call) -> Answer:
    return Answer(200, pricing.balance_view(call.store, call.account))


def list_transactions(call: Call) -> Answer:
    direction = call.query.direction
    since, until = (moment and moment.timestamp() for moment in (call.query.since, call.query.until))
    rows = (
        row
        for row in call.store.newest(MovementRow, call.account.id)
        if (direction is None or row.direction == direction)
        and (since is None or row.at >= since)
        # `until` is inclusive, as `since` is; the document does not say.
        and (until is None or row.at <= until)
    )
    return call.page(rows)


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
    amount: Decimal = call.body.amount
    gateway = call.body.gateway
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
