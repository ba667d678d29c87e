"""Property values as Pulumi's engine knows them, as they are sent, and the paths in them.

A property map is a `dict[str, Any]` of None, bool, float or int, str, list, dict and the classes below.
Maps are never changed in place.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from google.protobuf import struct_pb2

Properties = dict[str, Any]

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  a mark of the protocol, not a secret
RESOURCE_SIGNATURE = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT_SIGNATURE = "d0e6a833031e9bbcd3f4e8bde6ca49a4"

UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
UNKNOWN_STRINGS = frozenset(
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


class UnknownValue:
    """A value that is known after a create only. The one instance is `UNKNOWN`; it equals only itself."""

    def __repr__(self) -> str:
        return "<unknown>"


UNKNOWN = UnknownValue()


@dataclass(frozen=True)
class SecretValue:
    """A secret value: encrypted in the state, hidden in the display."""

    value: object

    def __repr__(self) -> str:
        return "Secret(…)"


@dataclass(frozen=True)
class ResourceReference:
    """A reference to a whole resource; `id` is None for components."""

    urn: str
    id: object = None
    version: str = ""

    def marked(self) -> Properties:
        """As it is sent and saved."""
        fields = {"urn": self.urn, "id": self.id, "packageVersion": self.version}
        return {SIGNATURE: RESOURCE_SIGNATURE} | {
            key: value for key, value in fields.items() if value not in (None, "")
        }


def bare(value: object) -> object:
    while isinstance(value, SecretValue):
        value = value.value
    return value


def mapped(value: object, change: Callable[[object], object]) -> object:
    """The same maps and lists with every other value changed."""
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return [mapped(item, change) for item in value] if isinstance(value, list) else change(value)


def without_secrets(value: object) -> object:
    """The same value with secrets in plain form: for comparisons, and for providers that do not know
    secrets.
    """
    return mapped(value, lambda item: without_secrets(item.value) if isinstance(item, SecretValue) else item)


def _contains(value: object, kind: type) -> bool:
    if isinstance(value, dict | list):
        return any(_contains(item, kind) for item in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, kind) or (isinstance(value, SecretValue) and _contains(value.value, kind))


def contains_secrets(value: object) -> bool:
    return _contains(value, SecretValue)


def contains_unknowns(value: object) -> bool:
    return _contains(value, UnknownValue)


def mark_secrets(outputs: Properties, like: Properties) -> Properties:
    """`outputs` with a value marked secret wherever `like` holds a secret under the same key."""
    marked = dict(outputs)
    for key, before in like.items():
        if key not in marked:
            continue
        value = marked[key]
        if isinstance(value, dict) and isinstance(before, dict):
            marked[key] = mark_secrets(value, before)
        elif not isinstance(value, SecretValue) and contains_secrets(before):
            marked[key] = SecretValue(value)
    return marked


def hide_secrets(value: object) -> object:
    """A printable, JSON-able form: secrets replaced by `[secret]`, unknowns by their wire string."""

    def shown(value: object) -> object:
        if isinstance(value, SecretValue):
            return "[secret]"
        if isinstance(value, ResourceReference):
            return value.urn
        return UNKNOWN_STRING if value is UNKNOWN else value

    return mapped(value, shown)


def changed_keys(old: Properties, new: Properties) -> list[str]:
    """Keys whose value differs, secret or not, in order."""
    return sorted(
        key
        for key in old.keys() | new.keys()
        if without_secrets(old.get(key)) != without_secrets(new.get(key))
    )


# --- as protobuf Structs: what programs and providers send and receive


def from_struct(struct: struct_pb2.Struct, *, keep_null: bool = True) -> Properties:
    """The properties in a Struct. Without `keep_null` null entries of maps are dropped, as in a
    registration.
    """
    return {
        key: from_value(value, keep_null=keep_null)
        for key, value in struct.fields.items()
        if keep_null or value.WhichOneof("kind") != "null_value"
    }


def from_value(value: struct_pb2.Value, *, keep_null: bool = True) -> object:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value in UNKNOWN_STRINGS else value.string_value
    if kind == "number_value":
        return number(value.number_value)
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [from_value(item, keep_null=keep_null) for item in value.list_value.values]
    if kind == "struct_value":
        return from_marked(from_struct(value.struct_value, keep_null=keep_null))
    return None


def from_marked(fields: Properties) -> object:
    """What a map with a signature stands for; the map itself if that is unknown, or there is none."""
    signature = fields.get(SIGNATURE)
    if signature == SECRET_SIGNATURE:
        return SecretValue(fields.get("value"))
    if signature == RESOURCE_SIGNATURE and isinstance(fields.get("urn"), str):
        return ResourceReference(fields["urn"], fields.get("id"), fields.get("packageVersion", ""))
    if signature == OUTPUT_SIGNATURE:
        value = fields.get("value", UNKNOWN)
        return SecretValue(value) if fields.get("secret") else value
    return fields


def number(value: float) -> float | int:
    """Whole numbers as int, so that they read and are saved as whole numbers."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


