"""Property values as Pulumi's engine knows them, and their two written forms: the wire (protobuf Struct) and plain Python.

A property map is a `dict[str, Any]` of None, bool, float or int, str, list, dict and the marks below. Maps are never changed in place.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import struct_pb2

Properties = dict[str, Any]

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  a mark of the protocol, not a secret
RESOURCE_SIGNATURE = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT_SIGNATURE = "d0e6a833031e9bbcd3f4e8bde6ca49a4"

UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWN_STRINGS = frozenset(
    {
        UNKNOWN_STRING,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)


class Unknown:
    """A value that is not known before something has been created; there is one, `UNKNOWN`, and it equals only itself."""

    def __repr__(self) -> str:
        return "<unknown>"


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Secret:
    """A value nobody may read: encrypted in state, hidden in every display."""

    value: Any

    def __repr__(self) -> str:
        return "Secret(…)"


@dataclass(frozen=True)
class Output:
    """A value with its dependencies, as newer SDKs send it."""

    value: Any
    known: bool = True
    secret: bool = False
    dependencies: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Output(…)"


@dataclass(frozen=True)
class ResourceReference:
    """A reference to a whole resource; `id` is None for components."""

    urn: str
    id: Any = None
    version: str = ""


class UnexpectedUnknown(Exception):
    """A provider answered an unknown value where the real thing exists."""


# From and to the wire.


def from_struct(struct: struct_pb2.Struct, *, keep_null: bool = True, allow_unknown: bool = True) -> Properties:
    """The properties in a Struct. Without `keep_null` null entries of maps are dropped, as a registration drops them."""
    return {
        key: from_value(value, keep_null=keep_null, allow_unknown=allow_unknown)
        for key, value in struct.fields.items()
        if keep_null or value.WhichOneof("kind") != "null_value"
    }


def from_value(value: struct_pb2.Value, *, keep_null: bool = True, allow_unknown: bool = True) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        if value.string_value in _UNKNOWN_STRINGS:
            if not allow_unknown:
                raise UnexpectedUnknown("unexpected unknown property value")
            return UNKNOWN
        return value.string_value
    if kind == "number_value":
        return number(value.number_value)
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [from_value(item, keep_null=keep_null, allow_unknown=allow_unknown) for item in value.list_value.values]
    if kind == "struct_value":
        fields = from_struct(value.struct_value, keep_null=keep_null, allow_unknown=allow_unknown)
        return _from_marked(fields) if SIGNATURE in fields else fields
    return None


def _from_marked(fields: Properties) -> Any:
    signature = fields[SIGNATURE]
    if signature == SECRET_SIGNATURE:
        return Secret(fields.get("value"))
    if signature == RESOURCE_SIGNATURE:
        return ResourceReference(fields["urn"], fields.get("id"), fields.get("packageVersion", ""))
    if signature == OUTPUT_SIGNATURE:
        known = "value" in fields
        return Output(fields.get("value"), known, bool(fields.get("secret")), tuple(fields.get("dependencies") or ()))
    return fields


def number(value: float) -> float | int:
    """Whole numbers as int, so that they read and are saved as whole numbers."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


@dataclass(frozen=True)
class Wire:
    """What the other side of a connection understands; what it does not is sent in its plain form."""

    secrets: bool = False
    resources: bool = False
    unknowns: bool = True


def to_struct(properties: Mapping[str, Any], wire: Wire, *, keep_null: bool = True) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    _fill_struct(struct, properties, wire, keep_null)
    return struct


def _fill_struct(struct: struct_pb2.Struct, properties: Mapping[str, Any], wire: Wire, keep_null: bool) -> None:
    for key, value in properties.items():
        if value is None and not keep_null:
            continue
        if not wire.unknowns and _bare(value) is UNKNOWN:
            continue
        _fill_value(struct.fields[key], value, wire, keep_null)


def _fill_value(target: struct_pb2.Value, value: Any, wire: Wire, keep_null: bool) -> None:
    if isinstance(value, str):
        target.string_value = value
    elif value is None:
        target.null_value = struct_pb2.NULL_VALUE
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int | float):
        target.number_value = value
    elif isinstance(value, dict):
        target.struct_value.SetInParent()
        _fill_struct(target.struct_value, value, wire, keep_null)
    elif isinstance(value, list):
        target.list_value.SetInParent()
        for item in value:
            _fill_value(target.list_value.values.add(), item, wire, keep_null)
    elif value is UNKNOWN:
        target.string_value = UNKNOWN_STRING
    elif isinstance(value, Secret):
        if wire.secrets:
            _fill_marked(target, SECRET_SIGNATURE, {"value": value.value}, wire, keep_null)
        else:
            _fill_value(target, value.value, wire, keep_null)
    elif isinstance(value, Output):
        _fill_value(target, plain_output(value), wire, keep_null)
    elif isinstance(value, ResourceReference):
        if wire.resources:
            fields = {"urn": value.urn} | ({"id": value.id} if value.id is not None else {})
            _fill_marked(target, RESOURCE_SIGNATURE, fields | ({"packageVersion": value.version} if value.version else {}), wire, keep_null)
        else:
            _fill_value(target, value.urn if value.id is None else value.id, wire, keep_null)
    else:
        raise TypeError(f"{type(value).__name__} is not a property value")


