"""Our models as Pulumi sees them."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from generate.returns import contents
from pulumi_hosting.api import models as m
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.provider.resource_shape import changes_of, inputs_of, outputs_of, secrets_of
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.base import Inputs, State
from pulumi_hosting.schema import fields as schema_fields
from pulumi_hosting.schema.fields import ID, NUMBER, TEXT, WHOLE, Type, fields, to_wire


class Part(BaseModel):
    """A part, with ``one`` field. See :class:`pulumi_hosting.api.models.Server`.

    More of it.
    """

    some_sum: Decimal = Field(description="What it costs.")


class Sample(m.Response):
    id: m.Id
    server_id: int | None = None
    server_ids: list[m.Id]
    tariff_id: int | None = None
    count: int
    share: m.Number = 0.0
    ready: bool
    price: m.Money
    at: m.Timestamp | None = None
    kind: Annotated[str, m.known("a", "b")]
    choice: Literal["x", "y"] | None = None
    only: Literal["z"] | None = None
    code: Secret | None = None
    parts: list[Part]
    answers: dict[str, str]
    open: dict[str, Any]


SHAPES = {field.name: field for field in fields(Sample)}


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("id", ID),
        ("server_id", ID),
        ("server_ids", Type("array", of=ID)),
        ("tariff_id", WHOLE),
        ("count", WHOLE),
        ("share", NUMBER),
        ("ready", Type("boolean")),
        ("price", TEXT),
        ("at", TEXT),
        ("choice", Type("string", choices=("x", "y"))),
        ("code", TEXT),
        ("parts", Type("array", of=Type("object", model=Part))),
        ("answers", Type("map", of=TEXT)),
        ("open", Type("map", of=Type("any"))),
    ],
)
def test_kinds_of_values(name: str, type: Type) -> None:
    assert SHAPES[name].type == type


def test_numbers_of_the_catalog_are_no_ids_of_the_account() -> None:
    for model in (m.Tariff, m.TariffRef, m.Location):
        assert next(field.type for field in fields(model) if field.name == "id") == WHOLE
    assert next(field.type for field in fields(m.Server) if field.name == "id") == ID


def test_an_optional_field_is_not_required() -> None:
    optional = {name for name, field in SHAPES.items() if not field.required}
    assert optional == {"server_id", "tariff_id", "at", "choice", "only", "code"}


def test_secrets_are_marked() -> None:
    assert {name for name, field in SHAPES.items() if field.secret} == {"code"}


def test_a_type_gives_no_description() -> None:
    """A field without words of its own has none: the generator refuses it."""
    assert {field.description for field in SHAPES.values()} == {""}
    with pytest.raises(LookupError, match=r"Sample\.id has no description"):
        contents(Sample, "sample")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("kind", "Which kind. For example `a` or `b`."),
        ("choice", "Only `x` of its own."),
        ("other", "Which one. One of `x` or `y`."),
        ("only", "Which one. Only `z`."),
    ],
)
def test_known_values_follow_a_description_that_names_none(name: str, words: str) -> None:
    class Described(m.Response):
        kind: Annotated[str, m.known("a", "b")] = Field(description="Which kind.")
        choice: Literal["x", "y"] | None = Field(default=None, description="Only `x` of its own.")
        other: Literal["x", "y"] | None = Field(default=None, description="Which one.")
        only: Literal["z"] | None = Field(default=None, description="Which one.")

    assert {field.name: field.description for field in fields(Described)}[name] == words


def test_a_description_of_its_own_comes_first() -> None:
    assert fields(Part)[0].description == "What it costs."


def test_docstrings_become_markdown() -> None:
    assert schema_fields.description(Part) == "A part, with `one` field. See `Server`.\n\nMore of it."


def test_names_of_types_stay_clear_of_the_resources() -> None:
    assert schema_fields.type_name(m.Server) == "ServerInfo"
    assert schema_fields.type_name(m.TopupInfo) == "TopupInfo"
    assert schema_fields.type_name(Part) == "Part"


def test_values_on_the_wire() -> None:
    zone = timezone(timedelta(hours=2))
    sample = Sample.model_construct(
        id=2**62 + 1,
        server_ids=[5],
        tariff_id=3,
        count=2,
        share=0.5,
        ready=True,
        price=Decimal("12.50"),
        at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=zone).astimezone(UTC),
        kind="c",
        code=Secret("hunter2"),
        parts=[Part(some_sum=Decimal("1.00"))],
        answers={"a_b": "c_d"},
        open={"deep_key": [None, {"x_y": 1}]},
    )
    assert schema_fields.object_to_wire(sample) == {
        "id": str(2**62 + 1),
        "serverIds": ["5"],
        "tariffId": 3,
        "count": 2,
        "share": 0.5,
        "ready": True,
        "price": "12.50",
        "at": "2026-01-02T01:04:05Z",
        "kind": "c",
        "code": "hunter2",
        "parts": [{"someSum": "1.00"}],
        "answers": {"a_b": "c_d"},
        "open": {"deep_key": [None, {"x_y": 1}]},
    }


def test_what_is_derived_is_shown_under_its_own_name() -> None:
    delivery = m.Delivery(id=4, event_type="ping", delivered_at=datetime(2026, 1, 2, tzinfo=UTC))
    assert schema_fields.object_to_wire(delivery)["status"] == "delivered"
    assert "given_status" not in {field.name for field in fields(m.Delivery)}


def test_a_file_is_base64() -> None:
    assert to_wire(b"%PDF", TEXT) == "JVBERg=="


@pytest.mark.parametrize(
    ("wire", "plain"), [(3.0, 3), (3.5, 3.5), (2.0**60, 2.0**60), ("3", "3"), (True, True)]
)
def test_whole_numbers_come_back(wire: Any, plain: Any) -> None:
    assert schema_fields.number_from_wire(wire) == plain
    assert type(schema_fields.number_from_wire(wire)) is type(plain)


def test_a_type_that_pulumi_does_not_have_is_a_defect() -> None:
    with pytest.raises(TypeError, match="no Pulumi type"):
        schema_fields.type_of(complex, "number")


@pytest.mark.parametrize("kind", RESOURCES)
def test_every_field_of_a_resource_has_a_shape_and_words(kind: str) -> None:
    resource = RESOURCES[kind]
    inputs: type[Inputs] = resource.Inputs
    state: type[State] = resource.State
    declared = {field.name: field for field in inputs_of(resource)}
    shown = {field.name: field for field in outputs_of(resource)}
    assert set(declared) == {*inputs.model_fields, "wait_timeout"}
    assert set(shown) == {*inputs.model_fields, *state.model_fields} - {"id"}
    assert all(field.description for field in (*declared.values(), *shown.values()))
    assert {name for name, field in declared.items() if field.secret} == inputs.secret_fields()
    assert secrets_of(resource) == inputs.secret_fields() | state.secret_fields()
    assert declared["wait_timeout"].type == NUMBER
    for name, field in declared.items():
        needed = name in inputs.model_fields and inputs.model_fields[name].is_required()
        elsewhere = name in inputs.named_by() or (name == "name" and resource.default_name)
        assert field.required == (needed and not elsewhere), name


@pytest.mark.parametrize("kind", RESOURCES)
def test_every_input_says_what_its_change_does(kind: str) -> None:
    resource = RESOURCES[kind]
    said = [name for names in changes_of(resource).values() for name in names]
    assert sorted(said) == sorted(resource.Inputs.model_fields)
    replacing = changes_of(resource).get("A change replaces it", ())
    assert set(replacing) == {
        name for name in resource.Inputs.model_fields if resource.Inputs.trait(name).replaces
    }
