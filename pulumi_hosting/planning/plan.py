"""What bringing one object to its declaration would do: computed once, for every frontend.

Pulumi's check, diff and preview show parts of a ``Plan``; Ansible's check mode shows it and a real run
applies it. If the frontends must differ, they say so with ``PlanOptions``.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from pulumi_hosting.client.exceptions import ApiError, HostingError, TransportError
from pulumi_hosting.planning.check import Checked, unsendable
from pulumi_hosting.planning.diff import NO_CHANGES, Diff, Same, diff, forbidden, is_same
from pulumi_hosting.planning.modes_and_scopes import missing_scopes
from pulumi_hosting.resources import powers
from pulumi_hosting.resources.base import AnyResource, Inputs, State, several
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import KeyLacksScope
from pulumi_hosting.session.request import Request

Action = Literal["created", "updated", "replaced", "deleted", "unchanged"]


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What frontends do differently.

    - ``priced``: whether to ask what making the object charges.
    - ``predicted``: whether to say what the object will be.
    - ``scopes``: what missing scopes of the key are: ``refuse`` raises ``KeyLacksScope``, ``warn`` goes on
      with a warning.
    - ``unreachable``: what an account that cannot answer is (no connection, 5xx, 429): ``raise`` passes the
      error on, ``warn`` puts it into ``Plan.unchecked``.
    - ``reach``: asked before the account is; an error that it returns is treated as ``unreachable`` says.
    """

    priced: bool = True
    predicted: bool = True
    scopes: Literal["refuse", "warn"] = "refuse"
    unreachable: Literal["raise", "warn"] = "raise"
    reach: Callable[[], HostingError | None] = lambda: None


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done.

    - ``action``: what the object would have been: created, updated, replaced, or left unchanged.
    - ``changes``: the fields that differ from the object as it is.
    - ``cost``: what making it charges; None if nothing is paid, or too little is known.
    - ``takeover``: what would be taken over instead of being made.
    - ``remarks``, ``warnings``: lines to show.
    - ``refusals``: field → reason, for what only the account can tell, or what the declaration itself
      forbids.
    - ``predicted``: what can be shown of the object afterwards, as far as it is known.
    - ``unchecked``: why the account could not be asked, with ``PlanOptions.unreachable`` ``warn``.
    - ``doubles``: ids of second objects of the declaration that an update deletes. It is planned for them
      alone, too.
    """

    action: Action
    changes: Diff = NO_CHANGES
    cost: Cost | None = None
    takeover: Takeover | None = None
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refusals: Mapping[str, str] = field(default_factory=dict)
    predicted: Mapping[str, Any] | None = None
    unchecked: HostingError | None = None
    doubles: tuple[str, ...] = ()


def plan(
    request: Request,
    resource: AnyResource,
    desired: Checked,
    current: State | None = None,
    *,
    recorded: Mapping[str, Any] | None = None,
    options: PlanOptions = PlanOptions(),
) -> Plan:
    """The plan for what is ``desired``, which must have no failures.

    - ``current``: the object as it is. Without it, a new one is planned, or a change of a declaration whose
      object is not at hand.
    - ``recorded``: what is known besides: of an object, every recorded value; without one, the inputs that
      were declared before.

    Reads only. Raises what a read raises, and ``ResourceError`` for what would be taken over and cannot be.
    """
    if current is not None:
        return _plan_change(
            request, resource, desired, current, current.values() if recorded is None else recorded, options
        )
    values, before = desired.values, recorded or {}
    action: Action = "updated" if before else "created"
    if before and (refusals := forbidden(resource, before, values, same_as(request, resource))):
        return Plan("updated", refusals=refusals)
    fields = frozenset(values) | desired.unknown
    if before:
        fields = frozenset(
            name for name, value in values.items() if not is_same(resource, name, before.get(name), value)
        )
    if not fields:
        return Plan("unchanged")
    is_sent = before or resource.Inputs.adopted_by(values) is None  # else only the account knows
    if is_sent and (refusals := unsendable(resource, {name: values.get(name) for name in fields})):
        return Plan(action, refusals=refusals)
    try:
        unreachable = options.reach() if options.unreachable == "warn" else None
        if unreachable is None:
            return _ask(request, resource, desired, fields, options, action)
    except (TransportError, ApiError) as error:
        if not cannot_answer(error) or options.unreachable == "raise":
            raise
        unreachable = error
    return Plan(action, unchecked=unreachable)


def cannot_answer(error: HostingError) -> bool:
    """Whether the account cannot be asked at the moment: no connection, 5xx, 429. Any other answer says
    what is wrong with the request or its key, and asking later changes nothing.
    """
    if isinstance(error, ApiError):
        return error.status >= 500 or error.status == 429
    return isinstance(error, TransportError)


def _ask(
    request: Request,
    resource: AnyResource,
    desired: Checked,
    fields: frozenset[str],
    options: PlanOptions,
    action: Action,
) -> Plan:
    """What only the account can tell of the ``fields`` that are new in a declaration: scopes, catalog,
    takeover, price.
    """
    new, unknown, warnings = action == "created", desired.unknown, []
    verb = "create" if new else "update"
    if options.scopes == "refuse":
        spared = resource.spared_scopes(request, desired.values) if new else frozenset()
        if lacks := missing_scopes(request, resource, verb, spared):
            raise KeyLacksScope(lacks)
    elif lacks := missing_scopes(request, resource, verb):
        warnings.append(lacks)  # whoever only looks for drift needs no more than to read
    is_decided = not unknown & resource.Inputs.deciding("order")
    failures = {}
    if isinstance(resource, powers.Validated) and is_decided:
        failures = resource.validate(request, desired.values, fields)
    if failures or not new:
        return Plan(action, refusals=failures, warnings=tuple(warnings))
    taken = None
    if is_decided and not unknown & {*powers.natural_key(resource)}:
        taken = takeover_of(request, resource, desired.known)
    cost, remarks = None, []
    is_bought = taken is None and resource.Inputs.adopted_by(desired.values) is None
    if is_bought and options.priced and isinstance(resource, powers.Priced):
        undecided = resource.Inputs.deciding("order") | resource.Inputs.deciding("price")
        if waiting := sorted(unknown & undecided):
            remarks.append(unknown_price(resource, waiting))
        else:
            cost = resource.cost(request, desired.values)
    predicted = None
    if options.predicted:
        predicted = predict(resource, desired.known, taken.state if taken else None)
        if taken is None and isinstance(resource, powers.Named):
            for field in resource.Inputs.named_by():
                if len(values := several(desired.values.get(field))) > 1:
                    predicted |= resource.likely(request, field, values)
    return Plan(action, NO_CHANGES, cost, taken, tuple(remarks), tuple(warnings), predicted=predicted)


def _plan_change(
    request: Request,
    resource: AnyResource,
    desired: Checked,
    current: State,
    recorded: Mapping[str, Any],
    options: PlanOptions,
) -> Plan:
    """What differs from the object as it is, and what a person must know before it is changed."""
    found = diff(resource, recorded, desired.values, desired.unknown, same_as(request, resource))
    doubles = () if found.replaces else _doubles(request, resource, current, options)
    if not found:
        return Plan("updated" if doubles else "unchanged", found, remarks=found.remarks, doubles=doubles)
    if isinstance(resource, powers.Registered) and (why := resource.why_unchangeable(current)):
        named, waiting = getattr(current, "name", current.id), ", ".join(sorted(found.fields))
        warning = f"{resource.title} {named}: {waiting} cannot be set yet, since {why}. Next: run again later"
        return Plan("unchanged", found, remarks=found.remarks, warnings=(warning,))
    consequence = None
    if isinstance(resource, powers.Rebuildable):
        asked = request if found.replaces and options.reach() is None else None
        consequence = resource.consequence(asked, current, found.fields - {*found.replaces}, found.replaces)
    return Plan(
        "replaced" if found.replaces else "updated",
        found,
        remarks=(*found.remarks, consequence) if consequence else found.remarks,
        refusals=dict.fromkeys(found.refusals, "differs, and rebuild is 'forbid'"),
        predicted=predict(resource, desired.known, None if found.replaces else current)
        if options.predicted and desired.known
        else None,
        doubles=doubles,
    )


def _doubles(
    request: Request, resource: AnyResource, current: State, options: PlanOptions
) -> tuple[str, ...]:
    """If the account cannot be read there is nothing to say."""
    if isinstance(resource, powers.Repeatable) and options.reach() is None:
        with suppress(HostingError):
            return tuple(resource.doubles(request, current))
    return ()


def deletes_double(resource: AnyResource, id: str) -> str:
    """What is to be done about a second object, in words."""
    return (
        f"{resource.title} {id} is a second one of this resource: a request of an interrupted run was "
        "processed late. It is deleted with this update"
    )


def unknown_price(resource: AnyResource, waiting: Iterable[str]) -> str:
    """Why the price is not known yet. ``waiting``: the inputs that decide it and are known later only."""
    reasons = ["its server exists" if name == "server_id" else f"{name} is known" for name in waiting]
    return f"price of {resource.title}: not known before {' and '.join(reasons)}"


def takeover_of(request: Request, resource: AnyResource, inputs: Inputs) -> Takeover | None:
    """What making the object would take over instead."""
    return resource.takeover(request, inputs) if isinstance(resource, powers.Adoptable) else None


def same_as(request: Request, resource: AnyResource) -> Same | None:
    """Asks the account about a field that reads differently, and only then needs a key."""
    return partial(resource.is_same, request) if isinstance(resource, powers.Rebuildable) else None


def predict(resource: AnyResource, inputs: Inputs, state: State | None) -> dict[str, Any]:
    """The state's fields as they would be afterwards, as far as they can be known without doing it; no
    secrets.
    """
    known = {**state.shown(), "mode": powers.mode_of(resource, state)} if state else {}
    hidden = resource.State.secret_fields()
    known |= {
        name: value
        for name, value in inputs.given().items()
        if name in resource.State.model_fields
        and name not in hidden
        and not resource.Inputs.is_open(name, value)
    }
    return resource.adjust_prediction(known, state) if isinstance(resource, powers.Predicted) else known
