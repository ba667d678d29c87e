"""Tasks: without their object they do nothing, and a failed one does not stop the next."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pulumi_hosting.emulator import tasks
from pulumi_hosting.emulator.rows import Row
from tests.emulator.support import DAY, SERVER, assert_deliveries_work, code
from tests.support.account import Account


def _order_coming(account: Account) -> Row:
    account.core.store.provisioning_delay = 60
    account.fault({"panel_timeout": "active"})
    return account.core.store.orders[account.api("POST", "/servers", SERVER).json()["invoice_id"]]


def _server(account: Account) -> Row:
    return account.core.store.servers[account.server()]


def _address_coming(account: Account) -> Row:
    account.core.store.ip_delay = 60
    server = account.server()
    account.api("POST", f"/servers/{server}/ips")
    return account.core.store.servers[server]


def _reinstalling(account: Account) -> Row:
    account.core.store.provisioning_delay = 60
    server = account.server()
    account.api("POST", f"/servers/{server}/actions/reinstall", {"os": "ubuntu-24.04"})
    return account.core.store.servers[server]


def _sandbox_server(account: Account) -> Row:
    return account.core.store.servers[account.test("POST", "/servers", SERVER).json()["server"]["id"]]


def _unpaid(account: Account) -> Row:
    server = account.server()
    account.api("PATCH", f"/servers/{server}", {"auto_renew": False})
    account.advance(32 * DAY)
    return account.core.store.servers[server]


def _invoice(account: Account) -> Row:
    return account.core.store.invoices[account.control("POST", "/invoices", {})["id"]]


def _pending_domain(account: Account) -> Row:
    account.fault({"registrar": "pending"})
    account.register()
    return next(iter(account.core.store.domains.values()))


def _refused_order(account: Account) -> Row:
    account.fault({"registrar": "refused"})
    account.register()
    return next(iter(account.core.store.invoices.values()))


def _domain(account: Account) -> Row:
    return account.core.store.domains[account.domain()]


def _renewing_domain(account: Account) -> Row:
    domain = account.domain()
    account.fault({"registrar": "pending"})
    account.api("POST", f"/domains/{domain}/renew", {"years": 1})
    return account.core.store.domains[domain]


def _renewed_domain(account: Account) -> Row:
    domain = account.domain()
    account.api("POST", f"/domains/{domain}/renew", {"years": 1})
    return account.core.store.domains[domain]


def _delivery(account: Account) -> Row:
    account.subscribe("invoice.created")
    account.control("POST", "/invoices", {})
    account.advance(0)
    return next(iter(account.core.store.deliveries.values()))


TASKS: dict[str, Callable[[Account], Row]] = {
    "finish_order": _order_coming,
    "assign_address": _address_coming,
    "finish_reinstall": _reinstalling,
    "drop_sandbox_server": _sandbox_server,
    "server_due": _server,
    "server_due_soon": _server,
    "terminate_server": _unpaid,
    "invoice_overdue": _invoice,
    "sync_domain": _pending_domain,
    "extend_domain": _renewing_domain,
    "refuse_domain": _refused_order,
    "domain_expiring": _domain,
    "domain_renewed": _renewed_domain,
    "domain_due": _domain,
    "forget_delivery": _delivery,
}


def test_every_kind_of_task_has_an_example() -> None:
    assert set(TASKS) == set(tasks.TASKS)


@pytest.mark.parametrize("what", tasks.TASKS)
def test_a_task_without_its_object_does_nothing(
    what: str, any_dialect: Account, caplog: pytest.LogCaptureFixture
) -> None:
    row = TASKS[what](any_dialect)
    due = any_dialect.control("GET", "/due")
    assert (what, row.kind, row.id) in {(entry["what"], entry["kind"], entry["object_id"]) for entry in due}
    assert due == sorted(due, key=lambda entry: entry["at"])
    any_dialect.core.store.remove(row)
    assert row.id not in [entry["object_id"] for entry in any_dialect.control("GET", "/due")]
    any_dialect.core.store.provisioning_delay = any_dialect.core.store.ip_delay = 0
    before = any_dialect.control("GET", "/ledger")
    any_dialect.advance(400 * DAY)
    assert any_dialect.control("GET", "/ledger") == before
    assert not caplog.records
    assert_deliveries_work(any_dialect)


@pytest.mark.parametrize("what", tasks.TASKS)
def test_a_task_that_fails_is_logged_and_the_next_one_runs(
    what: str, account: Account, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(store: object, row: object, task: object) -> None:
        raise KeyError(1)

    TASKS[what](account)
    monkeypatch.setitem(tasks.TASKS, what, replace(tasks.TASKS[what], action=fail))
    account.advance(400 * DAY)
    monkeypatch.undo()
    assert what in caplog.text
    assert_deliveries_work(account)


def test_what_has_become_void_is_not_due(account: Account) -> None:
    def due() -> list[tuple[str, str]]:
        return [(entry["at"][:10], entry["what"]) for entry in account.control("GET", "/due")]

    server = account.server()
    assert due() == [("2029-05-08", "server_due_soon"), ("2029-05-15", "server_due")]
    account.api("POST", f"/servers/{server}/renew", {"months": 1})
    assert due() == [("2029-06-08", "server_due_soon"), ("2029-06-15", "server_due")]
    account.control("DELETE", f"/servers/{server}")
    invoice = account.control("POST", "/invoices", {})["id"]
    hook = account.subscribe("invoice.paid")["id"]
    assert due() == [("2029-04-18", "invoice_overdue")]
    account.control("POST", f"/invoices/{invoice}/confirm")
    assert due() == [("2029-04-15", "deliver")]
    account.control("PATCH", f"/webhooks/{hook}", {"active": False})
    assert due() == []


@pytest.mark.parametrize("change", ["reinstall", "address"])
def test_the_end_of_a_sandbox_server_drops_its_tasks(change: str, dialect: str) -> None:
    account = Account(dialect=dialect, provisioning_delay=120, ip_delay=120)
    account.variant(sandbox_echo="server")
    server = account.test("POST", "/servers", SERVER).json()["server"]["id"]
    account.advance(DAY - 30)
    path = f"/servers/{server}/ips" if change == "address" else f"/servers/{server}/actions/reinstall"
    assert account.test("POST", path, None if change == "address" else {"os": "debian-12"}).is_success
    account.advance(200)
    assert code(account.test("GET", f"/servers/{server}")) == "not_found"
    assert not [task for task in account.core.store.tasks.values() if task.object_id == server]
    account.core.store.provisioning_delay = account.core.store.ip_delay = 0
    assert_deliveries_work(account)
