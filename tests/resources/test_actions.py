"""What all actions have in common, and the revocation of a key."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.actions import ACTIONS, Failed, act, check
from pulumi_hosting.actions.action import Result, resolve
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import (
    ApiError,
    Forbidden,
    InvalidInput,
    NotFound,
    Unauthorized,
    WriteRefused,
)
from pulumi_hosting.resources.base import Resource, State
from pulumi_hosting.resources.domain_powers import DOMAIN
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.resources.webhook_subscription import WEBHOOK_SUBSCRIPTION
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import AmbiguousMatch, ResourceError
from tests.resources.actions import HOOK, do, new_key, one, sent, server
from tests.resources.conftest import ResourceHarness


def test_every_action_describes_itself(harness: ResourceHarness) -> None:
    known = set(harness.context().client.me().available_scopes or ())
    for kind, action in ACTIONS.items():
        assert action.kind == kind
        assert action.title
        assert action.result.isidentifier()
        assert set(action.scopes) <= known, kind
        assert issubclass(action.Result, Result | State)
        for model in (action.Inputs, action.Result):
            assert [name for name, info in model.model_fields.items() if not info.description] == [], kind


def test_the_actions_are_these() -> None:
    assert set(ACTIONS) == {
        "server_renew",
        "server_password",
        "server_restart",
        "server_reinstall",
        "domain_renew",
        "invoice_pay",
        "invoice_payment_link",
        "balance_topup",
        "webhook_test",
        "webhook_redeliver",
        "api_key_revoke",
    }


@pytest.mark.parametrize(
    ("kind", "raw", "field"),
    [
        ("server_renew", {"until": "2030-01-01"}, "id"),
        ("server_renew", {"id": "1", "name": "web-1", "until": "2030-01-01"}, "id"),
        ("server_renew", {"id": "1"}, "until"),
        ("server_renew", {"id": "1", "until": "soon"}, "until"),
        ("server_renew", {"id": "1", "until": "2030-01-01T00:00:00"}, "until"),
        ("server_renew", {"id": "1", "until": "2030-01-01", "months": 2}, "months"),
        ("server_renew", {"id": "1", "until": "2030-01-01", "hours": 721}, "hours"),
        ("server_renew", {"id": "1", "until": "2030-01-01", "months": 1, "hours": 1}, "hours"),
        ("domain_renew", {"name": "example-1.com", "until": "2030-01-01", "years": 11}, "years"),
        ("server_password", {"id": "web"}, "id"),
        ("server_restart", {"id": "1", "force": True}, "force"),
        ("server_reinstall", {"id": "1"}, "erase"),
        ("server_reinstall", {"id": "1", "erase": "1", "password": "short"}, "password"),
        ("invoice_pay", {"id": "0"}, "id"),
        ("balance_topup", {"amount": "5.001", "gateway": "card", "balance_below": "1.00"}, "amount"),
        ("balance_topup", {"amount": "5.00", "gateway": "card", "balance_below": "-1.00"}, "balance_below"),
        ("webhook_test", {"id": "1", "url": HOOK}, "id"),
        ("webhook_redeliver", {"url": HOOK, "delivery_id": "x"}, "delivery_id"),
        ("api_key_revoke", {}, "key_id"),
    ],
)
def test_inputs_are_refused_by_field(kind: str, raw: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(ACTIONS[kind], raw)
    assert set(caught.value.fields) == {field}
    assert "short" not in str(caught.value)


def test_a_date_stands_for_its_start_and_a_zone_for_its_moment() -> None:
    for spelling in ("2030-01-31", "2030-01-31T00:00:00Z", "2030-01-31T02:00:00+02:00"):
        inputs: Any = check(ACTIONS["server_renew"], {"id": 1, "until": spelling})
        assert (inputs.id, inputs.until) == ("1", "2030-01-31T00:00:00Z")


# --- what is meant -----------------------------------------------------------------------------------------


def test_an_object_is_found_by_id_and_by_its_natural_key(harness: ResourceHarness) -> None:
    id = server(harness)
    domain = harness.context().client.domains.register(name="münster-1.com")
    hook = harness.context().client.webhooks.create(url=HOOK, events=["*"])
    context = harness.context()
    cases: tuple[tuple[Resource[Any, Any], str, dict[str, str]], ...] = (
        (SERVER, id, {"name": "web-1"}),
        (DOMAIN, str(domain.domain_id), {"name": "MÜNSTER-1.com."}),
        (WEBHOOK_SUBSCRIPTION, str(hook.id), {"url": "https://HOOKS.example.com:443/x"}),
    )
    for resource, found, key in cases:
        by_id, by_key = resolve(context, resource, id=found), resolve(context, resource, **key)
        assert by_id.id == by_key.id == found
        assert by_id.mode == "live"
        assert set(by_id.shown()) == set(by_key.shown())


def test_nothing_found_and_several_found_read_alike_for_every_resource(harness: ResourceHarness) -> None:
    context = harness.context()
    cases: tuple[tuple[Resource[Any, Any], dict[str, str], str], ...] = (
        (SERVER, {"id": "7"}, "server with id 7"),
        (SERVER, {"name": "web-9"}, "server named 'web-9'"),
        (DOMAIN, {"id": "7"}, "domain with id 7"),
        (DOMAIN, {"name": "example-9.com"}, "domain named 'example-9.com'"),
        (WEBHOOK_SUBSCRIPTION, {"id": "7"}, "webhook subscription with id 7"),
        (WEBHOOK_SUBSCRIPTION, {"url": HOOK}, f"webhook subscription with url {HOOK}"),
    )
    for resource, key, named in cases:
        with pytest.raises(ResourceError, match=rf"there is no {named} on this account\. Next: "):
            resolve(context, resource, **key)
    ids = {server(harness), server(harness, order_attempt=1)}
    with pytest.raises(AmbiguousMatch, match=r"server name 'web-1' matches several objects") as caught:
        resolve(harness.context(), SERVER, name="web-1")
    assert set(caught.value.ids) == ids
    with pytest.raises(InvalidInput) as refused:
        resolve(context, DOMAIN, name="..")
    assert set(refused.value.fields) == {"name"}


def test_a_deleted_server_is_not_found_by_its_name(harness: ResourceHarness) -> None:
    harness.account.variant(deleted_servers="listed")
    id = server(harness)
    harness.context().client.servers.delete(int(id))
    with pytest.raises(ResourceError, match=r"there is no server named"):
        resolve(harness.context(), SERVER, name="web-1")
    assert server(harness, notes="new") == resolve(harness.context(), SERVER, name="web-1").id


def test_not_found_by_something_else_proves_nothing(harness: ResourceHarness) -> None:
    harness.fault({"status": 404, "code": "not_found"}, path="^/servers/", method="GET")
    harness.fault({"status": 401, "code": "invalid_token"}, path="^/me$", method="GET")
    with pytest.raises(ApiError, match="does not prove that the object is gone") as caught:
        resolve(harness.context(), SERVER, id="7")
    assert not isinstance(caught.value, NotFound)


# --- a key of the other mode -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("server_renew", {"until": "2027-12-31"}),
        ("server_password", {}),
        ("server_restart", {}),
        ("server_reinstall", {"erase": "web-1"}),
    ],
)
def test_a_test_key_looks_at_a_real_server_and_leaves_it_alone(
    harness: ResourceHarness, kind: str, more: dict[str, Any]
) -> None:
    id = server(harness)
    if kind == "server_renew":
        more = {"until": _due(harness, id, days=10)}
    key = harness.account.test_key
    predicted = do(harness, kind, {"id": id, **more}, key=key, dry_run=True)
    assert predicted.changed
    assert one(predicted.after)["mode"] == "live"
    with pytest.raises(
        ResourceError,
        match=r"a test key may look at it but never change it; nothing was "
        r"sent",
    ):
        do(harness, kind, {"id": id, **more}, key=key)
    assert sent(harness) == []


def test_a_test_key_leaves_a_real_domain_alone(harness: ResourceHarness) -> None:
    harness.context().client.domains.register(name="example-1.com")
    (domain,) = harness.context().client.domains.list()
    paid_until = domain.expires_at
    assert paid_until is not None
    raw = {"name": "example-1.com", "until": (paid_until + timedelta(days=30)).date().isoformat()}
    assert do(harness, "domain_renew", raw, key=harness.account.test_key, dry_run=True).changed
    with pytest.raises(
        ResourceError,
        match=r"a test key may look at it but never change it; nothing was "
        r"sent",
    ):
        do(harness, "domain_renew", raw, key=harness.account.test_key)
    assert sent(harness) == []


def test_a_live_key_does_not_see_what_was_simulated(harness: ResourceHarness) -> None:
    id = str(harness.order(key=harness.account.test_key).id)
    with pytest.raises(ResourceError, match=r"there is no server with id"):
        do(harness, "server_restart", {"id": id})
    result = do(harness, "server_restart", {"id": id}, key=harness.account.test_key)
    assert (result.changed, one(result.after)["mode"]) == (True, "test")


def test_webhooks_are_closed_to_test_keys(harness: ResourceHarness) -> None:
    for kind in ("webhook_test", "webhook_redeliver"):
        with pytest.raises(ResourceError, match=r"cannot be read with a test key; nothing was sent"):
            do(harness, kind, {"url": HOOK}, key=harness.account.test_key)


def _due(harness: ResourceHarness, id: str, *, days: float) -> str:
    billing = harness.context().client.servers.get(int(id)).billing
    assert billing is not None
    assert billing.next_due_at is not None
    return (billing.next_due_at + timedelta(days=days)).isoformat()


@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_key_revokes_itself_and_nothing_is_read_with_it_afterwards(
    any_dialect: ResourceHarness, mode: str
) -> None:
    id, key = new_key(any_dialect, mode)
    predicted = do(any_dialect, "api_key_revoke", {"key_id": id}, key=key, dry_run=True)
    assert sent(any_dialect, "DELETE") == []
    result = do(any_dialect, "api_key_revoke", {"key_id": id}, key=key)
    assert predicted.changed
    assert result.changed
    assert set(predicted.after or {}) == set(result.after or {})
    assert (result.result.id, result.result.status, result.result.mode, predicted.result.status) == (
        id,
        "revoked",
        mode,
        "revoked",
    )
    assert any_dialect.transports[-1].sent[-1] == f"DELETE /v1/keys/{id}"
    assert key not in repr(result)
    with pytest.raises(Unauthorized):
        do(any_dialect, "api_key_revoke", {"key_id": id}, key=key)


def test_no_key_revokes_another(harness: ResourceHarness) -> None:
    id, _ = new_key(harness)
    own = harness.context().client.me().key.id
    for dry_run in (True, False):
        with pytest.raises(
            ResourceError,
            match=rf"key_id is {id}, and the key that makes the call is {own}: "
            rf".* nothing was sent",
        ):
            do(harness, "api_key_revoke", {"key_id": id}, dry_run=dry_run)
    assert sent(harness, "DELETE") == []


@pytest.mark.parametrize(
    ("action", "revoked"), [({"drop": "after"}, True), ({"drop": "before", "times": 9}, False)]
)
def test_after_a_lost_answer_the_account_shows_a_revocation(
    harness: ResourceHarness, action: dict[str, Any], revoked: bool
) -> None:
    id, key = new_key(harness)
    times = action.pop("times", 1)
    harness.fault(action, path="^/keys/", method="DELETE", times=times)
    if revoked:
        assert do(harness, "api_key_revoke", {"key_id": id}, key=key).result.status == "revoked"
        return
    with pytest.raises(Failed, match=rf"whether key {id} was revoked is not known"):
        do(harness, "api_key_revoke", {"key_id": id}, key=key)
    harness.control("DELETE", "/faults")
    assert do(harness, "api_key_revoke", {"key_id": id}, key=key).changed


# --- refusals read alike -----------------------------------------------------------------------------------


def test_a_missing_scope_is_reported_by_the_service(harness: ResourceHarness) -> None:
    id = server(harness)
    _, key = new_key(harness)
    with pytest.raises(Forbidden):
        do(harness, "server_restart", {"id": id}, key=key)


def test_a_dry_run_sends_no_write_even_to_a_client_that_would_refuse_it(harness: ResourceHarness) -> None:
    id = server(harness)
    context = harness.context(
        client=Client(
            harness.account.live_key,
            harness.account.base_url,
            read_only=True,
            transport=harness.account.transport(),
        )
    )
    action = ACTIONS["server_restart"]
    assert act(context, action, check(action, {"id": id}), dry_run=True).changed
    with pytest.raises(WriteRefused):
        act(context, action, check(action, {"id": id}))
    context.client.close()


def test_a_refused_cost_sends_nothing(harness: ResourceHarness) -> None:
    id = server(harness)

    def refuse(cost: Cost) -> None:
        assert cost.amount == Decimal("5.00")
        raise ResourceError("too expensive")

    for dry_run in (True, False):
        with pytest.raises(ResourceError, match=r"too expensive"):
            do(
                harness,
                "server_renew",
                {"id": id, "until": _due(harness, id, days=1)},
                approve=refuse,
                dry_run=dry_run,
            )
        assert sent(harness) == []
