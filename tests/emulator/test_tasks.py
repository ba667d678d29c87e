"""Tasks: without their object they do nothing, and a failed one does not stop the next."""

from collections.abc import Callable

import pytest

from pulumi_hosting.emulator import tasks
from pulumi_hosting.emulator.rows import Row
from tests.emulator.support import DAY, SERVER, EmulatorHarness, assert_deliveries_work, code


def _order_coming(emu: EmulatorHarness) -> Row:
    emu.core.scheduler.provisioning_delay = 60
    emu.fault({"panel_timeout": "active"})
    return emu.core.store.orders[emu.api("POST", "/servers", SERVER).json()["invoice_id"]]


def _server(emu: EmulatorHarness) -> Row:
    return emu.core.store.servers[emu.server()]


def _address_coming(emu: EmulatorHarness) -> Row:
    emu.core.scheduler.ip_delay = 60
    server = emu.server()
    emu.api("POST", f"/servers/{server}/ips")
    return emu.core.store.servers[server]


def _reinstalling(emu: EmulatorHarness) -> Row:
    emu.core.scheduler.provisioning_delay = 60
    server = emu.server()
    emu.api("POST", f"/servers/{server}/actions/reinstall", {"os": "ubuntu-24.04"})
    return emu.core.store.servers[server]


def _sandbox_server(emu: EmulatorHarness) -> Row:
    return emu.core.store.servers[emu.test("POST", "/servers", SERVER).json()["server"]["id"]]


def _unpaid(emu: EmulatorHarness) -> Row:
    server = emu.server()
    emu.api("PATCH", f"/servers/{server}", {"auto_renew": False})
    emu.advance(32 * DAY)
    return emu.core.store.servers[server]


def _invoice(emu: EmulatorHarness) -> Row:
    return emu.core.store.invoices[emu.control("POST", "/invoices", {})["id"]]


def _pending_domain(emu: EmulatorHarness) -> Row:
    emu.fault({"registrar": "pending"})
    emu.register()
    return next(iter(emu.core.store.domains.values()))


def _domain(emu: EmulatorHarness) -> Row:
    return emu.core.store.domains[emu.domain()]


def _renewing_domain(emu: EmulatorHarness) -> Row:
    domain = emu.domain()
    emu.fault({"registrar": "pending"})
    emu.api("POST", f"/domains/{domain}/renew", {"years": 1})
    return emu.core.store.domains[domain]


def _renewed_domain(emu: EmulatorHarness) -> Row:
    domain = emu.domain()
    emu.api("POST", f"/domains/{domain}/renew", {"years": 1})
    return emu.core.store.domains[domain]


def _delivery(emu: EmulatorHarness) -> Row:
    emu.subscribe("invoice.created")
    emu.control("POST", "/invoices", {})
    emu.advance(0)
    return next(iter(emu.core.store.deliveries.values()))


TASKS: dict[str, Callable[[EmulatorHarness], Row]] = {
    "finish_order": _order_coming,
    "assign_address": _address_coming,
    "finish_reinstall": _reinstalling,
    "drop_sandbox_server": _sandbox_server,
    "server_due": _server,
    "terminate_server": _unpaid,
    "invoice_overdue": _invoice,
    "sync_domain": _pending_domain,
    "extend_domain": _renewing_domain,
    "domain_expiring": _domain,
    "domain_renewed": _renewed_domain,
    "domain_due": _domain,
    "forget_delivery": _delivery,
}


def test_every_kind_of_task_has_an_example() -> None:
    assert set(TASKS) == set(tasks.TASKS)


@pytest.mark.parametrize("what", tasks.TASKS)
def test_a_task_without_its_object_does_nothing(
    what: str, any_dialect: EmulatorHarness, caplog: pytest.LogCaptureFixture
) -> None:
    row = TASKS[what](any_dialect)
    assert what in {task.what for task in any_dialect.core.store.tasks.values() if task.object_id == row.id}
    any_dialect.core.store.remove(row)
    any_dialect.core.scheduler.provisioning_delay = any_dialect.core.scheduler.ip_delay = 0
    before = any_dialect.control("GET", "/ledger")
    any_dialect.advance(400 * DAY)
    assert any_dialect.control("GET", "/ledger") == before
    assert not caplog.records
    assert_deliveries_work(any_dialect)


@pytest.mark.parametrize("what", tasks.TASKS)
def test_a_task_that_fails_is_logged_and_the_next_one_runs(
    what: str, emu: EmulatorHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(store: object, task: object) -> None:
        raise KeyError(1)

    TASKS[what](emu)
    monkeypatch.setitem(tasks.TASKS, what, fail)
    emu.advance(400 * DAY)
    monkeypatch.undo()
    assert what in caplog.text
    assert_deliveries_work(emu)


@pytest.mark.parametrize("change", ["reinstall", "address"])
def test_the_end_of_a_sandbox_server_drops_its_tasks(change: str, dialect: str) -> None:
    emu = EmulatorHarness(dialect=dialect, provisioning_delay=120, ip_delay=120)
    emu.variant(sandbox_echo="server")
    server = emu.test("POST", "/servers", SERVER).json()["server"]["id"]
    emu.advance(DAY - 30)
    path = f"/servers/{server}/ips" if change == "address" else f"/servers/{server}/actions/reinstall"
    assert emu.test("POST", path, None if change == "address" else {"os": "debian-12"}).is_success
    emu.advance(200)
    assert code(emu.test("GET", f"/servers/{server}")) == "not_found"
    assert not [task for task in emu.core.store.tasks.values() if task.object_id == server]
    emu.core.scheduler.provisioning_delay = emu.core.scheduler.ip_delay = 0
    assert_deliveries_work(emu)
