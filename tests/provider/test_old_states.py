"""A state that is wrong: an id that was edited, or a backup. Every test ends by asking the account."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pulumi_hosting.exactly_once.ownership_tag import ownership_tag, with_tag
from pulumi_hosting.provider.names import IDENTITY
from pulumi_hosting.session.errors import NotOurs
from tests.provider.processes import WEB, Entry, Process, provider_process
from tests.support.account import Account
from tests.support.programs import OTHER_KEY, PUBLIC_KEY

HOOK: dict[str, Any] = {"url": "https://hooks.example.com/x", "events": ["*"]}
Step = Callable[[], object]
FORGET = r"Next: pulumi state delete 'urn:pulumi:dev::t::\S+::{}' leaves it as it is"
ADOPT = r"to take it over, then set adopt_id={} and run pulumi up"


def update(process: Process, kind: str, entry: Entry, given: dict[str, Any]) -> dict[str, Any]:
    name = entry.inputs[IDENTITY].rpartition("/")[2]
    checked = process.check(kind, name, given, entry.inputs)
    assert process.of(kind).diff(entry.id, entry.outputs, checked).changes
    return process.of(kind).update(entry.id, entry.outputs, checked)


def by_hand(account: Account, name: str = "precious") -> str:
    """A server that a person orders in the control panel."""
    made = account.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12", "months": 1, "name": name})
    return str(made.json()["server"]["id"])


def writes(account: Account) -> list[str]:
    return [path for method in ("PATCH", "DELETE", "PUT") for path in account.requested(method)]


# --- another object's id


@pytest.mark.parametrize("later", [0, 3600])
@pytest.mark.parametrize("name", ["precious", "web"])
def test_a_server_that_was_ordered_by_hand_is_not_touched(account: Account, later: float, name: str) -> None:
    web = provider_process(account).create("server", "web", WEB)
    account.advance(later)
    id = by_hand(account, name)
    wrong, before = replace(web, id=id), len(writes(account))
    steps: list[Step] = [
        lambda: provider_process(account).delete("server", wrong),
        lambda: update(provider_process(account), "server", wrong, {**WEB, "notes": "mine"}),
    ]
    if later:  # by what never changes, a refresh tells too
        steps.append(lambda: provider_process(account).refresh("server", wrong))
    else:
        assert provider_process(account).refresh("server", wrong).outputs["name"] == name
        refreshed = provider_process(account).refresh("server", wrong)
        steps.append(lambda: provider_process(account).delete("server", refreshed))
    for step in steps:
        with pytest.raises(NotOurs, match=f"server {id}: it is not what the state recorded") as stopped:
            step()
        assert stopped.match(FORGET.format("web"))
        assert stopped.match(ADOPT.format(id))
    assert len(writes(account)) == before
    assert account.living_ids == [web.id, id]


def test_the_advice_for_the_older_of_two_entries_says_which_one_to_choose(account: Account) -> None:
    """Of a URN that names two, ``pulumi state delete`` asks in a terminal, and fails elsewhere."""
    web = provider_process(account).create("server", "web", WEB)
    older, later = replace(web, id=by_hand(account)), provider_process(account)
    assert not later.of("server").diff(web.id, web.outputs, later.check("server", "web", WEB)).changes
    with pytest.raises(NotOurs, match=rf"delete 'urn:\S+' in a terminal, choosing {older.id}, leaves it as"):
        later.delete("server", older)
    assert account.living_ids == [web.id, older.id]


def test_another_stacks_server_is_neither_renamed_nor_deleted(account: Account) -> None:
    web = provider_process(account).create("server", "web", WEB)
    process = provider_process(account)
    inputs, failures = process.of("server").check(
        {}, {**WEB, "name": "db", IDENTITY: "pulumi:t/prod/server/db"}
    )
    assert failures == {}
    id, _ = process.of("server").create(inputs)
    wrong, before = replace(web, id=id), len(writes(account))
    refreshed = provider_process(account).refresh("server", wrong)
    assert refreshed.outputs["name"] == "db"
    for step in (
        lambda: update(provider_process(account), "server", refreshed, WEB),
        lambda: provider_process(account).delete("server", wrong),
        lambda: provider_process(account).delete("server", refreshed),
    ):
        with pytest.raises(NotOurs, match=f"server {id}: it carries the ownership tag of another resource"):
            step()
    assert len(writes(account)) == before
    assert {server["name"] for server in account.living} == {"web", "db"}


def test_another_persons_key_is_not_deleted(account: Account) -> None:
    key = provider_process(account).create("ssh_key", "me", {"name": "me", "publicKey": PUBLIC_KEY})
    other = account.api("POST", "/ssh-keys", {"name": "you", "public_key": OTHER_KEY}).json()
    wrong = replace(key, id=str(other["id"]))
    for step in (
        lambda: provider_process(account).delete("ssh_key", wrong),
        lambda: provider_process(account).refresh("ssh_key", wrong),
    ):
        with pytest.raises(
            NotOurs, match=f"SSH key {wrong.id}: it is not what the state recorded"
        ) as stopped:
            step()
        assert stopped.match(ADOPT.format(wrong.id))
    assert len(account.objects("ssh_keys")) == 2


def test_another_address_and_its_record_are_not_touched(account: Account) -> None:
    first = provider_process(account)
    web = first.create("server", "web", WEB)
    mail = first.create("server_ip", "mail", {"serverId": web.id})
    spare = first.create("server_ip", "spare", {"serverId": web.id})
    record = {"serverId": web.id, "address": mail.outputs["address"], "domain": "mail.example.com"}
    changed = {**record, "domain": "new.example.com"}
    name = first.create("ptr", "name", record)
    account.control(
        "PATCH", f"/servers/{web.id}/ips/{spare.id.partition('/')[2]}", {"ptr": "other.example.com"}
    )
    address, pointer = replace(mail, id=spare.id), replace(name, id=spare.id)
    steps: list[Step] = [
        lambda: provider_process(account).delete("server_ip", address),
        lambda: provider_process(account).refresh("server_ip", address),
        lambda: provider_process(account).delete("ptr", pointer),
        lambda: provider_process(account).refresh("ptr", pointer),
        lambda: update(provider_process(account), "ptr", pointer, changed),
    ]
    for step in steps:
        with pytest.raises(NotOurs, match=f"{spare.id}: it is not what the state recorded .address is"):
            step()
    bought = {str(row["id"]): row["ptr"] for row in account.objects("addresses") if row["bought"]}
    assert bought == {
        mail.id.partition("/")[2]: "mail.example.com",
        spare.id.partition("/")[2]: "other.example.com",
    }


def test_another_domain_goes_on_renewing(account: Account) -> None:
    first = provider_process(account)
    site = first.create("domain", "site", {"name": "example.com", "autoRenew": True})
    other = first.create("domain", "other", {"name": "example.net", "autoRenew": True})
    wrong = replace(site, id=other.id)
    for step in (
        lambda: provider_process(account).delete("domain", wrong),
        lambda: provider_process(account).refresh("domain", wrong),
        lambda: update(
            provider_process(account), "domain", wrong, {"name": "example.com", "autoRenew": False}
        ),
    ):
        with pytest.raises(NotOurs, match=r"name is 'example\.net', not 'example\.com'"):
            step()
    assert [domain["auto_renew"] for domain in account.objects("domains")] == [True, True]


@pytest.mark.parametrize("later", [0, 3600])
def test_another_subscription_is_not_touched(account: Account, later: float) -> None:
    hook = provider_process(account).create("webhook_subscription", "hook", HOOK)
    account.advance(later)
    url = "https://hooks.example.com/theirs"
    other = account.api("POST", "/webhooks", {"url": url, "events": ["ping"]}).json()
    wrong = replace(hook, id=str(other["id"]))
    steps: list[Step] = [
        lambda: provider_process(account).delete("webhook_subscription", wrong),
        lambda: update(provider_process(account), "webhook_subscription", wrong, {**HOOK, "active": False}),
    ]
    if later:
        steps.append(lambda: provider_process(account).refresh("webhook_subscription", wrong))
    for step in steps:
        with pytest.raises(NotOurs, match=f"{wrong.id}: it is not what the state recorded") as stopped:
            step()
        assert stopped.match(ADOPT.format(wrong.id))
    assert {row["url"]: row["events"] for row in account.objects("subscriptions")} == {
        HOOK["url"]: ["*"],
        url: ["ping"],
    }


# --- its own object, edited in the control panel


def test_a_renamed_server_with_its_tag_is_repaired_and_deleted(account: Account) -> None:
    web = provider_process(account).create("server", "web", WEB)
    account.control("PATCH", f"/servers/{web.id}", {"name": "renamed"})
    refreshed = provider_process(account).refresh("server", web)
    process = provider_process(account)
    update(process, "server", refreshed, WEB)
    assert [server["name"] for server in account.living] == ["web"]
    assert not [line for line in process.lines if "ownership tag" in line]
    account.control("PATCH", f"/servers/{web.id}", {"name": "renamed"})
    provider_process(account).delete("server", web)
    assert account.living == []


@pytest.mark.parametrize("notes", ["", "by hand", "by hand [iac:abcdefgh]"])
def test_a_missing_tag_is_written_again_with_a_warning(account: Account, notes: str) -> None:
    web = provider_process(account).create("server", "web", WEB)
    account.control("PATCH", f"/servers/{web.id}", {"notes": notes})
    process = provider_process(account)
    outputs = update(process, "server", web, {**WEB, "autoRenew": False})
    (server,) = account.living
    assert server["notes"] == with_tag(notes, ownership_tag("pulumi:t/dev/server/web"))
    assert server["auto_renew"] is False
    assert [line for line in process.lines if "tag" in line] == [
        f"web: warning: server {web.id} carries no ownership tag, after an edit in the control panel or a "
        "run that could not write it; all else is as the state recorded it, so the tag is written again"
    ]
    account.control("PATCH", f"/servers/{web.id}", {"notes": notes})
    process = provider_process(account)
    process.delete("server", replace(web, outputs=outputs))
    assert account.living == []
    assert any("all else is as the state recorded it, so it is deleted" in line for line in process.lines)


def test_a_missing_tag_and_another_name_stop_until_a_refresh_has_shown_the_name(account: Account) -> None:
    web = provider_process(account).create("server", "web", WEB)
    account.control("PATCH", f"/servers/{web.id}", {"notes": "", "name": "renamed"})
    with pytest.raises(NotOurs, match="name is 'renamed', not 'web'"):
        provider_process(account).delete("server", web)
    provider_process(account).delete("server", provider_process(account).refresh("server", web))
    assert account.living == []


def test_a_missing_tag_of_a_subscription_is_written_again(account: Account) -> None:
    hook = provider_process(account).create("webhook_subscription", "hook", HOOK)
    account.control("PATCH", f"/webhooks/{hook.id}", {"description": "by hand"})
    process = provider_process(account)
    update(process, "webhook_subscription", hook, {**HOOK, "active": False})
    (row,) = account.objects("subscriptions")
    assert row["description"] == hook.outputs["ownershipTag"]
    assert row["active"] is False
    assert any("so the tag is written again" in line for line in process.lines)


def test_a_change_costs_no_request_more_than_the_read_before_it(account: Account) -> None:
    web = provider_process(account).create("server", "web", WEB)
    process = provider_process(account)
    read = process.refresh("server", web)
    before = len(account.control("GET", "/requests"))
    update(process, "server", read, {**WEB, "autoRenew": False})
    rows = account.control("GET", "/requests")[before:]
    assert [f"{row['method']} {row['path']}" for row in rows] == [f"PATCH /servers/{web.id}"]


def test_an_imported_server_is_managed_whatever_tag_it_has(account: Account) -> None:
    first = provider_process(account)
    inputs, _ = first.of("server").check({}, {**WEB, IDENTITY: "pulumi:t/prod/server/web"})
    id, theirs = first.of("server").create(inputs)
    imported = provider_process(account).of("server", native=True).read(id, {}, {})
    assert imported is not None
    entry = Entry(id, imported[1], {**imported[2], IDENTITY: "pulumi:t/dev/server/web"})
    outputs = update(provider_process(account), "server", entry, {**WEB, "notes": "moved"})
    (server,) = account.living
    assert server["notes"] == with_tag("moved", ownership_tag("pulumi:t/dev/server/web", 1))
    with pytest.raises(NotOurs, match="another resource"):
        provider_process(account).of("server").delete(id, theirs)
    provider_process(account).of("server").delete(id, outputs)
    assert account.living == []


# --- a state from a backup


def replaced(account: Account) -> tuple[Entry, Entry]:
    """The entry of a backup, and the present one: the server was replaced between them."""
    old = provider_process(account).create("server", "web", WEB)
    process = provider_process(account)
    bigger = {**WEB, "tariffId": 2.0}
    checked = process.check("server", "web", bigger, old.inputs)
    assert process.of("server").diff(old.id, old.outputs, checked).replaces
    new = process.create("server", "web", bigger)
    process.delete("server", old)
    assert account.living_ids == [new.id]
    return old, new


def test_a_deletion_of_what_was_replaced_since_names_what_is_there_and_its_commands_delete_it(
    account: Account,
) -> None:
    old, new = replaced(account)
    process = provider_process(account)
    with pytest.raises(NotOurs) as stopped:
        process.delete("server", old)
    assert str(stopped.value) == (
        f"server {old.id} is gone, and server {new.id} (web), 10.00 EUR a month, carries this resource's "
        "ownership tag; nothing was deleted. Next: pulumi up --refresh with a program that declares this "
        f"resource, which takes server {new.id} over or names the setting that does; then it can be "
        "destroyed. Or pulumi state delete "
        "'urn:pulumi:dev::t::pulumi-python:dynamic/hosting:Server::web', which leaves it as it is"
    )
    assert not [line for line in process.lines if "left the state" in line]
    assert account.living_ids == [new.id]
    # the first of the two commands, then the deletion
    process = provider_process(account)
    assert process.of("server").read(old.id, old.outputs, old.inputs) is None
    taken = process.create("server", "web", {**WEB, "tariffId": 2.0})
    assert taken.id == new.id
    provider_process(account).delete("server", taken)
    assert account.living == []
    assert account.moved() == 0


def test_a_refresh_of_what_was_replaced_since_says_what_is_there(account: Account) -> None:
    old, new = replaced(account)
    process = provider_process(account)
    assert process.of("server").read(old.id, old.outputs, old.inputs) is None
    (said,) = [line for line in process.lines if "gone" in line]
    assert (
        f"server {new.id} (web), 10.00 EUR a month, carries this resource's ownership tag: pulumi up" in said
    )
    assert "a new one is ordered" not in said


def test_a_change_of_what_was_replaced_since_stops(account: Account) -> None:
    old, new = replaced(account)
    process = provider_process(account)
    with pytest.raises(
        NotOurs, match=f"is gone, and server {new.id} .*; nothing was changed. Next: pulumi up"
    ):
        update(process, "server", old, {**WEB, "notes": "mine"})
    assert any(f"to take it over: server {new.id}" in line for line in process.lines)
    assert account.living[0]["notes"] == new.outputs["ownershipTag"]


@pytest.mark.parametrize("is_known", [True, False])
def test_the_older_of_two_entries_goes_where_the_newer_one_has_the_tag(
    account: Account, is_known: bool
) -> None:
    """A run that died between the deletion of the old server and the next save leaves both entries. The
    engine asks about both at the same moment, or first about the newer one."""
    old, new = replaced(account)
    process = provider_process(account)
    if is_known:
        process.refresh("server", new)
    else:  # the other thread comes while this one waits
        slept: list[float] = []
        sleep = process.session.clock.sleep

        def meanwhile(seconds: float) -> None:
            if not slept:
                slept.append(seconds)
                process.delete("server", new)
            sleep(seconds)

        process.session.clock.sleep = meanwhile  # type: ignore[method-assign]  # as another thread would
    process.delete("server", old)
    assert account.living_ids == ([new.id] if is_known else [])


def test_a_server_that_is_gone_costs_the_list_once(account: Account) -> None:
    first = provider_process(account)
    entries = [first.create("server", f"web-{n}", {**WEB, "name": f"web-{n}"}) for n in range(5)]
    for entry in entries:
        account.control("DELETE", f"/servers/{entry.id}")
    process = provider_process(account)
    before = len(account.control("GET", "/requests"))
    for entry in entries:
        process.delete("server", entry)
    rows = account.control("GET", "/requests")[before:]
    assert [row["path"] for row in rows].count("/servers") == 1
    assert len(rows) == 5 + 1 + 1  # each server, the account, the list


def test_a_subscription_that_was_replaced_since_is_named(account: Account) -> None:
    old = provider_process(account).create("webhook_subscription", "hook", HOOK)
    account.control("DELETE", f"/webhooks/{old.id}")
    new = provider_process(account).create("webhook_subscription", "hook", HOOK)
    for step in (
        lambda: provider_process(account).delete("webhook_subscription", old),
        lambda: update(provider_process(account), "webhook_subscription", old, {**HOOK, "active": False}),
    ):
        with pytest.raises(
            NotOurs, match=f"{old.id} is gone, and webhook subscription {new.id} .*x. carries"
        ):
            step()
    process = provider_process(account)
    assert process.of("webhook_subscription").read(old.id, old.outputs, old.inputs) is None
    assert any(f"is gone from the account; webhook subscription {new.id}" in line for line in process.lines)
    taken = process.create("webhook_subscription", "hook", HOOK)
    provider_process(account).delete("webhook_subscription", taken)
    assert account.objects("subscriptions") == []


def test_a_domain_that_was_registered_again_is_named(account: Account) -> None:
    old = provider_process(account).create("domain", "site", {"name": "example.com", "autoRenew": True})
    account.control("PATCH", f"/domains/{old.id}", {"status": "cancelled"})
    account.advance(8 * 86400)
    new = provider_process(account).create("domain", "site", {"name": "example.com", "autoRenew": True})
    assert new.id != old.id
    with pytest.raises(NotOurs, match=f"is gone, and domain {new.id} has its name; nothing was changed"):
        provider_process(account).delete("domain", old)
    assert [row["auto_renew"] for row in account.objects("domains") if str(row["id"]) == new.id] == [True]
