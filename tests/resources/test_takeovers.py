"""Which servers are taken over, which stop an order, what a preview says, and what a deletion leaves."""

from typing import Any

import pytest

from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.exactly_once.ownership_tag import next_tag, ownership_tag, with_tag
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.planning.plan import plan
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.errors import (
    NotOurs,
    ResourceConflict,
    ResourceError,
    WaitTimeout,
)
from pulumi_hosting.session.ownership import Ownership
from tests.resources.conftest import GOOD, KillingTransport, ProcessKilled, ResourceHarness
from tests.resources.orders import IDENTITY, WEEK, predicted


def test_a_server_of_the_name_that_is_not_ours_stops_it_with_advice(harness: ResourceHarness) -> None:
    other = harness.order(identity="another", name_is_identity=True)
    with pytest.raises(ResourceConflict, match=f"adopt_id to {other.id}.*order_attempt to 1") as stopped:
        harness.order()
    assert stopped.value.id == other.id
    assert harness.charges == 1
    assert harness.order({**GOOD, "adopt_id": other.id}).id == other.id
    assert harness.charges == 1


def test_a_replayed_order_whose_server_was_renamed_since_is_neither_taken_nor_doubled(
    harness: ResourceHarness,
) -> None:
    first = harness.order()
    harness.control("PATCH", f"/servers/{first.id}", {"name": "web-2"})
    with pytest.raises(
        ResourceConflict, match=f"server {first.id} carries.*'web-2'.*adopt_id={first.id}.*order_attempt=1"
    ) as stopped:
        harness.order()
    assert stopped.value.id == first.id
    assert harness.charges == 1
    assert harness.order({**GOOD, "order_attempt": 1}).id != first.id
    assert harness.charges == 2


def test_a_second_server_of_a_name_needs_order_attempt(harness: ResourceHarness) -> None:
    harness.order(identity="another", name_is_identity=True)
    harness.order({**GOOD, "order_attempt": 1})
    assert len(harness.living) == 2


def test_one_of_the_name_that_another_declaration_marked_stops_it_too(harness: ResourceHarness) -> None:
    harness.order(identity="pulumi:t/prod/server/web-1")
    with pytest.raises(ResourceConflict):
        harness.order()
    assert harness.charges == 1


def test_after_the_keys_are_forgotten_an_unmarked_server_is_not_taken_and_not_bought_again(
    harness: ResourceHarness,
) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(3, after=True))
    harness.control("POST", "/clock", {"advance": WEEK + 60})
    with pytest.raises(ResourceConflict):
        harness.order()
    assert harness.charges == 1


@pytest.mark.parametrize("days", [0, 6.9, 7.1, 30])
@pytest.mark.parametrize(("at", "tagged"), [(3, False), (4, True)])
def test_what_a_killed_run_ordered_is_taken_over_within_seven_days_and_then_on_request(
    harness: ResourceHarness, at: int, tagged: bool, days: float
) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(at, after=True))
    harness.control("POST", "/clock", {"advance": days * 86400})
    if days < 7:
        state = harness.order()
        assert (
            harness.living[0]["notes"]
            == next_tag(ownership_tag(IDENTITY) if tagged else None, IDENTITY)
            == state.ownership_tag
        )
        assert any("takes over server 20001, ordered" in line for line in harness.messages)
    else:
        with pytest.raises(ResourceConflict, match="adopt_id") as stopped:
            harness.order()
        assert stopped.value.id == "20001"
        assert ("adopt_id=20001" if tagged else "adopt_id to 20001") in str(stopped.value)
        state = harness.order({**GOOD, "adopt_id": "20001"})
    assert [str(server["id"]) for server in harness.living] == [state.id] == ["20001"]
    # after 30 days it is renewed, too
    assert sum(row["operation"] == "create_server" for row in harness.account.ledger()) == 1


def test_beside_an_old_tagged_server_another_one_is_ordered_on_request_only(harness: ResourceHarness) -> None:
    first = harness.order()
    harness.control("POST", "/clock", {"advance": WEEK + 60})
    with pytest.raises(ResourceConflict, match=r"order_attempt=1 to order another one.*with --refresh"):
        harness.order()
    second = harness.order({**GOOD, "order_attempt": 1})
    assert second.id != first.id
    assert harness.order({**GOOD, "order_attempt": 1}).id == second.id
    assert len(harness.living) == 2


