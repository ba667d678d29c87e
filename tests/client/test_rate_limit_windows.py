"""One window, step by step: what may be sent, and what a response teaches. All times are exact in
binary.
"""

from typing import Any

import pytest

from pulumi_hosting.client.rate_limit.windows import (
    DELETION,
    POLL,
    READ,
    WRITE,
    Count,
    Ticket,
    Window,
)
from tests.client.rate_limit_parts import NOW, RESET, sent, ticket, values, window

# --- the queue


@pytest.mark.parametrize(
    ("priority", "waited", "rank"),
    [
        (DELETION, 0, (DELETION, 3)),
        (DELETION, 1000, (DELETION, 3)),
        (WRITE, 1000, (WRITE, 3)),
        (READ, 119, (READ, 3)),
        (READ, 120, (WRITE, 3)),
        (READ, 1000, (WRITE, 3)),
        (POLL, 0, (POLL, 3)),
        (POLL, 120, (READ, 3)),
        (POLL, 240, (WRITE, 3)),
        (POLL, 480, (WRITE, 3)),
    ],
)
def test_waiting_raises_a_priority_up_to_that_of_a_write(
    priority: int, waited: float, rank: tuple[int, int]
) -> None:
    assert ticket(3, priority).rank(NOW + waited) == rank


# --- one window


def test_a_window_that_is_not_over_stays() -> None:
    unknown, young = window(reset=None, counted=4), window(counted=4)
    for one in (unknown, young):
        one.roll(NOW + 29.5, NOW)
        assert values(one, "counted", "confirmed", "rolled") == (4, True, 0.0)


@pytest.mark.parametrize(
    ("late", "reset", "last", "parallel"),
    [(0, 90, (3, 2), 4), (59.5, 90, (3, 2), 4), (60, 150, (0, 0), 1), (150, 210, (0, 0), 1)],
)
def test_the_next_window_begins_with_the_end_of_the_last(
    late: float, reset: float, last: tuple[int, int], parallel: int
) -> None:
    one = window(counted=5, own=3, foreign=2)
    one.roll(NOW + 30 + late, NOW + 31)
    assert values(one, "counted", "own", "foreign", "confirmed", "rolled") == (0, 0, 0, False, NOW + 31)
    assert one.reset == NOW + reset
    assert (one.last_own, one.last_foreign) == last
    assert one.parallel == parallel


def is_open(one: Window, service_now: float = NOW) -> bool:
    return one.is_open(ticket(9), NOW, service_now)


def test_nothing_is_sent_while_a_window_is_blocked() -> None:
    assert not is_open(window(blocked=NOW + 0.5))
    assert is_open(window(blocked=NOW))


def test_a_service_without_limits_is_sent_everything() -> None:
    assert is_open(window(silent=True, counted=10))


@pytest.mark.parametrize(("counted", "expected"), [(9, True), (10, False)])
def test_a_request_needs_room(counted: int, expected: bool) -> None:
    assert is_open(window(counted=counted)) is expected


@pytest.mark.parametrize(
    ("facts", "ages", "expected"),
    [
        ({}, [0, 0, 0], True),
        ({}, [0, 0, 0, 0], False),
        ({}, [0, 0, 0, 0.5], False),  # of the same round
        ({}, [0, 0, 0, 0.625], True),
        ({"rolled": NOW - 0.25}, [0.375] * 4, False),
        ({"confirmed": False}, [], True),
        ({"confirmed": False}, [0], False),  # one finds out
        ({"confirmed": False}, [0.5], False),
        ({"confirmed": False}, [0.625], True),
        ({"confirmed": False, "rolled": NOW - 0.25}, [0.25], False),
        ({"confirmed": False, "rolled": NOW - 0.25}, [0.375], True),  # sent before the window began
        ({"reset": None, "confirmed": False}, [], True),
        ({"reset": None, "confirmed": False}, [0], False),
    ],
)
def test_few_are_sent_at_once(facts: dict[str, Any], ages: list[float], expected: bool) -> None:
    one = window(**facts)
    one.sent = [sent(number, NOW - age) for number, age in enumerate(ages)]
    assert is_open(one) is expected


