"""An attempt that was lost, then refusals that decide nothing: the account is looked at, and no other key is tried."""

from typing import Any

import pytest

from pulumi_hosting.session.errors import ResourceError
from tests.resources.conftest import House
from tests.resources.test_actions import do

FAILS: list[dict[str, Any]] = [
    {"status": 503, "code": "temporarily_unavailable"},
    {"status": 504, "code": "upstream_timeout"},
    {"status": 401, "code": "invalid_token"},
    {"status": 409, "code": "idempotency_in_progress", "retry_after": 1000},
]


def debits(house: House) -> int:
    return sum(1 for row in house.control.ledger() if row["direction"] == "debit")


@pytest.mark.parametrize("lost", [{"drop": "before"}, {"drop": "after"}], ids=str)
@pytest.mark.parametrize("then", FAILS, ids=lambda fault: str(fault["status"]))
def test_an_order_is_not_sent_with_another_key(house: House, lost: dict[str, Any], then: dict[str, Any]) -> None:
    house.arm(lost)
    house.arm(then, after=1, times=99)
    with pytest.raises(ResourceError, match=r"whether the order was carried out is not known.*Next: run again"):
        house.order()
    keys = {row["headers"]["idempotency-key"] for row in _posts(house, "/servers")}
    assert len(keys) == 1
    house.control("DELETE", "/faults")
    house.order()
    assert len(house.living) == 1
    assert debits(house) == 1


@pytest.mark.parametrize("then", FAILS, ids=lambda fault: str(fault["status"]))
def test_a_renewal_that_shows_on_the_account_is_done_and_one_that_does_not_is_not_sent_with_another_key(
    house: House, then: dict[str, Any]
) -> None:
    for lost in ({"drop": "after"}, {"drop": "before"}):
        house.control("POST", "/reset", {})
        house.control("DELETE", "/faults")
        id = house.order().id
        house.arm(lost, path="renew$")
        house.arm(then, path="renew$", after=1, times=99)
        raw = {"id": id, "until": _in_days(house, 40)}

        if lost == {"drop": "after"}:
            do(house, "server_renew", raw)
        else:
            with pytest.raises(ResourceError, match="is not known"):
                do(house, "server_renew", raw)
        house.control("DELETE", "/faults")
        assert debits(house) == (2 if lost == {"drop": "after"} else 1)


def _posts(house: House, path: str) -> list[dict[str, Any]]:
    found: Any = house.control("GET", "/requests")
    rows = found["data"] if isinstance(found, dict) else found
    posts = [row for row in rows if row["method"] == "POST" and row["path"] == path]
    return [{**row, "headers": {name.lower(): value for name, value in row["headers"].items()}} for row in posts]


def _in_days(house: House, days: int) -> str:
    from datetime import timedelta

    return (house.context().client.service_now() + timedelta(days=days)).isoformat()