def test_of_several_with_the_tag_the_names_tell_which_is_meant(harness: ResourceHarness) -> None:
    first = harness.order()
    copy = {"name": "db", "notes": ownership_tag(IDENTITY)}
    other = harness.control("POST", "/servers", copy)["id"]
    with pytest.raises(
        ResourceError, match=rf"\(on servers 'db', 'web-1'\) .*: ids {other}, {first.id}\. Next: set adopt_id"
    ):
        harness.order()
    assert harness.order({**GOOD, "adopt_id": first.id}).id == first.id
    assert harness.charges == 1


def test_strict_takes_over_with_a_scope_or_on_request_only(harness: ResourceHarness) -> None:
    first = harness.order()
    with pytest.raises(
        ResourceConflict,
        match=rf"strict is set and hosting:scope is "
        rf"not.*adopt_id={first.id}",
    ):
        harness.order(strict=True)
    assert predicted(harness, strict=True, scope="mine").state.id == first.id
    assert harness.order(strict=True, scope="mine").id == first.id
    assert harness.order({**GOOD, "adopt_id": first.id}, strict=True).id == first.id
    assert harness.charges == 1


@pytest.mark.parametrize("more", [{}, {"strict": True}])
def test_strict_holds_for_what_only_a_key_proves(harness: ResourceHarness, more: dict[str, Any]) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(3, after=True))
    if more:
        with pytest.raises(ResourceConflict, match=r"idempotency key.*adopt_id=20001"):
            harness.order(**more)
    else:
        harness.order()
    assert harness.charges == 1
    assert len(harness.living) == 1


def test_a_preview_announces_what_is_taken_over_and_its_charge(harness: ResourceHarness) -> None:
    harness.order()
    harness.control("POST", "/clock", {"advance": 2 * 3600 + 60})
    context = harness.context()
    taken = SERVER.takeover(context, check(SERVER, GOOD).inputs)
    assert taken is not None
    assert taken.announcement(context.service_now()) == (
        "takes over server 20001, ordered 2 h ago, 5.00 EUR, invoice 40001 (it carries this resource's "
        "ownership tag)"
    )
    assert not [line for line in harness.transports[-1].sent if not line.startswith("GET")]


def test_a_preview_says_the_monthly_price_where_the_charge_is_not_to_be_seen(
    harness: ResourceHarness,
) -> None:
    harness.order()
    key = harness.control(
        "POST", "/keys", {"mode": "live", "scopes": ["servers:read", "servers:order", "servers:manage"]}
    )["key"]
    context = harness.context(key=key)
    taken = SERVER.takeover(context, check(SERVER, GOOD).inputs)
    assert taken is not None
    assert "ordered 0 min ago, 5.00 EUR a month (" in taken.announcement(context.service_now())


def test_a_preview_says_when_an_unproven_server_of_the_name_was_ordered(
    harness: ResourceHarness,
) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(3, after=True))
    harness.control("POST", "/clock", {"advance": 3 * 3600 + 60})
    context = harness.context()
    taken = SERVER.takeover(context, check(SERVER, GOOD).inputs)
    assert taken is not None
    assert taken.announcement(context.service_now()) == (
        "web-1 is already on the account (server 20001, ordered 3 h ago, 5.00 EUR, invoice 40001). If this "
        "stack bought it, it is adopted; if not, the run stops. Next: set adopt_id=20001"
    )
    harness.control("POST", "/clock", {"advance": WEEK})
    later = harness.context()
    with pytest.raises(ResourceConflict) as announced:
        SERVER.takeover(later, check(SERVER, GOOD).inputs)
    with pytest.raises(ResourceConflict) as stopped:
        harness.order()
    assert str(announced.value) == str(stopped.value)
    assert "Next: set adopt_id to 20001 to take it over" in str(stopped.value)
    assert len(harness.control("GET", "/objects")["servers"]) == 1


