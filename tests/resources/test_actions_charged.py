"""Actions that charge: killed, refused or cut off anywhere, they charge once."""

from datetime import timedelta
from typing import Any

import pytest

from pulumi_hosting.actions import ACTIONS, Failed, check
from pulumi_hosting.client.exceptions import (
    InsufficientFunds,
)
from pulumi_hosting.session.cost import Cost
from tests.resources.actions import do, one, sent
from tests.resources.charges import (
    CASES,
    READINGS,
    Case,
    charged,
    charges,
    client,
    due,
    each,
    expires,
    names,
    set_balance,
    text,
)
from tests.resources.conftest import KillingTransport, ProcessKilled, ResourceHarness


@each
def test_an_action_is_predicted_then_done_then_unchanged(any_dialect: ResourceHarness, case: Case) -> None:
    desired = case.desired(any_dialect, case.make(any_dialect))
    approved: list[Cost] = []
    predicted = do(any_dialect, case.kind, desired, dry_run=True, approve=approved.append)
    assert sent(any_dialect) == []
    result = do(any_dialect, case.kind, desired, approve=approved.append)
    assert predicted.changed
    assert result.changed
    assert predicted.cost is not None
    assert result.cost is not None
    assert predicted.cost.amount == result.cost.amount == charged(any_dialect, case)
    assert [cost.amount for cost in approved] == [result.cost.amount] * 2
    assert predicted.before == result.before
    assert set(one(predicted.after)) == set(one(result.after))
    for name, value in one(predicted.after).items():
        assert value in (None, one(result.after)[name]), name  # what is predicted is so
    again = do(any_dialect, case.kind, desired, approve=lambda cost: pytest.fail("nothing is charged"))
    assert (again.changed, again.cost, sent(any_dialect)) == (False, None, [])
    assert again.note
    assert set(one(again.after)) == set(one(result.after))
    assert charges(any_dialect, case) == 1


@each
@pytest.mark.parametrize(
    ("readings", "after"), [({}, False), *((readings, True) for readings in READINGS)], ids=names
)
def test_killed_anywhere_and_run_again_it_is_one_charge(
    harness: ResourceHarness, case: Case, readings: dict[str, Any], after: bool
) -> None:
    harness.account.variant(**readings)
    desired = case.desired(harness, case.make(harness))
    at = 0
    while True:
        transport = KillingTransport(at, after)
        try:
            do(harness, case.kind, desired, transport=transport)
        except ProcessKilled:
            at += 1
            continue
        break
    assert at > 1
    assert charges(harness, case) == 1
    assert do(harness, case.kind, desired).changed is False


@each
@pytest.mark.parametrize(
    "action",
    [
        {"drop": "after"},
        {"drop": "before"},
        {"truncate": 20},
        {"status": 503, "code": "temporarily_unavailable", "retry_after": 1},
        {"status": 504, "code": "upstream_timeout"},
    ],
    ids=lambda action: str(next(iter(action.values()))),
)
def test_a_cut_answer_is_asked_for_with_the_same_key(
    harness: ResourceHarness, case: Case, action: dict[str, Any]
) -> None:
    desired = case.desired(harness, case.make(harness))
    harness.fault(action, path=case.path)
    assert do(harness, case.kind, desired).changed
    assert charges(harness, case) == 1


@each
def test_after_a_lost_answer_the_account_shows_the_outcome(harness: ResourceHarness, case: Case) -> None:
    desired = case.desired(harness, case.make(harness))
    harness.fault({"drop": "after"}, path=case.path, times=50)
    result = do(harness, case.kind, desired)
    assert result.changed
    assert charges(harness, case) == 1
    harness.control("DELETE", "/faults")
    assert do(harness, case.kind, desired).changed is False


