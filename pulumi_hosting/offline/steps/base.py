"""A step: one operation on one resource.

The generator decides steps; the engine announces, applies and saves them.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

from ..model.property_values import Properties, SecretValue
from ..model.state import ResourceState
from ..model.urns import is_provider
from ..providers.interface import ReadableProvider


class StepContext(Protocol):
    """What a step may use while it is applied."""

    preview: bool

    def provider_of(self, state: ResourceState) -> ReadableProvider: ...
    def same_provider(self, state: ResourceState, inputs: Properties) -> None: ...
    def warn(self, urn: str, message: str) -> None: ...
    def info(self, urn: str, message: str) -> None: ...


@dataclass(eq=False)
class Step:
    """One announced operation.

    `partial`: the provider failed, and what it had created or changed is in `new`.
    """

    op: str
    old: ResourceState | None = None
    new: ResourceState | None = None
    keys: tuple[str, ...] = ()
    diffs: tuple[str, ...] = ()
    detailed: Any = None
    partial: bool = field(default=False, init=False)

    @property
    def before(self) -> ResourceState:
        """The old state, of a step that has one."""
        if self.old is None:
            raise TypeError(f"a {self.op} step has no old state")
        return self.old

    @property
    def after(self) -> ResourceState:
        """The new state, of a step that has one."""
        if self.new is None:
            raise TypeError(f"a {self.op} step has no new state")
        return self.new

    @property
    def res(self) -> ResourceState:
        return self.new or self.before

    @property
    def urn(self) -> str:
        return self.res.urn

    @property
    def logical(self) -> bool:
        """Counted in the summary; the physical halves of a replacement are not."""
        return True

    @property
    def internal(self) -> bool:
        """Not shown: default providers, and bookkeeping."""
        return is_provider(self.res.type) and self.res.name.startswith("default")

    def apply(self, context: StepContext) -> None:
        """Run the step. Raises `ProviderError`; afterwards `new` is the state to save."""


def mark_secret_outputs(state: ResourceState) -> None:
    """Outputs named in `additional_secret_outputs`, and those whose input of the same name is secret, become
    secret.
    """
    marked = {
        key: SecretValue(value)
        for key, value in state.outputs.items()
        if not isinstance(value, SecretValue)
        and (key in state.additional_secret_outputs or isinstance(state.inputs.get(key), SecretValue))
    }
    if marked:
        state.outputs = state.outputs | marked
