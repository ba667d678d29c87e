"""Waiting for the rate limit: whose turn it is, what the responses teach, and what the user is told."""

import os
import stat
import subprocess
import sys
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fakeredis
import pytest

from pulumi_hosting.api.operations import BY_ID, Operation
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import shared_store
from pulumi_hosting.client.exceptions import RateLimited, RateLimitTimeout
from pulumi_hosting.client.polling import next_read_is_a_poll
from pulumi_hosting.client.rate_limit.limiter import Place, RateLimiter
from pulumi_hosting.client.rate_limit.state_file import StateFile, WindowsInMemory, store_name
from tests.client.support import BASE, KEY, FakeTime, answer, dice, refusal, scripted
from tests.support.rate_limit_simulation import EPOCH, Service, Simulation

READ, WRITE, DELETE, ORDER = (
    BY_ID[name] for name in ("get_server", "update_server", "delete_server", "create_server")
)
SERVER = {"id": 1, "name": "a", "status": "active"}
END = 60


def headers(
    remaining: int, limit: int = 120, *, reset: int = END, time: FakeTime | None = None
) -> dict[str, str]:
    """Of a response, by a service whose clock began with the test's."""
    now = 0.0 if time is None else time.now - 1000.0
    return {
        "Date": formatdate(EPOCH + int(now), usegmt=True),
        "X-RateLimit-Limit": str(limit),
        "X-RateLimit-Remaining": str(remaining),
        "X-RateLimit-Reset": str(int(EPOCH) + reset),
    }


class Machine:
    """Callers of one machine; time moves when a caller waits."""

    def __init__(self, key: str = KEY, **options: Any) -> None:
        self.time = FakeTime()
        self.told: list[str] = []
        self.limiter = RateLimiter(
            Secret(key),
            BASE,
            **{
                "timeout": 600.0,
                "clock": self.time.clock,
                "sleep": self.time.sleep,
                "wall": self.time.clock,
                "rng": dice(),
                "on_wait": self.told.append,
                "store": WindowsInMemory(),
                **options,
            },
        )

    def place(self, name: str = "get_server", **query: str) -> Place:
        return self.limiter.place(BY_ID[name], query)

    def use(self, remaining: int, name: str = "get_server", **more: Any) -> None:
        """A request that leaves so many in the window."""
        place = self.place(name)
        place.wait()
        place.answered(200, headers(remaining, time=self.time, **more))


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_the_first_request_finds_out_and_the_others_wait_for_its_response(machine: Machine) -> None:
    first, second = machine.place(), machine.place()
    assert first.step() is None
    assert second.step() is not None
    first.answered(200, headers(119))
    assert second.step() is None


def test_nothing_is_sent_beyond_the_limit_until_the_window_is_over(machine: Machine) -> None:
    machine.use(0)
    place = machine.place()
    place.wait()
    assert END <= machine.time.now - 1000.0 <= END + 1


def test_what_is_on_its_way_counts(machine: Machine) -> None:
    machine.use(3, limit=120)
    machine.use(2)
    on_the_way, next_one = machine.place(), machine.place()
    assert on_the_way.step() is None  # the one before the last: the last is kept for deletions
    assert next_one.step() is not None


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_request_without_a_response_may_be_counted_late(machine: Machine, is_lost: bool) -> None:
    """A busy machine may send it, and a busy service count it, long after later ones."""
    machine.use(4)
    slow = machine.place()
    assert slow.step() is None
    machine.time.now += 20
    machine.use(2)  # it would be 1 if the service had counted the slow one
    if is_lost:
        slow.lost()
    assert machine.place("delete_server").step() is None
    machine.time.now += 1
    assert machine.place("delete_server").step() is not None


def test_one_request_of_a_window_is_kept_for_deletions(machine: Machine) -> None:
    machine.use(1)
    read, deletion = machine.place(), machine.place("delete_server")
    assert read.step() is not None
    assert deletion.step() is None


def test_what_is_kept_is_everybodys_in_the_last_moment(machine: Machine) -> None:
    machine.use(1)
    place, other = machine.place(), machine.place()
    assert other.step() is not None
    place.step()
    machine.time.now += END - 6
    assert other.step() is not None
    machine.time.now += 3
    assert other.step() is None


