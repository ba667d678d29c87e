"""Every operation of the table, through its typed method, answered by the emulator over real HTTP, in both dialects."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting import webhooks
from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import BY_ID, OPERATIONS, Operation
from pulumi_hosting.client import exceptions
from pulumi_hosting.client.results import Document, Done, File, Items, Pages
from tests.contract.stage import HOOKS, PUBLIC_KEY, ApiHarness

Play = Callable[[ApiHarness], Any]


def renew_hourly(stage: ApiHarness) -> Any:
    created = stage.live.servers.create(tariff_id=stage.tariff("VDS-H").id, os="debian-12", hours=1, billing_cycle="hourly")
    assert isinstance(created, m.ServerCreated)
    return stage.live.servers.renew(created.server.id, hours=5)


def register_pending(stage: ApiHarness) -> Any:
    stage.fault("POST", "^/domains$", registrar="pending")
    return stage.domain()


def delete_extra_ip(stage: ApiHarness) -> Any:
    server = stage.server()
    return stage.live.servers.ips.delete(server.id, stage.extra_ip(server.id).id)


def set_ptr(stage: ApiHarness) -> Any:
    server = stage.server()
    (ip,) = (ip for ip in stage.live.servers.ips.list(server.id) if ip.primary and ip.ip_version == 4)
    return stage.live.servers.ips.set_ptr(server.id, ip.id, domain="web.example.com")


def create_server(stage: ApiHarness, **more: Any) -> Any:
    return stage.live.servers.create(tariff_id=stage.tariff().id, os="debian-12", name="web", months=3, **more)


PLAYS: dict[str, list[Play]] = {
    "get_health": [lambda s: s.live.health()],
    "get_openapi": [lambda s: s.live.openapi()],
    "get_me": [lambda s: s.live.me()],
    "get_account": [lambda s: s.live.account.get()],
    "get_balance": [lambda s: s.live.balance.get()],
    "list_transactions": [lambda s: (s.server(), s.live.balance.transactions(direction="debit"))[1]],
    "get_topup_info": [lambda s: s.live.balance.topup_info()],
    "create_topup": [lambda s: s.live.balance.topup(amount=Decimal("25.00"), gateway="card")],
    "list_invoices": [lambda s: (s.server(), s.live.invoices.list(status="paid"))[1]],
    "get_invoice": [lambda s: s.live.invoices.get(s.invoice_id())],
    "get_invoice_pdf": [lambda s: s.live.invoices.pdf(s.invoice_id())],
    "pay_invoice": [lambda s: s.live.invoices.pay(s.unpaid_invoice_id())],
    "create_invoice_payment_link": [
        lambda s: s.live.invoices.payment_link(s.invoice_id()),
        lambda s: s.live.invoices.payment_link(s.invoice_id(), gateway="bank"),
    ],
    "list_tariffs": [lambda s: s.live.catalog.tariffs(), lambda s: s.live.catalog.tariffs(location_id=1)],
    "get_tariff": [lambda s: s.live.catalog.tariff(s.tariff().id)],
    "list_os_images": [lambda s: s.live.catalog.os_images(), lambda s: s.live.catalog.os_images(tariff_id=s.tariff("VDS-Linux").id)],
    "list_locations": [lambda s: s.live.catalog.locations()],
    "list_zones": [lambda s: s.live.catalog.zones()],
    "get_quote": [
        lambda s: s.live.catalog.quote(tariff_id=s.tariff().id, months=12, promo_code="SAVE20"),
        lambda s: s.live.catalog.quote(tariff_id=s.tariff("VDS-H").id, hours=2, billing_cycle="hourly"),
    ],
    "list_servers": [lambda s: (s.server(), s.live.servers.list(status="active"))[1], lambda s: s.live.servers.list(ip="192.0.2.77")],
    "create_server": [
        create_server,
        lambda s: create_server(s, password="abcDEF123!", ssh_key_ids=[s.ssh_key().id], promo_code="SAVE20", custom_fields={"a": "b"}),
        lambda s: s.order(),
    ],
    "get_server": [lambda s: s.live.servers.get(s.server().id), lambda s: s.live.servers.get(s.server().id, include="live")],
    "update_server": [
        lambda s: s.live.servers.update(s.server().id, name="db", notes="größer", auto_renew=True),
        lambda s: s.live.servers.update(s.server().id, notes=None),
    ],
    "delete_server": [lambda s: s.live.servers.delete(s.server().id)],
    "get_server_status": [lambda s: s.live.servers.status(s.server().id)],
    "get_server_refund_quote": [lambda s: s.live.servers.refund_quote(s.server().id)],
    "power_server": [lambda s: s.live.servers.power(s.server().id, action="restart")],
    "reinstall_server": [
        lambda s: s.live.servers.reinstall(s.server().id, os="ubuntu-24.04"),
        lambda s: s.live.servers.reinstall(s.server().id, os="ubuntu-24.04", password="abcDEF123!", ssh_key_ids=[s.ssh_key().id]),
    ],
    "reset_server_password": [lambda s: s.live.servers.reset_password(s.server().id)],
    "renew_server": [lambda s: s.live.servers.renew(s.server().id, months=6), renew_hourly],
    "list_server_ips": [lambda s: s.live.servers.ips.list(s.server().id)],
    "get_server_ip_quote": [lambda s: s.live.servers.ips.quote(s.server().id)],
    "add_server_ip": [lambda s: s.live.servers.ips.add(s.server().id), lambda s: s.live.servers.ips.add(s.server().id, count=1)],
    "delete_server_ip": [delete_extra_ip],
    "set_server_ip_ptr": [set_ptr],
    "list_orders": [lambda s: (s.order(), s.live.orders.list(status="provisioning"))[1]],
    "get_order": [lambda s: s.live.orders.get(s.order().invoice_id), lambda s: s.live.orders.get(s.order("cancelled").invoice_id)],
    "list_ssh_keys": [lambda s: (s.ssh_key(), s.live.ssh_keys.list())[1]],
    "create_ssh_key": [lambda s: s.live.ssh_keys.create(name="laptop", public_key=PUBLIC_KEY)],
    "delete_ssh_key": [lambda s: s.live.ssh_keys.delete(s.ssh_key().id)],
    "check_domain_availability": [
        lambda s: s.live.domains.availability(name="example.com"),
        lambda s: s.live.domains.availability(name="müller.com"),
        lambda s: s.live.domains.availability(name="example.unknown"),
    ],
    "list_domains": [lambda s: (s.domain(), s.live.domains.list(status="active"))[1]],
    "get_domain": [lambda s: s.live.domains.get(s.domain_id())],
    "register_domain": [
        lambda s: s.live.domains.register(
            name="example.com", years=2, nameservers=["ns1.example.net", "ns2.example.net"], privacy=False, promo_code="SAVE20"
        ),
        register_pending,
    ],
    "set_domain_nameservers": [lambda s: s.live.domains.set_nameservers(s.domain_id(), nameservers=("ns1.example.net", "ns2.example.net"))],
    "update_domain": [lambda s: s.live.domains.update(s.domain_id(), auto_renew=True, privacy=False)],
    "renew_domain": [
        lambda s: s.live.domains.renew(s.domain_id(), years=2),
        lambda s: s.slowly("/renew$").domains.renew(s.domain_id(), years=1),
    ],
    "transfer_domain": [lambda s: s.live.domains.transfer(name="example.net", auth_code="EPP-1234")],
    "list_api_keys": [lambda s: s.live.keys.list()],
    "get_api_key": [lambda s: s.live.keys.get(s.live.me().key.id)],
    "revoke_api_key": [lambda s: s.live.keys.revoke(s.live.me().key.id)],
    "list_webhook_events": [lambda s: s.live.webhooks.events()],
    "list_webhooks": [lambda s: (s.webhook(), s.live.webhooks.list())[1]],
    "create_webhook": [lambda s: s.live.webhooks.create(url=f"{HOOKS}/in", events=["server.created"], description="mine")],
    "get_webhook": [lambda s: s.live.webhooks.get(s.webhook().id)],
    "update_webhook": [lambda s: s.live.webhooks.update(s.webhook().id, active=True, events=["ping"], description="x", url=f"{HOOKS}/b")],
    "delete_webhook": [lambda s: s.live.webhooks.delete(s.webhook().id)],
    "rotate_webhook_secret": [lambda s: s.live.webhooks.rotate_secret(s.webhook().id)],
    "test_webhook": [lambda s: s.live.webhooks.test(s.webhook().id)],
    "list_webhook_deliveries": [
        lambda s: s.live.webhooks.deliveries.list(
            s.live.webhooks.list()[0].id if s.delivery_id() else 0, status="delivered", event_type="ping"
        )
    ],
    "get_webhook_delivery": [lambda s: s.live.webhooks.deliveries.get(s.delivery_id())],
    "redeliver_webhook": [lambda s: s.live.webhooks.deliveries.redeliver(s.delivery_id())],
}

# Successes that the client accepts and that the emulator, true to the document, has no reason to give.
TOLERATED = {
    ("delete_server_ip", 204),
    ("revoke_api_key", 204),
    ("delete_webhook", 204),
}


# Statuses that only a live deployment gives: the document's answer to the same is another.
LIVE_ONLY = {("renew_domain", 202)}


def expected_type(operation: Operation, status: int) -> Any:
    model = operation.responses.get(status)
    return {bytes: File, dict: Document, None: Done}.get(model, model)


def status_of(operation: Operation, result: Any) -> int:
    """Checks the type of a result against its row; its HTTP status."""
    if operation.paging == "cursor":
        assert isinstance(result, Pages)
        pages = list(result.pages())
        for page in pages:
            assert isinstance(page, operation.responses[200])
        meta = pages[0].meta
    elif operation.paging == "list":
        assert isinstance(result, Items)
        assert len(result) > 0
        (model,) = operation.responses[200].__pydantic_generic_metadata__["args"]
        assert all(isinstance(item, model) for item in result)
        meta = result.meta
    else:
        meta = result.meta
        assert type(result) is expected_type(operation, meta.status)
    assert meta is not None
    assert meta.operation == operation.id
    assert meta.attempts == 1
    assert (meta.rate_limit is not None) == operation.auth
    assert (meta.idempotency_key is not None) == operation.is_keyed
    assert not meta.sandbox
    status: int = meta.status
    return status


def expected_statuses(operation: Operation, dialect: str) -> set[int]:
    never = TOLERATED if dialect == "live" else TOLERATED | LIVE_ONLY
    declared = {status for status in operation.responses if (operation.id, status) not in never}
    if operation.live_status is None:
        return declared
    return {operation.live_status} if dialect == "live" else declared - {operation.live_status}


def test_every_row_has_a_play() -> None:
    assert list(PLAYS) == list(BY_ID)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_every_operation_answers_its_typed_method_with_every_success_it_has(stage: ApiHarness, operation: Operation) -> None:
    seen = set()
    for number, play in enumerate(PLAYS[operation.id]):
        if number:
            stage.live.close()
            stage.test.close()
            stage.begin()
        seen.add(status_of(operation, play(stage)))
    assert seen == expected_statuses(operation, stage.dialect)


# --- who may -----------------------------------------------------------------------------------------------------------------

BODIES: dict[str, dict[str, Any]] = {
    "create_topup": {"amount": "10.00", "gateway": "card"},
    "create_server": {"tariff_id": 1, "os": "debian-12"},
    "update_server": {"name": "a"},
    "renew_server": {"months": 1},
    "power_server": {"action": "stop"},
    "reinstall_server": {"os": "debian-12"},
    "create_ssh_key": {"name": "a", "public_key": PUBLIC_KEY},
    "register_domain": {"name": "example.com"},
    "set_domain_nameservers": {"nameservers": ["ns1.example.net", "ns2.example.net"]},
    "update_domain": {"privacy": True},
    "renew_domain": {"years": 1},
    "transfer_domain": {"name": "example.com", "auth_code": "code"},
    "create_webhook": {"url": f"{HOOKS}/in", "events": ["ping"]},
    "update_webhook": {"active": True},
}
QUERIES: dict[str, dict[str, Any]] = {"get_quote": {"tariff_id": 1}, "check_domain_availability": {"name": "example.com"}}


def call(client: Any, operation: Operation) -> Any:
    ids = [1] * len(operation.path_parameters)
    return client.call(operation.id, *ids, query=QUERIES.get(operation.id), body=BODIES.get(operation.id))


def test_every_operation_with_scopes_names_those_that_are_missing(stage: ApiHarness) -> None:
    bare = stage.client(
        stage.control("POST", "/keys", {"mode": "live", "scopes": [], "rate_per_minute": 9999, "rate_expensive_per_minute": 9999})["key"]
    )
    with bare:
        for operation in OPERATIONS:
            if operation.scopes:
                with pytest.raises(exceptions.InsufficientScope) as caught:
                    call(bare, operation)
                assert caught.value.required == operation.scopes


def test_every_operation_but_two_wants_a_valid_key(stage: ApiHarness) -> None:
    with stage.client("vk_live_nobodys00000000000000") as stranger:
        for operation in OPERATIONS:
            if operation.auth:
                with pytest.raises(exceptions.Unauthorized):
                    call(stranger, operation)
                # The limit on invalid keys is another matter.
                stage.advance(3)
        assert stranger.health().status == "ok"
        assert stranger.openapi()["openapi"].startswith("3.1")


def test_a_test_key_is_marked_everywhere_and_refused_where_it_must(stage: ApiHarness) -> None:
    for operation in OPERATIONS:
        if operation.sandbox == "forbidden":
            with pytest.raises(exceptions.SandboxRefused):
                call(stage.test, operation)
    server = stage.server(stage.test)
    assert server.is_sandbox
    for result in (stage.test.servers.get(server.id), stage.test.servers.power(server.id, action="stop"), stage.test.balance.get()):
        assert result.meta is not None
        assert result.meta.sandbox
    assert [found.id for found in stage.test.servers.list()] == [server.id]
    assert list(stage.live.servers.list()) == []
    with pytest.raises(exceptions.NotFound):
        stage.live.servers.get(server.id)


# --- what only both sides together show --------------------------------------------------------------------------------------


def test_a_lost_answer_to_an_order_buys_one_server(stage: ApiHarness) -> None:
    stage.fault("POST", "^/servers$", drop="after")
    before = stage.live.balance.get().balance
    created = stage.live.servers.create(tariff_id=stage.tariff().id, os="debian-12", months=1)
    assert isinstance(created, m.ServerCreated)
    assert created.meta is not None
    assert created.meta.attempts == 2
    assert not created.root_password
    assert len(list(stage.live.servers.list())) == 1
    assert before - stage.live.balance.get().balance == created.charged
    first, second = (row for row in stage.requests() if row["path"] == "/servers" and row["method"] == "POST")
    headers = [{name.lower(): value for name, value in row["headers"].items()} for row in (first, second)]
    assert headers[0]["idempotency-key"] == headers[1]["idempotency-key"]
    assert headers[0]["x-request-id"] != headers[1]["x-request-id"]
    assert first["body"] == second["body"]


@pytest.mark.parametrize(
    "action",
    [
        {"drop": "before"},
        {"drop": "after"},
        {"truncate": 10},
        {"status": 503, "code": "temporarily_unavailable", "retry_after": 2},
        {"status": 502, "code": "upstream_error"},
        {"status": 504, "code": "upstream_timeout"},
        {"status": 429, "code": "rate_limited", "retry_after": 3},
    ],
    ids=str,
)
def test_a_read_survives_every_passing_fault(stage: ApiHarness, action: dict[str, Any]) -> None:
    stage.fault("GET", "^/balance$", **action)
    found = stage.live.balance.get()
    assert found.balance == Decimal("1000.00")
    assert found.meta is not None
    assert found.meta.attempts == 2


@pytest.mark.parametrize("action", [{"drop": "after"}, {"truncate": 10}], ids=str)
def test_a_write_without_a_key_is_sent_once_and_its_outcome_is_unknown(stage: ApiHarness, action: dict[str, Any]) -> None:
    stage.fault("POST", "^/ssh-keys$", **action)
    with pytest.raises(exceptions.TransportError) as caught:
        stage.ssh_key()
    assert caught.value.outcome_unknown
    # It was carried out, as the error said it might have been.
    assert [key.name for key in stage.live.ssh_keys.list()] == ["laptop"]


def test_the_rate_limit_is_waited_out(stage: ApiHarness) -> None:
    slow = stage.client(stage.control("POST", "/keys", {"mode": "live", "scopes": "full", "rate_per_minute": 3})["key"])
    attempts = []
    with slow:
        for _ in range(7):
            meta = slow.balance.get().meta
            assert meta is not None
            assert meta.rate_limit is not None
            assert meta.rate_limit.limit == 3
            attempts.append(meta.attempts)
    assert attempts == [1, 1, 1, 2, 1, 1, 2]


def test_a_walk_over_many_pages_finds_everything_once(stage: ApiHarness) -> None:
    for number in range(7):
        stage.live.servers.create(tariff_id=stage.tariff().id, os="debian-12", name=f"web{number}", months=1)
    walk = stage.live.servers.list(limit=3)
    assert [len(page.data) for page in walk.pages()] == [3, 3, 1]
    assert sorted(server.name for server in walk) == [f"web{number}" for number in range(7)]
    cursor = next(iter(walk.pages())).next_cursor
    assert cursor is not None
    assert len(list(stage.live.servers.list(limit=3, cursor=cursor))) == 4
    with pytest.raises(exceptions.BadRequest) as caught:
        list(stage.live.servers.list(limit=3, cursor=cursor, status="stopped"))
    assert caught.value.code == "invalid_cursor"


def test_a_delivery_is_verified_by_our_own_verifier(stage: ApiHarness) -> None:
    hook = stage.webhook()
    now = stage.control("GET", "/")["now"]
    result = stage.live.webhooks.test(hook.id)
    assert (result.ok, result.status) == (True, 204)
    ((body, headers),) = stage.receiver.got
    moment = m.Health.model_validate({"status": "ok", "time": now, "version": "1"}).time.timestamp() if isinstance(now, str) else now
    event = webhooks.verify(body, headers, hook.secret, now=moment)
    assert event.type == "ping"
    assert event.object == {"subscription_id": hook.id, "message": "pong"}
    with pytest.raises(exceptions.WebhookRejected):
        webhooks.verify(body, headers, "whsec_other", now=moment)
    assert webhooks.sign(body, hook.secret, int(moment)) == {name: headers[name] for name in webhooks.sign(body, hook.secret, 1)}


def test_money_comes_back(stage: ApiHarness) -> None:
    before = stage.live.balance.get().balance
    server = stage.server()
    after = stage.live.servers.delete(server.id)
    assert after.refunded is not None
    assert stage.live.balance.get().balance == before - stage.tariff().price_monthly + after.refunded
    assert stage.live.servers.refund_quote is not None


def test_a_refusal_carries_its_figures(stage: ApiHarness) -> None:
    stage.control("PATCH", "/account", {"balance": "1.00"})
    with pytest.raises(exceptions.InsufficientFunds) as caught:
        stage.server()
    error = caught.value
    assert (error.balance, error.required, error.shortfall) == (Decimal("1.00"), Decimal("5.00"), Decimal("4.00"))
    assert error.request_id
