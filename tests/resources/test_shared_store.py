"""Purchases of machines that share a store: one after the other, never under a lease that has ended, never
without the store.
"""

from typing import Any

import fakeredis
import pytest
import redis

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import redis_store
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ConfigurationError, RateLimitTimeout
from pulumi_hosting.client.redis_store import LEASE_SECONDS, Redis
from pulumi_hosting.client.shared_store import LeaseLost, StoreRefused, StoreUnavailable
from pulumi_hosting.exactly_once.local_files import account_scope, lock
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.provider.stack_settings import StackSettings
from pulumi_hosting.resources import RESOURCES
from tests.resources.conftest import GOOD, AtTheOrder, ResourceHarness
from tests.resources.test_ssh_key import LINE

URL = "redis://team:hunter2@store.example.com:6400/0"


class Team:
    """Machines, a store, and how far its clock and theirs have moved."""

    def __init__(self, harness: ResourceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
        self.harness, self.moved = harness, 0.0
        self.server = fakeredis.FakeServer()
        self.values = fakeredis.FakeRedis(server=self.server)
        self.started_long_ago()
        elapsed = redis_store.elapsed
        monkeypatch.setattr(redis_store, "elapsed", lambda: elapsed() + self.moved)
        monkeypatch.setattr(redis_store, "_keep_beating", lambda found: None)
        monkeypatch.setattr(redis_store, "_stores", {})
        monkeypatch.setenv("HOSTING_STORE", URL)
        self.another_machine()

    def started_long_ago(self) -> None:
        self.values.hset("hosting:server", mapping={"run": "unknown", "since": "1"})

    def another_machine(self) -> None:
        self.harness.another_machine()
        redis_store._stores[Secret(URL)] = Redis(Secret(URL), fakeredis.FakeRedis(server=self.server))

    def make(self, kind: str, inputs: dict[str, Any], **context: Any) -> Any:
        checked = check(RESOURCES[kind], inputs)
        assert not checked.failures
        return apply.create(self.harness.context(**context), RESOURCES[kind], checked.inputs)


@pytest.fixture
def team(harness: ResourceHarness, monkeypatch: pytest.MonkeyPatch) -> Team:
    return Team(harness, monkeypatch)


KEY = {"name": "deploy", "public_key": LINE}
HOOK = {"url": "https://hooks.example.com/in", "events": ["server.created"]}


def test_another_machine_finds_what_the_first_one_made(team: Team, harness: ResourceHarness) -> None:
    first = harness.order()
    team.another_machine()
    assert harness.order(identity="pulumi:t/dev/server/web-1").id == first.id
    assert harness.charges == 1


def test_nothing_in_the_store_tells_a_key_a_person_or_a_stack(team: Team, harness: ResourceHarness) -> None:
    harness.order({**GOOD, "password": "Tr0ub4dor&3-horse"}, identity="pulumi:alice@shop/dev/server/web-1")
    kept = " ".join(str((key, team.values.dump(key))) for key in team.values.keys("*"))
    assert len(team.values.keys("hosting:*")) == len(team.values.keys("*")) > 0
    for secret in (harness.account.live_key, "alice", "shop/dev", "web-1", "Tr0ub4dor", "hunter2"):
        assert secret not in kept


def test_a_run_that_was_stopped_for_longer_than_its_lease_takes_its_turn_again(
    team: Team, harness: ResourceHarness
) -> None:
    """Another machine may have bought meanwhile: the account is looked at again before anything is sent."""

    def stopped() -> None:
        team.moved += LEASE_SECONDS + 1

    transport = AtTheOrder(line="GET /v1/servers", meanwhile=stopped)
    harness.order(transport=transport)
    assert transport.sent.count("POST /v1/servers") == 1
    assert transport.sent.index("POST /v1/servers") > transport.sent.index("GET /v1/servers", 2)
    assert any("held up for longer than its turn lasts" in line for line in harness.messages)
    assert harness.charges == len(harness.living) == 1


def test_under_a_lease_that_has_ended_no_write_is_sent(team: Team, harness: ResourceHarness) -> None:
    request = harness.context()
    with lock(account_scope(request.client), "it", 0):
        team.moved += LEASE_SECONDS
        with pytest.raises(LeaseLost, match="nothing was sent"):
            request.client.ssh_keys.create(**KEY)
        assert list(request.client.ssh_keys.list()) == []  # a read needs no lease
    request.client.ssh_keys.create(**KEY)
    assert harness.requested("POST") == ["/ssh-keys"]


@pytest.mark.parametrize(
    ("kind", "inputs"), [("server", GOOD), ("ssh_key", KEY), ("webhook_subscription", HOOK)]
)
def test_without_the_store_nothing_is_bought_and_nothing_made_that_has_no_key(
    kind: str, inputs: dict[str, Any], team: Team, harness: ResourceHarness
) -> None:
    team.server.connected = False
    with pytest.raises(StoreUnavailable, match=r"store\.example\.com:6400 cannot be used: .* Next: "):
        team.make(kind, inputs)
    assert harness.requested("POST") == []
    (waiting,) = [line for line in harness.messages if "waiting for the shared store" in line]
    assert "Next: " not in waiting
    assert "hunter2" not in " ".join(harness.messages)


def test_a_store_that_refuses_the_password_is_not_waited_for(
    team: Team, harness: ResourceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise redis.AuthenticationError("invalid username-password pair or user is disabled.")

    monkeypatch.setattr(fakeredis.FakeRedis, "execute_command", refused)
    with pytest.raises(StoreRefused, match=r"pair or user is disabled; nothing was sent\. Next: "):
        team.make("server", GOOD)
    assert harness.requested("POST") == []
    assert not any("waiting" in line for line in harness.messages)


def test_a_store_that_was_just_started_is_named_as_the_reason_to_wait(
    team: Team, harness: ResourceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.values.delete("hosting:server")

    def the_minute_passes(*_: object) -> bool:
        team.started_long_ago()
        return True

    monkeypatch.setattr(Redis, "pause", the_minute_passes)
    team.make("server", GOOD)
    assert harness.charges == 1
    assert sum("or the store was started within the last minute" in line for line in harness.messages) == 1


def test_a_store_that_comes_back_within_a_minute_stops_nothing(team: Team, harness: ResourceHarness) -> None:
    team.server.connected = False
    request = harness.context()
    waited = request.clock.sleep

    def back(seconds: float) -> None:
        waited(seconds)
        team.moved += seconds
        team.server.connected = request.clock.monotonic() > 20

    request.clock.sleep = back  # type: ignore[method-assign]  # time passes for the store too
    apply.create(request, RESOURCES["server"], check(RESOURCES["server"], GOOD).inputs)
    assert harness.charges == 1


def test_without_the_store_reads_deletions_and_changes_go_on(team: Team, harness: ResourceHarness) -> None:
    state = harness.order()
    team.server.connected = False
    request = harness.context()
    assert request.client.servers.get(int(state.id)).name == "web-1"
    request.client.servers.update(int(state.id), notes="changed")
    apply.delete(request, RESOURCES["server"], state)
    assert harness.living == []


def test_a_wait_for_the_rate_limit_ends_without_the_store_too(team: Team, harness: ResourceHarness) -> None:
    request = harness.context()
    client = request.client
    client.rate_limiter.timeout = 5.0
    client.rate_limiter.update(lambda windows: setattr(windows.windows["normal"], "blocked", windows.at + 60))
    with pytest.raises(RateLimitTimeout):
        client.balance.get()


# --- where it is set


@pytest.mark.parametrize(
    "store",
    [
        "",
        "memcached://h",
        "redis://",
        "redis:///0",
        "hunter2",
        "redis://h:x",
        "redis://h/zero",
        "redis://h/1/x",
    ]
    + [f"redis://:p@hunter2{character}w@h:1" for character in "/?#"],
)
def test_what_is_no_address_of_a_store_is_refused_by_name_and_not_shown(store: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^store must begin with redis:// or rediss://") as caught:
        Client("vk_test_0123456789", "https://api.example.com/v1", store=store)
    with pytest.raises(ConfigurationError, match=r"^store \(HOSTING_STORE\): must begin with redis://"):
        StackSettings.of({"store": store}, {})
    assert "hunter2" not in str(caught.value)


def test_the_environment_comes_before_the_stack() -> None:
    found = StackSettings.of({"store": "redis://stack"}, {"HOSTING_STORE": URL})
    assert found.store == Secret(URL)
    assert "hunter2" not in repr(found)
    assert StackSettings.of({}, {}).store is None
