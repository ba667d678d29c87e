"""``keepPaid``: renewed once, by whatever run comes first, and never beyond a limit."""

import json
import os
import re
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import httpx
import pytest

from tests.provider.processes import WEB, Entry, Process, Start, provider_process
from tests.provider.test_paid_time import DAY, SHOP, later
from tests.support.account import Account

KINDS = [
    ("server", {**WEB, "autoRenew": False, "keepPaid": "7d"}, "nextDueAt", 30, 7),
    ("domain", {**SHOP, "keepPaid": "30d"}, "expiresAt", 365, 30),
]


def up(process: Process, kind: str, entry: Entry) -> Entry:
    """What an engine does with an unchanged program: compare, then update what differs."""
    adapter = process.of(kind)
    if not adapter.diff(entry.id, entry.outputs, entry.inputs).changes:
        return entry
    return Entry(entry.id, adapter.update(entry.id, entry.outputs, entry.inputs), entry.inputs)


def payments(account: Account) -> int:
    return sum(row["type"] == "payment" for row in account.ledger())


@pytest.mark.parametrize(("kind", "given", "date", "period", "keep"), KINDS)
def test_renewed_once_for_each_date(
    processes: Start, account: Account, kind: str, given: dict[str, Any], date: str, period: int, keep: int
) -> None:
    entry = processes().create(kind, "one", given)
    later(account, period - keep - 1)
    quiet = processes()
    entry = up(quiet, kind, entry)
    assert (quiet.lines, payments(account)) == ([], 1)
    later(account, 2)
    preview, run, again = processes(), processes(), processes()
    found = preview.of(kind).diff(entry.id, entry.outputs, entry.inputs)
    assert found.properties == {"keepPaid": "UPDATE"}
    assert "will charge " in preview.lines[0]
    assert "balance" in preview.lines[0]
    now_until = f"paid until {entry.outputs[date][:10]}, and with this renewal until at least "
    assert f"keepPaid {keep}d: {now_until}" in preview.lines[1]
    unknown = preview.of(kind).preview_update(entry.id, entry.outputs, entry.inputs)
    assert unknown[date] != entry.outputs[date]
    assert payments(account) == 1
    renewed = up(run, kind, entry)
    assert renewed.outputs[date] > entry.outputs[date]
    assert renewed.outputs[date][:10] >= preview.lines[1].rpartition(" ")[2] > entry.outputs[date][:10]
    assert any("one: charged " in line for line in run.lines)
    for known in (renewed, entry):  # whatever state the next run has
        assert up(again, kind, known) is known
    assert (again.lines, payments(account)) == ([], 2)
    assert up(processes(), kind, processes().refresh(kind, renewed)).outputs[date] == renewed.outputs[date]
    later(account, period + 3)
    assert up(processes(), kind, renewed).outputs[date] > renewed.outputs[date]
    assert payments(account) == 3
    (there,) = account.objects(f"{kind}s")
    assert there["status"] == "active"


def test_the_power_of_a_suspended_server_does_not_keep_it_from_being_renewed(
    processes: Start, account: Account
) -> None:
    given = {**WEB, "autoRenew": False, "keepPaid": "7d", "power": "running"}
    entry = processes().create("server", "one", given)
    later(account, 35)
    entry = processes().refresh("server", entry)
    assert entry.outputs["status"] == "suspended"
    renewed = up(processes(), "server", entry)
    (there,) = account.objects("servers")
    assert (there["status"], payments(account)) == ("active", 2)
    assert up(processes(), "server", renewed) is renewed


def test_auto_renew_that_is_covered_does_it(processes: Start, account: Account) -> None:
    web = processes().create("server", "web", {**WEB, "autoRenew": True, "keepPaid": "7d"})
    later(account, 25)
    run = processes()
    assert up(run, "server", web) is web
    assert (run.lines, payments(account)) == ([], 1)
    account.control("POST", "/clock", {"advance": 5 * DAY - 1800})
    account.control("PATCH", "/account", {"balance": "1.00"})
    assert up(processes(), "server", web) is web  # its last hour is the service's
    assert payments(account) == 1


def test_a_renewal_counts_against_the_limit_and_is_refused_beyond_it(
    processes: Start, account: Account
) -> None:
    web = processes().create("server", "web", KINDS[0][1])
    later(account, 25)
    limited = processes(maxCharge="1.00")
    assert up(limited, "server", web) is web
    assert limited.lines[0].startswith("web: warning: not renewed, though keep_paid asks for it: with ")
    assert "more than maxCharge 1.00" in limited.lines[0]
    assert payments(account) == 1
    enough = processes(maxCharge="9.00")
    enough.of("server").diff(web.id, web.outputs, web.inputs)
    _, failures = enough.of("server").check(
        {}, {**WEB, "name": "other", "__identity": "pulumi:t/dev/server/o"}
    )
    assert "this run would charge" in failures[""]  # with the renewal
    assert up(processes(maxCharge="9.00"), "server", web).outputs["nextDueAt"] > web.outputs["nextDueAt"]
    assert payments(account) == 2


