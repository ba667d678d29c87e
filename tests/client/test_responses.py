"""Responses: what may grow, both spellings, refusals."""

from decimal import Decimal
from typing import Any

import httpx
import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client import exceptions
from tests.client.responses import SERVER, read
from tests.client.support import KEY, answer, refusal, scripted

pytestmark = pytest.mark.usefixtures("both")


def test_unknown_fields_enum_values_and_statuses_survive() -> None:
    server = read(
        "get_server", SERVER | {"status": "hibernating", "colour": "blue", "flags": {"shiny": True}}
    )
    assert server.status == "hibernating"
    assert server.model_extra == {"colour": "blue"}
    assert server.flags.model_extra == {"shiny": True}
    assert "blue" not in repr(server)


def test_an_unknown_code_falls_back_to_its_status() -> None:
    for status, kind in [
        (400, exceptions.BadRequest),
        (403, exceptions.Forbidden),
        (409, exceptions.Conflict),
        (418, exceptions.ApiError),
        (507, exceptions.ServerError),
    ]:
        with pytest.raises(exceptions.ApiError) as caught:
            read(
                "update_server", {"error": {"code": "brand_new", "message": "hm", "request_id": "r"}}, status
            )
        assert type(caught.value) is kind
        assert caught.value.code == "brand_new"


@pytest.mark.parametrize("status", [200, 201, 202, 203])
def test_any_success_is_a_success(status: int) -> None:
    assert read(
        "add_server_ip", {"success": True, "server_id": 1, "charged": "1.00"}, status
    ).charged == Decimal("1.00")


def test_the_status_of_an_order_decides_its_type() -> None:
    assert isinstance(read("create_server", {"server": SERVER, "charged": "5.00"}, 201), m.ServerCreated)
    assert isinstance(read("create_server", {"invoice_id": 4, "status": "provisioning"}, 202), m.Order)


@pytest.mark.parametrize(
    "operation_id", ["revoke_api_key", "delete_server_ip", "delete_webhook", "delete_ssh_key"]
)
@pytest.mark.parametrize(
    ("status", "body"), [(204, b""), (200, b""), (200, b"{}"), (200, b'{"status": "deleted"}')]
)
def test_answers_of_deletions_may_say_anything_or_nothing(
    operation_id: str, status: int, body: bytes
) -> None:
    found = read(operation_id, body, status)
    assert found.meta.status == status


def test_an_empty_body_is_invalid_where_one_is_required() -> None:
    for status in (200, 204):
        with pytest.raises(exceptions.InvalidResponse, match="id: Field required"):
            read("get_server", b"", status)


# --- both spellings

IP: dict[str, Any] = {"id": 3, "primary": True}


