"""Every operation, called through its typed method, in both dialects: client and emulator agree."""

from collections.abc import Callable
from decimal import Decimal
from operator import attrgetter
from typing import Any

import pytest

from pulumi_hosting import webhooks
from pulumi_hosting.api import models as m
from pulumi_hosting.api.openapi import document
from pulumi_hosting.api.operations import BY_ID, OPERATIONS, Operation
from pulumi_hosting.client import exceptions
from pulumi_hosting.client.results import Document, Done, File, Items, Pages
from tests.contract.harness import HOOKS, PUBLIC_KEY, ApiHarness
from tests.support.operations import examples

Play = Callable[[ApiHarness], Any]


def renew_hourly(api: ApiHarness) -> Any:
    created = api.live.servers.create(
        tariff_id=api.tariff("VDS-H").id, os="debian-12", hours=1, billing_cycle="hourly"
    )
    assert isinstance(created, m.ServerCreated)
    return api.live.servers.renew(created.server.id, hours=5)


def register_pending(api: ApiHarness) -> Any:
    api.fault("POST", "^/domains$", registrar="pending")
    return api.domain()


def delete_extra_ip(api: ApiHarness) -> Any:
    server = api.server()
    return api.live.servers.ips.delete(server.id, api.extra_ip(server.id).id)


def set_ptr(api: ApiHarness) -> Any:
    server = api.server()
    (ip,) = (ip for ip in api.live.servers.ips.list(server.id) if ip.primary and ip.ip_version == 4)
    return api.live.servers.ips.set_ptr(server.id, ip.id, domain="web.example.com")


def create_server(api: ApiHarness, **more: Any) -> Any:
    return api.live.servers.create(tariff_id=api.tariff().id, os="debian-12", name="web", months=3, **more)


