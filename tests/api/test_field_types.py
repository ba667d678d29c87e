"""Kinds of values in bodies, at their bounds: what is read, what is sent, and why the rest is refused."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from pulumi_hosting.api import models as m
from pulumi_hosting.api.models import field_types as f
from pulumi_hosting.api.secrets import Secret


def reason(kind: Any, value: object, *, as_json: bool = False) -> str:
    """Why the value is refused: one reason."""
    read: Any = TypeAdapter(kind).validate_json if as_json else TypeAdapter(kind).validate_python
    with pytest.raises(ValidationError) as caught:
        read(json.dumps(value) if as_json else value)
    (error,) = caught.value.errors(include_url=False)
    return error["msg"].removeprefix("Value error, ")


# --- money that is read

MONEY = "money must be a decimal string with 2 to 4 fraction digits"


@pytest.mark.parametrize("text", ["0.00", "-0.01", "5.00", "5.0001", "9" * 30 + ".00", "9" * 37 + ".99"])
def test_money_is_read_with_all_its_digits(text: str) -> None:
    assert f.is_money(text)
    assert str(TypeAdapter(f.Money).validate_json(f'"{text}"')) == text
    assert str(TypeAdapter(f.Money).validate_python(text)) == text


@pytest.mark.parametrize(
    "text", ["", "5", "5.0", "5.00001", "+5.00", "5.00 ", "5.00\n", "9" * 38 + ".00", "a.00"]
)
def test_no_other_text_is_money(text: str) -> None:
    assert not f.is_money(text)
    assert reason(f.Money, text) == reason(f.Money, text, as_json=True) == MONEY


@pytest.mark.parametrize("value", [5, 5.0, None, True, ["5.00"]])
def test_no_number_is_money(value: object) -> None:
    assert reason(f.Money, value) == reason(f.Money, value, as_json=True) == MONEY


def test_bytes_are_no_money() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(f.Money).validate_python(b"5.00")
    assert [error["type"] for error in caught.value.errors()] == ["value_refused"]


def test_money_that_was_read_is_money() -> None:
    assert TypeAdapter(f.Money).validate_python(Decimal("5")) == Decimal("5")


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("5", "5.00"),
        ("5.1", "5.10"),
        ("5.120", "5.12"),
        ("5.1234", "5.1234"),
        ("5.10200", "5.102"),
        ("-0.5", "-0.50"),
        ("1E+3", "1000.00"),
        ("1E-3", "0.001"),
        ("9" * 35 + ".99", "9" * 35 + ".99"),
    ],
)
def test_money_is_written_with_two_fraction_digits_or_more(amount: str, text: str) -> None:
    assert TypeAdapter(f.Money).dump_json(Decimal(amount)) == f'"{text}"'.encode()
    assert TypeAdapter(f.Amount).dump_python(Decimal(amount)) == text
    assert TypeAdapter(f.Money).dump_python(Decimal(amount)) == Decimal(amount)


def test_the_document_shows_money_as_text_with_a_pattern() -> None:
    assert TypeAdapter(f.Money).json_schema() == {"type": "string", "pattern": r"^-?[0-9]+\.[0-9]{2,4}$"}


# --- amounts that are sent

MONEY_STRING = "must be a money string with two fraction digits"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("0.00", "0.00"),
        ("9" * 15 + ".99", "9" * 15 + ".99"),
        (0, "0.00"),
        (10**15 - 1, "9" * 15 + ".00"),
        (5.5, "5.50"),
        (5.25, "5.25"),
        (Decimal("5"), "5.00"),
        (Decimal("5.250"), "5.25"),
        (Decimal("0"), "0.00"),
        (Decimal(10**15) - Decimal("0.01"), "9" * 15 + ".99"),
    ],
)
def test_an_amount_is_sent_with_two_fraction_digits(given: object, text: str) -> None:
    assert (
        TypeAdapter(f.Amount).dump_json(TypeAdapter(f.Amount).validate_python(given)) == f'"{text}"'.encode()
    )


@pytest.mark.parametrize(
    "value",
    [
        "",
        "5",
        "5.0",
        "5.000",
        "-5.00",
        "5.00\n",
        "\u0665.00",
        "9" * 16 + ".00",
        True,
        False,
        None,
        [5],
        b"5.00",
    ],
)
def test_what_is_no_amount_of_money_is_not_sent(value: object) -> None:
    assert reason(f.Amount, value) == MONEY_STRING


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (-1, "must be from 0 to less than 10^15"),
        (10**15, "must be from 0 to less than 10^15"),
        (-0.01, "must be from 0 to less than 10^15"),
        (1e15, "must be from 0 to less than 10^15"),
        (float("nan"), "must be from 0 to less than 10^15"),
        (float("inf"), "must be from 0 to less than 10^15"),
        (5.001, "must be from 0 to less than 10^15, with at most two fraction digits"),
        (Decimal("5.001"), "must be from 0 to less than 10^15, with at most two fraction digits"),
        (Decimal("-0.01"), "must be from 0 to less than 10^15, with at most two fraction digits"),
        (Decimal(10**15), "must be from 0 to less than 10^15, with at most two fraction digits"),
        (Decimal("Infinity"), "must be from 0 to less than 10^15, with at most two fraction digits"),
        (Decimal("NaN"), "must be from 0 to less than 10^15, with at most two fraction digits"),
    ],
)
def test_amounts_beyond_the_bounds_are_not_sent(value: object, why: str) -> None:
    assert reason(f.Amount, value) == why


# --- time

TIMESTAMP = "a timestamp must be an RFC 3339 text with a zone"
YEARS = f"{TIMESTAMP}, within the years 1 to 9999 in UTC"


@pytest.fixture
def _somewhere_else(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine's own zone is not UTC."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_somewhere_else")
def test_moments_are_utc_and_written_with_z() -> None:
    kind = TypeAdapter(f.Timestamp)
    there = datetime(2026, 11, 22, 14, 30, tzinfo=timezone(timedelta(hours=2, minutes=30)))
    assert kind.validate_python(there).tzinfo is UTC
    assert kind.validate_python(there) == datetime(2026, 11, 22, 12, tzinfo=UTC)
    assert kind.dump_json(there) == b'"2026-11-22T12:00:00Z"'
    assert kind.dump_python(there) == there
    assert kind.json_schema() == {"type": "string", "format": "date-time"}


@pytest.mark.parametrize("value", [1800000000, "1800000000", None, "2026-11-22", "0001-01-01T00:00:00+14:00"])
def test_what_is_no_moment_is_refused(value: object) -> None:
    assert reason(f.Timestamp, value) == reason(f.Timestamp, value, as_json=True) == YEARS


# --- the rest


@pytest.mark.parametrize("value", [True, 1.0, "1"])
def test_months_are_whole_numbers(value: object) -> None:
    assert reason(f.Months, value) == "must be a whole number"
    assert TypeAdapter(f.Months).validate_python(12) == 12


def test_a_replay_shows_no_secret() -> None:
    shown: TypeAdapter[Secret | None] = TypeAdapter(f.ShownOnce)
    assert shown.validate_python("") is None
    assert shown.validate_python(None) is None
    secret = shown.validate_python("hunter2")
    assert secret is not None
    assert secret.reveal() == "hunter2"
    with pytest.raises(ValidationError):
        TypeAdapter(f.NewSecret).validate_python("")


def test_documented_values_are_examples() -> None:
    assert TypeAdapter(f.EventType).json_schema()["examples"] == list(f.EVENT_TYPES)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("debian-12", "debian-12"),
        (None, None),
        ({"slug": "debian-12", "name": "Debian", "code": "d"}, "debian-12"),
        ({"name": "Debian", "code": "d"}, "Debian"),
        ({"slug": "", "code": "d"}, "d"),
        ({}, None),
    ],
)
def test_names_may_come_as_objects(value: object, name: str | None) -> None:
    assert TypeAdapter(f.NameText).validate_python(value) == name


def test_names_are_texts_in_the_document() -> None:
    assert TypeAdapter(f.NameText).json_schema() == {"anyOf": [{"type": "string"}, {"type": "null"}]}


@pytest.mark.parametrize("value", [5, ["debian"], {"name": 5}])
def test_what_has_no_name_is_refused(value: object) -> None:
    assert reason(f.NameText, value) == "must be a text, or an object with a name"


@pytest.mark.parametrize("password", ["abcdefg1", "A1!@#$%^&*-b", "a1" * 32])
def test_passwords_that_the_service_takes(password: str) -> None:
    assert TypeAdapter(f.RootPassword).validate_python(Secret(password)).reveal() == password


@pytest.mark.parametrize(
    "password", ["abcdef1", "abcdefgh", "12345678", "abcdefg 1", "a1" * 32 + "a", "abcdefg1\n"]
)
def test_other_passwords_are_refused_and_not_repeated(password: str) -> None:
    assert reason(f.RootPassword, Secret(password)) == (
        "must be 8 to 64 characters of A-Z a-z 0-9 ! @ # $ % ^ & * - with at least one letter and one digit"
    )


def test_synthetic_and_simulated_servers_are_known_by_their_ids() -> None:
    assert f.SYNTHETIC_SERVER_IDS.stop == m.SANDBOX_SERVER_IDS
