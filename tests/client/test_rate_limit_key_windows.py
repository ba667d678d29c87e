"""The windows of a key, step by step: how long a wait is, what a response teaches, which operations are
counted where. All times are exact in binary.
"""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_core import from_json, to_json

from pulumi_hosting.client.rate_limit.windows import (
    POLL,
    READ,
    WRITE,
    Count,
    Facts,
    KeyWindows,
    Ticket,
    Wait,
    Window,
)
from tests.client.rate_limit_parts import (
    ADDRESSES,
    EPOCH,
    NOW,
    RESET,
    SEARCH,
    SERVER,
    sent,
    ticket,
    values,
    window,
)

# --- the windows of a key


def keys(**facts: Any) -> KeyWindows:
    """Both clocks agree, and windows end on time."""
    return KeyWindows(**{"offset": 0.0, "margin": 0.0, **facts})


def normal(some: KeyWindows, **facts: Any) -> Window:
    some.windows["normal"] = found = window(**facts)
    return found


def test_time_is_the_services_late_rather_than_early() -> None:
    assert KeyWindows(offset=-EPOCH, margin=0.5).service_time(NOW) == EPOCH + NOW - 0.5
    assert KeyWindows(margin=0.5).service_time(NOW) == NOW - 0.5
    assert KeyWindows().margin == 0.05


def test_tickets_are_numbered_and_wait_in_their_bucket() -> None:
    some = keys()
    first = some.join("normal", READ, 7, NOW)
    second = some.join("expensive", WRITE, 8, NOW + 1)
    assert values(first, "number", "pid", "priority", "joined") == (1, 7, READ, NOW)
    assert values(second, "number", "pid", "priority", "joined") == (2, 8, WRITE, NOW + 1)
    assert some.windows["normal"].waiting == [first]
    assert some.windows["expensive"].waiting == [second]


def test_a_ticket_that_comes_back_waits_with_its_old_number() -> None:
    some = keys(last_number=3)
    some.rejoin("normal", old := sent(9))
    assert values(old, "number", "granted", "taken") == (9, None, False)
    assert some.windows["normal"].waiting == [old]
    assert some.join("normal", READ, 7, NOW).number == 10
    some.rejoin("normal", sent(2))
    assert some.last_number == 10


def test_a_look_takes_the_ticket_once_and_keeps_when() -> None:
    some = keys()
    one = normal(some)
    mine = some.join("normal", READ, 7, NOW)
    assert some.look("normal", mine.number, 7, NOW) is mine
    assert values(mine, "granted", "taken") == (NOW, True)
    assert some.look("normal", mine.number, 7, NOW + 1) is mine
    assert mine.granted == NOW
    one.sent[0].taken = False  # granted by another process, and taken a moment later
    some.look("normal", mine.number, 7, NOW + 2)
    assert values(mine, "granted", "taken") == (NOW + 2, True)


def test_a_ticket_of_another_process_or_number_is_not_known() -> None:
    some = keys()
    one = normal(some, counted=10)
    one.sent, one.waiting = [sent(1)], [ticket(2)]
    for number, pid in ((1, 8), (3, 7), (2, 8)):
        assert some.look("normal", number, pid, NOW) is None
    assert isinstance(some.look("normal", 2, 7, NOW), Wait)
    assert some.look("normal", 1, 7, NOW) is one.sent[0]


