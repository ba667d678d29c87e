"""A deletion deletes or fails. Every test ends by asking the account."""

from decimal import Decimal
from typing import Any

import httpx
import pytest

from pulumi_hosting.client.exceptions import TransportError
from pulumi_hosting.provider.failures import PartialFailure
from pulumi_hosting.provider.names import IDENTITY
from pulumi_hosting.session.errors import ResourceError
from tests.emulator.support import PUBLIC_KEY
from tests.provider.processes import WEB, Entry, provider_process
from tests.support.account import Account


@pytest.mark.parametrize("refreshed", [False, True])
def test_a_destroy_deletes(account: Account, refreshed: bool) -> None:
    web = provider_process(account).create("server", "web", WEB)
    later = provider_process(account)
    later.delete("server", later.refresh("server", web) if refreshed else web)
    assert account.living_ids == []
    assert account.moved() == 0


class LosingTransport(httpx.BaseTransport):
    """The answer to the first deletion is lost, and there is no connection afterwards."""

    def __init__(self, account: Account) -> None:
        self.inner, self.lost = account.transport(), False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.lost:
            raise httpx.ConnectError("no connection")
        response = self.inner.handle_request(request)
        if request.method == "DELETE":
            self.lost = True
            raise httpx.ReadError("connection reset")
        return response


@pytest.mark.parametrize("kind", ["server", "server_ip", "ssh_key", "webhook_subscription"])
def test_a_lost_answer_without_a_connection_afterwards_leaves_open_whether_it_was_deleted(
    account: Account, kind: str
) -> None:
    first = provider_process(account)
    web = first.create("server", "web", WEB)
    given: dict[str, dict[str, Any]] = {
        "server_ip": {"serverId": web.id},
        "ssh_key": {"name": "me", "publicKey": PUBLIC_KEY},
        "webhook_subscription": {"url": "https://hooks.example.com/x", "events": ["*"]},
    }
    made = first.create(kind, "it", given[kind]) if kind in given else web
    failing = provider_process(account, LosingTransport(account))
    with pytest.raises(TransportError, match=r"^[\w ]+ \d+: .*may have been processed") as failed:
        failing.delete(kind, made)
    assert failed.value.outcome_unknown
    if kind == "server":
        (line,) = [line for line in failing.lines if "left the state" in line]
        assert line.startswith(f"web: warning: whether server {web.id} was deleted is not known")
    assert account.living_ids == ([] if kind == "server" else [web.id])
    assert account.objects("ssh_keys") == account.objects("subscriptions") == []
    assert not [row for row in account.objects("addresses") if row["bought"]]
    provider_process(account).delete(kind, made)
    # a server is refunded, an address that is released alone is not
    assert account.moved() == {"server": 0, "server_ip": 7}.get(kind, 5)


def test_a_removal_deletes_after_the_refresh_of_an_update(account: Account) -> None:
    first = provider_process(account)
    web, old = first.create("server", "web", WEB), first.create("server", "old", {**WEB, "name": "old"})
    later = provider_process(account)
    web, old = later.refresh("server", web), later.refresh("server", old)
    checked = later.check("server", "web", WEB, web.inputs)
    assert not later.of("server").diff(web.id, web.outputs, checked).changes
    later.delete("server", old)
    assert account.living_ids == [web.id]


@pytest.mark.parametrize("refreshed", [False, True])
@pytest.mark.parametrize("deleted_first", [False, True])
def test_a_replacement_leaves_the_new_one_alone(
    account: Account, refreshed: bool, deleted_first: bool
) -> None:
    web = provider_process(account).create("server", "web", WEB)
    later = provider_process(account)
    if refreshed:
        web = later.refresh("server", web)
    checked = later.check("server", "web", {**WEB, "tariffId": 2.0}, web.inputs)
    assert later.of("server").diff(web.id, web.outputs, checked).replaces == ("tariffId",)
    assert later.lines[-1] == (
        f"web: tariff_id by replacing server {web.id}: unless it is retained, it is deleted and ITS DISK IS "
        "ERASED, and about 5.00 EUR is credited"
    )
    if deleted_first:
        later.delete("server", web)
    new = later.create("server", "web", {**WEB, "tariffId": 2.0})
    if not deleted_first:
        later.delete("server", web)
    assert new.id != web.id
    assert account.living_ids == [new.id]
    assert account.moved() == Decimal("10.00")


def test_a_replacement_after_a_rename_deletes_the_old_one(account: Account) -> None:
    """As the native form asks: the recorded identity in the old values, the present one in the new values."""
    web = provider_process(account).create("server", "web", WEB)
    later = provider_process(account)
    checked = later.check("server", "web9", {**WEB, "tariffId": 2.0}, WEB)
    assert later.of("server", native=True).diff(web.id, web.outputs, checked).replaces == ("tariffId",)
    later.check("server", "web9", {**WEB, "tariffId": 2.0})  # engines check once more before a replacement
    assert not any("another server of this program" in line for line in later.lines)
    new = Entry(*later.of("server", native=True).create(checked), checked)
    later.delete("server", web)
    assert account.living_ids == [new.id]


