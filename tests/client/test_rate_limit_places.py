"""The place of one call: what it reads in a response, how long it pauses, and what it tells the user."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from pulumi_hosting.api.operations import BY_ID
from pulumi_hosting.client import polling as polls
from pulumi_hosting.client.exceptions import CallError, RateLimitTimeout
from pulumi_hosting.client.rate_limit import state_file
from pulumi_hosting.client.rate_limit.limiter import Place, _count, _line
from pulumi_hosting.client.rate_limit.state_file import WindowsInMemory
from pulumi_hosting.client.rate_limit.windows import Count, Facts, KeyWindows, Wait, Window
from pulumi_hosting.client.retry import parse_http_date
from pulumi_hosting.client.shared_store import Files
from tests.client.test_rate_limit import Machine, headers

READ, ORDER = BY_ID["get_server"], BY_ID["create_server"]
DATE = "Tue, 14 Nov 2023 22:13:20 GMT"  # 1 700 000 000


def window(machine: Machine, bucket: str = "normal") -> Window:
    return machine.limiter.update(lambda found: found.windows[bucket])


def numbers(limit: str, remaining: str, reset: str) -> dict[str, str]:
    return {"X-RateLimit-Limit": limit, "X-RateLimit-Remaining": remaining, "X-RateLimit-Reset": reset}


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture(autouse=True)
def _no_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has just begun."""
    monkeypatch.setattr(state_file, "_memories", {})


# --- what is read


@pytest.mark.parametrize(
    ("given", "count"),
    [
        (numbers("120", "119", "1700000060"), Count(120, 119, 1_700_000_060)),
        (numbers(" 120 ", "\t0", "17000000600"), Count(120, 0, 17_000_000_600)),
        (numbers("120", "130", "1700000060"), Count(120, 120, 1_700_000_060)),
        (numbers("120", "119", "170000006000"), None),
        (numbers("120", "-1", "1700000060"), None),
        (numbers("120", "1.5", "1700000060"), None),
        (numbers("١٢٠", "119", "1700000060"), None),
        (numbers("²", "119", "1700000060"), None),
        (numbers("", "119", "1700000060"), None),
        ({"X-RateLimit-Limit": "120", "X-RateLimit-Remaining": "1"}, None),
        ({}, None),
    ],
)
def test_a_count_is_three_numbers(given: dict[str, str], count: Count | None) -> None:
    assert _count(given) == count


def test_what_is_no_date_is_none() -> None:
    assert parse_http_date(DATE) == datetime.fromtimestamp(1_700_000_000, UTC)
    assert parse_http_date("") is None
    assert parse_http_date("soon") is None


@pytest.mark.parametrize(
    ("wait", "line"),
    [
        (Wait(1, 0, 0.4, 0), "rate limit reached: waiting 1 s"),
        (Wait(1, 1, 41.6, 0), "rate limit reached: waiting 42 s, 1 request ahead"),
        (Wait(1, 12, 2, 0), "rate limit reached: waiting 2 s, 12 requests ahead"),
    ],
)
def test_a_wait_is_announced_in_one_line(wait: Wait, line: str) -> None:
    assert _line(wait) == line


@pytest.mark.parametrize(
    ("wait", "waited", "pause"),
    [
        (Wait(0.02, 0, 0, 0), 0.0, 0.02),
        (Wait(0.02, 0, 0, 0), 1.0, 0.1),  # a response may come at any time: the pauses grow
        (Wait(0.02, 0, 0, 0), 9.0, 0.25),
        (Wait(0.5, 0, 0, 0), 9.0, 0.5),
        (Wait(0.02, 0, 0, 0.01), 9.0, 0.02),  # the end of the window decides
        (Wait(30.0, 0, 0, 30.0), 0.0, 1.0),
    ],
)
def test_how_long_a_pause_is(wait: Wait, waited: float, pause: float, machine: Machine) -> None:
    assert machine.place().pause(wait, waited) == pause


@pytest.mark.parametrize(("ahead", "pause"), [(0, 3.0), (2, 3.5), (40, 10.0)])
def test_who_is_woken_looks_when_time_alone_may_have_changed_something(
    ahead: int, pause: float, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine.limiter.store, "wakes", True)
    assert machine.place().pause(Wait(0.02, ahead, 60, 0, if_quiet=3.0), 9.0) == pause


# --- polls


def test_the_next_read_is_a_poll_and_no_other() -> None:
    assert not polls.take()
    polls.next_read_is_a_poll()
    assert polls.take()
    assert not polls.take()


@pytest.mark.parametrize(
    ("name", "poll", "priority"),
    [
        ("get_server", False, 2),
        ("get_server", True, 3),
        ("update_server", False, 1),
        ("update_server", True, 1),
        ("delete_server", False, 0),
        ("delete_server", True, 0),
    ],
)
def test_a_priority_is_that_of_the_operation(machine: Machine, name: str, poll: bool, priority: int) -> None:
    if poll:
        polls.next_read_is_a_poll()
    machine.place(name).step()
    assert [found.priority for found in window(machine).sent] == [priority]
    assert not polls.take()