SPELLINGS: list[tuple[str, Any, str, Any]] = [
    # operation, answer, attribute, value
    ("get_server", SERVER | {"ip": "192.0.2.1"}, "ip", "192.0.2.1"),
    ("get_server", SERVER | {"primary_ip": "192.0.2.1"}, "ip", "192.0.2.1"),
    ("get_server", SERVER | {"primary_ip": None, "ips": ["192.0.2.1"]}, "ip", "192.0.2.1"),
    ("get_server", SERVER | {"primary_ip": "192.0.2.1", "ip": "192.0.2.9"}, "ip", "192.0.2.1"),
    ("get_server", SERVER, "ip", None),
    ("get_server", SERVER | {"location": "Frankfurt"}, "location", "Frankfurt"),
    (
        "get_server",
        SERVER | {"location": {"id": 1, "code": "fra", "name": "Frankfurt"}},
        "location",
        "Frankfurt",
    ),
    ("get_server", SERVER | {"os": "debian-12"}, "os", "debian-12"),
    ("get_server", SERVER | {"os": {"slug": "debian-12", "name": "Debian"}}, "os", "debian-12"),
    ("get_server", SERVER | {"resources": {"vcpu": 2}}, "resources.vcpu", 2),
    ("get_server", SERVER | {"resources": {"cpu_cores": 2}}, "resources.vcpu", 2),
    ("list_server_ips", {"data": [IP | {"ip": "192.0.2.1"}]}, "0.address", "192.0.2.1"),
    ("list_server_ips", {"data": [IP | {"address": "2001:db8::1"}]}, "0.ip_version", 6),
    ("list_server_ips", {"data": [IP | {"address": "192.0.2.1", "version": 4}]}, "0.ip_version", 4),
    ("delete_server", {"status": "cancelled", "refund": "3.10"}, "refunded", Decimal("3.10")),
    ("delete_server", {"status": "cancelled", "refund": {"amount": "3.10"}}, "refunded", Decimal("3.10")),
    (
        "delete_server",
        {"status": "cancelled", "refund": None, "refund_quote": {"amount": "3.10", "refundable": True}},
        "refunded",
        Decimal("3.10"),
    ),
    ("delete_server", {"status": "cancelled"}, "refunded", None),
    (
        "register_domain",
        {"status": "registered", "charged": "9.00", "domain": "example.com", "domain_id": 4},
        "domain_id",
        4,
    ),
    (
        "register_domain",
        {"status": "registered", "charged": "9.00", "domain": "example.com", "domain_id": 4},
        "domain_name",
        "example.com",
    ),
    (
        "register_domain",
        {"status": "pending", "charged": "9.00", "domain": "example.com", "domain_id": None},
        "domain_id",
        None,
    ),
    (
        "register_domain",
        {
            "status": "registered",
            "charged": "9.00",
            "domain": {
                "id": 4,
                "name": "example.com",
                "status": "active",
                "auto_renew": False,
                "privacy": True,
            },
        },
        "domain_id",
        4,
    ),
    (
        "get_topup_info",
        {"currency": "EUR", "min": "1.00", "max": "9.00", "gateways": ["card"]},
        "min",
        Decimal("1.00"),
    ),
    (
        "get_topup_info",
        {"currency": "EUR", "min_amount": "1.00", "max_amount": "9.00", "gateways": [{"code": "card"}]},
        "gateways",
        ["card"],
    ),
    ("get_webhook_delivery", {"id": 1, "event_type": "ping", "status": "dead"}, "status", "dead"),
    ("get_webhook_delivery", {"id": 1, "event_type": "ping", "dead": True}, "status", "dead"),
    (
        "get_webhook_delivery",
        {"id": 1, "event_type": "ping", "delivered_at": "2026-01-01T00:00:00Z"},
        "status",
        "delivered",
    ),
    ("get_webhook_delivery", {"id": 1, "event_type": "ping", "dead": False}, "status", "pending"),
    ("get_webhook_delivery", {"id": 1, "event_type": "ping"}, "status", None),
]


@pytest.mark.parametrize(("operation_id", "body", "attribute", "value"), SPELLINGS)
def test_both_spellings_become_one_attribute(
    operation_id: str, body: Any, attribute: str, value: Any
) -> None:
    found = read(operation_id, body)
    if operation_id == "list_server_ips":
        found = found.data
    for part in attribute.split("."):
        found = found[int(part)] if part.isdigit() else getattr(found, part)
    assert found == value


# --- refusals


def refused(status: int, body: Any, **headers: str) -> exceptions.ApiError:
    with pytest.raises(exceptions.ApiError) as caught:
        read("update_server", body, status, **headers)
    return caught.value


def test_what_a_refusal_carries() -> None:
    details = {"required": "10.00", "balance": "3.50", "shortfall": "6.50", "currency": "EUR"}
    client, _ = scripted(refusal(402, "insufficient_funds", "no money", details))
    with pytest.raises(exceptions.InsufficientFunds) as caught:
        client.servers.create(tariff_id=1, os="debian-12")
    error = caught.value
    assert (error.required, error.balance, error.shortfall, error.currency) == (
        Decimal("10.00"),
        Decimal("3.50"),
        Decimal("6.50"),
        "EUR",
    )
    assert (error.status, error.code, error.request_id, error.operation) == (
        402,
        "insufficient_funds",
        "srv-1",
        "create_server",
    )
    assert "6.50 EUR short" in str(error)

    client, _ = scripted(refusal(403, "insufficient_scope", details={"required": ["servers:order"]}))
    with pytest.raises(exceptions.InsufficientScope, match="servers:order") as scope:
        client.servers.create(tariff_id=1, os="debian-12")
    assert scope.value.required == ("servers:order",)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "invalid", "months": "invalid_period"},
        [{"field": "name", "message": "invalid"}, {"field": "months", "code": "x"}],
    ],
)
def test_both_shapes_of_field_errors_are_read(fields: Any) -> None:
    error = refused(
        400,
        {
            "error": {
                "code": "validation_error",
                "message": "no",
                "request_id": "r",
                "details": {"fields": fields},
            }
        },
    )
    assert isinstance(error, exceptions.ValidationFailed)
    assert set(error.fields) == {"name", "months"}


