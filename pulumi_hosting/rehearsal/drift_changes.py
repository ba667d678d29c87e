"""Changes resources outside of Pulumi, through the emulator's control interface, as their fields declare
it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pulumi_hosting.api.casing import camel
from pulumi_hosting.offline.model.property_values import SIGNATURE
from pulumi_hosting.rehearsal.facts import JsonObject
from pulumi_hosting.rehearsal.managed_objects import kind_of
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.base import Resource
from pulumi_hosting.resources.drift_fields import Drift, drifts
from pulumi_hosting.resources.powers import on_change

Call = Callable[..., Any]
"""The control interface: ``call("PATCH", "/servers/1", {...})``."""


@dataclass(frozen=True)
class Managed:
    """A resource of a stack: ``declaration`` its kind, ``resource`` its entry as ``stack export`` prints
    it.
    """

    declaration: Resource[Any, Any]
    resource: JsonObject

    @property
    def urn(self) -> str:
        return str(self.resource["urn"])

    @property
    def name(self) -> str:
        return self.urn.rsplit("::", 1)[-1]

    @property
    def path(self) -> str:
        """The object in the control interface."""
        return control_path(self.declaration).format(*str(self.resource["id"]).split("/"))

    def fields(self) -> list[str]:
        """The managed fields that can change outside and that an `up` repairs; those that need a replacement
        last. Without secrets: no engine names a secret field of a dynamic resource.
        """
        managed, given = self.resource["outputs"].get("__managed", ()), self.resource["inputs"]
        managed = [field for field in managed if SIGNATURE not in str(given.get(camel(field)))]
        inputs = {field: given.get(camel(field)) for field in self.declaration.Inputs.model_fields}
        fields = [field for field in drifts(self.declaration.Inputs) if field in managed]
        repairs = {field: on_change(self.declaration, field, inputs) for field in fields}
        return [field for repair in ("update", "replace") for field in fields if repairs[field] == repair]

    def change(self, call: Call, field: str) -> None:
        """Change a field outside."""
        drift: Drift = drifts(self.declaration.Inputs)[field]
        other = drift.other(self.resource["outputs"].get(camel(field)))
        call("PATCH", self.path, {drift.sent_as or field: other})

    def delete(self, call: Call) -> None:
        """Delete the object outside."""
        removal = self.declaration.control_removal
        if removal is None:
            call("DELETE", self.path)
        else:
            call("PATCH", self.path, removal)


def control_path(declaration: Resource[Any, Any]) -> str:
    """Where the emulator's control interface has the objects of a kind."""
    return declaration.control_path or f"/{declaration.kind.replace('_', '-')}s/{{}}"


def managed_resources(export: JsonObject) -> list[Managed]:
    """The managed resources of a stack, in an order in which each can be deleted.

    Parts of another object (their ids name it) come before it, records of a part (removed by PATCH) before
    the part.
    """
    found = [
        Managed(declaration, resource)
        for resource in export["deployment"].get("resources", [])
        if (declaration := RESOURCES.get(kind_of(resource["type"]) or ""))
        and not (resource.get("external") or resource.get("delete"))
    ]

    def order(managed: Managed) -> tuple[int, bool, str]:
        depth = str(managed.resource["id"]).count("/")
        return -depth, managed.declaration.control_removal is None, managed.urn

    return sorted(found, key=order)
