"""The account, its balance, its movements, top-ups."""

from decimal import Decimal

from pulumi_hosting.emulator import ledger, price_list, pricing, serializers
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import format_money
from pulumi_hosting.emulator.messages import Response, invalid
from pulumi_hosting.emulator.rows import Movement

PAYMENT_PAGE = "https://pay.hosting.example"
UNPAID_FOR_SECONDS = 3 * 86400


def get_account(call: Call) -> Response:
    return Response(200, serializers.account(call.account))


def get_balance(call: Call) -> Response:
    return Response(200, pricing.balance_view(call.store, call.account, call.now))


def list_transactions(call: Call) -> Response:
    direction = call.query.direction
    since = call.query.since.timestamp() if call.query.since else None
    until = call.query.until.timestamp() if call.query.until else None
    rows = (
        row
        for row in call.store.newest(Movement, call.account.id)
        if (direction is None or row.direction == direction)
        and (since is None or row.at >= since)
        # `until` is inclusive, as `since` is; the document does not say.
        and (until is None or row.at <= until)
    )
    return call.page(rows, lambda row: serializers.transaction(row, call.account.currency))


def get_topup_info(call: Call) -> Response:
    return Response(
        200,
        {
            "currency": call.account.currency,
            "min": format_money(price_list.TOPUP_MIN),
            "max": format_money(price_list.TOPUP_MAX),
            "first_topup_bonus_percent": float(price_list.FIRST_TOPUP_BONUS_PERCENT),
            "first_topup_eligible": not call.account.topped_up,
            "gateways": list(price_list.GATEWAYS),
        },
    )


def create_topup(call: Call) -> Response:
    amount: Decimal = call.body.amount
    if not price_list.TOPUP_MIN <= amount <= price_list.TOPUP_MAX:
        raise invalid(amount="out_of_range")
    if call.body.gateway not in price_list.GATEWAYS:
        raise invalid(gateway="not_allowed")
    if call.simulated:
        # The id of an invoice that does not exist.
        number = 9_000_000_000 + call.store.count("id:fake")
    else:
        number = ledger.new_invoice(
            call.store,
            call.account,
            "topup",
            amount,
            "Top-up of the balance",
            call.now,
            gateway=call.body.gateway,
            due_at=call.now + UNPAID_FOR_SECONDS,
        ).id
    return Response(
        201,
        {
            "invoice_id": number,
            "payment_url": f"{PAYMENT_PAGE}/{'sandbox' if call.simulated else call.body.gateway}/{number}",
            "amount": format_money(amount),
            "currency": call.account.currency,
            "gateway": call.body.gateway,
        },
    )
