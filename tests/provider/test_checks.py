"""What a check says of each wrong input, before anything is sent: the field, why, and no value."""

import re
from typing import Any

import pytest

from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.failures import check_failure
from pulumi_hosting.provider.names import camel
from pulumi_hosting.provider.provider_session import ProviderSession
from pulumi_hosting.resources import RESOURCES
from tests.provider.processes import provider_process
from tests.pulumi.test_every_resource import ALL
from tests.pulumi.test_preview import CANARY, WRONG
from tests.support.account import Account

KINDS = {"Server": "server", "Domain": "domain", "SshKey": "ssh_key", "ServerIp": "server_ip", "Ptr": "ptr"}
KINDS["WebhookSubscription"] = "webhook_subscription"
GOOD: dict[str, dict[str, Any]] = {KINDS[kind]: given for kind, given in ALL.values()}
GOOD["server_ip"] = GOOD["ptr"] = {"server_id": "1"}
GOOD["ptr"] = {"server_id": "1", "domain": "mail.example.com"}

# One value that no field of that name takes.
BAD: dict[str, Any] = {
    "tariff_id": "VDS-1",
    "tariff": "x" * 1001,
    "os": "",
    "name": "no name: spaces!",
    "months": 2.0,
    "hours": 721.0,
    "billing_cycle": "weekly",
    "ssh_key_ids": ["me"],
    "password": "x",
    "rebuild": "always",
    "promo_code": "x" * 65,
    "custom_fields": "no map",
    "keep_paid": "soon",
    "auto_renew": "yes",
    "notes": 5.0,
    "power": "paused",
    "adopt_id": -1.0,
    "order_attempt": -1.0,
    "ready": "https",
    "years": 11.0,
    "nameservers": ["ns1.example.net"],
    "privacy": "yes",
    "auth_code": "",
    "public_key": "ssh-ed25519",
    "server_id": "web",
    "address": "300.1.1.1",
    "domain": "localhost",
    "url": "https://169.254.169.254/",
    "events": [],
    "description": 5.0,
    "active": "yes",
    "rotation": 5.0,
}


def test_what_an_index_of_ignore_changes_makes_of_events_is_named() -> None:
    """``ignore_changes=["events[0]"]``: engines put the old item of that place into the new list."""
    given = {"url": "https://hooks.example.com/x", "events": ["balance.low", "balance.low"]}
    adapter = Adapter(RESOURCES["webhook_subscription"], ProviderSession({}))
    _, failures = adapter.check({}, given)
    assert failures == {"events": "must name each event type once, and balance.low is there twice"}


def test_an_address_has_no_zone() -> None:
    given = {"server_id": "1", "address": "fe80::1%eth0", "domain": "www.example.com"}
    _, failures = Adapter(RESOURCES["ptr"], ProviderSession({})).check({}, wire(given))
    assert failures == {"address": "must be an IPv4 or IPv6 address"}


def wire(values: dict[str, Any]) -> dict[str, Any]:
    return {camel(name): value for name, value in values.items()}


@pytest.mark.parametrize(
    ("kind", "field"),
    [(kind, field) for kind, resource in RESOURCES.items() for field in resource.Inputs.model_fields],
)
def test_every_field_refuses_what_is_wrong_and_names_itself(kind: str, field: str) -> None:
    """Without an account: nothing can be asked, let alone sent."""
    bad = "" if (kind, field) == ("ssh_key", "name") else BAD[field]  # a key may have any name
    given = {name: value for name, value in GOOD[kind].items() if name != field}
    _, failures = Adapter(RESOURCES[kind], ProviderSession({})).check({}, wire({**given, field: bad}))
    assert field in failures, failures
    assert not re.search(r"\bx{20}", failures[field])


@pytest.mark.parametrize(
    ("kind", "arguments", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_check_asks_the_account_where_only_it_can_tell(
    account: Account, kind: str, arguments: dict[str, Any], message: str
) -> None:
    process = provider_process(account)
    _, failures = process.of(KINDS[kind]).check(
        {}, wire({"name": "it", **arguments} if kind in ("Server", "SshKey") else arguments)
    )
    field, _, reason = message.partition(": ")
    assert failures[field].startswith(reason)
    assert failures.keys() <= {field, "server_id"}  # there is no server 1 either
    assert CANARY not in f"{failures} {process.lines}"


def test_a_service_that_cannot_answer_is_not_reported_as_a_user_error(account: Account) -> None:
    process = provider_process(account)
    account.fault({"status": 503, "code": "temporarily_unavailable", "retry_after": 0}, times=100)
    _, failures = process.of("server").check({}, wire({"tariff_id": 1.0, "os": "debian-12", "name": "web"}))
    assert failures == {}
    assert any("prices and limits were not checked" in line for line in process.lines)


def test_one_check_names_every_wrong_field(account: Account) -> None:
    wrong = {"tariff_id": 1.0, "os": "templeos", "months": 2.0, "name": "web"}
    _, failures = provider_process(account).of("server").check({}, wire(wrong))
    assert failures.keys() == {"os", "months"}
    assert failures["months"] == "must be one of 1, 3, 6, 12, and is 2"
    assert check_failure("os", failures["os"]).endswith(". Next: correct os")