def test_a_refused_renewal_is_a_warning(processes: Start, account: Account) -> None:
    web = processes().create("server", "web", KINDS[0][1])
    later(account, 25)
    account.control("PATCH", "/account", {"balance": "0.50"})
    run = processes()
    assert up(run, "server", web).outputs["nextDueAt"] == web.outputs["nextDueAt"]
    assert any("not renewed, though keep_paid asks for it: " in line for line in run.lines)
    assert payments(account) == 1


@pytest.mark.parametrize(
    ("changes", "days", "said"),
    [
        ([{"status": "suspended"}], 25, "is suspended, though it is paid until "),
        ([{"status": "pending_cancel"}], 25, ": its cancellation is approved. Next: ask the provider to "),
        ([{"status": "pending_cancel"}, {"status": "suspended"}], 25, "is suspended, and ends on "),
        ([{"blocked": True}], 31, "is suspended and locked by the provider's staff (it was paid until "),
    ],
)
def test_what_the_provider_must_be_asked_about_is_not_renewed(
    processes: Start, account: Account, changes: list[dict[str, Any]], days: int, said: str
) -> None:
    web = processes().create("server", "web", KINDS[0][1])
    for change in changes:
        account.control("PATCH", f"/servers/{web.id}", change)
    later(account, days)
    preview, run = processes(), processes()
    found = preview.of("server").diff(web.id, web.outputs, web.inputs)
    assert found.properties == {"status": "UPDATE"}
    updated = run.of("server").update(web.id, web.outputs, web.inputs)
    assert updated["nextDueAt"] == web.outputs["nextDueAt"]
    (line,) = [line for line in preview.lines if "server 20001 (web)" in line]
    assert said in line
    assert "Next: ask the provider" in line
    assert "charge" not in "".join(preview.lines + run.lines)
    assert (payments(account), account.requested("POST")) == (1, ["/servers"])


@pytest.mark.parametrize(
    ("variant", "kind", "days", "said"),
    [
        ({"early_renewal": "last_day"}, "server", 25, "it is too early"),
        ({"early_renewal": "last_day"}, "domain", 340, "it is too early"),
        ({"suspended_renewal": "refused"}, "server", 31, "the server's status does not allow this"),
        ({"expired_renewal": "refused"}, "domain", 366, "the domain has expired"),
    ],
)
def test_what_the_service_refuses_is_a_warning_and_the_next_run_tries_again(
    processes: Start, account: Account, variant: dict[str, str], kind: str, days: int, said: str
) -> None:
    given = next(case[1] for case in KINDS if case[0] == kind)
    entry = processes().create(kind, "one", given)
    account.variant(**variant)
    later(account, days)
    run = processes()
    entry = up(run, kind, entry)
    (line,) = [line for line in run.lines if "not renewed, though keep_paid asks for it: " in line]
    assert said in line
    assert payments(account) == 1
    assert (
        account.requested("POST").count(f"/{kind}s/{entry.id}/renew") == 2
    )  # the first may replay an old refusal
    account.variant(early_renewal="any_time", suspended_renewal="allowed", expired_renewal="allowed")
    later(account, 1 / 4)  # the service keeps the refusal for seven days under its key
    entry = up(processes(), kind, entry)
    assert up(processes(), kind, entry) is entry
    assert payments(account) == 2
    assert [row["status"] for row in account.objects(f"{kind}s")] == ["active"]


def test_the_hours_that_are_missing_are_bought(processes: Start, account: Account) -> None:
    hourly = {**WEB, "tariffId": 3.0, "hours": 72.0, "autoRenew": False, "keepPaid": "48h"}
    web = processes().create("server", "web", hourly)
    later(account, 1.5)
    renewed = up(processes(), "server", web)
    bought = datetime.fromisoformat(renewed.outputs["nextDueAt"]) - datetime.fromisoformat(
        web.outputs["nextDueAt"]
    )
    assert bought == timedelta(hours=12)
    assert up(processes(), "server", renewed) is renewed
    assert payments(account) == 2


def test_a_test_key_shows_the_renewal_and_sends_nothing(processes: Start, account: Account) -> None:
    web = processes().create("server", "web", KINDS[0][1])
    later(account, 25)
    preview = processes(apiKey=account.test_key)
    assert preview.of("server").diff(web.id, web.outputs, web.inputs).properties == {"keepPaid": "UPDATE"}
    assert "would charge " in preview.lines[0]
    assert account.requested("POST") == ["/servers"]


