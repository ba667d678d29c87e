"""What is sent: paths, keys, queries and bodies; and what is refused before anything is."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_hosting.api import models as m
from pulumi_hosting.api.models import INT64
from pulumi_hosting.api.operations import BY_ID, OPERATIONS
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import InvalidInput, WriteRefused
from pulumi_hosting.client.requests import build_path, checked_key
from pulumi_hosting.client.results import UNSET
from tests.client.support import answer, scripted

pytestmark = pytest.mark.usefixtures("both")

SERVER = BY_ID["get_server"]

# --- paths


@pytest.mark.parametrize("given_id", [1, 9_000_000_001, INT64, "7", str(INT64)])
def test_ids_are_whole_numbers_or_their_digits(given_id: int | str) -> None:
    assert build_path(SERVER, [given_id]) == f"/servers/{given_id}"


@pytest.mark.parametrize(
    "odd",
    [
        0,
        -1,
        INT64 + 1,
        True,
        1.0,
        None,
        "",
        "0",
        "-1",
        "+1",
        " 1",
        "1e3",
        "\u0661",
        "..",
        "1/../2",
        "1?x",
        "%31",
        "9" * 20,
        b"1",
        [1],
    ],
)
def test_odd_ids_are_refused(odd: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        build_path(SERVER, [odd])
    assert caught.value.fields == {"server_id": "must be a whole number from 1"}


@given(st.text())
def test_no_text_leaves_its_segment(text: str) -> None:
    try:
        path = build_path(SERVER, [text])
    except InvalidInput:
        return
    assert path == f"/servers/{int(text)}"


def test_a_path_takes_as_many_ids_as_it_has_places() -> None:
    assert build_path(BY_ID["delete_server_ip"], [3, 4]) == "/servers/3/ips/4"
    for ids in ([], [1, 2]):
        with pytest.raises(InvalidInput):
            build_path(SERVER, ids)
    with pytest.raises(InvalidInput):
        build_path(BY_ID["get_account"], [1])


# --- idempotency keys


def test_a_key_is_made_once_for_keyed_operations_and_for_no_others() -> None:
    for operation in OPERATIONS:
        made = checked_key(operation, None, lambda: "k" * 32)
        assert made == ("k" * 32 if operation.is_keyed else None)
        if not operation.is_keyed:
            with pytest.raises(InvalidInput):
                checked_key(operation, "k" * 32, str)


@pytest.mark.parametrize(
    "key", ["x" * 15, "x" * 129, "with space 123456", "ünicode-0123456789", "line\nbreak-0123456789", 5]
)
def test_odd_keys_are_refused(key: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        checked_key(BY_ID["create_server"], key, str)
    assert "idempotency_key" in caught.value.fields


# --- what goes over the wire


def test_only_given_fields_are_sent_and_null_is_one() -> None:
    client, script = scripted(answer(200, {"id": 1, "name": "a", "status": "active"}))
    client.servers.update(1, name="a")
    client.servers.update(1, notes=None)
    client.servers.update(1, notes=None, auto_renew=False, name=UNSET)
    assert script.bodies == [{"name": "a"}, {"notes": None}, {"notes": None, "auto_renew": False}]


def test_a_body_may_be_the_model_of_its_operation_and_of_no_other() -> None:
    client, script = scripted(answer(200, {"id": 1, "name": "web-1", "status": "active"}))
    client.call("update_server", 1, body=m.ServerUpdate(notes=None))
    assert script.bodies == [{"notes": None}]
    with pytest.raises(TypeError, match="create_server takes no ServerUpdate"):
        client.call("create_server", body=m.ServerUpdate(notes=None))
    assert len(script.requests) == 1


def test_an_operation_without_a_body_sends_none_and_no_content_type() -> None:
    client, script = scripted(
        answer(200, {"success": True, "server_id": 1, "charged": "1.00", "payment_url": "https://x.example/"})
    )
    client.servers.ips.add(1)
    client.invoices.payment_link(5)
    for request in script.requests:
        assert request.content == b""
        assert "Content-Type" not in request.headers
    client.servers.ips.add(1, count=1)
    client.invoices.payment_link(5, gateway="card")
    assert script.bodies[2:] == [{"count": 1}, {"gateway": "card"}]
    assert script.requests[2].headers["Content-Type"] == "application/json"


def test_queries_are_text_and_times_keep_their_zone() -> None:
    client, script = scripted(answer(200, {"data": [], "next_cursor": None}))
    since = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    list(client.balance.transactions(direction="credit", since=since, limit=7))
    assert dict(script.requests[0].url.params) == {
        "limit": "7",
        "direction": "credit",
        "since": "2026-03-01T10:00:00Z",
    }


def test_the_headers_of_a_request() -> None:
    client, script = scripted(
        answer(200, {"status": "ok", "time": "2026-01-01T00:00:00Z", "version": "1"}), user_agent="me/1"
    )
    client.health()
    (health,) = script.requests
    assert "Authorization" not in health.headers
    assert health.headers["Accept"] == "application/json"
    assert health.headers["User-Agent"].endswith(" me/1")
    assert 16 <= len(health.headers["X-Request-ID"]) <= 64

    client, script = scripted(
        answer(
            200, {"id": 1, "login": "a", "email": "a@b.c", "currency": "EUR", "email_verified": True} | _2FA
        )
    )
    client.account.get()
    assert script.requests[0].headers["Authorization"].startswith("Bearer vk_live_")


_2FA = {"two_factor_enabled": False}


def test_a_pdf_is_asked_for_together_with_the_error_envelope() -> None:
    import httpx

    client, script = scripted(
        httpx.Response(200, content=b"%PDF-1.7 x %%EOF", headers={"Content-Type": "application/pdf"})
    )
    found = client.invoices.pdf(4)
    assert bytes(found) == b"%PDF-1.7 x %%EOF"
    assert found.meta is not None
    assert found.meta.status == 200
    assert script.requests[0].headers["Accept"] == "application/pdf, application/json"


def test_secrets_are_sent_as_they_are_whether_wrapped_or_not() -> None:
    client, script = scripted(answer(202, {"server_id": 1, "status": "reinstalling"}))
    client.servers.reinstall(1, os="debian-12", password="pass1234word")
    client.servers.reinstall(1, os="debian-12", password=Secret("pass1234word"), ssh_key_ids=(4, 5))
    assert script.bodies == [
        {"os": "debian-12", "password": "pass1234word"},
        {"os": "debian-12", "password": "pass1234word", "ssh_key_ids": [4, 5]},
    ]


def test_removing_a_reverse_name_sends_an_empty_text() -> None:
    client, script = scripted(answer(200, {"id": 2, "ptr": None}))
    client.servers.ips.set_ptr(1, 2, domain=None)
    assert script.bodies == [{"domain": ""}]


# --- refused before anything is sent

REFUSED: list[tuple[str, tuple[int, ...], dict[str, Any], str]] = [
    # operation, ids, body or query, the field that is named
    ("create_server", (), {"os": "debian-12"}, "tariff_id"),
    ("create_server", (), {"tariff_id": "1", "os": "debian-12"}, "tariff_id"),
    ("create_server", (), {"tariff_id": 1, "os": ""}, "os"),
    ("create_server", (), {"tariff_id": 1, "os": "a", "months": 2}, "months"),
    ("create_server", (), {"tariff_id": 1, "os": "a", "hours": 721}, "hours"),
    ("create_server", (), {"tariff_id": 1, "os": "a", "hours": 1, "months": 1}, "(fields)"),
    ("create_server", (), {"tariff_id": 1, "os": "a", "name": "no spaces"}, "name"),
    ("create_server", (), {"tariff_id": 1, "os": "a", "name": "newline\n"}, "name"),
    ("create_server", (), {"tariff_id": 1, "os": "a", "password": "short1"}, "password"),
    ("create_server", (), {"tariff_id": 1, "os": "a", "password": "no-digits-here"}, "password"),
    ("create_server", (), {"tariff_id": 1, "os": "a", "promo_code": "x" * 65}, "promo_code"),
    (
        "create_server",
        (),
        {"tariff_id": 1, "os": "a", "custom_fields": {str(n): "" for n in range(31)}},
        "custom_fields",
    ),
    ("create_server", (), {"tariff_id": 1, "os": "a", "surprise": 1}, "surprise"),
    ("update_server", (1,), {}, "(fields)"),
    ("renew_server", (1,), {}, "(fields)"),
    ("renew_server", (1,), {"months": 1, "hours": 1}, "(fields)"),
    ("power_server", (1,), {"action": "explode"}, "action"),
    ("create_topup", (), {"amount": "10.001", "gateway": "card"}, "amount"),
    ("create_topup", (), {"amount": 10.001, "gateway": "card"}, "amount"),
    ("create_topup", (), {"amount": True, "gateway": "card"}, "amount"),
    (
        "create_topup",
        (),
        {"amount": "10.00", "gateway": "card", "return_url": "https://x.example"},
        "return_url",
    ),
    ("set_server_ip_ptr", (1, 2), {"domain": "single"}, "domain"),
    ("set_server_ip_ptr", (1, 2), {"ptr": "host.example.com"}, "ptr"),
    ("create_ssh_key", (), {"name": "a", "public_key": "not a key"}, "public_key"),
    (
        "create_ssh_key",
        (),
        {
            "name": "",
            "public_key": (
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
            ),
        },
        "name",
    ),
    ("register_domain", (), {"name": "example.com", "nameservers": ["ns1.example.net"]}, "nameservers"),
    (
        "register_domain",
        (),
        {"name": "example.com", "nameservers": ["ns1.example.net", "NS1.example.net."]},
        "nameservers",
    ),
    ("register_domain", (), {"name": "example.com", "years": 11}, "years"),
    ("update_domain", (1,), {}, "(fields)"),
    ("create_webhook", (), {"url": "http://hooks.example.org", "events": ["ping"]}, "url"),
    ("create_webhook", (), {"url": "https://u:p@hooks.example.org", "events": ["ping"]}, "url"),
    ("create_webhook", (), {"url": "https://hooks.example.org", "events": []}, "events"),
    ("create_webhook", (), {"url": "https://hooks.example.org", "events": ["Something Else"]}, "events"),
    ("pay_invoice", (1,), {"amount": "1.00"}, "amount"),
    ("list_servers", (), {"limit": 101}, "limit"),
    ("list_servers", (), {"status": "sleeping &?"}, "status"),
    ("list_servers", (), {"ip": "x" * 46}, "ip"),
    ("list_transactions", (), {"since": datetime(2026, 1, 1)}, "since"),  # noqa: DTZ001  # naive on purpose
    ("get_quote", (), {"tariff_id": 1, "months": 1, "hours": 1}, "(fields)"),
    ("get_account", (), {"anything": 1}, "anything"),
]


@pytest.mark.parametrize(
    ("operation_id", "ids", "fields", "named"),
    REFUSED,
    ids=[f"{row[0]}-{row[3]}-{n}" for n, row in enumerate(REFUSED)],
)
def test_bad_arguments_are_refused_by_name_before_anything_is_sent(
    operation_id: str, ids: tuple[int, ...], fields: dict[str, Any], named: str
) -> None:
    client, script = scripted(answer(200, {}))
    body, query = (fields, None) if BY_ID[operation_id].is_write else (None, fields)
    with pytest.raises(InvalidInput) as caught:
        client.call(operation_id, *ids, body=body, query=query)
    assert named in caught.value.fields
    assert caught.value.subject == "the request"
    assert caught.value.__context__ is None
    assert script.requests == []


def test_what_is_too_large_together_is_refused() -> None:
    client, script = scripted(answer(200, {}))
    with pytest.raises(InvalidInput, match="64 KB"):
        client.servers.create(
            tariff_id=1, os="debian-12", custom_fields={"a": "x" * 40_000, "b": "x" * 40_000}
        )
    assert script.requests == []


def test_an_unknown_operation_is_bad_input() -> None:
    client, _ = scripted(answer())
    with pytest.raises(InvalidInput, match="no operation"):
        client.call("drop_everything")


def test_filters_of_a_walk_are_checked_when_it_is_made() -> None:
    client, script = scripted(answer())
    with pytest.raises(InvalidInput):
        client.servers.list(limit=0)
    assert script.requests == []


@pytest.mark.parametrize("amount", ["10.00", 10, 10.5, Decimal("10"), Decimal("10.50")])
def test_amounts_are_sent_as_text_with_two_digits(amount: Any) -> None:
    client, script = scripted(
        answer(201, {"invoice_id": 1, "payment_url": "https://x.example/", "gateway": "card"})
    )
    client.balance.topup(amount=amount, gateway="card")
    assert script.bodies[0]["amount"] == f"{Decimal(str(amount)):.2f}"


# --- only reading


def test_a_client_that_only_reads_refuses_every_write_and_no_read() -> None:
    client, script = scripted(answer(200, {}), read_only=True)
    assert client.read_only
    for operation in OPERATIONS:
        ids = [1] * len(operation.path_parameters)
        if operation.is_write:
            with pytest.raises(WriteRefused, match=operation.id):
                client.call(operation.id, *ids)
    assert script.requests == []
    client.openapi()
    assert len(script.requests) == 1


def test_text_outside_ascii_travels_as_utf_8() -> None:
    client, script = scripted(answer(200, {"id": 1, "name": "a", "status": "active"}))
    client.servers.update(1, notes="größer ✓")
    assert json.loads(script.requests[0].content) == {"notes": "größer ✓"}
    assert "größer".encode() in script.requests[0].content
    with pytest.raises(InvalidInput):
        client.servers.update(1, notes="\ud800")


def test_times_of_other_zones_become_utc() -> None:
    client, script = scripted(answer(200, {"data": []}))
    list(client.balance.transactions(until=datetime(2026, 1, 1, tzinfo=UTC)))
    assert script.requests[0].url.params["until"] == "2026-01-01T00:00:00Z"


def test_text_that_is_no_unicode_is_refused_in_queries_too() -> None:
    client, script = scripted(answer(200, {"data": []}))
    with pytest.raises(InvalidInput, match="is not valid Unicode"):
        client.domains.availability(name="\ud800.com")
    with pytest.raises(InvalidInput, match="Unicode"):
        client.servers.list(cursor="\ud800")
    with pytest.raises(InvalidInput, match="Unicode"):
        client.domains.transfer(name="example.com", auth_code="code\ud800")
    assert script.requests == []


@pytest.mark.parametrize("odd", [5, b"bytes", ["list"], None])
def test_a_secret_that_is_no_text_is_refused_like_any_other_argument(odd: Any) -> None:
    client, script = scripted(answer(200, {}))
    with pytest.raises(InvalidInput, match="auth_code"):
        client.domains.transfer(name="example.com", auth_code=odd)
    if odd is not None:
        with pytest.raises(InvalidInput, match="password"):
            client.servers.create(tariff_id=1, os="debian-12", password=odd)
    assert script.requests == []
