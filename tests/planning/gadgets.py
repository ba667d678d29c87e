"""A kind of object with the powers that the planner asks for, on an account that is a dictionary."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, Literal, cast

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.client.key_owner import KeyOwner
from pulumi_hosting.client.shared_store import Files
from pulumi_hosting.planning.apply import Outcome
from pulumi_hosting.planning.check import declared
from pulumi_hosting.provider.failures import WORDS
from pulumi_hosting.resources.base import (
    ADOPTS,
    POLICY,
    REPLACES,
    WHEN_CREATING,
    Inputs,
    OnChange,
    Resource,
    State,
    Trait,
)
from pulumi_hosting.resources.powers import (
    Adoptable,
    Findable,
    Priced,
    Provisioned,
    Rebuildable,
    Registered,
    Repeatable,
    Sandboxed,
)
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session

FIVE = Cost(Decimal("5.00"), "EUR", "one gadget", Decimal("100.00"))
ME = "ansible:/gadget/a"


class GadgetInputs(Inputs):
    name: str
    size: Annotated[int, REPLACES]
    notes: str | None = None
    colour: str | None = None
    key: Annotated[str | None, Trait(replaces=True, rebuilds=True)] = None
    months: Annotated[int | None, WHEN_CREATING] = None
    image: Annotated[str | None, Trait(rebuilds=True)] = None
    zone: Annotated[str | None, REPLACES] = None
    policy: Annotated[str | None, POLICY] = None
    tags: Annotated[list[str] | None, Trait(unordered=True)] = None
    address: Annotated[str | None, Trait(normal=str.lower)] = None
    poke: Annotated[int | None, Trait(trigger=True)] = None
    password: Annotated[Secret | None, Trait(write_only=True)] = None
    adopt_id: Annotated[str | None, ADOPTS] = None
    last: str | None = None


class GadgetState(State):
    name: str = ""
    size: int | None = None
    notes: str | None = None
    colour: str | None = None
    key: str | None = None
    image: str | None = None
    tags: list[str] | None = None
    address: str | None = None
    months: int | None = None
    password: Secret | None = None
    last: str | None = None


class Client:
    """Of a client, the planner uses what names the key, and the store."""

    def __init__(self, *, is_test_key: bool = False, scopes: tuple[str, ...] = ("gadgets:write",)) -> None:
        self.is_test_key, self.scopes = is_test_key, scopes
        self.observer: Any = None
        self.key_owner, self.words, self.store = KeyOwner(self.me), WORDS, Files()

    def me(self) -> Any:
        return SimpleNamespace(scopes=self.scopes)


class Gadget(
    Resource[GadgetInputs, GadgetState],
    Findable[GadgetInputs, GadgetState],
    Adoptable[GadgetInputs],
    Priced,
    Provisioned[GadgetInputs, GadgetState],
    Sandboxed[GadgetState],
):
    """``made_as``: the id of what ``create`` makes; one that begins with ``order-`` is provisional, one that
    begins with ``9`` is simulated. ``log``: what was called.
    """

    kind: ClassVar[str] = "gadget"
    title: ClassVar[str] = "gadget"
    Inputs = GadgetInputs
    State = GadgetState
    scopes: ClassVar = dict.fromkeys(("read", "create", "update", "delete"), ("gadgets:write",))
    natural_key: ClassVar = ("name",)

    def __init__(
        self,
        *there: GadgetState,
        made_as: str = "7",
        price: Cost | None = FIVE,
        sandbox: Literal["listed", "recorded", "refused"] = "listed",
        replacement: Literal["ordered", "free", "once"] = "ordered",
        taken: Takeover | None = None,
    ) -> None:
        self.there = {state.id: state for state in there}
        self.made_as, self.price, self.taken = made_as, price, taken
        self.sandbox, self.replacement = sandbox, replacement  # type: ignore[misc]  # of the class elsewhere
        self.log: list[str] = []
        self.fresh: list[bool] = []
        """Of each search and read, whether it had to be fresh."""

    def find(self, request: Request, inputs: GadgetInputs) -> GadgetState | None:
        assert request.identity == ME
        self.fresh.append(request.fresh)
        return next((state for state in self.there.values() if state.name == inputs.name), None)

    def all(self, request: Request, **filters: Any) -> Iterable[GadgetState]:
        raise AssertionError("nothing lists")

    def takeover(self, request: Request, inputs: GadgetInputs) -> Takeover | None:
        assert request.identity == ME
        return self.taken if inputs.name else None

    def cost(self, request: Request, desired: Mapping[str, Any]) -> Cost | None:
        assert request.identity == ME
        assert "size" in desired
        return self.price

    def is_provisional(self, state: GadgetState) -> bool:
        return state.id.startswith("order-")

    def settle(self, request: Request, state: GadgetState, inputs: GadgetInputs) -> GadgetState:
        assert request.identity == ME
        self.log.append(f"settle {state.id}")
        notes = getattr(inputs, "notes", None)
        return state.model_copy(update={"id": state.id.removeprefix("order-"), "mode": None, "notes": notes})

    def wait(self, request: Request, state: GadgetState) -> GadgetState:
        assert request.identity == ME
        self.log.append(f"wait {state.id}")
        return state.model_copy(update={"id": state.id.removeprefix("order-"), "mode": None})

    def is_simulated(self, id: str) -> bool:
        return id.startswith("9")

    def has_lapsed(self, state: GadgetState, now: datetime) -> bool:
        return False

    def read(self, request: Request, id: str, last: GadgetState | None = None) -> GadgetState | None:
        assert request.identity == ME
        self.fresh.append(request.fresh)
        self.log.append(f"read {id} {last.name if last else None!r}")
        return self.there.get(id)

    def create(self, request: Request, inputs: GadgetInputs) -> GadgetState:
        assert request.identity == ME
        assert type(inputs) is self.Inputs
        self.log.append(f"create {inputs.name} {inputs.size}")
        values = {name: value for name, value in inputs.given().items() if name in GadgetState.model_fields}
        values.pop("notes", None)
        made = GadgetState(id=self.made_as, **values)
        self.there[made.id] = made
        request.save(made)
        if self.taken is not None:
            request.approve()
        return made

    def update(
        self, request: Request, state: GadgetState, inputs: GadgetInputs, fields: frozenset[str]
    ) -> GadgetState:
        assert request.identity == ME
        self.log.append(f"update {state.id}: {', '.join(sorted(fields))}")
        return state.model_copy(update={**{name: getattr(inputs, name) for name in fields}, "mode": None})

    def delete(self, request: Request, state: GadgetState) -> None:
        assert request.identity == ME
        self.log.append(f"delete {state.id}")
        del self.there[state.id]


class RegisteredGadget(Gadget, Registered[GadgetState]):
    """Never deleted; ``waits``: why nothing of it can be changed."""

    title: ClassVar[str] = "registered gadget"
    waits: str | None = None
    released: bool = True

    def why_unchangeable(self, state: GadgetState) -> str | None:
        return self.waits if state.id else None

    def is_released(self, state: GadgetState) -> bool:
        return self.released and bool(state.id)


class RebuildableGadget(Gadget, Rebuildable[GadgetState]):
    """``policy`` says what a change of ``key`` does; two keys are the same but for what follows a space."""

    title: ClassVar[str] = "rebuildable gadget"

    def on_change(self, field: str, desired: Mapping[str, Any]) -> OnChange | None:
        choices: dict[Any, OnChange] = {"replace": "replace", "reinstall": "update", "forbid": "refuse"}
        return choices.get(desired.get("policy"), "keep") if field == "key" else None

    def is_same(self, request: Request, field: str, olds: Mapping[str, Any], after: Any) -> bool:
        assert request.identity == ME
        return field == "key" and bool(olds[field]) and olds[field].split()[0] == after.split()[0]

    def consequence(
        self,
        request: Request | None,
        state: GadgetState,
        fields: frozenset[str],
        replaces: Collection[str],
    ) -> str | None:
        assert replaces or request is None  # only for an object that goes the account is asked
        if replaces:
            return f"{state.id} is replaced"
        return "its disk is erased" if "key" in fields else None


class RepeatableGadget(Gadget, Repeatable[GadgetState]):
    """``more``: ids of second objects, or the error of asking for them."""

    title: ClassVar[str] = "repeatable gadget"
    more: tuple[str, ...] | HostingError = ()

    def doubles(self, request: Request, state: GadgetState) -> list[str]:
        assert request.identity == ME
        self.log.append(f"doubles of {state.id}")
        if isinstance(self.more, HostingError):
            raise self.more
        return [*self.more]


class Plain(Resource[GadgetInputs, GadgetState]):
    """The same without any power."""

    kind: ClassVar[str] = "plain"
    title: ClassVar[str] = "plain thing"
    Inputs: type[Any] = GadgetInputs
    State: type[Any] = GadgetState
    scopes: ClassVar = Gadget.scopes

    def __init__(self, *there: GadgetState) -> None:
        self.there = {state.id: state for state in there}
        self.log: list[str] = []

    def read(self, request: Request, id: str, last: GadgetState | None = None) -> GadgetState | None:
        return self.there.get(id)

    def create(self, request: Request, inputs: GadgetInputs) -> GadgetState:
        self.log.append("create")
        return GadgetState(id="7", name=inputs.name, size=inputs.size)

    def update(
        self, request: Request, state: GadgetState, inputs: GadgetInputs, fields: frozenset[str]
    ) -> GadgetState:
        self.log.append("update")
        return state

    def delete(self, request: Request, state: GadgetState) -> None:
        self.log.append("delete")


@dataclass
class Step(Request):
    """One step, and what it told."""

    messages: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.info = self.messages.append
        self.warn = lambda line: self.messages.append(f"warning: {line}")


def request(client: Client | None = None, *, declared_mode: str | None = None, **more: Any) -> Step:
    """One step of the declaration ``ME``."""
    return Step(Session(cast(Any, client or Client()), declared_mode=declared_mode), ME, **more)


def state(id: str = "7", mode: str | None = "live", **more: Any) -> GadgetState:
    return GadgetState(id=id, mode=mode, **{"name": "a", "size": 2, **more})


def named(**more: Any) -> Any:
    """Inputs that need not describe the object whole."""
    return declared(Gadget(), more).inputs


def fields(outcome: Outcome) -> set[str]:
    return set(outcome.diff.fields)


def facts(outcome: Outcome) -> tuple[Any, ...]:
    return outcome.action, outcome.changed, outcome.before, outcome.after, outcome.state
