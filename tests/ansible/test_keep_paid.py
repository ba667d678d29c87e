"""``keep_paid`` in a playbook: a renewal of the task that declares the object, once for each date."""

from typing import Any

import pytest

from pulumi_hosting.resources import ssh_ready
from tests.ansible.in_process import Play, ahead
from tests.support.account import Account

DAY = 86400
SERVER = {"name": "web", "tariff_id": 1, "os": "debian-12", "auto_renew": False, "keep_paid": "7d"}
DOMAIN = {"name": "shop.com", "keep_paid": "30d"}


@pytest.mark.parametrize(
    ("module", "options", "date", "days", "period"),
    [("server", SERVER, "next_due_at", 25, 31), ("domain", DOMAIN, "expires_at", 340, 365)],
)
def test_renewed_once_as_check_mode_says(
    account: Account, module: str, options: dict[str, Any], date: str, days: int, period: int
) -> None:
    bought = Play(account)(module, **options)
    assert Play(account)(module, **options)["changed"] is False
    account.advance(days * DAY)
    planned = Play(account, check_mode=True)
    predicted = planned(module, **options)
    assert planned(module, **options)["changed"] is False  # as after the first
    assert len(account.ledger()) == 1
    limited = Play(account, max_charge="1.00")(module, **options)
    assert limited["changed"] is False
    assert any("more than max_charge 1.00" in line for line in limited["warnings"])
    assert len(account.ledger()) == 1
    play = Play(account)
    done, again = play(module, **options), play(module, **options)
    assert (predicted["changed"], done["changed"], again["changed"]) == (True, True, False)
    assert predicted["charge"] == done["charge"]
    assert predicted["diff"] == done["diff"]
    assert done["diff"]["before"]["renewal"]["paid_until"] == bought[module][date]
    said, word, reached = done["diff"]["after"]["renewal"]["paid_until"].partition("at least ")
    assert (said, word, bought[module][date][:10] < reached <= done[module][date][:10]) == (
        "",
        "at least ",
        True,
    )
    assert done[module][date] == again[module][date] > bought[module][date]
    assert Play(account)(module, **options)["changed"] is False
    assert [row["amount"] for row in account.ledger()][1] == done["charge"]["amount"]
    assert len(account.ledger()) == 2
    account.advance(period * DAY)
    assert [Play(account)(module, **options)["changed"] for _ in range(2)] == [True, False]
    assert len(account.ledger()) == 3


@pytest.mark.parametrize(
    ("variant", "module", "options", "days", "said"),
    [
        ({"early_renewal": "last_day"}, "server", SERVER, 25, "it is too early"),
        ({"early_renewal": "last_day"}, "domain", DOMAIN, 340, "it is too early"),
        ({"suspended_renewal": "refused"}, "server", SERVER, 31, "the server's status does not allow this"),
        ({"expired_renewal": "refused"}, "domain", DOMAIN, 366, "the domain has expired"),
    ],
)
def test_a_refusal_is_a_warning_and_the_next_run_tries_again(
    account: Account, variant: dict[str, str], module: str, options: dict[str, Any], days: int, said: str
) -> None:
    Play(account)(module, **options)
    account.variant(**variant)
    account.advance(days * DAY)
    refused = Play(account)(module, **options)
    assert (refused["failed"], refused["changed"]) == (False, False)
    assert any("not renewed, though keep_paid asks for it: " in line for line in refused["warnings"])
    assert any(said in line for line in refused["warnings"])
    assert len(account.ledger()) == 1
    account.variant(early_renewal="any_time", suspended_renewal="allowed", expired_renewal="allowed")
    account.advance(DAY / 4)  # the service keeps the refusal for seven days under its key
    assert [Play(account)(module, **options)["changed"] for _ in range(2)] == [True, False]
    assert len(account.ledger()) == 2
    assert [row["status"] for row in account.objects(f"{module}s")] == ["active"]


