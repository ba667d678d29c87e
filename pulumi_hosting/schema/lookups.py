"""Every read of the API as a function, made from the table of operations.

The name follows from the operation's id: its verb becomes ``get``, so ``list_servers`` is ``getServers`` and
``check_domain_availability`` is ``getDomainAvailability``. The arguments are the ids of the path and the
fields of the query; a list is walked whole, so ``cursor`` and ``limit`` are no arguments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulumi_hosting.api.casing import camel
from pulumi_hosting.api.operations import OPERATIONS, Operation
from pulumi_hosting.client.client import Client
from pulumi_hosting.schema.fields import ANYTHING, ID, TEXT, WHOLE, Field, Type, fields, id_of

_WALKING = ("cursor", "limit")


@dataclass(frozen=True, slots=True)
class Lookup:
    """One read. ``value`` is what it finds; ``single`` the property a list, a file or an open object travels
    in, since an answer on Pulumi's wire is always an object."""

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
        return (
            f"{operation.summary}.{needs}{cost}{sandbox} (API document, `{operation.method} "
            f"{operation.path}`)"
        )


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
    id_type = WHOLE if operation.path.startswith("/catalog/") else ID
    path = [Field(name, id_type, True, False, id_of(name)) for name in operation.path_parameters]
    asked = fields(operation.query) if operation.query is not None else ()
    arguments = (*path, *(field for field in asked if field.name not in _WALKING))
    return Lookup(operation, arguments, value, single)


LOOKUPS: Mapping[str, Lookup] = {
    lookup.wire: lookup for lookup in map(_lookup, (row for row in OPERATIONS if not row.is_write))
}
"""Every lookup by its name on the wire."""


def ask(client: Client, lookup: Lookup, ids: Sequence[Any], query: Mapping[str, Any]) -> Any:
    """What it finds, in the client's own models; a list is walked whole. Raises what the client raises."""
    operation = lookup.operation
    if operation.paging == "cursor":
        return list(client.pages(operation.id, *ids, query=query))
    if operation.paging == "list":
        return list(client.items(operation.id, *ids, query=query))
    return client.call(operation.id, *ids, query=query)
