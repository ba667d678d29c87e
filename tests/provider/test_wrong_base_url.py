"""With another version in the base URL the service answers "not found" to everything. A refresh and a destroy
stop, and the account stays as it is."""

from collections.abc import Callable
from typing import Any

import pytest

from pulumi_hosting.client.exceptions import ApiError, NotFound
from pulumi_hosting.provider.names import ACCOUNT
from pulumi_hosting.resources import RESOURCES
from tests.emulator.support import PUBLIC_KEY
from tests.provider.processes import WEB, Entry, Process, provider_process
from tests.support.account import Account

GIVEN: dict[str, dict[str, Any]] = {
    "server": WEB,
    "server_ip": {"serverId": "{server}"},
    "ptr": {"serverId": "{server}", "domain": "mail.example.com"},
    "domain": {"name": "example-1.com"},
    "ssh_key": {"name": "me", "publicKey": PUBLIC_KEY},
    "webhook_subscription": {"url": "https://hooks.example.com/x", "events": ["*"]},
}


def created(account: Account, kind: str, **settings: Any) -> Entry:
    first = provider_process(account, **settings)
    web = first.create("server", "web", WEB)
    if kind == "server":
        return web
    given = {
        name: value.format(server=web.id) if isinstance(value, str) else value
        for name, value in GIVEN[kind].items()
    }
    return first.create(kind, "it", given)


def refresh(process: Process, kind: str, entry: Entry) -> object:
    return process.of(kind).read(entry.id, entry.outputs, entry.inputs)


def import_(process: Process, kind: str, entry: Entry) -> object:
    return process.of(kind).read(entry.id, {}, {})


def destroy(process: Process, kind: str, entry: Entry) -> None:
    process.delete(kind, entry)


def test_every_resource_is_tried() -> None:
    assert set(GIVEN) == set(RESOURCES)


@pytest.mark.parametrize("old", [False, True], ids=["", "old state"])
@pytest.mark.parametrize("act", [refresh, import_, destroy], ids=lambda act: act.__name__)
@pytest.mark.parametrize("kind", GIVEN)
def test_nothing_is_gone_at_a_wrong_version(
    account: Account, kind: str, act: Callable[[Process, str, Entry], object], old: bool
) -> None:
    entry = created(account, kind)
    if old:  # that does not say on which account the object is
        del entry.outputs[ACCOUNT]
    before = account.control("GET", "/objects"), account.ledger()
    wrong = provider_process(account, baseUrl=f"{account.base_url[:-1]}2")
    with pytest.raises(ApiError, match=r"no API answers at the base URL .*/v2\. Next: correct") as caught:
        act(wrong, kind, entry)
    assert not isinstance(caught.value, NotFound)
    assert (account.control("GET", "/objects"), account.ledger()) == before
    act(provider_process(account), kind, entry)
