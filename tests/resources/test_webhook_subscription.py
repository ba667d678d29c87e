"""One subscription and one secret in use, whatever runs overlap, die or come late; and whose it is to
take over or delete.
"""

import re
import threading
from typing import Any

import pytest

from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.resources.webhook_subscription import WEBHOOK_SUBSCRIPTION
from pulumi_hosting.session.errors import NotOurs, ResourceConflict
from tests.resources.conftest import (
    KillingTransport,
    ProcessKilled,
    ResourceHarness,
    SimultaneousTransport,
    at_once,
)

RESOURCE = WEBHOOK_SUBSCRIPTION
ME = "pulumi:t/dev/webhook_subscription/hook"
DAY = 86400
DESIRED: dict[str, Any] = {"url": "https://hooks.example.com/x", "events": ["*"]}


def inputs(**more: Any) -> Any:
    found = check(RESOURCE, {**DESIRED, **more})
    assert not found.failures
    return found.inputs


def create(harness: ResourceHarness, given: Any = None, identity: str = ME, **more: Any) -> Any:
    return apply.create(harness.context(identity=identity, **more), RESOURCE, given or inputs())


def read(harness: ResourceHarness, state: Any, identity: str = ME) -> Any:
    return apply.read(harness.context(identity=identity), RESOURCE, state)


def subscriptions(harness: ResourceHarness) -> list[dict[str, Any]]:
    rows = harness.control("GET", "/objects")["subscriptions"]
    return [{**row, "secret": harness.account.core.store.subscriptions[row["id"]].secret} for row in rows]


def the_one(harness: ResourceHarness) -> dict[str, Any]:
    (row,) = subscriptions(harness)
    return row


def late(harness: ResourceHarness, **more: Any) -> int:
    """A request of a killed run that the service processes only now."""
    tag = the_one(harness)["description"].rpartition(" ")[2] if subscriptions(harness) else None
    made = harness.context().client.webhooks.create(
        **{**DESIRED, "description": tag or more.pop("description"), **more}
    )
    return made.id


def both(harness: ResourceHarness, **context: Any) -> list[Any]:
    barrier = threading.Barrier(2)
    return at_once(
        *(
            lambda: create(harness, transport=SimultaneousTransport(barrier, "/webhooks"), **context)
            for _ in range(2)
        )
    )


# --- runs that overlap


@pytest.mark.usefixtures("machines")
def test_two_runs_at_the_same_moment_end_with_one_subscription_and_one_secret(
    harness: ResourceHarness,
) -> None:
    results = both(harness)
    (done,) = [one for one in results if not isinstance(one, Exception)]
    (stopped,) = [one for one in results if isinstance(one, Exception)]
    row = the_one(harness)
    assert (done.id, done.secret.reveal()) == (str(row["id"]), row["secret"])
    assert isinstance(stopped, ResourceConflict)
    assert "Next: run pulumi up again; it takes over what is left, and makes a new secret" in str(stopped)
    # what the message says: announced, and then one secret is in use again
    planned = RESOURCE.takeover(harness.context(identity=ME), inputs())
    assert planned is not None
    assert planned.announcement(harness.context().service_now()).startswith(
        f"takes over webhook subscription {row['id']}, ordered 0 min ago"
    )
    again = create(harness)
    row = the_one(harness)
    assert (again.id, again.secret.reveal()) == (str(row["id"]), row["secret"])
    # the other run's state learns of it when it looks, and changes and deletes nothing that is not its own
    # any more
    seen = read(harness, done)
    assert (seen.secret, seen.ownership_tag) == (None, done.ownership_tag)
    assert any(
        "made a new secret: the one recorded here signs nothing any more" in line for line in harness.messages
    )
    for state in (done, seen):
        with pytest.raises(
            NotOurs, match="a later run took it over, from another backend perhaps; nothing was deleted"
        ):
            apply.delete(harness.context(identity=ME), RESOURCE, state)
        with pytest.raises(NotOurs, match="nothing was changed"):
            apply.update(
                harness.context(identity=ME),
                RESOURCE,
                state,
                inputs(description="x"),
                frozenset({"description"}),
            )
    assert the_one(harness)["secret"] == row["secret"]
    apply.delete(harness.context(identity=ME), RESOURCE, read(harness, again))
    assert subscriptions(harness) == []


