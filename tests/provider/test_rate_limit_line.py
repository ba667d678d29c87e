"""A wait for the rate limit is shown beside the resource that waits, and ends when the run is cancelled."""

import pytest

from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.provider_session import Interrupted
from pulumi_hosting.resources import RESOURCES
from tests.provider.processes import provider_process
from tests.support.account import Account


def test_the_wait_is_shown_beside_the_resource() -> None:
    process, told = provider_process(Account()), list[str]()
    Adapter(RESOURCES["server"], process.session, told.append)
    process.session.client.rate_limiter.on_wait("rate limit reached: waiting 41 s, 12 requests ahead")
    assert told == ["rate limit reached: waiting 41 s, 12 requests ahead"]


def test_the_wait_ends_when_the_run_is_cancelled() -> None:
    from pulumi_hosting.provider.provider_session import InterruptibleClock

    process = provider_process(Account())
    process.session.clock = InterruptibleClock()
    process.session.cancel()
    with pytest.raises(Interrupted):
        process.session.client.rate_limiter.sleep(3600)