def test_a_place_is_in_the_bucket_of_its_operation(machine: Machine) -> None:
    machine.place("create_server").step()
    assert len(window(machine, "expensive").sent) == 1
    assert window(machine).sent == []


# --- its ticket


def test_a_ticket_is_of_this_process_and_of_now(machine: Machine) -> None:
    machine.place().step()
    (found,) = window(machine).sent
    assert (found.pid, found.joined, found.granted) == (os.getpid(), 1000.0, 1000.0)


def test_a_place_that_is_left_or_lost_is_so_once(machine: Machine) -> None:
    place, kept = machine.place(), machine.place()
    machine.use(100)
    place.step()
    kept.step()
    place.leave()
    assert [found.number for found in window(machine).sent] == [3]
    own = window(machine).own
    place.leave()
    place.lost()
    assert (window(machine).own, window(machine).counted) == (own, 20)
    kept.lost()
    assert (window(machine).sent, window(machine).counted, window(machine).lost) == ([], 20, 1)
    kept.lost()
    kept.leave()
    kept.answered(200, headers(3))
    assert (window(machine).counted, window(machine).lost) == (20, 1)


def test_the_store_is_asked_once_for_each_end_of_a_request() -> None:
    asked: list[str] = []

    class Noting(WindowsInMemory):
        def update(self, change: Any, now: float) -> Any:
            asked.append("")
            return super().update(change, now)

    machine = Machine(store=Noting())
    ends: list[Callable[[Place], None]] = [
        lambda place: place.answered(200, headers(100)),
        lambda place: place.answered(200, {}),
        Place.lost,
        Place.leave,
    ]
    for end in ends:
        place = machine.place()
        place.wait()
        asked.clear()
        end(place)
        place.answered(200, headers(100))
        place.lost()
        place.leave()
        assert len(asked) == 1


def test_a_place_that_never_waited_has_nothing_to_give_back(machine: Machine) -> None:
    place = machine.place()
    place.leave()
    place.lost()
    place.answered(200, headers(3))
    assert window(machine).reset is None


def test_a_place_that_was_taken_for_dead_waits_again(machine: Machine) -> None:
    machine.use(0)
    place, other = machine.place(), machine.place()
    assert place.step() is not None
    assert other.step() is not None
    window(machine).waiting.clear()
    assert place.step() is not None
    assert [found.number for found in window(machine).waiting] == [2]


def test_what_waits_follows_its_operation_into_the_other_bucket(machine: Machine) -> None:
    machine.use(119)
    first, second, waiting = (machine.place("list_server_ips") for _ in range(3))
    first.step()
    second.step()
    assert waiting.step() is not None
    first.answered(200, headers(0, limit=20, time=machine.time))
    other = machine.place("list_server_ips")
    for place in (waiting, other, waiting):
        assert place.step() is not None
    assert window(machine).waiting == []
    assert [found.number for found in window(machine, "expensive").waiting] == [4, 5]


def test_what_another_process_granted_stays_granted(machine: Machine) -> None:
    machine.use(0)
    place, other = machine.place(), machine.place()
    assert place.step() is not None
    machine.time.now += 61
    assert other.step() is not None  # it looks first, and grants the place before it
    window(machine).blocked = machine.time.now + 100
    assert place.step() is None


def test_a_request_that_waits_again_keeps_its_place(machine: Machine) -> None:
    machine.use(100)
    place = machine.place()
    place.wait()
    place.answered(429, headers(0, time=machine.time))
    other = machine.place()
    assert other.step() is not None
    assert place.step() is not None
    assert sorted(found.number for found in window(machine).waiting) == [2, 3]