@pytest.mark.parametrize(
    ("facts", "pending", "free"),
    [
        ({}, [], 10),
        ({"counted": 4}, [], 6),
        ({"counted": 4}, [NOW, NOW - 5], 4),
        ({"counted": 4, "seen": NOW}, [NOW, NOW - 40], 4),  # a machine may have suspended its process
        ({"counted": 4, "lost": 2}, [NOW], 3),
        ({"counted": 4, "kept": 1}, [], 5),
        ({"limit": 1, "kept": 1}, [], 1),  # too few to keep one
        ({"limit": 2, "kept": 1}, [], 1),
    ],
)
def test_room_is_what_is_neither_counted_nor_on_its_way_nor_kept(
    facts: dict[str, Any], pending: list[float], free: int
) -> None:
    one = window(**facts)
    one.sent = [sent(number, granted) for number, granted in enumerate(pending)]
    assert one.free(ticket(9), NOW, NOW) == free


@pytest.mark.parametrize(
    ("facts", "priority", "service_now", "kept"),
    [
        ({}, READ, NOW, 1),
        ({}, WRITE, NOW, 1),
        ({}, DELETION, NOW, 0),
        ({"reset": None}, READ, NOW, 0),
        ({}, READ, NOW + 25, 1),
        ({}, READ, NOW + 25.5, 0),  # the last moment
    ],
)
def test_a_slot_is_kept_for_deletions(
    facts: dict[str, Any], priority: int, service_now: float, kept: int
) -> None:
    one = window(kept=1, **facts)
    assert 10 - one.free(ticket(9, priority), NOW, service_now) == kept


@pytest.mark.parametrize(
    ("seen", "joined", "others", "kept"),
    [
        (NOW - 0.5, NOW - 2, 0, 0),
        (NOW - 0.25, NOW - 2, 0, 1),
        (NOW - 2, NOW - 0.5, 0, 0),
        (NOW - 2, NOW - 0.25, 0, 1),
        (NOW - 2, NOW - 2, 1, 1),
    ],
)
def test_the_slot_is_the_only_waiters(seen: float, joined: float, others: int, kept: int) -> None:
    one, mine = window(kept=1, seen=seen), ticket(9, joined=joined)
    one.waiting = [mine, *(ticket(number) for number in range(others))]
    assert 10 - one.free(mine, NOW, NOW) == kept
    one.waiting = [mine]
    one.sent = [sent(granted=NOW)]
    assert 9 - one.free(mine, NOW, NOW) == 1  # another request is on its way


def test_tickets_are_granted_in_the_order_of_the_queue_as_many_as_may_be_sent() -> None:
    one = window(parallel=2)
    one.waiting = [ticket(1), ticket(2, POLL), ticket(3, WRITE), ticket(4)]
    one.grant(NOW, NOW)
    assert [found.number for found in one.sent] == [3, 1]
    assert [found.number for found in one.waiting] == [2, 4]
    assert [values(found, "granted", "taken", "alone") for found in one.sent] == [(NOW, False, False)] * 2
    assert one.own == 2


def test_a_request_is_alone_until_another_is_granted() -> None:
    one = window()
    one.waiting = [ticket(1)]
    one.grant(NOW, NOW)
    assert one.sent[0].alone is True
    one.waiting = [ticket(2)]
    one.grant(NOW, NOW)
    assert [found.alone for found in one.sent] == [False, False]


def test_a_window_that_is_over_is_left_before_tickets_are_granted() -> None:
    one = window(counted=10)
    one.waiting = [ticket(1)]
    one.grant(NOW, NOW + 30)
    assert (one.rolled, len(one.sent)) == (NOW, 1)


@pytest.mark.parametrize(("may_be_counted", "expected"), [(False, (5, 0, 2)), (True, (5, 1, 3))])
def test_a_request_without_a_response_may_have_been_counted(
    may_be_counted: bool, expected: tuple[int, int, int]
) -> None:
    one = window(counted=5, own=3)
    one.sent = [sent(2), lost := sent()]
    one.forget(lost, may_be_counted=may_be_counted)
    assert [found.number for found in one.sent] == [2]
    assert values(one, "counted", "lost", "own") == expected


def test_what_was_lost_is_forgotten_with_its_window() -> None:
    one, other = window(lost=2), window(lost=2)
    one.roll(NOW + 30, NOW)
    learn(other, 8, RESET + 60, sent())
    assert (one.lost, other.lost) == (0, 0)
    same = window(lost=2)
    learn(same, 8, RESET, sent(alone=True))
    assert same.lost == 2  # the service may count it yet


