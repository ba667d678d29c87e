"""What a run costs in requests: each scenario is run, and the page docs/requests.md says what was counted."""

import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.provider.conversion import snake
from pulumi_hosting.session.clock import RunClock
from tests.ansible.in_process import Play
from tests.provider.processes import Entry, Process, provider_process
from tests.support.account import Account
from tests.support.programs import PUBLIC_KEY

PAGE = Path(__file__).parents[1] / "docs" / "requests.md"
ORDER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}
UNLIMITED = 10**6


@dataclass
class Lab:
    """An account with ``servers`` and ``domains``, and the requests since they were made. ``settings``: of
    the emulator."""

    servers: int = 0
    domains: int = 0
    limited: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    account: Account = field(init=False)

    def __post_init__(self) -> None:
        self.account = Account(**self.settings)
        self.account.control("PATCH", "/account", {"balance": "100000000"})
        self.key = self.account.new_key(
            scopes="full", rate_per_minute=UNLIMITED, rate_expensive_per_minute=UNLIMITED
        )
        with Client(self.key, self.account.base_url, transport=self.account.transport()) as client:
            for number in range(self.servers):
                client.servers.create(name=f"old-{number}", months=1, **ORDER)
            for number in range(self.domains):
                client.domains.register(name=f"old-{number}.com")
        if self.limited:
            self.key = self.account.new_key(scopes="full")
        self.begin()

    def begin(self) -> None:
        """Count from here."""
        newest = self.account.control("GET", "/requests?last=1")
        self.before = newest[0]["seq"] if newest else 0

    def rows(self) -> list[dict[str, Any]]:
        return list(self.account.control("GET", f"/requests?since={self.before}"))

    @property
    def requests(self) -> Counter[str]:
        """By method and path, with the ids left out."""
        return Counter(f"{row['method']} {re.sub(r'[0-9]+', 'N', row['path'])}" for row in self.rows())

    @property
    def expensive(self) -> Counter[str]:
        """Those among them that count in the expensive bucket."""
        return Counter(
            f"{row['method']} {re.sub(r'[0-9]+', 'N', row['path'])}"
            for row in self.rows()
            if row["bucket"] == "expensive"
        )


def play(lab: Lab, *tasks: dict[str, Any], module: str = "server", **options: Any) -> None:
    """One run of Ansible: each task as its worker process would run it."""
    run = Play(lab.account, key=lab.key, **options)
    for task in tasks:
        run(module, **task)
    assert not [result["msg"] for result in run.results if result["failed"]]


def new(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"name": f"new-{number}", **ORDER, **more} for number in range(count)]


def unchanged(count: int) -> list[dict[str, Any]]:
    return [{"name": f"old-{number}", **ORDER} for number in range(count)]


def by_id(lab: Lab, count: int, **options: Any) -> None:
    """Tasks that name the oldest servers by their ids, and change nothing."""
    rows = lab.account.control("GET", "/objects")["servers"][:count]
    play(lab, *[{"id": str(row["id"]), "notes": ""} for row in rows], **options)


def domains_by_id(lab: Lab) -> None:
    rows = lab.account.control("GET", "/objects")["domains"]
    play(lab, *[{"id": str(row["id"])} for row in rows], module="domain")


def domains_by_name(lab: Lab) -> None:
    rows = lab.account.control("GET", "/objects")["domains"]
    play(lab, *[{"name": row["name"]} for row in rows], module="domain")


def gone(lab: Lab, count: int) -> None:
    """Tasks with ``state: absent`` for servers that are not there."""
    play(lab, *[{"name": f"gone-{number}", "state": "absent"} for number in range(count)])


def webhooks(lab: Lab, count: int) -> None:
    """Tasks that declare subscriptions which are there."""
    hooks: list[dict[str, Any]] = [
        {"url": f"https://hooks.example.com/{number}", "events": ["*"]} for number in range(count)
    ]
    with Client(lab.key, lab.account.base_url, transport=lab.account.transport()) as client:
        for hook in hooks:
            client.webhooks.create(**hook)
    lab.begin()
    play(lab, *hooks, module="webhook_subscription")