EXPLICIT_PLAYS: dict[str, list[Play]] = {
    "list_transactions": [lambda s: (s.server(), s.live.balance.transactions(direction="debit"))[1]],
    "create_topup": [lambda s: s.live.balance.topup(amount=Decimal("25.00"), gateway="card")],
    "list_invoices": [lambda s: (s.server(), s.live.invoices.list(status="paid"))[1]],
    "pay_invoice": [lambda s: s.live.invoices.pay(s.unpaid_invoice_id())],
    "create_invoice_payment_link": [
        lambda s: s.live.invoices.payment_link(s.invoice_id()),
        lambda s: s.live.invoices.payment_link(s.invoice_id(), gateway="bank"),
    ],
    "list_tariffs": [lambda s: s.live.catalog.tariffs(), lambda s: s.live.catalog.tariffs(location_id=1)],
    "list_os_images": [
        lambda s: s.live.catalog.os_images(),
        lambda s: s.live.catalog.os_images(tariff_id=s.tariff("VDS-Linux").id),
    ],
    "get_quote": [
        lambda s: s.live.catalog.quote(tariff_id=s.tariff().id, months=12, promo_code="SAVE20"),
        lambda s: s.live.catalog.quote(tariff_id=s.tariff("VDS-H").id, hours=2, billing_cycle="hourly"),
    ],
    "list_servers": [
        lambda s: (s.server(), s.live.servers.list(status="active"))[1],
        lambda s: s.live.servers.list(ip="192.0.2.77"),
    ],
    "create_server": [
        create_server,
        lambda s: create_server(
            s,
            password="abcDEF123!",
            ssh_key_ids=[s.ssh_key().id],
            promo_code="SAVE20",
            custom_fields={"a": "b"},
        ),
        lambda s: s.order(),
    ],
    "get_server": [
        lambda s: s.live.servers.get(s.server().id),
        lambda s: s.live.servers.get(s.server().id, include="live"),
    ],
    "update_server": [
        lambda s: s.live.servers.update(s.server().id, name="db", notes="größer", auto_renew=True),
        lambda s: s.live.servers.update(s.server().id, notes=None),
    ],
    "delete_server": [lambda s: s.live.servers.delete(s.server().id)],
    "power_server": [lambda s: s.live.servers.power(s.server().id, action="restart")],
    "reinstall_server": [
        lambda s: s.live.servers.reinstall(s.server().id, os="ubuntu-24.04"),
        lambda s: s.live.servers.reinstall(
            s.server().id, os="ubuntu-24.04", password="abcDEF123!", ssh_key_ids=[s.ssh_key().id]
        ),
    ],
    "reset_server_password": [lambda s: s.live.servers.reset_password(s.server().id)],
    "renew_server": [lambda s: s.live.servers.renew(s.server().id, months=6), renew_hourly],
    "add_server_ip": [
        lambda s: s.live.servers.ips.add(s.server().id),
        lambda s: s.live.servers.ips.add(s.server().id, count=1),
    ],
    "delete_server_ip": [delete_extra_ip],
    "set_server_ip_ptr": [set_ptr],
    "list_orders": [lambda s: (s.order(), s.live.orders.list(status="provisioning"))[1]],
    "get_order": [
        lambda s: s.live.orders.get(s.order().invoice_id),
        lambda s: s.live.orders.get(s.order("cancelled").invoice_id),
    ],
    "list_ssh_keys": [lambda s: (s.ssh_key(), s.live.ssh_keys.list())[1]],
    "create_ssh_key": [lambda s: s.live.ssh_keys.create(name="laptop", public_key=PUBLIC_KEY)],
    "delete_ssh_key": [lambda s: s.live.ssh_keys.delete(s.ssh_key().id)],
    "check_domain_availability": [
        lambda s: s.live.domains.availability(name="example.com"),
        lambda s: s.live.domains.availability(name="müller.com"),
        lambda s: s.live.domains.availability(name="example.unknown"),
    ],
    "list_domains": [lambda s: (s.domain(), s.live.domains.list(status="active"))[1]],
    "register_domain": [
        lambda s: s.live.domains.register(
            name="example.com",
            years=2,
            nameservers=["ns1.example.net", "ns2.example.net"],
            privacy=False,
            promo_code="SAVE20",
        ),
        register_pending,
    ],
    "set_domain_nameservers": [
        lambda s: s.live.domains.set_nameservers(
            s.domain_id(), nameservers=("ns1.example.net", "ns2.example.net")
        )
    ],
    "update_domain": [lambda s: s.live.domains.update(s.domain_id(), auto_renew=True, privacy=False)],
    "renew_domain": [
        lambda s: s.live.domains.renew(s.domain_id(), years=2),
        lambda s: s.with_slow_registrar("/renew$").domains.renew(s.domain_id(), years=1),
    ],
    "transfer_domain": [lambda s: s.live.domains.transfer(name="example.net", auth_code="EPP-1234")],
    "revoke_api_key": [lambda s: s.live.keys.revoke(s.live.me().key.id)],
    "list_webhooks": [lambda s: (s.webhook(), s.live.webhooks.list())[1]],
    "create_webhook": [
        lambda s: s.live.webhooks.create(url=f"{HOOKS}/in", events=["server.created"], description="mine")
    ],
    "update_webhook": [
        lambda s: s.live.webhooks.update(
            s.webhook().id, active=True, events=["ping"], description="x", url=f"{HOOKS}/b"
        )
    ],
    "delete_webhook": [lambda s: s.live.webhooks.delete(s.webhook().id)],
    "rotate_webhook_secret": [lambda s: s.live.webhooks.rotate_secret(s.webhook().id)],
    "test_webhook": [lambda s: s.live.webhooks.test(s.webhook().id)],
    "list_webhook_deliveries": [
        lambda s: s.live.webhooks.deliveries.list(
            s.live.webhooks.list()[0].id if s.delivery_id() else 0, status="delivered", event_type="ping"
        )
    ],
    "redeliver_webhook": [lambda s: s.live.webhooks.deliveries.redeliver(s.delivery_id())],
}


def derived_play(operation: Operation) -> Play:
    """A call with what the path needs and the examples of the fields."""

    def play(api: ApiHarness) -> Any:
        given = api.arguments(operation)
        return attrgetter(operation.call)(api.live)(*given.ids, **given.query, **(given.body or {}))

    return play


PLAYS = {
    operation.id: EXPLICIT_PLAYS[operation.id]
    if operation.id in EXPLICIT_PLAYS
    else [derived_play(operation)]
    for operation in OPERATIONS
}

# Successes that the client accepts and the emulator never sends.
TOLERATED = {
    ("delete_server_ip", 204),
    ("revoke_api_key", 204),
    ("delete_webhook", 204),
}