def test_what_is_kept_is_the_only_waiters_on_an_idle_machine(machine: Machine) -> None:
    machine.use(2)
    on_the_way, place = machine.place(), machine.place()
    assert on_the_way.step() is None
    assert place.step() is not None
    machine.time.now += 1
    assert place.step() is not None  # another request is on its way
    on_the_way.answered(200, headers(1, time=machine.time))
    place.wait()
    assert 1 <= machine.time.now - 1000.0 < 2


def test_deletions_come_before_writes_reads_and_polls_and_each_in_its_order(machine: Machine) -> None:
    machine.use(0)
    next_read_is_a_poll()
    names = ["get_server", "get_server", "update_server", "get_server", "update_server", "delete_server"]
    places = [machine.place(name) for name in names]
    for place in places:
        assert place.step() is not None
    served: list[int] = []
    machine.time.now += END + 1
    while len(served) < len(places):
        for number, place in enumerate(places):
            if number not in served and place.step() is None:
                place.answered(200, headers(119 - len(served), reset=2 * END, time=machine.time))
                served.append(number)
                break
    assert served == [5, 2, 4, 1, 3, 0]


def test_a_poll_that_waited_for_long_waits_no_longer_for_writes(machine: Machine) -> None:
    machine.use(0)
    next_read_is_a_poll()
    poll = machine.place()
    assert poll.step() is not None
    machine.time.now += 4 * END + 1
    write = machine.place("update_server")
    assert write.step() is not None
    assert poll.step() is None


def test_a_429_holds_everybody_up_and_keeps_the_place(machine: Machine) -> None:
    machine.use(100)
    refused, other = machine.place(), machine.place()
    refused.wait()
    refused.answered(429, headers(0, time=machine.time) | {"Retry-After": "60"})
    assert refused.is_refused(WRITE)
    assert other.step() is not None
    refused.wait()
    assert machine.time.now - 1000.0 >= END


def test_a_429_of_another_limit_does_not_hold_others_up(machine: Machine) -> None:
    place, other = machine.place("reset_server_password"), machine.place()
    place.wait()
    place.answered(429, headers(100) | {"Retry-After": "300"})
    assert not place.is_refused(BY_ID["reset_server_password"])
    assert other.step() is None


def test_the_other_machines_requests_are_seen(machine: Machine) -> None:
    machine.use(119)
    machine.use(60)
    machine.use(59)
    assert sum(machine.place().step() is None for _ in range(100)) <= 10


def test_a_service_that_was_set_back_is_believed(machine: Machine) -> None:
    machine.use(1, reset=END)
    deletion = machine.place("delete_server")
    deletion.wait()
    deletion.answered(200, headers(119, reset=30))
    assert machine.place().step() is None


def test_an_operation_that_the_service_counts_elsewhere_is_moved(machine: Machine) -> None:
    machine.use(119)
    place = machine.place("list_server_ips")
    place.wait()
    place.answered(200, headers(0, limit=20))
    assert machine.place().step() is None
    assert machine.place("list_server_ips").step() is not None
    assert machine.place("create_server").step() is not None


def test_what_waits_is_moved_with_its_operation(machine: Machine) -> None:
    machine.use(119)
    first, *others = (machine.place("list_server_ips") for _ in range(50))
    assert first.step() is None
    waiting = [place for place in others if place.step() is not None]
    first.answered(200, headers(0, limit=20, time=machine.time))
    machine.use(118)  # there is room in the bucket that they leave
    assert [place for place in waiting if place.step() is None] == []


def test_without_headers_nothing_is_held_up(machine: Machine) -> None:
    for _ in range(200):
        place = machine.place()
        place.wait()
        place.answered(200, {"Content-Type": "application/json"})
    assert machine.time.slept == []


def test_the_clocks_of_service_and_machine_need_not_agree(machine: Machine) -> None:
    place = machine.place()
    place.wait()
    place.answered(200, {**headers(0), "Date": formatdate(EPOCH + 20, usegmt=True)})
    machine.place().wait()
    assert 40 <= machine.time.now - 1000.0 <= 41


def test_what_takes_long_is_announced_once(machine: Machine) -> None:
    machine.use(0)
    for _ in range(12):
        assert machine.place("update_server").step() is not None
    machine.place().wait()
    assert machine.told == ["rate limit reached: waiting 57 s, 12 requests ahead"]