def new_domains(lab: Lab, count: int) -> None:
    """What check mode asks for, which compares each price with the balance."""
    names = [{"name": f"new-{number}.com"} for number in range(count)]
    play(lab, *names, module="domain", check_mode=True)


def process(lab: Lab) -> Process:
    """A provider process, as one command of Pulumi starts it."""
    return provider_process(lab.account, apiKey=lab.key)


def declared(lab: Lab, servers: int, domains: int) -> list[tuple[str, Entry]]:
    """The state of a stack that has the oldest of the account's objects: they are on the last pages."""
    with Client(lab.key, lab.account.base_url, transport=lab.account.transport()) as client:
        oldest = list(client.servers.list())[::-1][:servers]
        names = list(client.domains.list())[::-1][:domains]
    lab.begin()
    entries = []
    for kind, found in (("server", oldest), ("domain", names)):
        for item in found:
            given = (
                {"tariffId": 1.0, "os": "debian-12", "name": item.name}
                if kind == "server"
                else {"name": item.name}
            )
            inputs = {**given, "__identity": f"pulumi:t/dev/{kind}/{item.name}"}
            recorded = {"id": str(item.id), "mode": "live", "__managed": sorted(map(snake, given))}
            entries.append((kind, Entry(str(item.id), {**inputs, **recorded}, inputs)))
    return entries


def refresh(lab: Lab, servers: int, domains: int, parallel: int) -> None:
    """``pulumi refresh``: the engine reads and compares one object after the other, some at a time."""
    entries, run = declared(lab, servers, domains), process(lab)
    with ThreadPoolExecutor(parallel) as pool:
        found = list(pool.map(lambda entry: run.refresh(*entry), entries))
    assert [entry.id for entry in found] == [entry.id for _kind, entry in entries]


def look(lab: Lab, servers: int, domains: int) -> Process:
    """``pulumi preview`` of these servers and domains, of which nothing differs."""
    entries, run = declared(lab, servers, domains), process(lab)
    for kind, entry in entries:
        assert not run.of(kind).diff(entry.id, entry.outputs, entry.inputs).changes
    return run


def ending(lab: Lab, days: int, run: Callable[[Lab], object]) -> None:
    """A run after so many days, when the paid time is about to end."""
    lab.account.advance(days * 86400)
    lab.begin()
    run(lab)


def kept_paid(lab: Lab, count: int) -> None:
    """Tasks whose servers are paid for longer than they are to be."""
    play(lab, *[{**task, "keep_paid": "7d"} for task in unchanged(count)])


def up(lab: Lab, count: int) -> list[Entry]:
    """``pulumi up`` of a stack of new servers."""
    run, given = process(lab), {"tariffId": 1.0, "os": "debian-12"}
    made = [run.create("server", f"new-{n}", {**given, "name": f"new-{n}"}) for n in range(count)]
    assert len(lab.account.living) == lab.servers + count
    return made


def up_with_addresses(lab: Lab, servers: int, each: int) -> list[Entry]:
    """``pulumi up`` of new servers, and of new addresses for each, one after the other."""
    run, given = process(lab), {"tariffId": 1.0, "os": "debian-12"}
    ids = [run.create("server", f"new-{n}", {**given, "name": f"new-{n}"}).id for n in range(servers)]
    made = [run.create("server_ip", f"{id}-{n}", {"serverId": id}) for id in ids for n in range(each)]
    bought = [row for row in lab.account.control("GET", "/objects")["addresses"] if row["bought"]]
    assert sorted(entry.id for entry in made) == sorted(f"{row['server_id']}/{row['id']}" for row in bought)
    assert len(made) == servers * each
    return made


def refresh_addresses(lab: Lab, servers: int, each: int) -> None:
    """``pulumi refresh`` of the same addresses."""
    entries = up_with_addresses(lab, servers, each)
    lab.begin()
    run = process(lab)
    assert [run.refresh("server_ip", entry).id for entry in entries] == [entry.id for entry in entries]


