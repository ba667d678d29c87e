"""Between the protocol's ``Struct`` and plain Python values.

Requests are unmarshalled: secrets in plain text, with the top-level keys that hold any; unknowns as
``conversion.UNKNOWN``. Answers are marshalled: every key that was secret in the request, and every one
that is always secret, is wrapped as a whole, since what is beside a secret in a list or a map is as much a
secret.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.struct_pb2 import Struct, Value

from pulumi_hosting.provider import conversion
from pulumi_hosting.provider.names import PropertyValues, Props

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  a signature of the protocol, not a secret
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
class Properties:
    """Plain values, and the keys of those that hold a secret anywhere."""

    values: Props = field(repr=False)
    secrets: frozenset[str]


def unmarshal(struct: Struct) -> Properties:
    """The values of a request, secrets in plain text."""
    plain: Props = {}
    secrets = set()
    for key, value in struct.fields.items():
        signatures: list[str] = []
        plain[key] = _unmarshal_value(value, signatures)
        if signatures:
            secrets.add(key)
    return Properties(plain, frozenset(secrets))


def marshal(properties: PropertyValues, secrets: Collection[str] = ()) -> Struct:
    """An answer: every key of ``secrets`` that has a value is wrapped. Raises TypeError for what the wire
    cannot carry, by type only.
    """
    struct = Struct()
    for key, value in properties.items():
        plain = _plain(value)
        struct[key] = {SIGNATURE: SECRET, "value": plain} if key in secrets and value is not None else plain
    return struct


def _unmarshal_value(value: Value, signatures: list[str]) -> Any:
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
        return [_unmarshal_value(item, signatures) for item in value.list_value.values]
    if kind == "struct_value":
        return _unmarshal_fields(value.struct_value.fields, signatures)
    return None


def _unmarshal_fields(fields: Mapping[str, Value], signatures: list[str]) -> Any:
    signature = fields[SIGNATURE].string_value if SIGNATURE in fields else ""
    if signature not in (SECRET, OUTPUT):
        return {key: _unmarshal_value(item, signatures) for key, item in fields.items()}
    if signature == SECRET or ("secret" in fields and fields["secret"].bool_value):
        signatures.append(SECRET)
    if "value" in fields:
        return _unmarshal_value(fields["value"], signatures)
    return conversion.UNKNOWN if signature == OUTPUT else None


def _plain(value: Any) -> Any:
    """The value in the types that a ``Struct`` takes."""
    if value is conversion.UNKNOWN:
        return UNKNOWN
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Iterable) and not isinstance(value, bytes | set | frozenset):
        return [_plain(item) for item in value]
    raise TypeError(f"a {type(value).__name__} has no place in a property")