def test_a_preview_stops_where_the_order_will_stop(harness: ResourceHarness) -> None:
    """By another resource's tag, or by any server of the name under strict; a renamed resource is advised to
    take an alias first.
    """
    old = harness.order(identity="pulumi:t/dev/server/web-1")  # its name is that of the resource
    renamed, inputs = "pulumi:t/dev/server/web-9", check(SERVER, GOOD).inputs
    with pytest.raises(ResourceConflict) as announced:
        SERVER.takeover(harness.context(identity=renamed), inputs)
    with pytest.raises(ResourceConflict) as stopped:
        harness.order(identity=renamed)
    assert str(announced.value) == str(stopped.value)
    assert (
        "Next: if this resource was renamed from 'web-1', add opts=pulumi.ResourceOptions(aliases="
    ) in str(stopped.value)
    assert f"else set adopt_id to {old.id} to take it over" in str(stopped.value)
    with pytest.raises(
        ResourceConflict, match="if this resource had another name in the program before, add opts="
    ):
        SERVER.takeover(harness.context(identity="pulumi:other/dev/server/x"), inputs)
    # What another declaration of the program turns out to have is no obstacle, and another one may be asked
    # for.
    ownership = Ownership()
    ownership.add("pulumi:t/dev/server/web-1", old.id)
    assert SERVER.takeover(harness.context(identity=renamed, ownership=ownership), inputs) is None
    assert (
        SERVER.takeover(harness.context(identity=renamed), check(SERVER, {**GOOD, "order_attempt": 1}).inputs)
        is None
    )
    harness.control("PATCH", f"/servers/{old.id}", {"notes": ""})
    announced_one = SERVER.takeover(harness.context(identity=renamed), inputs)
    assert announced_one is not None
    assert "if not, the run stops" in announced_one.announcement(harness.context().service_now())
    with pytest.raises(ResourceConflict, match="nothing was ordered"):
        SERVER.takeover(harness.context(identity=renamed, strict=True), inputs)
    assert len(harness.account.ledger()) == 1


def test_a_preview_announces_an_order_that_is_under_way(harness: ResourceHarness) -> None:
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order(wait_timeout=0.0)
    assert SERVER.validate(harness.context(), GOOD, frozenset(GOOD)) == {}
    assert (
        "is being created (order 40001, placed 0 min ago, 5.00 EUR): it is waited for"
    ) in harness.messages[-1]


def test_adopting_what_another_resource_has_is_announced(harness: ResourceHarness) -> None:
    other = harness.order(identity="pulumi:t/prod/server/web-1")
    taken = predicted(harness, {**GOOD, "adopt_id": other.id})
    assert (
        "carries the tag of another resource: a stack that has it can no longer delete it then"
        in taken.reason
    )
    adopted = harness.order({**GOOD, "adopt_id": other.id})
    assert harness.living[0]["notes"] == adopted.ownership_tag == ownership_tag(IDENTITY, 1)
    with pytest.raises(
        NotOurs, match="it carries the ownership tag of another resource; nothing was deleted"
    ):
        apply.delete(harness.context(identity="pulumi:t/prod/server/web-1"), SERVER, other)
    assert [str(server["id"]) for server in harness.living] == [other.id]
    apply.delete(harness.context(), SERVER, adopted)
    assert harness.living == []


# --- the fence around a deletion


def test_what_a_later_run_took_over_is_not_deleted_by_the_earlier_state(harness: ResourceHarness) -> None:
    first = harness.order()
    second = harness.order()
    assert (second.id, second.ownership_tag) == (first.id, next_tag(first.ownership_tag, IDENTITY))
    read = apply.read(harness.context(), SERVER, first)
    assert read.ownership_tag == first.ownership_tag
    assert [
        line
        for line in harness.messages
        if (f"server {first.id}: a later run took it over, from another backend perhaps") in line
    ]
    for state in (first, read):
        with pytest.raises(
            NotOurs, match=f"server {first.id}: a later run took it over, .*nothing was deleted"
        ) as stopped:
            apply.delete(harness.context(), SERVER, state)
        assert (stopped.value.id, stopped.value.tag) == (first.id, second.ownership_tag)
        changed = check(SERVER, {**GOOD, "notes": "mine"}).inputs
        # the tag of this state would open the fence
        with pytest.raises(NotOurs, match="nothing was changed"):
            apply.update(harness.context(), SERVER, state, changed, frozenset({"notes"}))
    assert [server["notes"] for server in harness.living] == [second.ownership_tag]
    apply.delete(harness.context(), SERVER, apply.read(harness.context(), SERVER, second))
    assert harness.living == []
    assert harness.charges == 0


