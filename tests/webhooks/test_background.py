"""Endless retries, and warnings that strangers cannot multiply."""

import asyncio
import logging

import pytest

from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.webhooks.background import LimitedWarnings, retry_until_success
from tests.webhooks.support import no_pause


def test_pauses_grow_to_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def action() -> str:
        if len(pauses) < 8:
            raise OSError("no\nluck " * 200)
        return "done"

    assert asyncio.run(retry_until_success("cannot do it", action, sleep)) == "done"
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert caplog.messages[0].startswith("cannot do it: no luck no luck")
    assert len(caplog.messages[0]) < 350


@pytest.mark.parametrize("error", [ConfigurationError("wrong option"), KeyError("a mistake of ours")])
def test_what_would_fail_again_is_not_retried(error: Exception) -> None:
    async def action() -> None:
        raise error

    with pytest.raises(type(error)):
        asyncio.run(retry_until_success("cannot do it", action, no_pause))


def test_unauthenticated_requests_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    warnings = LimitedWarnings(clock=lambda: now[0])
    for moment in (0, 1, 59, 61, 62, 200):
        now[0] = 100.0 + moment
        with caplog.at_level(logging.WARNING):
            warnings.warn(f"refused at {moment}")
    assert caplog.messages == [
        "refused at 0",
        "refused at 61 (and 2 more since the last line)",
        "refused at 200 (and 1 more since the last line)",
    ]