def test_an_endless_wait_is_an_error_that_names_bucket_and_wait() -> None:
    machine = Machine(timeout=10.0)
    machine.use(0)
    with pytest.raises(
        RateLimitTimeout, match=r"^the normal rate limit .* 10 s.*; nothing was sent. Next: "
    ) as caught:
        machine.place().wait()
    assert (caught.value.bucket, caught.value.operation) == ("normal", "get_server")


def test_a_service_whose_clock_stands_still_is_not_waited_for(machine: Machine) -> None:
    """An emulator with a manual clock: no window ends."""
    machine.use(0)
    place = machine.place()
    place.wait()  # one window, since a clock that moves would have ended it
    place.answered(429, headers(0))
    waited = machine.time.now
    with pytest.raises(RateLimitTimeout, match="clock of the service stands still") as refused:
        place.wait()
    assert machine.time.now == waited
    assert str(refused.value).count("Next:") == 1


def test_who_is_interrupted_leaves_the_queue(machine: Machine) -> None:
    machine.use(0)

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    machine.limiter.sleep = interrupt
    with pytest.raises(KeyboardInterrupt):
        machine.place().wait()
    windows = machine.limiter.update(lambda found: found.windows["normal"])
    assert windows.waiting == []


# --- the call


def test_waiting_does_not_use_up_the_deadline() -> None:
    time = FakeTime()
    client, script = scripted(
        lambda request: answer(
            200, SERVER, **{name.replace("-", "_"): text for name, text in headers(0).items()}
        ),
        lambda request: answer(200, SERVER),
        time=time,
        deadline=10,
    )
    client.servers.get(1)
    client.servers.get(1)
    assert sum(time.slept) >= END
    assert script.requests[1].extensions["timeout"]["read"] == pytest.approx(10, abs=0.1)


def test_a_write_that_met_an_empty_bucket_was_not_processed_and_waits() -> None:
    refused = refusal(429, "rate_limited", Retry_After="30")
    refused.headers.update(headers(0))
    client, script = scripted(refused, answer(200, SERVER))
    assert client.servers.update(1, name="b").id == 1
    assert len(script.requests) == 2


def test_other_machines_that_take_each_window_never_make_it_an_error() -> None:
    refused = [refusal(429, "rate_limited", Retry_After="1") for _ in range(9)]
    for number, response in enumerate(refused):
        seconds = END * number
        date = formatdate(EPOCH + seconds, usegmt=True)
        response.headers.update({**headers(0, reset=seconds + END), "Date": date})
    client, script = scripted(*refused, answer(200, SERVER), deadline=10)  # 540 s
    assert client.servers.get(1).id == 1
    assert len(script.requests) == 10


def test_a_write_without_a_key_whose_429_shows_nothing_is_not_repeated() -> None:
    client, script = scripted(refusal(429, "rate_limited", Retry_After="1"))
    with pytest.raises(RateLimited):
        client.call("update_server", 1, body={"name": "b"})
    assert len(script.requests) == 1


# --- the file


def test_the_file_is_private_and_tells_no_key() -> None:
    limiter = Machine(store=None).limiter
    limiter.place(READ, {}).wait()
    (path,) = Path(os.environ["HOSTING_RUNTIME_DIR"]).iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert KEY not in path.name + path.read_text()
    limiter.close()


def test_live_and_test_keys_have_windows_of_their_own() -> None:
    names = {
        store_name(Secret(key), base)
        for key in ("vk_live_0123456789", "vk_test_0123456789")
        for base in (BASE, "https://other.example.com/v1")
    }
    assert len(names) == 4


def test_two_clients_share_the_windows_of_a_key_and_a_test_key_has_others() -> None:
    one, other, test = (Machine(store=None, key=key) for key in (KEY, KEY, "vk_test_0123456789"))
    one.use(0)
    assert other.place().step() is not None
    assert test.place().step() is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 1}', b"\xff" * 100])
def test_a_damaged_file_counts_as_empty(content: bytes) -> None:
    machine = Machine(store=None)
    machine.use(0)
    (path,) = Path(os.environ["HOSTING_RUNTIME_DIR"]).iterdir()
    path.write_bytes(content)
    assert machine.place().step() is None


def test_a_deleted_file_is_made_again() -> None:
    machine = Machine(store=None)
    machine.use(0)
    (path,) = Path(os.environ["HOSTING_RUNTIME_DIR"]).iterdir()
    path.unlink()
    assert machine.place().step() is None
    assert path.exists()


