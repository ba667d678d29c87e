"""Property values as protobuf Structs: what programs and providers send and receive."""

from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf import struct_pb2

from .property_values import (
    OUTPUT_SIGNATURE,
    RESOURCE_SIGNATURE,
    SECRET_SIGNATURE,
    SIGNATURE,
    UNKNOWN,
    UNKNOWN_STRING,
    UNKNOWN_STRINGS,
    Output,
    Properties,
    ResourceReference,
    SecretValue,
    Unknown,
    bare,
    plain_output,
)


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
        known, secret = "value" in fields, bool(fields.get("secret"))
        return Output(fields.get("value"), known, secret, tuple(fields.get("dependencies") or ()))
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
        case Unknown():
            return UNKNOWN_STRING
        case SecretValue() if wire.secrets:
            return {SIGNATURE: SECRET_SIGNATURE} | wire.seal(sent_value(value.value, wire))
        case SecretValue():
            plain = value.value
        case Output() if wire.outputs:
            known = {"value": value.value} if value.known else {}
            more = {"secret": value.secret, "dependencies": list(value.dependencies)}
            plain = {SIGNATURE: OUTPUT_SIGNATURE} | known | more
        case Output():
            plain = plain_output(value)
        case ResourceReference() if wire.resources:
            plain = value.marked()
        case ResourceReference():
            plain = value.urn if value.id is None else value.id
        case _:
            raise TypeError(f"{type(value).__name__} is not a property value")
    return sent_value(plain, wire)