@pytest.mark.usefixtures("machines")
def test_two_plays_at_the_same_moment_end_with_one_subscription(harness: ResourceHarness) -> None:
    states = both(harness, identity="ansible:play/hook", name_is_identity=True)
    row = the_one(harness)
    assert {state.id for state in states} == {str(row["id"])}
    (secret,) = [state.secret for state in states if state.secret is not None]
    assert secret.reveal() == row["secret"]
    context = harness.context(identity="ansible:play/hook", name_is_identity=True)
    assert apply.ensure(context, RESOURCE, inputs()).action == "unchanged"
    assert apply.ensure_absent(context, RESOURCE, inputs()).action == "deleted"


@pytest.mark.usefixtures("machines")
def test_an_own_surplus_that_cannot_be_deleted_is_kept_in_the_state(harness: ResourceHarness) -> None:
    harness.fault(
        {"status": 503, "code": "temporarily_unavailable"}, path="^/webhooks/", method="DELETE", times=99
    )
    states = both(harness)
    assert sorted(int(state.id) for state in states) == [row["id"] for row in subscriptions(harness)]


def test_a_request_that_is_processed_between_look_and_creation_is_kept(harness: ResourceHarness) -> None:
    """The dead run's subscription has the lower id: this run gives its own up, and the next one takes
    over what is left.
    """
    create(harness)
    tag = the_one(harness)["description"]
    harness.control("POST", "/reset", {})
    probe = KillingTransport()
    create(harness, transport=probe)
    at = probe.sent.index("POST /v1/webhooks")
    harness.control("POST", "/reset", {})

    class Late(KillingTransport):
        def handle_request(self, request: Any) -> Any:
            if len(self.sent) == at:
                late(harness, description=tag)
            return super().handle_request(request)

    with pytest.raises(ResourceConflict, match="or a request of an interrupted run was processed late"):
        create(harness, transport=Late())
    left = the_one(harness)["id"]
    again = create(harness)
    assert (again.id, again.secret.reveal()) == (str(left), the_one(harness)["secret"])


def test_a_request_that_is_processed_after_the_creation_goes_with_the_next_change(
    harness: ResourceHarness,
) -> None:
    state = create(harness)
    double = late(harness)
    state = read(harness, state)
    assert any(
        f"webhook subscription {double} is a second one of this resource" in line for line in harness.messages
    )
    changed = inputs(events=["balance.low"])
    apply.update(harness.context(identity=ME), RESOURCE, state, changed, frozenset({"events"}))
    assert the_one(harness)["id"] == int(state.id)
    late(harness)
    apply.delete(harness.context(identity=ME), RESOURCE, state)
    assert subscriptions(harness) == []


@pytest.mark.parametrize("count", [1, 2])
def test_killed_before_it_was_recorded_it_is_taken_over_with_what_came_late(
    harness: ResourceHarness, count: int
) -> None:
    first = create(harness)
    for _ in range(count - 1):
        late(harness)
    context = harness.context(identity=ME)
    planned = RESOURCE.takeover(context, inputs())
    assert planned is not None
    assert (
        "it carries this resource's ownership tag; it gets a new secret, and the present one stops"
    ) in planned.reason
    again = create(harness)
    row = the_one(harness)
    assert (again.id, again.secret.reveal()) == (first.id, row["secret"])
    assert row["description"] == again.ownership_tag == first.ownership_tag.replace("]", ".1]")
    assert any(
        line.startswith(f"takes over webhook subscription {first.id}, ordered 0 min ago")
        for line in harness.messages
    )


# --- whose it is


def test_an_old_one_is_taken_over_on_request_only(harness: ResourceHarness) -> None:
    first = create(harness)
    harness.control("POST", "/clock", {"advance": 7 * DAY + 60})
    for step in (lambda: RESOURCE.takeover(harness.context(identity=ME), inputs()), lambda: create(harness)):
        with pytest.raises(
            ResourceConflict, match=f"made 7 days ago carries .* older than seven days.* adopt_id={first.id} "
        ):
            step()
    before = the_one(harness)
    assert before["secret"] == first.secret.reveal()
    # the edit of the message, with a new secret in the same run
    taken = create(harness, inputs(adopt_id=first.id, rotation="1"))
    row = the_one(harness)
    assert (taken.id, taken.secret.reveal()) == (first.id, row["secret"])
    assert row["secret"] != before["secret"]
    assert row["description"] == taken.ownership_tag != before["description"]


def test_under_strict_only_with_a_scope(harness: ResourceHarness) -> None:
    first = create(harness)
    with pytest.raises(
        ResourceConflict, match=f"strict is set and hosting:scope is not.* adopt_id={first.id} "
    ):
        create(harness, strict=True)
    assert the_one(harness)["secret"] == first.secret.reveal()
    assert create(harness, strict=True, scope="shop").id == first.id


