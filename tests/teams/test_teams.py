"""A sample of the proof with real machines: ``python -m tests.prove teams`` runs all of it."""

import pytest

from tests.teams.__main__ import Size, disturbed, one_address, one_budget
from tests.teams.relays import two_relays
from tests.teams.servers import IS_HERE

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _server(request: pytest.FixtureRequest) -> None:
    """The last lines of a run say whether there was one."""
    ran = "redis-server (ran)" if IS_HERE else "redis-server (not here)"
    request.node.user_properties.append(("program", ran))
    if not IS_HERE:
        pytest.skip("redis-server is not on PATH")


def test_machines_that_buy_one_address_at_the_same_moment_are_charged_once() -> None:
    assert one_address(Size(4)) == []


def test_machines_stay_within_one_budget() -> None:
    assert one_budget(Size(5)) == []


def test_every_order_is_made_once_whatever_is_killed_stopped_or_cut_off() -> None:
    assert disturbed(Size(machines=3, processes=2, orders=20)) == []


def test_two_relays_with_one_queue_lose_no_event_and_keep_the_order() -> None:
    assert two_relays(300) == []
