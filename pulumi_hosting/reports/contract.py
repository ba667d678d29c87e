"""The table of operations against the service's own OpenAPI document.

Operations, statuses, scopes, cost, sandbox mode, query parameters and the fields of bodies are compared.
Names of schemas and of path parameters, texts and bounds may differ. What the service has beyond that is an
addition: unknown fields of answers are ignored, so an addition to an answer is nothing to worry about.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pulumi_hosting.api.openapi import document
from pulumi_hosting.api.operations import BY_ID
from pulumi_hosting.rehearsal.facts import JsonObject

Kind = Literal["missing", "added", "changed"]

_METHODS = ("get", "post", "put", "patch", "delete")
_FACTS = ("x-scopes", "x-idempotent", "x-expensive", "x-expensive-when", "x-sandbox")
_DEPTH = 6
"""How deep bodies are compared: deeper than any of ours goes, and an end for schemas that hold themselves."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """``missing``: the service has not what we use. ``added``: it has more. ``changed``: another value.

    - ``operation``: its id in our table, or method and path of one that we do not know.
    - ``place``: what of the operation: ``answer 200: server.ip``; empty for the operation itself.
    - ``ours``, ``theirs``: the values, in words; empty where there is none.
    - ``breaks``: calls of this operation may fail.
    """

    kind: Kind
    operation: str
    place: str
    ours: str = ""
    theirs: str = ""
    breaks: bool = False

    def __str__(self) -> str:
        where = f"{self.operation}, {self.place}" if self.place else self.operation
        values = f": {self.theirs} at the service, {self.ours} here" if self.kind == "changed" else ""
        return f"{self.kind}: {where}{values}"

    def facts(self) -> dict[str, object]:
        """The same for machines."""
        return {name: getattr(self, name) for name in self.__slots__}


def differences(theirs: JsonObject, ours: JsonObject | None = None) -> list[Mismatch]:
    """What differs between the service's document and ours, in the order of our table."""
    ours = document() if ours is None else ours
    own, other = _operations(ours), _operations(theirs)
    found: list[Mismatch] = []
    for place, operation in own.items():
        name = str(operation["operationId"])
        if place not in other:
            found.append(Mismatch("missing", name, "", breaks=True))
        else:
            found += _of_operation(name, _Side(ours, operation), _Side(theirs, other[place]))
    more = [place for place in other if place not in own]
    return found + [Mismatch("added", f"{method.upper()} {path}", "") for method, path in more]


def _operations(found: JsonObject) -> dict[tuple[str, str], JsonObject]:
    """By method and path, the names of path parameters left out."""
    return {
        (method, re.sub(r"{[^}]*}", "{}", path.removeprefix("/v1"))): item[method]
        for path, item in _mapping(found.get("paths")).items()
        for method in _METHODS
        if isinstance(item, Mapping) and isinstance(item.get(method), Mapping)
    }


@dataclass(frozen=True)
class _Side:
    """One operation in its document."""

    document: JsonObject
    operation: JsonObject

    def resolve(self, node: object) -> JsonObject:
        """What a node says, references followed, and null taken out of what may be null."""
        for _ in range(_DEPTH):
            if not isinstance(node, Mapping):
                return {}
            if isinstance(reference := node.get("$ref"), str):
                node = self._at(reference)
                continue
            branches = [
                branch
                for key in ("anyOf", "oneOf", "allOf")
                for branch in _list(node.get(key))
                if not (isinstance(branch, Mapping) and branch.get("type") == "null")
            ]
            if len(branches) != 1:
                return node
            node = branches[0]
        return {}

    def _at(self, reference: str) -> object:
        node: object = self.document
        for part in reference.removeprefix("#/").split("/"):
            node = _mapping(node).get(part.replace("~1", "/").replace("~0", "~"))
        return node

    def query(self) -> dict[str, JsonObject]:
        parameters = map(self.resolve, _list(self.operation.get("parameters")))
        return {str(found.get("name")): found for found in parameters if found.get("in") == "query"}

    def body(self) -> JsonObject:
        return self.resolve(_json_schema(self.resolve(self.operation.get("requestBody"))))

    def answers(self) -> dict[str, JsonObject]:
        """Status → schema, of the successes."""
        return {
            str(status): self.resolve(_json_schema(self.resolve(answer)))
            for status, answer in _mapping(self.operation.get("responses")).items()
            if str(status).startswith("2") and isinstance(answer, Mapping)
        }

    def fields(self, schema: JsonObject) -> JsonObject:
        return _mapping(schema.get("properties"))


