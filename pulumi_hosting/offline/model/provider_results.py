"""What providers answer: the result of a check, of a diff, of a create, read or update."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pulumi.runtime.proto.provider_pb2 import CheckFailure

from .property_values import Properties, changed_keys

Changes = Literal["none", "some", "unknown"]


@dataclass(frozen=True)
class ProviderDiff:
    """The result of a diff.

    `detailed` maps property paths to add, update or delete, with `-replace` if it replaces.
    """

    changes: Changes
    replaces: tuple[str, ...] = ()
    diffs: tuple[str, ...] = ()
    detailed: Mapping[str, str] | None = None
    delete_before_replace: bool = False

    @property
    def replace(self) -> bool:
        return bool(self.replaces) or any(
            kind.endswith("-replace") for kind in (self.detailed or {}).values()
        )

    def inverted(self) -> "ProviderDiff":
        """The diff in the other direction."""
        if self.detailed is None:
            return self
        turned = {"add": "delete", "delete": "add"}
        kinds = ((path, *kind.partition("-")) for path, kind in self.detailed.items())
        return replace(self, detailed={path: turned.get(a, a) + dash + b for path, a, dash, b in kinds})


@dataclass(frozen=True)
class CheckResult:
    inputs: Properties
    failures: Sequence[CheckFailure] = ()


@dataclass(frozen=True)
class ProviderResult:
    """The result of a create, read or update. `outputs` is None only when a read found nothing."""

    id: str
    outputs: Properties | None
    inputs: Properties | None = None
    refresh_before_update: bool = False


def diff_of_inputs(old: Properties, new: Properties) -> ProviderDiff:
    """The engine's comparison, for providers that leave it to the engine."""
    keys = changed_keys(old, new)
    detailed = {key: "add" if key not in old else "delete" if key not in new else "update" for key in keys}
    return ProviderDiff("some" if keys else "none", diffs=tuple(keys), detailed=detailed or None)