def up_with_records(lab: Lab, servers: int) -> None:
    """``pulumi up`` of a PTR record for each of the servers."""
    entries, run = declared(lab, servers, 0), process(lab)
    for number, (_kind, entry) in enumerate(entries):
        run.create("ptr", f"ptr-{number}", {"serverId": entry.id, "domain": f"web-{number}.example.com"})
    assert lab.requests["PUT /servers/N/ips/N/ptr"] == servers


def up_with_domains(lab: Lab, count: int) -> None:
    """``pulumi up`` of new domains."""
    run = process(lab)
    for number in range(count):
        run.create("domain", f"new-{number}", {"name": f"new-{number}.com"})
    assert len(lab.account.control("GET", "/objects")["domains"]) == lab.domains + count


def up_again(lab: Lab, count: int) -> None:
    """The same after ``pulumi destroy`` on this machine."""
    entries, run = up(lab, count), process(lab)
    for entry in entries:
        run.delete("server", entry)
    lab.begin()
    up(lab, count)


def replace(lab: Lab) -> None:
    """``pulumi up`` that replaces a server: the new one is ordered, then the old one deleted."""
    ((kind, entry),), run = declared(lab, 1, 0), process(lab)
    given = {"tariffId": 2.0, "os": "debian-12", "name": entry.inputs["name"]}
    checked = run.check(kind, given["name"], given, entry.inputs)
    assert run.of(kind).diff(entry.id, entry.outputs, checked).replaces
    new = run.create(kind, given["name"], given)
    run.delete(kind, entry)
    assert new.id in lab.account.living_ids
    assert len(lab.account.living) == lab.servers


@dataclass(frozen=True)
class Scenario:
    """``run`` does it on an account with ``servers`` and ``domains``. ``at_most``: the bar. ``only_reads``:
    it changes nothing, so that others can have the account too. ``slow``: only in ``make test-all``."""

    text: str
    run: Callable[[Lab], object]
    at_most: int
    servers: int = 0
    domains: int = 0
    only_reads: bool = False
    slow: bool = False


