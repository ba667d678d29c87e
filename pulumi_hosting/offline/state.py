"""A stack's state: resources, pending operations, and Pulumi's own deployment JSON for them (version 3)."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal

from .errors import ConfigurationError
from .secrets import Crypter
from .values import (
    RESOURCE_SIGNATURE,
    SECRET_SIGNATURE,
    SIGNATURE,
    UNKNOWN,
    UNKNOWN_STRING,
    Output,
    Properties,
    ResourceReference,
    Secret,
    plain_output,
)

STACK_TYPE = "pulumi:pulumi:Stack"
PROVIDER_PREFIX = "pulumi:providers:"
ENGINE_VERSION = "offline"

# URNs and provider references: urn:pulumi:<stack>::<project>::<parent types$type>::<name>


def make_urn(stack: str, project: str, parent: str, type: str, name: str) -> str:
    parent_type = qualified_type(parent) if parent else ""
    prefix = f"{parent_type}$" if parent_type and parent_type != STACK_TYPE else ""
    return f"urn:pulumi:{stack}::{project}::{prefix}{type}::{name}"


def qualified_type(urn: str) -> str:
    return urn.split("::", 3)[2] if urn.count("::") >= 3 else ""


def urn_type(urn: str) -> str:
    return qualified_type(urn).rsplit("$", 1)[-1]


def urn_name(urn: str) -> str:
    return urn.split("::", 3)[-1]


def is_provider(type: str) -> bool:
    return type.startswith(PROVIDER_PREFIX)


def package_of(type: str) -> str:
    """The package a type belongs to: `toy` of `toy:index:Thing`, and of `pulumi:providers:toy`."""
    return type.removeprefix(PROVIDER_PREFIX) if is_provider(type) else type.split(":", 1)[0]


def provider_urn(reference: str) -> str:
    return reference.rpartition("::")[0]


def provider_id(reference: str) -> str:
    return reference.rpartition("::")[2]


# Resources.


@dataclass(eq=False)
class State:
    """One resource as it is, or as it shall be. Property maps are replaced, never changed in place."""

    urn: str
    type: str
    custom: bool = False
    delete: bool = False
    id: str = ""
    inputs: Properties = field(default_factory=dict)
    outputs: Properties = field(default_factory=dict)
    parent: str = ""
    protect: bool = False
    taint: bool = False
    external: bool = False
    dependencies: list[str] = field(default_factory=list)
    init_errors: list[str] = field(default_factory=list)
    provider: str = ""
    property_dependencies: dict[str, list[str]] = field(default_factory=dict)
    pending_replacement: bool = False
    additional_secret_outputs: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    custom_timeouts: dict[str, float] = field(default_factory=dict)
    import_id: str = ""
    retain_on_delete: bool = False
    deleted_with: str = ""
    replace_with: list[str] = field(default_factory=list)
    created: str = ""
    modified: str = ""
    source_position: str = ""
    ignore_changes: list[str] = field(default_factory=list)
    hide_diff: list[str] = field(default_factory=list)
    replace_on_changes: list[str] = field(default_factory=list)
    replacement_trigger: Any = None
    refresh_before_update: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
    """What another engine wrote and this one does not know; kept as it is."""
    _written: str | None = field(default=None, init=False, repr=False)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name != "_written":
            object.__setattr__(self, "_written", None)

    @property
    def name(self) -> str:
        return urn_name(self.urn)

    def copy(self, **changes: Any) -> "State":
        return replace(self, **changes)

    def needs(self) -> Iterator[tuple[Literal["parent", "dependency", "property", "deletedWith", "replaceWith"], str]]:
        """Every URN this resource cannot be without, and why; its provider apart."""
        if self.parent:
            yield "parent", self.parent
        yield from (("dependency", urn) for urn in self.dependencies)
        for urns in self.property_dependencies.values():
            yield from (("property", urn) for urn in urns)
        if self.deleted_with:
            yield "deletedWith", self.deleted_with
        yield from (("replaceWith", urn) for urn in self.replace_with)

    def needed_urns(self) -> set[str]:
        """Every URN this resource cannot be without, its provider's among them."""
        return {urn for _, urn in self.needs()} | ({provider_urn(self.provider)} if self.provider else set())

    def written(self, crypter: Crypter | None) -> str:
        """This resource as JSON text, made once for each change: a thousand resources are not encrypted anew for one that moved."""
        if self._written is None:
            self._written = json.dumps(resource_to_json(self, crypter), ensure_ascii=False)
        return self._written


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


# In the order Pulumi writes them. Left out when empty, apart from the four that every resource shows.
_KEYS = {
    item.name: {"import_id": "importID"}.get(item.name, _camel(item.name))
    for item in fields(State)
    if item.name not in ("extra", "_written")
}
_ALWAYS = ("urn", "type", "custom")
_VALUES = ("inputs", "outputs", "replacement_trigger")


def resource_to_json(state: State, crypter: Crypter | None) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, key in _KEYS.items():
        value = getattr(state, name)
        if name in _ALWAYS or value not in (None, "", False, [], {}):
            result[key] = value_to_json(value, crypter) if name in _VALUES else value
    return result | state.extra


