# ruff: noqa: F811  # fixtures
"""An SSH key through Pulumi's questions, with the account asked after each."""

from typing import Any

from pulumi_hosting.provider.conversion import IDENTITY
from pulumi_hosting.rehearsal.control_client import Control
from tests.provider.test_half_way import control, processes  # noqa: F401  # fixtures are imported
from tests.support.programs import OTHER_KEY, PUBLIC_KEY

KEY: dict[str, Any] = {"name": "alice", "publicKey": PUBLIC_KEY}


def keys(control: Control) -> list[int]:
    return [row["id"] for row in control("GET", "/objects")["ssh_keys"]]


def declared(
    process: Any, given: dict[str, Any], olds: dict[str, Any] | None = None, name: str = "alice"
) -> tuple[Any, dict[str, str]]:
    return process.of("ssh_key").check(olds or {}, {**given, IDENTITY: f"pulumi:t/dev/ssh_key/{name}"})  # type: ignore[no-any-return]  # answers are any JSON


def test_a_key_of_another_stack_is_announced_recorded_and_left(processes: Any, control: Control) -> None:
    id, mine, _ = processes().made("ssh_key", "theirs", KEY)
    process = processes()
    inputs, failures = declared(process, KEY)
    assert failures == {}
    assert process.told == [
        (f"alice: takes over SSH key {id} (it is on the account already; destroy keeps it)")
    ]
    taken, outputs = process.of("ssh_key").create(inputs)
    assert (taken, outputs["takenOver"], mine["takenOver"]) == (id, True, False)
    later = processes()
    found = later.of("ssh_key").read(id, outputs, inputs)
    assert found is not None
    assert found[1]["takenOver"] is True
    later.of("ssh_key").delete(id, found[1])
    assert keys(control) == [int(id)]
    assert [line for line in later.told if "stays" in line] == [
        (
            f"alice: warning: SSH key alice ({id}) stays: it was not created here. Next: delete it in the "
            f"control panel if nothing else uses it"
        )
    ]
    processes().of("ssh_key").delete(id, mine)
    assert keys(control) == []


def test_another_name_is_refused_in_the_preview(processes: Any) -> None:
    id, _, _ = processes().made("ssh_key", "theirs", KEY)
    _, failures = declared(processes(), {**KEY, "name": "bob"})
    assert failures.keys() == {"name"}
    assert f"as 'alice' (id {id})" in failures["name"]


def test_an_own_key_may_get_another_name_and_comment(processes: Any, control: Control) -> None:
    id, outputs, inputs = processes().made("ssh_key", "alice", KEY)
    process = processes()
    news, failures = declared(
        process, {"name": "bob", "publicKey": PUBLIC_KEY.replace("me@host", "bob@host")}, inputs
    )
    assert failures == {}
    found = process.of("ssh_key").diff(id, outputs, news)
    assert (found.replaces, found.delete_before_replace) == (("name",), True)
    assert declared(process, news) == (news, {})  # as an engine asks for the new one
    assert process.told == []
    process.of("ssh_key").delete(id, outputs)
    again, outs = process.of("ssh_key").create(news)
    assert keys(control) == [int(again)]
    assert outs["takenOver"] is False


def test_a_key_that_was_taken_over_cannot_get_another_name(processes: Any) -> None:
    processes().made("ssh_key", "theirs", KEY)
    id, outputs, inputs = processes().made("ssh_key", "alice", KEY)
    process = processes()
    news, failures = declared(process, {**KEY, "name": "bob"}, inputs)
    assert failures == {}
    assert process.of("ssh_key").diff(id, outputs, news).replaces == ("name",)
    _, failures = declared(process, news)  # as an engine asks for the new one, in the preview too
    assert "declare it with the name 'alice'" in failures["name"]


def test_a_key_that_was_taken_over_is_replaced_and_stays(processes: Any, control: Control) -> None:
    theirs, _, _ = processes().made("ssh_key", "theirs", KEY)
    id, outputs, inputs = processes().made("ssh_key", "alice", KEY)
    process = processes()
    news, failures = declared(process, {**KEY, "publicKey": OTHER_KEY}, inputs)
    assert failures == {}
    assert process.of("ssh_key").diff(id, outputs, news).replaces == ("publicKey",)
    process.of("ssh_key").delete(id, outputs)
    again, outs = process.of("ssh_key").create(news)
    assert keys(control) == [int(theirs), int(again)]
    process = processes()
    process.of("ssh_key").delete(again, outs)
    assert keys(control) == [int(theirs)]


def test_a_targeted_replacement_makes_the_key_anew(processes: Any, control: Control) -> None:
    """With delete-before-replace no difference is asked for: the old key goes, then the new one comes."""
    id, outputs, inputs = processes().made("ssh_key", "alice", KEY)
    process = processes()
    process.of("ssh_key").delete(id, outputs)
    again, outs = process.of("ssh_key").create(inputs)
    assert again != id
    assert keys(control) == [int(again)]
    assert outs["takenOver"] is False
