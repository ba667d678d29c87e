"""Certify finds nothing on the emulator, whatever it was told to be, finds what is broken, and buys nothing
twice.
"""

import json
import random
import re
from collections.abc import Callable
from decimal import Decimal
from graphlib import TopologicalSorter
from pathlib import Path
from xml.etree import ElementTree

import httpx
import pytest
from click.testing import CliRunner

from pulumi_hosting.api.operations import SCOPES
from pulumi_hosting.certify import CHECKS, Conformance, run
from pulumi_hosting.certify.answers import HttpAnswer
from pulumi_hosting.certify.document import AFTER, SENTENCES
from pulumi_hosting.certify.kept_answers import KeptAnswers
from pulumi_hosting.certify.receiver import HttpReceiver
from pulumi_hosting.certify.report import Finding, Stopped
from pulumi_hosting.cli.certify import as_junit
from pulumi_hosting.cli.commands import main
from pulumi_hosting.emulator.control.switches import ServiceBody, edit_service
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.in_process_transport import Transport
from pulumi_hosting.emulator.store import VARIANTS
from tests.certify.page import PAGE, page
from tests.certify.sentences import DOCUMENT, sentences
from tests.certify.support import certified, emulator, settings

EACH_VARIANT = [
    (dialect, {name: value})
    for dialect in ("spec", "live")
    for name, values in VARIANTS.items()
    for value in values[1:]
]
RANDOM = [
    (dialect, {name: random.Random(f"{seed}{name}").choice(values) for name, values in VARIANTS.items()})  # noqa: S311  # which ones, not a secret
    for seed, dialect in enumerate(["spec", "live"] * 10)
]


def servers_alive(core: Core) -> list[int]:
    return [server.id for server in core.store.servers.values() if not server.is_gone]


def purchases(core: Core) -> dict[str, int]:
    """How many invoices of each type are paid."""
    types = [invoice.type for invoice in core.store.invoices.values() if invoice.paid_at]
    return {type: types.count(type) for type in types}


def found(report: Conformance) -> dict[str, str]:
    return {result.check: result.detail for result in report.departures}


def test_every_sentence_has_its_checks_or_a_reason() -> None:
    assert list(SENTENCES) == sentences(DOCUMENT.read_text("utf-8"))
    for text, checks in SENTENCES.items():
        assert checks, text
        assert isinstance(checks, str) or set(checks) <= CHECKS.keys(), text
    assert all(check.sentences for check in CHECKS.values())


def test_a_departure_follows_from_checks_and_never_from_itself() -> None:
    known = {*AFTER, *(cause for causes in AFTER.values() for cause in causes)}
    assert known <= CHECKS.keys()
    assert [*TopologicalSorter(AFTER).static_order()]


def test_a_departure_that_another_explains_is_not_told() -> None:
    def change(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if request.url.path == "/v1/health":
            return changed(response, version=2, status="up")
        return response

    report = broken(change)
    assert found(report).keys() == {"meta.health"}
    (follows,) = (result for result in report.results if result.check == "meta.version")
    assert follows.verdict == "not checked"
    assert follows.detail == "version of /health is 2, not 1; this can follow from meta.health"


def test_a_narrow_key_may_use_the_scopes_that_it_has() -> None:
    core = emulator()
    account = next(iter(core.store.accounts.values()))
    has = ["servers:manage", "webhooks:manage"]
    narrow = core.store.new_key(account, "live", name="manages", scopes=has).token
    report = certified(core, narrow_key=narrow)
    assert (found(report), report.unfinished) == ({}, "")
    assert servers_alive(core) == [*core.store.ssh_keys] == []


def test_a_key_with_raised_limits_is_no_departure() -> None:
    core = emulator()
    for key in core.store.keys.values():
        key.rate_per_minute, key.rate_expensive_per_minute = 1000, 500
    assert found(certified(core)) == {}


@pytest.mark.parametrize(
    ("words", "given", "service"),
    [
        (
            "no API answers at http://emulator/v2: 404 not_found for the test key",
            {"base_url": "http://emulator/v2"},
            {},
        ),
        (
            "GET /me answered 401 invalid_token to the live key. Next: give a key of http",
            {"live_key": "vk_live_0123456789abcdef"},
            {},
        ),
        ("403 sandbox_disabled for the test key", {}, {"sandbox_enabled": False}),
        ("503 api_disabled for the test key", {}, {"api_enabled": False}),
    ],
)
def test_what_opens_nothing_is_no_departure(
    words: str, given: dict[str, object], service: dict[str, bool]
) -> None:
    core = emulator()
    edit_service(core, ServiceBody.model_validate(service))
    report = certified(core, **given)
    assert (report.exit_code, report.results, report.requests) == (1, [], 2 if "test" in words else 4)
    assert words in report.unfinished


@pytest.mark.parametrize(("who", "scope"), [("test", "servers:manage"), ("live", "webhooks:manage")])
def test_what_key_and_account_lack_is_no_departure(who: str, scope: str) -> None:
    core = emulator()
    (account,) = core.store.accounts.values()
    reads = [scope for scope in SCOPES if scope.endswith(":read")]
    key = core.store.new_key(account, "test" if who == "test" else "live", name="reads", scopes=reads).token
    account.balance = Decimal(0)
    report = certified(core, **{f"{who}_key": key})
    assert (found(report), report.unfinished) == ({}, "")
    assert f"the {who} key lacks {scope}" in {one.detail for one in report.results}
    report = certified(core)
    assert found(report) == {}
    assert "the balance of the account does not cover it" in {one.detail for one in report.results}


def test_the_page_has_every_sentence() -> None:
    assert PAGE.read_text("utf-8") == page(), "Next: python -m tests.certify.page"


@pytest.mark.parametrize("dialect", ["spec", "live"])
def test_nothing_departs_and_nothing_stays(dialect: str) -> None:
    core = emulator(dialect)
    report = certified(core)
    assert (found(report), report.unfinished, report.exit_code) == ({}, "", 0)
    assert report.counts["ok"] >= len(CHECKS) - 4
    assert servers_alive(core) == []
    assert not core.store.subscriptions
    assert not core.store.ssh_keys
    assert purchases(core) == {
        "vds_purchase": 1,
        "vds_renewal": 1,
        "ip_purchase": 1,
        "domain_registration": 1,
        "domain_renewal": 1,
    }
    assert report.left_behind == ["unpaid top-up invoice 40001", "domain certify-example.com"]
    assert report.profile["dialect"] == dialect


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "variants"), [*EACH_VARIANT, *RANDOM])
def test_no_false_alarm_and_the_same_profile_again(dialect: str, variants: dict[str, object]) -> None:
    first = certified(emulator(dialect, variants))
    assert (found(first), first.unfinished) == ({}, "")
    profile = json.loads(json.dumps(first.profile))
    core = emulator()
    edit_service(core, ServiceBody.model_validate(profile))
    assert certified(core).profile == profile
    seen = profile["readings"]
    assert seen == {name: variants.get(name, VARIANTS[name][0]) for name in seen}


