"""A step: one operation on one resource.

The generator decides steps; the engine announces, applies and saves them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from ..errors import InitError
from ..model.property_values import Properties, SecretValue, parse_path, reset_path
from ..model.provider_results import ProviderDiff, ProviderResult, diff_of_inputs
from ..model.state import ResourceState
from ..model.urns import is_provider
from ..providers.registry import Registry, ResourceProvider

_Plain = Literal["same", "create", "update", "delete", "replace", "read", "refresh", "discard", "import"]
_New = Literal["create-replacement", "read-replacement", "import-replacement"]
_Old = Literal["delete-replaced", "discard-replaced", "remove-pending-replace"]
Op = _Plain | _New | _Old

SIGNS = {
    "same": " ",
    "create": "+",
    "update": "~",
    "delete": "-",
    "replace": "+-",
    "create-replacement": "++",
    "delete-replaced": "--",
    "read": ">",
    "read-replacement": ">>",
    "refresh": "~",
    "discard": "<",
    "discard-replaced": "<<",
    "import": "=",
    "import-replacement": "=>",
}
DELETES = ("delete", "delete-replaced", "discard", "discard-replaced", "remove-pending-replace")
NO_CHANGE = frozenset({"same", "read", "discard", "read-replacement"})
"""Operations that `--expect-no-changes` allows."""


def verb(op: str, *, done: bool) -> str:
    """What an operation does, or has done: `create replacement`, `discarded original`."""
    act, _, kind = op.partition("-")
    if act == "read":
        kind = f"for {kind}" if kind else ""
    elif done:
        act += "d" if act.endswith("e") else "ed"
    return f"{act} {'original' if kind == 'replaced' else kind}".rstrip()


class StepContext(Protocol):
    """What a step may use while it is applied."""

    preview: bool
    registry: Registry

    def provider_of(self, state: ResourceState) -> ResourceProvider: ...
    def warn(self, urn: str, message: str) -> None: ...
    def info(self, urn: str, message: str) -> None: ...


@dataclass(eq=False)
class Step:
    """One announced operation.

    `partial`: the provider failed, and what it had created or changed is in `new`.
    """

    op: Op
    old: ResourceState | None = None
    new: ResourceState | None = None
    keys: tuple[str, ...] = ()
    diffs: tuple[str, ...] = ()
    detailed: Mapping[str, str] | None = None
    replacing: bool = False
    """One of the physical halves of a replacement."""
    hidden: bool = False
    """Bookkeeping, which is not shown."""
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
        return not self.replacing

    @property
    def internal(self) -> bool:
        """Not shown: default providers, and bookkeeping."""
        return self.hidden or (is_provider(self.res.type) and self.res.name.startswith("default"))

    def apply(self, context: StepContext) -> None:
        """Run the step. Raises `ProviderError`; afterwards `new` is the state to save."""

    def fail_partly(self, failure: InitError | None) -> None:
        """Raise the failure, if there is one, now that what it left is in `new`."""
        if failure is not None:
            self.after.init_errors = failure.reasons
            self.partial = True
            raise failure


def attempt(call: Callable[[], ProviderResult]) -> tuple[ProviderResult, InitError | None]:
    """What a provider answers, or what it left when the object is not ready, and why."""
    try:
        return call(), None
    except InitError as error:
        return error.result, error


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


# --- comparing the declared inputs of a resource with its state


def ignoring(inputs: Properties, old: Properties, paths: Iterable[str]) -> tuple[Properties, list[str]]:
    """Inputs with every ignored path reset to its old value, and the paths that could not be reset."""
    failed = []
    for path in paths:
        try:
            inputs, done = reset_path(parse_path(path), old, inputs)
        except ValueError:
            continue
        if not done:
            failed.append(path)
    return inputs, failed


def diff_resource(
    provider: ResourceProvider, old: ResourceState, news: Properties, ignore: list[str], *, preview: bool
) -> ProviderDiff:
    """The provider's diff; the engine's comparison of the inputs if the provider leaves it to the
    engine.
    """
    diff = provider.diff(old, news, ignore, preview=preview)
    if diff.changes != "unknown":
        return diff
    own = diff_of_inputs(old.inputs, ignoring(news, old.inputs, ignore)[0])
    return replace(diff, changes=own.changes, diffs=own.diffs, detailed=own.detailed)
