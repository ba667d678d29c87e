"""The lookups as Pulumi asks for them: names and values of its wire."""

from typing import Any

from pulumi_hosting.api.casing import camel
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.provider.names import PropertyValues, Props
from pulumi_hosting.schema.fields import number_from_wire, object_to_wire, to_wire
from pulumi_hosting.schema.lookups import LOOKUPS, Lookup, ask


def call(client: Client, name: str, args: PropertyValues) -> Props:
    """Ask, and answer in wire values. ``name`` may be a whole token (``hosting:index:getServers``).

    Raises ``InvalidInput`` for a name or an argument that does not exist, one that is missing and one with a
    wrong value, before anything is sent; then what the client raises.
    """
    lookup = LOOKUPS.get(name.rpartition(":")[2])
    if lookup is None:
        raise InvalidInput({"name": "no lookup has this name"}, "the lookup")
    ids, query = _given(lookup, args)
    try:
        found = ask(client, lookup, ids, query)
        if lookup.single is None:
            return object_to_wire(found)
        return {camel(lookup.single): to_wire(found, lookup.value)}
    except InvalidInput as error:
        wrong, subject = error.fields, lookup.wire
    raise InvalidInput({camel(field): reason for field, reason in wrong.items()}, subject)


def _given(lookup: Lookup, args: PropertyValues) -> tuple[list[Any], Props]:
    """The ids of the path and the fields of the query, in Python's names."""
    known = {field.wire: field for field in lookup.arguments}
    given = {name: number_from_wire(value) for name, value in args.items() if value is not None}
    wrong = {
        name: f"is no argument of {lookup.wire}; there are {', '.join(known) or 'none'}"
        for name in given
        if name not in known
    }
    wrong |= {name: "is needed" for name, field in known.items() if field.required and name not in given}
    if wrong:
        raise InvalidInput(wrong, lookup.wire)
    mine = {
        known[name].name: str(value) if known[name].type.is_id else value for name, value in given.items()
    }
    ids = [mine.pop(name) for name in lookup.operation.path_parameters]
    return ids, {**mine}
