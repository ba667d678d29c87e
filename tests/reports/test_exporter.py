"""``pulumi-hosting exporter``: what Prometheus reads is what the account holds, and an account that cannot be
read keeps its last values."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.words import PYTHON
from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.planning.paid_time import PaidTime
from pulumi_hosting.reports.account_objects import reading
from pulumi_hosting.reports.metrics import PaidTimeCollector
from pulumi_hosting.session.prepaid import Prepaid
from tests.reports.conftest import Command, Owner
from tests.reports.test_renewals import filled
from tests.support.waiting import interruptible, wait_until

pytestmark = pytest.mark.emulator(clock="manual")
ROOT = Path(__file__).parents[2]
RULES = ROOT / "examples" / "prometheus"
DAY = 86400
INTERVAL = 300.0
OBJECT = {"kind", "id", "name"}
LABELS = {
    "hosting_auto_renew": OBJECT,
    "hosting_balance": {"currency"},
    "hosting_covered": OBJECT,
    "hosting_ended": {*OBJECT, "status"},
    "hosting_last_good_read_age_seconds": set(),
    "hosting_last_read_failed": set(),
    "hosting_not_read": {"part"},
    "hosting_paid_until_timestamp_seconds": OBJECT,
    "hosting_runway_seconds": set(),
}
"""Every metric, and its labels."""
Scraped = dict[str, dict[tuple[str, ...], float]]
"""Name → values of the labels → value."""


def scraped(exporter: CollectorRegistry | str) -> Scraped:
    """What it says in this process, or at its URL."""
    found: Scraped = {}
    for family in text_string_to_metric_families(text_of(exporter)):
        assert family.documentation.endswith("."), family.name
        for sample in family.samples:
            assert sample.labels.keys() == LABELS[sample.name], sample.name
            order = ("kind", "id", "name", "status", "currency", "part")
            values = tuple(sample.labels[name] for name in order if name in sample.labels)
            assert values not in found.setdefault(sample.name, {}), "two values for the same labels"
            found[sample.name][values] = sample.value
    return found


def text_of(exporter: CollectorRegistry | str) -> str:
    if isinstance(exporter, CollectorRegistry):
        return generate_latest(exporter).decode()
    answer = httpx.get(exporter, timeout=60)
    assert answer.status_code == 200
    return answer.text


def registered(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


class Exporter:
    """An exporter of the account of ``key``, whose time only moves by ``pass_``."""

    def __init__(self, owner: Owner, key: str | None = None) -> None:
        self.owner, self.now, self.said = owner, 1000.0, list[str]()
        self.client = Client(
            key or owner.emulator.live_key, owner.emulator.base_url, sleep=lambda seconds: None
        )
        self.collector = PaidTimeCollector(
            lambda: paid_time_of(reading(self.client, self.said.append)),
            self.said.append,
            interval=INTERVAL,
            longest_wait=60.0,
            monotonic=lambda: self.now,
        )

    def pass_(self, seconds: float) -> None:
        """Time passes, for the service too."""
        self.now += seconds
        self.owner.advance(seconds)


@pytest.fixture
def exporter(owner: Owner) -> Exporter:
    return Exporter(owner)


def due_on_the_account(owner: Owner) -> dict[tuple[str, ...], float]:
    """Until when the emulator's own objects are paid."""
    servers = {("server", str(one["id"]), one["name"]): one["next_due_at"] for one in owner.living}
    domains = {("domain", str(one["id"]), one["name"]): one["expires_at"] for one in owner.objects("domains")}
    found = {**servers, **domains}
    assert None not in found.values()
    return {labels: _seconds(at) for labels, at in found.items()}


def _seconds(at: float | str) -> float:
    return datetime.fromisoformat(at).timestamp() if isinstance(at, str) else float(at)


def balance_of(owner: Owner) -> float:
    (account,) = (one for one in owner.objects("accounts"))
    return float(account["balance"])


def test_a_scrape_shows_what_the_account_holds(owner: Owner, exporter: Exporter) -> None:
    web, old = filled(owner)
    owner.client.domains.register(name="shop.com", privacy=True)
    shown = registered(exporter.collector)
    found = scraped(shown)
    assert found["hosting_last_read_failed"] == {(): 0}
    assert found["hosting_last_good_read_age_seconds"] == {(): 0}
    assert "hosting_runway_seconds" not in found
    assert "hosting_ended" not in found
    (domain,) = (key for key in found["hosting_auto_renew"] if key[0] == "domain")
    first, second = ("server", web, "web"), ("server", old, "old")
    assert found["hosting_auto_renew"] == {first: 1, second: 0, domain: 0}
    assert found["hosting_covered"] == {first: 1, second: 0, domain: 0}
    assert found["hosting_paid_until_timestamp_seconds"] == due_on_the_account(owner)
    assert found["hosting_balance"] == {("EUR",): balance_of(owner)}

    owner.control("PATCH", "/account", {"balance": "1.00"})
    exporter.pass_(INTERVAL)
    found = scraped(shown)
    due = due_on_the_account(owner)[first]
    now = _seconds(owner.control("POST", "/clock", {"advance": 0})["now"])
    assert found["hosting_runway_seconds"][()] == pytest.approx(due - now, abs=2)
    assert found["hosting_covered"][first] == 0

    exporter.pass_(35 * DAY)
    found = scraped(shown)
    status = {str(one["id"]): one["status"] for one in owner.living}
    assert found["hosting_ended"] == {(*key, status[key[1]]): 1 for key in (first, second)}
    assert {*status.values()} == {"suspended"}
    assert found["hosting_covered"].keys() & {first, second} == set()

    exporter.pass_(365 * DAY)
    found = scraped(shown)
    (site,) = owner.objects("domains")
    assert found["hosting_ended"] == {(*domain, site["status"]): 1}
    assert (site["status"], owner.living) == ("expired", [])
    assert exporter.said == []


