"""The service's time: the Date of the latest response, else /health; the local clock of the day is never
asked.
"""

from datetime import UTC, datetime

import httpx
import pytest

from pulumi_hosting.client.exceptions import NotFound
from pulumi_hosting.client.retry import parse_http_date
from tests.client.support import FakeTime, answer, refusal, scripted

pytestmark = pytest.mark.usefixtures("both")

HEALTH = {"status": "ok", "time": "2030-01-01T12:00:00Z", "version": "1"}
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
DATE = "Sun, 06 Nov 2033 08:49:37 GMT"
DATED = datetime(2033, 11, 6, 8, 49, 37, tzinfo=UTC)


def test_without_a_response_health_is_asked() -> None:
    client, script = scripted(answer(200, HEALTH))
    assert client.service_now() == NOON
    assert [request.url.path for request in script.requests] == ["/v1/health"]


def test_the_date_of_the_latest_response_is_used_with_the_time_since_added() -> None:
    time = FakeTime()
    client, script = scripted(answer(200, HEALTH, Date=DATE), time=time)
    client.health()
    assert client.service_now() == DATED
    time.now += 60
    assert client.service_now() == DATED.replace(minute=50)
    assert len(script.requests) == 1


def test_a_response_older_than_a_minute_is_not_used() -> None:
    time = FakeTime()
    client, script = scripted(answer(200, HEALTH, Date=DATE), answer(200, HEALTH), time=time)
    client.health()
    time.now += 60.1
    assert client.service_now() == NOON
    assert len(script.requests) == 2


def test_the_date_of_a_refusal_counts_too() -> None:
    client, script = scripted(refusal(404, "not_found", Date=DATE), knows_owner=True)
    with pytest.raises(NotFound):
        client.servers.get(1)
    assert client.service_now() == DATED
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    "text", ["", "yesterday", "Sun, 99 Nov 2033 08:49:37 GMT", "Fri, 31 Dec 9999 23:59:59 -1400", "\x00"]
)
def test_an_unreadable_date_is_no_date(text: str) -> None:
    assert parse_http_date(text) is None
    client, _ = scripted(httpx.Response(200, json=HEALTH, headers={b"Date": text.encode()}))
    client.health()
    assert client.service_now() == NOON


def test_dates_of_other_zones_are_converted() -> None:
    assert parse_http_date("Sun, 06 Nov 2033 10:49:37 +0200") == DATED
    assert parse_http_date("Sun, 06 Nov 2033 08:49:37 -0000") == DATED
