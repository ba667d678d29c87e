"""Which deliveries of the service's log are fetched, with a log in memory."""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulumi_hosting.api.models import Delivery, Event, Subscription
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import HostingError, InvalidResponse, TransportError, error_class
from pulumi_hosting.webhooks.receiver import event_of, missed_deliveries
from tests.webhooks.support import body

NOW = 1_800_000_000.0
DAY = 86400.0
EVENT = Event.model_validate_json(body("evt_1"))


def delivery(
    id: int,
    event: str | None = "",
    *,
    age: float | None = 60,
    type: str = "server.created",
    status: str = "dead",
    payload: Event | None = None,
) -> Delivery:
    return Delivery.model_validate(
        {
            "id": id,
            "event_id": f"evt_{id}" if event == "" else event,
            "event_type": type,
            "status": status,
            "created_at": None if age is None else datetime.fromtimestamp(NOW - age, UTC),
            "payload": payload,
        }
    )


@dataclass
class Log:
    """The part of a client that is asked. ``failure``: what every request fails with."""

    rows: list[Delivery] = field(default_factory=list)
    active: bool = True
    failure: HostingError | None = None
    requests: list[tuple[str, int]] = field(default_factory=list)

    def _ask(self, what: str, id: int, answer: Any) -> Any:
        self.requests.append((what, id))
        if self.failure is not None:
            raise self.failure
        return answer

    def client(self) -> Client:
        shown = Subscription(
            id=7,
            url="https://hooks.example.com/",
            events=["*"],
            active=self.active,
            disabled_reason="20 failures",
        )
        deliveries = SimpleNamespace(
            list=lambda id: self._ask("list", id, iter(self.rows)),
            get=lambda id: self._ask("get", id, next((row for row in self.rows if row.id == id), None)),
        )
        webhooks = SimpleNamespace(get=lambda id: self._ask("subscription", id, shown), deliveries=deliveries)
        return cast(Client, SimpleNamespace(webhooks=webhooks))


def missed(
    log: Log, known: tuple[str, ...] = (), *, lookback: float = DAY, store_age: float = 2 * DAY
) -> list[int]:
    async def knows(event_id: str) -> bool:
        return event_id in known

    found = asyncio.run(
        missed_deliveries(
            log.client(),
            7,
            lookback=lookback,
            store_created_at=NOW - store_age,
            knows=knows,
            now=lambda: NOW,
        )
    )
    return [one.id for one in found]


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def refusal(status: int, code: str = "new_code") -> HostingError:
    return error_class(status, code)(status=status, code=code, message="no")


# --- which are missed


def test_what_the_receiver_does_not_know_is_missed_the_oldest_first() -> None:
    log = Log([delivery(1, age=10), delivery(2, age=30), delivery(3, age=20), delivery(5, age=30)])
    log.rows.insert(1, delivery(4, age=30))
    assert missed(log, ("evt_3",)) == [2, 4, 5, 1]
    assert log.requests == [("subscription", 7), ("list", 7)]


def test_what_is_no_event_to_hand_over_is_left_out() -> None:
    assert missed(Log([delivery(1, type="ping"), delivery(2, None), delivery(3)])) == [3]


def test_an_event_is_fetched_once_from_its_latest_row() -> None:
    assert missed(Log([delivery(1, "evt"), delivery(2, "evt")])) == [2]


def test_a_delivery_may_be_as_old_as_lookback_says() -> None:
    rows = [delivery(1, age=100), delivery(2, age=100.5), delivery(3, age=None)]
    assert missed(Log(rows), lookback=100) == [1, 3]


@pytest.mark.parametrize(("status", "expected"), [("delivered", [1]), ("pending", [2, 1]), ("dead", [2, 1])])
def test_what_was_accepted_before_the_state_file_was_made_another_receiver_has(
    status: str, expected: list[int]
) -> None:
    rows = [delivery(1, age=50, status=status), delivery(2, age=50.5, status=status)]
    assert missed(Log(rows), store_age=50) == expected


def test_a_row_without_a_time_comes_last() -> None:
    assert missed(Log([delivery(1, age=None), delivery(2, age=0.5)])) == [2, 1]


# --- what the service answers


def test_an_active_subscription_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    missed(Log([delivery(1)]))
    assert lines(caplog) == []


def test_a_disabled_subscription_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    assert missed(Log([delivery(1)], active=False)) == [1]
    assert lines(caplog) == [
        (
            "WARNING",
            "subscription 7 is disabled, nothing is delivered: set active again (20 failures)",
        )
    ]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 499])
def test_a_refusal_for_good_ends_the_search(status: int, caplog: pytest.LogCaptureFixture) -> None:
    failure = refusal(status)
    assert missed(Log([delivery(1)], failure=failure)) == []
    assert lines(caplog) == [("ERROR", f"cannot ask for missed events, continuing without them: {failure}")]


PASSING: list[HostingError] = [
    refusal(429, "rate_limited"),
    refusal(399),
    refusal(500, "server_error"),
    refusal(503),
    TransportError("lost", outcome_unknown=False),
]


@pytest.mark.parametrize("failure", [*PASSING, InvalidResponse("odd")], ids=repr)
def test_what_may_pass_is_the_callers_to_repeat(failure: HostingError) -> None:
    with pytest.raises(HostingError) as caught:
        missed(Log([delivery(1)], failure=failure))
    assert caught.value is failure


# --- the event of a delivery


def fetched(log: Log, row: Delivery) -> Event | None:
    return asyncio.run(event_of(log.client(), row))


def test_an_event_in_the_row_costs_no_request() -> None:
    log = Log()
    assert fetched(log, delivery(1, payload=EVENT)) == EVENT
    assert log.requests == []


def test_an_event_that_the_row_lacks_is_asked_for() -> None:
    log = Log([delivery(1, payload=EVENT)])
    assert fetched(log, delivery(1)) == EVENT
    assert log.requests == [("get", 1)]


def test_a_delivery_without_an_event_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    assert fetched(Log([delivery(1)]), delivery(1)) is None
    assert lines(caplog) == [("ERROR", "delivery 1 has no payload: its event is left out")]


@pytest.mark.parametrize("failure", [refusal(404, "not_found"), InvalidResponse("odd")], ids=repr)
def test_an_event_that_cannot_be_had_keeps_no_other_waiting(
    failure: HostingError, caplog: pytest.LogCaptureFixture
) -> None:
    assert fetched(Log(failure=failure), delivery(1)) is None
    assert lines(caplog) == [
        ("ERROR", f"cannot fetch missed event evt_1, continuing without it until the next start: {failure}")
    ]


@pytest.mark.parametrize("failure", PASSING, ids=repr)
def test_an_event_is_asked_for_again_where_that_may_help(failure: HostingError) -> None:
    with pytest.raises(HostingError) as caught:
        fetched(Log(failure=failure), delivery(1))
    assert caught.value is failure


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="pulumi_hosting.webhooks")
