"""May an object be taken over, changed or deleted: the table."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulumi_hosting.exactly_once import ownership_check
from pulumi_hosting.exactly_once.idempotency_keys import KEY_MEMORY
from pulumi_hosting.exactly_once.ownership_check import (
    Comparison,
    compare,
    differences,
    must_be_own,
    must_be_the_recorded_one,
    why_not_taken_over,
)
from pulumi_hosting.exactly_once.ownership_tag import ownership_tag
from pulumi_hosting.session.errors import NotOurs
from pulumi_hosting.session.request import Request

ME, OTHER = "pulumi:t/dev/server/web", "pulumi:t/prod/server/db"
MINE, LATER, ANOTHERS = ownership_tag(ME, 1), ownership_tag(ME, 2), ownership_tag(OTHER)
FIRST_SCHEME = "[iac:abcdefgh]"
RECORDED = {"name": "web", "created_at": "2029-04-15T08:00:00Z", "order": "20001"}
ELSE = [
    {"name": "precious"},
    {"created_at": "2029-04-15T08:00:01Z"},
    {"order": "20002"},
]
UNKNOWN: list[dict[str, str | None]] = [{"name": None}, {"created_at": None}, {"order": None}, {}]


def judged(recorded_tag: str | None, shown_tag: str | None, **shown: str | None) -> tuple[str, str | None]:
    compared = compare(
        ME, recorded_tag=recorded_tag, shown_tag=shown_tag, recorded=RECORDED, shown={**RECORDED, **shown}
    )
    return compared.decision, compared.reason


@pytest.mark.parametrize("differing", [*ELSE, *UNKNOWN])
@pytest.mark.parametrize(
    ("recorded", "shown", "expected"),
    [
        (MINE, MINE, ("allowed", None)),
        (LATER, MINE, ("allowed", None)),  # a takeover whose tag was not written
        (None, MINE, ("allowed", None)),
        (ANOTHERS, ANOTHERS, ("allowed", None)),  # imported so
        (ANOTHERS, MINE, ("allowed", None)),  # imported so, and changed since
        (MINE, LATER, ("stop", "later run")),
        (MINE, ANOTHERS, ("stop", "another's")),
        (None, ANOTHERS, ("stop", "another's")),
        (ANOTHERS, ownership_tag(OTHER, 1), ("stop", "later run")),
    ],
)
def test_a_tag_decides_whatever_else_was_changed(
    recorded: str | None, shown: str, expected: tuple[str, str | None], differing: dict[str, str | None]
) -> None:
    assert judged(recorded, shown, **differing) == expected


@pytest.mark.parametrize("shown", [None, FIRST_SCHEME])
@pytest.mark.parametrize("recorded", [MINE, None, ANOTHERS])
@pytest.mark.parametrize("differing", ELSE)
def test_without_a_tag_any_difference_stops(
    recorded: str | None, shown: str | None, differing: dict[str, str | None]
) -> None:
    assert judged(recorded, shown, **differing) == ("stop", "object")


@pytest.mark.parametrize("shown", [None, FIRST_SCHEME])
@pytest.mark.parametrize("unknown", UNKNOWN)
def test_without_a_tag_and_all_as_recorded_it_is_repaired(
    shown: str | None, unknown: dict[str, str | None]
) -> None:
    assert judged(MINE, shown, **unknown) == ("repair", None)
    assert judged(None, shown, **unknown) == ("allowed", None)  # it never had one


def test_the_reason_names_what_differs() -> None:
    compared = compare(ME, recorded_tag=MINE, shown_tag=None, recorded=RECORDED, shown={"name": "db"})
    assert compared.why == "it is not what the state recorded (name is 'db', not 'web')"
    compared = compare(ME, recorded_tag=MINE, shown_tag=ANOTHERS, recorded=RECORDED, shown={"name": "db"})
    assert compared.why == "it carries the ownership tag of another resource (name is 'db', not 'web')"
    compared = compare(ME, recorded_tag=MINE, shown_tag=ANOTHERS, recorded=RECORDED, shown=RECORDED)
    assert compared.why == "it carries the ownership tag of another resource"
    assert Comparison("stop", "later run").why == "a later run took it over, from another backend perhaps"


def test_what_is_not_known_is_no_difference() -> None:
    assert differences({"os": None}, {"os": "debian-12", "tariff_id": 1}) == ()
    assert differences({"os": "debian-12"}, {"os": None}) == ()
    assert differences({"os": "a", "tariff_id": 2}, {"os": "b", "tariff_id": 1}) == (
        "os is 'a', not 'b'",
        "tariff_id is 2, not 1",
    )


@dataclass
class Wait:
    """A wait that ends after ``pauses``; ``at_each`` is called in each."""

    pauses: int = 2
    at_each: Callable[[], None] = lambda: None

    @property
    def over(self) -> bool:
        return self.pauses <= 0

    def pause(self) -> None:
        self.pauses -= 1
        self.at_each()


NOW = datetime(2026, 11, 23, tzinfo=UTC)


def asked(warnings: list[str] | None = None, *, empty: bool = False, **facts: Any) -> Request:
    settings = {"strict": False, "scope": None, "starts_empty": empty}
    settings |= {name: facts.pop(name) for name in settings if name in facts}
    given = {"kind": "server", **facts}
    return cast(
        Request,
        SimpleNamespace(
            warn=(warnings if warnings is not None else []).append,
            poller=lambda seconds: Wait(),
            session=SimpleNamespace(**settings),
            service_now=lambda: NOW,
            **given,
        ),
    )


def test_a_stop_raises_and_a_repair_warns() -> None:
    said: list[str] = []
    for reason in ("later run", "another's", "object"):
        with pytest.raises(NotOurs, match=r"^server 7: .*; nothing was deleted$") as stopped:
            must_be_own(asked(said), Comparison("stop", reason), "server", "7", ANOTHERS, "deleted")
        assert (stopped.value.id, stopped.value.tag, stopped.value.reason) == ("7", ANOTHERS, reason)
    must_be_own(asked(said), Comparison("allowed"), "server", "7", MINE, "deleted")
    assert said == []
    for intent in ("changed", "deleted"):
        must_be_own(asked(said), Comparison("repair"), "server", "7", None, intent)
    start = "server 7 carries no ownership tag, after an edit in the control panel or a run that could not "
    start += "write it; "
    assert said == [
        f"{start}all else is as the state recorded it, so the tag is written again",
        f"{start}all else is as the state recorded it, so it is deleted",
    ]


def test_what_carries_no_tag_is_known_by_what_never_changes() -> None:
    must_be_the_recorded_one(
        "SSH key", "7", {"fingerprint": "a"}, {"fingerprint": "a"}, "nothing was deleted"
    )
    with pytest.raises(NotOurs) as stopped:
        must_be_the_recorded_one(
            "SSH key", "7", {"fingerprint": "a"}, {"fingerprint": "b"}, "nothing was deleted"
        )
    assert str(stopped.value) == (
        "SSH key 7: it is not what the state recorded (fingerprint is 'b', not 'a'); nothing was deleted"
    )
    assert (stopped.value.tag, stopped.value.reason) == (None, "object")


HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
OLD, STRICT, EMPTY = (
    "older than seven days",
    "strict is set and hosting:scope is not",
    "the state of this stack is empty",
)


@pytest.mark.parametrize(
    ("ordered", "facts", "why"),
    [
        (timedelta(), {}, None),
        (None, {}, None),
        (KEY_MEMORY, {}, None),
        (KEY_MEMORY + SECOND, {}, OLD),
        (KEY_MEMORY + SECOND, {"scope": "team"}, OLD),
        (timedelta(), {"strict": True}, STRICT),
        (timedelta(), {"strict": True, "scope": "team"}, None),
        (None, {"empty": True}, None),
        (HOUR, {"empty": True}, None),
        (HOUR + SECOND, {"empty": True}, EMPTY),
        (HOUR + SECOND, {"empty": True, "scope": "team"}, None),
        (HOUR + SECOND, {"empty": True, "kind": "webhook_subscription"}, EMPTY),
        (HOUR + SECOND, {"empty": True, "kind": "ssh_key"}, None),
        (HOUR + SECOND, {"empty": True, "strict": True}, STRICT),
        (KEY_MEMORY + SECOND, {"empty": True}, OLD),
    ],
)
def test_a_takeover_needs_a_persons_word(
    monkeypatch: pytest.MonkeyPatch, ordered: timedelta | None, facts: dict[str, Any], why: str | None
) -> None:
    monkeypatch.setattr(ownership_check, "is_interrupted", lambda *_: False)
    found = why_not_taken_over(asked(**facts), ordered)
    assert found is None if why is None else (found is not None and why in found)


@pytest.mark.parametrize("ordered", [HOUR * 2, KEY_MEMORY * 4])
def test_an_own_crash_needs_no_persons_word(monkeypatch: pytest.MonkeyPatch, ordered: timedelta) -> None:
    asked_for: list[tuple[str, datetime]] = []

    def is_interrupted(request: Request, kind: str, made: datetime) -> bool:
        asked_for.append((kind, made))
        return True

    monkeypatch.setattr(ownership_check, "is_interrupted", is_interrupted)
    assert why_not_taken_over(asked(empty=True), ordered) is None
    assert set(asked_for) == {("server", NOW - ordered)}


def test_an_engine_that_tells_of_the_state_a_moment_later_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ownership_check, "is_interrupted", lambda *_: False)
    request = cast(Any, asked(empty=True))

    def told() -> None:
        request.session.starts_empty = False

    waits: list[float] = []

    def poller(seconds: float) -> Wait:
        waits.append(seconds)
        return Wait(at_each=told)

    request.poller = poller
    assert why_not_taken_over(request, HOUR * 2) is None
    assert waits == [1.0]
