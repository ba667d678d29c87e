"""Probes and redeliveries of a webhook subscription."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pulumi_hosting.actions import Failed
from pulumi_hosting.client.client import Client
from pulumi_hosting.session.errors import ResourceError
from tests.resources.actions import HOOK, do, one, sent
from tests.resources.conftest import KillingTransport, ProcessKilled, ResourceHarness


@contextmanager
def receiver(harness: ResourceHarness, status: int = 200) -> Iterator[None]:
    """A receiver of deliveries that answers with this status."""
    harness.account.receiver_status = status
    harness.control("PUT", "/webhook-routes", {"https://hooks.example.com": "http://127.0.0.1:9"})
    yield
    harness.control("PUT", "/webhook-routes", {})


def subscribed(harness: ResourceHarness, **more: Any) -> str:
    return str(harness.context().client.webhooks.create(url=HOOK, events=["*"], **more).id)


def test_a_probe_changes_nothing_and_says_what_came_back(any_dialect: ResourceHarness) -> None:
    id = subscribed(any_dialect)
    predicted = do(any_dialect, "webhook_test", {"url": HOOK}, dry_run=True)
    unknown = {
        "mode": "live",
        "id": id,
        "url": HOOK,
        "ok": None,
        "status": None,
        "latency_ms": None,
        "detail": None,
    }
    assert (predicted.changed, predicted.after, sent(any_dialect)) == (False, unknown, [])
    assert not predicted.failed
    with receiver(any_dialect):
        result = do(any_dialect, "webhook_test", {"id": id})
    assert (result.changed, result.result.ok, result.result.status) == (False, True, 200)
    assert (result.failed, result.result.latency_ms is not None) == (False, True)
    assert len(sent(any_dialect)) == 1
    with receiver(any_dialect, 500):
        refused = do(any_dialect, "webhook_test", {"id": id})
        assert (refused.failed, refused.result.ok) == (True, False)
    unreachable = do(any_dialect, "webhook_test", {"id": id}).result
    assert (unreachable.ok, unreachable.status) == (False, None)
    assert unreachable.detail


def test_a_probe_is_sent_once(harness: ResourceHarness) -> None:
    id = subscribed(harness)
    harness.fault({"drop": "after"}, path="test$")
    with pytest.raises(
        Failed,
        match=r"whether the ping of webhook subscription .* went out is not known; "
        r"nothing was repeated",
    ):
        do(harness, "webhook_test", {"id": id})
    assert len(sent(harness)) == 1


def test_a_disabled_subscription_is_not_probed(harness: ResourceHarness) -> None:
    id = subscribed(harness)
    harness.control("PATCH", f"/webhooks/{id}", {"active": False})
    for dry_run in (True, False):
        with pytest.raises(ResourceError, match=r"is disabled.*; nothing was sent. Next: enable it"):
            do(harness, "webhook_test", {"id": id}, dry_run=dry_run)


def dead_deliveries(harness: ResourceHarness, how_many: int) -> tuple[str, list[str]]:
    """A subscription whose receiver was away for so long that its deliveries died."""
    id = subscribed(harness)
    for number in range(how_many):
        harness.control("POST", "/keys", {"mode": "live", "name": f"k{number}", "scopes": []})
    for _ in range(8):
        harness.control("POST", "/clock", {"advance": 4 * 3600})
    dead = [
        str(found.id) for found in harness.context().client.webhooks.deliveries.list(int(id), status="dead")
    ]
    assert len(dead) == how_many
    return id, dead


def statuses(harness: ResourceHarness, id: str) -> dict[str, str]:
    return {
        str(found.id): str(found.status)
        for found in harness.context().client.webhooks.deliveries.list(int(id))
    }


def test_dead_deliveries_are_queued_once(any_dialect: ResourceHarness) -> None:
    id, dead = dead_deliveries(any_dialect, 3)
    predicted = do(any_dialect, "webhook_redeliver", {"url": HOOK}, dry_run=True)
    assert sent(any_dialect) == []
    result = do(any_dialect, "webhook_redeliver", {"url": HOOK})
    assert predicted.changed
    assert result.changed
    assert predicted.after == result.after
    assert [(item["id"], item["status"]) for item in map(one, result.before or ())] == [
        (one, "dead") for one in dead
    ]
    assert [(item.id, item.status, item.event_type) for item in result.result] == [
        (one, "pending", "key.created") for one in dead
    ]
    assert len(sent(any_dialect)) == 3
    again = do(any_dialect, "webhook_redeliver", {"id": id})
    assert (again.changed, again.after, again.result, sent(any_dialect)) == (False, [], [], [])
    assert again.note


def test_one_delivery_is_queued_and_another_left_alone(any_dialect: ResourceHarness) -> None:
    id, dead = dead_deliveries(any_dialect, 2)
    result = do(any_dialect, "webhook_redeliver", {"id": id, "delivery_id": dead[0]})
    assert (result.changed, [item.status for item in result.result]) == (True, ["pending"])
    assert statuses(any_dialect, id) == {dead[0]: "pending", dead[1]: "dead"}
    again = do(any_dialect, "webhook_redeliver", {"id": id, "delivery_id": dead[0]})
    assert (again.changed, [item.status for item in again.result], sent(any_dialect)) == (
        False,
        ["pending"],
        [],
    )
    assert again.note == f"delivery {dead[0]} is pending, not dead"


def test_a_delivery_of_another_subscription_is_refused(harness: ResourceHarness) -> None:
    _, dead = dead_deliveries(harness, 1)
    other = str(harness.context().client.webhooks.create(url="https://hooks.example.com/y", events=["*"]).id)
    with pytest.raises(ResourceError, match=rf"delivery {dead[0]} is of webhook subscription"):
        do(harness, "webhook_redeliver", {"id": other, "delivery_id": dead[0]})
    with pytest.raises(ResourceError, match=r"there is no delivery with id 999"):
        do(harness, "webhook_redeliver", {"id": other, "delivery_id": "999"})


@pytest.mark.parametrize("at", range(2, 5))
@pytest.mark.parametrize("after", [False, True])
def test_killed_among_several_deliveries_the_next_run_goes_on(
    harness: ResourceHarness, at: int, after: bool
) -> None:
    id, _ = dead_deliveries(harness, 3)
    with pytest.raises(ProcessKilled):
        do(harness, "webhook_redeliver", {"id": id}, transport=KillingTransport(at, after))
    everything_was_queued = (at, after) == (4, True)
    assert do(harness, "webhook_redeliver", {"id": id}).changed is not everything_was_queued
    assert len(sent(harness)) == 4 - at + (not after)
    assert set(statuses(harness, id).values()) == {"pending"}


def test_a_lost_answer_is_looked_up(harness: ResourceHarness) -> None:
    id, dead = dead_deliveries(harness, 1)
    harness.fault({"drop": "after"}, path="redeliver$")
    assert [item.status for item in do(harness, "webhook_redeliver", {"id": id}).result] == ["pending"]
    assert len(sent(harness)) == 1
    assert statuses(harness, id) == {dead[0]: "pending"}


def test_a_request_that_never_arrived_is_reported(harness: ResourceHarness) -> None:
    id, _ = dead_deliveries(harness, 1)
    harness.fault({"drop": "before"}, path="redeliver$")
    with pytest.raises(Failed, match=r"is not queued again. Next: run again"):
        do(harness, "webhook_redeliver", {"id": id})
    assert do(harness, "webhook_redeliver", {"id": id}).changed


def limited(harness: ResourceHarness, key: str, **options: Any) -> tuple[Client, list[str]]:
    """A client whose waiting moves the account's clock, and what it tells the user."""
    account, told = harness.account, list[str]()
    client = Client(
        key,
        account.base_url,
        transport=account.transport(),
        clock=account.clock.now,
        sleep=account.advance,
        **options,
    )
    client.rate_limiter.on_wait = told.append
    return client, told


def test_the_rate_limit_is_waited_for(harness: ResourceHarness) -> None:
    id, _ = dead_deliveries(harness, 3)
    slow = harness.control(
        "POST", "/keys", {"mode": "live", "scopes": "full", "rate_expensive_per_minute": 1}
    )["key"]
    client, told = limited(harness, slow)
    assert len(do(harness, "webhook_redeliver", {"id": id}, client=client).result) == 3
    assert told == ["rate limit reached: waiting 57 s"] * 2


def test_a_rate_limit_that_does_not_end_is_reported(harness: ResourceHarness) -> None:
    id, _ = dead_deliveries(harness, 3)
    slow = harness.control(
        "POST", "/keys", {"mode": "live", "scopes": "full", "rate_expensive_per_minute": 1}
    )["key"]
    client, _ = limited(harness, slow, rate_limit_timeout=50)
    with pytest.raises(Failed, match=r"1 of 3 deliveries are queued again. Next: run again for the others"):
        do(harness, "webhook_redeliver", {"id": id}, client=client)
