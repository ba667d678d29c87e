"""The shape of our models as the frontends see it: kinds of values, names, what is needed, what is secret,
what it means.

One reading of a pydantic model, for schema, generated classes, options, documentation and the values
themselves, so that they agree:

- money and time are text (``"12.50"``, RFC 3339 in UTC); a file is text in base64;
- ids of the account's objects are text, since numbers of frontends may be floats and ids have 64 bits;
  numbers of the catalog (tariffs, locations) are whole numbers;
- names are camelCase on Pulumi's wire and Python's elsewhere; keys of open maps stay as they are.
"""

import base64
import inspect
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, AwareDatetime, BaseModel
from pydantic.fields import FieldInfo

from pulumi_hosting.api import models as m
from pulumi_hosting.api.casing import camel
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.resources.base import ALWAYS, Inputs, OneOf, State, mentions_secret

Kind = Literal["string", "integer", "number", "boolean", "array", "map", "object", "any"]

_CATALOG_NAMES = frozenset({"tariff_id", "location_id"})
_CATALOG_MODELS = (m.Tariff, m.TariffRef, m.Location)


@dataclass(frozen=True, slots=True)
class Type:
    """A kind of value. ``of``: what an array or a map holds; ``model``: what an object is; ``is_id``:
    text for a number of 64 bits; ``choices``: the only values there are, if the set is closed; ``several``:
    a list of them may be given, too.
    """

    kind: Kind
    of: "Type | None" = None
    model: type[BaseModel] | None = None
    is_id: bool = False
    choices: tuple[str | int, ...] = ()
    several: bool = False

    def models(self) -> Iterator[type[BaseModel]]:
        """The model it refers to, if any."""
        if self.of is not None:
            yield from self.of.models()
        if self.model is not None:
            yield self.model


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a model. ``name`` is Python's, ``wire`` Pulumi's; ``required``: always there (an answer)
    or always needed (an input).
    """

    name: str
    type: Type
    required: bool
    secret: bool
    description: str

    @property
    def wire(self) -> str:
        return camel(self.name)


TEXT, WHOLE, NUMBER, FLAG, ANYTHING = (
    Type("string"),
    Type("integer"),
    Type("number"),
    Type("boolean"),
    Type("any"),
)
ID = Type("string", is_id=True)


def fields(model: type[BaseModel]) -> tuple[Field, ...]:
    """The fields of a model, in its order. What an answer carries beyond them is left out: it may be a
    secret of a later version.
    """
    return tuple(_field(model, name, info) for name, info in model.model_fields.items())


def type_name(model: type[BaseModel]) -> str:
    """What an object type is called in every language: the API's own models end in ``Info``, as their
    names are taken by resources.
    """
    return f"{model.__name__.removesuffix('Info')}Info" if issubclass(model, m.Response) else model.__name__


def nested(types: Sequence[Type]) -> tuple[type[BaseModel], ...]:
    """Every model that these types refer to, directly or not; those that others need come first."""
    found: dict[type[BaseModel], None] = {}

    def visit(model: type[BaseModel]) -> None:
        if model not in found:
            for field in fields(model):
                for other in field.type.models():
                    visit(other)
            found[model] = None

    for one in types:
        for model in one.models():
            visit(model)
    return tuple(found)


# --- reading a model ---------------------------------------------------------------------------------------


def _field(model: type[BaseModel], attribute: str, info: FieldInfo) -> Field:
    name = info.serialization_alias or attribute
    annotation, optional = _without_none(info.annotation)
    found = type_of(annotation, name, model)
    if choices := numbers_allowed(info):
        found = replace(found, choices=choices)
    required = info.is_required() if issubclass(model, Inputs | m.RequestModel) else not optional
    if issubclass(model, Inputs) and attribute in model.named_by():
        required = False  # its name may be given instead
    if issubclass(model, State) and ALWAYS in info.metadata:
        required = True
    return Field(name, found, required, mentions_secret(info.annotation), _description(annotation, info))


def numbers_allowed(info: FieldInfo) -> tuple[int, ...]:
    """The only numbers that a validator of the field lets pass; empty if it has no such list."""
    parts = (getattr(part, "__metadata__", ()) for part in get_args(info.annotation))
    validators = (mark.func for mark in chain(info.metadata, *parts) if isinstance(mark, AfterValidator))
    return next((one.allowed for one in validators if isinstance(one, OneOf)), ())


def type_of(annotation: object, name: str = "", owner: type[BaseModel] | None = None) -> Type:
    """The kind of value an annotation describes; ``name`` and ``owner`` tell an id from a number."""
    annotation, _ = _without_none(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return replace(type_of(type(arguments[0]), name, owner), choices=arguments)
    if origin in (list, tuple, set, frozenset, Sequence):
        return Type("array", of=type_of(arguments[0], name.removesuffix("s"), owner))
    if origin in (Union, types.UnionType):
        one, *others = (_without_none(member)[0] for member in arguments)
        if [get_origin(other) for other in others] == [list]:
            return replace(type_of(one, name, owner), several=True)
    if origin in (dict, Mapping):
        return Type("map", of=type_of(arguments[1]))
    if annotation is Any or not inspect.isclass(annotation):
        return ANYTHING  # Any, or a union of several things
    if issubclass(annotation, BaseModel):
        return Type("object", model=annotation)
    if issubclass(annotation, bool):
        return FLAG
    if issubclass(annotation, int):
        return ID if _is_account_id(name, owner) else WHOLE
    if issubclass(annotation, float):
        return NUMBER
    if issubclass(annotation, str | Secret | Decimal | datetime | AwareDatetime | bytes):
        return TEXT
    if annotation is dict:
        return Type("map", of=ANYTHING)
    raise TypeError(f"{name}: there is no Pulumi type for {annotation!r}")


def _is_account_id(name: str, owner: type[BaseModel] | None) -> bool:
    if owner is not None and issubclass(owner, _CATALOG_MODELS):
        return False
    return name == "id" or (name.endswith("_id") and name not in _CATALOG_NAMES)


def _without_none(annotation: object) -> tuple[object, bool]:
    """The annotation without ``Annotated`` and ``None``, and whether ``None`` was among it."""
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            return _without_none(members[0])[0], len(members) < len(get_args(annotation))
        return annotation, len(members) < len(get_args(annotation))
    return annotation, annotation is type(None)


def _description(annotation: object, info: FieldInfo) -> str:
    """What a field means: its own words, then the values it may have, unless the words name one of them.
    Empty without words of its own: a type does not say what a field means.
    """
    words, values = info.description or "", _values(annotation, info)
    if (
        not words
        or not values
        or any(re.search(rf"\b{re.escape(str(value))}\b", words) for value in values[1])
    ):
        return words
    return f"{words} {values[0]}"


def _values(annotation: object, info: FieldInfo) -> tuple[str, Sequence[object]] | None:
    """The values that a field may have, in words too; None if they are not listed."""
    if get_origin(annotation) is Literal:
        allowed = get_args(annotation)
        return (f"One of {_list(allowed)}." if len(allowed) > 1 else f"Only {_list(allowed)}."), allowed
    examples = _examples(Annotated[info.annotation, info])
    return (f"For example {_list(examples)}.", examples) if examples else None


def id_of(name: str) -> str:
    """What an id is the id of, by its name."""
    subject = name.removesuffix("id").rstrip("_").replace("_", " ")
    return f"Id of the {'address' if subject == 'ip' else subject}." if subject else "Id."


def _examples(annotation: object) -> list[object]:
    """The documented values of a text, which stand on the annotation inside an optional one."""
    for part in get_args(annotation):
        extra = getattr(part, "json_schema_extra", None)
        if isinstance(extra, dict) and extra.get("examples"):
            return list(extra["examples"])
        if found := _examples(part):
            return found
    return []


def _list(values: Sequence[object]) -> str:
    *head, last = (f"`{value}`" for value in values)
    return f"{', '.join(head)} or {last}" if head else last


def description(model: type[BaseModel]) -> str:
    """The model's own docstring in Markdown; empty if it has none."""
    return markdown(model.__dict__.get("__doc__") or "")


