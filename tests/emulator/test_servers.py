"""The life of a server: every row of the document's state table, and what billing, staff and the panel do to it."""

from typing import Any

import pytest

from pulumi_hosting.emulator.periods import months_after
from tests.emulator.support import DAY, PUBLIC_KEY, EmulatorHarness, code, details

# The longest; each of them contains one due date.
MONTH = 31 * DAY


def read(lab: EmulatorHarness, server: int) -> dict[str, object]:
    answer: dict[str, object] = lab.api("GET", f"/servers/{server}").json()
    return answer


def events(lab: EmulatorHarness) -> list[str]:
    lab.advance(0)
    return [attempt.headers["X-Webhook-Event"] for attempt in lab.sent]


def test_order_and_read(both: EmulatorHarness) -> None:
    key = both.api("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY}).json()["id"]
    body: dict[str, Any] = {"ssh_key_ids": [key], "custom_fields": {"vlan": "7"}, "password": "Sup3rS3cret", "months": 12}
    created = both.order(**body)
    assert created["root_password"] == "Sup3rS3cret"
    assert (created["charged"], created["balance_after"]) == ("52.80", "947.20")
    server = read(both, created["server"]["id"])
    assert {name: server[name] for name in created["server"]} == created["server"]
    assert server["ip"] == server["primary_ip"]
    assert server["billing"]["months"] == 12  # type: ignore[index]  # answers are any JSON
    assert "Sup3rS3cret" not in str(both.control("GET", "/objects"))


def test_older_name_field_and_generated_names(lab: EmulatorHarness) -> None:
    created = lab.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12", "server_name": "old"}).json()
    assert created["server"]["name"] == "old"
    generated = lab.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"}).json()["server"]["name"]
    assert generated.startswith("vds-1-")


def test_hourly_order(lab: EmulatorHarness) -> None:
    body = {"tariff_id": 3, "os": "debian-12"}
    created = lab.api("POST", "/servers", {**body, "hours": 5}).json()
    assert (created["charged"], created["server"]["billing"]["cycle"]) == ("0.08", "hourly")
    assert lab.api("POST", "/servers", {**body, "billing_cycle": "hourly"}).json()["charged"] == "0.02"
    for wrong in ({"hours": 5, "months": 1}, {"hours": 721}, {"billing_cycle": "hourly", "months": 1}):
        assert code(lab.api("POST", "/servers", {**body, **wrong})) == "invalid_period"
    assert code(lab.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12", "hours": 1})) == "invalid_period"
    lab.control("PATCH", "/service", {"dialect": "live"})
    assert code(lab.api("POST", "/servers", {**body, "hours": 2})) == "invalid_period"
    assert lab.api("POST", "/servers", {**body, "hours": 1}).status_code == 201


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
def test_power(before: str, action: str, status: str, power: str, lab: EmulatorHarness) -> None:
    server = lab.server()
    lab.control("PATCH", f"/servers/{server}", {"status": before})
    answer = lab.api("POST", f"/servers/{server}/actions/power", {"action": action})
    assert (answer.status_code, answer.json()["status"]) == (202, "accepted")
    assert read(lab, server)["status"] == status
    live = lab.api("GET", f"/servers/{server}/status").json()
    assert live["power"] == power
    assert (live["memory"]["used_mb"] > 0) == (power == "running")


def test_reinstall(lab: EmulatorHarness) -> None:
    lab.core.scheduler.provisioning_delay = 30
    lab.subscribe("server.reinstalled")
    server = lab.server()
    lab.api("POST", f"/servers/{server}/actions/power", {"action": "stop"})
    answer = lab.api("POST", f"/servers/{server}/actions/reinstall", {"os": "ubuntu-24.04"}).json()
    assert answer["root_password"]
    assert read(lab, server)["os"] == "debian-12"
    for method, path, body in (
        ("POST", "/actions/reinstall", {"os": "debian-12"}),
        ("PATCH", "", {"notes": "x"}),
        ("POST", "/actions/reset-password", None),
        ("POST", "/renew", {"months": 1}),
        ("POST", "/ips", None),
        ("DELETE", "", None),
    ):
        assert code(lab.api(method, f"/servers/{server}{path}", body)) == "operation_in_progress"
    assert events(lab) == []
    lab.advance(30)
    assert (read(lab, server)["os"], read(lab, server)["status"]) == ("ubuntu-24.04", "active")
    assert events(lab) == ["server.reinstalled"]
    given = lab.api("POST", f"/servers/{server}/actions/reinstall", {"os": "debian-12", "password": "Passw0rd!"}).json()
    assert given["root_password"] is None


def test_a_change_that_is_not_answered_yet_keeps_others_away(lab: EmulatorHarness) -> None:
    server, other = lab.server(), lab.server()
    meanwhile: list[int] = []
    lab.while_waiting = lambda: meanwhile.extend(lab.api("PATCH", f"/servers/{id}", {"notes": "x"}).status_code for id in (server, other))
    lab.fault({"delay": 1})
    assert lab.api("POST", f"/servers/{server}/actions/power", {"action": "stop"}).status_code == 202
    assert meanwhile == [409, 200]
    assert lab.api("PATCH", f"/servers/{server}", {"notes": "x"}).status_code == 200
    lab.while_waiting = lambda: None
    lab.fault({"delay": 1})
    lab.api("GET", f"/servers/{server}")
    assert lab.core.store.changing == set()


def test_reinstall_refusals(lab: EmulatorHarness) -> None:
    server = lab.order(tariff_id=5)["server"]["id"]
    assert code(lab.api("POST", f"/servers/{server}/actions/reinstall", {"os": "windows-2022"})) == "os_not_allowed"
    lab.control("PATCH", f"/servers/{server}", {"status": "suspended"})
    assert details(lab.api("POST", f"/servers/{server}/actions/reinstall", {"os": "debian-12"})) == {"status": "suspended"}


def test_deleting_a_busy_server_in_the_cabinet_ends_its_tasks(lab: EmulatorHarness) -> None:
    lab.core.scheduler.provisioning_delay = 30
    server = lab.server()
    lab.api("POST", f"/servers/{server}/actions/reinstall", {"os": "ubuntu-24.04"})
    lab.control("DELETE", f"/servers/{server}")
    lab.advance(60)
    assert code(lab.api("GET", f"/servers/{server}")) == "not_found"


def test_password_reset_is_limited_per_server(lab: EmulatorHarness) -> None:
    first, second = lab.server(), lab.server()
    passwords = {lab.api("POST", f"/servers/{first}/actions/reset-password").json()["password"] for _ in range(5)}
    assert len(passwords) == 5
    refused = lab.api("POST", f"/servers/{first}/actions/reset-password")
    assert (code(refused), refused.headers["Retry-After"]) == ("rate_limited", "300")
    assert lab.api("POST", f"/servers/{second}/actions/reset-password").status_code == 200
    lab.advance(300)
    assert lab.api("POST", f"/servers/{first}/actions/reset-password").status_code == 200


def test_update(lab: EmulatorHarness) -> None:
    server = lab.server()
    changed = lab.api("PATCH", f"/servers/{server}", {"name": "new", "notes": "hello", "auto_renew": False}).json()
    assert (changed["name"], changed["hostname"], changed["notes"], changed["billing"]["auto_renew"]) == ("new", "new", "hello", False)
    assert "refund_quote" not in changed
    assert lab.api("PATCH", f"/servers/{server}", {"notes": None}).json()["notes"] == ""
    for body in ({}, {"name": None}, {"auto_renew": None}, {"tariff_id": 2}):
        assert code(lab.api("PATCH", f"/servers/{server}", body)) == "validation_error"


def test_blocked_refuses_every_change(lab: EmulatorHarness) -> None:
    server = lab.server()
    lab.control("PATCH", f"/servers/{server}", {"blocked": True})
    ip = lab.api("GET", f"/servers/{server}/ips").json()["data"][0]["id"]
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
        assert code(lab.api(method, f"/servers/{server}{path}", body)) == "server_blocked"
    assert lab.api("GET", f"/servers/{server}/refund-quote").json()["excluded_reason"] == "blocked"


def test_delete_refunds_and_withdraws_the_cancel_request(lab: EmulatorHarness) -> None:
    lab.subscribe("server.terminated")
    server = lab.server()
    lab.control("PATCH", f"/servers/{server}", {"status": "pending_cancel"})
    lab.advance(15 * DAY)
    answer = lab.api("DELETE", f"/servers/{server}").json()
    assert answer["refund"] == {"amount": "2.50", "currency": "EUR"}
    assert (answer["balance_after"], answer["cancel_request_withdrawn"], lab.balance()) == ("997.50", True, "997.50")
    assert events(lab) == ["server.terminated"]
    assert code(lab.api("GET", f"/servers/{server}")) == "not_found"
    assert details(lab.api("DELETE", f"/servers/{server}")) == {"status": "cancelled"}


def test_delete_in_the_live_dialect(lab: EmulatorHarness) -> None:
    lab.control("PATCH", "/service", {"dialect": "live"})
    answer = lab.api("DELETE", f"/servers/{lab.server()}").json()
    assert answer["refund"] == answer["refund_quote"]["amount"] == "5.00"
    assert "cancel_request_withdrawn" not in answer


def test_a_failing_panel_changes_nothing(lab: EmulatorHarness) -> None:
    server = lab.server()
    lab.fault({"refunded": 502, "code": "upstream_error"}, method="DELETE")
    assert code(lab.api("DELETE", f"/servers/{server}")) == "upstream_error"
    assert (read(lab, server)["status"], lab.balance()) == ("active", "995.00")


def test_reading_deleted_servers(lab: EmulatorHarness) -> None:
    server = lab.server()
    lab.api("DELETE", f"/servers/{server}")
    assert lab.api("GET", "/servers?status=cancelled").json()["data"] == []
    lab.variant(deleted_servers="listed")
    assert read(lab, server)["status"] == "cancelled"
    assert [row["id"] for row in lab.api("GET", "/servers?status=cancelled").json()["data"]] == [server]
    assert lab.api("GET", "/servers").json()["data"] == []
    assert details(lab.api("PATCH", f"/servers/{server}", {"notes": "x"})) == {"status": "cancelled"}
    assert lab.api("GET", f"/servers/{server}/refund-quote").json()["refundable"] is False
    assert code(lab.api("GET", f"/servers/{server}/status")) == "service_state"


# --- billing ---------------------------------------------------------------------------------------------------------------------


def test_early_renewal_stacks(lab: EmulatorHarness) -> None:
    created = lab.order()
    server = created["server"]["id"]
    answer = lab.api("POST", f"/servers/{server}/renew", {"months": 3}).json()
    assert (answer["charged"], answer["months"], answer["server"]["id"]) == ("14.25", 3, server)
    assert lab.core.store.servers[server].next_due_at == months_after(lab.clock.now(), 4)
    for body in ({"hours": 1}, {"months": 2}, {"months": 1, "hours": 1}):
        assert code(lab.api("POST", f"/servers/{server}/renew", body)) == "invalid_period"
    assert lab.api("POST", f"/servers/{server}/renew", {"months": "1"}).status_code == 400
    lab.control("PATCH", "/account", {"balance": "4.99"})
    refused = lab.api("POST", f"/servers/{server}/renew", {"months": 1})
    assert code(refused) == "insufficient_funds"
    assert lab.core.store.servers[server].next_due_at == months_after(lab.clock.now(), 4)


def test_hours_of_a_renewal(lab: EmulatorHarness) -> None:
    server = lab.order(tariff_id=3, hours=1)["server"]["id"]
    assert lab.api("POST", f"/servers/{server}/renew", {"hours": 720}).json()["charged"] == "10.80"
    assert code(lab.api("POST", f"/servers/{server}/renew", {"hours": 721})) == "invalid_period"
    assert code(lab.api("POST", f"/servers/{server}/renew", {"months": 1})) == "invalid_period"
    lab.control("PATCH", "/service", {"dialect": "live"})
    assert lab.api("POST", f"/servers/{server}/renew", {"hours": 2160}).status_code == 200


def test_renewed_from_the_balance_when_due(lab: EmulatorHarness) -> None:
    lab.subscribe("invoice.created", "invoice.paid")
    server = lab.server()
    lab.advance(MONTH)
    assert (read(lab, server)["status"], lab.balance()) == ("active", "990.00")
    assert lab.control("GET", "/ledger")[-1]["operation"] == "billing"
    assert events(lab) == ["invoice.created", "invoice.paid"] * 2


def test_suspended_resumed_and_terminated_for_non_payment(lab: EmulatorHarness) -> None:
    lab.subscribe("*")
    server = lab.server()
    lab.api("PATCH", f"/servers/{server}", {"auto_renew": False})
    lab.advance(MONTH)
    shown = read(lab, server)
    assert (shown["status"], shown["flags"]["expired"], shown["flags"]["suspended"]) == ("suspended", True, True)  # type: ignore[index]  # answers are any JSON
    assert shown["refund_quote"]["excluded_reason"] == "unpaid"  # type: ignore[index]  # answers are any JSON
    assert events(lab)[-3:] == ["server.suspended", "invoice.created", "invoice.overdue"]
    unpaid = lab.api("GET", "/invoices?status=not_paid").json()["data"][0]
    assert (unpaid["type"], unpaid["items"][0]["server_id"]) == ("vds_renewal", server)
    lab.api("POST", f"/invoices/{unpaid['id']}/pay")
    assert read(lab, server)["status"] == "active"
    assert events(lab)[-2:] == ["invoice.paid", "server.unsuspended"]
    lab.advance(MONTH)
    lab.api("POST", f"/servers/{server}/renew", {"months": 1})
    assert (read(lab, server)["status"], lab.api("GET", "/invoices?status=not_paid").json()["data"]) == ("active", [])
    lab.advance(MONTH)
    assert len(lab.api("GET", "/invoices?status=not_paid").json()["data"]) == 1
    lab.advance(14 * DAY)
    assert lab.api("GET", "/invoices?status=not_paid").json()["data"] == []
    assert code(lab.api("DELETE", f"/servers/{server}")) == "service_state"
    assert lab.core.store.servers[server].status == "terminated"
    assert events(lab)[-1] == "server.terminated"


def test_pending_cancellation_ends_with_the_period(lab: EmulatorHarness) -> None:
    server = lab.server()
    lab.control("PATCH", f"/servers/{server}", {"status": "pending_cancel"})
    assert read(lab, server)["flags"]["pending_cancel"] is True  # type: ignore[index]  # answers are any JSON
    lab.advance(MONTH)
    assert lab.core.store.servers[server].status == "cancelled"


def test_staff_suspends_and_resumes(lab: EmulatorHarness) -> None:
    import json

    lab.subscribe("server.suspended", "server.unsuspended")
    server = lab.server()
    lab.control("PATCH", f"/servers/{server}", {"status": "suspended"})
    assert lab.api("POST", f"/servers/{server}/renew", {"months": 1}).status_code == 200
    assert read(lab, server)["status"] == "active"
    lab.control("PATCH", f"/servers/{server}", {"status": "suspended"})
    lab.control("PATCH", f"/servers/{server}", {"status": "stopped"})
    assert read(lab, server)["status"] == "stopped"
    assert events(lab) == ["server.suspended", "server.unsuspended"] * 2
    assert [json.loads(attempt.payload)["data"]["previous"] for attempt in lab.sent] == [{"status": "active"}, {"status": "suspended"}] * 2


def test_synthetic_and_trial_servers(lab: EmulatorHarness) -> None:
    synthetic = lab.control("POST", "/servers", {"synthetic": True, "name": "old"})
    assert 2_000_000_000 <= synthetic["id"] < 9_000_000_000
    assert (synthetic["flags"]["synthetic"], synthetic["created_at"]) == (True, None)
    for path in ("/status", "?include=live"):
        assert details(lab.api("GET", f"/servers/{synthetic['id']}{path}")) == {"status": "active"}
    assert code(lab.api("POST", f"/servers/{synthetic['id']}/actions/reset-password")) == "service_state"
    assert lab.api("GET", f"/servers/{synthetic['id']}").status_code == 200
    trial = lab.control("POST", "/servers", {"is_test": True})
    answer = lab.api("DELETE", f"/servers/{trial['id']}").json()
    assert (answer["refund"]["amount"], answer["refund_quote"]["excluded_reason"]) == ("0.00", "no_payment_record")


def test_filters(lab: EmulatorHarness) -> None:
    first, second = lab.order()["server"], lab.order()["server"]
    lab.api("POST", f"/servers/{second['id']}/actions/power", {"action": "stop"})

    def ids(query: str) -> list[int]:
        return [row["id"] for row in lab.api("GET", f"/servers?{query}").json()["data"]]

    assert ids("") == [second["id"], first["id"]]
    assert ids("status=stopped") == [second["id"]]
    for address in first["ips"]:
        assert ids(f"ip={address}") == [first["id"]]
    assert ids("ip=10.0.0.1") == []
