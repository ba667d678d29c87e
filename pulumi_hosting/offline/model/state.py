"""The resources of a stack: one state per resource, and the snapshot of all."""

from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any

from .property_values import Properties
from .urns import provider_urn, urn_name


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


@dataclass(eq=False)
class ResourceState:
    """The state of one resource: saved, or planned. Property maps are replaced, never changed in place."""

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
    ignore_changes: list[str] = field(default_factory=list)
    hide_diff: list[str] = field(default_factory=list)
    replace_on_changes: list[str] = field(default_factory=list)
    replacement_trigger: object = None
    refresh_before_update: bool = False
    extra: Properties = field(default_factory=dict)
    """Fields of another engine that this one does not know; saved unchanged."""
    saved_text: str | None = field(default=None, init=False, repr=False)
    """The resource as JSON text of the state file; None after a change."""

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        if name != "saved_text":
            object.__setattr__(self, "saved_text", None)

    @property
    def name(self) -> str:
        return urn_name(self.urn)

    def copy(self, **changes: Any) -> "ResourceState":
        return replace(self, **changes)

    def is_saved_as(self, other: "ResourceState") -> bool:
        """Whether both have the same text in the state."""
        return all(
            getattr(self, item.name) == getattr(other, item.name) for item in fields(self) if item.init
        )

    def depends_on(self) -> set[str]:
        """The URNs of its dependencies: all that it needs but its provider and its parent."""
        of_properties = (urn for urns in self.property_dependencies.values() for urn in urns)
        return {*self.dependencies, *of_properties, *self.replace_with, self.deleted_with} - {""}

    def needed_urns(self, *, with_parent: bool = True) -> set[str]:
        """Every URN that this resource needs."""
        parent = self.parent if with_parent else ""
        return (self.depends_on() | {provider_urn(self.provider), parent}) - {""}


@dataclass
class PendingOperation:
    """An operation that was started and whose outcome is unknown."""

    type: str
    resource: ResourceState


@dataclass
class Snapshot:
    resources: list[ResourceState] = field(default_factory=list)
    pending: list[PendingOperation] = field(default_factory=list)
    extra: Properties = field(default_factory=dict)

    def unfinished(self) -> list[PendingOperation]:
        """Creates that a killed run started, and whose outcome no later run has found.

        Pulumi keeps such an entry for ever. When a later run has created the resource, the entry gets its id
        here, so that it counts as finished also after the resource is deleted.
        """
        present = {state.urn: state for state in self.resources if not state.delete}
        for item in self.pending:
            found = present.get(item.resource.urn)
            if (
                item.type == "creating"
                and not item.resource.id
                and found is not None
                and found.created != item.resource.created
            ):
                item.resource.id = found.id or found.urn
        return [item for item in self.pending if item.type == "creating" and not item.resource.id]
