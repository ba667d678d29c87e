"""What a run may charge, and that it can be relied on: settings, prices that rise, several providers, an
API that does not answer.
"""

from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from pulumi_hosting.client.exceptions import ConfigurationError, HostingError, InvalidInput
from pulumi_hosting.provider.conversion import UNKNOWN
from pulumi_hosting.provider.failures import PartialFailure, StepFailed, as_user_error
from pulumi_hosting.provider.names import IDENTITY
from pulumi_hosting.provider.provider_session import ProviderSession
from pulumi_hosting.provider.stack_settings import StackSettings, failures_of
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS
from pulumi_hosting.session.errors import ResourceError
from tests.provider.processes import WEB, Process, provider_process
from tests.support.account import Account


@pytest.fixture(autouse=True)
def _private_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(tmp_path / "run"))


@pytest.mark.parametrize(
    "limit",
    ["", "1e2", "\u0665", "+5", "-1", "0x10", "5,00", "NaN", " 5", "5 EUR", "Infinity", ".5", "1_000"],
)
def test_a_limit_is_plain_decimals(limit: str) -> None:
    assert failures_of({"maxCharge": limit}).keys() == {"maxCharge"}
    for config, environ in (({"maxCharge": limit}, {}), ({}, {"HOSTING_MAX_CHARGE": limit})):
        with pytest.raises(ConfigurationError, match=r"maxCharge \(HOSTING_MAX_CHARGE\): "):
            StackSettings.of(config, environ)


def test_a_refused_setting_says_what_was_given_and_what_to_do_but_repeats_no_key() -> None:
    with pytest.raises(ConfigurationError) as caught:
        StackSettings.of({"mode": "vk_live_canary"}, {"HOSTING_MAX_CHARGE": "abc"})
    assert str(caught.value) == (
        "mode (HOSTING_MODE): must be live or test, not '**********'; maxCharge (HOSTING_MAX_CHARGE): must "
        "be an amount of money, such as 25.00, not 'abc'. Next: correct mode, maxCharge"
    )


def test_a_refused_base_url_names_the_setting_of_the_stack() -> None:
    session = ProviderSession({"HOSTING_API_KEY": f"vk_live_{'a' * 30}"})
    session.configure({"baseUrl": "ftp://nowhere"})
    with pytest.raises(StepFailed) as caught, as_user_error():
        _ = session.client
    assert str(caught.value) == (
        "the base URL 'ftp://nowhere' must be https; plain http is only allowed for localhost, because it "
        "would expose the API key. Next: correct HOSTING_BASE_URL or hosting:baseUrl"
    )


def test_a_preview_warns_once_of_a_store_without_which_nothing_can_be_bought(account: Account) -> None:
    made = provider_process(account).create("server", "old", {**WEB, "name": "old"})
    process = provider_process(account, store="redis://team:hunter2@127.0.0.1:1/0")
    process.refresh("server", made)
    process.delete("server", made)
    assert not any("nothing can be bought" in line for line in process.lines)
    for name in ("web-1", "web-2"):
        process.check("server", name, {**WEB, "name": name})
    (line,) = [line for line in process.lines if "nothing can be bought" in line]
    assert "warning: nothing can be bought: the shared store redis://127.0.0.1:1 cannot be used: " in line
    assert "hunter2" not in line


@pytest.mark.parametrize("limit", ["0", "5", "25.00", 0, 5, 25.5])
def test_amounts_of_money_are_limits(limit: Any) -> None:
    assert str(StackSettings.of({"maxCharge": limit}, {}).limit) == f"maxCharge is {limit}"


@pytest.mark.parametrize(("seconds", "meant"), [("0", 0.0), ("90.5", 90.5), (86400, 86400.0)])
def test_the_wait_for_the_rate_limit_is_in_seconds(seconds: Any, meant: float) -> None:
    environ = {"HOSTING_API_KEY": f"vk_live_{'a' * 30}", "HOSTING_BASE_URL": "http://127.0.0.1:1/v1"}
    session = ProviderSession(environ)
    session.configure({"rateLimitTimeout": seconds})
    assert session.client.rate_limiter.timeout == meant