def test_with_a_test_key_nothing_changes() -> None:
    core = emulator()
    report = certified(core, live_key=None, narrow_key=None)
    assert (found(report), report.exit_code, report.left_behind) == ({}, 0, [])
    assert not core.store.movements
    assert not core.store.invoices
    assert servers_alive(core) == []


def test_nothing_is_bought_that_costs_more_than_allowed() -> None:
    core = emulator()
    report = certified(core, spend=Decimal("2.00"))
    assert found(report) == {}
    assert not core.store.movements


@pytest.mark.parametrize(
    "requests", [120, *(pytest.param(most, marks=pytest.mark.slow) for most in (300, 420)), 470]
)
def test_a_run_that_is_out_of_requests_cleans_up(requests: int) -> None:
    core = emulator()
    report = certified(core, max_requests=requests)
    assert report.exit_code == 1
    assert "--max-requests" in report.unfinished
    assert servers_alive(core) == []
    assert not core.store.subscriptions


class Killed(BaseException):
    pass


class Kills(httpx.BaseTransport):
    """Ends the program at the writing request number ``at`` of the live key: the service did it, the answer
    is lost.
    """

    def __init__(self, core: Core, at: int) -> None:
        self._inner, self._left = Transport(core), at
        self._live = f"Bearer {core.ready_line['live_key']}"

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self._left == 0:  # nothing is cleaned up
            raise Killed
        response = self._inner.handle_request(request)
        if request.method != "GET" and request.headers.get("authorization") == self._live:
            self._left -= 1
        if self._left == 0:
            raise Killed
        return response


def killed_and_resumed(core: Core, at: int, state: Path) -> Conformance | None:
    given = settings(core, state_file=state, transport=Kills(core, at), domain=None)
    try:
        run(given)
    except Killed:
        given.transport = Transport(core)
        return run(given)
    return None


@pytest.mark.parametrize("at", [26, pytest.param(range(1, 60), marks=pytest.mark.slow)])
def test_a_killed_run_continues_and_buys_nothing_twice(at: int | range, tmp_path: Path) -> None:
    kills = 0
    for number in at if isinstance(at, range) else [at]:
        core = emulator(seed=number)
        report = killed_and_resumed(core, number, tmp_path / f"{number}.state")
        if report is None:
            break
        kills += 1
        assert (found(report), report.unfinished) == ({}, ""), number
        why = {one.check: one.detail for one in report.results}["webhooks.retry"]
        assert not why or "the run was resumed" in why, number
        assert purchases(core) == {"vds_purchase": 1, "vds_renewal": 1, "ip_purchase": 1}, number
        assert servers_alive(core) == [*core.store.ssh_keys] == [], number
    assert kills


def test_a_line_that_a_kill_cut_short_is_no_part_of_the_next(tmp_path: Path) -> None:
    state = tmp_path / "certify.state"
    for number in range(3):
        kept = KeptAnswers(state, "https://api.example.com/v1")
        assert [kept.take(f"GET /{step}") is not None for step in range(number)] == [True] * number
        kept.add(HttpAnswer(f"GET /{number}", 200))
        kept.close()
        with state.open("a") as file:
            file.write('{"sent": "GET /cu')