def test_a_machine_without_locks_limits_each_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    machine = Machine(store=None, timeout=700.0)
    machine.use(0)
    assert isinstance(machine.limiter.store, WindowsInMemory)
    assert machine.place().step() is not None


@pytest.mark.parametrize("seconds", [10.0, 100.0])
def test_a_lock_that_is_held_is_waited_for(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a busy machine, which suspends its holder; but not for ever: a stopped process may hold it."""
    holder, machine, time = Machine(store=None), Machine(store=None), FakeTime()
    holder.use(50)
    held = holder.limiter.store
    assert isinstance(held, StateFile)
    assert isinstance(held._value, shared_store.OpenFile)
    opened, file = held._value, held._value._locked()

    def sleep(pause: float) -> None:
        time.sleep(pause)
        if sum(time.slept) >= seconds:
            opened._unlock(file)

    monkeypatch.setattr(shared_store, "time", SimpleNamespace(monotonic=time.clock, sleep=sleep))
    machine.place().step()
    assert isinstance(machine.limiter.store, StateFile if seconds == 10.0 else WindowsInMemory)


def test_a_process_that_was_killed_does_not_hold_others_up() -> None:
    machine = Machine(store=None)
    machine.use(2)
    program = (
        "import os, sys; from tests.client.test_rate_limit import Machine\n"
        "machine = Machine(store=None)\n"
        "assert machine.place().step() is None\n"
        "os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    place = machine.place()
    assert place.step() is not None
    machine.time.now += 2
    assert place.step() is not None  # the request of the killed one may have been counted
    assert machine.place("delete_server").step() is None
    sent = StateFile(store_name(Secret(KEY), BASE)).update(
        lambda windows: [ticket.pid for ticket in windows.windows["normal"].sent], machine.time.now
    )
    assert sent == [os.getpid()]


# --- many callers on a virtual clock; the whole table is in `make bench ARGS=rate_limit`


@pytest.mark.parametrize("phase", [EPOCH + 970.4, None], ids=["any moment", "first request"])
@pytest.mark.parametrize("callers", [1, 5, 20])
@pytest.mark.parametrize(
    ("operation", "limit", "requests"), [(ORDER, 20, 90), (READ, 30, 150)], ids=["orders", "reads"]
)
def test_callers_of_one_machine_use_the_whole_limit_and_meet_no_429(
    operation: Operation, limit: int, requests: int, callers: int, phase: float | None
) -> None:
    """The reads are five windows exactly: what is kept for deletions must not cost a sixth."""
    found, ideal = (
        Simulation(
            Service(limit, phase),
            callers=callers,
            requests=requests,
            operation=operation,
            scheduler=scheduler,
        ).run()
        for scheduler in ("limiter", "ideal")
    )
    assert found.refused == 0
    assert found.finish <= 1.02 * ideal.finish
    assert found.utilisation >= 0.98 * ideal.utilisation
    assert found.overdue(ideal) <= END


@pytest.mark.parametrize(
    ("hosts", "phase", "seed"),
    [
        (2, 970.4, 0),
        (3, 970.4, 0),
        (5, 970.4, 0),
        (5, 13.0, 1),  # one answer takes longer than the others are held up
        (5, 970.4, 4),
        (8, 970.4, 4),
        (8, 13.0, 4),
    ],
)
def test_machines_that_share_a_key_meet_at_most_one_429_each_in_a_window(
    hosts: int, phase: float, seed: int
) -> None:
    service = Service(120, EPOCH + phase)
    found = Simulation(service, callers=5, hosts=hosts, requests=400, seed=seed).run()
    assert found.worst_window <= hosts


@pytest.mark.parametrize("phase", [EPOCH + 970.4, None], ids=["any moment", "first request"])
@pytest.mark.parametrize(("hosts", "callers"), [(4, 5), (8, 1)])
def test_machines_that_share_a_store_use_the_whole_limit_and_meet_no_429(
    hosts: int, callers: int, phase: float | None
) -> None:
    """A caller looks when it is woken, or when time alone may have changed something."""
    found, ideal = (
        Simulation(
            Service(20, phase),
            hosts=hosts,
            callers=callers,
            requests=90,
            operation=ORDER,
            scheduler=scheduler,
            shared=fakeredis.FakeRedis(),
        ).run()
        for scheduler in ("limiter", "ideal")
    )
    assert found.refused == 0
    assert found.finish <= 1.02 * ideal.finish
    assert found.utilisation >= 0.98 * ideal.utilisation
