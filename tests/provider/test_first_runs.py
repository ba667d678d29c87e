"""The first run of a stack, with an empty state, and what another backend with the same names has."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from pulumi_hosting.provider.names import IDENTITY
from tests.provider.processes import WEB, Process, provider_process
from tests.resources.conftest import KillingTransport, ProcessKilled
from tests.support.account import Account

HOUR = 3600.0
SITE: dict[str, Any] = {"name": "example.com"}
EMPTY = "the state of this stack is empty, and another backend with the same names may have it"


def refusal(process: Process, kind: str, name: str, given: dict[str, Any]) -> str:
    _, failures = process.of(kind).check({}, {**given, IDENTITY: f"pulumi:t/dev/{kind}/{name}"})
    return "".join(failures.values())


@pytest.mark.parametrize(("kind", "name", "given"), [("server", "web", WEB)])
def test_what_another_backend_has_for_an_hour_takes_a_persons_word(
    account: Account, kind: str, name: str, given: dict[str, Any]
) -> None:
    theirs = provider_process(account).create(kind, name, given)
    account.advance(HOUR - 60)
    assert not refusal(provider_process(account), kind, name, given)
    account.advance(120)
    first = provider_process(account)
    said = refusal(first, kind, name, given)
    assert EMPTY in said
    assert "from which hosting:scope tells this one apart" in said
    assert f"adopt_id={theirs.id} to take it over" in said
    assert not [line for line in first.lines if "takes over" in line]
    # what the message names
    assert refusal(provider_process(account, scope="mine"), kind, name, given) == "" or kind == "server"
    taken = provider_process(account).create(kind, name, {**given, "adoptId": theirs.id})
    assert taken.id == theirs.id


def test_a_scope_tells_two_backends_apart(account: Account) -> None:
    theirs = provider_process(account).create("server", "web", WEB)
    account.advance(2 * HOUR)
    mine = provider_process(account, scope="mine").create("server", "web", {**WEB, "name": "web-mine"})
    assert mine.id != theirs.id
    provider_process(account, scope="mine").delete("server", mine)
    assert account.living_ids == [theirs.id]


def test_a_state_with_another_resource_is_that_of_a_run_before(account: Account) -> None:
    first = provider_process(account)
    site = first.create("domain", "site", SITE)
    web = first.create("server", "web", WEB)
    account.advance(2 * HOUR)
    process = provider_process(account)
    process.check("domain", "site", SITE, site.inputs)
    assert process.create("server", "web", WEB).id == web.id
    assert any(f"takes over server {web.id}" in line for line in process.lines)


def test_an_engine_that_asks_about_the_state_a_moment_later_is_waited_for(account: Account) -> None:
    first = provider_process(account)
    site = first.create("domain", "site", SITE)
    web = first.create("server", "web", WEB)
    account.advance(2 * HOUR)
    process = provider_process(account)
    sleep = process.session.clock.sleep

    def meanwhile(seconds: float) -> None:
        process.session.clock.sleep = sleep  # type: ignore[method-assign]  # a stub stands in
        process.check("domain", "site", SITE, site.inputs)
        sleep(seconds)

    process.session.clock.sleep = meanwhile  # type: ignore[method-assign]  # as another thread would
    assert process.create("server", "web", WEB).id == web.id


class Killed(KillingTransport):
    """Kills the process when its order was carried out, before the answer."""

    def __init__(self, account: Account, order: str = "POST /v1/servers") -> None:
        super().__init__(kill_after=(order, 1))
        self.inner: httpx.BaseTransport = account.transport()


def test_after_its_own_crash_a_run_goes_on_for_seven_days(account: Account) -> None:
    with pytest.raises(ProcessKilled):
        provider_process(account, Killed(account)).create("server", "web", WEB)
    account.advance(6.9 * 24 * HOUR)
    process = provider_process(account)
    taken = process.create("server", "web", WEB)
    assert account.living_ids == [taken.id]
    assert account.charges == 1


@pytest.mark.parametrize("strict", [None, "true"])
@pytest.mark.parametrize("kind", ["domain", "server_ip"])
def test_what_only_its_own_crash_can_have_bought_is_taken_over_later_too(
    account: Account, kind: str, strict: str | None
) -> None:
    """The keys are forgotten. This machine noted what it began, and nothing else was bought since."""
    server = provider_process(account).create("server", "web", WEB)
    given = SITE if kind == "domain" else {"serverId": server.id}
    order = "POST /v1/domains" if kind == "domain" else f"POST /v1/servers/{server.id}/ips"
    with pytest.raises(ProcessKilled):
        provider_process(account, Killed(account, order)).create(kind, "it", given)
    account.advance(20 * 24 * HOUR)
    settings: dict[str, Any] = {} if strict is None else {"strict": strict}
    process = provider_process(account, **settings)
    if strict:
        assert "strict is set" in refusal(process, kind, "it", given)
    else:
        process.create(kind, "it", given)
        price = {"domain": "12.00", "server_ip": "2.00"}[kind]
        told = f"an interrupted run bought it: {price} EUR were charged, invoice 40002"
        assert any(told in line for line in process.lines), process.lines
    assert account.charges == 2


def test_on_another_machine_nothing_shows_that_it_was_a_crash(
    account: Account, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ProcessKilled):
        provider_process(account, Killed(account)).create("server", "web", WEB)
    (server,) = account.living
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(tmp_path / "elsewhere"))
    account.advance(2 * HOUR)
    said = refusal(provider_process(account), "server", "web", WEB)
    assert f"set adopt_id to {server['id']} to take it over" in said
    taken = provider_process(account).create("server", "web", {**WEB, "adoptId": str(server["id"])})
    assert account.living_ids == [taken.id]
    assert account.charges == 1


@pytest.mark.parametrize("kind", ["server_ip", "ptr"])
def test_what_goes_with_a_server_on_order_waits_for_its_id(account: Account, kind: str) -> None:
    """The state of the native form has the order's number until the server is there."""
    given = {"server_ip": {}, "ptr": {"address": "198.18.1.1", "domain": "mail.example.com"}}[kind]
    process = provider_process(account)
    inputs, failures = process.of(kind).check({}, {"serverId": "order:40001", **given})
    assert failures == {}
    assert inputs["serverId"] == "order:40001"
    assert process.of(kind).check({}, {"serverId": "web", **given})[1].keys() == {"server_id"}