@pytest.mark.parametrize("seconds", ["-1", "86401", "ten", "nan", "inf"])
def test_other_waits_for_the_rate_limit_are_refused(seconds: str) -> None:
    with pytest.raises(ConfigurationError, match="HOSTING_RATE_LIMIT_TIMEOUT"):
        StackSettings.of({}, {"HOSTING_RATE_LIMIT_TIMEOUT": seconds})


@pytest.mark.parametrize(
    ("strict", "meant"),
    [("true", True), ("1", True), (True, True), ("False", False), ("0", False), ("", False), (None, False)],
)
def test_strict_is_a_boolean(strict: Any, meant: bool) -> None:
    assert StackSettings.of({"strict": strict}, {}).strict is meant
    assert failures_of({"strict": "perhaps"}).keys() == failures_of({"strict": 2}).keys() == {"strict"}


@pytest.mark.parametrize("scope", ["", "a b", "team/one", "[x]", "x" * 65, "-x"])
def test_a_scope_is_a_plain_name(scope: str) -> None:
    with pytest.raises(ConfigurationError, match="scope"):
        StackSettings.of({}, {"HOSTING_SCOPE": scope})


def test_an_address_of_a_server_that_does_not_exist_yet_has_a_line_for_its_price(account: Account) -> None:
    process = provider_process(account)
    process.check("server_ip", "mail", {"serverId": UNKNOWN})
    assert [line for line in process.lines if "price" in line] == [
        "mail: price of server address: not known before its server exists"
    ]
    assert account.ledger() == []


def priced_up(account: Account, process: Process, name: str) -> dict[str, Any]:
    """Inputs that were checked at 5.00; the price is 50.00 by the time of the order."""
    inputs = process.check("server", name, {**WEB, "name": name})
    account.control("PATCH", "/tariffs/1", {"price_monthly": "50.00"})
    return inputs


def test_a_charge_above_its_announced_price_stops_the_run(account: Account) -> None:
    process = provider_process(account, maxCharge="20.00")
    other = process.check("server", "other", {**WEB, "name": "other"})
    with pytest.raises(PartialFailure) as stopped:
        process.of("server").create(priced_up(account, process, "web"))
    assert not stopped.value.refresh
    assert stopped.value.outputs["charged"] == "50.00"
    assert "50.00 EUR were charged for VDS-1, 1 month, announced were 5.00" in str(stopped.value)
    assert "maxCharge is 20.00" in str(stopped.value)
    with pytest.raises(ResourceError, match=r"nothing more is ordered in this run: 50\.00 EUR were charged"):
        process.of("server").create(other)
    assert account.living_ids == [stopped.value.id]
    assert account.moved() == 50


def test_what_is_found_again_costs_and_books_nothing(account: Account) -> None:
    web = provider_process(account).create("server", "web", WEB)
    later = provider_process(account, maxCharge="5.00")
    inputs = later.check("server", "web", {**WEB, "adoptId": web.id})
    assert any(f"takes over server {web.id}" in line for line in later.lines)
    assert not any("charges" in line for line in later.lines)
    later.of("server").create(inputs)
    later.create("server", "other", {**WEB, "name": "other"})
    assert len(account.living_ids) == 2
    assert account.moved() == 10


def test_what_two_resources_were_announced_to_find_is_paid_by_one_within_the_limit(account: Account) -> None:
    """No tag is on the server: only sending its key shows whose it is."""
    web = provider_process(account).create("server", "web", WEB)
    account.control("PATCH", f"/servers/{web.id}", {"notes": ""})
    later = provider_process(account, maxCharge="1.00")
    mine, other = (later.check("server", name, {**WEB, "name": "web"}) for name in ("web", "other"))
    later.of("server").create(mine)
    with pytest.raises(InvalidInput, match=r"this run would charge 5\.00 EUR, more than maxCharge 1\.00"):
        later.of("server").create(other)
    assert account.living_ids == [web.id]
    assert account.moved() == 5


