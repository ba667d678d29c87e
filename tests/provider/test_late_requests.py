"""A request of a killed run that is processed after the next run made its own subscription."""

from typing import Any

import pytest

from tests.provider.processes import Entry, provider_process
from tests.support.account import Account

HOOK: dict[str, Any] = {"url": "https://hooks.example.org/in", "events": ["*"]}
KIND = "webhook_subscription"


@pytest.fixture
def account() -> Account:
    account = Account()
    account.control("PUT", "/webhook-routes", {"https://hooks.example.org": "http://127.0.0.1:9"})
    return account


def ids(account: Account) -> list[int]:
    return [row["id"] for row in account.control("GET", "/objects")["subscriptions"]]


def processed_late(account: Account, entry: Entry) -> int:
    body = {**HOOK, "description": entry.outputs["ownershipTag"]}
    made: int = account.api("POST", "/webhooks", body).json()["id"]
    return made


@pytest.mark.parametrize("refreshed", [False, True])
def test_the_next_up_deletes_it_though_nothing_else_changed(account: Account, refreshed: bool) -> None:
    entry = provider_process(account).create(KIND, "hook", HOOK)
    late = processed_late(account, entry)
    run = provider_process(account)
    if refreshed:
        entry = run.refresh(KIND, entry)
        assert ids(account) == [int(entry.id), late], "a preview may refresh too: it deletes nothing"
        assert any(f"{late} is a second one of this resource beside {entry.id}" in line for line in run.lines)
    found = run.of(KIND).diff(entry.id, entry.outputs, entry.inputs)
    assert (found.changes, found.replaces) == (True, ())
    assert any(f"subscription {late} is a second one" in line and "deleted" in line for line in run.lines)
    outputs = run.of(KIND).update(entry.id, entry.outputs, entry.inputs)
    assert ids(account) == [int(entry.id)]
    assert outputs["secret"] == entry.outputs["secret"]
    again = provider_process(account)
    assert not again.of(KIND).diff(entry.id, outputs, entry.inputs).changes


def test_one_that_a_receiver_accepts_stays_and_is_named(account: Account) -> None:
    """Its secret is in use: another state may have it."""
    entry = provider_process(account).create(KIND, "hook", HOOK)
    other = processed_late(account, entry)
    account.api("POST", f"/webhooks/{other}/test")
    account.server(name="web")
    account.advance(0)
    run = provider_process(account)
    run.refresh(KIND, entry)
    (line,) = [line for line in run.lines if "the same ownership tag" in line]
    assert f"webhook subscriptions {entry.id} and {other} " in line
    assert f"Next: delete {other} in the control panel if no other stack uses it" in line
    assert not run.of(KIND).diff(entry.id, entry.outputs, entry.inputs).changes
    assert ids(account) == [int(entry.id), other]


@pytest.mark.parametrize("kept", ["before", "elsewhere", "another tag", "strict"])
def test_what_is_not_certainly_a_second_one_stays(account: Account, kept: str) -> None:
    entry = provider_process(account).create(KIND, "hook", HOOK)
    tag = entry.outputs["ownershipTag"]
    changed = {
        "before": {},
        "elsewhere": {"url": "https://hooks.example.org/other"},
        "another tag": {"description": tag.replace("]", ".1]")},
        "strict": {},
    }[kept]
    made = account.api("POST", "/webhooks", {**HOOK, "description": tag, **changed}).json()["id"]
    if kept == "before":  # the state has the later one
        entry = Entry(str(made), {**entry.outputs, "id": str(made)}, entry.inputs)
    run = provider_process(account, strict=kept == "strict")
    assert not run.of(KIND).diff(entry.id, entry.outputs, entry.inputs).changes
    run.of(KIND).update(entry.id, entry.outputs, {**entry.inputs, "active": False})
    assert len(ids(account)) == 2


def test_without_an_answer_nothing_is_planned(account: Account) -> None:
    entry = provider_process(account).create(KIND, "hook", HOOK)
    processed_late(account, entry)
    account.fault({"status": 503, "code": "api_disabled"}, path="^/", method="GET", times=999)
    assert not provider_process(account).of(KIND).diff(entry.id, entry.outputs, entry.inputs).changes