@pytest.mark.parametrize(
    ("facts", "on_the_way", "ahead", "wait"),
    [
        # nothing is known: the first response is waited for
        ({"reset": None, "confirmed": False}, [NOW], 0, Wait(0.02, 0, 0, 0, 0.5)),
        ({"reset": None, "confirmed": False}, [NOW], 3, Wait(0.02, 3, 0, 0, 0.5)),
        ({"reset": None, "confirmed": False, "blocked": NOW + 4}, [], 1, Wait(4, 1, 4, 4, 4)),
        # room, and others before
        ({"parallel": 1}, [NOW], 0, Wait(0.02, 0, 0, 0, 0.5)),
        ({"parallel": 1}, [NOW], 5, Wait(0.03, 5, 0, 0, 0.5)),
        ({"parallel": 1, "reset": NOW + 90}, [NOW], 0, Wait(0.02, 0, 0, 0, 0.5)),
        ({"parallel": 1, "counted": 5}, [NOW], 7, Wait(0.034, 7, 30, 0, 0.5)),
        # full: the end of the window, and of more windows where many are before
        ({"counted": 10}, [], 0, Wait(30.001, 0, 30, 30, 30)),
        ({"counted": 10}, [], 2, Wait(30.004, 2, 30, 30, 30)),
        ({"counted": 10}, [], 9, Wait(30.018, 9, 30, 30, 30)),
        ({"counted": 10}, [], 10, Wait(30.02, 10, 90, 30, 30)),
        ({"counted": 10, "kept": 1}, [], 9, Wait(30.018, 9, 90, 30, 25)),
        ({"counted": 12}, [], 10, Wait(30.02, 10, 90, 30, 30)),
        ({"counted": 8, "lost": 2}, [], 2, Wait(30.004, 2, 30, 30, 30)),
        ({"counted": 8, "lost": 1, "parallel": 1}, [NOW], 2, Wait(0.024, 2, 30, 0, 30)),
        ({"counted": 10, "reset": NOW + 0.5}, [], 0, Wait(0.501, 0, 0.5, 0.5, 0.5)),
        # some room, and more before than it has
        ({"counted": 8, "parallel": 1}, [NOW], 1, Wait(0.022, 1, 30, 0, 0.5)),
        ({"counted": 8, "parallel": 1}, [NOW], 11, Wait(0.042, 11, 90, 0, 0.5)),
        # a 429 holds up what has room, for longer than the window too
        ({"blocked": NOW + 4}, [], 0, Wait(4.001, 0, 4, 4, 4)),
        ({"blocked": NOW + 4}, [], 3, Wait(4.006, 3, 4, 4, 4)),
        ({"counted": 10, "blocked": NOW + 40}, [], 0, Wait(40.001, 0, 40, 40, 40)),
        # the slot that is kept: the only waiter's soon, else everybody's in the last moment
        ({"counted": 9, "kept": 1}, [], 0, Wait(0.5, 0, 30, 0, 0.5)),
        ({"counted": 9, "kept": 1}, [], 1, Wait(25, 1, 30, 0, 25)),
        ({"counted": 8, "kept": 1}, [NOW], 0, Wait(0.02, 0, 30, 0, 25)),
        ({"limit": 1, "kept": 1, "counted": 1}, [], 1, Wait(30.002, 1, 90, 30, 30)),
    ],
)
def test_how_long_a_wait_is(facts: dict[str, Any], on_the_way: list[float], ahead: int, wait: Wait) -> None:
    some = keys()
    one = normal(some, seen=NOW, **facts)
    one.sent = [sent(100 + number, granted) for number, granted in enumerate(on_the_way)]
    one.waiting = [ticket(50), *(ticket(number) for number in range(ahead)), ticket(60, POLL)]
    if ahead == 0 and wait.seconds == 0.5:
        one.waiting.pop()
    found = some.look("normal", 50, 7, NOW)
    assert isinstance(found, Wait)
    assert found == pytest.approx(wait, abs=1e-9)


def test_a_place_that_is_given_back_counts_for_nothing() -> None:
    some = keys()
    one = normal(some, own=2, counted=1)
    one.sent, one.waiting = [sent(1), sent(2)], [ticket(3), ticket(4)]
    some.leave("normal", 3, 7)
    some.leave("normal", 4, 8)
    assert [found.number for found in one.waiting] == [4]
    some.leave("normal", 1, 8)
    some.leave("normal", 2, 7)
    assert ([found.number for found in one.sent], one.own, one.counted) == ([1], 1, 1)


def test_a_request_that_was_lost_may_be_counted() -> None:
    some = keys()
    one = normal(some, own=2, counted=1)
    one.sent = [sent(1), sent(2)]
    some.leave("normal", 1, 8, may_be_counted=True)
    some.leave("normal", 3, 7, may_be_counted=True)
    some.leave("normal", 2, 7, may_be_counted=True)
    assert ([found.number for found in one.sent], one.own, one.counted, one.lost) == ([1], 2, 1, 1)


# --- what a response teaches the windows of a key


def answered(some: KeyWindows, mine: Ticket, facts: Facts, operation: Any = SERVER, **more: Any) -> str:
    return some.answered(more.pop("bucket", "normal"), mine, operation, facts, more.pop("now", NOW), **more)


def shown(remaining: int = 5, limit: int = 10, reset: int = RESET, **more: Any) -> Facts:
    return Facts(Count(limit, remaining, reset), **{"date": NOW, **more})


def test_a_response_is_taken_over_in_its_window() -> None:
    some = keys()
    one = normal(some, own=1)
    one.sent = [mine := sent(1), other := sent(2)]
    assert answered(some, sent(1), shown(4)) == "normal"
    assert (one.sent, one.counted, one.own, one.blocked) == ([other], 6, 1, 0.0)
    assert mine.number == 1
    assert answered(some, Ticket(2, 8, READ, NOW), shown(3)) == "normal"  # of another process
    assert (one.sent, one.counted) == ([other], 7)