def test_one_that_delivers_elsewhere_is_not_taken_over(harness: ResourceHarness) -> None:
    """It may be the one of a resource that was renamed: both names are one identity."""
    first = create(harness)
    other = inputs(url="https://hooks.example.com/other")
    with pytest.raises(
        ResourceConflict,
        match=re.escape("it delivers to https://hooks.example.com/x, not to https://hooks.example.com/other"),
    ):
        create(harness, other)
    assert the_one(harness)["secret"] == first.secret.reveal()


def test_what_another_resource_took_over_stays(harness: ResourceHarness) -> None:
    first = create(harness)
    other = "pulumi:t/prod/webhook_subscription/hook"
    planned = RESOURCE.takeover(harness.context(identity=other), inputs(adopt_id=first.id))
    assert planned is not None
    assert planned.reason == "adopt_id names it; its secret stays unknown here"
    taken = create(harness, inputs(adopt_id=first.id), other)
    assert taken.secret is None
    assert the_one(harness)["secret"] == first.secret.reveal()
    for step in (
        lambda: apply.delete(harness.context(identity=ME), RESOURCE, first),
        lambda: apply.update(
            harness.context(identity=ME),
            RESOURCE,
            first,
            inputs(description="mine"),
            frozenset({"description"}),
        ),
    ):
        with pytest.raises(NotOurs, match="it carries the ownership tag of another resource"):
            step()
    assert the_one(harness)["description"] == taken.ownership_tag
    apply.delete(harness.context(identity=other), RESOURCE, taken)
    assert subscriptions(harness) == []


def test_a_description_without_tag_is_deleted(harness: ResourceHarness) -> None:
    state = create(harness)
    harness.control("PATCH", f"/webhooks/{state.id}", {"description": "by hand"})
    apply.delete(harness.context(identity=ME), RESOURCE, state)
    assert subscriptions(harness) == []


def test_the_object_being_replaced_is_not_taken_for_the_new_one(harness: ResourceHarness) -> None:
    state = create(harness)
    new = create(harness, owned=frozenset({state.id}))
    assert new.id != state.id
    assert new.ownership_tag != state.ownership_tag
    apply.delete(harness.context(identity=ME), RESOURCE, state)
    assert the_one(harness)["id"] == int(new.id)


def test_a_list_that_cannot_be_read_after_the_creation_loses_nothing(harness: ResourceHarness) -> None:
    probe = KillingTransport()
    create(harness, transport=probe)
    looks = probe.sent[: probe.sent.index("POST /v1/webhooks")].count("GET /v1/webhooks")
    harness.control("POST", "/reset", {})
    harness.fault({"patch": {"data": [{"id": "x"}]}}, path="^/webhooks$", method="GET", after=looks)
    state = create(harness)
    row = the_one(harness)
    assert (state.id, state.secret.reveal()) == (str(row["id"]), row["secret"])
    assert any("whether another run made one too is not known" in line for line in harness.messages)


def test_a_deletion_that_fails_is_no_success(harness: ResourceHarness) -> None:
    state = create(harness)
    harness.fault({"status": 502, "code": "upstream_error"}, path="^/webhooks/", method="DELETE", times=99)
    with pytest.raises(Exception, match="upstream_error"):
        apply.delete(harness.context(identity=ME), RESOURCE, state)
    assert the_one(harness)["id"] == int(state.id)


@pytest.mark.parametrize("at", range(7))
@pytest.mark.parametrize("after", [False, True])
def test_a_takeover_killed_anywhere_ends_with_one_subscription_and_one_secret(
    harness: ResourceHarness, at: int, after: bool
) -> None:
    create(harness)
    late(harness)
    try:
        state = create(harness, transport=KillingTransport(at, after))
    except ProcessKilled:
        state = create(harness)
    row = the_one(harness)
    assert (state.id, state.secret.reveal(), state.ownership_tag) == (
        str(row["id"]),
        row["secret"],
        row["description"],
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", "https://hooks.example.com:0/x"),
        ("url", "https://hooks.example.com:65536/x"),
        ("url", "https://hooks.example.com/\u200bx"),
        ("url", "https://hooks.example.com/\x00x"),
        ("description", "a\ud800"),
        ("description", "a\x00"),
        ("description", "x" * 975),
        ("description", "a [iac2:abcdefgh]"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_name(field: str, value: str) -> None:
    assert check(RESOURCE, {**DESIRED, field: value}).failures.keys() == {field}