def resource_from_json(data: dict[str, Any], crypter: Crypter | None) -> State:
    known = {
        name: (value_from_json(data[key], crypter) if name in _VALUES else data[key])
        for name, key in _KEYS.items()
        if data.get(key) is not None
    }
    extra = {key: value for key, value in data.items() if key not in _KEYS.values()}
    if "property_dependencies" in known:  # Pulumi writes null for none
        known["property_dependencies"] = {key: urns or [] for key, urns in known["property_dependencies"].items()}
    return State(**known, extra=extra)


def value_to_json(value: Any, crypter: Crypter | None) -> Any:
    """A value as state holds it; without a crypter secrets are laid open, as `stack export --show-secrets` does."""
    if isinstance(value, dict):
        return {key: value_to_json(item, crypter) for key, item in value.items()}
    if isinstance(value, list):
        return [value_to_json(item, crypter) for item in value]
    if isinstance(value, Secret):
        text = json.dumps(value_to_json(value.value, crypter), ensure_ascii=False)
        kept = {"plaintext": text} if crypter is None else {"ciphertext": crypter.encrypt(text)}
        return {SIGNATURE: SECRET_SIGNATURE} | kept
    if isinstance(value, Output):
        return value_to_json(plain_output(value), crypter)
    if isinstance(value, ResourceReference):
        reference = {SIGNATURE: RESOURCE_SIGNATURE, "urn": value.urn}
        identity = {} if value.id is None else {"id": UNKNOWN_STRING if value.id is UNKNOWN else value.id}
        return reference | identity | ({"packageVersion": value.version} if value.version else {})
    return UNKNOWN_STRING if value is UNKNOWN else value


def value_from_json(value: Any, crypter: Crypter | None) -> Any:
    if isinstance(value, list):
        return [value_from_json(item, crypter) for item in value]
    if not isinstance(value, dict):
        return UNKNOWN if value == UNKNOWN_STRING else value
    signature = value.get(SIGNATURE)
    if signature == SECRET_SIGNATURE:
        text, sealed = value.get("plaintext"), value.get("ciphertext")
        if not isinstance(text, str):
            if not isinstance(sealed, str):
                raise ConfigurationError("the state holds a secret without its text")
            if crypter is None:
                raise ConfigurationError("the stack holds secrets, but its passphrase is not set; set PULUMI_CONFIG_PASSPHRASE")
            text = crypter.decrypt(sealed)
        try:
            return Secret(value_from_json(json.loads(text), crypter))
        except ValueError:
            raise ConfigurationError("the state holds a secret that is no JSON") from None
    if signature == RESOURCE_SIGNATURE and isinstance(value.get("urn"), str):
        return ResourceReference(value["urn"], value.get("id"), value.get("packageVersion", ""))
    return {key: value_from_json(item, crypter) for key, item in value.items()}


# Deployments.


@dataclass
class PendingOperation:
    """Something that was begun and of which nobody knows the end."""

    type: str
    resource: State


@dataclass
class Snapshot:
    resources: list[State] = field(default_factory=list)
    pending: list[PendingOperation] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    def unfinished(self) -> list[PendingOperation]:
        """Creates that a killed run began, and of which no later run has learned what came of them.

        Pulumi keeps such an entry for ever. One that a later run has answered (its resource is in the state, made after the entry) gets
        the id of that resource here, so that it counts as answered also when the resource has been deleted.
        """
        present = {state.urn: state for state in self.resources if not state.delete}
        for item in self.pending:
            found = present.get(item.resource.urn)
            if item.type == "creating" and not item.resource.id and found is not None and found.created != item.resource.created:
                item.resource.id = found.id or found.urn
        return [item for item in self.pending if item.type == "creating" and not item.resource.id]


def deployment_to_text(snapshot: Snapshot, crypter: Crypter | None) -> str:
    """The deployment as JSON text, one resource on a line. Without a crypter secrets are laid open."""

    def written(state: State) -> str:
        return state.written(crypter) if crypter is not None else json.dumps(resource_to_json(state, None), ensure_ascii=False)

    head: dict[str, Any] = {"manifest": _manifest()}
    if crypter is not None:
        head["secrets_providers"] = {"type": "passphrase", "state": {"salt": crypter.state}}
    parts = [f'"{key}": {json.dumps(value)}' for key, value in (head | snapshot.extra).items()]
    if snapshot.resources:
        parts.append('"resources": [\n' + ",\n".join(map(written, snapshot.resources)) + "\n]")
    if snapshot.pending:
        operations = (f'{{"resource": {written(item.resource)}, "type": {json.dumps(item.type)}}}' for item in snapshot.pending)
        parts.append('"pending_operations": [\n' + ",\n".join(operations) + "\n]")
    return "{\n" + ",\n".join(parts) + ',\n"metadata": {}\n}'


def _manifest() -> dict[str, str]:
    return {"time": now(), "magic": hashlib.sha256(ENGINE_VERSION.encode()).hexdigest(), "version": ENGINE_VERSION}