# --- what a response teaches a window

LEARNT = ("reset", "confirmed", "counted", "own", "foreign", "seen", "parallel")


def learn(one: Window, remaining: int, reset: int, found: Ticket | None, **more: Any) -> float | None:
    return one.learn(Count(10, remaining, reset), found, **{"refused": False, **more})


def test_the_first_response_shows_the_window() -> None:
    one = window(reset=None, confirmed=False, parallel=1, own=1, silent=True, limit=99)
    one.sent = [sent(2), sent(3)]
    assert learn(one, 7, RESET, sent()) is None
    # three are ours: the one that was answered and the two on their way
    assert values(one, *LEARNT) == (RESET, True, 3, 3, 0, NOW, 2)
    assert (one.silent, one.limit) == (False, 10)


def test_a_response_of_the_same_window_shows_what_was_counted_at_least() -> None:
    one = window(counted=5, own=5)
    assert learn(one, 7, RESET, sent()) is None
    assert values(one, *LEARNT) == (RESET, True, 5, 5, 0, NOW, 5)
    learn(one, 3, RESET, sent())
    assert (one.counted, one.foreign) == (7, 2)
    learn(one, 2, RESET, None)
    assert (one.counted, one.foreign, one.seen) == (8, 3, NOW)
    learn(unknown := window(), 7, RESET, None)
    assert unknown.seen == 0.0


def test_a_request_that_was_alone_shows_exactly_what_was_counted() -> None:
    one = window(counted=5, own=5, foreign=1)
    learn(one, 7, RESET, sent(alone=True))
    assert (one.counted, one.foreign) == (3, 1)


def test_a_response_of_a_later_window_begins_it() -> None:
    one = window(counted=9, own=9, foreign=3)
    one.sent = [sent(2)]
    assert learn(one, 8, RESET + 60, sent()) is None
    assert values(one, "reset", "counted", "own", "foreign") == (RESET + 60, 2, 2, 0)


def test_a_late_response_of_an_earlier_window_teaches_nothing() -> None:
    one = window(counted=5, own=5)
    assert learn(one, 9, RESET - 60, sent(granted=NOW)) is None
    assert values(one, *LEARNT) == (RESET, True, 5, 5, 0, 0.0, 4)


def test_a_service_that_was_set_back_is_believed_when_a_request_was_alone() -> None:
    one = window(counted=9, own=9)
    assert learn(one, 9, RESET - 20, sent(alone=True)) is None
    assert values(one, "reset", "confirmed", "counted", "own") == (RESET - 20, True, 1, 1)


def test_the_window_that_was_taken_to_begin_is_confirmed() -> None:
    one = window(confirmed=False, counted=2, own=1)
    assert learn(one, 7, RESET - 59, sent()) is None
    assert values(one, "reset", "confirmed", "counted", "own", "foreign") == (RESET - 59, True, 3, 1, 2)
    one = window(confirmed=False, counted=4, own=4)
    learn(one, 7, RESET + 3, sent())
    assert (one.reset, one.counted) == (RESET + 3, 4)


@pytest.mark.parametrize("late", [0.0, 0.75])
def test_a_window_that_ends_later_than_expected_is_reported(late: float) -> None:
    one = window(confirmed=False, rolled=NOW)
    assert learn(one, 1, RESET - 60, sent(granted=NOW + late)) == late
    assert values(one, "reset", "confirmed", "counted", "seen") == (RESET - 60, True, 9, NOW + late)


@pytest.mark.parametrize("found", [None, sent(granted=NOW - 0.5)])
def test_a_late_response_does_not_put_off_the_window_that_has_begun(found: Ticket | None) -> None:
    one = window(confirmed=False, rolled=NOW)
    assert learn(one, 1, RESET - 60, found) is None
    assert values(one, "reset", "confirmed", "counted", "seen") == (NOW + 30, False, 0, 0.0)


@pytest.mark.parametrize(
    ("parallel", "limit", "refused", "expected"),
    [(4, 10, False, 5), (4, 10, True, 4), (10, 10, False, 10), (1, 0, False, 1)],
)
def test_each_response_lets_one_more_be_on_its_way(
    parallel: int, limit: int, refused: bool, expected: int
) -> None:
    one = window(parallel=parallel)
    one.learn(Count(limit, 0, RESET), sent(), refused=refused)
    assert one.parallel == expected