def test_the_account_is_read_once_in_an_interval_whoever_asks(owner: Owner, exporter: Exporter) -> None:
    filled(owner)
    before = len(owner.requested("GET"))
    shown = registered(exporter.collector)
    for _ in range(3):
        scraped(shown)
        exporter.pass_(INTERVAL / 3 - 1)
    read = owner.requested("GET")[before:]
    assert read == ["/servers", "/domains", "/invoices", "/balance"]
    assert scraped(shown)["hosting_last_good_read_age_seconds"] == {(): INTERVAL - 3}
    exporter.pass_(3)
    assert scraped(shown)["hosting_last_good_read_age_seconds"] == {(): 0}
    assert owner.requested("GET")[before:] == 2 * read


def test_an_account_that_cannot_be_read_keeps_its_last_values(owner: Owner, exporter: Exporter) -> None:
    web, _ = filled(owner)
    owner.control("PATCH", "/account", {"balance": "1.00"})
    shown = registered(exporter.collector)
    good = scraped(shown)
    for path, problem in (("/servers", {"status": 500}), (".*", {"drop": "before"})):
        owner.control("POST", "/faults", {"path": path, "times": 1000, "action": problem})
        owner.control("PATCH", "/account", {"balance": "990.00"})
        exporter.pass_(INTERVAL)
        found = scraped(shown)
        assert found.pop("hosting_last_read_failed") == {(): 1}
        age = found.pop("hosting_last_good_read_age_seconds")[()]
        runway = good["hosting_runway_seconds"][()]
        assert found.pop("hosting_runway_seconds")[()] == runway - age
        assert found == {name: values for name, values in good.items() if name in found}
        assert found["hosting_balance"] == {("EUR",): 1.0}
    assert age == 2 * INTERVAL
    owner.control("DELETE", "/faults")
    assert scraped(shown)["hosting_last_read_failed"] == {(): 1}, "it is not read again in the interval"
    exporter.pass_(INTERVAL)
    found = scraped(shown)
    assert found["hosting_last_read_failed"] == {(): 0}
    assert found["hosting_balance"] == {("EUR",): balance_of(owner)} == {("EUR",): 990.0}
    assert found["hosting_covered"]["server", web, "web"] == 1
    assert [line.partition(":")[0] for line in exporter.said] == ["the account was not read"] * 2


def test_before_the_first_good_read_there_is_no_value(owner: Owner, exporter: Exporter) -> None:
    owner.control("POST", "/faults", {"path": ".*", "times": 1000, "action": {"status": 503}})
    shown = registered(exporter.collector)
    assert scraped(shown) == {"hosting_last_read_failed": {(): 1}}


def test_what_the_key_may_not_read_is_absent_and_named(owner: Owner) -> None:
    web, old = filled(owner)
    key = owner.control("POST", "/keys", {"mode": "live", "scopes": ["servers:read"]})["key"]
    exporter = Exporter(owner, key)
    shown = registered(exporter.collector)
    found = scraped(shown)
    text = text_of(shown)
    assert found["hosting_last_read_failed"] == {(): 0}
    assert found["hosting_not_read"] == {("domains",): 1, ("invoices",): 1, ("balance",): 1}
    assert "hosting_balance" not in found
    assert found["hosting_covered"] == {("server", old, "old"): 0}, "of the other one it is not known"
    assert found["hosting_paid_until_timestamp_seconds"] == due_on_the_account(owner)
    assert ("server", web, "web") in found["hosting_auto_renew"]
    assert key not in text


def test_an_object_that_cannot_be_read_is_named_and_the_others_are_there(
    owner: Owner, exporter: Exporter
) -> None:
    owner.client.domains.register(name="shop.com", privacy=True)
    damaged = {"path": "^/servers$", "action": {"patch": {"data": [{"id": "x"}]}}}
    owner.control("POST", "/faults", damaged)
    shown = registered(exporter.collector)
    found = scraped(shown)
    assert (found["hosting_last_read_failed"], found["hosting_not_read"]) == ({(): 0}, {("servers",): 1})
    assert found["hosting_paid_until_timestamp_seconds"] == due_on_the_account(owner)