def test_a_damaged_line_of_an_earlier_version_stops_the_run(tmp_path: Path) -> None:
    state = tmp_path / "certify.state"
    state.write_text(
        '{"id": "a", "base_url": "https://api.example.com/v1"}\n{"sent": "GET /cu{"sent": "GET /1"}\n'
    )
    with pytest.raises(Stopped, match=r"certify\.state is damaged\. Next: another --state"):
        KeptAnswers(state, "https://api.example.com/v1")


def broken(change: Callable[[httpx.Request, httpx.Response], httpx.Response]) -> Conformance:
    """The report on an emulator whose answers are changed on the way."""
    core = emulator()
    inner = Transport(core)

    class Changes(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            return change(request, inner.handle_request(request))

    return certified(core, transport=Changes())


def changed(response: httpx.Response, **fields: object) -> httpx.Response:
    return httpx.Response(response.status_code, headers=response.headers, json={**response.json(), **fields})


def test_departures_are_named_with_what_they_cost() -> None:
    def change(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if request.url.path == "/v1/balance" and response.status_code == 200:
            return changed(response, low_balance=True, balance=1000.5)
        return response

    report = broken(change)
    assert report.exit_code == 7
    assert {"account.balance", "money.format"} <= found(report).keys()
    text, junit = report.text(), as_junit(report)
    assert re.search("200 \\(request [0-9a-f-]+\\) .*1000.5", text)  # the deployment's log has it
    assert "departure account.balance: balance is 1000.5, not money" in text
    assert "costs users: amounts are rounded, or clients stop" in text
    written = ElementTree.fromstring(junit)  # noqa: S314  # written just now
    (case,) = written.iterfind(".//testcase[@name='balance']/failure")
    assert case.get("message") == "balance is 1000.5, not money"
    core = emulator()
    assert not any(core.ready_line[name] in text + junit for name in ("live_key", "test_key"))


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_a_deployment_writes_can_be_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str]
) -> None:
    written = "é \ud800 \x9b2J \x00"
    report = Conformance([Finding("meta.me", (), "nothing", "departure", f"name is {written}")])
    monkeypatch.setattr("pulumi_hosting.cli.certify.run", lambda given: report)
    monkeypatch.setenv("HOSTING_API_KEY", "vk_test_0123456789abcdef")
    junit = tmp_path / "junit.xml"
    arguments = ["certify", "--base-url", "http://127.0.0.1:1/v1", "--junit", str(junit), *options]
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == 7, answer.output
    shown = json.loads(answer.stdout)["results"][0]["detail"] if options else answer.stdout.splitlines()[0]
    assert "é ? " in shown
    assert bool(options) or shown == "departure meta.me: name is é ? ?2J ?"
    (failure,) = ElementTree.parse(junit).iterfind(".//failure")  # noqa: S314  # written just now
    assert failure.get("message") == "name is é  \x9b2J "


def test_a_report_is_shown_before_a_file_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pulumi_hosting.cli.certify.run", lambda given: Conformance())
    monkeypatch.setenv("HOSTING_API_KEY", "vk_test_0123456789abcdef")
    junit = tmp_path / "missing" / "junit.xml"
    arguments = ["certify", "--base-url", "http://127.0.0.1:1/v1", "--junit", str(junit)]
    answer = CliRunner().invoke(main, arguments)
    assert (answer.exit_code, answer.stdout) == (
        2,
        "0 ok, 0 departures, 0 not checked; 0 requests, 0.00 charged\n",
    )
    assert f"{junit}: No such file or directory. Next: name another file" in answer.stderr


def test_an_option_that_has_no_effect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTING_API_KEY", "vk_test_0123456789abcdef")
    answer = CliRunner().invoke(main, ["certify", "--base-url", "http://127.0.0.1:1/v1", "--spend", "20"])
    assert answer.exit_code == 2
    assert "--spend without a live key has no effect. Next: add --live-key-file FILE" in answer.output


def test_the_receiver_takes_a_delivery() -> None:
    with HttpReceiver("https://hooks.example.org/", "127.0.0.1", 0) as receiver:
        receiver.answer = 503
        url = f"http://127.0.0.1:{receiver.port}/"
        answer = httpx.post(url, content=b"{}", headers={"X-Webhook-Id": "evt_1"}, trust_env=False)
        assert answer.status_code == 503
        assert [(one.headers["x-webhook-id"], one.body) for one in receiver.deliveries()] == [
            ("evt_1", b"{}")
        ]


def test_a_file_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOSTING_API_KEY", "vk_test_0123456789abcdef")
    missing = tmp_path / "missing" / "certify.state"
    arguments = ["certify", "--base-url", "http://127.0.0.1:1/v1", "--state", str(missing)]
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == 2, answer.output
    assert f"{missing}: No such file or directory. Next: name another file" in answer.output
