"""Between the protocol's ``Struct`` and plain Python values.

What arrives is *opened*: secrets are unmarshalled in plain text and remembered by their top-level key,
unknowns become ``pulumi.output.Unknown``. What is answered is *closed* again: every key that was secret on
the way in, and every one that is secret by nature, is wrapped. Whole keys are wrapped, never parts of a
value: what is beside a secret in a list or a map is as much a secret.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.struct_pb2 import ListValue, Struct, Value
from pulumi.output import Unknown

from pulumi_hosting.provider import conversion

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  a mark of the protocol, not a secret
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWNS = frozenset(
    {
        UNKNOWN,  # text, and whatever has no type
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # list
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # map
    }
)


@dataclass(frozen=True, slots=True)
class Opened:
    """Plain values, and the keys of those that hold a secret anywhere."""

    values: dict[str, Any] = field(repr=False)
    secrets: frozenset[str]


def opened(struct: Struct) -> Opened:
    """The values of a request, secrets in plain text."""
    plain: dict[str, Any] = {}
    secrets = set()
    for key, value in struct.fields.items():
        marks: list[str] = []
        plain[key] = _open(value, marks)
        if marks:
            secrets.add(key)
    return Opened(plain, frozenset(secrets))


def closed(properties: Mapping[str, Any], secrets: Collection[str] = ()) -> Struct:
    """An answer: every key of ``secrets`` that has a value is wrapped. Raises TypeError for what the wire
    cannot carry, by type only.
    """
    struct = Struct()
    for key, value in properties.items():
        target = struct.fields[key]
        if key in secrets and value is not None:
            target.struct_value.fields[SIGNATURE].string_value = SECRET
            target = target.struct_value.fields["value"]
        _close(value, target)
    return struct


def _open(value: Value, marks: list[str]) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        text = value.string_value
        return conversion.UNKNOWN if text in _UNKNOWNS else text
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_open(item, marks) for item in value.list_value.values]
    if kind == "struct_value":
        return _open_fields(value.struct_value.fields, marks)
    return None


def _open_fields(fields: Mapping[str, Value], marks: list[str]) -> Any:
    signature = fields[SIGNATURE].string_value if SIGNATURE in fields else ""
    if signature == SECRET:
        marks.append(SECRET)
        return _open(fields["value"], marks) if "value" in fields else None
    if signature == OUTPUT:
        if "secret" in fields and fields["secret"].bool_value:
            marks.append(SECRET)
        return _open(fields["value"], marks) if "value" in fields else conversion.UNKNOWN
    return {key: _open(item, marks) for key, item in fields.items()}


def _close(value: Any, target: Value) -> None:
    if value is None:
        target.null_value = 0  # type: ignore[assignment]  # the only value of its enum
    elif isinstance(value, Unknown):
        target.string_value = UNKNOWN
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int | float):
        target.number_value = value
    elif isinstance(value, str):
        target.string_value = value
    elif isinstance(value, Mapping):
        target.struct_value.CopyFrom(Struct())  # an empty map is a map too
        for key, item in value.items():
            _close(item, target.struct_value.fields[str(key)])
    elif isinstance(value, Iterable) and not isinstance(value, bytes | set | frozenset):
        target.list_value.CopyFrom(ListValue())
        for item in value:
            _close(item, target.list_value.values.add())
    else:
        raise TypeError(f"a {type(value).__name__} has no place in a property")