# Statuses that only a live deployment sends.
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


def test_explicit_plays_belong_to_operations() -> None:
    assert set(EXPLICIT_PLAYS) <= set(BY_ID)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_every_operation_answers_its_typed_method_with_every_success_it_has(
    api: ApiHarness, operation: Operation
) -> None:
    seen = set()
    for number, play in enumerate(PLAYS[operation.id]):
        if number:
            api.live.close()
            api.test.close()
            api.begin()
        seen.add(status_of(operation, play(api)))
    assert seen == expected_statuses(operation, api.dialect)


def test_the_served_document_is_generated_from_the_table(api: ApiHarness, dialect: str) -> None:
    """tests/emulator tries its bounds in each dialect."""
    from openapi_spec_validator import validate  # half a second, in each process of the tests

    served, expected = api.live.openapi(), document()
    validate(served)
    assert set(served["components"].pop("schemas")) == set(expected["components"].pop("schemas"))
    for operation in OPERATIONS:
        if dialect == "live" and operation.live_expensive:
            expected["paths"][operation.path][operation.method.lower()]["x-expensive"] = True
    assert served == expected


# --- keys and scopes --------------------------------------------------------------------------------------

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
QUERIES: dict[str, dict[str, Any]] = {
    "get_quote": {"tariff_id": 1},
    "check_domain_availability": {"name": "example.com"},
}


def call(client: Any, operation: Operation) -> Any:
    ids = [1] * len(operation.path_parameters)
    is_explicit = operation.id in EXPLICIT_PLAYS
    query = QUERIES.get(operation.id, {} if is_explicit else examples(operation.query))
    return client.call(
        operation.id,
        *ids,
        query=query,
        body=BODIES.get(operation.id, {} if is_explicit else examples(operation.request)),
    )


def test_every_operation_with_scopes_names_those_that_are_missing(api: ApiHarness) -> None:
    bare = api.client(
        api.control(
            "POST",
            "/keys",
            {"mode": "live", "scopes": [], "rate_per_minute": 9999, "rate_expensive_per_minute": 9999},
        )["key"]
    )
    with bare:
        for operation in OPERATIONS:
            if operation.scopes:
                with pytest.raises(exceptions.InsufficientScope) as caught:
                    call(bare, operation)
                assert caught.value.required == operation.scopes


def test_every_operation_but_two_wants_a_valid_key(api: ApiHarness) -> None:
    with api.client("vk_live_unknown00000000000000") as stranger:
        for operation in OPERATIONS:
            if operation.auth:
                with pytest.raises(exceptions.Unauthorized):
                    call(stranger, operation)
                # Stay below the limit on invalid keys.
                api.advance(3)
        assert stranger.health().status == "ok"
        assert stranger.openapi()["openapi"].startswith("3.1")


def test_a_test_key_is_marked_everywhere_and_refused_where_it_must(api: ApiHarness) -> None:
    for operation in OPERATIONS:
        if operation.sandbox == "forbidden":
            with pytest.raises(exceptions.SandboxRefused):
                call(api.test, operation)
    server = api.server(api.test)
    assert server.is_sandbox
    for result in (
        api.test.servers.get(server.id),
        api.test.servers.power(server.id, action="stop"),
        api.test.balance.get(),
    ):
        assert result.meta is not None
        assert result.meta.sandbox
    assert [found.id for found in api.test.servers.list()] == [server.id]
    assert list(api.live.servers.list()) == []
    with pytest.raises(exceptions.NotFound):
        api.live.servers.get(server.id)


# --- faults, limits, pages, webhooks ----------------------------------------------------------------------


def test_a_lost_answer_to_an_order_buys_one_server(api_over_http: ApiHarness) -> None:
    api_over_http.fault("POST", "^/servers$", drop="after")
    before = api_over_http.live.balance.get().balance
    created = api_over_http.live.servers.create(tariff_id=api_over_http.tariff().id, os="debian-12", months=1)
    assert isinstance(created, m.ServerCreated)
    assert created.meta is not None
    assert created.meta.attempts == 2
    assert not created.root_password
    assert len(list(api_over_http.live.servers.list())) == 1
    assert before - api_over_http.live.balance.get().balance == created.charged
    first, second = (
        row for row in api_over_http.requests() if row["path"] == "/servers" and row["method"] == "POST"
    )
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
def test_a_read_survives_every_passing_fault(api_over_http: ApiHarness, action: dict[str, Any]) -> None:
    api_over_http.fault("GET", "^/balance$", **action)
    found = api_over_http.live.balance.get()
    assert found.balance == Decimal("1000.00")
    assert found.meta is not None
    assert found.meta.attempts == 2