def refreshed(n: int, m: int, servers: int, domains: int, *, slow: bool = False) -> Scenario:
    pages = min(n, -(-servers // 100)) + min(m, -(-domains // 100))
    what = f"{n:,} server{'s' if n > 1 else ''}" + (f" and {m} domains" if m else "")
    beside = f"{servers:,} servers" + (f" and {domains} domains" if domains else "")
    return Scenario(
        f"`pulumi refresh` of {what}, on an account with {beside}",
        partial(refresh, servers=n, domains=m, parallel=1),
        pages + 4,
        servers,
        domains,
        only_reads=True,
        slow=slow,
    )


SCENARIOS = [
    Scenario("100 new servers in one loop, beside 37", lambda lab: play(lab, *new(100)), 210, 37, slow=True),
    Scenario("10 new servers, beside 1,000", lambda lab: play(lab, *new(10)), 40, 1000, slow=True),
    Scenario("100 tasks that change nothing", lambda lab: play(lab, *unchanged(100)), 8, 137),
    Scenario(
        "10 new servers with `notes` and `auto_renew`",
        lambda lab: play(lab, *new(10, notes="web", auto_renew=False)),
        30,
        37,
    ),
    Scenario("10 new servers with `max_charge`", lambda lab: play(lab, *new(10, max_charge="100")), 30, 37),
    Scenario("`--check` of 10 new servers", lambda lab: play(lab, *new(10), check_mode=True), 20, 37),
    Scenario("100 tasks by `id` that change nothing", lambda lab: by_id(lab, 100), 8, 137),
    Scenario(
        "`--check` of 100 tasks by `id` that change nothing",
        lambda lab: by_id(lab, 100, check_mode=True),
        8,
        137,
        slow=True,
    ),
    Scenario("2 tasks by `id`, beside 1,000", lambda lab: by_id(lab, 2), 3, 1000, only_reads=True),
    Scenario("20 domains by `id` that are unchanged", domains_by_id, 6, 0, 20),
    Scenario("20 domains that are unchanged", domains_by_name, 2, 0, 20),
    Scenario("20 webhook subscriptions that are unchanged", lambda lab: webhooks(lab, 20), 2),
    Scenario("`state: absent` of 1 server that is gone, beside 37", lambda lab: gone(lab, 1), 2, 37),
    Scenario("`state: absent` of 10 servers that are gone, beside 37", lambda lab: gone(lab, 10), 20, 37),
    Scenario("`--check` of 10 new domains", lambda lab: new_domains(lab, 10), 15),
    refreshed(1, 0, 1000, 0),
    refreshed(3, 0, 1000, 0),
    refreshed(10, 0, 10, 0),
    refreshed(100, 20, 100, 20),
    refreshed(1000, 200, 1000, 200, slow=True),
    Scenario("`pulumi up` of 10 new servers, beside 37", partial(up, count=10), 26, 37),
    Scenario(
        "`pulumi up` of 300 servers that were destroyed before",
        lambda lab: up_again(lab, 300),
        660,
        slow=True,
    ),
    Scenario("`pulumi up` that replaces 1 server, beside 37", replace, 12, 37),
    Scenario(
        "`pulumi up` of 4 new servers with 2 addresses each",
        partial(up_with_addresses, servers=4, each=2),
        105,
    ),
    Scenario(
        "`pulumi refresh` of 8 addresses of 4 servers", partial(refresh_addresses, servers=4, each=2), 8
    ),
    Scenario("`pulumi up` of 10 PTR records on 10 servers", partial(up_with_records, servers=10), 40, 10),
    Scenario("`pulumi up` of 10 new domains", partial(up_with_domains, count=10), 55),
    Scenario("`pulumi preview` of 10 servers", partial(look, servers=10, domains=0), 2, 10),
    Scenario(
        "`pulumi preview` of 10 servers in the last 5 days of their paid time",
        lambda lab: ending(lab, 25, partial(look, servers=10, domains=0)),
        2 + 4,
        10,
    ),
    Scenario(
        "`pulumi preview` of 1 domain of 250 in the last 25 days of their paid time",
        lambda lab: ending(lab, 340, partial(look, servers=0, domains=1)),
        3 + 4 + 2,
        0,
        250,
    ),
    Scenario(
        "20 servers that are unchanged, in the last 5 days of their paid time",
        lambda lab: ending(lab, 25, lambda lab: play(lab, *unchanged(20))),
        2 + 4,
        20,
    ),
    Scenario("20 servers that are unchanged, with `keep_paid`", lambda lab: kept_paid(lab, 20), 2, 20),
]


@cache
def shared(servers: int, domains: int) -> Lab:
    """A lab for runs that change nothing."""
    return Lab(servers, domains)


@pytest.mark.parametrize("parallel", [pytest.param(4, marks=pytest.mark.slow), 16])
def test_a_refresh_in_parallel_costs_no_more(parallel: int) -> None:
    """How many are read at once differs: 4 with dynamic resources, up to 16 with the plugin."""
    lab = shared(700, 120)
    refresh(lab, 700, 120, parallel)
    assert lab.requests.total() <= 7 + 2 + 4, lab.requests
    assert lab.requests["GET /me"] == 1


def test_a_stack_that_holds_nothing_prepaid_asks_for_no_paid_time() -> None:
    lab = Lab(2, 2)
    key = process(lab).create("ssh_key", "me", {"name": "me", "publicKey": PUBLIC_KEY})
    ending(lab, 340, lambda lab: process(lab).refresh("ssh_key", key))
    assert lab.requests == {"GET /me": 1, "GET /ssh-keys": 1}


def test_an_object_that_is_gone_costs_one_more() -> None:
    lab = Lab(250, 2)
    entries, run = declared(lab, 250, 2), process(lab)
    gone = [entries[0][1].id, entries[249][1].id]
    for id in gone:
        lab.account.control("DELETE", f"/servers/{id}")
    found = [run.of(kind).read(entry.id, entry.outputs, entry.inputs) for kind, entry in entries]
    assert [entry.id for (_, entry), seen in zip(entries, found, strict=True) if seen is None] == gone
    assert lab.requests.total() <= 3 + 1 + 4 + len(gone), lab.requests


def assert_on_page(*lines: str) -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line not in page] == []


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(one, marks=[pytest.mark.slow] * one.slow, id=one.text) for one in SCENARIOS],
)
def test_a_run_costs_no_more_requests_and_the_page_says_how_many(scenario: Scenario) -> None:
    lab = (shared if scenario.only_reads else Lab)(scenario.servers, scenario.domains)
    lab.begin()
    scenario.run(lab)
    requests = lab.requests
    assert requests.total() <= scenario.at_most, requests
    assert_on_page(
        "| Run | Requests | At most |",
        "|---|---|---|",
        f"| {scenario.text} | {requests.total()} | {scenario.at_most} |",
    )


