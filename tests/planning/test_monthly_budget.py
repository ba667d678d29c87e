"""A budget for a calendar month: what counts, when it is read again, and what is refused."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.client.exceptions import HostingError, TransportError
from pulumi_hosting.planning.monthly_budget import spent
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import LimitExceeded
from pulumi_hosting.session.request import Request
from tests.ansible.in_process import Play
from tests.provider.processes import WEB, Process, provider_process
from tests.support.account import Account

OTHER = {**WEB, "name": "other"}
SERVER = {"name": "web", "tariff_id": 1, "os": "debian-12"}


def start(account: Account, **settings: Any) -> Process:
    return provider_process(account, **settings)


def check(process: Process, name: str = "web") -> dict[str, str]:
    given = {**WEB, "name": name, "__identity": f"pulumi:t/dev/server/{name}"}
    return process.of("server").check({}, given)[1]


def charged(account: Account) -> list[str]:
    return [row["amount"] for row in account.ledger() if row["type"] == "payment"]


def test_debits_less_refunds_count_and_top_ups_do_not(account: Account) -> None:
    process = start(account)
    web = process.create("server", "web", WEB)
    process.create("server", "other", OTHER)
    account.control("PATCH", "/account", {"balance": "5000.00"})
    assert spent(process.session.client) == {"EUR": Decimal("10.00")}
    process.delete("server", web)
    credited = sum(Decimal(row["amount"]) for row in account.ledger() if row["type"] == "refund")
    assert credited > 0
    assert spent(process.session.client) == {"EUR": Decimal("10.00") - credited}
    account.advance(31 * 86400)  # the service renews the other one; that counts in its month
    assert spent(process.session.client) == {"EUR": Decimal("5.00")}


def test_what_is_beyond_it_is_refused_before_anything_is_sent(account: Account) -> None:
    start(account).create("server", "web", WEB)
    run = start(account, budget="9.00/month")
    refusal = check(run, "other")[""]
    assert refusal.startswith("5.00 EUR were spent this month; with 5.00 EUR for ")
    assert (
        "they would be 10.00, and budget is 9.00/month; it is not ordered. Next: raise budget, or wait until"
        in refusal
    )
    assert charged(account) == ["5.00"]
    preview = start(account, apiKey=account.test_key, budget="9.00/month")
    assert check(preview, "other") == {}
    assert "with a live key it would be refused: 5.00 EUR were spent this month" in preview.lines[0]


def test_everything_that_a_run_plans_is_counted(account: Account) -> None:
    run = start(account, budget="9.00/month")
    assert check(run) == {}
    assert check(run, "other")[""].startswith(
        "0.00 EUR were spent this month; with 5.00 EUR for VDS-1, 1 month and 5.00 for what else this run "
        "orders they would be 10.00, and budget is 9.00/month; it is not ordered. Next: raise budget"
    )


def test_it_is_read_again_before_each_purchase(account: Account) -> None:
    run, other = start(account, budget="9.00/month"), start(account)
    inputs = run.check("server", "web", WEB)
    other.create("server", "other", OTHER)
    with pytest.raises(HostingError, match=r"5\.00 EUR were spent this month"):
        run.of("server").create(inputs)
    assert charged(account) == ["5.00"]


def test_two_runs_at_once_do_not_exceed_it_together(account: Account) -> None:
    runs = [start(account, budget="9.00/month") for _ in range(4)]
    made = [run.check("server", f"web-{n}", {**WEB, "name": f"web-{n}"}) for n, run in enumerate(runs)]

    def create(n: int) -> bool:
        try:
            runs[n].of("server").create(made[n])
        except HostingError:
            return False
        return True

    with ThreadPoolExecutor() as pool:
        assert sorted(pool.map(create, range(4))) == [False, False, False, True]
    assert charged(account) == ["5.00"]


def test_a_purchase_whose_outcome_is_not_known_counts_for_a_quarter_of_an_hour(account: Account) -> None:
    """It may be charged yet, and nothing of the account shows it."""
    cost = Cost(Decimal("5.00"), "EUR", "server web")

    def pay(name: str, error: Exception | None = None) -> None:
        session = start(account, budget="9.00/month").session
        session.client.me()  # it knows the time
        with session.paying(Request(session, f"pulumi:t/dev/server/{name}"), cost):
            if error is not None:
                raise error

    with pytest.raises(TransportError):
        pay("web", TransportError("refused", outcome_unknown=False))
    with pytest.raises(TransportError):
        pay("other", TransportError("lost", outcome_unknown=True))
    with pytest.raises(LimitExceeded, match=r"5\.00 EUR were spent this month; .* they would be 10\.00"):
        pay("web")
    pay("other")  # its own booking does not stop it, and ends with it
    pay("web")
    with pytest.raises(TransportError):
        pay("other", TransportError("lost", outcome_unknown=True))
    account.advance(901)
    pay("web")


def test_a_key_that_cannot_read_the_debits_is_refused(account: Account) -> None:
    scopes = ["servers:read", "servers:order", "servers:manage", "invoices:read"]
    run = start(account, apiKey=account.new_key(scopes=scopes), budget="9.00/month")
    assert "the key may not read what was spent (scope balance:read)" in check(run)[""]


@pytest.mark.parametrize("given", ["", "100", "100/year", "ten/month", 100])
def test_a_budget_that_is_none_is_refused(account: Account, given: object) -> None:
    with pytest.raises(HostingError, match="must be an amount of money for each month"):
        start(account, budget=given)
    result = Play(account, budget=str(given))("server", **SERVER)
    assert "must be an amount of money for each month" in result["msg"]
    assert charged(account) == []


def test_a_playbook_keeps_to_it(account: Account) -> None:
    planned = Play(account, check_mode=True, budget="9.00/month")
    assert planned("server", **SERVER)["changed"]
    assert (
        "they would be 10.00, and budget is 9.00/month" in planned("server", **{**SERVER, "name": "b"})["msg"]
    )
    play = Play(account, budget="9.00/month")
    assert play("server", **SERVER)["changed"]
    refused = play("server", **{**SERVER, "name": "other"})
    assert "5.00 EUR were spent this month" in refused["msg"]
    renewed = play("server_renew", name="web", until="2029-06-01")
    assert "budget is 9.00/month" in renewed["msg"]
    assert charged(account) == ["5.00"]
    assert play("server", **SERVER)["changed"] is False


def test_a_renewal_that_is_kept_paid_keeps_to_it(account: Account) -> None:
    kept = {**SERVER, "auto_renew": False, "keep_paid": "7d", "months": 1}
    Play(account)("server", **kept)
    account.advance(10 * 86400)
    Play(account)("server", **{**SERVER, "name": "other", "auto_renew": False})
    account.advance(17 * 86400)
    result = Play(account, budget="4.00/month")("server", **kept)
    assert any("budget is 4.00/month" in line for line in result["warnings"])
    assert result["changed"] is False
    assert charged(account) == ["5.00", "5.00"]


def test_a_provider_that_is_configured_again_counts_its_purchases_once(account: Account) -> None:
    """The dynamic provider is, for each kind of resource."""
    run = start(account, budget="12.00/month")
    run.create("server", "web", WEB)
    run.session.configure({"apiKey": account.live_key, "baseUrl": account.base_url, "budget": "12.00/month"})
    assert check(run, "other") == {}
