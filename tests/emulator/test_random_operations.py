"""Random operations, drift, faults and time: no 500, and the ledger adds up."""

import random
import re
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from pulumi_hosting.api.operations import OPERATIONS, Operation
from tests.emulator.calls import CALLS
from tests.emulator.support import DAY, GOOD, SERVER, assert_deliveries_work, assert_reads_work, subscribe
from tests.support.account import Account

FAULTS: tuple[dict[str, Any], ...] = (
    {"refunded": 502},
    {"panel_timeout": "active"},
    {"panel_timeout": "cancelled"},
    {"panel_timeout": "failed"},
    {"registrar": "pending"},
)


def edits(account: Account, rng: random.Random) -> tuple[str, str, Any]:
    """A control call on an existing object."""
    objects = account.control("GET", "/objects")
    calls: list[tuple[str, str, Any]] = [
        ("POST", "/clock", {"advance": rng.choice([0, 1, 59.5, 3600, DAY, 7 * DAY, 31 * DAY, 400 * DAY])}),
        ("PATCH", "/account", {"balance": rng.choice(["0.00", "1.00", "1000.00", "100000.00"])}),
        ("PATCH", "/account", {"group_discount_percent": rng.choice(["0", "33.3", "100"])}),
        ("PATCH", "/tariffs/1", {"price_monthly": rng.choice(["0.00", "5.00", "999.99"])}),
        ("PATCH", "/service", {"readings": {"sandbox_echo": rng.choice(["none", "server"])}}),
        ("PATCH", "/service", {"readings": {"deleted_servers": rng.choice(["gone", "listed"])}}),
    ]
    for row in objects["servers"]:
        status = rng.choice(["active", "stopped", "suspended", "pending_cancel", "cancelled", "terminated"])
        calls += [
            ("DELETE", f"/servers/{row['id']}", None),
            ("PATCH", f"/servers/{row['id']}", {"status": status}),
        ]
        calls.append(
            (
                "PATCH",
                f"/servers/{row['id']}",
                {"blocked": rng.random() < 0.3, "auto_renew": rng.random() < 0.5},
            )
        )
    for row in objects["domains"]:
        status = rng.choice(["pending", "active", "expired", "transfer_pending", "cancelled"])
        calls += [
            ("DELETE", f"/domains/{row['id']}", None),
            ("PATCH", f"/domains/{row['id']}", {"status": status}),
        ]
    for row in objects["addresses"]:
        calls.append(("DELETE", f"/servers/{row['server_id']}/ips/{row['id']}", None))
    calls += [("DELETE", f"/webhooks/{row['id']}", None) for row in objects["subscriptions"]]
    calls += [("DELETE", f"/ssh-keys/{row['id']}", None) for row in objects["ssh_keys"]]
    calls += [
        ("POST", f"/invoices/{row['id']}/confirm", {})
        for row in objects["invoices"]
        if row["status"] == "not_paid"
    ]
    return rng.choice(calls)


@cache
def sample_bodies(dialect: str) -> dict[str, str]:
    """A valid body of each operation."""
    bodies = {}
    for operation in OPERATIONS:
        account = Account(dialect=dialect)
        CALLS[operation.id](account)
        bodies[operation.id] = [*account.core.store.requests.values()][-1].body
    return bodies


def path_to(account: Account, operation: Operation, rng: random.Random) -> str:
    """The path of an operation, with ids of existing objects if there are any."""
    store = account.core.store
    tables: dict[str, dict[int, Any]] = {
        "server_id": store.servers,
        "ip_id": store.addresses,
        "invoice_id": store.invoices,
        "domain_id": store.domains,
        "webhook_id": store.subscriptions,
        "delivery_id": store.deliveries,
        "tariff_id": store.tariffs,
        "key_id": store.ssh_keys if "ssh" in operation.path else store.keys,
    }
    return re.sub(r"\{(\w+)\}", lambda found: str(rng.choice([*tables[found[1]], 7])), operation.path)


@pytest.mark.parametrize("seed", range(5))
def test_random_operations_cause_no_500_and_deliveries_continue(
    seed: int, dialect: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Random operations, also simulated ones, between drift, faults and advances of the clock."""
    rng = random.Random(seed)  # noqa: S311  # a test
    account = Account(dialect=dialect, provisioning_delay=rng.choice([0, 600]), ip_delay=rng.choice([0, 600]))
    bodies = sample_bodies(dialect)
    subscribe(account, GOOD)
    for id in (
        "add_server_ip",
        "create_server",
        "register_domain",
        "create_ssh_key",
        "pay_invoice",
        "redeliver_webhook",
    ):
        CALLS[id](account)
    account.order(tariff_id=3, hours=1)
    account.test("POST", "/servers", SERVER)
    done: set[str] = set()
    for _ in range(100):
        if rng.random() < 0.2:
            method, path, body = edits(account, rng)
            assert account.http.request(method, f"/_control{path}", json=body).status_code < 500, path
            continue
        if rng.random() < 0.2:
            account.fault(rng.choice(FAULTS))
        account.receiver_status = rng.choice([200, 500, None])
        operation = rng.choice([row for row in OPERATIONS if row.id != "revoke_api_key"])
        options: dict[str, Any] = {
            "content": bodies[operation.id],
            "headers": {"Content-Type": "application/json"},
        }
        answer = account.call(
            rng.choice([account.live_key, account.live_key, account.test_key]),
            operation.method,
            path_to(account, operation, rng),
            **(options if bodies[operation.id] else {}),
        )
        assert answer.status_code < 500 or answer.status_code == 502, (operation.id, answer.text)
        done |= {operation.id} if answer.is_success else set()
        account.advance(rng.choice([0, 0, 61, 601, DAY]))
    assert not caplog.records
    assert len(done) > 15
    total = sum(
        Decimal(row["amount"]) * (1 if row["direction"] == "credit" else -1)
        for row in account.control("GET", "/ledger")
    )
    assert Decimal(account.control("GET", "/objects")["accounts"][0]["balance"]) == 1000 + total
    account.control("DELETE", "/faults")
    account.control("PATCH", "/account", {"balance": "1000.00"})
    account.control("PATCH", "/tariffs/1", {"price_monthly": "5.00"})
    account.core.store.provisioning_delay, account.receiver_status = 0, 200
    assert_reads_work(account)
    assert_deliveries_work(account)
