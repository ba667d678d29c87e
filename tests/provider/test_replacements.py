"""A run replaces nothing that it cannot pay for: Check refuses it, and Delete as the last guard. Every test
ends by asking the account.
"""

from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.client.exceptions import ResourceError
from pulumi_hosting.provider.conversion import UNKNOWN
from pulumi_hosting.provider.names import IDENTITY
from pulumi_hosting.provider.replacements import Replacements
from pulumi_hosting.resources import RESOURCES
from tests.emulator.support import PUBLIC_KEY
from tests.provider.processes import WEB, Entry, Process, provider_process
from tests.support.account import Account

BIG = {**WEB, "tariffId": 2.0}  # 10.00 in place of 5.00
SERVER = RESOURCES["server"]


def made(account: Account, named: str = "web", kind: str = "server", /, **given: Any) -> Entry:
    """What an earlier run made."""
    return provider_process(account).create(kind, named, given or {**WEB, "name": named})


def compare(process: Process, entry: Entry, given: dict[str, Any], name: str, kind: str = "server") -> None:
    """What an engine asks of a changed declaration, until it knows that it is a replacement."""
    checked = process.check(kind, name, given, entry.inputs)
    assert process.of(kind).diff(entry.id, entry.outputs, checked).replaces


def as_new(process: Process, given: dict[str, Any], name: str, kind: str = "server") -> str | None:
    """The refusal of the check as a new object, the second one of a replacement."""
    checked = {**given, IDENTITY: f"pulumi:t/dev/{kind}/{name}"}
    _, failures = process.of(kind).check({}, checked)
    return failures.get("")


def replacing(process: Process, entry: Entry, given: dict[str, Any], name: str = "web") -> str | None:
    compare(process, entry, given, name)
    return as_new(process, given, name)


def balance(account: Account, amount: str) -> None:
    account.control("PATCH", "/account", {"balance": amount})


def asked(account: Account, *parts: str) -> list[str]:
    """Requests whose path ends with one of ``parts``."""
    return [path for path in account.requested("GET") if path.endswith(parts)]


def test_what_balance_and_credit_do_not_pay_is_refused_in_check(account: Account) -> None:
    web = made(account)
    balance(account, "4.99")
    process = provider_process(account)
    assert replacing(process, web, BIG) == (
        "with 10.00 EUR for VDS-2, 1 month this run would charge 10.00 EUR, and it replaces server "
        f"{web.id}: the balance of 4.99 EUR and the 5.00 EUR credited for that do not cover it; it is not "
        "ordered, and nothing is deleted for it. Next: top up 0.01 EUR"
    )
    assert process.session.budget.total("EUR") == 0, "what is refused is not counted"
    assert (account.living_ids, account.charges) == ([web.id], 1)


def test_what_only_the_credit_pays_is_deleted_first_or_stays(account: Account) -> None:
    web = made(account)
    balance(account, "5.00")
    process = provider_process(account)
    assert replacing(process, web, BIG) is None
    assert process.lines[-1] == (
        "web: warning: will charge 10.00 EUR (VDS-2, 1 month); run total 10.00 EUR, balance 5.00 EUR "
        f"(insufficient before about 5.00 EUR are credited for server {web.id}, which must be deleted first "
        "for that: delete_before_replace). Next: top up 5.00 EUR"
    )
    process.delete("server", web)
    new = process.create("server", "web", BIG)
    assert (account.living_ids, account.balance()) == ([new.id], "0.00")


def test_a_replacement_that_is_paid_asks_for_the_credit_once_and_nothing_more(account: Account) -> None:
    web = made(account)
    before = len(account.control("GET", "/requests"))
    process = provider_process(account)
    assert replacing(process, web, BIG) is None
    new = process.create("server", "web", BIG)
    process.delete("server", web)
    assert asked(account, "/refund-quote", "/balance") == [f"/servers/{web.id}/refund-quote"]
    paths = [row["path"] for row in account.control("GET", "/requests")[before:]]
    assert len(paths) <= 12, paths
    assert (account.living_ids, account.charges) == ([new.id], 1)


