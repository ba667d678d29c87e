"""Every action, the whole way, against the emulator: predicted, done, found done, refused. Charges are in
``test_actions_charged``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.actions import ACTIONS, ActionResult, Failed, act, check
from pulumi_hosting.actions.action import Result, resolve
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import Forbidden, InvalidInput, ServiceState, Unauthorized, WriteRefused
from pulumi_hosting.resources.base import Resource, State
from pulumi_hosting.resources.domain_powers import DOMAIN
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.resources.webhook_subscription_powers import WEBHOOK_SUBSCRIPTION
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import AmbiguousMatch, ResourceError
from tests.resources.conftest import EmulatorClock, KillingTransport, ProcessKilled, ResourceHarness
from tests.support.account import Account

HOOK = "https://hooks.example.com/x"
PASSWORD = "Correct-Horse-9"


@pytest.fixture
def any_dialect(dialect: str, tmp_path: Path) -> ResourceHarness:
    """An account in the dialect of the document, and one in that of a live deployment."""
    return ResourceHarness(Account(provisioning_delay=30, dialect=dialect), tmp_path)


class ItsClock(EmulatorClock):
    """The emulator's time, which other tests have moved."""

    def now(self) -> datetime:
        return datetime.fromisoformat(self.control("GET", "/")["now"])


def do(
    harness: ResourceHarness, kind: str, raw: dict[str, Any], *, dry_run: bool = False, **more: Any
) -> ActionResult:
    """One run of an action, as a new process that remembers nothing."""
    approve = more.pop("approve", lambda cost: None)
    action = ACTIONS[kind]
    context = harness.context(identity="ansible:/play", name_is_identity=True, **more)
    context.session.clock = ItsClock(harness.control)
    return act(context, action, check(action, raw), dry_run=dry_run, approve=approve)


def one(shown: Any) -> dict[str, Any]:
    """What is shown of a single result."""
    assert isinstance(shown, dict)
    return shown


def sent(harness: ResourceHarness, method: str = "POST") -> list[str]:
    """What the last run sent with ``method``."""
    return [line for line in harness.transports[-1].sent if line.startswith(method)]


def server(harness: ResourceHarness, **more: Any) -> str:
    """A server that is there, by its id."""
    return str(
        harness.order(
            {"tariff_id": 1, "os": "debian-12", "name": "web-1", "notes": "", **more},
            identity=f"pulumi:{more}",
        ).id
    )


# --- what all have in common -------------------------------------------------------------------------------


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


def test_what_is_gone_is_not_found(harness: ResourceHarness) -> None:
    harness.account.variant(deleted_servers="listed")
    id = server(harness)
    harness.context().client.servers.delete(int(id))
    with pytest.raises(ResourceError, match=r"there is no server named"):
        resolve(harness.context(), SERVER, name="web-1")
    assert server(harness, notes="new") == resolve(harness.context(), SERVER, name="web-1").id


def test_not_found_by_something_else_proves_nothing(harness: ResourceHarness) -> None:
    harness.fault({"status": 404, "code": "not_found"}, path="^/servers/", method="GET")
    harness.fault({"status": 401, "code": "invalid_token"}, path="^/me$", method="GET")
    with pytest.raises(Unauthorized):
        resolve(harness.context(), SERVER, id="7")


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


# --- server_password ---------------------------------------------------------------------------------------


def test_a_password_is_reset_and_shown_to_its_owner_alone(any_dialect: ResourceHarness) -> None:
    id = server(any_dialect)
    predicted = do(any_dialect, "server_password", {"name": "web-1"}, dry_run=True)
    assert sent(any_dialect) == []
    result = do(any_dialect, "server_password", {"name": "web-1"})
    assert predicted.changed
    assert result.changed
    assert predicted.after == result.after == {"mode": "live", "id": id, "name": "web-1"}
    assert predicted.result.password is None
    secret = result.result.password.reveal()
    assert len(secret) >= 8
    assert secret not in repr(result) + str(result.result) + str(any_dialect.messages)
    assert sent(any_dialect) == [f"POST /v1/servers/{id}/actions/reset-password"]