@pytest.mark.parametrize("notes", ["mine", "", "mine [iac:abcdefgh]"])
def test_a_server_whose_tag_was_taken_away_is_deleted(harness: ResourceHarness, notes: str) -> None:
    state = harness.order()
    harness.control("PATCH", f"/servers/{state.id}", {"notes": notes})
    apply.delete(harness.context(), SERVER, state)
    assert harness.living == []


def test_a_takeover_whose_tag_was_not_written_can_be_deleted(harness: ResourceHarness) -> None:
    harness.order()
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(3, after=False))  # before the tag
    state = harness.order(identity=IDENTITY, transport=KillingTransport(None))
    left = state.model_copy(update={"ownership_tag": ownership_tag(IDENTITY, 9)})
    apply.delete(harness.context(), SERVER, left)
    assert harness.living == []


def test_notes_are_shown_without_the_tag_and_an_update_keeps_it(harness: ResourceHarness) -> None:
    harness.order()
    state = harness.order({**GOOD, "notes": "mine"})
    state = apply.update(
        harness.context(),
        SERVER,
        state,
        check(SERVER, {**GOOD, "notes": "yours"}).inputs,
        frozenset({"notes"}),
    )
    assert state.notes == "yours"
    assert harness.living[0]["notes"] == with_tag("yours", ownership_tag(IDENTITY, 1))
    assert apply.read(harness.context(), SERVER, state).notes == "yours"


def test_an_adopted_server_whose_tag_cannot_be_written_can_be_deleted(harness: ResourceHarness) -> None:
    other = harness.order(identity="pulumi:t/prod/server/web-1")
    harness.fault({"status": 403, "code": "forbidden"}, path="^/servers/", method="PATCH")
    adopted = harness.order({**GOOD, "adopt_id": other.id})
    assert any("the ownership tag could not be written" in line for line in harness.messages)
    assert adopted.ownership_tag == other.ownership_tag == harness.living[0]["notes"]
    apply.delete(harness.context(), SERVER, adopted)
    assert harness.living == []


def test_a_name_that_the_control_panel_allows_is_never_sent(harness: ResourceHarness) -> None:
    """Declared as it is, it is no difference. An order, a rename and a takeover with one are refused before
    anything is sent; taken over under its own name, the server is changed in every other field."""
    id = harness.order().id
    harness.control("PATCH", f"/servers/{id}", {"name": "Web Server"})
    sent = len(harness.account.control("GET", "/requests?since=0"))
    named = {**GOOD, "name": "Web Server"}
    for given, recorded in (
        (named, None),
        (named, GOOD),
        ({**named, "adopt_id": id}, {**GOOD, "adopt_id": id}),
    ):
        refused = plan(harness.context(), SERVER, check(SERVER, given), recorded=recorded).refusals
        assert list(refused) == ["name"]
    assert len(harness.account.control("GET", "/requests?since=0")) == sent
    other = {**named, "name": "Web  Server", "adopt_id": id}
    with pytest.raises(ResourceError, match="name is 'Web Server', not 'Web  Server'"):
        plan(harness.context(), SERVER, check(SERVER, other))
    same = check(SERVER, {**named, "adopt_id": id, "notes": "front end"})
    assert plan(harness.context(), SERVER, same).refusals == {}
    state = harness.order({**named, "adopt_id": id, "notes": "front end"})
    assert (state.name, harness.living[0]["name"]) == ("Web Server", "Web Server")
    assert (harness.living[0]["notes"].partition(" [")[0], harness.charges) == ("front end", 1)


def test_a_playbook_finds_such_a_server_and_renames_it_to_no_other(harness: ResourceHarness) -> None:
    id = harness.order(name_is_identity=True).id
    harness.control("PATCH", f"/servers/{id}", {"name": "Web Server"})
    options = apply.ApplyOptions(dry_run=True)
    for name, given in (("Web Server", None), ("Web Server", id)):
        inputs = check(SERVER, {**GOOD, "name": name}).inputs
        done = apply.ensure(harness.context(name_is_identity=True), SERVER, inputs, id=given, options=options)
        assert done.action == "unchanged"
    for name, given in (("Web  Server", id), ("My DB", None)):
        inputs = check(SERVER, {**GOOD, "name": name}).inputs
        with pytest.raises(InvalidInput, match="name: may contain only"):
            apply.ensure(harness.context(name_is_identity=True), SERVER, inputs, id=given, options=options)
    assert (len(harness.living), harness.charges) == (1, 1)
