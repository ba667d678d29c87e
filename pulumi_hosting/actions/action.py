"""The contract every action keeps, and the way all of them go.

A resource is what a user declares; an action does one thing to what exists already, and refuses to do it
twice for one intent: run twice, killed and run again, its answer lost and run again, there is one effect and
one charge.

- ``plan``     only reads, and returns what would happen: whether anything changes, the state before and
               after, the cost. It raises what can be known to be wrong before anything is sent.
- ``perform``  does what the plan says, and returns the result. It is called only if there is something to
               do.

``act`` is the whole way for a frontend. Results are models of plain values (money, time and ids as text),
secrets apart.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar, cast, get_args

from pydantic import Field, ValidationError, model_validator

from pulumi_hosting.api import models as m
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.api.secrets import clean_text
from pulumi_hosting.client.exceptions import (
    CallError,
    InvalidInput,
    InvalidResponse,
    NotFound,
    ServerError,
    TransportError,
    Unavailable,
)
from pulumi_hosting.exactly_once import purchase_journal
from pulumi_hosting.exactly_once.payments import Payment
from pulumi_hosting.planning import paid_reads
from pulumi_hosting.planning.check import reasons
from pulumi_hosting.planning.modes_and_scopes import guard, refuse_other_mode
from pulumi_hosting.resources.base import AnyResource, I, IdText, Inputs, Record, Resource, S, State
from pulumi_hosting.resources.powers import Remarked, listed, mode_of, sandbox_of
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import AmbiguousMatch, Failed, NoSuchObject, ResourceError
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

Shown = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
"""What may be shown of a result: every field but the secrets; one mapping, or a list of them."""


class Result(Record):
    """What an action brought."""

    mode: str | None = optional("live, or test: done with a test key, so only simulated.")


R = TypeVar("R", bound=Result | State)
T = TypeVar("T")
P = TypeVar("P", bound=Result)


@dataclass(frozen=True)
class ActionPlan:
    """What would happen.

    - ``before``, ``after``: what is there, and the result as far as it can be known; None if it cannot.
    - ``cost``: what is charged from the balance. ``note``: why nothing is done, or what to know of it.
    - ``change``: what changes, before and after, if ``before`` and ``after`` cannot show it (a date that
      is only known to be reached).
    - ``reaches``: until when a renewal pays for certain (RFC 3339, UTC).
    - ``fetches``: nothing changes, and there is something to ask for all the same (a probe, a link).
    - ``target``: the resource and the object that is changed; a key of the other mode must leave it alone.
    - ``data``: what ``perform`` needs of what was read.
    """

    changed: bool
    before: Shown = None
    after: Shown = None
    cost: Cost | None = None
    note: str | None = None
    change: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None
    reaches: str | None = None
    fetches: bool = False
    target: tuple[AnyResource, State] | None = field(default=None, repr=False)
    data: Any = field(default=None, repr=False)


def nothing(shown: Shown, note: str, *, fetches: bool = False, data: object = None) -> ActionPlan:
    """Nothing changes, since all is as it would be."""
    return ActionPlan(False, shown, shown, note=note, fetches=fetches, data=data)


class Action(ABC, Generic[I, R]):
    """One thing that is done to what exists already. See the module's text for the contract.

    ``Inputs`` and ``Result`` are the two classes in its brackets.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    Inputs: type[I]
    Result: type[R]
    result: ClassVar[str]
    """What the result is called, in a frontend that names results."""
    many: ClassVar[bool] = False
    """Whether the result is a list."""
    charges: ClassVar[bool] = False
    """Whether doing it is paid from the balance."""
    makes_password: ClassVar[bool] = False
    """Whether the result has a new root password, which is shown only once."""
    scopes: ClassVar[tuple[str, ...]]
    """Scopes that doing it needs."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.Inputs, cls.Result = get_args(vars(cls)["__orig_bases__"][0])[:2]

    @classmethod
    def called(cls, given: Mapping[str, object]) -> str:
        """What a message calls the object: ``server 'web'``, by what was ``given``."""
        kind = cls.kind.partition("_")[0]
        title = {"api": "API key", "webhook": "webhook subscription"}.get(kind, kind)
        named = [given[name] for name in ("name", "id", "key_id") if given.get(name) is not None]
        shown = clean_text(str(named[0]), 100) if named else ""
        return f"{title} {shown if shown.isdigit() else repr(shown)}" if shown else title

    @abstractmethod
    def plan(self, request: Request, inputs: I) -> ActionPlan:
        """What would happen. Reads only."""

    @abstractmethod
    def perform(self, request: Request, inputs: I, plan: ActionPlan) -> R | list[R]:
        """Do it, once; the result."""


AnyAction = Action[Any, Any]


@dataclass(frozen=True)
class ActionOutcome(ActionPlan):
    """What was done, or would be. ``before`` and ``after`` hold no secrets; ``result`` does, if the action
    brings any.

    In a dry run ``after`` and ``result`` are what is predicted, None if that cannot be known.
    ``predicted`` is that after a real run too, so that a frontend can show one difference for both.
    """

    result: Any = field(default=None, repr=False)
    predicted: Shown = None

    @property
    def failed(self) -> bool:
        """Whether a probe was made, and did not succeed."""
        return isinstance(self.after, Mapping) and self.after.get("ok") is False


def _ignore(cost: Cost | None) -> None:
    pass


def act(
    request: Request,
    action: Action[Any, Any],
    inputs: Any,
    *,
    dry_run: bool = False,
    approve: Callable[[Cost | None], None] = _ignore,
) -> ActionOutcome:
    """Plan; have the cost approved, if there is one; do it, unless ``dry_run``, which sends no write and does
    not wait.

    ``approve`` raises to refuse; nothing was sent by then. It gets None if the price is not known.

    Raises ``InvalidInput``, ``ResourceError`` and whatever the service answers.
    """
    plan = action.plan(request, inputs)
    if not dry_run and (plan.changed or plan.fetches):
        refuse_other_mode(request.client, request.session.declared_mode)
    if plan.changed and not dry_run and plan.target is not None:
        guard(request, *plan.target)
    if plan.changed and action.charges and (plan.cost is None or plan.cost.amount > 0):
        approve(plan.cost)
        if dry_run and plan.cost is not None:
            paid_reads.remark_on_order(request, plan.cost)
        if dry_run and plan.target is not None:
            _warn_of_refusal(request, *plan.target)
    before, after = _stamped(request, action, plan.before), _stamped(request, action, plan.after)
    outcome = ActionOutcome(**{**vars(plan), "before": before, "after": after})
    if not dry_run and not plan.changed and (paid := _unreported(request, action, outcome)):
        outcome = _as_paid(outcome, paid)
        purchase_journal.reported(request.unreported)
    predicted = _each(outcome.after, action.Result.model_validate)
    outcome = replace(outcome, result=predicted, predicted=outcome.after)
    if dry_run or not (plan.changed or outcome.fetches):
        return outcome
    if action.charges:
        request = replace(request, approve=lambda: request.session.paying(request, plan.cost))
    result = action.perform(request, inputs, plan)
    purchase_journal.reported(request.unreported)
    after = _stamped(request, action, _each(result, lambda item: item.shown()))
    return replace(outcome, after=after, result=_each(result, partial(_marked, request)))


def _warn_of_refusal(request: Request, resource: AnyResource, state: State) -> None:
    """Say that nothing renews it, if staff locked it or its end is approved."""
    what = resource.prepaid(request, state) if isinstance(resource, Remarked) else None
    if what and (what.is_locked or what.is_cancelled):
        line = paid_reads.remark(request, resource, state, {}).line
        request.warn(f"it would be refused: {line or what.label}")


def _each(found: Any, change: Callable[[Any], Any]) -> Any:
    """``change`` of what is found: of each item if it is a list, None if it is None."""
    if isinstance(found, list):
        return [change(item) for item in found]
    return None if found is None else change(found)


def _unreported(request: Request, action: AnyAction, outcome: ActionOutcome) -> Payment | None:
    """What an interrupted run paid for this and did not report."""
    if not action.charges or not isinstance(outcome.before, Mapping) or not outcome.before.get("id"):
        return None
    subject = f"{action.result} {outcome.before['id']}"
    entry = purchase_journal.interrupted(request, action.kind, subject)
    return purchase_journal.unreported(request.client, entry, action.kind, outcome.before)


def _as_paid(outcome: ActionOutcome, paid: Payment) -> ActionOutcome:
    """What an interrupted run carried out: a change that was charged."""
    known = {"charged": str(paid.paid), "invoice_id": str(paid.invoice_id), "currency": paid.currency}
    note = f"an interrupted run paid it: {paid.charged}"
    cost, shown = Cost(paid.paid, paid.currency, note), dict(cast(Mapping[str, Any], outcome.after))
    shown.update({name: value for name, value in known.items() if name in shown})
    return replace(outcome, changed=True, fetches=False, after=shown, cost=cost, note=note)


def _stamped(request: Request, action: AnyAction, shown: Shown) -> Shown:
    """In one shape: every field that may be shown, and the mode."""
    names = [name for name in action.Result.model_fields if name not in action.Result.secret_fields()]

    def whole(item: Mapping[str, object]) -> dict[str, object]:
        found = {name: item.get(name) for name in names}
        return {**found, "mode": found["mode"] or request.mode}

    stamped: Shown = _each(shown, whole)
    return stamped


def _marked(request: Request, result: Result | State) -> Result | State:
    return result if result.mode else result.model_copy(update={"mode": request.mode})


def check(action: Action[I, Any], raw: Mapping[str, Any]) -> I:
    """The inputs of an action from plain values. Raises ``InvalidInput`` with the fields that are wrong;
    no value is repeated.
    """
    try:
        return action.Inputs.model_validate(dict(raw))
    except ValidationError as error:
        failures = reasons(error, action.Inputs)
    raise InvalidInput(failures, action.title)


def as_shown(result: type[P], found: m.Response, **more: object) -> P:
    """A result: what the API shows under the names of its fields, money and time as text, and ``more``."""
    names = result.model_fields.keys() & type(found).model_fields.keys()
    values = {name: getattr(found, name) for name in names}
    for name, value in values.items():
        values[name] = as_text(value) if isinstance(value, Decimal | datetime) else value
    return result(**values | more)


def existing(get: Callable[[int], T], id: str, what: str, check: str, field: str = "id") -> T:
    """The object of the API with this id. Raises ``NoSuchObject``; ``field`` names the id, and ``check`` says
    what to look at."""
    try:
        return get(int(id))
    except NotFound:
        missing = f"there is no {what} with id {id} on this account. Next: correct {field}{check}"
        raise NoSuchObject(missing) from None


# --- how an action stops -----------------------------------------------------------------------------------


UNSURE = (TransportError, Unavailable, ServerError, InvalidResponse)
"""After these only a look at the account shows whether a call was carried out."""


@contextmanager
def answer_may_be_lost(consequence: str) -> Iterator[None]:
    """For a call without an idempotency key. An answer that was lost, or cannot be read, becomes ``Failed``
    with the ``consequence``: what is not known, and what to look at.
    """
    try:
        yield
    except CallError as error:
        if not (error.outcome_unknown or isinstance(error, InvalidResponse)):
            raise
        raise Failed(f"{error.summary} — {consequence}", error) from None


# --- what is meant -----------------------------------------------------------------------------------------


class OfOne(Inputs):
    """Inputs of an action on one object, which is given either by its id or by what it is ``called``."""

    called: ClassVar[str] = "name"

    @model_validator(mode="after")
    def _one_object(self) -> Self:
        given = [name for name in ("id", self.called) if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"id: give either id or {self.called}" + (", not both" if given else ""))
        return self


class OfServer(OfOne):
    """Inputs of an action on a server."""

    id: IdText | None = optional("Id of the server. Give id or name.")
    name: Annotated[str, Field(min_length=1, max_length=255)] | None = optional(
        "Name of the server; only one server may have it. Give id or name."
    )


class OfDomain(OfOne):
    """Inputs of an action on a domain."""

    id: IdText | None = optional("Id of the domain. Give id or name.")
    name: Annotated[str, Field(min_length=3, max_length=253)] | None = optional(
        "Domain name, in Unicode or punycode. Give id or name."
    )


class OfSubscription(OfOne):
    """Inputs of an action on a webhook subscription."""

    called = "url"
    id: IdText | None = optional("Id of the webhook subscription. Give id or url.")
    url: Annotated[str, Field(min_length=1, max_length=2048)] | None = optional(
        "URL of the subscription; only one may have it. Give id or url."
    )


def resolve(
    request: Request,
    resource: Resource[Any, S],
    option: str = "",
    /,
    *,
    id: str | None = None,
    **key: str | None,
) -> S:
    """The living object with this ``id``, or the only one that this natural key names: ``name=…``, ``url=…``.
    It says its ``mode``. ``option``: what gives it, if that is not called as the key.

    Raises ``ResourceError`` if there is none, ``AmbiguousMatch`` if there are several, ``InvalidInput``
    for a key that cannot be one.
    """
    if sandbox_of(resource) == "refused" and request.client.is_test_key:
        raise ResourceError(
            f"a {resource.title} cannot be read with a test key; nothing was sent. Next: use a live key"
        )
    if id is not None:
        field, value = "id", id
        resource.must_be_id(id)
        found = resource.read(request, id)
    else:
        ((field, value),) = ((name, text) for name, text in key.items() if text is not None)
        found = _only(request, resource, field, value)
    if found is None:
        named = f"named {value!r}" if field == "name" else f"with {field} {value}"
        raise NoSuchObject(
            f"there is no {resource.title} {named} on this account. Next: correct {option or field}, "
            "and check whose API key it is"
        )
    mode = mode_of(resource, found)
    return found if found.mode == mode else found.model_copy(update={"mode": mode})


def _only(request: Request, resource: Resource[Any, S], field: str, value: str) -> S | None:
    try:
        every = list(listed(request, resource, **{field: value}))
    except ValueError:
        raise InvalidInput({field: f"is no {field} that can be read"}, resource.title) from None
    # A list may hold what is gone, and shows less than a read does.
    living = [found for item in every if (found := resource.read(request, item.id)) is not None]
    if len(living) > 1:
        raise AmbiguousMatch(f"{resource.title} {field} {value!r}", [found.id for found in living])
    return living[0] if living else None
