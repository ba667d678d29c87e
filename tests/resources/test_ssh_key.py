"""SSH keys are shared: what this declaration did not add it takes over, and never deletes."""

import threading
from typing import Any

import pytest

from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.resources.ssh_key import SSH_KEY
from pulumi_hosting.session.errors import ResourceConflict, ResourceError
from pulumi_hosting.session.ownership import Ownership
from tests.resources.conftest import (
    GOOD,
    KillingTransport,
    ProcessKilled,
    ResourceHarness,
    SimultaneousTransport,
    at_once,
)

RESOURCE = SSH_KEY
LINE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1J0oPqkq3n9mYh0b8Jx6m0c6K0s8mF0v7b0q3Yw2aB"
OTHER = f"{LINE[:-4]}AAAA"
STAGING, PROD = "pulumi:t/staging/ssh_key/alice", "pulumi:t/prod/ssh_key/alice"


def inputs(**more: Any) -> Any:
    found = check(RESOURCE, {"name": "alice", "public_key": LINE, **more})
    assert not found.failures
    return found.inputs


def create(harness: ResourceHarness, identity: str = STAGING, given: Any = None, **more: Any) -> Any:
    return apply.create(harness.context(identity=identity, **more), RESOURCE, given or inputs())


def on_account(harness: ResourceHarness) -> list[int]:
    return [row["id"] for row in harness.control("GET", "/objects")["ssh_keys"]]


def test_an_object_that_was_created_is_deleted(harness: ResourceHarness) -> None:
    made = create(harness)
    assert made.taken_over is False
    assert apply.read(harness.context(), RESOURCE, made).taken_over is False
    apply.delete(harness.context(identity=STAGING), RESOURCE, made)
    assert on_account(harness) == []


def test_an_existing_object_is_taken_over_with_a_message_and_kept(harness: ResourceHarness) -> None:
    first = create(harness)
    planned = RESOURCE.takeover(harness.context(identity=PROD), inputs())
    assert planned is not None
    assert (planned.announcement(harness.context().service_now())) == (
        f"takes over SSH key {first.id} (it is on the account already; destroy keeps it)"
    )
    taken = create(harness, PROD)
    assert (taken.id, taken.taken_over) == (first.id, True)
    assert harness.messages == [
        f"takes over SSH key {first.id} (it is on the account already; destroy keeps it)"
    ]
    taken = apply.read(harness.context(identity=PROD), RESOURCE, taken)
    assert taken.taken_over is True
    apply.delete(harness.context(identity=PROD), RESOURCE, taken)
    assert on_account(harness) == [int(first.id)]
    assert any(
        f"SSH key alice ({first.id}) stays: it was not created here" in line for line in harness.messages
    )


def test_of_several_that_are_the_same_each_is_taken_over_by_its_id(harness: ResourceHarness) -> None:
    harness.control("PATCH", "/service", {"readings": {"duplicate_ssh_key": "second"}})
    for name in ("alice", "alice", "bob"):
        harness.context().client.ssh_keys.create(name=name, public_key=LINE)
    first, second, other = on_account(harness)
    taken = inputs(adopt_id=str(second))
    planned = RESOURCE.takeover(harness.context(), taken)
    assert planned is not None
    assert (planned.state.id, planned.reason) == (str(second), "adopt_id names it; destroy keeps it")
    for identity, id in ((STAGING, first), (PROD, second)):
        made = create(harness, identity, inputs(adopt_id=str(id)))
        assert (made.id, made.taken_over) == (str(id), True)
        apply.delete(harness.context(identity=identity), RESOURCE, made)
    for wrong, message in (
        ({"adopt_id": str(other)}, f"adopt_id: SSH key {other} is named 'bob'. Next: declare it as it is"),
        (
            {"adopt_id": str(first), "public_key": OTHER},
            f"adopt_id: SSH key {first} is another key. Next: decl",
        ),
        ({"adopt_id": "4000000"}, "adopt_id: there is no SSH key 4000000 on this account. Next: correct"),
    ):
        for look in (RESOURCE.takeover, RESOURCE.create):
            with pytest.raises(ResourceError, match=message):
                look(harness.context(), inputs(**wrong))
    assert on_account(harness) == [first, second, other]


@pytest.mark.parametrize("after", [False, True])
def test_what_is_found_after_a_crash_is_taken_over(harness: ResourceHarness, after: bool) -> None:
    probe = KillingTransport()
    create(harness, transport=probe)
    at = probe.sent.index("POST /v1/ssh-keys")
    harness.control("POST", "/reset", {})
    with pytest.raises(ProcessKilled):
        create(harness, transport=KillingTransport(at, after))
    again = create(harness)
    assert again.taken_over is after
    assert on_account(harness) == [int(again.id)]