def _fill_marked(target: struct_pb2.Value, signature: str, fields: Properties, wire: Wire, keep_null: bool) -> None:
    _fill_struct(target.struct_value, {SIGNATURE: signature} | fields, wire, keep_null)


# Looking into values.


def _bare(value: Any) -> Any:
    while isinstance(value, Secret):
        value = value.value
    return value


def plain_output(value: Output) -> Any:
    inner = value.value if value.known else UNKNOWN
    return Secret(inner) if value.secret else inner


def without_outputs(value: Any) -> Any:
    """The same value with every `Output` replaced by what it holds."""
    if isinstance(value, dict):
        return {key: without_outputs(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_outputs(item) for item in value]
    if isinstance(value, Secret):
        return Secret(without_outputs(value.value))
    if isinstance(value, Output):
        return without_outputs(plain_output(value))
    return value


def without_secrets(value: Any) -> Any:
    """The same value with every secret laid open: for comparing, and for providers that do not know secrets."""
    if isinstance(value, dict):
        return {key: without_secrets(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    return without_secrets(value.value) if isinstance(value, Secret) else value


def _contains(value: Any, kind: type) -> bool:
    if isinstance(value, kind):
        return True
    if isinstance(value, dict):
        return any(_contains(item, kind) for item in value.values())
    if isinstance(value, list):
        return any(_contains(item, kind) for item in value)
    return isinstance(value, Secret) and _contains(value.value, kind)


def contains_secrets(value: Any) -> bool:
    return _contains(value, Secret)


def contains_unknowns(value: Any) -> bool:
    return _contains(value, Unknown)


def mark_secrets(outputs: Properties, like: Mapping[str, Any]) -> Properties:
    """`outputs` with a value marked secret wherever `like` holds a secret under the same key."""
    marked = dict(outputs)
    for key, before in like.items():
        if key not in marked:
            continue
        value = marked[key]
        if isinstance(value, dict) and isinstance(before, dict):
            marked[key] = mark_secrets(value, before)
        elif not isinstance(value, Secret) and contains_secrets(before):
            marked[key] = Secret(value)
    return marked


def hide_secrets(value: Any, hidden: str = "[secret]") -> Any:
    """A printable, JSON-able form: secrets replaced by `hidden`, unknowns by their wire string."""
    if isinstance(value, dict):
        return {key: hide_secrets(item, hidden) for key, item in value.items()}
    if isinstance(value, list):
        return [hide_secrets(item, hidden) for item in value]
    if isinstance(value, Secret):
        return hidden
    if value is UNKNOWN:
        return UNKNOWN_STRING
    if isinstance(value, ResourceReference):
        return value.urn
    return value


def changed_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Keys whose value differs, secret or not, in order."""
    return sorted(key for key in old.keys() | new.keys() if without_secrets(old.get(key)) != without_secrets(new.get(key)))


# Property paths: `a.b[0]["c.d"]`, `*` for every element.

_PATH_PART = re.compile(r'\.?([^.\["\]]+)|\["((?:[^"\\]|\\.)*)"\]|\[(\d+|\*)\]')


def parse_path(path: str) -> list[str | int]:
    """The parts of a property path; ValueError when it is none."""
    parts: list[str | int] = []
    position = 0
    while position < len(path):
        match = _PATH_PART.match(path, position)
        if match is None:
            raise ValueError(f"{path!r} is not a property path")
        name, quoted, index = match.groups()
        if index is not None:
            parts.append("*" if index == "*" else int(index))
        else:
            parts.append(name if name is not None else re.sub(r"\\(.)", r"\1", quoted))
        position = match.end()
    return parts


def path_contains(outer: Iterable[str | int], inner: Iterable[str | int]) -> bool:
    """True when `inner` names the same place as `outer`, or one inside it."""
    outer, inner = list(outer), list(inner)
    return len(outer) <= len(inner) and all(a in ("*", b) for a, b in zip(outer, inner, strict=False))


def reset_path(path: list[str | int], old: Any, new: Any) -> tuple[Any, bool]:
    """`new` with what lies at `path` put back to its value in `old`; False when there is no such place on both sides."""
    if not path:
        return old, True
    part, rest = path[0], path[1:]
    if isinstance(new, Secret) or isinstance(old, Secret):
        value, done = reset_path(path, _bare(old), _bare(new))
        return (Secret(value) if isinstance(new, Secret) else value), done
    if part == "*":
        keys: Iterable[Any] = range(len(new)) if isinstance(new, list) else sorted({*(old or {}), *(new or {})})
        done = True
        for key in keys:
            new, each = reset_path([key, *rest], old, new)
            done = done and each
        return new, done
    if isinstance(part, str) and isinstance(new, dict) and isinstance(old, dict):
        if not rest and part not in old:
            return {key: value for key, value in new.items() if key != part}, True
        if part not in old or (rest and part not in new):
            return new, part not in old and part not in new
        value, done = reset_path(rest, old[part], new.get(part))
        return new | {part: value}, done
    if isinstance(part, int) and isinstance(new, list) and isinstance(old, list) and part < min(len(old), len(new)):
        value, done = reset_path(rest, old[part], new[part])
        return [*new[:part], value, *new[part + 1 :]], done
    return new, False