@each
def test_a_request_that_never_arrives_is_repeated_by_the_next_run(
    harness: ResourceHarness, case: Case
) -> None:
    desired = case.desired(harness, case.make(harness))
    harness.fault({"drop": "before"}, path=case.path, times=50)
    with pytest.raises(
        Failed,
        match=r"was carried out is not known; it does not show yet. Next: run again: "
        r"the same request is repeated",
    ):
        do(harness, case.kind, desired)
    harness.control("DELETE", "/faults")
    assert do(harness, case.kind, desired).changed
    assert charges(harness, case) == 1


@each
@pytest.mark.parametrize("readings", READINGS, ids=names)
def test_after_a_top_up_a_purchase_refused_for_lack_of_money_works_once(
    harness: ResourceHarness, case: Case, readings: dict[str, Any]
) -> None:
    harness.account.variant(**readings)
    desired = case.desired(harness, case.make(harness))
    set_balance(harness, "0.50")
    for _ in range(3):
        with pytest.raises(InsufficientFunds, match="top up the balance, then run the same command again"):
            do(harness, case.kind, desired)
    set_balance(harness, "100.00")
    assert do(harness, case.kind, desired).changed
    assert do(harness, case.kind, desired).changed is False
    assert charges(harness, case) == 1


@each
def test_a_refusal_without_figures_is_compared_with_the_price(harness: ResourceHarness, case: Case) -> None:
    desired = case.desired(harness, case.make(harness))
    set_balance(harness, "0.50")
    harness.fault({"patch": {"error": {"details": {"required": None}}}}, path=case.path, times=9)
    with pytest.raises(InsufficientFunds):
        do(harness, case.kind, desired)
    set_balance(harness, "100.00")
    assert do(harness, case.kind, desired).changed
    assert charges(harness, case) == 1


def debits(harness: ResourceHarness, case: Case) -> int:
    rows = [row for row in harness.account.ledger() if row["operation"] == case.operation]
    return sum(row["direction"] == "debit" for row in rows)


@each
@pytest.mark.parametrize("readings", READINGS, ids=names)
def test_a_refunded_failure_is_no_charge_and_the_next_key_is_sent(
    harness: ResourceHarness, case: Case, readings: dict[str, Any]
) -> None:
    harness.account.variant(**readings)
    desired = case.desired(harness, case.make(harness))
    harness.fault({"refunded": 502, "code": "upstream_error"}, path=case.path)
    assert do(harness, case.kind, desired).changed
    assert (charges(harness, case), debits(harness, case)) == (1, 2)
    assert do(harness, case.kind, desired).changed is False
    assert (charges(harness, case), debits(harness, case)) == (1, 2)


@each
@pytest.mark.parametrize("readings", READINGS, ids=names)
def test_refunded_failures_are_reported_and_a_later_run_works(
    harness: ResourceHarness, case: Case, readings: dict[str, Any]
) -> None:
    harness.account.variant(**readings)
    desired = case.desired(harness, case.make(harness))
    harness.fault({"refunded": 502, "code": "upstream_error"}, path=case.path, times=99)
    with pytest.raises(
        Failed,
        match=r"of (server|domain|invoice) [0-9]+ was refunded; [0-9.]+ EUR were returned, invoice [0-9]+. "
        r"Next: run again in a few minutes",
    ) as caught:
        do(harness, case.kind, desired)
    assert (caught.value.status, caught.value.code) == (502, "upstream_error")
    assert (charges(harness, case), debits(harness, case)) == (0, 2)
    harness.control("DELETE", "/faults")
    harness.control("POST", "/clock", {"advance": 600})
    # The outcomes are stored under their keys for a week; a run that sees them to be of the past goes on.
    assert do(harness, case.kind, desired).changed
    assert charges(harness, case) == 1


