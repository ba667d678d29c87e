"""How many addresses a run plans for a server, against what the server's tariff allows (three)."""

from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.provider.conversion import UNKNOWN
from pulumi_hosting.provider.names import IDENTITY, SERVER
from tests.provider.plugin_client import SERVER as WEB_URN
from tests.provider.plugin_client import Asked
from tests.provider.processes import WEB, Process, provider_process
from tests.support.account import Account


@pytest.fixture(autouse=True)
def _private_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(tmp_path / "run"))


def refusals(process: Process, names: str, given: dict[str, Any]) -> list[dict[str, str]]:
    """What Check says of one new address for each letter."""
    checks = [{**given, IDENTITY: f"pulumi:t/dev/server_ip/{name}"} for name in names]
    return [process.of("server_ip").check({}, props)[1] for props in checks]


def test_a_preview_refuses_more_addresses_than_the_tariff_allows(account: Account) -> None:
    web = provider_process(account).create("server", "web", WEB)
    process = provider_process(account)
    found = refusals(process, "abcde", {"serverId": web.id})
    assert found[:3] == [{}, {}, {}]
    assert [failures.keys() for failures in found[3:]] == [{"server_id"}, {"server_id"}]
    assert found[3] == found[4]
    counted = f"server {web.id} has all of the 3 addresses its tariff allows, counting 3 more of this run"
    assert found[3] == {"server_id": f"{counted}. Next: leave this one out"}
    assert refusals(process, "a", {"serverId": web.id}) == [{}]  # it is counted once
    assert account.moved() == 5


def test_what_is_bought_is_planned_no_more(account: Account) -> None:
    process = provider_process(account)
    web, other = (process.create("server", name, {**WEB, "name": name}) for name in ("web", "other"))
    for name in "abc":
        process.create("server_ip", name, {"serverId": web.id})
    process.create("server_ip", "d", {"serverId": other.id})
    (refused,) = refusals(process, "e", {"serverId": web.id})
    assert refused["server_id"].startswith(
        f"server {web.id} has all of the 3 addresses its tariff allows. Next"
    )
    bought = [row for row in account.control("GET", "/objects")["addresses"] if row["bought"]]
    assert sorted(str(row["server_id"]) for row in bought) == [web.id] * 3 + [other.id]


def test_addresses_of_the_stack_and_new_ones_are_counted_together(account: Account) -> None:
    first = provider_process(account)
    web = first.create("server", "web", WEB)
    kept = first.create("server_ip", "kept", {"serverId": web.id})
    process = provider_process(account)
    process.check("server_ip", "kept", {"serverId": web.id}, kept.outputs)
    found = refusals(process, "abc", {"serverId": web.id})
    assert found[:2] == [{}, {}]
    assert found[2]["server_id"].endswith("counting 2 more of this run. Next: leave this one out")


def test_a_server_of_the_same_run_is_counted_by_its_tariff(account: Account) -> None:
    """In a preview it has no id."""
    process = provider_process(account, scope="mine")
    web, other = ({"serverId": UNKNOWN, SERVER: f"pulumi:t/dev/server/{name}"} for name in ("web", "other"))
    for name in ("web", "other"):
        process.check("server", name, {**WEB, "name": name})
    assert refusals(process, "abc", web) == refusals(process, "def", other) == [{}, {}, {}]
    (refused,) = refusals(process, "g", web)
    assert refused["server_id"].startswith("server web has all of the 3 addresses its tariff allows, count")
    assert refusals(process, "h", {"serverId": UNKNOWN}) == [{}]  # of which server is not known
    assert account.ledger() == []


def test_the_plugin_counts_them_too(plugin: Asked) -> None:
    given = {"serverId": UNKNOWN, SERVER: WEB_URN}
    assert not plugin.check(WEB_URN, {**WEB, "name": "web"}).failures
    urns = [f"urn:pulumi:dev::toys::hosting:index:ServerIp::{name}" for name in "abcd"]
    checked = [plugin.check(urn, given) for urn in urns]
    assert [len(answer.failures) for answer in checked] == [0, 0, 0, 1]
    assert checked[3].failures[0].reason.startswith("serverId: server web has all of the 3 addresses")
    assert SERVER not in dict(checked[0].inputs)


def test_the_declaration_of_the_server_is_not_recorded(account: Account) -> None:
    process = provider_process(account)
    given = {"serverId": UNKNOWN, SERVER: "pulumi:t/dev/server/web"}
    assert SERVER not in process.check("server_ip", "mail", given)


def test_of_several_tariffs_the_one_that_allows_most_counts(account: Account) -> None:
    small = {"id": 77, "name": "small", "price_monthly": "1.00", "max_extra_ips": 1}
    account.control("POST", "/tariffs", small)
    process = provider_process(account)
    given = {"os": "debian-12", "name": "web"}
    process.check("server", "web", {**given, "tariffIds": [77.0, 1.0]})
    process.check("server", "other", {**given, "name": "other", "tariffId": 77.0})
    web, other = ({"serverId": UNKNOWN, SERVER: f"pulumi:t/dev/server/{name}"} for name in ("web", "other"))
    assert [len(failures) for failures in refusals(process, "abcd", web)] == [0, 0, 0, 1]
    assert [len(failures) for failures in refusals(process, "ef", other)] == [0, 1]