def test_a_429_was_not_counted_as_our_own() -> None:
    some = keys()
    one = normal(some, own=3, counted=3)
    one.sent = [sent(1)]
    answered(some, sent(1), shown(0, refused=True))
    assert values(one, "own", "counted", "foreign", "parallel") == (2, 10, 8, 4)
    answered(some, sent(1), shown(0, refused=True))
    assert one.own == 2  # it was forgotten before


@pytest.mark.parametrize(("refused", "lost", "own"), [(False, 1, 1), (True, 0, 0)])
def test_without_a_count_a_response_only_ends_its_request(refused: bool, lost: int, own: int) -> None:
    some = keys()
    one = normal(some, own=1)
    one.sent = [sent(1)]
    assert answered(some, sent(1), Facts(refused=refused)) == "normal"
    assert values(one, "sent", "lost", "own", "silent") == ([], lost, own, False)
    answered(some, sent(1), Facts())
    assert values(one, "lost", "own") == (lost, own)


def test_a_service_that_never_shows_a_count_has_no_limit() -> None:
    some = keys()
    one = normal(some, reset=None)
    answered(some, sent(1), Facts())
    assert one.silent
    one.reset = NOW + 30
    answered(some, sent(1), Facts())
    assert one.silent


def test_a_block_is_never_shortened_and_has_an_end() -> None:
    some = keys()
    one = normal(some)
    answered(some, sent(1), shown(), block=20.0)
    assert one.blocked == NOW + 20
    answered(some, sent(1), shown(), block=10.0)
    assert one.blocked == NOW + 20
    answered(some, sent(1), shown())
    assert one.blocked == NOW + 20
    answered(some, sent(1), shown(), block=1e9)
    assert one.blocked == NOW + 3600


def test_a_window_that_is_over_is_left_before_a_response_is_read() -> None:
    some = keys()
    one = normal(some, own=4, foreign=2)
    answered(some, sent(1), shown(9, reset=RESET + 60, date=NOW + 30), now=NOW + 30)
    assert (one.last_own, one.last_foreign, one.rolled) == (4, 2, NOW + 30)


@pytest.mark.parametrize(("late", "margin"), [(0.25, 1.5), (2.0, 2.5), (9.0, 5.0)])
def test_windows_that_end_late_are_waited_for_longer(late: float, margin: float) -> None:
    some = keys(margin=1.0)
    one = normal(some, confirmed=False, rolled=NOW)
    one.sent = [sent(1, NOW + late)]
    answered(some, sent(1), shown(0, reset=RESET - 60))
    assert some.margin == margin


@pytest.mark.parametrize(
    ("offset", "date", "age", "expected"),
    [
        (None, NOW + 5, 0.0, -5),
        (0.0, NOW + 5, 0.0, -5),  # the smallest difference is the truest
        (0.0, NOW - 1, 0.0, 0),  # a Date has whole seconds
        (0.0, NOW - 1.5, 0.0, 0),
        (0.0, NOW - 1.75, 0.0, 1.75),  # a clock was set
        (0.0, NOW - 1.75, 0.25, 0),  # the exchange took so long
        (0.0, NOW - 2, 0.25, 2),
        (0.0, NOW - 9, None, 0),  # how long it took is not known
        (0.0, None, 0.0, 0),
        (None, None, 0.0, NOW - (RESET - 60)),
    ],
)
def test_the_clocks_are_compared(
    offset: float | None, date: float | None, age: float | None, expected: float
) -> None:
    some = keys(offset=offset)
    one = normal(some, reset=None)
    one.sent = [] if age is None else [sent(1, NOW - age)]
    answered(some, sent(1), shown(date=date))
    assert some.offset == expected


def test_without_date_and_count_nothing_is_known_of_the_clock() -> None:
    some = keys(offset=None)
    answered(some, sent(1), Facts())
    assert some.offset is None


# --- operations that the service counts elsewhere


def buckets() -> KeyWindows:
    some = keys()
    some.windows = {name: window(limit=limit) for name, limit in (("normal", 120), ("expensive", 20))}
    return some


def test_an_operation_moves_to_the_bucket_of_the_limit_and_back() -> None:
    some = buckets()
    some.windows["normal"].sent = [sent(1)]
    some.windows["normal"].own = 5
    some.windows["expensive"].own = 2
    assert some.bucket_of(SERVER, "normal") == "normal"
    assert answered(some, sent(1), shown(4, 20)) == "expensive"
    assert some.moved == {"get_server normal": "expensive"}
    assert some.bucket_of(SERVER, "normal") == "expensive"
    assert some.bucket_of(SERVER, "expensive") == "expensive"
    assert some.bucket_of(SEARCH, "normal") == "normal"
    assert [values(some.windows[name], "own", "counted", "limit") for name in ("normal", "expensive")] == [
        (4, 0, 120),
        (3, 16, 20),
    ]
    assert some.windows["normal"].sent == []
    assert answered(some, sent(1), shown(100, 120), bucket="expensive") == "normal"
    assert some.moved == {}
    assert [some.windows[name].own for name in ("normal", "expensive")] == [5, 3]  # it was not known any more


