"""Pulumi's own deployment JSON (version 3) for the state of a stack: written, read, and checked."""

import hashlib
import json
from dataclasses import fields
from typing import get_type_hints

from ..errors import InvalidConfiguration
from ..model.property_values import (
    SECRET_SIGNATURE,
    SIGNATURE,
    UNKNOWN,
    UNKNOWN_STRING,
    Properties,
    SecretValue,
    WireFormat,
    from_marked,
    sent_value,
)
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


# --- the structure of a deployment read from a file, which may have been edited and hold any JSON

_TYPES = {KEYS[name]: kind for name, kind in get_type_hints(ResourceState).items() if name in KEYS}


def problem_of(deployment: object) -> str | None:
    """What is wrong with a deployment, without its values; None when its structure is valid."""
    if not isinstance(deployment, dict):
        return "its deployment is no object"
    secrets = deployment.get("secrets_providers")
    if secrets is not None:
        state = secrets.get("state") if isinstance(secrets, dict) else []
        if not (state is None or isinstance(state, dict)) or not isinstance(
            (state or {}).get("salt", ""), str
        ):
            return "secrets_providers is not as Pulumi writes it"
    for key in ("resources", "pending_operations"):
        if not isinstance(deployment.get(key) or [], list):
            return f"{key} is no list"
    for number, item in enumerate(deployment.get("resources") or []):
        if problem := _resource(item):
            return f"resource {number}: {problem}"
    for number, item in enumerate(deployment.get("pending_operations") or []):
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            return f"pending operation {number} has no type"
        if problem := _resource(item.get("resource")):
            return f"pending operation {number}: {problem}"
    return None


def _resource(item: object) -> str | None:
    if not isinstance(item, dict):
        return "no object"
    for key in ("urn", "type"):
        if not isinstance(item.get(key), str) or not item[key]:
            return f"{key} is missing"
    if not item["urn"].startswith("urn:pulumi:") or item["urn"].count("::") < 3:  # stack, project, type, name
        return "urn is no URN"
    wrong = [key for key, kind in _TYPES.items() if not _is(item.get(key), kind)]
    return f"{', '.join(wrong)} not as Pulumi writes it" if wrong else None


def _is(value: object, kind: object) -> bool:
    """Whether it is of the type of the field, or null, which stands for none."""
    if value is None or kind is object:
        return True
    if kind == list[str]:
        return isinstance(value, list) and all(isinstance(text, str) for text in value)
    if kind == dict[str, list[str]]:
        return isinstance(value, dict) and all(_is(urns, list[str]) for urns in value.values())
    if kind == dict[str, float]:
        return isinstance(value, dict) and all(type(seconds) in (int, float) for seconds in value.values())
    return isinstance(value, dict if kind == Properties else str if kind is str else bool)
