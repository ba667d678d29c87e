"""What a preview says of servers that a state has, or that a program names alike; and what a finished
order is taken for.
"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.planning.paid_reads import Remark, remark
from pulumi_hosting.resources.server_fields import ServerState
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.ownership import Ownership
from tests.resources.conftest import GOOD, ResourceHarness

DAY = 86400


def remarks(harness: ResourceHarness, state: ServerState, **context: Any) -> list[str]:
    return SERVER.remarks(harness.context(**context), state)


def test_a_healthy_server_has_no_remark(harness: ResourceHarness) -> None:
    assert remarks(harness, harness.order()) == []


@pytest.mark.parametrize("status", ["terminated", "cancelled"])
def test_a_server_that_has_ended_is_named_before_a_new_one_is_ordered(
    harness: ResourceHarness, status: str
) -> None:
    harness.account.variant(deleted_servers="listed")
    state = harness.order()
    harness.control("PATCH", f"/servers/{state.id}", {"status": status})
    due = (state.next_due_at or "")[:10]
    assert remarks(harness, state) == [
        (
            f"server 20001 (web-1) was {status} (last due {due}), and the state still has it. Next: pulumi "
            "up --refresh, to order a new one"
        )
    ]
    harness.messages.clear()
    assert apply.read(harness.context(), SERVER, state) is None
    assert harness.messages == [
        (
            f"server 20001 (web-1) was {status} (last due {due}); a new one is ordered if the program "
            "declares it"
        )
    ]


def test_a_server_of_which_nothing_is_left_is_named_with_its_last_due_date(harness: ResourceHarness) -> None:
    state = harness.order()
    harness.control("PATCH", f"/servers/{state.id}", {"status": "terminated"})
    (said,) = remarks(harness, state)
    assert said.startswith(
        f"server 20001 (web-1) is gone from the account (last due {(state.next_due_at or '')[:10]})"
    )


def paid(harness: ResourceHarness, state: ServerState, **context: Any) -> Remark:
    return remark(harness.context(**context), SERVER, state, {})


@pytest.mark.parametrize(("days", "word"), [(10, None), (25, "Urgent"), (29.5, "Last day")])
def test_a_server_that_will_not_be_renewed_is_named_before_its_end(
    harness: ResourceHarness, days: float, word: str | None
) -> None:
    state = harness.order({**GOOD, "auto_renew": False})
    harness.control("POST", "/clock", {"advance": days * DAY})
    due = (state.next_due_at or "")[:10]
    line = f"{word}: server 20001 (web-1) is paid until {due} and does not renew itself. "
    reached = (datetime.fromisoformat(due) + timedelta(days=1)).date()
    step = f"Next: set auto_renew, or pulumi-hosting action server-renew --id 20001 --until {reached}"
    expected = None if word is None else line + step
    assert paid(harness, state) == Remark("", expected)


def test_what_this_run_sets_is_not_asked_for(harness: ResourceHarness) -> None:
    state = harness.order({**GOOD, "auto_renew": False})
    harness.control("POST", "/clock", {"advance": 25 * DAY})
    assert remark(harness.context(), SERVER, state, {}).line is not None
    assert remark(harness.context(), SERVER, state, {"auto_renew": True}) == Remark()
    assert remark(harness.context(), SERVER, state, {"keep_paid": "7d"}) == Remark()


def test_a_suspended_server_is_over_whatever_the_state_says(harness: ResourceHarness) -> None:
    state = harness.order()
    harness.control("PATCH", f"/servers/{state.id}", {"status": "suspended"})
    found = paid(harness, state)
    assert found.ended == "suspended"
    assert str(found.line).startswith("server 20001 (web-1) is suspended, though it is paid until ")
    harness.control("POST", "/clock", {"advance": 30.5 * DAY})
    assert "is suspended (it was paid until " in str(paid(harness, state).line)
    harness.control("PATCH", f"/servers/{state.id}", {"status": "active"})
    assert paid(harness, state.model_copy(update={"status": "suspended"})) == Remark()


def test_a_balance_that_does_not_cover_what_is_due_is_named(harness: ResourceHarness) -> None:
    first = harness.order()
    second = harness.order({**GOOD, "name": "web-2"}, identity="pulumi:t/dev/server/web-2")
    harness.control("PATCH", "/account", {"balance": "7.50"})
    assert paid(harness, first) == Remark()
    assert harness.transports[-1].sent == ["GET /v1/servers"]
    harness.control("POST", "/clock", {"advance": 25 * DAY})
    run = harness.context()
    both = [remark(run, SERVER, state, {}).line for state in (first, second)]
    due = "does not cover the 10.00 EUR that are due by then. Next: "
    due += "pulumi-hosting action balance-topup --amount 10.00 --balance-below 10.00 --gateway card"
    assert [str(line)[-len(due) :] for line in both] == [due, due]
    asked = harness.transports[-1].sent
    parts = ("balance", "balance/topup-info", "domains", "invoices", "servers")
    assert sorted(asked) == [f"GET /v1/{part}" for part in parts]
    harness.control("PATCH", "/account", {"balance": "10.00"})
    assert paid(harness, second) == Remark()


@pytest.mark.parametrize(
    ("refund", "credit"),
    [
        (None, ""),
        ({"amount": "4.83", "refundable": True}, ", and about 4.83 EUR is credited"),
        ({"amount": "4.83", "refundable": False}, ", and nothing is credited"),
    ],
)
def test_a_replacement_says_what_becomes_of_the_present_server(
    harness: ResourceHarness, refund: dict[str, Any] | None, credit: str
) -> None:
    state = harness.order()
    fault = {"patch": refund} if refund else {"status": 403, "code": "insufficient_scope"}
    harness.fault(fault, method="GET", path="/refund-quote$")
    said = SERVER.consequence(
        harness.context(), state, frozenset({"name", "os", "tariff_id"}), ("tariff_id", "os")
    )
    assert said == (
        f"os and tariff_id by replacing server {state.id}: unless it is retained, it is deleted and ITS DISK "
        f"IS ERASED{credit}"
    )
    assert SERVER.consequence(None, state, frozenset({"name"}), ()) is None
    assert str(SERVER.consequence(None, state, frozenset(), ("os",))).endswith("ITS DISK IS ERASED")


def test_an_account_that_cannot_be_read_is_no_remark_and_is_asked_once(harness: ResourceHarness) -> None:
    state = harness.order()
    harness.fault({"status": 403, "code": "insufficient_scope"}, method="GET", times=9)
    context = harness.context()
    assert SERVER.remarks(context, state) == SERVER.remarks(context, state) == []
    assert harness.transports[-1].sent.count("GET /v1/servers") == 1


def test_two_servers_of_one_program_with_one_name_are_remarked_on(harness: ResourceHarness) -> None:
    ownership = Ownership()
    for name in ("a", "b", "a"):
        SERVER.validate(
            harness.context(identity=f"pulumi:t/dev/server/{name}", ownership=ownership),
            GOOD,
            frozenset(GOOD),
        )
    said = (
        "another server of this program is named 'web-1' too ({}): each of them is a server of its own. "
        "Next: give one of them another"
    )
    assert harness.messages == [f"{said.format(other)} name, unless that is meant" for other in ("a", "b")]


def test_a_server_that_another_resource_of_the_program_has_is_remarked_on_unless_it_is_renamed(
    harness: ResourceHarness,
) -> None:
    state = harness.order(identity="pulumi:t/dev/server/a")
    ownership = Ownership()
    ownership.add("pulumi:t/dev/server/a", state.id)
    SERVER.validate(
        harness.context(identity="pulumi:t/dev/server/b", ownership=ownership), GOOD, frozenset(GOOD)
    )
    assert any("is named 'web-1' too (a)" in line for line in harness.messages)
    harness.messages.clear()
    SERVER.validate(
        harness.context(identity="pulumi:t/dev/server/a", ownership=ownership),
        {**GOOD, "name": "web-9"},
        frozenset({"name"}),
    )
    SERVER.validate(
        harness.context(identity="pulumi:t/dev/server/b", ownership=ownership), GOOD, frozenset(GOOD)
    )
    assert harness.messages == []


@pytest.mark.parametrize("status", ["provisioning", "active", "cancelled", "invoice_created"])
def test_only_an_order_that_is_under_way_counts_as_a_server_to_come(
    harness: ResourceHarness, status: str
) -> None:
    order = {
        "invoice_id": 40001,
        "status": status,
        "server_id": 20001,
        "server_name": "web-1",
        "tariff_id": 1,
    }
    harness.fault({"patch": {"data": [order]}}, path="^/orders$", method="GET", times=9)
    found = SERVER.find(harness.context(name_is_identity=True), check(SERVER, GOOD).inputs)
    assert (found is not None) == (status == "provisioning")