def _of_operation(name: str, ours: _Side, theirs: _Side) -> Iterator[Mismatch]:
    for fact in _FACTS:
        left, right = _plain(ours.operation.get(fact)), _plain(theirs.operation.get(fact))
        is_known = fact == "x-expensive" and BY_ID[name].live_expensive
        if fact in theirs.operation and left != right and not is_known:
            yield Mismatch("changed", name, fact, left, right, breaks=fact == "x-idempotent")
    yield from _query(name, ours, theirs)
    if (ours.operation.get("requestBody") is None) != (theirs.operation.get("requestBody") is None):
        kind: Kind = "added" if ours.operation.get("requestBody") is None else "missing"
        required = theirs.resolve(theirs.operation.get("requestBody")).get("required") is True
        yield Mismatch(kind, name, "body", breaks=kind == "missing" or required)
    else:
        yield from _sent(name, "body", ours, theirs, ours.body(), theirs.body(), _DEPTH)
    yield from _answers(name, ours, theirs)


def _query(name: str, ours: _Side, theirs: _Side) -> Iterator[Mismatch]:
    own, other = ours.query(), theirs.query()
    for field in own:
        if field not in other:
            yield Mismatch("missing", name, f"query: {field}", breaks=True)
    for field in other:
        if field not in own:
            yield Mismatch("added", name, f"query: {field}", breaks=other[field].get("required") is True)


def _sent(
    name: str, place: str, ours: _Side, theirs: _Side, own: JsonObject, other: JsonObject, depth: int
) -> Iterator[Mismatch]:
    """Fields of a body that we send: one that the service does not know is refused, and so is one that it
    requires and we leave out.
    """
    own_fields, other_fields = ours.fields(own), theirs.fields(other)
    if not other_fields or depth == 0:
        return
    required = {*_list(other.get("required"))} - {*_list(own.get("required"))}
    for field in other_fields:
        if field not in own_fields:
            yield Mismatch("added", name, f"{place}: {field}", breaks=field in required)
        elif field in required:
            yield Mismatch("changed", name, f"{place}: {field}", "optional", "required", breaks=True)
    for field in own_fields:
        if field not in other_fields:
            yield Mismatch("missing", name, f"{place}: {field}", breaks=True)
        else:
            yield from _types(name, f"{place}: {field}", ours, theirs, own_fields[field], other_fields[field])


def _answers(name: str, ours: _Side, theirs: _Side) -> Iterator[Mismatch]:
    own, other = ours.answers(), theirs.answers()
    row = BY_ID[name]
    if str(row.live_status) in other:  # a difference that is known
        other = {str(row.success): other[str(row.live_status)], **other}
    for status in own:
        if status in other:
            yield from _read(name, f"answer {status}", ours, theirs, own[status], other[status], _DEPTH)
        else:  # any 2xx is read, so another one breaks nothing
            yield Mismatch("missing", name, f"answer {status}")
    for status in other:
        if status not in own and status != str(row.live_status):
            yield Mismatch("added", name, f"answer {status}")


def _read(
    name: str, place: str, ours: _Side, theirs: _Side, own: JsonObject, other: JsonObject, depth: int
) -> Iterator[Mismatch]:
    """Fields of an answer: one that we require and the service does not have cannot be read."""
    own_fields, other_fields = ours.fields(own), theirs.fields(other)
    if not other_fields or depth == 0:
        return
    mark = "." if ":" in place else ": "
    for field in own_fields:
        if field not in other_fields:
            needed = field in _list(own.get("required"))
            yield Mismatch("missing", name, f"{place}{mark}{field}", breaks=needed)
            continue
        inner = f"{place}{mark}{field}"
        yield from _types(name, inner, ours, theirs, own_fields[field], other_fields[field])
        left, right = _inner(ours, own_fields[field]), _inner(theirs, other_fields[field])
        yield from _read(name, inner, ours, theirs, left, right, depth - 1)
    for field in other_fields:
        if field not in own_fields:
            yield Mismatch("added", name, f"{place}{mark}{field}")


def _inner(side: _Side, schema: object) -> JsonObject:
    """The object in a field, or in the list in it."""
    found = side.resolve(schema)
    return side.resolve(found["items"]) if "items" in found else found


def _types(
    name: str, place: str, ours: _Side, theirs: _Side, own: object, other: object
) -> Iterator[Mismatch]:
    left, right = _type(ours, own), _type(theirs, other)
    if left and right and not left & right:
        yield Mismatch("changed", name, place, " or ".join(sorted(left)), " or ".join(sorted(right)), True)


def _type(side: _Side, schema: object) -> frozenset[str]:
    """The JSON types that a schema allows, null left out; empty where it does not say."""
    found = side.resolve(schema)
    branches = [*_list(found.get("anyOf")), *_list(found.get("oneOf"))]
    if branches:
        parts = [_type(side, branch) for branch in branches if branch != {"type": "null"}]
        return frozenset().union(*parts) if all(parts) else frozenset()
    given = found.get("type")
    types = [given] if isinstance(given, str) else [text for text in _list(given) if isinstance(text, str)]
    return frozenset("number" if text == "integer" else text for text in types if text != "null")


def _json_schema(holder: JsonObject) -> object:
    return _mapping(_mapping(holder.get("content")).get("application/json")).get("schema")


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(sorted(map(str, value))) or "none"
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {_plain(values)}" for name, values in sorted(value.items())) or "none"
    return "none" if value is None else str(value).lower()


def _mapping(value: object) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