@pytest.mark.parametrize("case", CASES[:2], ids=lambda case: case.kind)  # of an invoice its own status tells
def test_money_that_is_gone_without_effect_stops_everything(harness: ResourceHarness, case: Case) -> None:
    desired = case.desired(harness, case.make(harness))
    assert do(harness, case.kind, desired).changed
    # The same again, with a failure in between: the account shows a paid invoice of a moment ago, and not
    # what it was for.
    harness.fault({"status": 500, "code": "server_error"}, path=case.path)
    with pytest.raises(
        Failed,
        match=r"whether the renewal of .* was carried out is not known: invoice [0-9]+ is paid, and nothing "
        r"shows for it; nothing was repeated",
    ):
        do(harness, case.kind, {**desired, "until": further(harness, case, desired)})
    assert charges(harness, case) == 1


def further(harness: ResourceHarness, case: Case, desired: dict[str, Any]) -> str:
    now = due(harness, desired["id"]) if case.kind == "server_renew" else expires(harness, desired["id"])
    return text(now + timedelta(days=1))


@each
def test_a_failure_of_the_service_without_a_charge_is_tried_with_another_key(
    harness: ResourceHarness, case: Case
) -> None:
    desired = case.desired(harness, case.make(harness))
    harness.fault({"status": 500, "code": "server_error"}, path=case.path)
    assert do(harness, case.kind, desired).changed
    assert charges(harness, case) == 1


@each
def test_where_the_money_cannot_be_seen_nothing_is_repeated(harness: ResourceHarness, case: Case) -> None:
    desired = case.desired(harness, case.make(harness))
    scopes = [scope for scope in client(harness).me().scopes if scope != "balance:read"]
    blind = harness.control("POST", "/keys", {"mode": "live", "scopes": scopes})["key"]
    harness.fault({"status": 500, "code": "server_error"}, path=case.path)
    with pytest.raises(Failed, match="is not known; it does not show yet"):
        do(harness, case.kind, desired, key=blind)
    assert charges(harness, case) == 0


@each
def test_two_runs_that_saw_the_same_pay_once_between_them(harness: ResourceHarness, case: Case) -> None:
    """Both planned before either was done."""
    desired = case.desired(harness, case.make(harness))
    action = ACTIONS[case.kind]
    inputs = check(action, desired)
    contexts = [harness.context(identity=f"ansible:/{who}", name_is_identity=True) for who in ("a", "b")]
    plans = [action.plan(context, inputs) for context in contexts]
    for context, plan in zip(contexts, plans, strict=True):
        action.perform(context, inputs, plan)
    assert charges(harness, case) == 1


@each
def test_a_failure_is_ignored_where_another_run_did_it_meanwhile(
    harness: ResourceHarness, case: Case
) -> None:
    desired = case.desired(harness, case.make(harness))
    action = ACTIONS[case.kind]
    inputs, context = check(action, desired), harness.context(identity="ansible:/a", name_is_identity=True)
    plan = action.plan(context, inputs)
    do(harness, case.kind, desired)
    harness.fault({"status": 500, "code": "server_error"}, path=case.path)
    result: Any = action.perform(context, inputs, plan)
    assert result.mode in ("live", None)
    assert charges(harness, case) == 1


@each
def test_an_answer_that_came_too_late_is_never_followed_by_another_request(
    harness: ResourceHarness, case: Case
) -> None:
    """504: it may be carried out yet (API document, "Errors")."""
    desired = case.desired(harness, case.make(harness))
    harness.fault({"status": 504, "code": "upstream_timeout"}, path=case.path, times=50)
    with pytest.raises(Failed, match="the same request is repeated, never a second one") as caught:
        do(harness, case.kind, desired)
    assert caught.value.status == 504
    keys = {row["headers"]["idempotency-key"] for row in requests(harness) if row["status"] == 504}
    assert len(keys) == 1
    harness.control("DELETE", "/faults")
    assert do(harness, case.kind, desired).changed
    assert charges(harness, case) == 1


def requests(harness: ResourceHarness) -> list[dict[str, Any]]:
    found = harness.control("GET", "/requests?since=0")
    rows = found["requests"] if isinstance(found, dict) else found
    return [
        {**row, "headers": {name.lower(): value for name, value in row["headers"].items()}} for row in rows
    ]