def test_a_key_that_was_only_looked_at_is_not_deleted(harness: ResourceHarness) -> None:
    """An import knows nothing but the id."""
    first = create(harness)
    imported = apply.read(harness.context(identity=PROD), RESOURCE, RESOURCE.State.partial({"id": first.id}))
    assert imported.taken_over is True
    apply.delete(harness.context(identity=PROD), RESOURCE, imported)
    assert on_account(harness) == [int(first.id)]


def test_a_play_deletes_what_it_names(harness: ResourceHarness) -> None:
    create(harness)
    context = harness.context(identity="ansible:play", name_is_identity=True)
    assert apply.ensure(context, RESOURCE, inputs()).action == "unchanged"
    assert apply.ensure_absent(context, RESOURCE, inputs()).action == "deleted"
    assert on_account(harness) == []
    assert not [line for line in harness.messages if "taken" in line or "takes" in line]


def test_a_key_under_another_name_is_refused_before_anything_is_sent(harness: ResourceHarness) -> None:
    first = create(harness)
    other = inputs(name="bob", public_key=f"{LINE} bob@example")
    context = harness.context(identity=PROD)
    failures = RESOURCE.validate(context, other.given(), frozenset(other.given()))
    assert failures == {
        "name": f"this public key is on the account already, as 'alice' (id {first.id}), and the API cannot "
        "rename it. Next: declare it with the name 'alice', or delete it first"
    }
    assert RESOURCE.takeover(context, other) is None
    with pytest.raises(ResourceConflict, match="declare it with the name 'alice'"):
        create(harness, PROD, other)
    # the advice resolves it
    assert RESOURCE.validate(context, inputs().given(), frozenset(inputs().given())) == {}
    assert create(harness, PROD).id == first.id


def test_two_names_of_one_key(harness: ResourceHarness) -> None:
    """Where the service allows doubles, the one of the declared name is meant."""
    harness.account.variant(duplicate_ssh_key="second")
    client = harness.context().client
    client.ssh_keys.create(name="alice", public_key=LINE)
    bob = client.ssh_keys.create(name="bob", public_key=LINE)
    wanted = inputs(name="bob")
    assert RESOURCE.validate(harness.context(identity=PROD), wanted.given(), frozenset(wanted.given())) == {}
    assert create(harness, PROD, wanted).id == str(bob.id)


@pytest.mark.usefixtures("machines")
@pytest.mark.parametrize("duplicates", ["conflict", "second"])
def test_two_creations_at_the_same_moment_end_with_one_key(harness: ResourceHarness, duplicates: str) -> None:
    harness.account.variant(duplicate_ssh_key=duplicates)
    barrier = threading.Barrier(2)
    states = at_once(
        *(
            lambda identity=identity: create(
                harness, identity, transport=SimultaneousTransport(barrier, "/ssh-keys")
            )
            for identity in (STAGING, PROD)
        )
    )
    (left,) = on_account(harness)
    assert {state.id for state in states} == {str(left)}
    assert sorted(state.taken_over for state in states) == [False, True]
    # each is destroyed: the one that made it deletes it
    pairs = zip(states, (STAGING, PROD), strict=True)
    for state, identity in sorted(pairs, key=lambda pair: not pair[0].taken_over):
        apply.delete(harness.context(identity=identity), RESOURCE, state)
    assert on_account(harness) == []


@pytest.mark.usefixtures("machines")
def test_a_surplus_that_cannot_be_deleted_is_kept_in_the_state(harness: ResourceHarness) -> None:
    harness.account.variant(duplicate_ssh_key="second")
    barrier = threading.Barrier(2)
    harness.fault(
        {"status": 503, "code": "temporarily_unavailable"}, path="^/ssh-keys/", method="DELETE", times=99
    )
    states = at_once(
        *(
            lambda identity=identity: create(
                harness, identity, transport=SimultaneousTransport(barrier, "/ssh-keys")
            )
            for identity in (STAGING, PROD)
        )
    )
    assert sorted(int(state.id) for state in states) == on_account(harness)
    assert [state.taken_over for state in states] == [False, False]
    assert any("could not be deleted" in line for line in harness.messages)


def test_a_list_that_cannot_be_read_after_the_creation_loses_nothing(harness: ResourceHarness) -> None:
    harness.fault({"patch": {"data": [{"id": "x"}]}}, path="^/ssh-keys$", method="GET", after=1)
    made = create(harness)
    assert (made.taken_over, on_account(harness)) == (False, [int(made.id)])
    assert any("whether another process added it too is not known" in line for line in harness.messages)


def test_a_deletion_that_fails_is_no_success(harness: ResourceHarness) -> None:
    made = create(harness)
    harness.fault({"status": 502, "code": "upstream_error"}, path="^/ssh-keys/", method="DELETE", times=99)
    with pytest.raises(Exception, match="upstream_error"):
        apply.delete(harness.context(identity=STAGING), RESOURCE, made)
    assert on_account(harness) == [int(made.id)]