def test_a_simulated_renewal_is_recorded_until_the_time_is_due_again(
    processes: Start, account: Account
) -> None:
    """No read shows it."""
    hourly = {**WEB, "tariffId": 3.0, "hours": 6.0, "autoRenew": False, "keepPaid": "4h"}
    simulated = partial(processes, apiKey=account.test_key)
    web = simulated().create("server", "web", hourly)
    later(account, 4 / 24)
    renewed = up(simulated(), "server", web)
    assert renewed.outputs["nextDueAt"] > web.outputs["nextDueAt"]
    assert up(simulated(), "server", renewed) is renewed
    refreshed = simulated().refresh("server", renewed)
    assert up(simulated(), "server", refreshed) is refreshed
    assert account.requested("POST").count(f"/servers/{web.id}/renew") == 1
    later(account, 3 / 24)
    again = up(simulated(), "server", refreshed)
    assert again.outputs["nextDueAt"] > renewed.outputs["nextDueAt"]
    assert up(simulated(), "server", again) is again
    assert account.requested("POST").count(f"/servers/{web.id}/renew") == 2
    assert account.ledger() == []


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("server", {**WEB, "keepPaid": "30d"}, "30d is not shorter than one paid period, 30 days"),
        ("server", {**WEB, "months": 3, "keepPaid": "90d"}, "one paid period, 90 days"),
        ("server", {**WEB, "hours": 5, "keepPaid": "30d"}, "one paid period, 720 hours"),
        ("server", {**WEB, "keepPaid": "0d"}, "0d renews nothing in time. Next: give at least 1h"),
        ("domain", {**SHOP, "keepPaid": "0h"}, "0h renews nothing in time. Next: give at least 1h"),
        ("domain", {**SHOP, "keepPaid": "365d"}, "one paid period, 365 days"),
        ("domain", {**SHOP, "keepPaid": "soon"}, "must be a number of days or hours"),
    ],
)
def test_a_time_that_cannot_be_kept_is_refused(
    processes: Start, account: Account, kind: str, given: dict[str, Any], said: str
) -> None:
    _, failures = processes().of(kind).check({}, {**given, "__identity": f"pulumi:t/dev/{kind}/one"})
    assert said in failures["keep_paid"]
    assert account.ledger() == []


class Slow(httpx.BaseTransport):
    """A registry whose new dates never show."""

    def __init__(self, account: Account) -> None:
        self.inner = account.transport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self.inner.handle_request(request)
        if request.method != "GET" or "/domains" not in request.url.path:
            return answer
        body = re.sub(rb"203[1-9](-04-15T08:00:00)", rb"2030\1", answer.read())
        return httpx.Response(answer.status_code, json=json.loads(body))


def test_a_renewal_that_never_shows_is_not_paid_again(account: Account) -> None:
    shop = provider_process(account).create("domain", "one", KINDS[1][1])
    later(account, 340)
    account.fault({"registrar": "pending"}, path="/renew$", times=99)
    said = []
    for days in (0, 2, 4, 3, 8, 20, 60):
        later(account, days)
        run = provider_process(account, Slow(account))
        shop = up(run, "domain", shop)
        said += run.lines
    assert payments(account) == 2
    assert any("it is not paid again. Next: ask the provider about it" in line for line in said)


def test_a_domain_is_not_renewed_by_a_key_that_cannot_see_invoices(account: Account) -> None:
    shop = provider_process(account).create("domain", "one", KINDS[1][1])
    later(account, 340)
    scopes = ["domains:read", "domains:order", "domains:manage", "balance:read"]
    run = provider_process(account, apiKey=account.new_key(scopes=scopes))
    assert up(run, "domain", shop) is shop
    assert any("the API key lacks invoices:read" in line for line in run.lines)
    assert any("does not renew itself" in line for line in run.lines)  # its end is still named
    assert payments(account) == 1


class Killed(BaseException):
    """The run ended here."""


class Killing(httpx.BaseTransport):
    """Ends the run once a renewal was carried out."""

    def __init__(self, account: Account) -> None:
        self.inner = account.transport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self.inner.handle_request(request)
        if request.url.path.endswith("/renew"):
            raise Killed
        return answer


def test_what_a_killed_run_paid_is_said_once(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    web = provider_process(account).create("server", "web", KINDS[0][1])
    later(account, 25)
    killed = provider_process(account, Killing(account))
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: 2**22 + 1)  # a process that is gone
        with pytest.raises(Killed):
            up(killed, "server", web)
    said = []
    for _ in range(2):
        run = provider_process(account)
        web = up(run, "server", run.refresh("server", web))
        said += run.lines
    (line,) = [line for line in said if "an interrupted run renewed it" in line]
    assert "5.00 EUR were charged, invoice 40002" in line
    assert payments(account) == 2
