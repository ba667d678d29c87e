"""Property values as protobuf Structs: what programs and providers send and receive."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    UnexpectedUnknown,
    bare,
    plain_output,
)


def from_struct(
    struct: struct_pb2.Struct, *, keep_null: bool = True, allow_unknown: bool = True
) -> Properties:
    """The properties in a Struct. Without `keep_null` null entries of maps are dropped, as in a
    registration.
    """
    return {
        key: from_value(value, keep_null=keep_null, allow_unknown=allow_unknown)
        for key, value in struct.fields.items()
        if keep_null or value.WhichOneof("kind") != "null_value"
    }


def from_value(value: struct_pb2.Value, *, keep_null: bool = True, allow_unknown: bool = True) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        if value.string_value in UNKNOWN_STRINGS:
            if not allow_unknown:
                raise UnexpectedUnknown("unexpected unknown property value")
            return UNKNOWN
        return value.string_value
    if kind == "number_value":
        return number(value.number_value)
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [
            from_value(item, keep_null=keep_null, allow_unknown=allow_unknown)
            for item in value.list_value.values
        ]
    if kind == "struct_value":
        fields = from_struct(value.struct_value, keep_null=keep_null, allow_unknown=allow_unknown)
        return _from_marked(fields) if SIGNATURE in fields else fields
    return None


def _from_marked(fields: Properties) -> Any:
    signature = fields[SIGNATURE]
    if signature == SECRET_SIGNATURE:
        return SecretValue(fields.get("value"))
    if signature == RESOURCE_SIGNATURE:
        return ResourceReference(fields["urn"], fields.get("id"), fields.get("packageVersion", ""))
    if signature == OUTPUT_SIGNATURE:
        known = "value" in fields
        return Output(
            fields.get("value"), known, bool(fields.get("secret")), tuple(fields.get("dependencies") or ())
        )
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


def to_struct(
    properties: Mapping[str, Any], wire: WireFormat, *, keep_null: bool = True
) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    _fill_struct(struct, properties, wire, keep_null)
    return struct


def _fill_struct(
    struct: struct_pb2.Struct, properties: Mapping[str, Any], wire: WireFormat, keep_null: bool
) -> None:
    for key, value in properties.items():
        if value is None and not keep_null:
            continue
        if not wire.unknowns and bare(value) is UNKNOWN:
            continue
        _fill_value(struct.fields[key], value, wire, keep_null)


def _fill_value(target: struct_pb2.Value, value: Any, wire: WireFormat, keep_null: bool) -> None:
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
    else:
        _fill_special(target, value, wire, keep_null)


def _fill_special(target: struct_pb2.Value, value: Any, wire: WireFormat, keep_null: bool) -> None:
    if value is UNKNOWN:
        target.string_value = UNKNOWN_STRING
    elif isinstance(value, SecretValue):
        if wire.secrets:
            _fill_marked(target, SECRET_SIGNATURE, {"value": value.value}, wire, keep_null)
        else:
            _fill_value(target, value.value, wire, keep_null)
    elif isinstance(value, Output):
        if wire.outputs:
            fields = {"value": value.value} if value.known else {}
            more = {"secret": value.secret, "dependencies": list(value.dependencies)}
            _fill_marked(target, OUTPUT_SIGNATURE, fields | more, wire, keep_null)
        else:
            _fill_value(target, plain_output(value), wire, keep_null)
    elif isinstance(value, ResourceReference):
        if wire.resources:
            fields = {"urn": value.urn} | ({"id": value.id} if value.id is not None else {})
            _fill_marked(
                target,
                RESOURCE_SIGNATURE,
                fields | ({"packageVersion": value.version} if value.version else {}),
                wire,
                keep_null,
            )
        else:
            _fill_value(target, value.urn if value.id is None else value.id, wire, keep_null)
    else:
        raise TypeError(f"{type(value).__name__} is not a property value")


def _fill_marked(
    target: struct_pb2.Value, signature: str, fields: Properties, wire: WireFormat, keep_null: bool
) -> None:
    _fill_struct(target.struct_value, {SIGNATURE: signature} | fields, wire, keep_null)