def test_everything_of_a_run_shares_one_balance(account: Account) -> None:
    web, db = made(account), made(account, "db")
    balance(account, "10.00")
    process = provider_process(account)
    assert replacing(process, web, BIG) is None
    refusal = replacing(process, db, {**BIG, "name": "db", "months": 3.0}, "db")
    assert f"replaces server {web.id} and server {db.id}: the balance of 10.00 EUR and the 10.00 EUR" in str(
        refusal
    )
    assert "Next: top up 18.50 EUR" in str(refusal)
    assert replacing(process, db, {**BIG, "name": "db"}, "db") is None
    # What is new would take the money of what replaces the others.
    assert "Next: top up 5.00 EUR" in str(as_new(process, {**WEB, "name": "new"}, "new"))
    assert (account.living_ids, account.charges) == ([web.id, db.id], 2)


def test_what_is_new_counts_for_a_later_replacement(account: Account) -> None:
    web = made(account)
    balance(account, "9.00")
    process = provider_process(account)
    new = process.create("server", "new", {**WEB, "name": "new"})
    assert "Next: top up 1.00 EUR" in str(replacing(process, web, BIG))
    assert account.living_ids == [web.id, new.id]


def test_without_a_replacement_too_little_is_a_warning(account: Account) -> None:
    balance(account, "1.00")
    process = provider_process(account)
    assert as_new(process, WEB, "web") is None
    assert process.lines[-1].endswith("balance 1.00 EUR (insufficient). Next: top up 4.00 EUR")


@pytest.mark.parametrize(("shortfall", "refused"), [("9.00", True), (None, False)])
def test_a_balance_that_is_not_known_refuses_nothing(
    account: Account, shortfall: str | None, refused: bool
) -> None:
    """The API's document promises the shortfall only."""
    web = made(account)
    shown = {"balance": None, "shortfall": shortfall}
    fault = {"method": "GET", "path": "^/catalog/quote$", "action": {"patch": shown}}
    account.control("POST", "/faults", fault)
    process = provider_process(account)
    refusal = replacing(process, web, BIG)
    if refused:
        assert "the balance of 1.00 EUR and the 5.00 EUR credited" in str(refusal)
    else:
        assert refusal is None
        assert process.lines[-1].startswith("web: warning: will charge 10.00 EUR (VDS-2, 1 month)")
        assert process.lines[-1].endswith("is not known: the key may not read it")
    assert account.living_ids == [web.id]


def test_a_credit_that_cannot_be_asked_does_not_count(account: Account) -> None:
    """Not even that of a state of an earlier version, which recorded it."""
    web = made(account)
    web = Entry(web.id, {**web.outputs, "refundQuote": {"amount": "5.00", "refundable": True}}, web.inputs)
    process = provider_process(account)
    balance(account, "9.99")
    account.fault({"status": 500, "code": "server_error"}, path="/refund-quote$", times=99)
    assert "the 0.00 EUR credited" in str(replacing(process, web, BIG))
    assert not any("is credited" in line for line in process.lines)
    assert account.living_ids == [web.id]


def test_an_address_that_moves_is_refused_too(account: Account) -> None:
    web, db = made(account), made(account, "db")
    mail = made(account, "mail", "server_ip", serverId=web.id)
    balance(account, "1.00")
    process = provider_process(account)
    compare(process, mail, {"serverId": db.id}, "mail", "server_ip")
    refusal = as_new(process, {"serverId": db.id}, "mail", "server_ip")
    assert f"replaces server address {mail.id}: the balance of 1.00 EUR and the 0.00 EUR" in str(refusal)
    assert [f"{row['server_id']}/{row['id']}" for row in account.objects("addresses") if row["bought"]] == [
        mail.id
    ]


def test_a_test_key_refuses_nothing(account: Account) -> None:
    """It shows what a live key would charge; the balance is not its own."""
    simulated = provider_process(account, apiKey=account.test_key)
    web = simulated.create("server", "web", WEB)
    balance(account, "1.00")
    process = provider_process(account, apiKey=account.test_key)
    assert replacing(process, web, BIG) is None
    process.delete("server", web)


def test_an_order_under_way_may_be_that_of_an_interrupted_run() -> None:
    """It would be waited for, and not be paid again."""
    account = Account(provisioning_delay=60)
    web = made(account)
    account.fault({"panel_timeout": "active"}, path="^/servers$", method="POST")
    account.api("POST", "/servers", {"tariff_id": 2, "os": "debian-12", "name": "web"})
    balance(account, "1.00")
    process = provider_process(account)
    assert replacing(process, web, BIG) is None
    assert process.lines[-1].endswith(
        "balance 1.00 EUR (insufficient, unless the order under way is that of an interrupted run). Next: if "
        "it is not, top up 9.00 EUR"
    )
    assert (account.living_ids, account.charges) == ([web.id], 2)


