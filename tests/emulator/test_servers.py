"""Servers: the state table of the document, billing, staff and panel."""

from typing import Any

import pytest

from pulumi_hosting.emulator.periods import months_after
from tests.emulator.support import DAY, PUBLIC_KEY, code, details
from tests.support.account import Account

# Longer than a month, so that it contains one due date.
MONTH = 31 * DAY


def read(account: Account, server: int) -> dict[str, object]:
    answer: dict[str, object] = account.api("GET", f"/servers/{server}").json()
    return answer


def events(account: Account) -> list[str]:
    account.advance(0)
    return [attempt.headers["X-Webhook-Event"] for attempt in account.sent]


def test_order_and_read(any_dialect: Account) -> None:
    key = any_dialect.api("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY}).json()["id"]
    body: dict[str, Any] = {
        "ssh_key_ids": [key],
        "custom_fields": {"vlan": "7"},
        "password": "Sup3rS3cret",
        "months": 12,
    }
    created = any_dialect.order(**body)
    assert created["root_password"] == "Sup3rS3cret"
    assert (created["charged"], created["balance_after"]) == ("52.80", "947.20")
    server = read(any_dialect, created["server"]["id"])
    assert {name: server[name] for name in created["server"]} == created["server"]
    assert server["ip"] == server["primary_ip"]
    assert server["billing"]["months"] == 12  # type: ignore[index]  # answers are any JSON
    assert "Sup3rS3cret" not in str(any_dialect.control("GET", "/objects"))


def test_older_name_field_and_generated_names(account: Account) -> None:
    created = account.api(
        "POST", "/servers", {"tariff_id": 1, "os": "debian-12", "server_name": "old"}
    ).json()
    assert created["server"]["name"] == "old"
    generated = account.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"}).json()["server"]["name"]
    assert generated.startswith("vds-1-")


def test_hourly_order(account: Account) -> None:
    body = {"tariff_id": 3, "os": "debian-12"}
    created = account.api("POST", "/servers", {**body, "hours": 5}).json()
    assert (created["charged"], created["server"]["billing"]["cycle"]) == ("0.08", "hourly")
    assert account.api("POST", "/servers", {**body, "billing_cycle": "hourly"}).json()["charged"] == "0.02"
    for wrong in ({"hours": 5, "months": 1}, {"hours": 721}, {"billing_cycle": "hourly", "months": 1}):
        assert code(account.api("POST", "/servers", {**body, **wrong})) == "invalid_period"
    assert (
        code(account.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12", "hours": 1}))
        == "invalid_period"
    )
    account.control("PATCH", "/service", {"dialect": "live"})
    assert code(account.api("POST", "/servers", {**body, "hours": 2})) == "invalid_period"
    assert account.api("POST", "/servers", {**body, "hours": 1}).status_code == 201


@pytest.mark.parametrize(
    ("before", "action", "status", "power"),
    [
        ("active", "stop", "stopped", "stopped"),
        ("stopped", "start", "active", "running"),
        ("stopped", "restart", "active", "running"),
        ("active", "restart", "active", "running"),
        ("active", "start", "active", "running"),
        ("pending_cancel", "stop", "pending_cancel", "stopped"),
    ],
)
def test_power(before: str, action: str, status: str, power: str, account: Account) -> None:
    server = account.server()
    account.control("PATCH", f"/servers/{server}", {"status": before})
    answer = account.api("POST", f"/servers/{server}/actions/power", {"action": action})
    assert (answer.status_code, answer.json()["status"]) == (202, "accepted")
    assert read(account, server)["status"] == status
    live = account.api("GET", f"/servers/{server}/status").json()
    assert live["power"] == power
    assert (live["memory"]["used_mb"] > 0) == (power == "running")


def test_reinstall(account: Account) -> None:
    account.core.store.provisioning_delay = 30
    account.subscribe("server.reinstalled")
    server = account.server()
    account.api("POST", f"/servers/{server}/actions/power", {"action": "stop"})
    answer = account.api("POST", f"/servers/{server}/actions/reinstall", {"os": "ubuntu-24.04"}).json()
    assert answer["root_password"]
    assert read(account, server)["os"] == "debian-12"
    for method, path, body in (
        ("POST", "/actions/reinstall", {"os": "debian-12"}),
        ("PATCH", "", {"notes": "x"}),
        ("POST", "/actions/reset-password", None),
        ("POST", "/renew", {"months": 1}),
        ("POST", "/ips", None),
        ("DELETE", "", None),
    ):
        assert code(account.api(method, f"/servers/{server}{path}", body)) == "operation_in_progress"
    assert events(account) == []
    account.advance(30)
    assert (read(account, server)["os"], read(account, server)["status"]) == ("ubuntu-24.04", "active")
    assert events(account) == ["server.reinstalled"]
    given = account.api(
        "POST", f"/servers/{server}/actions/reinstall", {"os": "debian-12", "password": "Passw0rd!"}
    ).json()
    assert given["root_password"] is None


def test_a_delayed_change_blocks_other_changes(account: Account) -> None:
    server, other = account.server(), account.server()
    meanwhile: list[int] = []
    account.while_waiting = lambda: meanwhile.extend(
        account.api("PATCH", f"/servers/{id}", {"notes": "x"}).status_code for id in (server, other)
    )
    account.fault({"delay": 1})
    assert account.api("POST", f"/servers/{server}/actions/power", {"action": "stop"}).status_code == 202
    assert meanwhile == [409, 200]
    assert account.api("PATCH", f"/servers/{server}", {"notes": "x"}).status_code == 200
    account.while_waiting = lambda: None
    account.fault({"delay": 1})
    account.api("GET", f"/servers/{server}")
    assert account.core.store.changing == set()


def test_reinstall_refusals(account: Account) -> None:
    server = account.order(tariff_id=5)["server"]["id"]
    assert (
        code(account.api("POST", f"/servers/{server}/actions/reinstall", {"os": "windows-2022"}))
        == "os_not_allowed"
    )
    account.control("PATCH", f"/servers/{server}", {"status": "suspended"})
    assert details(account.api("POST", f"/servers/{server}/actions/reinstall", {"os": "debian-12"})) == {
        "status": "suspended"
    }


def test_deleting_a_busy_server_by_staff_ends_its_tasks(account: Account) -> None:
    account.core.store.provisioning_delay = 30
    server = account.server()
    account.api("POST", f"/servers/{server}/actions/reinstall", {"os": "ubuntu-24.04"})
    account.control("DELETE", f"/servers/{server}")
    account.advance(60)
    assert code(account.api("GET", f"/servers/{server}")) == "not_found"


def test_password_reset_is_limited_per_server(account: Account) -> None:
    first, second = account.server(), account.server()
    passwords = {
        account.api("POST", f"/servers/{first}/actions/reset-password").json()["password"] for _ in range(5)
    }
    assert len(passwords) == 5
    refused = account.api("POST", f"/servers/{first}/actions/reset-password")
    assert (code(refused), refused.headers["Retry-After"]) == ("rate_limited", "300")
    assert account.api("POST", f"/servers/{second}/actions/reset-password").status_code == 200
    account.advance(300)
    assert account.api("POST", f"/servers/{first}/actions/reset-password").status_code == 200


def test_update(account: Account) -> None:
    server = account.server()
    changed = account.api(
        "PATCH", f"/servers/{server}", {"name": "new", "notes": "hello", "auto_renew": False}
    ).json()
    assert (changed["name"], changed["hostname"], changed["notes"], changed["billing"]["auto_renew"]) == (
        "new",
        "new",
        "hello",
        False,
    )
    assert "refund_quote" not in changed
    assert account.api("PATCH", f"/servers/{server}", {"notes": None}).json()["notes"] == ""
    for body in ({}, {"name": None}, {"auto_renew": None}, {"tariff_id": 2}):
        assert code(account.api("PATCH", f"/servers/{server}", body)) == "validation_error"


def test_blocked_refuses_every_change(account: Account) -> None:
    server = account.server()
    account.control("PATCH", f"/servers/{server}", {"blocked": True})
    ip = account.api("GET", f"/servers/{server}/ips").json()["data"][0]["id"]
    for method, path, body in (
        ("PATCH", "", {"notes": "x"}),
        ("DELETE", "", None),
        ("POST", "/actions/power", {"action": "stop"}),
        ("POST", "/actions/reinstall", {"os": "debian-12"}),
        ("POST", "/actions/reset-password", None),
        ("POST", "/renew", {"months": 1}),
        ("POST", "/ips", None),
        ("DELETE", f"/ips/{ip}", None),
        ("PUT", f"/ips/{ip}/ptr", {"domain": ""}),
    ):
        assert code(account.api(method, f"/servers/{server}{path}", body)) == "server_blocked"
    assert account.api("GET", f"/servers/{server}/refund-quote").json()["excluded_reason"] == "blocked"


def test_delete_refunds_and_withdraws_the_cancel_request(account: Account) -> None:
    account.subscribe("server.terminated")
    server = account.server()
    account.control("PATCH", f"/servers/{server}", {"status": "pending_cancel"})
    account.advance(15 * DAY)
    answer = account.api("DELETE", f"/servers/{server}").json()
    assert answer["refund"] == {"amount": "2.50", "currency": "EUR"}
    assert (answer["balance_after"], answer["cancel_request_withdrawn"], account.balance()) == (
        "997.50",
        True,
        "997.50",
    )
    assert events(account) == ["server.terminated"]
    assert code(account.api("GET", f"/servers/{server}")) == "not_found"
    assert details(account.api("DELETE", f"/servers/{server}")) == {"status": "cancelled"}


def test_delete_in_the_live_dialect(account: Account) -> None:
    account.control("PATCH", "/service", {"dialect": "live"})
    answer = account.api("DELETE", f"/servers/{account.server()}").json()
    assert answer["refund"] == answer["refund_quote"]["amount"] == "5.00"
    assert "cancel_request_withdrawn" not in answer


def test_a_failing_panel_changes_nothing(account: Account) -> None:
    server = account.server()
    account.fault({"refunded": 502, "code": "upstream_error"}, method="DELETE")
    assert code(account.api("DELETE", f"/servers/{server}")) == "upstream_error"
    assert (read(account, server)["status"], account.balance()) == ("active", "995.00")


def test_variant_deleted_servers(account: Account) -> None:
    server = account.server()
    account.api("DELETE", f"/servers/{server}")
    assert account.api("GET", "/servers?status=cancelled").json()["data"] == []
    account.variant(deleted_servers="listed")
    assert read(account, server)["status"] == "cancelled"
    assert [row["id"] for row in account.api("GET", "/servers?status=cancelled").json()["data"]] == [server]
    assert account.api("GET", "/servers").json()["data"] == []
    assert details(account.api("PATCH", f"/servers/{server}", {"notes": "x"})) == {"status": "cancelled"}
    assert account.api("GET", f"/servers/{server}/refund-quote").json()["refundable"] is False
    assert code(account.api("GET", f"/servers/{server}/status")) == "service_state"


# --- billing ----------------------------------------------------------------------------------------------


def test_early_renewal_stacks(account: Account) -> None:
    created = account.order()
    server = created["server"]["id"]
    answer = account.api("POST", f"/servers/{server}/renew", {"months": 3}).json()
    assert (answer["charged"], answer["months"], answer["server"]["id"]) == ("14.25", 3, server)
    assert account.core.store.servers[server].next_due_at == months_after(account.clock.now(), 4)
    for body in ({"hours": 1}, {"months": 2}, {"months": 1, "hours": 1}):
        assert code(account.api("POST", f"/servers/{server}/renew", body)) == "invalid_period"
    assert account.api("POST", f"/servers/{server}/renew", {"months": "1"}).status_code == 400
    account.control("PATCH", "/account", {"balance": "4.99"})
    refused = account.api("POST", f"/servers/{server}/renew", {"months": 1})
    assert code(refused) == "insufficient_funds"
    assert account.core.store.servers[server].next_due_at == months_after(account.clock.now(), 4)


def test_hours_of_a_renewal(account: Account) -> None:
    server = account.order(tariff_id=3, hours=1)["server"]["id"]
    assert account.api("POST", f"/servers/{server}/renew", {"hours": 720}).json()["charged"] == "10.80"
    assert code(account.api("POST", f"/servers/{server}/renew", {"hours": 721})) == "invalid_period"
    assert code(account.api("POST", f"/servers/{server}/renew", {"months": 1})) == "invalid_period"
    account.control("PATCH", "/service", {"dialect": "live"})
    assert account.api("POST", f"/servers/{server}/renew", {"hours": 2160}).status_code == 200


def test_renewed_from_the_balance_when_due(account: Account) -> None:
    account.subscribe("invoice.created", "invoice.paid")
    server = account.server()
    account.advance(MONTH)
    assert (read(account, server)["status"], account.balance()) == ("active", "990.00")
    assert account.control("GET", "/ledger")[-1]["operation"] == "billing"
    assert events(account) == ["invoice.created", "invoice.paid"] * 2


def test_suspended_resumed_and_terminated_for_non_payment(account: Account) -> None:
    account.subscribe("*")
    server = account.server()
    account.api("PATCH", f"/servers/{server}", {"auto_renew": False})
    account.advance(MONTH)
    shown = read(account, server)
    flags = shown["flags"]
    assert (shown["status"], flags["expired"], flags["suspended"]) == ("suspended", True, True)  # type: ignore[index]  # answers are any JSON
    assert shown["refund_quote"]["excluded_reason"] == "unpaid"  # type: ignore[index]  # answers are any JSON
    assert events(account)[-3:] == ["server.suspended", "invoice.created", "invoice.overdue"]
    unpaid = account.api("GET", "/invoices?status=not_paid").json()["data"][0]
    assert (unpaid["type"], unpaid["items"][0]["server_id"]) == ("vds_renewal", server)
    account.api("POST", f"/invoices/{unpaid['id']}/pay")
    assert read(account, server)["status"] == "active"
    assert events(account)[-2:] == ["invoice.paid", "server.unsuspended"]
    account.advance(MONTH)
    account.api("POST", f"/servers/{server}/renew", {"months": 1})
    assert (
        read(account, server)["status"],
        account.api("GET", "/invoices?status=not_paid").json()["data"],
    ) == (
        "active",
        [],
    )
    account.advance(MONTH)
    assert len(account.api("GET", "/invoices?status=not_paid").json()["data"]) == 1
    account.advance(14 * DAY)
    assert account.api("GET", "/invoices?status=not_paid").json()["data"] == []
    assert code(account.api("DELETE", f"/servers/{server}")) == "service_state"
    assert account.core.store.servers[server].status == "terminated"
    assert events(account)[-1] == "server.terminated"


def test_pending_cancellation_ends_with_the_period(account: Account) -> None:
    server = account.server()
    account.control("PATCH", f"/servers/{server}", {"status": "pending_cancel"})
    assert read(account, server)["flags"]["pending_cancel"] is True  # type: ignore[index]  # answers are any JSON
    account.advance(MONTH)
    assert account.core.store.servers[server].status == "cancelled"


def test_staff_suspends_and_resumes(account: Account) -> None:
    import json

    account.subscribe("server.suspended", "server.unsuspended")
    server = account.server()
    account.control("PATCH", f"/servers/{server}", {"status": "suspended"})
    assert account.api("POST", f"/servers/{server}/renew", {"months": 1}).status_code == 200
    assert read(account, server)["status"] == "active"
    account.control("PATCH", f"/servers/{server}", {"status": "suspended"})
    account.control("PATCH", f"/servers/{server}", {"status": "stopped"})
    assert read(account, server)["status"] == "stopped"
    assert events(account) == ["server.suspended", "server.unsuspended"] * 2
    assert [json.loads(attempt.payload)["data"]["previous"] for attempt in account.sent] == [
        {"status": "active"},
        {"status": "suspended"},
    ] * 2


def test_synthetic_and_trial_servers(account: Account) -> None:
    synthetic = account.control("POST", "/servers", {"synthetic": True, "name": "old"})
    assert 2_000_000_000 <= synthetic["id"] < 9_000_000_000
    assert (synthetic["flags"]["synthetic"], synthetic["created_at"]) == (True, None)
    for path in ("/status", "?include=live"):
        assert details(account.api("GET", f"/servers/{synthetic['id']}{path}")) == {"status": "active"}
    assert code(account.api("POST", f"/servers/{synthetic['id']}/actions/reset-password")) == "service_state"
    assert account.api("GET", f"/servers/{synthetic['id']}").status_code == 200
    trial = account.control("POST", "/servers", {"is_test": True})
    answer = account.api("DELETE", f"/servers/{trial['id']}").json()
    assert (answer["refund"]["amount"], answer["refund_quote"]["excluded_reason"]) == (
        "0.00",
        "no_payment_record",
    )


def test_filters(account: Account) -> None:
    first, second = account.order()["server"], account.order()["server"]
    account.api("POST", f"/servers/{second['id']}/actions/power", {"action": "stop"})

    def ids(query: str) -> list[int]:
        return [row["id"] for row in account.api("GET", f"/servers?{query}").json()["data"]]

    assert ids("") == [second["id"], first["id"]]
    assert ids("status=stopped") == [second["id"]]
    for address in first["ips"]:
        assert ids(f"ip={address}") == [first["id"]]
    assert ids("ip=10.0.0.1") == []


def test_a_host_name_of_its_own_stays_until_the_server_is_renamed(account: Account) -> None:
    account.control("POST", "/servers", {"id": 812, "name": "web", "hostname": "web.example.org"})
    account.api("PATCH", "/servers/812", {"notes": "a"})
    account.control("PATCH", "/servers/812", {"power": "stopped"})
    assert read(account, 812)["hostname"] == "web.example.org"
    account.control("PATCH", "/servers/812", {"name": "old"})
    assert read(account, 812)["hostname"] == "old"


def test_a_server_that_was_suspended_during_its_reinstallation_stays_off(account: Account) -> None:
    account.core.store.provisioning_delay = 30
    server = account.server()
    account.api("POST", f"/servers/{server}/actions/reinstall", {"os": "ubuntu-24.04"})
    account.control("PATCH", f"/servers/{server}", {"status": "suspended"})
    account.advance(30)
    live = account.api("GET", f"/servers/{server}?include=live").json()
    assert (live["os"], live["status"], live["live"]["power"]) == ("ubuntu-24.04", "suspended", "stopped")
