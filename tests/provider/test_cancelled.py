"""A provider process that was told to cancel: it orders nothing more, and begins no other write."""

from typing import Any

import httpx
import pytest

from pulumi_hosting.provider.provider_session import Interrupted
from pulumi_hosting.session.errors import ResourceError
from tests.provider.processes import WEB, Process, provider_process
from tests.support.account import Account

CANCELLED = r"^the run was cancelled; nothing was sent\. Next: run again$"


class Cancelling(httpx.BaseTransport):
    """Cancels the process during the next request that it sends, once ``process`` is set."""

    def __init__(self, account: Account) -> None:
        self.account, self.inner = account, account.transport()
        self.process: Process | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.process is not None:
            self.process.session.cancel()
        return self.inner.handle_request(request)


def test_a_step_that_comes_after_it_sends_nothing(account: Account) -> None:
    process = provider_process(account)
    made = process.create("server", "web", WEB)
    waiting = process.check("server", "second", {**WEB, "name": "second"})
    before = account.control("GET", "/requests")
    process.session.cancel()
    server = process.of("server")
    with pytest.raises(ResourceError, match=CANCELLED):
        server.create(waiting)
    with pytest.raises(ResourceError, match=CANCELLED):
        server.update(made.id, made.outputs, {**made.inputs, "name": "other"})
    with pytest.raises(ResourceError, match=CANCELLED):
        server.delete(made.id, made.outputs)
    assert account.control("GET", "/requests") == before
    assert (account.living_ids, account.charges) == ([made.id], 1)


@pytest.mark.parametrize("kind", ["server", "server_ip", "domain"])
def test_a_step_that_was_about_to_order_does_not(account: Account, kind: str) -> None:
    given: dict[str, Any] = {
        "server": WEB,
        "server_ip": {"serverId": str(account.server(name="other"))},
        "domain": {"name": "example.com"},
    }[kind]
    transport = Cancelling(account)
    process = provider_process(account, transport)
    inputs = process.check(kind, "new", given)
    posts, charges = account.requested("POST"), account.charges
    process.session.clock.sleep(3600)  # what was read for the check is too old for the order
    transport.process = process
    with pytest.raises(Interrupted, match=r"^cancelled before it was ordered\. Next: run again$"):
        process.of(kind).create(inputs)
    assert (account.requested("POST"), account.charges) == (posts, charges)
    # The next run orders it, once.
    provider_process(account).create(kind, "new", given)
    assert account.charges == charges + 1