def test_a_password_whose_answer_is_lost_is_not_asked_for_again(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.fault({"drop": "after"}, path="reset-password$", times=3)
    with pytest.raises(
        Failed,
        match=r"whether the root password of server .* was changed is not "
        r"known",
    ) as caught:
        do(harness, "server_password", {"id": id})
    assert "Next: run again" in str(caught.value)
    assert len(sent(harness)) == 1


def test_the_sixth_reset_in_five_minutes_says_so(harness: ResourceHarness) -> None:
    id = server(harness)
    for _ in range(5):
        do(harness, "server_password", {"id": id})
    with pytest.raises(
        Failed,
        match=r"at most 5 password resets in 5 minutes are made for one "
        r"server",
    ) as caught:
        do(harness, "server_password", {"id": id})
    assert (caught.value.status, caught.value.code) == (429, "rate_limited")
    assert caught.value.request_id
    harness.control("POST", "/clock", {"advance": 301})
    assert do(harness, "server_password", {"id": id}).changed


# --- server_restart, server_reinstall ----------------------------------------------------------------------


def test_a_restart_is_sent_once_each_time(any_dialect: ResourceHarness) -> None:
    id = server(any_dialect)
    predicted = do(any_dialect, "server_restart", {"id": id}, dry_run=True)
    assert sent(any_dialect) == []
    result = do(any_dialect, "server_restart", {"id": id})
    assert predicted.changed
    assert result.changed
    assert predicted.after == result.after
    assert result.result.power == "running"
    assert sent(any_dialect) == [f"POST /v1/servers/{id}/actions/power"]
    assert do(any_dialect, "server_restart", {"id": id}).changed


def test_a_stopped_server_is_started_by_it(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.control("PATCH", f"/servers/{id}", {"status": "stopped", "power": "stopped"})
    predicted, result = (
        do(harness, "server_restart", {"id": id}, dry_run=dry_run) for dry_run in (True, False)
    )
    assert one(result.before)["power"] == "stopped"
    assert result.result.power == predicted.result.power == "running"


def test_a_restart_waits_for_what_runs_already(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.context().client.servers.reinstall(int(id), os="debian-12")
    assert do(harness, "server_restart", {"id": id}).changed
    assert any("another operation is running" in line for line in harness.messages)


def test_a_suspended_server_is_neither_restarted_nor_reinstalled(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.control("PATCH", f"/servers/{id}", {"status": "suspended"})
    for kind, more in (("server_restart", {}), ("server_reinstall", {"erase": id})):
        for dry_run in (True, False):
            with pytest.raises(ResourceError, match=r"is suspended and cannot be re.* nothing was sent"):
                do(harness, kind, {"id": id, **more}, dry_run=dry_run)


def test_a_restart_that_the_service_refuses_is_its_refusal(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.fault({"status": 409, "code": "service_state"}, path="power$")
    with pytest.raises(ServiceState):
        do(harness, "server_restart", {"id": id})


@pytest.mark.parametrize(
    "action", [{"drop": "after"}, {"truncate": 10}, {"status": 503, "code": "temporarily_unavailable"}]
)
def test_a_restart_whose_answer_is_lost_is_not_repeated(
    harness: ResourceHarness, action: dict[str, Any]
) -> None:
    id = server(harness)
    harness.fault(action, path="power$")
    with pytest.raises(Failed, match=r"whether server .* was restarted is not known; nothing was repeated"):
        do(harness, "server_restart", {"id": id})
    assert len(sent(harness)) == 1


def test_a_disk_is_erased_only_for_who_names_the_server_twice(harness: ResourceHarness) -> None:
    id = server(harness)
    for erase in ("web-2", "yes", "true", f"{id}0"):
        for dry_run in (True, False):
            with pytest.raises(
                InvalidInput,
                match=r"to say that this server's disk is to be erased; nothing "
                r"was sent",
            ) as caught:
                do(harness, "server_reinstall", {"id": id, "erase": erase}, dry_run=dry_run)
            assert set(caught.value.fields) == {"erase"}
            assert sent(harness) == []


def test_a_reinstallation_keeps_its_passwords_to_itself(any_dialect: ResourceHarness) -> None:
    id = server(any_dialect)
    raw = {"name": "web-1", "erase": id, "os": "ubuntu-24.04"}
    predicted = do(any_dialect, "server_reinstall", raw, dry_run=True)
    assert sent(any_dialect) == []
    result = do(any_dialect, "server_reinstall", raw)
    assert predicted.changed
    assert result.changed
    assert one(result.after)["os"] == one(predicted.after)["os"] == "ubuntu-24.04"
    assert "erased" in (predicted.note or "")
    generated = result.result.root_password.reveal()
    given = do(any_dialect, "server_reinstall", {**raw, "password": PASSWORD})
    assert given.result.root_password.reveal() == PASSWORD
    for secret in (generated, PASSWORD):
        assert secret not in repr(result) + repr(given) + str(any_dialect.messages)
    assert sent(any_dialect) == [f"POST /v1/servers/{id}/actions/reinstall"]


def test_the_image_is_the_present_one_or_one_of_the_catalog(harness: ResourceHarness) -> None:
    id = server(harness)
    assert do(harness, "server_reinstall", {"id": id, "erase": id}).result.os == "debian-12"
    with pytest.raises(InvalidInput) as caught:
        do(harness, "server_reinstall", {"id": id, "erase": id, "os": "templeos"}, dry_run=True)
    assert set(caught.value.fields) == {"os"}
    excluded = next(
        tariff
        for tariff in harness.context().client.catalog.tariffs()
        if tariff.excluded_os and tariff.in_stock
    )
    other = server(harness, tariff_id=excluded.id, name="web-2")
    with pytest.raises(InvalidInput, match=r"is not offered with tariff"):
        do(
            harness,
            "server_reinstall",
            {"id": other, "erase": other, "os": (excluded.excluded_os or [""])[0]},
        )


def test_a_reinstallation_whose_answer_is_lost_is_not_repeated(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.fault({"drop": "after"}, path="reinstall$")
    with pytest.raises(ResourceError, match=r"whether server .* was reinstalled is not known"):
        do(harness, "server_reinstall", {"id": id, "erase": id, "password": PASSWORD})
    assert len(sent(harness)) == 1


# --- webhooks ----------------------------------------------------------------------------------------------


@contextmanager
def receiver(harness: ResourceHarness, status: int = 200) -> Iterator[None]:
    """A receiver of deliveries that answers with this status."""
    harness.account.receiver_status = status
    harness.control("PUT", "/webhook-routes", {"https://hooks.example.com": "http://127.0.0.1:9"})
    yield
    harness.control("PUT", "/webhook-routes", {})


def subscribed(harness: ResourceHarness, **more: Any) -> str:
    return str(harness.context().client.webhooks.create(url=HOOK, events=["*"], **more).id)


def test_a_probe_changes_nothing_and_says_what_came_back(any_dialect: ResourceHarness) -> None:
    id = subscribed(any_dialect)
    predicted = do(any_dialect, "webhook_test", {"url": HOOK}, dry_run=True)
    unknown = {
        "mode": "live",
        "id": id,
        "url": HOOK,
        "ok": None,
        "status": None,
        "latency_ms": None,
        "detail": None,
    }
    assert (predicted.changed, predicted.after, sent(any_dialect)) == (False, unknown, [])
    with receiver(any_dialect):
        result = do(any_dialect, "webhook_test", {"id": id})
    assert (result.changed, result.result.ok, result.result.status) == (False, True, 200)
    assert result.result.latency_ms is not None
    assert len(sent(any_dialect)) == 1
    with receiver(any_dialect, 500):
        assert do(any_dialect, "webhook_test", {"id": id}).result.ok is False
    unreachable = do(any_dialect, "webhook_test", {"id": id}).result
    assert (unreachable.ok, unreachable.status) == (False, None)
    assert unreachable.detail


def test_a_probe_is_sent_once(harness: ResourceHarness) -> None:
    id = subscribed(harness)
    harness.fault({"drop": "after"}, path="test$")
    with pytest.raises(
        Failed,
        match=r"whether the ping of webhook subscription .* went out is not known; "
        r"nothing was repeated",
    ):
        do(harness, "webhook_test", {"id": id})
    assert len(sent(harness)) == 1


def test_a_disabled_subscription_is_not_probed(harness: ResourceHarness) -> None:
    id = subscribed(harness)
    harness.control("PATCH", f"/webhooks/{id}", {"active": False})
    for dry_run in (True, False):
        with pytest.raises(ResourceError, match=r"is disabled.*; nothing was sent. Next: enable it"):
            do(harness, "webhook_test", {"id": id}, dry_run=dry_run)


def dead_deliveries(harness: ResourceHarness, how_many: int) -> tuple[str, list[str]]:
    """A subscription whose receiver was away for so long that its deliveries died."""
    id = subscribed(harness)
    for number in range(how_many):
        harness.control("POST", "/keys", {"mode": "live", "name": f"k{number}", "scopes": []})
    for _ in range(8):
        harness.control("POST", "/clock", {"advance": 4 * 3600})
    dead = [
        str(found.id) for found in harness.context().client.webhooks.deliveries.list(int(id), status="dead")
    ]
    assert len(dead) == how_many
    return id, dead


def statuses(harness: ResourceHarness, id: str) -> dict[str, str]:
    return {
        str(found.id): str(found.status)
        for found in harness.context().client.webhooks.deliveries.list(int(id))
    }


def test_dead_deliveries_are_queued_once(any_dialect: ResourceHarness) -> None:
    id, dead = dead_deliveries(any_dialect, 3)
    predicted = do(any_dialect, "webhook_redeliver", {"url": HOOK}, dry_run=True)
    assert sent(any_dialect) == []
    result = do(any_dialect, "webhook_redeliver", {"url": HOOK})
    assert predicted.changed
    assert result.changed
    assert predicted.after == result.after
    assert [(item["id"], item["status"]) for item in map(one, result.before or ())] == [
        (one, "dead") for one in dead
    ]
    assert [(item.id, item.status, item.event_type) for item in result.result] == [
        (one, "pending", "key.created") for one in dead
    ]
    assert len(sent(any_dialect)) == 3
    again = do(any_dialect, "webhook_redeliver", {"id": id})
    assert (again.changed, again.after, again.result, sent(any_dialect)) == (False, [], [], [])
    assert again.note


def test_one_delivery_is_queued_and_another_left_alone(any_dialect: ResourceHarness) -> None:
    id, dead = dead_deliveries(any_dialect, 2)
    result = do(any_dialect, "webhook_redeliver", {"id": id, "delivery_id": dead[0]})
    assert (result.changed, [item.status for item in result.result]) == (True, ["pending"])
    assert statuses(any_dialect, id) == {dead[0]: "pending", dead[1]: "dead"}
    again = do(any_dialect, "webhook_redeliver", {"id": id, "delivery_id": dead[0]})
    assert (again.changed, [item.status for item in again.result], sent(any_dialect)) == (
        False,
        ["pending"],
        [],
    )
    assert again.note == f"delivery {dead[0]} is pending, not dead"


def test_a_delivery_of_another_subscription_is_refused(harness: ResourceHarness) -> None:
    _, dead = dead_deliveries(harness, 1)
    other = str(harness.context().client.webhooks.create(url="https://hooks.example.com/y", events=["*"]).id)
    with pytest.raises(ResourceError, match=rf"delivery {dead[0]} is of webhook subscription"):
        do(harness, "webhook_redeliver", {"id": other, "delivery_id": dead[0]})
    with pytest.raises(ResourceError, match=r"there is no delivery with id 999"):
        do(harness, "webhook_redeliver", {"id": other, "delivery_id": "999"})


@pytest.mark.parametrize("at", range(2, 5))
@pytest.mark.parametrize("after", [False, True])
def test_killed_among_several_deliveries_the_next_run_goes_on(
    harness: ResourceHarness, at: int, after: bool
) -> None:
    id, _ = dead_deliveries(harness, 3)
    with pytest.raises(ProcessKilled):
        do(harness, "webhook_redeliver", {"id": id}, transport=KillingTransport(at, after))
    everything_was_queued = (at, after) == (4, True)
    assert do(harness, "webhook_redeliver", {"id": id}).changed is not everything_was_queued
    assert len(sent(harness)) == 4 - at + (not after)
    assert set(statuses(harness, id).values()) == {"pending"}


def test_a_lost_answer_is_looked_up(harness: ResourceHarness) -> None:
    id, dead = dead_deliveries(harness, 1)
    harness.fault({"drop": "after"}, path="redeliver$")
    assert [item.status for item in do(harness, "webhook_redeliver", {"id": id}).result] == ["pending"]
    assert len(sent(harness)) == 1
    assert statuses(harness, id) == {dead[0]: "pending"}


def test_a_request_that_never_arrived_is_reported(harness: ResourceHarness) -> None:
    id, _ = dead_deliveries(harness, 1)
    harness.fault({"drop": "before"}, path="redeliver$")
    with pytest.raises(Failed, match=r"is not queued again. Next: run again"):
        do(harness, "webhook_redeliver", {"id": id})
    assert do(harness, "webhook_redeliver", {"id": id}).changed


def test_the_rate_limit_is_waited_for(harness: ResourceHarness) -> None:
    id, _ = dead_deliveries(harness, 3)
    slow = harness.control(
        "POST", "/keys", {"mode": "live", "scopes": "full", "rate_expensive_per_minute": 1}
    )["key"]
    assert len(do(harness, "webhook_redeliver", {"id": id}, key=slow).result) == 3
    assert any("waiting for the rate limit" in line for line in harness.messages)


def test_a_rate_limit_that_does_not_end_is_reported(harness: ResourceHarness) -> None:
    id, _ = dead_deliveries(harness, 3)
    slow = harness.control(
        "POST", "/keys", {"mode": "live", "scopes": "full", "rate_expensive_per_minute": 1}
    )["key"]
    with pytest.raises(Failed, match=r"1 of 3 deliveries are queued again. Next: run again for the others"):
        do(harness, "webhook_redeliver", {"id": id}, key=slow, wait_timeout=0.0)


# --- api_key_revoke ----------------------------------------------------------------------------------------


def new_key(harness: ResourceHarness, mode: str = "live") -> tuple[str, str]:
    made = harness.control("POST", "/keys", {"mode": mode, "name": "ci", "scopes": "read_only"})
    return str(made["id"]), made["key"]


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
def test_the_lost_answer_of_a_revocation_is_made_out(
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


def test_a_missing_scope_is_the_services_word(harness: ResourceHarness) -> None:
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