# --- keys that other stacks use, as this machine noted it


def order(harness: ResourceHarness, key: str, identity: str, **given: Any) -> Any:
    inputs = {**GOOD, "name": identity.rpartition("/")[2], "ssh_key_ids": [key], **given}
    return harness.order(inputs, identity=identity, kind="server")


def delete(harness: ResourceHarness, state: Any, identity: str = STAGING, resource: Any = RESOURCE) -> None:
    apply.delete(harness.context(identity=identity, kind=resource.kind), resource, state)


def test_a_key_stays_while_a_server_of_another_stack_uses_it(harness: ResourceHarness) -> None:
    made = create(harness)
    server = order(harness, made.id, "pulumi:t/prod/server/web")
    sent = len(harness.control("GET", "/requests"))
    delete(harness, made)
    assert on_account(harness) == [int(made.id)]
    assert harness.messages[-1] == (
        f"SSH key alice ({made.id}) stays: a run on this machine noted that pulumi:t/prod/server/web uses "
        "it. Next: delete it in the control panel if nothing else uses it"
    )
    asked = [row["path"] for row in harness.control("GET", "/requests")[sent:]]
    assert asked == ["/me", "/ssh-keys"]
    delete(harness, server, "pulumi:t/prod/server/web", SERVER)
    delete(harness, made)
    assert on_account(harness) == []
    assert harness.messages[-1] == (
        f"SSH key alice ({made.id}) deleted; other stacks may declare it, which the API does not show: there "
        "pulumi up --refresh adds it again"
    )


def test_a_key_that_another_stack_declares_stays_until_that_stack_is_destroyed(
    harness: ResourceHarness,
) -> None:
    made = create(harness)
    taken = create(harness, PROD)
    delete(harness, made)
    assert on_account(harness) == [int(made.id)]
    assert f"noted that {PROD} uses it" in harness.messages[-1]
    delete(harness, taken, PROD)
    assert "it was not created here" in harness.messages[-1]
    delete(harness, made)
    assert on_account(harness) == []


def test_servers_of_the_same_stack_keep_no_key(harness: ResourceHarness) -> None:
    made = create(harness)
    order(harness, made.id, "pulumi:t/staging/server/web")
    delete(harness, made)
    assert on_account(harness) == []


def test_a_replaced_server_goes_on_using_its_key(harness: ResourceHarness) -> None:
    made, prod = create(harness), "pulumi:t/prod/server/web"
    old = order(harness, made.id, prod)
    ownership = Ownership()
    ownership.of_kind("server").add(prod, old.id)
    new = harness.order(
        {**GOOD, "name": "web", "ssh_key_ids": [made.id], "order_attempt": 1},
        identity=prod,
        kind="server",
        owned=frozenset({old.id}),
        ownership=ownership,
    )
    assert new.id != old.id
    apply.delete(harness.context(identity=prod, kind="server", ownership=ownership), SERVER, old)
    delete(harness, made)
    assert on_account(harness) == [int(made.id)]
    delete(harness, new, prod, SERVER)
    delete(harness, made)
    assert on_account(harness) == []


def test_a_server_that_ended_uses_no_key(harness: ResourceHarness) -> None:
    made, prod = create(harness), "pulumi:t/prod/server/web"
    server = order(harness, made.id, prod)
    harness.control("DELETE", f"/servers/{server.id}")
    assert apply.read(harness.context(identity=prod, kind="server"), SERVER, server) is None
    delete(harness, made)
    assert on_account(harness) == []


def test_a_note_about_a_key_of_an_emulator_before_keeps_nothing(harness: ResourceHarness) -> None:
    made = create(harness)
    order(harness, made.id, "pulumi:t/prod/server/web")
    harness.control("POST", "/reset", {})
    harness.control("POST", "/clock", {"advance": 60})
    again = create(harness)
    assert again.id == made.id
    delete(harness, again)
    assert on_account(harness) == []


def test_a_machine_without_notes_deletes_it(harness: ResourceHarness) -> None:
    made = create(harness)
    order(harness, made.id, "pulumi:t/prod/server/web")
    harness.another_machine()
    delete(harness, made)
    assert on_account(harness) == []


def test_a_play_deletes_a_key_that_it_names_whoever_uses_it(harness: ResourceHarness) -> None:
    made = create(harness)
    order(harness, made.id, "pulumi:t/prod/server/web")
    context = harness.context(identity="ansible:/alice", name_is_identity=True)
    assert apply.ensure_absent(context, RESOURCE, inputs()).action == "deleted"
    assert on_account(harness) == []