def markdown(docstring: str) -> str:
    """A docstring as the schema's Markdown: one kind of quotes, no roles, one paragraph per block."""
    return "\n\n".join(" ".join(block.split()) for block in quoted(docstring).split("\n\n"))


def quoted(docstring: str) -> str:
    """A docstring with Markdown's quotes and without roles; its lines stay as they are."""
    text = inspect.cleandoc(docstring).replace("``", "`")
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)


# --- values ------------------------------------------------------------------------------------------------


def to_wire(value: Any, type: Type) -> object:
    """An answer's value as Pulumi carries it. Secrets are revealed: the field says that it is one."""
    if value is None or type.kind == "any":
        return value
    if isinstance(value, BaseModel):
        return object_to_wire(value)
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if type.of is not None:
        if isinstance(value, Mapping):
            return {key: to_wire(item, type.of) for key, item in value.items()}
        return [to_wire(item, type.of) for item in value]
    return str(value) if type.kind == "string" else value


def object_to_wire(value: BaseModel) -> dict[str, object]:
    """A model as a mapping of wire names; what is absent is left out."""
    described = ((field, getattr(value, field.name)) for field in fields(type(value)))
    return {field.wire: to_wire(item, field.type) for field, item in described if item is not None}


def number_from_wire(value: object) -> object:
    """Pulumi's numbers are floats: a whole one becomes an int again."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def shown(value: Any, type: Type) -> object:
    """An answer's value for those who print it: every field by Python's name, None if it is absent,
    and no secret.
    """
    if isinstance(value, BaseModel):
        return {
            field.name: shown(getattr(value, field.name), field.type)
            for field in fields(value.__class__)
            if not field.secret
        }
    if type.of is not None and type.of.model is not None and value is not None:
        return [shown(item, type.of) for item in value]
    return to_wire(value, type)
