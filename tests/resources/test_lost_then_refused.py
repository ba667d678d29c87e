"""An attempt that was lost, then refusals that decide nothing: the account is looked at, and no other key
is tried.
"""

from typing import Any

import pytest

from pulumi_hosting.session.errors import ResourceError
from tests.resources.actions import do
from tests.resources.conftest import ResourceHarness

FAILS: list[dict[str, Any]] = [
    {"status": 503, "code": "temporarily_unavailable"},
    {"status": 504, "code": "upstream_timeout"},
    {"status": 401, "code": "invalid_token"},
    {"status": 409, "code": "idempotency_in_progress", "retry_after": 1000},
]


def debits(harness: ResourceHarness) -> int:
    return sum(1 for row in harness.account.ledger() if row["direction"] == "debit")


@pytest.mark.parametrize("lost", [{"drop": "before"}, {"drop": "after"}], ids=str)
@pytest.mark.parametrize("then", FAILS, ids=lambda fault: str(fault["status"]))
def test_an_order_is_not_sent_with_another_key(
    harness: ResourceHarness, lost: dict[str, Any], then: dict[str, Any]
) -> None:
    harness.fault(lost)
    harness.fault(then, after=1, times=99)
    with pytest.raises(
        ResourceError,
        match=r"whether the order of server 'web-1' was carried out is not known.*Next: run "
        r"again",
    ):
        harness.order()
    keys = {row["headers"]["idempotency-key"] for row in _posts(harness, "/servers")}
    assert len(keys) == 1
    harness.control("DELETE", "/faults")
    harness.order()
    assert len(harness.living) == 1
    assert debits(harness) == 1


@pytest.mark.parametrize("then", FAILS, ids=lambda fault: str(fault["status"]))
def test_a_renewal_that_shows_on_the_account_is_done_and_one_that_does_not_is_not_sent_with_another_key(
    harness: ResourceHarness, then: dict[str, Any]
) -> None:
    for lost in ({"drop": "after"}, {"drop": "before"}):
        harness.control("POST", "/reset", {})
        harness.control("DELETE", "/faults")
        id = harness.order().id
        harness.fault(lost, path="renew$")
        harness.fault(then, path="renew$", after=1, times=99)
        raw = {"id": id, "until": _in_days(harness, 40)}

        if lost == {"drop": "after"}:
            do(harness, "server_renew", raw)
        else:
            with pytest.raises(ResourceError, match="is not known"):
                do(harness, "server_renew", raw)
        harness.control("DELETE", "/faults")
        assert debits(harness) == (2 if lost == {"drop": "after"} else 1)


def _posts(harness: ResourceHarness, path: str) -> list[dict[str, Any]]:
    found: Any = harness.control("GET", "/requests")
    rows = found["data"] if isinstance(found, dict) else found
    posts = [row for row in rows if row["method"] == "POST" and row["path"] == path]
    return [
        {**row, "headers": {name.lower(): value for name, value in row["headers"].items()}} for row in posts
    ]


def _in_days(harness: ResourceHarness, days: int) -> str:
    from datetime import timedelta

    return (harness.context().client.service_now() + timedelta(days=days)).isoformat()