def test_the_power_of_a_suspended_server_does_not_keep_it_from_being_renewed(account: Account) -> None:
    server = {**SERVER, "state": "started"}
    Play(account)("server", **server)
    account.advance(35 * DAY)
    assert [row["status"] for row in account.objects("servers")] == ["suspended"]
    predicted = Play(account, check_mode=True)("server", **server)
    done, again = [Play(account)("server", **server) for _ in range(2)]
    assert (done["changed"], again["changed"]) == (True, False)
    assert predicted["diff"] == done["diff"]
    assert [row["status"] for row in account.objects("servers")] == ["active"]
    assert [row["amount"] for row in account.ledger()] == ["5.00", "5.00"]


def test_a_suspended_server_is_not_called_suspended_after_its_planned_renewal(account: Account) -> None:
    Play(account)("server", **SERVER)
    account.advance(35 * DAY)
    play = Play(account, check_mode=True)
    assert play("server_renew", name="web", until=ahead(60))["changed"]
    assert play("server", **SERVER)["warnings"] == []
    assert len(account.ledger()) == 1


def test_a_suspension_is_said_once_if_the_renewal_is_refused(account: Account) -> None:
    Play(account)("server", **SERVER)
    account.advance(35 * DAY)
    account.control("PATCH", "/account", {"balance": "1.00"})
    warnings = Play(account)("server", **SERVER)["warnings"]
    assert [line.count(" is suspended ") for line in warnings] == [1, 0]
    assert [row["operation"] for row in account.ledger()] == ["create_server", "control"]


@pytest.mark.parametrize("key", ["ssh-ed25519 AAAA", None])
def test_a_suspended_server_is_renewed_before_it_is_waited_for(
    account: Account, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    address = {"address": "192.0.2.7", "primary": True}  # none of an emulated server, which is not asked
    body = {"name": "web", "tariff_id": 1, "os": "debian-12", "auto_renew": False, "ips": [address]}
    account.control("POST", "/servers", body)
    account.advance(35 * DAY)
    monkeypatch.setattr(ssh_ready, "missing_program", lambda: None)
    monkeypatch.setattr(ssh_ready, "_asked", lambda request, ip: (key, "no route to host"))
    play = Play(account, max_charge="9.00", wait_timeout=1)
    done = play("server", **{**SERVER, "ready": "ssh"})
    assert [row["status"] for row in account.objects("servers")] == ["active"]
    assert (done["charge"]["amount"], [row["amount"] for row in account.ledger()]) == ("5.00", ["5.00"])
    assert done["server"]["ssh_host_key"] == key
    assert done.get("msg", "").startswith("" if key else "the server was renewed and was charged 5.00 EUR; ")
    assert "5.00" in play("server", **{**SERVER, "name": "b"})["msg"]  # what the failed task paid counts


@pytest.mark.parametrize("status", ["suspended", "pending_cancel"])
def test_a_status_that_shows_no_power_is_no_difference(account: Account, status: str) -> None:
    server = {"name": "web", "tariff_id": 1, "os": "debian-12", "state": "stopped"}
    Play(account)("server", **server)
    account.control("PATCH", "/servers/20001", {"status": status})
    edited = {**server, "notes": "edited"}
    predicted = Play(account, check_mode=True)("server", **edited)
    done = Play(account)("server", **edited)
    assert (predicted["server"]["power"], done["server"]["power"]) == (None, None)
    account.control("PATCH", "/servers/20001", {"status": "active"})
    assert [Play(account)("server", **edited)["changed"] for _ in range(2)] == [True, False]
    (there,) = account.objects("servers")
    assert (there["status"], len(account.ledger())) == ("stopped", 1)


def test_a_time_that_is_no_shorter_than_the_period_is_refused(account: Account) -> None:
    result = Play(account)("server", **{**SERVER, "keep_paid": "30d"})
    assert "30d is not shorter than one paid period, 30 days" in result["msg"]
    assert account.ledger() == []
