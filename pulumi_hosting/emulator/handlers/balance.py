"""The account, its balance, its movements, top-ups."""

from decimal import Decimal

from pulumi_hosting.emulator import catalog, ledger, money, views
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.wire import Answer, invalid
from pulumi_hosting.emulator.wire import money as text
from pulumi_hosting.emulator.world import Movement

PAYMENT_PAGE = "https://pay.hosting.example"
UNPAID_FOR_SECONDS = 3 * 86400


def get_account(call: Call) -> Answer:
    return Answer(200, views.account(call.account))


def get_balance(call: Call) -> Answer:
    return Answer(200, money.balance_view(call.world, call.account, call.now))


def list_transactions(call: Call) -> Answer:
    direction = call.query.direction
    since = call.query.since.timestamp() if call.query.since else None
    until = call.query.until.timestamp() if call.query.until else None
    rows = (
        row
        for row in call.world.newest(Movement, call.account.id)
        if (direction is None or row.direction == direction)
        and (since is None or row.at >= since)
        # `until` is inclusive like `since`: the document leaves it open.
        and (until is None or row.at <= until)
    )
    return call.page(rows, lambda row: views.transaction(row, call.account.currency))


def get_topup_info(call: Call) -> Answer:
    return Answer(
        200,
        {
            "currency": call.account.currency,
            "min": text(catalog.TOPUP_MIN),
            "max": text(catalog.TOPUP_MAX),
            "first_topup_bonus_percent": float(catalog.FIRST_TOPUP_BONUS_PERCENT),
            "first_topup_eligible": not call.account.topped_up,
            "gateways": list(catalog.GATEWAYS),
        },
    )


def create_topup(call: Call) -> Answer:
    amount: Decimal = call.body.amount
    if not catalog.TOPUP_MIN <= amount <= catalog.TOPUP_MAX:
        raise invalid(amount="out_of_range")
    if call.body.gateway not in catalog.GATEWAYS:
        raise invalid(gateway="not_allowed")
    if call.fake:
        # The number of an invoice that exists for nobody.
        number = 9_000_000_000 + call.world.count("id:fake")
    else:
        number = ledger.new_invoice(
            call.world,
            call.account,
            "topup",
            amount,
            "Top-up of the balance",
            call.now,
            gateway=call.body.gateway,
            due_at=call.now + UNPAID_FOR_SECONDS,
        ).id
    return Answer(
        201,
        {
            "invoice_id": number,
            "payment_url": f"{PAYMENT_PAGE}/{'sandbox' if call.fake else call.body.gateway}/{number}",
            "amount": text(amount),
            "currency": call.account.currency,
            "gateway": call.body.gateway,
        },
    )
