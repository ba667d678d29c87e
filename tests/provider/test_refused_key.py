"""A key that the service refuses ends the run, also one that changes nothing, and is not asked for again. An
account that cannot answer is a warning. Every test ends by asking the account.
"""

from collections.abc import Callable
from typing import Any

import pytest

from pulumi_hosting.api.error_codes import CODES
from pulumi_hosting.client.exceptions import ApiError
from pulumi_hosting.provider.failures import WORDS
from pulumi_hosting.provider.names import ACCOUNT
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS
from tests.emulator.support import PUBLIC_KEY
from tests.provider.processes import WEB, Entry, Process, provider_process
from tests.support.account import Account

REFUSED: dict[str, dict[str, Any]] = {
    "invalid_token": {},
    "key_expired": {"expires_at": "2020-01-01T00:00:00Z"},
    "ip_not_allowed": {"ip_allowlist": ["10.0.0.0/8"]},
}
SEVERAL: dict[str, tuple[str, dict[str, Any]]] = {
    "web": ("server", WEB),
    "db": ("server", {**WEB, "name": "db"}),
    "deploy": ("ssh_key", {"name": "deploy", "publicKey": PUBLIC_KEY}),
    "shop": ("domain", {"name": "example.com", "years": 1.0}),
    "news": ("webhook_subscription", {"url": "https://hooks.example.com/hosting", "events": ["*"]}),
}


def key_with(account: Account, options: dict[str, Any]) -> str:
    """A live key with these options; without any it is revoked."""
    made = account.control("POST", "/keys", {"mode": "live", **options})
    if not options:
        account.control("DELETE", f"/keys/{made['id']}")
    return str(made["key"])


def several(account: Account) -> dict[str, Entry]:
    process = provider_process(account)
    return {name: process.create(kind, name, given) for name, (kind, given) in SEVERAL.items()}


def owned(account: Account) -> dict[str, list[dict[str, Any]]]:
    """What is on the account."""
    return {kind: account.objects(kind) for kind in ("servers", "domains", "ssh_keys", "subscriptions")}


def compare(process: Process, name: str, entry: Entry) -> bool:
    """Whether engines find a difference: check with the old inputs, then compare."""
    kind, given = SEVERAL[name]
    checked = process.check(kind, name, given, entry.inputs)
    return process.of(kind).diff(entry.id, entry.outputs, checked).changes


def changed(process: Process, entries: dict[str, Entry]) -> list[str]:
    """The entries that engines find a difference of."""
    return [name for name, entry in entries.items() if compare(process, name, entry)]


@pytest.mark.parametrize("code", REFUSED)
def test_a_run_that_changes_nothing_ends_with_the_key(account: Account, code: str) -> None:
    entries, before = several(account), owned(account)
    process = provider_process(account, apiKey=key_with(account, REFUSED[code]))
    asked = len(account.control("GET", "/requests"))
    for name, entry in entries.items():
        with pytest.raises(ApiError, match=CODES[code].meaning) as refused:
            compare(process, name, entry)
        step = CODES[code].remedy.replace("{api_key}", "{key_setting}")
        assert f"Next: {WORDS.fill(step)}" in str(refused.value)
    assert [request["path"] for request in account.control("GET", "/requests")[asked:]] == ["/me"]
    assert process.lines == []
    assert owned(account) == before


def test_a_state_without_an_account_is_not_compared_with_a_refused_key(account: Account) -> None:
    web = several(account)["web"]
    process = provider_process(account, apiKey=key_with(account, {}))
    outputs = {name: value for name, value in web.outputs.items() if name != ACCOUNT}
    with pytest.raises(ApiError, match="the API key is not valid"):
        process.of("server").diff(web.id, outputs, web.inputs)
    assert account.living_ids.count(web.id) == 1


@pytest.mark.parametrize("step", ["create", "read", "update", "delete"])
def test_nothing_is_sent_after_the_key_was_refused(account: Account, step: str) -> None:
    """Whichever step meets it first, and whatever follows."""
    entries = several(account)
    charged, kept = account.moved(), account.living_ids
    process = provider_process(account)
    web = process.of("server")
    entry = entries["web"]
    other = process.check("server", "other", {**WEB, "name": "other"})
    process.session.reads.forget(ORDERS_AND_SERVERS)  # what a process knows needs no key
    fault = {"path": ".*", "times": 1, "action": {"status": 401, "code": "key_expired"}}
    account.control("POST", "/faults", fault)
    steps: dict[str, Callable[[], object]] = {
        "check": lambda: web.check({}, {**WEB, "name": "third", "__identity": "pulumi:t/dev/server/third"}),
        "create": lambda: web.create(other),
        "read": lambda: web.read(entry.id, entry.outputs, entry.inputs),
        "update": lambda: web.update(entry.id, entry.outputs, {**entry.inputs, "notes": "new"}),
        "delete": lambda: web.delete(entry.id, entry.outputs),
    }
    with pytest.raises(ApiError, match="the API key has expired"):
        steps[step]()
    asked = len(account.control("GET", "/requests"))
    for later in steps.values():
        with pytest.raises(ApiError, match="the API key has expired"):
            later()
    assert len(account.control("GET", "/requests")) == asked
    assert (account.moved(), account.living_ids) == (charged, kept)


def test_an_account_that_cannot_answer_is_asked_once_and_warned_of_once(account: Account) -> None:
    entries, before = several(account), owned(account)
    process = provider_process(account)
    account.fault({"status": 503, "code": "temporarily_unavailable"}, times=1000)
    asked = len(account.control("GET", "/requests"))
    assert changed(process, entries) == []
    assert {request["path"] for request in account.control("GET", "/requests")[asked:]} == {"/me"}
    assert len(account.control("GET", "/requests")) - asked <= 6  # the attempts of one question
    (line,) = process.lines
    assert "prices and limits were not checked" in line
    assert owned(account) == before


def test_a_missing_scope_of_one_read_ends_nothing(account: Account) -> None:
    entries, before = several(account), owned(account)
    scopes = ["servers:read", "servers:manage"]
    made = account.control("POST", "/keys", {"mode": "live", "scopes": scopes})
    process = provider_process(account, apiKey=made["key"])
    assert changed(process, entries) == []
    assert process.lines == []
    assert owned(account) == before