# --- the last guard


def test_a_server_is_not_deleted_if_the_balance_has_gone_meanwhile(account: Account) -> None:
    web = made(account)
    mail = made(account, "mail", "server_ip", serverId=web.id)
    process = provider_process(account)
    assert replacing(process, web, BIG) is None
    process.delete("server_ip", mail)
    balance(account, "2.00")
    address = mail.outputs["address"]
    with pytest.raises(ResourceError) as refused:
        process.delete("server", web)
    assert str(refused.value) == (
        f"server {web.id} is not deleted, since what replaces it cannot be ordered: it costs 10.00 EUR "
        "(VDS-2, 1 month), the orders of this run cost 10.00 EUR in all, the balance is 2.00 EUR, and the "
        f"deletion credits 5.00 EUR. Deleted before it in this run: server address {address}. Next: top up "
        "3.00 EUR"
    )
    assert account.living_ids == [web.id]
    balance(account, "5.00")  # what the line asks for
    process.delete("server", web)
    new = process.create("server", "web", BIG)
    assert (account.living_ids, account.balance()) == ([new.id], "0.00")


def test_what_was_deleted_before_a_server_credits_nothing_with_it(account: Account) -> None:
    web = made(account)
    mails = [made(account, name, "server_ip", serverId=web.id) for name in ("mail", "spare")]
    balance(account, "1.00")
    process = provider_process(account)
    assert replacing(process, web, BIG) is None, "1.00 and 9.00 pay it"
    for mail in mails:
        process.delete("server_ip", mail)
    with pytest.raises(ResourceError) as refused:
        process.delete("server", web)
    gone = ", ".join(f"server address {mail.outputs['address']}" for mail in mails)
    assert str(refused.value).endswith(
        f"credits 5.00 EUR. Deleted before it in this run: {gone}. Next: top up 4.00 EUR"
    )
    assert account.living_ids == [web.id]


def test_an_address_whose_next_server_is_not_there_is_released_within_a_limit(account: Account) -> None:
    """Its price is known once that server exists, and is compared with the limit then."""
    web = made(account)
    mail = made(account, "mail", "server_ip", serverId=web.id)
    process = provider_process(account, maxCharge="100.00")
    assert process.of("server_ip").diff(mail.id, mail.outputs, {**mail.inputs, "serverId": UNKNOWN}).replaces
    process.delete("server_ip", mail)
    assert not [row for row in account.objects("addresses") if row["bought"]]


def test_what_an_interrupted_run_ordered_in_its_place_needs_no_money(account: Account) -> None:
    web = made(account)
    process = provider_process(account)
    assert replacing(process, web, BIG) is None
    new = process.create("server", "web", BIG)  # and then it was interrupted
    balance(account, "0.00")
    later = provider_process(account)
    assert replacing(later, web, BIG) is None
    assert f"takes over server {new.id}" in later.lines[-1]
    later.delete("server", web)
    assert later.create("server", "web", BIG).id == new.id
    assert (account.living_ids, account.charges) == ([new.id], 1)


def test_a_server_is_not_deleted_if_another_order_may_take_its_money(account: Account) -> None:
    """The credit of the first server comes too late if the second one is ordered before."""
    web, db = made(account), made(account, "db")
    balance(account, "12.00")
    process = provider_process(account)
    for name, entry in (("web", web), ("db", db)):
        assert replacing(process, entry, {**BIG, "name": name}, name) is None
    with pytest.raises(
        ResourceError, match=r"the orders of this run cost 20\.00 EUR in all.*top up 3\.00 EUR"
    ):
        process.delete("server", web)
    assert sorted(account.living_ids) == [web.id, db.id]
    assert account.moved() == 10