def test_a_forced_replacement_without_a_refresh_fails_and_loses_nothing(account: Account) -> None:
    web = provider_process(account).create("server", "web", WEB)
    forced = provider_process(account)  # no difference is asked for
    found = forced.create("server", "web", WEB)
    assert found.id == web.id
    with pytest.raises(
        ResourceError,
        match=r"server 20001 was not replaced.*Next: pulumi up, which removes the older of the two entries "
        r"from the state and keeps the server; or, to replace it, pulumi up --refresh --target-replace "
        r"'\*\*hosting:Server::web' --target-dependents",
    ):
        forced.delete("server", web)
    assert account.living_ids == [web.id]
    # The advice: both entries are refreshed, the newer one is replaced, and both are deleted.
    advised = provider_process(account)
    web, found = advised.refresh("server", web), advised.refresh("server", found)
    new = advised.create("server", "web", WEB)
    advised.delete("server", found)
    advised.delete("server", web)
    assert account.living_ids == [new.id]
    assert account.moved() == Decimal("5.00")


@pytest.mark.parametrize("kind", ["server", "ssh_key", "webhook_subscription"])
def test_what_a_forced_replacement_left_for_deletion_takes_nothing_from_the_newer_entry(
    account: Account, kind: str
) -> None:
    """After the failure an ordinary update, refreshed or not, deletes the older entry. The newer one
    keeps the object.
    """
    given = {
        "server": WEB,
        "ssh_key": {"name": "me", "publicKey": PUBLIC_KEY},
        "webhook_subscription": {"url": "https://hooks.example.com/x", "events": ["*"]},
    }[kind]
    old = provider_process(account).create(kind, "it", given)
    new = provider_process(account).create(kind, "it", given)
    assert new.id == old.id
    later = provider_process(account)
    old, new = later.refresh(kind, old), later.refresh(kind, new)
    checked = later.check(kind, "it", given, new.inputs)
    assert not later.of(kind).diff(new.id, new.outputs, checked).changes
    later.delete(kind, old)
    assert any("stays: another resource of this stack has it" in line for line in later.lines)
    place = {"server": "servers", "ssh_key": "ssh_keys", "webhook_subscription": "subscriptions"}[kind]
    assert len(account.objects(place)) == 1
    assert account.moved() == (5 if kind == "server" else 0)


def test_two_resources_that_name_one_object_share_it_until_the_last_goes(account: Account) -> None:
    first = provider_process(account)
    web = first.create("server", "web", WEB)
    mine = first.create("ssh_key", "a", {"name": "me", "publicKey": PUBLIC_KEY})
    yours = Entry(
        mine.id, {**mine.outputs, "__entry": "another", IDENTITY: "pulumi:t/dev/ssh_key/b"}, mine.inputs
    )
    later = provider_process(account)  # b is no longer in the program
    checked = later.check("ssh_key", "a", {"name": "me", "publicKey": PUBLIC_KEY}, mine.inputs)
    assert not later.of("ssh_key").diff(mine.id, mine.outputs, checked).changes
    later.delete("ssh_key", yours)
    assert len(account.objects("ssh_keys")) == 1
    destroyed = provider_process(account)
    for entry in (mine, yours):
        destroyed.delete(
            "ssh_key", destroyed.refresh("ssh_key", entry) if account.objects("ssh_keys") else entry
        )
    assert account.objects("ssh_keys") == []
    destroyed.delete("server", web)


def ordered(account: Account) -> Entry:
    """A server whose order is still under way when the program stops waiting."""
    account.control(
        "POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}
    )
    process = provider_process(account)
    inputs = process.check("server", "web", {**WEB, "waitTimeout": 3.0})
    with pytest.raises(PartialFailure) as waiting:
        process.of("server", native=True).create(inputs)
    return Entry(waiting.value.id, dict(waiting.value.outputs), inputs)


def test_a_destroy_waits_for_an_order_and_deletes_what_it_became() -> None:
    account = Account(provisioning_delay=60)
    web = ordered(account)
    later = provider_process(account)
    later.of("server", native=True).delete(web.id, {**web.outputs, "waitTimeout": 600.0})
    assert account.living_ids == []
    assert account.moved() == 0


def test_a_destroy_that_cannot_wait_so_long_fails_and_keeps_the_order() -> None:
    account = Account(provisioning_delay=600)
    web = ordered(account)
    later = provider_process(account)
    with pytest.raises(PartialFailure) as waiting:  # the refresh that comes before an order is deleted
        later.of("server", native=True).read(web.id, web.outputs, web.inputs)
    assert waiting.value.id == web.id
    assert "or pulumi state delete 'urn:" in str(waiting.value)
    assert later.of("server", native=True).diff(web.id, waiting.value.outputs, web.inputs).changes is False
    with pytest.raises(
        ResourceError, match=r"order .* is on its way; 5\.00 EUR were charged, invoice .*pulumi state delete"
    ):
        later.of("server", native=True).delete(web.id, waiting.value.outputs)
    assert not [line for line in later.lines if "goes with it" in line]
    account.advance(600)
    last = provider_process(account)
    last.of("server", native=True).delete(web.id, web.outputs)
    assert account.living_ids == []
    assert account.moved() == 0