def test_a_read_that_takes_long_does_not_hold_a_scrape_up(owner: Owner) -> None:
    filled(owner)
    exporter, goes_on = Exporter(owner), threading.Event()

    def slow() -> PaidTime:
        assert goes_on.wait(60)
        return paid_time_of(reading(exporter.client, exporter.said.append))

    collector = PaidTimeCollector(
        slow, exporter.said.append, interval=INTERVAL, longest_wait=0.01, monotonic=lambda: exporter.now
    )
    shown = registered(collector)
    assert scraped(shown) == {}
    exporter.pass_(2 * INTERVAL)
    assert scraped(shown) == {}
    goes_on.set()
    wait_until(lambda: "hosting_balance" in scraped(shown))
    assert scraped(shown)["hosting_balance"] == {("EUR",): balance_of(owner)}


def test_a_fault_of_ours_is_a_failed_read_too(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda arguments: None)
    collector = PaidTimeCollector(lambda: 1 / 0, print, interval=INTERVAL)  # type: ignore[arg-type,return-value]  # it fails
    shown = registered(collector)
    assert scraped(shown) == {"hosting_last_read_failed": {(): 1}}


def test_labels_are_cleaned_and_hold_no_secret() -> None:
    now = datetime(2027, 1, 1, tzinfo=UTC)
    until, safe = now + timedelta(days=3), now + timedelta(days=9)
    name = 'vk_live_secret "x"\x1b[2J\nwhsec_secret'
    server = Prepaid("server", "1", name, until, None, 1, renews=True, protected_until=safe)
    invoice = Prepaid("invoice", "2", "late fee", until, Decimal(5), 1, renews=False)
    paid = PaidTime(PYTHON, now, (server, invoice), Decimal(10), "EUR")
    shown = registered(PaidTimeCollector(lambda: paid, print, interval=INTERVAL))
    found = scraped(shown)
    assert "secret" not in text_of(shown)
    first, second = ("server", "1", '********** "x" **********'), ("invoice", "2", "late fee")
    ends = {first: safe.timestamp(), second: until.timestamp()}
    assert found["hosting_paid_until_timestamp_seconds"] == ends
    assert found["hosting_auto_renew"] == {first: 1}
    assert found["hosting_covered"] == {second: 0}, "the price of the other one is not known"


# --- the command


@contextmanager
def listening(owner: Owner, *options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The command, and the URL that it says it listens on."""
    environ = {
        **os.environ,
        "HOSTING_API_KEY": owner.emulator.live_key,
        "HOSTING_BASE_URL": owner.emulator.base_url,
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", "pulumi_hosting.cli", "exporter", "--port", "0", *options]
    with interruptible():
        started = subprocess.Popen(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    with started as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("listening on http://127.0.0.1:"), line + process.stderr.read()
            yield process, line.removeprefix("listening on ").strip()
        finally:
            process.terminate()


def test_the_command_serves_until_it_is_ended(owner: Owner) -> None:
    web, old = filled(owner)
    with listening(owner) as (process, url):
        wait_until(lambda: "hosting_balance" in scraped(url), process)
        found, text = scraped(url), text_of(url)
        process.send_signal(signal.SIGTERM)  # as Ctrl-C
        printed, said = process.communicate(timeout=600)
    assert (process.returncode, printed, said) == (0, "", "stopped\n")
    assert owner.emulator.live_key not in text
    assert found["hosting_covered"] == {("server", web, "web"): 1, ("server", old, "old"): 0}
    assert found["hosting_paid_until_timestamp_seconds"] == due_on_the_account(owner)
    assert found["hosting_balance"] == {("EUR",): balance_of(owner)}
    assert owner.requested("GET").count("/balance") == 1


def test_a_port_that_is_taken_and_a_missing_key_end_it_with_one_line(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = command("exporter", "--port", port)
    (line,) = done.stderr.splitlines()
    assert (done.exit_code, line.partition(": ")[2]) == (
        1,
        f"cannot listen on 127.0.0.1, port {port}: another program uses it. Next: give another --port",
    )
    done = command("exporter", "--port", 0, key="")
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 1
    assert "HOSTING_API_KEY" in done.stderr


# --- what else names the metrics


def test_the_page_and_the_rules_name_the_metrics_that_there_are() -> None:
    page = (ROOT / "docs" / "exporter.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(hosting_\w+)` \|([^|]*)\|", page, re.MULTILINE))
    assert {name: {*re.findall(r"`(\w+)`", labels)} for name, labels in rows.items()} == LABELS
    for file in RULES.glob("*.yml"):
        assert {*re.findall(r"hosting_\w+", file.read_text(encoding="utf-8"))} <= {*LABELS}, file.name


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [("check", "rules", "hosting.rules.yml"), ("test", "rules", "hosting.rules.test.yml")]
)
@pytest.mark.program("promtool")  # Debian: prometheus
def test_promtool_accepts_the_alert_rules(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(["promtool", *arguments], cwd=RULES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout + done.stderr