def test_what_is_deleted_with_what_it_depends_on_is_judged_without_a_check(account: Account) -> None:
    """An engine that deletes a key first deletes the servers that have it before, and only compares them."""
    key = made(account, "key", "ssh_key", name="key", publicKey=PUBLIC_KEY)
    given = {**WEB, "sshKeyIds": [key.id], "rebuild": "replace"}
    web = made(account, **given)
    account.control("PATCH", "/tariffs/1", {"price_monthly": "50.00"})
    balance(account, "44.99")
    process, unknown = provider_process(account), {**web.inputs, "sshKeyIds": UNKNOWN}
    assert process.of("server").diff(web.id, web.outputs, unknown).replaces
    with pytest.raises(ResourceError, match=r"it costs 50\.00 EUR .* top up 0\.01 EUR"):
        process.delete("server", web)
    assert account.living_ids == [web.id]
    balance(account, "45.00")
    process = provider_process(account)
    process.of("server").diff(web.id, web.outputs, unknown)
    process.delete("server", web)
    assert account.living_ids == []


def test_what_is_replaced_on_demand_is_judged_without_a_comparison(account: Account) -> None:
    web = made(account)
    account.control("PATCH", "/tariffs/1", {"price_monthly": "50.00"})
    balance(account, "10.00")
    process = provider_process(account)
    assert as_new(process, WEB, "web") is None
    with pytest.raises(ResourceError, match=r"Next: top up 35\.00 EUR"):
        process.delete("server", web)
    assert account.living_ids == [web.id]


@pytest.mark.parametrize(
    ("limit", "fault", "told"),
    [
        ("9.99", None, r"more than maxCharge 9\.99; it is not ordered\. Next: raise maxCharge"),
        ("100", {"status": 400, "code": "invalid_request"}, "its price is not known, and maxCharge is 100"),
    ],
)
def test_a_server_is_not_deleted_if_the_limit_forbids_its_successor(
    account: Account, limit: str, fault: dict[str, Any] | None, told: str
) -> None:
    web = made(account)
    process = provider_process(account, maxCharge=limit)
    compare(process, web, BIG, "web")
    if fault:
        account.fault(fault, path="^/catalog/quote$", times=9)
        assert as_new(process, BIG, "web") is None
    else:
        process.session.replacements.checked(
            "pulumi:t/dev/server/web", SERVER, "web", lambda: {"tariff_id": 2}
        )
    with pytest.raises(ResourceError, match=told):
        process.delete("server", web)
    assert (account.living_ids, account.charges) == ([web.id], 1)


def test_a_server_is_not_deleted_after_a_charge_that_stopped_the_run(account: Account) -> None:
    web = made(account)
    process = provider_process(account)
    assert replacing(process, web, BIG) is None
    process.session.budget.charged("pulumi:t/dev/server/web", Decimal("11.00"))
    with pytest.raises(ResourceError, match=r"nothing more is ordered in this run: 11\.00 EUR were charged"):
        process.delete("server", web)
    assert account.living_ids == [web.id]


def test_what_is_removed_or_replaced_already_is_deleted_whatever_the_balance(account: Account) -> None:
    web, db, old = made(account), made(account, "db"), made(account, "old")
    process = provider_process(account)
    assert replacing(process, web, BIG) is None
    new = process.create("server", "web", BIG)
    process.refresh("server", old)
    balance(account, "0.00")
    for entry in (web, db, old):
        process.delete("server", entry)
    assert account.living_ids == [new.id]


def test_what_takes_an_object_over_needs_no_money(account: Account) -> None:
    web, other = made(account), made(account, "other", **{**BIG, "name": "other"})
    balance(account, "0.00")
    process = provider_process(account)
    adopting = {**BIG, "adoptId": other.id}
    assert replacing(process, web, adopting) is None
    process.delete("server", web)
    assert account.living_ids == [other.id]


def test_a_declaration_is_replaced_from_its_check_as_new_until_its_object_is_deleted() -> None:
    known = Replacements()
    state = SERVER.State.partial({"id": "7"})
    known.checked("web", SERVER, "web", lambda: {"size": 1})
    assert known.under_way() == [], "a new one"
    known.read("web", SERVER, state, None)
    assert [str(found) for found in known.under_way()] == ["server 7"]
    assert known.awaited(SERVER, "7", "another label") is not None, "it was renamed"
    assert known.awaited(SERVER, "8", "web") is None
    assert known.awaited(RESOURCES["domain"], "7", "") is None
    known.checked("web", SERVER, "web", None)
    assert known.under_way() == [], "checked with its former inputs again"
    known.checked("web", SERVER, "web", dict)
    known.made("web")
    assert known.awaited(SERVER, "7", "web") is None
    assert len(known.under_way()) == 1, "its credit is still to come"
    known.deleted(SERVER, state)
    assert known.under_way() == []
    known.made("never seen")
