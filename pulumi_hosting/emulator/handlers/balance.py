"""The account, its balance, its movements."""

from pulumi_hosting.emulator import pricing
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import Answer
from pulumi_hosting.emulator.rows import MovementRow


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