@dataclass(frozen=True)
class WireFormat:
    """What the peer understands; other values are sent in plain form."""

    secrets: bool = False
    resources: bool = False
    unknowns: bool = True
    outputs: bool = False
    """Unknown and secret values are sent as outputs."""
    nulls: bool = True
    seal: Callable[[object], Properties] = lambda value: {"value": value}
    """How a secret is written, given its value as it is sent."""


def to_struct(properties: Properties, wire: WireFormat = WireFormat()) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    struct.update(_sent(properties, wire))
    return struct


def _sent(properties: Properties, wire: WireFormat) -> Properties:
    return {
        key: sent_value(value, wire)
        for key, value in properties.items()
        if (wire.nulls or value is not None) and (wire.unknowns or bare(value) is not UNKNOWN)
    }


def sent_value(value: object, wire: WireFormat) -> object:
    """What stands for a value on the wire and in the state: text, numbers, lists and maps."""
    if value is None or isinstance(value, (str, int, float)):  # most values: the fastest way first
        return value
    if isinstance(value, dict):
        return _sent(value, wire)
    if isinstance(value, list):
        return [sent_value(item, wire) for item in value]
    match value:
        case UnknownValue() | SecretValue() if wire.outputs:
            inner = bare(value)
            known = {} if contains_unknowns(inner) else {"value": inner}
            plain: object = {SIGNATURE: OUTPUT_SIGNATURE, "secret": value is not UNKNOWN} | known
        case UnknownValue():
            return UNKNOWN_STRING
        case SecretValue() if wire.secrets:
            return {SIGNATURE: SECRET_SIGNATURE} | wire.seal(sent_value(value.value, wire))
        case SecretValue():
            plain = value.value
        case ResourceReference() if wire.resources:
            plain = value.marked()
        case ResourceReference():
            plain = value.urn if value.id is None else value.id
        case _:
            raise TypeError(f"{type(value).__name__} is not a property value")
    return sent_value(plain, wire)


# --- property paths: `a.b[0]["c.d"]`, `*` for every element


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
    """`new` with the value at `path` reset to that in `old`; False when the path is not in both."""
    if not path:
        return old, True
    part, rest = path[0], path[1:]
    if isinstance(new, SecretValue) or isinstance(old, SecretValue):
        value, done = reset_path(path, bare(old), bare(new))
        return (SecretValue(value) if isinstance(new, SecretValue) else value), done
    if part == "*":
        keys: Iterable[Any] = (
            range(len(new)) if isinstance(new, list) else sorted({*(old or {}), *(new or {})})
        )
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
    if (
        isinstance(part, int)
        and isinstance(new, list)
        and isinstance(old, list)
        and part < min(len(old), len(new))
    ):
        value, done = reset_path(rest, old[part], new[part])
        return [*new[:part], value, *new[part + 1 :]], done
    return new, False