def test_what_is_gone_before_it_is_found_again_is_priced_before_it_is_ordered(account: Account) -> None:
    web = provider_process(account).create("server", "web", WEB)
    limited, unlimited = provider_process(account, maxCharge="1.00"), provider_process(account)
    checked = [process.check("server", "web", WEB) for process in (limited, unlimited)]
    account.control("DELETE", f"/servers/{web.id}")
    paid = account.moved()
    for process in (limited, unlimited):
        process.session.reads.forget(ORDERS_AND_SERVERS)
    with pytest.raises(InvalidInput, match=r"more than maxCharge 1\.00"):
        limited.of("server").create(checked[0])
    assert account.living_ids == []
    unlimited.of("server").create(checked[1])
    assert any(
        "will charge 5.00 EUR (VDS-1, 1 month); run total 5.00 EUR" in line for line in unlimited.lines
    )
    assert len(account.living_ids) == 1
    assert account.moved() == paid + 5


def test_one_limit_over_all_providers_of_a_run(account: Account) -> None:
    first, second, unlimited = (
        provider_process(account, maxCharge="12.00"),
        provider_process(account, maxCharge="12.00"),
        provider_process(account),
    )
    for process in (first, second, unlimited):
        process.session.ledger.run = "127.0.0.1:4711"
    unlimited.create("server", "a", {**WEB, "name": "a"})
    first.create("server", "b", {**WEB, "name": "b"})
    _, failures = second.of("server").check({}, {**WEB, "name": "c", IDENTITY: "pulumi:t/dev/server/c"})
    assert "this run would charge 15.00 EUR, more than maxCharge 12.00" in failures[""]
    another = provider_process(account, maxCharge="12.00")  # another run of the engine counts from zero
    another.session.ledger.run = "127.0.0.1:4712"
    another.create("server", "c", {**WEB, "name": "c"})
    assert account.moved() == 15