ADDRESSES = [
    # text, servers, addresses of each, seconds until an address is assigned, at most
    ("4 new servers with 2 addresses each", 4, 2, 0, 25),
    ("the same, and each address is assigned after 45 seconds", 4, 2, 45, 25),
    ("4 new servers with 1 address each", 4, 1, 0, 17),
    ("1 new server with 3 addresses", 1, 3, 0, 9),
]
"""``pulumi up`` where the list of a server's addresses, and its quote, are expensive."""


@pytest.mark.parametrize(
    ("text", "servers", "each", "delay", "at_most"), ADDRESSES, ids=[row[0] for row in ADDRESSES]
)
def test_addresses_cost_one_quote_for_each_server_and_one_list_for_each_purchase(
    text: str, servers: int, each: int, delay: int, at_most: int
) -> None:
    lab = Lab(settings={"dialect": "live", "ip_delay": float(delay)})
    up_with_addresses(lab, servers, each)
    assert lab.expensive == {
        "GET /catalog/quote": 1,
        "POST /servers": servers,
        "GET /servers/N/ips/quote": servers,
        "POST /servers/N/ips": servers * each,
        "GET /servers/N/ips": servers * each,
    }
    total = lab.expensive.total()
    assert total <= at_most
    assert_on_page(f"| {text} | {total} | {at_most} |")


@pytest.mark.parametrize(
    "late", [{"notes": "web"}, {"auto_renew": False}, {"notes": "web", "auto_renew": False}]
)
def test_the_tag_of_a_new_server_and_late_settings_cost_one_patch(late: dict[str, Any]) -> None:
    costs = []
    for more in ({}, late):
        lab = Lab(37)
        play(lab, *new(5, **more))
        costs.append(lab.requests)
    assert costs[0] == costs[1]
    assert costs[0]["PATCH /servers/N"] == 5


def test_a_quote_is_asked_once_per_distinct_order_and_run() -> None:
    lab = Lab()
    play(
        lab,
        *new(4, max_charge="1000"),
        *[{**task, "name": f"long-{task['name']}", "months": 3} for task in new(4)],
    )
    play(lab, *[{**task, "name": f"b-{task['name']}"} for task in new(2, max_charge="1000")])
    assert lab.requests["GET /catalog/quote"] == 2
    assert lab.requests["GET /me"] == 2  # once per run and key


def test_windows_of_the_rate_limit_cost_ten_requests_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """An order may depend on what is at most 30 seconds old, and a window of 20 orders takes 60 seconds."""
    lab = Lab(37, limited=True)
    monkeypatch.setattr(RunClock, "monotonic", lambda self: lab.account.clock.now())
    play(lab, *new(60))
    assert len(lab.account.living) == 37 + 60
    assert (
        lab.requests["POST /servers"]
        - 60
        + sum(count for line, count in lab.requests.items() if line.startswith("GET"))
        <= 10 + 2 * 10
    )
