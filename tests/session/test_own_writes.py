"""After every write of ours the snapshot shows what a fresh list shows, without asking for the list again."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.client.requests import HttpRequest
from pulumi_hosting.exactly_once import address_list, catalog_reads
from pulumi_hosting.exactly_once.order_facts import orders_and_servers
from pulumi_hosting.exactly_once.webhook_search import subscriptions
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session
from pulumi_hosting.session.snapshot_text import plain, to_text
from tests.support.account import Account
from tests.support.programs import PUBLIC_KEY

Write = Callable[[Client, int], Any]


def session_on(account: Account) -> tuple[Client, Request]:
    client = Client(
        account.live_key, account.base_url, transport=account.transport(), sleep=lambda seconds: None
    )
    return client, Request(Session(client), "pulumi:t/dev/server/web")


def order(client: Client, **more: Any) -> Any:
    return client.servers.create(tariff_id=1, os="debian-12", name="new", months=1, **more)


WRITES: dict[str, Write] = {
    "create_server": lambda client, id: order(client),
    "create_server with a password": lambda client, id: order(client, password="Correct-Horse-7"),
    "update_server": lambda client, id: client.servers.update(
        id, name="renamed", notes="n", auto_renew=False
    ),
    "delete_server": lambda client, id: client.servers.delete(id),
    "power_server": lambda client, id: client.servers.power(id, action="stop"),
    "reinstall_server": lambda client, id: client.servers.reinstall(id, os="ubuntu-24.04"),
    "reset_server_password": lambda client, id: client.servers.reset_password(id),
    "renew_server": lambda client, id: client.servers.renew(id, months=1),
    "add_server_ip": lambda client, id: client.servers.ips.add(id),
    "set_server_ip_ptr": lambda client, id: client.servers.ips.set_ptr(
        id, client.servers.ips.list(id)[0].id, domain="a.example.com"
    ),
    "delete_server_ip": lambda client, id: client.servers.ips.delete(id, client.servers.ips.list(id)[-1].id),
}


def fresh(account: Account) -> tuple[list[Any], list[Any]]:
    client, _ = session_on(account)
    return [plain(row) for row in client.orders.list()], [plain(row) for row in client.servers.list()]


def known(request: Request) -> tuple[list[Any], list[Any]]:
    orders, servers = orders_and_servers(request)
    return [plain(row) for row in orders], [plain(row) for row in servers]


def lists(account: Account, since: int) -> int:
    rows = account.control("GET", "/requests")[since:]
    return sum(row["method"] == "GET" and row["path"] in ("/servers", "/orders") for row in rows)


def test_every_write_to_a_server_is_tried() -> None:
    of_servers = {row.id for row in OPERATIONS if row.is_write and row.path.startswith("/servers")}
    assert of_servers == {name.partition(" ")[0] for name in WRITES}


@pytest.mark.parametrize("answer", ["answered", "refused", "lost", "processed and lost"])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_seen_without_asking_for_the_list(account: Account, name: str, answer: str) -> None:
    client, request = session_on(account)
    id = int(order(client).server.id)
    if name == "delete_server_ip":
        client.servers.ips.add(id)
    orders_and_servers(request)
    faults: dict[str, dict[str, Any]] = {
        "refused": {"status": 403, "code": "insufficient_scope"},
        "lost": {"drop": "before"},
        "processed and lost": {"drop": "after"},
    }
    if answer in faults:
        for method in ("POST", "PATCH", "PUT", "DELETE"):
            account.fault(faults[answer], method=method, times=9)
    since = len(account.control("GET", "/requests"))
    try:
        WRITES[name](client, id)
    except HostingError:
        assert answer != "answered"
    account.control("DELETE", "/faults")
    seen = known(request)
    # Only an order whose server is not known makes the list be asked for again.
    unknown = name.startswith("create_server") and "lost" in answer
    assert lists(account, since) == (2 if unknown else 0)
    assert seen == fresh(account)


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_write_by_its_path_makes_the_list_asked_for_again(account: Account, method: str) -> None:
    client, request = session_on(account)
    id = int(order(client).server.id)
    orders_and_servers(request)
    client.request(method, f"/servers/{id}", body={"name": "renamed"} if method == "PATCH" else None)
    assert known(request) == fresh(account)


def test_an_order_under_way_is_known_by_its_name(account: Account) -> None:
    client, request = session_on(account)
    orders_and_servers(request)
    account.fault({"panel_timeout": "active"}, method="POST", path="^/servers$")
    invoice = order(client).invoice_id
    (pending,) = orders_and_servers(request)[0]
    assert (pending.invoice_id, pending.server_name, pending.tariff_id) == (invoice, "new", 1)
    account.advance(3600)
    client.orders.get(invoice)  # it has ended
    orders, (server,) = orders_and_servers(request)
    assert (orders, server.name) == ([], "new")


def test_a_replayed_order_does_not_bring_a_server_back(account: Account) -> None:
    client, request = session_on(account)
    orders_and_servers(request)
    made = order(client, idempotency_key="the-same-key-0001").server
    client.servers.delete(made.id)
    assert order(client, idempotency_key="the-same-key-0001").server.id == made.id
    assert orders_and_servers(request)[1] == []


def test_keys_domains_and_addresses_follow_their_writes(account: Account) -> None:
    client, request = session_on(account)
    assert catalog_reads.ssh_keys(request) == []
    key = client.ssh_keys.create(name="a", public_key=PUBLIC_KEY)
    assert [row.id for row in catalog_reads.ssh_keys(request)] == [key.id]
    client.ssh_keys.delete(key.id)
    assert catalog_reads.ssh_keys(request) == []
    assert account.requested("GET") == ["/ssh-keys"]
    id = str(order(client).server.id)
    before = len(address_list.of_server(request, id) or [])
    client.servers.ips.add(int(id))
    assert len(address_list.of_server(request, id) or []) == before + 1


@pytest.mark.parametrize("answer", ["answered", "refused", "lost", "processed and lost"])
@pytest.mark.parametrize("name", ["create", "update", "delete", "rotate_secret", "delete one that is gone"])
def test_subscriptions_follow_their_writes(account: Account, name: str, answer: str) -> None:
    client, request = session_on(account)
    hook: dict[str, Any] = {"url": "https://hooks.example.com/x", "events": ["*"]}
    id = client.webhooks.create(**hook).id
    assert [row.id for row in subscriptions(request)] == [id]
    if name == "delete one that is gone":
        account.control("DELETE", f"/webhooks/{id}")
    writes: dict[str, Callable[[], Any]] = {
        "create": lambda: client.webhooks.create(**hook),
        "update": lambda: client.webhooks.update(id, description="d", active=False),
        "rotate_secret": lambda: client.webhooks.rotate_secret(id),
    }
    faults: dict[str, dict[str, Any]] = {
        "refused": {"status": 403, "code": "insufficient_scope"},
        "lost": {"drop": "before"},
        "processed and lost": {"drop": "after"},
    }
    if answer in faults:
        for method in ("POST", "PATCH", "DELETE"):
            account.fault(faults[answer], method=method, times=9)
    with suppress(HostingError):
        writes.get(name, lambda: client.webhooks.delete(id))()
    account.control("DELETE", "/faults")
    before = len(account.requested("GET"))
    seen = sorted([plain(row) for row in subscriptions(request)], key=by_id)
    asked = len(account.requested("GET")) - before
    assert asked == ("lost" in answer and name != "rotate_secret")
    if not (name == "delete one that is gone" and answer == "refused"):  # a refusal says nothing of it
        assert seen == sorted([plain(row) for row in client.webhooks.list()], key=by_id)
    kept = to_text(request.reads.snapshot._storage.load("webhooks"), {})
    assert "whsec_" not in kept


def by_id(row: dict[str, Any]) -> int:
    return int(row["id"])


def test_a_charge_makes_the_balance_asked_for_again(account: Account) -> None:
    client, request = session_on(account)
    before = catalog_reads.balance(request)
    client.ssh_keys.create(name="a", public_key=PUBLIC_KEY)
    assert catalog_reads.balance(request) == before
    assert account.requested("GET") == ["/balance"]
    order(client)
    after = catalog_reads.balance(request)
    assert before is not None
    assert after is not None
    assert after.balance < before.balance


def test_an_observer_never_keeps_an_answer_back(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was bought must reach whoever waits for it, whatever goes wrong with the snapshot."""
    client, request = session_on(account)
    orders_and_servers(request)

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(request.reads.snapshot, "apply", fail)
    assert order(client).server.name == "new"
    assert [server.name for server in orders_and_servers(request)[1]] == ["new"]


def test_another_observer_is_left_alone(account: Account) -> None:
    seen: list[str] = []
    client = Client(account.live_key, account.base_url, transport=account.transport())

    def note(sent: HttpRequest, outcome: object) -> None:
        seen.append(sent.operation.id)

    client.observer = note
    Session(client)
    with suppress(HostingError):
        client.servers.get(1)
    assert seen == ["get_server"]