def test_processes_that_have_ended_do_not_count(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = provider_process(account, maxCharge="5.00")
    ended.session.ledger.run = "127.0.0.1:4711"
    ended.check("server", "a", {**WEB, "name": "a"})
    monkeypatch.setattr(
        "pulumi_hosting.provider.run_ledger._lives", lambda member: member != ended.session.ledger._member
    )
    later = provider_process(account, maxCharge="5.00")
    later.session.ledger.run = "127.0.0.1:4711"
    later.create("server", "b", {**WEB, "name": "b"})
    assert account.moved() == 5


class Dead(httpx.BaseTransport):
    """Nothing listens."""

    def __init__(self) -> None:
        self.tried = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.tried += 1
        raise httpx.ConnectError("Connection refused", request=request)


SERVERS = [("one", {**WEB, "name": "one"}), ("two", {**WEB, "name": "two"})]


@pytest.mark.parametrize("settings", [{"maxCharge": "5.00"}, {"strict": "true"}])
def test_a_preview_without_answers_fails_where_they_matter(
    account: Account, settings: dict[str, str]
) -> None:
    process = provider_process(account, Dead(), **settings)
    for name, given in SERVERS:
        _, failures = process.of("server").check({}, {**given, IDENTITY: f"pulumi:t/dev/server/{name}"})
        assert failures[""].startswith("prices and limits were not checked: ")


def test_a_preview_without_answers_warns_once(account: Account) -> None:
    dead = Dead()
    process = provider_process(account, dead)
    for name, given in SERVERS:
        process.check("server", name, given)
    assert [line for line in process.lines if "prices and limits were not checked" in line] == process.lines
    assert len(process.lines) == 1
    assert dead.tried <= 6  # one question, for all


@pytest.mark.parametrize("settings", [{}, {"strict": "true"}])
def test_what_exists_is_compared_without_answers(account: Account, settings: dict[str, str]) -> None:
    web = provider_process(account).create("server", "web", WEB)
    process = provider_process(account, Dead(), **settings)
    if settings:
        with pytest.raises(ResourceError, match="prices and limits were not checked"):
            process.of("server").diff(web.id, web.outputs, web.inputs)
    else:
        assert not process.of("server").diff(web.id, web.outputs, web.inputs).changes


def test_what_a_test_key_made_is_not_taken_for_real(account: Account) -> None:
    simulated = provider_process(account, apiKey=account.test_key)
    web = simulated.create("server", "web", WEB)
    live = provider_process(account)
    checked = live.check("server", "web", WEB, web.inputs)
    with pytest.raises(
        ResourceError,
        match=r"was made with a test key: it is only simulated.*Next: pulumi up, then pulumi destroy, both "
        r"with the test key",
    ):
        live.of("server").diff(web.id, web.outputs, checked)
    # The advice.
    provider_process(account, apiKey=account.test_key).delete("server", web)
    provider_process(account).create("server", "web", WEB)
    assert len(account.living_ids) == 1
    assert account.moved() == 5


def test_a_test_key_previews_what_is_live(account: Account) -> None:
    web = provider_process(account).create("server", "web", WEB)
    process = provider_process(account, apiKey=account.test_key)
    checked = process.check("server", "web", {**WEB, "notes": "x"}, web.inputs)
    assert process.of("server").diff(web.id, web.outputs, checked).properties.keys() == {"notes"}


def test_another_accounts_key_is_noticed_before_anything_is_done(account: Account) -> None:
    web = provider_process(account).create("server", "web", WEB)
    other = provider_process(account, apiKey=account.control("POST", "/accounts", {})["live_key"])
    checked = other.check("server", "web", WEB, web.inputs)
    with pytest.raises(
        ResourceError,
        match=r"is on account \d+, and this is a key of account \d+; nothing "
        r"was done",
    ):
        other.of("server").diff(web.id, web.outputs, checked)
    assert account.living_ids == [web.id]


def test_a_negative_price_is_not_believed(account: Account) -> None:
    quoted = {"method": "GET", "path": "^/catalog/quote$", "action": {"patch": {"total": "-5.00"}}}
    account.control("POST", "/faults", {**quoted, "times": 9})
    process = provider_process(account)
    _, failures = process.of("server").check({}, {**WEB, IDENTITY: "pulumi:t/dev/server/web"})
    assert failures[""].startswith("the service names a price of -5.00 EUR for VDS-1, 1 month, and a price")
    assert process.lines == []
    assert account.ledger() == []


def test_no_price_is_no_order_where_the_charge_is_limited(account: Account) -> None:
    account.control(
        "POST",
        "/faults",
        {"path": "^/catalog/quote$", "action": {"status": 400, "code": "invalid_request"}, "times": 9},
    )
    process = provider_process(account, maxCharge="100.00")
    with pytest.raises(
        (InvalidInput, HostingError),
        match=r"its price is not known, and maxCharge is "
        r"100\.00; it is not ordered",
    ):
        process.create("server", "web", WEB)
    assert account.living_ids == []


# --- what a tariff allows


def test_addresses_of_one_program_are_counted_together(account: Account) -> None:
    first = provider_process(account)
    server = first.create("server", "web", WEB).id
    one = first.create("server_ip", "one", {"serverId": server})
    looking = provider_process(account)
    looking.check("server_ip", "one", {"serverId": server}, one.inputs)  # it is there
    two, three = (looking.check("server_ip", name, {"serverId": server}) for name in ("two", "three"))
    for _ in range(2):  # one that is asked about again counts once
        news = {"serverId": server, IDENTITY: "pulumi:t/dev/server_ip/four"}
        assert looking.of("server_ip").check({}, news)[1] == {
            "server_id": f"server {server} has all of the 3 addresses its tariff allows, counting 2 more of "
            "this run. Next: leave this one out"
        }
    # What is bought by now is counted by the account.
    buying = provider_process(account)
    for name, inputs in (("two", two), ("three", three)):
        buying.check("server_ip", name, {"serverId": server})
        buying.of("server_ip").create(inputs)
    assert buying.of("server_ip").check({}, news)[1] == {
        "server_id": f"server {server} has all of the 3 addresses its tariff allows. Next: leave this one out"
    }
    assert account.moved() == Decimal("11.00")