def test_dead_processes_are_looked_for_once_a_second(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def living(store: Files) -> Callable[[int], bool]:
        looks.append(machine.time.now)
        return lambda pid: True

    monkeypatch.setattr(Files, "living", living)
    machine.use(0)
    place = machine.place()
    for _ in range(9):
        assert place.step() is not None
        machine.time.now += 0.25
    assert looks == [1001.0, 1002.0]


# --- what a response does


@pytest.mark.parametrize(
    ("status", "given", "refused", "repeated", "blocked"),
    [
        (200, headers(0), False, False, False),
        (429, headers(0), True, True, True),
        (429, headers(5), False, False, False),  # another limit
        (429, {"Date": DATE}, True, False, True),  # nothing shows that it was not processed
        (503, {"Date": DATE}, False, False, False),
    ],
)
def test_a_429_of_the_bucket_waits_for_another_turn(
    machine: Machine, status: int, given: dict[str, str], refused: bool, repeated: bool, blocked: bool
) -> None:
    machine.use(100)
    place = machine.place("update_server")
    place.step()
    place.answered(status, {**given, "Retry-After": "20"})
    assert place.is_refused(READ) is refused
    assert place.is_refused(BY_ID["update_server"]) is repeated
    assert place.refusals == int(refused)
    assert (1020 <= window(machine).blocked <= 1020.5) is blocked


def test_refusals_are_counted_and_end_with_the_next_wait(machine: Machine) -> None:
    place = machine.place()
    for number in (1, 2):
        place.wait()
        assert not place.is_refused(READ)
        place.answered(429, {"Date": DATE, "Retry-After": "1"})
        assert place.refusals == number
        assert place.is_refused(READ)


def test_the_pause_after_a_429_without_a_time_doubles(machine: Machine) -> None:
    place, pauses = machine.place(), []
    for _ in range(4):
        place.wait()
        place.answered(429, {"Date": DATE})
        pauses.append(window(machine).blocked - machine.time.now)
    assert [0.25 * 2**number <= pause <= 0.5 * 2**number for number, pause in enumerate(pauses)] == [True] * 4


def test_a_date_of_retry_after_is_compared_with_the_clock_on_the_wall() -> None:
    machine = Machine(wall=lambda: 1_700_000_000.0)
    place = machine.place()
    place.wait()
    place.answered(429, {"Retry-After": "Tue, 14 Nov 2023 22:13:50 GMT"})
    assert 1030 <= window(machine).blocked <= 1030.5


def test_the_facts_of_a_response_reach_the_windows(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def answered(self: KeyWindows, *arguments: Any) -> str:
        seen.append(arguments)
        return "expensive"

    place = machine.place()
    place.step()
    (ticket,) = window(machine).sent
    monkeypatch.setattr(KeyWindows, "answered", answered)
    place.answered(200, {**headers(7), "Date": DATE})
    assert seen == [
        ("normal", ticket, READ, Facts(Count(120, 7, 1_700_000_060), 1_700_000_000.0, False), 1000.0, 0.0)
    ]
    place = machine.place()
    place.step()
    place.answered(429, {"Retry-After": "2"})
    _, _, _, facts, _, block = seen[1]
    assert facts == Facts(None, None, True)
    assert 2 <= block <= 2.5


def test_a_response_without_headers_is_of_a_stand_in_for_the_service(machine: Machine) -> None:
    place = machine.place()
    place.step()
    place.answered(200, {})
    assert (window(machine).sent, window(machine).own, window(machine).silent) == ([], 0, False)


# --- the wait


def test_what_needs_no_key_is_not_held_up(machine: Machine) -> None:
    machine.use(0)
    health = machine.place("get_health")
    health.wait()
    assert machine.time.slept == []
    assert window(machine).waiting == []


def test_a_wait_longer_than_allowed_ends_before_it_begins() -> None:
    machine = Machine(timeout=59.0)
    machine.use(0)
    with pytest.raises(RateLimitTimeout) as caught:
        machine.place().wait()
    assert machine.time.slept == []
    assert (caught.value.waited, caught.value.bucket, caught.value.operation) == (0.0, "normal", "get_server")
    assert caught.value.summary == (
        "the normal rate limit of this API key leaves no room for another request within 59 s: no requests "
        "ahead, about 60 s more to wait; nothing was sent"
    )
    assert window(machine).waiting == []


def test_a_wait_may_take_all_the_time_that_is_allowed() -> None:
    machine = Machine(timeout=10.0)
    window(machine).blocked = 1010.0
    machine.place().wait()
    assert machine.time.now == 1010.0


def test_the_waits_of_one_call_are_bounded_together() -> None:
    machine = Machine(timeout=100.0)
    machine.use(0)
    place = machine.place()
    place.wait()
    assert 60 <= place.waited <= 61
    waited = place.waited
    place.answered(429, headers(0, reset=120, time=machine.time))
    failure = CallError("refused")
    with pytest.raises(CallError) as caught:
        place.wait(failure)
    assert caught.value is failure
    assert place.waited == waited


def test_a_wait_ends_with_its_timeout() -> None:
    """Others keep the window busy: nothing says how long."""
    machine = Machine(timeout=10.0)
    first = machine.place()
    first.step()
    window(machine).sent[0].granted = 2000.0
    with pytest.raises(RateLimitTimeout) as caught:
        machine.place().wait()
    assert machine.time.now == pytest.approx(1010.0)
    assert caught.value.waited == pytest.approx(10.0)
    assert len(machine.told) == 1


def test_a_sleep_that_takes_longer_counts_as_long() -> None:
    machine = Machine(timeout=100.0)
    machine.use(0)

    def slow(seconds: float) -> None:
        machine.time.sleep(seconds + 4)

    machine.limiter.sleep = slow
    place = machine.place()
    place.wait()
    assert place.waited == pytest.approx(machine.time.now - 1000.0)
    assert machine.told == ["rate limit reached: waiting 55 s"]


def test_a_clock_that_stands_still_does_not_make_a_wait_endless() -> None:
    machine = Machine(timeout=5.0, sleep=lambda seconds: None)
    first = machine.place()
    first.step()
    window(machine).sent[0].granted = 2000.0
    with pytest.raises(RateLimitTimeout):
        machine.place().wait()


def test_a_short_wait_is_not_announced(machine: Machine) -> None:
    machine.use(0)
    machine.time.now += 57.5
    machine.place().wait()
    assert machine.told == []


def test_a_wait_is_announced_after_three_seconds(machine: Machine) -> None:
    machine.use(0)
    machine.limiter.on_wait = lambda line: machine.told.append(f"{machine.time.now}")
    machine.place().wait()
    assert machine.told == ["1003.0"]
