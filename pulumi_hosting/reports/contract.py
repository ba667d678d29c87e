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
from pulumi_hosting.rehearsal.facts import JsonObject, mapping

Kind = Literal["missing", "added", "changed"]

_METHODS = ("get", "post", "put", "patch", "delete")
_FACTS = ("x-scopes", "x-idempotent", "x-expensive", "x-expensive-when", "x-sandbox")
_BODY = ("content", "application/json", "schema")
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


def differences(theirs: JsonObject) -> list[Mismatch]:
    """What differs between the service's document and ours, in the order of our table."""
    own, other = _operations(document()), _operations(theirs)
    found: list[Mismatch] = []
    for place, operation in own.items():
        name = str(operation.found["operationId"])
        if place not in other:
            found.append(Mismatch("missing", name, "", breaks=True))
        else:
            found += _of_operation(name, operation, other[place])
    more = [place for place in other if place not in own]
    return found + [Mismatch("added", f"{method.upper()} {path}", "") for method, path in more]


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of a document. A schema is one too."""

    document: JsonObject
    value: object

    @property
    def found(self) -> JsonObject:
        """What it says, references followed, and null taken out of what may be null; empty where it is no
        object.
        """
        node = self.value
        for _ in range(_DEPTH):
            if not isinstance(node, Mapping):
                break
            if isinstance(reference := node.get("$ref"), str):
                node = self._referred(reference)
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

    def _referred(self, reference: str) -> object:
        node: object = self.document
        for part in reference.removeprefix("#/").split("/"):
            node = mapping(node).get(part.replace("~1", "/").replace("~0", "~"))
        return node

    def at(self, *names: str) -> "_Node":
        """What stands below these names."""
        node = self
        for name in names:
            node = _Node(self.document, node.found.get(name))
        return node

    def parts(self, name: str) -> "dict[str, _Node]":
        """What stands below a name, by its own names."""
        return {str(key): _Node(self.document, part) for key, part in mapping(self.found.get(name)).items()}

    def elements(self, name: str) -> "list[_Node]":
        """What the list of a name holds."""
        return [_Node(self.document, element) for element in _list(self.found.get(name))]

    @property
    def required(self) -> set[object]:
        return {*_list(self.found.get("required"))}

    @property
    def inner(self) -> "_Node":
        """The object in a field, or in the list in it."""
        return self.at("items") if "items" in self.found else self

    @property
    def types(self) -> frozenset[str]:
        """The JSON types that a schema allows, null left out; empty where it does not say."""
        branches = [*self.elements("anyOf"), *self.elements("oneOf")]
        if branches:
            parts = [branch.types for branch in branches if branch.value != {"type": "null"}]
            return frozenset().union(*parts) if all(parts) else frozenset()
        given = self.found.get("type")
        types = [given] if isinstance(given, str) else _list(given)
        texts = [text for text in types if isinstance(text, str)]
        return frozenset("number" if text == "integer" else text for text in texts if text != "null")


def _operations(found: JsonObject) -> dict[tuple[str, str], _Node]:
    """By method and path, the names of path parameters left out."""
    return {
        (method, re.sub(r"{[^}]*}", "{}", path.removeprefix("/v1"))): _Node(found, item[method])
        for path, item in mapping(found.get("paths")).items()
        for method in _METHODS
        if isinstance(item, Mapping) and isinstance(item.get(method), Mapping)
    }


def _of_operation(name: str, ours: _Node, theirs: _Node) -> Iterator[Mismatch]:
    for fact in _FACTS:
        left, right = _plain(ours.found.get(fact)), _plain(theirs.found.get(fact))
        is_known = fact == "x-expensive" and BY_ID[name].live_expensive
        if fact in theirs.found and left != right and not is_known:
            yield Mismatch("changed", name, fact, left, right, breaks=fact == "x-idempotent")
    yield from _fields(name, "query", _query(ours), _query(theirs), is_sent=True)
    own, other = ours.at("requestBody"), theirs.at("requestBody")
    if (own.value is None) != (other.value is None):
        kind: Kind = "added" if own.value is None else "missing"
        is_needed = kind == "missing" or other.found.get("required") is True
        yield Mismatch(kind, name, "body", breaks=is_needed)
    else:
        yield from _fields(name, "body", own.at(*_BODY), other.at(*_BODY), is_sent=True)
    yield from _answers(name, ours, theirs)


def _query(operation: _Node) -> _Node:
    """The parameters of the query as a schema that says nothing of their types."""
    given = [found for one in operation.elements("parameters") if (found := one.found).get("in") == "query"]
    required = [found.get("name") for found in given if found.get("required") is True]
    return _Node({}, {"properties": {found.get("name"): None for found in given}, "required": required})


def _answers(name: str, ours: _Node, theirs: _Node) -> Iterator[Mismatch]:
    """Of the successes."""
    own, other = (
        {status: part.at(*_BODY) for status, part in side.parts("responses").items() if status[0] == "2"}
        for side in (ours, theirs)
    )
    row = BY_ID[name]
    if str(row.live_status) in other:  # a difference that is known
        other = {str(row.success): other[str(row.live_status)], **other}
    for status in own:
        if status not in other:  # any 2xx is read, so another one breaks nothing
            yield Mismatch("missing", name, f"answer {status}")
        else:
            yield from _fields(name, f"answer {status}", own[status], other[status], is_sent=False)
    for status in other:
        if status not in own and status != str(row.live_status):
            yield Mismatch("added", name, f"answer {status}")


def _fields(
    name: str, place: str, ours: _Node, theirs: _Node, *, is_sent: bool, depth: int = _DEPTH
) -> Iterator[Mismatch]:
    """Fields that we send: one that the service does not know is refused, and so is one that it requires and
    we leave out. Fields of an answer: one that we require and the service does not have cannot be read.
    """
    own, other = ours.parts("properties"), theirs.parts("properties")
    if not other and place != "query":
        return  # the service does not describe it
    now_required = theirs.required - ours.required if is_sent else set()
    mark = "." if ":" in place else ": "
    for field in own:
        inner = f"{place}{mark}{field}"
        if field not in other:
            yield Mismatch("missing", name, inner, breaks=is_sent or field in ours.required)
            continue
        if field in now_required:
            yield Mismatch("changed", name, inner, "optional", "required", breaks=True)
        left, right = own[field].types, other[field].types
        if left and right and not left & right:
            here, there = (" or ".join(sorted(types)) for types in (left, right))
            yield Mismatch("changed", name, inner, here, there, breaks=True)
        if not is_sent and depth > 1:
            both = own[field].inner, other[field].inner
            yield from _fields(name, inner, *both, is_sent=False, depth=depth - 1)
    for field in other:
        if field not in own:
            yield Mismatch("added", name, f"{place}{mark}{field}", breaks=field in now_required)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(sorted(map(str, value))) or "none"
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {_plain(values)}" for name, values in sorted(value.items())) or "none"
    return "none" if value is None else str(value).lower()


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
