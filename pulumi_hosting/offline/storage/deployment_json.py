"""Pulumi's own deployment JSON (version 3) for the state of a stack."""

import hashlib
import json
from dataclasses import fields

from ..errors import InvalidConfiguration
from ..model.property_values import (
    SECRET_SIGNATURE,
    SIGNATURE,
    UNKNOWN,
    UNKNOWN_STRING,
    Properties,
    SecretValue,
)
from ..model.protobuf import WireFormat, from_marked, sent_value
from ..model.state import PendingOperation, ResourceState, Snapshot, now
from .passphrase import Crypter

ENGINE_VERSION = "offline"


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


# In the order Pulumi writes them. Left out when empty, apart from the four that every resource shows.
KEYS = {
    item.name: {"import_id": "importID"}.get(item.name, _camel(item.name))
    for item in fields(ResourceState)
    if item.name not in ("extra", "saved_text")
}
_ALWAYS = ("urn", "type", "custom")
_VALUES = ("inputs", "outputs", "replacement_trigger")


def resource_to_json(state: ResourceState, crypter: Crypter | None) -> Properties:
    result: Properties = {}
    for name, key in KEYS.items():
        value = getattr(state, name)
        if name in _ALWAYS or value not in (None, "", False, [], {}):
            result[key] = value_to_json(value, crypter) if name in _VALUES else value
    return result | state.extra


def resource_from_json(data: Properties, crypter: Crypter | None) -> ResourceState:
    known: Properties = {name: data[key] for name, key in KEYS.items() if data.get(key) is not None}
    known |= {name: value_from_json(known[name], crypter) for name in _VALUES if name in known}
    if "property_dependencies" in known:  # Pulumi writes null for none
        known["property_dependencies"] = {
            key: urns or [] for key, urns in known["property_dependencies"].items()
        }
    extra = {key: value for key, value in data.items() if key not in KEYS.values()}
    return ResourceState(**known, extra=extra)


def value_to_json(value: object, crypter: Crypter | None) -> object:
    """A value as saved; without a crypter secrets are in plain text, as in `stack export --show-secrets`."""

    def seal(plain: object) -> Properties:
        text = json.dumps(plain, ensure_ascii=False)
        return {"plaintext": text} if crypter is None else {"ciphertext": crypter.encrypt(text)}

    return sent_value(value, WireFormat(secrets=True, resources=True, seal=seal))


def value_from_json(value: object, crypter: Crypter | None) -> object:
    if isinstance(value, list):
        return [value_from_json(item, crypter) for item in value]
    if not isinstance(value, dict):
        return UNKNOWN if value == UNKNOWN_STRING else value
    if value.get(SIGNATURE) == SECRET_SIGNATURE:
        return SecretValue(_opened(value, crypter))
    return from_marked({key: value_from_json(item, crypter) for key, item in value.items()})


def _opened(value: Properties, crypter: Crypter | None) -> object:
    """What a secret of the state holds."""
    text, sealed = value.get("plaintext"), value.get("ciphertext")
    if not isinstance(text, str):
        if not isinstance(sealed, str):
            raise InvalidConfiguration("the state holds a secret without its text")
        if crypter is None:
            raise InvalidConfiguration(
                "the stack holds secrets, but its passphrase is not set; set PULUMI_CONFIG_PASSPHRASE"
            )
        text = crypter.decrypt(sealed)
    try:
        return value_from_json(json.loads(text), crypter)
    except ValueError:
        raise InvalidConfiguration("the state holds a secret that is no JSON") from None


def resource_text(state: ResourceState, crypter: Crypter | None) -> str:
    """One resource as JSON text. With a crypter it is cached until a change: a secret is not encrypted
    again.
    """
    if crypter is None:
        return json.dumps(resource_to_json(state, None), ensure_ascii=False)
    if state.saved_text is None:
        state.saved_text = json.dumps(resource_to_json(state, crypter), ensure_ascii=False)
    return state.saved_text


def deployment_to_text(snapshot: Snapshot, crypter: Crypter | None) -> str:
    """The deployment as JSON text, one resource on a line. Without a crypter secrets are in plain text."""

    magic = hashlib.sha256(ENGINE_VERSION.encode()).hexdigest()
    head: Properties = {"manifest": {"time": now(), "magic": magic, "version": ENGINE_VERSION}}
    if crypter is not None:
        head["secrets_providers"] = {"type": "passphrase", "state": {"salt": crypter.state}}
    parts = [f'"{key}": {json.dumps(value)}' for key, value in (head | snapshot.extra).items()]
    if snapshot.resources:
        parts.append(
            '"resources": [\n'
            + ",\n".join(resource_text(state, crypter) for state in snapshot.resources)
            + "\n]"
        )
    if snapshot.pending:
        operations = (
            f'{{"resource": {resource_text(item.resource, crypter)}, "type": {json.dumps(item.type)}}}'
            for item in snapshot.pending
        )
        parts.append('"pending_operations": [\n' + ",\n".join(operations) + "\n]")
    return "{\n" + ",\n".join(parts) + ',\n"metadata": {}\n}'


def deployment_from_json(data: Properties, crypter: Crypter | None) -> Snapshot:
    kept = ("snippets", "extensions")
    snapshot = Snapshot(extra={key: data[key] for key in kept if key in data})
    snapshot.resources = [_saved(item, crypter) for item in data.get("resources") or []]
    for item in data.get("pending_operations") or []:
        snapshot.pending.append(PendingOperation(item["type"], _saved(item["resource"], crypter)))
    return snapshot


def _saved(item: Properties, crypter: Crypter | None) -> ResourceState:
    state = resource_from_json(item, crypter)
    state.saved_text = json.dumps(item, ensure_ascii=False)
    return state
