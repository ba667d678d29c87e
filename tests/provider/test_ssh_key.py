"""An SSH key through Pulumi's questions, with the account asked after each."""

from typing import Any

from pulumi_hosting.provider.names import IDENTITY
from tests.provider.processes import Process, Start
from tests.support.account import Account
from tests.support.programs import OTHER_KEY, PUBLIC_KEY

KEY: dict[str, Any] = {"name": "alice", "publicKey": PUBLIC_KEY}


def keys(account: Account) -> list[int]:
    return [row["id"] for row in account.control("GET", "/objects")["ssh_keys"]]


def declared(
    process: Process, given: dict[str, Any], olds: dict[str, Any] | None = None, name: str = "alice"
) -> tuple[Any, dict[str, str]]:
    return process.of("ssh_key").check(olds or {}, {**given, IDENTITY: f"pulumi:t/dev/ssh_key/{name}"})


def test_a_key_of_another_stack_is_announced_recorded_and_left(processes: Start, account: Account) -> None:
    id, mine, _ = processes().made("ssh_key", "theirs", KEY)
    process = processes()
    inputs, failures = declared(process, KEY)
    assert failures == {}
    assert process.lines == [
        f"alice: takes over SSH key {id} (it is on the account already; destroy keeps it)"
    ]
    taken, outputs = process.of("ssh_key").create(inputs)
    assert len([line for line in process.lines if "takes over" in line]) == 1
    assert (taken, outputs["takenOver"], mine["takenOver"]) == (id, True, False)
    later = processes()
    found = later.of("ssh_key").read(id, outputs, inputs)
    assert found is not None
    assert found[1]["takenOver"] is True
    later.of("ssh_key").delete(id, found[1])
    assert keys(account) == [int(id)]
    assert [line for line in later.lines if "stays" in line] == [
        (
            f"alice: warning: SSH key alice ({id}) stays: it was not created here. Next: delete it in the "
            f"control panel if nothing else uses it"
        )
    ]
    processes().of("ssh_key").delete(id, mine)
    assert keys(account) == []


def test_another_name_is_refused_in_the_preview(processes: Start) -> None:
    id, _, _ = processes().made("ssh_key", "theirs", KEY)
    _, failures = declared(processes(), {**KEY, "name": "bob"})
    assert failures.keys() == {"name"}
    assert f"as 'alice' (id {id})" in failures["name"]


def test_an_own_key_may_get_another_name_and_comment(processes: Start, account: Account) -> None:
    id, outputs, inputs = processes().made("ssh_key", "alice", KEY)
    process = processes()
    news, failures = declared(
        process, {"name": "bob", "publicKey": PUBLIC_KEY.replace("me@host", "bob@host")}, inputs
    )
    assert failures == {}
    found = process.of("ssh_key").diff(id, outputs, news)
    assert (found.replaces, found.delete_before_replace) == (("name",), True)
    assert declared(process, news) == (news, {})  # as an engine asks for the new one
    assert process.lines == []
    process.of("ssh_key").delete(id, outputs)
    again, outs = process.of("ssh_key").create(news)
    assert keys(account) == [int(again)]
    assert outs["takenOver"] is False


def test_a_key_that_was_taken_over_cannot_get_another_name(processes: Start) -> None:
    processes().made("ssh_key", "theirs", KEY)
    id, outputs, inputs = processes().made("ssh_key", "alice", KEY)
    process = processes()
    news, failures = declared(process, {**KEY, "name": "bob"}, inputs)
    assert failures == {}
    assert process.of("ssh_key").diff(id, outputs, news).replaces == ("name",)
    _, failures = declared(process, news)  # as an engine asks for the new one, in the preview too
    assert "declare it with the name 'alice'" in failures["name"]


def test_a_key_that_was_taken_over_is_replaced_and_stays(processes: Start, account: Account) -> None:
    theirs, _, _ = processes().made("ssh_key", "theirs", KEY)
    id, outputs, inputs = processes().made("ssh_key", "alice", KEY)
    process = processes()
    news, failures = declared(process, {**KEY, "publicKey": OTHER_KEY}, inputs)
    assert failures == {}
    assert process.of("ssh_key").diff(id, outputs, news).replaces == ("publicKey",)
    process.of("ssh_key").delete(id, outputs)
    again, outs = process.of("ssh_key").create(news)
    assert keys(account) == [int(theirs), int(again)]
    process = processes()
    process.of("ssh_key").delete(again, outs)
    assert keys(account) == [int(theirs)]


def test_a_targeted_replacement_makes_the_key_again(processes: Start, account: Account) -> None:
    """With delete-before-replace no difference is asked for: the old key goes, then the new one comes."""
    id, outputs, inputs = processes().made("ssh_key", "alice", KEY)
    process = processes()
    process.of("ssh_key").delete(id, outputs)
    again, outs = process.of("ssh_key").create(inputs)
    assert again != id
    assert keys(account) == [int(again)]
    assert outs["takenOver"] is False