def deployment_from_json(data: dict[str, Any], crypter: Crypter | None) -> Snapshot:
    kept = ("snippets", "extensions")
    snapshot = Snapshot(extra={key: data[key] for key in kept if key in data})
    for item in data.get("resources") or []:
        state = resource_from_json(item, crypter)
        state._written = json.dumps(item, ensure_ascii=False)
        snapshot.resources.append(state)
    for item in data.get("pending_operations") or []:
        state = resource_from_json(item["resource"], crypter)
        state._written = json.dumps(item["resource"], ensure_ascii=False)
        snapshot.pending.append(PendingOperation(item["type"], state))
    return snapshot


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


# The dependency graph: a resource only ever depends on resources before it in the list.


class Graph:
    def __init__(self, resources: Iterable[State]) -> None:
        self.resources = list(resources)
        self._index = {id(state): position for position, state in enumerate(self.resources)}
        self._standing: dict[int, int] = {}
        self._by_urn: dict[str, list[int]] = {}
        self._children: dict[str, list[int]] = {}
        for position, state in enumerate(self.resources):
            self._by_urn.setdefault(state.urn, []).append(position)
            if state.parent:
                self._children.setdefault(state.parent, []).append(position)

    def alias(self, new: State, old: State) -> None:
        """Let `new` stand where `old` stands."""
        self._index[id(new)] = self._index[id(old)]
        self._standing[id(old)] = id(new)

    def __contains__(self, state: State) -> bool:
        return id(state) in self._index

    def dependencies_of(self, state: State) -> list[State]:
        """Resources that must outlive this one: what it depends on (with the children of components), its provider, its parent."""
        at = self._index[id(state)]
        urns = {urn for kind, urn in state.needs() if kind != "parent"} | ({provider_urn(state.provider)} if state.provider else set())
        found = {position for urn in (urns | {state.parent}) for position in self._by_urn.get(urn, ()) if position < at}
        for position in list(found):
            needed = self.resources[position]
            if not needed.custom and needed.urn in urns:
                found |= {child for child in self._descendants(needed.urn) if child < at}
        return [self.resources[position] for position in sorted(found)]

    def _descendants(self, urn: str) -> set[int]:
        found: set[int] = set()
        todo = [urn]
        while todo:
            for child in self._children.get(todo.pop(), ()):
                if child not in found:
                    found.add(child)
                    todo.append(self.resources[child].urn)
        return found

    def all_dependencies_of(self, state: State) -> set[int]:
        """Identities (`id()`) of everything this resource depends on, near or far."""
        found: set[int] = set()
        todo = [state]
        while todo:
            for needed in self.dependencies_of(todo.pop()):
                if id(needed) not in found:
                    found.add(id(needed))
                    todo.append(needed)
        return found

    def depths(self, states: Iterable[State]) -> dict[int, int]:
        """How deep each of the given states lies among them, by identity: 0 for one that depends on none of the others."""
        depths: dict[int, int] = {}
        # What a state depends on comes before it, so its depth is known when it is needed.
        for state in sorted(states, key=lambda state: self._index[id(state)]):
            needed = (self._standing.get(id(other), id(other)) for other in self.dependencies_of(state))
            depths[id(state)] = max((depths[key] for key in needed if key in depths), default=-1) + 1
        return depths

    def depending_on(self, root: State, ignore: Iterable[str] = (), *, with_children: bool = False) -> list[State]:
        """Resources that depend on `root`, near or far, in order."""
        if root not in self:
            return []
        ignored = set(ignore)
        depended = {root.urn}
        found = []
        for state in self.resources[self._index[id(root)] + 1 :]:
            if state.urn in ignored:
                continue
            needs = {urn for kind, urn in state.needs() if with_children or kind != "parent"}
            if state.provider:
                needs.add(provider_urn(state.provider))
            if needs & depended:
                found.append(state)
                depended.add(state.urn)
        return found


def rebuild(resources: Iterable[State]) -> list[State]:
    """The same resources with references to vanished ones taken out, and orphans given to their parent's parent."""
    result: list[State] = []
    present: set[str] = set()
    parents: dict[str, str] = {}
    for state in resources:
        changes: dict[str, Any] = {}
        if any(urn not in present for kind, urn in state.needs() if kind != "parent"):
            changes["dependencies"] = [urn for urn in state.dependencies if urn in present]
            changes["property_dependencies"] = {
                key: kept for key, urns in state.property_dependencies.items() if (kept := [urn for urn in urns if urn in present])
            }
            changes["replace_with"] = [urn for urn in state.replace_with if urn in present]
            changes["deleted_with"] = state.deleted_with if state.deleted_with in present else ""
        parent = state.parent
        while parent and parent not in present:
            parent = parents.get(parent, "")
        for key, value in (changes | ({"parent": parent} if parent != state.parent else {})).items():
            setattr(state, key, value)
        parents[state.urn] = parent
        present.add(state.urn)
        result.append(state)
    return result
