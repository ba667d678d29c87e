"""Who a resource is: organization, scope, project, stack, kind and name. And what was deleted behind its
back.
"""

from typing import Any

import pytest

from pulumi_hosting.provider.names import IDENTITY, ORGANIZATION, identity_of
from pulumi_hosting.provider.provider_session import ProviderSession
from pulumi_hosting.session.errors import ResourceError
from tests.provider.processes import WEB, provider_process
from tests.support.account import Account

BASE = "pulumi:t/dev/server/web"


@pytest.mark.parametrize(
    ("scope", "organization", "identity"),
    [
        (None, None, "pulumi:t/dev/server/web"),
        (None, "organization", "pulumi:t/dev/server/web"),
        (None, "acme", "pulumi:acme@t/dev/server/web"),
        ("team", None, "pulumi[team]:t/dev/server/web"),
        ("team", "a/b@c", "pulumi[team]:a%2Fb%40c@t/dev/server/web"),
    ],
)
def test_an_identity_names_organization_and_scope(
    scope: str | None, organization: str | None, identity: str
) -> None:
    session = ProviderSession({})
    session.configure({"scope": scope})
    assert session.identity(BASE, organization) == identity
    declared = identity_of("urn:pulumi:dev::t::hosting:index:Server::web", "server")
    assert session.identity(declared, organization) == identity  # dynamic and native are one resource


def test_a_recorded_identity_is_kept(account: Account) -> None:
    web = provider_process(account).create("server", "web", WEB)
    scoped = provider_process(account, scope="team")
    inputs, _ = scoped.of("server").check(web.inputs, {**WEB, IDENTITY: BASE, ORGANIZATION: "acme"})
    assert inputs[IDENTITY] == BASE
    fresh, _ = scoped.of("server").check({}, {**WEB, "name": "new", IDENTITY: BASE, ORGANIZATION: "acme"})
    assert fresh[IDENTITY] == "pulumi[team]:acme@t/dev/server/web"


def test_two_scopes_are_two_servers(account: Account) -> None:
    ours = provider_process(account, scope="ours").create("server", "web", {**WEB, "name": "ours"})
    theirs = provider_process(account, scope="theirs").create("server", "web", {**WEB, "name": "theirs"})
    assert ours.id != theirs.id
    assert sorted(account.living_ids) == sorted([ours.id, theirs.id])
    assert account.moved() == 10


GIVEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "server": (WEB, {"notes": "two"}),
    "domain": ({"name": "example.com"}, {"nameservers": ["ns1.example.net", "ns2.example.net"]}),
    "webhook_subscription": ({"url": "https://hooks.example.com/x", "events": ["*"]}, {"description": "ops"}),
    "ptr": ({"domain": "a.example.com"}, {"domain": "b.example.com"}),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_an_object_deleted_outside_is_reported_as_gone(account: Account, kind: str) -> None:
    """SSH keys and addresses have nothing that changes in place."""
    process = provider_process(account)
    given, change = GIVEN[kind]
    if kind == "ptr":
        given = {**given, "serverId": process.create("server", "base", WEB).id}
    made = process.create(kind, "it", given)
    place = {"server": "servers", "domain": "domains", "webhook_subscription": "webhooks", "ptr": "servers"}[
        kind
    ]
    account.control("DELETE", f"/{place}/{made.id.partition('/')[0]}")
    before = account.control("GET", "/objects")
    later = provider_process(account)
    with pytest.raises(
        ResourceError,
        match=rf"{made.id} is gone: it was deleted outside of this program\. "
        rf"Next: pulumi up --refresh",
    ):
        later.of(kind).update(made.id, made.outputs, {**made.inputs, **change})
    assert account.control("GET", "/objects") == before
    # The advice: the refresh finds it gone, and it is made again.
    assert later.of(kind).read(made.id, made.outputs, made.inputs) is None
