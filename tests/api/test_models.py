"""Words of the models that are not on the wire, and rules of requests across fields."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from pulumi_hosting.api import models as m

DOMAIN: dict[str, Any] = {
    "id": 4,
    "name": "example.com",
    "status": "active",
    "auto_renew": False,
    "privacy": True,
}


@pytest.mark.parametrize(
    "text",
    [
        "2027-01-31T10:00:00Z",
        "2027-01-31T10:00:00.000000Z",
        "2027-01-31T10:00:00.0000000009Z",
        "2027-01-31t10:00:00z",
        "2027-01-31T10:00:00+00:00",
        "2027-01-31T12:30:00+02:30",
    ],
)
def test_a_moment_is_read_in_every_spelling(text: str) -> None:
    moment = TypeAdapter(m.Timestamp).validate_json(json.dumps(text))
    assert (moment, moment.tzinfo) == (datetime(2027, 1, 31, 10, tzinfo=UTC), UTC)
    assert TypeAdapter(m.Timestamp).validate_python(text) == moment


@pytest.mark.parametrize(
    "value",
    [
        "2027-02-30T10:00:00Z",
        "2027-01-31T24:00:00Z",
        "2027-01-31T10:00:00",
        "2027-01-31 10:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "٢٠٢٧-01-31T10:00:00Z",
        "2027-01-31T10:00:00Z\n",
        "1800000000",
        1800000000,
    ],
)
def test_an_invalid_timestamp_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="a timestamp must be an RFC 3339 text with a zone") as caught:
        TypeAdapter(m.Timestamp).validate_json(json.dumps(value))
    assert caught.value.error_count() == 1


@pytest.mark.parametrize(
    ("value", "amount"),
    [("12.50", "12.50"), ("-0.0001", "-0.0001"), (f"{10**35}.99", f"{10**35}.99")],
)
def test_a_sum_keeps_its_digits(value: str, amount: str) -> None:
    assert str(TypeAdapter(m.Money).validate_json(json.dumps(value))) == amount


@pytest.mark.parametrize("value", ["12.5", "12", "1e2.00", "12.50\n", "٣.00", f"{10**40}.00", 12.5, 12, None])
def test_an_invalid_amount_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="money must be a decimal string") as caught:
        TypeAdapter(m.Money).validate_json(json.dumps(value))
    assert caught.value.error_count() == 1


def test_the_states_of_an_order() -> None:
    states = {
        status: m.Order(invoice_id=1, status=status)
        for status in ("provisioning", "active", "cancelled", "failed", "new_word")
    }
    assert [status for status, order in states.items() if order.is_active] == ["active"]
    assert [status for status, order in states.items() if order.is_failed] == ["cancelled", "failed"]


def test_the_states_of_a_server() -> None:
    states = {status: m.Server(id=1, name="a", status=status) for status in (*m.SERVER_STATUSES, "new_word")}
    assert [status for status, server in states.items() if server.is_gone] == ["cancelled", "terminated"]
    assert m.Server(id=m.SANDBOX_SERVER_IDS, name="a", status="active").is_sandbox
    assert not m.Server(id=m.SANDBOX_SERVER_IDS - 1, name="a", status="active").is_sandbox


@pytest.mark.parametrize(("tld", "ending"), [("com", "com"), (".com", "com"), (".DE", "de")])
def test_an_ending_is_compared_without_its_dot(tld: str, ending: str) -> None:
    assert m.Zone(tld=tld, price_register=Decimal(1), price_renew=Decimal(1)).ending == ending


@pytest.mark.parametrize("model", [m.DomainOrderResult, m.DomainRenewResult])
def test_the_end_of_a_domain_is_found_in_both_places(model: Any) -> None:
    moment = "2027-01-01T00:00:00Z"
    base: dict[str, Any] = {"status": "registered", "charged": "1.00"}
    for more in (
        {"expires_at": moment},
        {"domain": DOMAIN | {"expires_at": moment}},
        {"domain": "example.com", "expires_at": moment},
    ):
        assert model.model_validate(base | more).expires_at == datetime(2027, 1, 1, tzinfo=UTC)
    assert model.model_validate(base | {"domain": "example.com"}).expires_at is None
    assert model.model_validate(base | {"domain": DOMAIN}).domain_name == "example.com"


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (m.ServerCreate, {"tariff_id": 1, "os": "a", "billing_cycle": "hourly", "months": 1}),
        (m.ServerCreate, {"tariff_id": 1, "os": "a", "billing_cycle": "monthly", "hours": 1}),
        (m.NameserversUpdate, {"nameservers": ["ns1.example.net", "single"]}),
        (m.SubscriptionCreate, {"url": "https://hooks.example.org/", "events": ["ping", "ping"]}),
        (m.SubscriptionUpdate, {}),
    ],
)
def test_rules_across_fields(model: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model(**fields)


def test_a_model_can_be_printed_and_read_again() -> None:
    balance = m.Balance(
        balance=Decimal("10.50"),
        currency="EUR",
        upcoming_7d=Decimal(0),
        upcoming_30d=Decimal("0.015"),
        low_balance=False,
    )
    assert '"upcoming_30d":"0.015"' in balance.model_dump_json()
    assert m.Balance.model_validate_json(balance.model_dump_json()) == balance