def test_an_expensive_one_may_be_a_normal_one() -> None:
    some = buckets()
    assert answered(some, sent(1), shown(100, 120), bucket="expensive") == "normal"
    assert some.moved == {"get_server expensive": "normal"}


@pytest.mark.parametrize(
    ("operation", "bucket", "limit", "actual"),
    [
        (SERVER, "normal", 120, "normal"),
        (SERVER, "normal", 60, "normal"),  # a new limit of the bucket
        (SERVER, "normal", 240, "normal"),
        (SERVER, "expensive", 10, "expensive"),
        (ADDRESSES, "normal", 60, "expensive"),  # the row says that it varies
        (ADDRESSES, "normal", 240, "normal"),
        (ADDRESSES, "expensive", 10, "expensive"),
    ],
)
def test_a_limit_of_neither_bucket_is_a_new_one(operation: Any, bucket: str, limit: int, actual: str) -> None:
    some = buckets()
    assert answered(some, sent(1), shown(1, limit), operation, bucket=bucket) == actual
    assert some.windows[actual].limit == limit


def test_both_buckets_may_have_the_same_limit() -> None:
    some = buckets()
    some.windows["expensive"].limit = 120
    assert answered(some, sent(1), shown(1, 120)) == "normal"
    assert some.moved == {}


# --- processes that ended


def test_the_tickets_of_dead_processes_are_dropped() -> None:
    some = keys()
    one = normal(some, own=3)
    one.sent = [sent(1), Ticket(2, 8, READ, NOW, NOW), sent(3, NOW - 300), sent(4, NOW - 300.5)]
    one.waiting = [ticket(5), Ticket(6, 8, READ, NOW)]
    other = some.windows["expensive"]
    other.waiting = [Ticket(7, 8, READ, NOW), Ticket(8, 9, READ, NOW)]
    some.without_dead(lambda pid: pid != 8, NOW)
    assert [found.number for found in one.sent] == [1, 3]
    assert [found.number for found in one.waiting] == [5]
    assert [found.number for found in other.waiting] == [8]
    assert (one.lost, one.own) == (2, 3)


# --- as JSON


def stored() -> KeyWindows:
    some = KeyWindows(at=5.0, offset=-2.5, margin=0.25, last_number=12, moved={"a normal": "expensive"})
    for start, name in enumerate(("normal", "expensive")):
        number = 100 * start
        some.windows[name] = Window(
            limit=number + 1,
            kept=1 - start,
            reset=number + 2.5,
            confirmed=start == 0,
            rolled=number + 3.5,
            counted=number + 4,
            own=number + 5,
            foreign=number + 6,
            last_own=number + 7,
            last_foreign=number + 8,
            lost=number + 9,
            seen=number + 9.5,
            parallel=number + 10,
            blocked=number + 11.5,
            silent=start == 1,
            sent=[Ticket(1, 2, 3, 4.5, 5.5, True, True), Ticket(6, 7, 1, 8.5, 9.5)],
            waiting=[Ticket(10, 11, 2, 12.5)],
        )
    return some


def test_what_is_stored_is_read_again() -> None:
    first = stored()
    second = KeyWindows.load(from_json(to_json(first)))
    assert values(second, "at", "offset", "margin", "last_number", "moved") == (
        5.0,
        -2.5,
        0.25,
        12,
        {"a normal": "expensive"},
    )

    def facts(some: Window) -> dict[str, Any]:
        lists = {name: [vars(one) for one in getattr(some, name)] for name in ("sent", "waiting")}
        return {**vars(some), **lists}

    for name in ("normal", "expensive"):
        assert facts(second.windows[name]) == facts(first.windows[name])


def without(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda found: {key: value for key, value in found.items() if key != name}


@pytest.mark.parametrize(
    "change",
    [
        lambda found: {**found, "version": 1},
        lambda found: {**found, "windows": {}},
        lambda found: [],
        lambda found: None,
        *map(without, ("version", "at", "offset", "margin", "last_number", "moved", "windows")),
    ],
)
def test_what_is_not_of_this_version_is_not_read(change: Callable[[dict[str, Any]], Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        KeyWindows.load(change(from_json(to_json(stored()))))


def test_a_new_key_has_the_limits_of_the_document() -> None:
    some = KeyWindows()
    assert {name: (one.limit, one.kept) for name, one in some.windows.items()} == {
        "normal": (120, 1),
        "expensive": (20, 0),
    }
