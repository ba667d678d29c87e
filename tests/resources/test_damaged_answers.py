"""Answers that cannot be read as a whole: what was bought is kept, what is readable is found, and nothing
is taken for absent.
"""

from typing import Any

import pytest

from pulumi_hosting.client.exceptions import HostingError, InvalidResponse
from pulumi_hosting.planning.check import check
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.errors import Failed
from tests.resources.conftest import GOOD, ResourceHarness


def debits(harness: ResourceHarness) -> int:
    return sum(1 for row in harness.account.ledger() if row["direction"] == "debit")


@pytest.mark.parametrize(
    "patch",
    [
        {"server": {"flags": {"suspended": None}}},
        {"server": {"name": None}},
        {"server": {"status": 7}},
        {"balance_after": 5},
        {"server": {"billing": {"recurring_amount": 1.5}}},
        {"charged": None},
    ],
    ids=str,
)
def test_an_order_whose_answer_is_damaged_is_kept(harness: ResourceHarness, patch: dict[str, Any]) -> None:
    harness.fault({"patch": patch})
    state = harness.order()
    assert [str(server["id"]) for server in harness.living] == [state.id]
    assert state.root_password is not None
    assert debits(harness) == 1


def test_an_order_whose_server_is_not_known_names_key_and_charge_and_is_found_again(
    harness: ResourceHarness,
) -> None:
    harness.fault({"patch": {"server": {"id": "x"}, "invoice_id": None}})
    with pytest.raises(
        Failed,
        match=r"whether the order of server 'web-1' was carried out is not known.*the same "
        r"request is repeated",
    ) as caught:
        harness.order()
    assert caught.value.idempotency_key
    state = harness.order()
    assert [str(server["id"]) for server in harness.living] == [state.id]
    assert debits(harness) == 1


def test_a_list_with_a_damaged_item_proves_no_absence_and_nothing_is_ordered(
    harness: ResourceHarness,
) -> None:
    harness.order()
    harness.fault({"patch": {"data": [{"id": 20001, "name": "web-2"}]}}, method="GET", times=9)
    with pytest.raises(InvalidResponse, match="item 20001 of the list could not be read"):
        harness.order({**GOOD, "name": "web-2"}, identity="pulumi:t/dev/server/web-2")
    harness.control("DELETE", "/faults")
    assert len(harness.living) == 1
    assert debits(harness) == 1


def test_a_readable_server_is_found_beside_a_damaged_one(harness: ResourceHarness) -> None:
    harness.order()
    context = harness.context()
    rows = harness.control("GET", "/objects")["servers"]
    assert len(rows) == 1
    page = [{"id": 5}, {"id": 20001, "name": "web-1", "status": "active"}]
    harness.fault({"patch": {"data": page}}, method="GET", times=9)
    inputs = check(SERVER, GOOD).inputs
    found = SERVER.find(context, inputs)
    assert found is not None
    assert found.id == "20001"
    with pytest.raises(InvalidResponse):
        list(SERVER.all(context))
    skipped: list[HostingError] = []
    context.skip_damaged = skipped.append
    assert [state.id for state in SERVER.all(context)] == ["20001"]
    assert "item 5" in str(skipped[0])


def test_a_tariff_without_stock_information_is_not_refused(
    harness: ResourceHarness,
) -> None:
    tariff = next(row for row in harness.context().client.catalog.tariffs() if row.id == 1).model_dump(
        mode="json"
    )
    tariff.pop("in_stock")
    harness.fault(
        {"patch": {"data": [{**tariff, "in_stock": None}]}}, path="^/catalog/tariffs$", method="GET", times=9
    )
    failures = SERVER.validate(harness.context(), check(SERVER, GOOD).inputs.given(), frozenset(GOOD))
    assert not failures
    assert any("does not say whether it is in stock" in line for line in harness.messages)


def test_a_password_that_another_task_of_the_run_received_is_not_reported_as_lost(
    harness: ResourceHarness,
) -> None:
    """Several hosts of a play order the same server: the advice to reset its password would be wrong."""
    shown = set[str]()

    def is_first(topic: str) -> bool:
        is_new = topic not in shown
        shown.add(topic)
        return is_new

    made = harness.order(is_first=is_first)
    again = harness.order(is_first=is_first)
    assert (again.id, bool(made.root_password), again.root_password) == (made.id, True, None)
    assert not any("was not shown" in line for line in harness.messages)
    harness.order()  # in another run, which received nothing
    assert any("was not shown to this run" in line for line in harness.messages)
    assert debits(harness) == 1


@pytest.mark.parametrize("keeps_secrets", [True, False])
def test_a_password_that_was_lost_with_its_answer_is_reported_with_the_remedy(
    harness: ResourceHarness, keeps_secrets: bool
) -> None:
    harness.fault({"drop": "after"})
    state = harness.order(keeps_secrets=keeps_secrets)
    assert state.root_password is None
    assert any(
        "was not shown to this run" in line and "action server-password --id" in line
        for line in harness.messages
    )
    assert debits(harness) == 1