@pytest.mark.parametrize("details", [None, "text", 5, [], {"fields": 5}, {"fields": ["x"]}, {"required": 5}])
def test_unexpected_error_details_do_not_raise(details: Any) -> None:
    for code, status in (("validation_error", 400), ("insufficient_scope", 403), ("insufficient_funds", 402)):
        error = refused(
            status, {"error": {"code": code, "message": None, "request_id": 5, "details": details}}
        )
        assert error.code == code
        assert str(error)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Bad Gateway</html>",
        b"",
        b"[]",
        b'{"error": "x"}',
        b'{"error": {"code": 5}}',
        b'{"error": {"code": ""}}',
        b"{" * 300,
    ],
)
def test_a_response_without_the_envelope_is_classified_by_its_status(body: bytes) -> None:
    error = refused(401, body, **{"X-Request-ID": "gateway-7"})
    assert isinstance(error, exceptions.Unauthorized)
    assert error.code == "http_401"
    assert error.request_id == "gateway-7"
    assert "Bad Gateway" not in str(error)


def test_other_peoples_texts_are_cleaned() -> None:
    body = {
        "error": {
            "code": "conf\x1b[31mlict",
            "message": "line\nbreak \x1b[2J\u202e\x00end",
            "request_id": "r\x07q",
        }
    }
    error = refused(409, body)
    assert error.code == "conflict"
    assert error.message == "line break end"
    assert error.request_id == "rq"
    error = refused(
        409,
        {
            "error": {
                "code": "conflict",
                "message": "m",
                "details": {"a\x1bb": ["\x1b[31mred", {"k": "\u202ex"}], "n": 5},
            }
        },
    )
    assert error.details == {"ab": ["red", {"k": "x"}], "n": 5}


def test_our_own_secrets_are_cut_out_of_other_peoples_texts() -> None:
    hidden = f"your key {KEY[:5]}\x00{KEY[5:]} and {KEY}"
    body = {
        "error": {
            "code": "conflict",
            "message": hidden,
            "request_id": KEY,
            "details": {KEY: [KEY, f"x{KEY}x"]},
        }
    }
    error = refused(409, body)
    assert KEY not in f"{error} {error.message} {error.details} {error.request_id} {error!r}"
    assert error.message == "your key ********** and **********"


def test_a_secret_at_the_cut_of_a_long_text_does_not_survive_it() -> None:
    error = refused(409, {"error": {"code": "conflict", "message": "x" * 990 + KEY, "request_id": "r"}})
    assert KEY[:6] not in error.message
    assert len(error.message) <= 1000


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("https://evil.example.org/v1", "evil.example.org"),
        ("/elsewhere", "another place on the same host"),
        ("", "another place on the same host"),
        ("https://[", "an unreadable place"),
    ],
)
def test_a_redirect_is_an_error_that_names_the_host(location: str, named: str) -> None:
    client, script = scripted(httpx.Response(307, headers=[(b"Location", location.encode())]))
    with pytest.raises(exceptions.RedirectRefused) as caught:
        client.servers.get(1)
    assert f"redirects to {named}" in str(caught.value)
    assert not caught.value.outcome_unknown
    assert len(script.requests) == 1
    with pytest.raises(exceptions.RedirectRefused) as write:
        client.servers.update(1, name="a")
    assert write.value.outcome_unknown


def test_a_place_that_the_service_named_is_cleaned_too() -> None:
    found = answer(200, {"success": True, "server_id": 1, "charged": "1.00"})
    assert found.status_code == 200
    with pytest.raises(exceptions.InvalidResponse) as caught:
        read("get_server", SERVER | {"billing": {"\x1b[31m": 1}})
    assert "\x1b" not in str(caught.value)
