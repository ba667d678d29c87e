"""Every read of the API as a function, made from the table of operations.

The name follows from the operation's id: its verb becomes ``get``, so ``list_servers`` is ``getServers`` and
``check_domain_availability`` is ``getDomainAvailability``. The arguments are the ids of the path and the fields of the query; a list is
walked whole, so ``cursor`` and ``limit`` are no arguments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from pulumi_hosting.api.client import Client
from pulumi_hosting.api.errors import InvalidInput
from pulumi_hosting.api.operations import OPERATIONS, Operation
from pulumi_hosting.provider.shapes import (
    ANYTHING,
    ID,
    TEXT,
    WHOLE,
    Field,
    Type,
    fields,
    id_of,
    number_from_wire,
    object_to_wire,
    to_wire,
)
from pulumi_hosting.provider.values import camel

_WALKING = ("cursor", "limit")


@dataclass(frozen=True, slots=True)
class Lookup:
    """One read. ``value`` is what it finds; ``single`` the property a list, a file or an open object travels in, since an answer on
    Pulumi's wire is always an object."""

    operation: Operation
    arguments: tuple[Field, ...]
    value: Type
    single: str | None

    @property
    def name(self) -> str:
        """Python's name."""
        return f"get_{_subject(self.operation.id)}"

    @property
    def wire(self) -> str:
        """Pulumi's name."""
        return camel(self.name)

    @property
    def results(self) -> tuple[Field, ...]:
        """The properties of the answer."""
        if self.single is None and self.value.model is not None:
            return fields(self.value.model)
        return (Field(self.single or "value", self.value, True, False, _WHAT.get(self.value.kind, "")),)

    @property
    def has_secrets(self) -> bool:
        return any(field.secret for field in self.results)

    @property
    def description(self) -> str:
        """What it answers, which scope it needs, what it costs."""
        operation = self.operation
        needs = f" Scope {', '.join(f'`{scope}`' for scope in operation.scopes)}." if operation.scopes else ""
        cost = " Counts as an expensive request." if operation.expensive else ""
        sandbox = " Not for test keys." if operation.sandbox == "forbidden" else ""
        return f"{operation.summary}.{needs}{cost}{sandbox} (API document, `{operation.method} {operation.path}`)"


_WHAT = {"array": "What was found.", "string": "The file, in base64.", "map": "The document."}


def _subject(operation_id: str) -> str:
    return operation_id.partition("_")[2]


def _lookup(operation: Operation) -> Lookup:
    answer = operation.responses[operation.success]
    if answer is bytes:
        value, single = TEXT, "content"
    elif answer is dict:
        value, single = Type("map", of=ANYTHING), "document"
    elif operation.paging != "none":
        value, single = fields(answer)[0].type, _subject(operation.id)
    else:
        value, single = Type("object", model=answer), None
    return Lookup(operation, _arguments(operation), value, single)


def _arguments(operation: Operation) -> tuple[Field, ...]:
    catalog = operation.path.startswith("/catalog/")
    path = tuple(Field(name, WHOLE if catalog else ID, True, False, id_of(name)) for name in operation.path_parameters)
    query: type[BaseModel] | None = operation.query
    asked = fields(query) if query is not None else ()
    return path + tuple(field for field in asked if field.name not in _WALKING)


LOOKUPS: Mapping[str, Lookup] = {lookup.wire: lookup for lookup in map(_lookup, (row for row in OPERATIONS if not row.is_write))}
"""Every lookup by its name on the wire."""


def names() -> tuple[str, ...]:
    """The names on the wire, in the order of the API document."""
    return tuple(LOOKUPS)


def call(client: Client, name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Ask, and answer in wire values. ``name`` may be a whole token (``hosting:index:getServers``).

    Raises ``InvalidInput`` for a name or an argument that does not exist, one that is missing and one with a wrong value, before anything
    is sent; then what the client raises.
    """
    lookup = LOOKUPS.get(name.rpartition(":")[2])
    if lookup is None:
        raise InvalidInput({"name": "no lookup has this name"}, "the lookup")
    ids, query = _given(lookup, args)
    try:
        return _asked(client, lookup, ids, query)
    except InvalidInput as error:
        wrong, subject = error.fields, lookup.wire
    raise InvalidInput({camel(field): reason for field, reason in wrong.items()}, subject)


def _asked(client: Client, lookup: Lookup, ids: list[Any], query: dict[str, Any]) -> dict[str, Any]:
    operation = lookup.operation
    found: Any
    if operation.paging == "cursor":
        found = list(client.pages(operation.id, *ids, query=query))
    elif operation.paging == "list":
        found = list(client.items(operation.id, *ids, query=query))
    else:
        found = client.call(operation.id, *ids, query=query)
    if lookup.single is None:
        return object_to_wire(found)
    return {camel(lookup.single): to_wire(found, lookup.value)}


def _given(lookup: Lookup, args: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The ids of the path and the fields of the query, in Python's names."""
    known = {field.wire: field for field in lookup.arguments}
    given = {name: number_from_wire(value) for name, value in args.items() if value is not None}
    wrong = {name: f"is no argument of {lookup.wire}; there are {', '.join(known) or 'none'}" for name in given if name not in known}
    wrong |= {name: "is needed" for name, field in known.items() if field.required and name not in given}
    if wrong:
        raise InvalidInput(wrong, lookup.wire)
    mine = {known[name].name: str(value) if known[name].type.is_id else value for name, value in given.items()}
    ids = [mine.pop(name) for name in lookup.operation.path_parameters]
    return ids, {**mine}