@pytest.mark.parametrize("action", [{"drop": "after"}, {"truncate": 10}], ids=str)
def test_a_write_without_a_key_is_sent_once_and_its_outcome_is_unknown(
    api_over_http: ApiHarness, action: dict[str, Any]
) -> None:
    api_over_http.fault("POST", "^/ssh-keys$", **action)
    with pytest.raises(exceptions.TransportError) as caught:
        api_over_http.ssh_key()
    assert caught.value.outcome_unknown
    # It was carried out.
    assert [key.name for key in api_over_http.live.ssh_keys.list()] == ["laptop"]


def test_the_rate_limit_is_waited_out(api: ApiHarness) -> None:
    slow = api.client(
        api.control("POST", "/keys", {"mode": "live", "scopes": "full", "rate_per_minute": 3})["key"]
    )
    attempts = []
    with slow:
        for _ in range(7):
            meta = slow.balance.get().meta
            assert meta is not None
            assert meta.rate_limit is not None
            assert meta.rate_limit.limit == 3
            attempts.append(meta.attempts)
    assert attempts == [1] * 7
    assert [request["status"] for request in api.requests() if request["status"] == 429] == []


def test_a_walk_over_many_pages_finds_everything_once(api_over_http: ApiHarness) -> None:
    for number in range(7):
        api_over_http.live.servers.create(
            tariff_id=api_over_http.tariff().id, os="debian-12", name=f"web{number}", months=1
        )
    walk = api_over_http.live.servers.list(limit=3)
    assert [len(page.data) for page in walk.pages()] == [3, 3, 1]
    assert sorted(server.name for server in walk) == [f"web{number}" for number in range(7)]
    cursor = next(iter(walk.pages())).next_cursor
    assert cursor is not None
    assert len(list(api_over_http.live.servers.list(limit=3, cursor=cursor))) == 4
    with pytest.raises(exceptions.BadRequest) as caught:
        list(api_over_http.live.servers.list(limit=3, cursor=cursor, status="stopped"))
    assert caught.value.code == "invalid_cursor"


def test_a_delivery_is_verified_by_our_own_verifier(api_over_http: ApiHarness) -> None:
    hook = api_over_http.webhook()
    now = api_over_http.control("GET", "/")["now"]
    result = api_over_http.live.webhooks.test(hook.id)
    assert (result.ok, result.status) == (True, 204)
    ((body, headers),) = api_over_http.receiver.got
    moment = (
        m.Health.model_validate({"status": "ok", "time": now, "version": "1"}).time.timestamp()
        if isinstance(now, str)
        else now
    )
    event = webhooks.verify(body, headers, hook.secret, now=moment)
    assert event.type == "ping"
    assert event.object == {"subscription_id": hook.id, "message": "pong"}
    with pytest.raises(exceptions.WebhookRejected):
        webhooks.verify(body, headers, "whsec_other", now=moment)
    assert webhooks.sign(body, hook.secret, int(moment)) == {
        name: headers[name] for name in webhooks.sign(body, hook.secret, 1)
    }


def test_money_comes_back(api: ApiHarness) -> None:
    before = api.live.balance.get().balance
    server = api.server()
    after = api.live.servers.delete(server.id)
    assert after.refunded is not None
    assert api.live.balance.get().balance == before - api.tariff().price_monthly + after.refunded
    assert api.live.servers.refund_quote is not None


def test_a_refusal_carries_its_figures(api: ApiHarness) -> None:
    api.control("PATCH", "/account", {"balance": "1.00"})
    with pytest.raises(exceptions.InsufficientFunds) as caught:
        api.server()
    error = caught.value
    assert (error.balance, error.required, error.shortfall) == (
        Decimal("1.00"),
        Decimal("5.00"),
        Decimal("4.00"),
    )
    assert error.request_id
