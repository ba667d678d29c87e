"""``keep_paid`` in a playbook: a renewal of the task that declares the object, once for each date."""

from typing import Any

import pytest

from tests.ansible.in_process import Play
from tests.support.account import Account

DAY = 86400
SERVER = {"name": "web", "tariff_id": 1, "os": "debian-12", "auto_renew": False, "keep_paid": "7d"}
DOMAIN = {"name": "shop.com", "keep_paid": "30d"}


@pytest.mark.parametrize(
    ("module", "options", "date", "days"),
    [("server", SERVER, "next_due_at", 25), ("domain", DOMAIN, "expires_at", 340)],
)
def test_renewed_once_as_check_mode_says(
    account: Account, module: str, options: dict[str, Any], date: str, days: int
) -> None:
    bought = Play(account)(module, **options)
    assert Play(account)(module, **options)["changed"] is False
    account.advance(days * DAY)
    planned = Play(account, check_mode=True)
    predicted = planned(module, **options)
    assert planned(module, **options)["changed"] is False  # as after the first
    assert len(account.ledger()) == 1
    limited = Play(account, max_charge="1.00")(module, **options)
    assert limited["changed"] is False
    assert any("more than max_charge 1.00" in line for line in limited["warnings"])
    assert len(account.ledger()) == 1
    play = Play(account)
    done, again = play(module, **options), play(module, **options)
    assert (predicted["changed"], done["changed"], again["changed"]) == (True, True, False)
    assert predicted["charge"] == done["charge"]
    assert predicted["diff"] == done["diff"]
    assert done["diff"]["before"]["renewal"]["paid_until"] == bought[module][date]
    assert done[module][date] == again[module][date] > bought[module][date]
    assert Play(account)(module, **options)["changed"] is False
    assert [row["amount"] for row in account.ledger()][1] == done["charge"]["amount"]
    assert len(account.ledger()) == 2


def test_a_time_that_is_no_shorter_than_the_period_is_refused(account: Account) -> None:
    result = Play(account)("server", **{**SERVER, "keep_paid": "30d"})
    assert "30d is not shorter than one paid period, 30 days" in result["msg"]
    assert account.ledger() == []
