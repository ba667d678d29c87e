"""Objects whose paid time ends: what each run says of them, and when that is a difference."""

import pytest

from pulumi_hosting.client.exceptions import ApiError
from tests.provider.processes import WEB, Entry, Process, Start
from tests.support.account import Account

DAY = 86400
SHOP = {"name": "shop.com", "nameservers": ["ns1.example.net", "ns2.example.net"]}


def differs(process: Process, kind: str, entry: Entry) -> bool:
    return process.of(kind).diff(entry.id, entry.outputs, entry.inputs).changes


def later(account: Account, days: float) -> None:
    account.control("POST", "/clock", {"advance": days * DAY})


def test_an_expired_domain_is_a_difference_in_every_run(processes: Start, account: Account) -> None:
    shop = processes().create("domain", "shop", SHOP)
    later(account, 300)
    quiet, warned = processes(), processes()
    assert not differs(quiet, "domain", shop)
    assert quiet.lines == []
    later(account, 60)
    assert not differs(warned, "domain", shop)
    assert not differs(warned, "domain", shop)  # a preview with a refresh compares twice
    line, covers = warned.lines
    assert "balance 988.00 EUR: the balance covers everything that renews itself" in covers
    assert "Urgent: domain 70001 (shop.com) is paid until " in line
    assert "does not renew itself. Next: set auto_renew, or pulumi-hosting action domain-renew" in line
    later(account, 10)
    assert [row["status"] for row in account.objects("domains")] == ["expired"]
    refreshed = processes().refresh("domain", shop)  # a saved refresh hides nothing
    assert refreshed.outputs["status"] == "expired"
    for entry in (shop, refreshed):
        found = processes()
        assert differs(found, "domain", entry)
        assert "domain 70001 (shop.com) is expired (it was paid until " in found.lines[0]
    run = processes()
    updated = run.of("domain").update(refreshed.id, refreshed.outputs, refreshed.inputs)
    assert updated["status"] == "expired"
    assert [row["type"] for row in account.ledger()] == ["payment"]


def test_a_server_and_a_domain_share_one_balance(processes: Start, account: Account) -> None:
    process = processes()
    shop = process.create("domain", "shop", {**SHOP, "autoRenew": True})
    web = process.create("server", "web", {**WEB, "months": 12})
    assert web.outputs["nextDueAt"][:10] == shop.outputs["expiresAt"][:10]
    account.control("PATCH", "/account", {"balance": "60.00"})
    later(account, 360)
    run = processes()
    for kind, entry in (("server", web), ("domain", shop)):
        assert not differs(run, kind, entry)
    *lines, covers = (run.lines[0], *run.lines[2:], run.lines[1])
    assert len(lines) == 2
    until = web.outputs["nextDueAt"][:10]
    assert f"balance 60.00 EUR: the balance covers everything until {until}: then server " in covers
    for line in lines:
        assert "the balance of 60.00 EUR does not cover the 65.80 EUR that are due by then" in line
        assert "balance-topup --amount 10.00 --balance-below 65.80" in line


@pytest.mark.parametrize("status", ["suspended", "pending_cancel"])
def test_a_server_that_is_not_alive_is_a_difference(processes: Start, account: Account, status: str) -> None:
    web = processes().create("server", "web", WEB)
    account.control("PATCH", f"/servers/{web.id}", {"status": status})
    refreshed = processes().refresh("server", web)
    for entry in (web, refreshed):
        assert differs(processes(), "server", entry)
    account.control("PATCH", f"/servers/{web.id}", {"status": "active"})
    assert not differs(processes(), "server", processes().refresh("server", web))


@pytest.mark.parametrize("kind", ["server", "domain"])
def test_what_is_gone_is_a_difference_and_is_not_bought_again_without_a_refresh(
    processes: Start, account: Account, kind: str
) -> None:
    given = {**WEB, "keepPaid": "7d"} if kind == "server" else {**SHOP, "keepPaid": "30d"}
    entry = processes().create(kind, "it", given)
    ended = "terminated" if kind == "server" else "cancelled"
    account.control("PATCH", f"/{kind}s/{entry.id}", {"status": ended})
    preview, run = processes(), processes()
    assert preview.of(kind).diff(entry.id, entry.outputs, entry.inputs).properties == {"status": "UPDATE"}
    assert "Next: pulumi up --refresh, to order" in preview.lines[0]
    predicted = preview.of(kind).preview_update(entry.id, entry.outputs, entry.inputs)
    kept = run.of(kind).update(entry.id, entry.outputs, entry.inputs)
    assert kept == {**entry.outputs, **predicted} == entry.outputs
    assert run.lines == []
    assert [row["type"] for row in account.ledger()] == ["payment"]
    wrong = processes(baseUrl=f"{account.base_url[:-1]}2")  # everything is "not found" there
    with pytest.raises(ApiError, match="no API answers at the base URL"):
        differs(wrong, kind, entry)
    assert processes().of(kind).read(entry.id, entry.outputs, entry.inputs) is None


@pytest.mark.parametrize("status", ["active", "cancelled"])
@pytest.mark.parametrize("kind", ["server", "domain"])
def test_what_staff_locked_is_named_and_not_renewed(
    processes: Start, account: Account, kind: str, status: str
) -> None:
    """A locked domain may be called cancelled."""
    given = {**WEB, "autoRenew": True} if kind == "server" else {**SHOP, "autoRenew": True}
    entry = processes().create(kind, "it", {**given, "keepPaid": "7d"})
    locked = {"blocked": True} | ({"status": status} if kind == "domain" else {})
    account.control("PATCH", f"/{kind}s/{entry.id}", locked)
    for days in (0, 25 if kind == "server" else 360):
        later(account, days)
        run = processes()
        assert not differs(run, kind, entry)
        line = run.lines[0]
        assert f"{kind} {entry.id} " in line
        assert "is locked by the provider's staff: it is paid until " in line
        assert line.endswith("and nothing renews it. Next: ask the provider why")
    assert [row["type"] for row in account.ledger()] == ["payment"]


def test_what_does_not_renew_itself_is_said_when_it_is_bought(processes: Start, account: Account) -> None:
    process = processes()
    shop = process.create("domain", "shop", SHOP)
    process.create("domain", "kept", {**SHOP, "name": "kept.com", "autoRenew": True})
    process.create("domain", "left", {**SHOP, "name": "left.com", "autoRenew": False})
    process.create("server", "web", WEB)
    priced = [line for line in process.lines if "will charge " in line and "no auto-renew" in line]
    assert [line.partition(":")[0] for line in priced] == ["shop"]
    said = [line for line in process.lines if "renew itself" in line]
    until = shop.outputs["expiresAt"][:10]
    assert said == [
        f"shop: warning: domain shop.com is paid until {until}, and does not renew itself. "
        "Next: set auto_renew or keep_paid"
    ]
