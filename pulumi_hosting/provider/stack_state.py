"""Between what an entry of the stack's state records and a resource's inputs and state."""

from collections.abc import Callable, Collection

from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.exactly_once.generation import ORDER_PREFIX
from pulumi_hosting.planning.resolve_names import resolved
from pulumi_hosting.provider.conversion import (
    DECLARED,
    ENTRY,
    IDENTITY,
    MANAGED,
    ORGANIZATION,
    TIMEOUTS,
    WAIT_TIMEOUT,
    PropertyValues,
    Props,
    from_pulumi,
    to_pulumi,
)
from pulumi_hosting.resources.base import AnyResource, State
from pulumi_hosting.session.request import Request


def provider_fields(props: PropertyValues) -> Props:
    """What is recorded beside the resource's own fields."""
    kept = (IDENTITY, DECLARED, ORGANIZATION, TIMEOUTS, WAIT_TIMEOUT)
    return {key: props[key] for key in kept if props.get(key) is not None}


def entry_stamp(olds: PropertyValues) -> Props:
    """The stamp of an entry of the stack's state: made once, kept for ever."""
    return {ENTRY: olds[ENTRY]} if olds.get(ENTRY) else {}


def recorded_values(resource: AnyResource, id: str, olds: PropertyValues) -> Props:
    """Everything that an entry records, the inputs that are no part of the state among them."""
    return {**from_pulumi(olds)[0], "id": id}


def recorded_state(resource: AnyResource, values: PropertyValues) -> State:
    """The state in ``values``. States of other versions may have more fields or fewer."""
    fields = resource.State.model_fields
    state: State = resource.State.partial({name: value for name, value in values.items() if name in fields})
    return state


def outputs_of(resource: AnyResource, values: PropertyValues, declared: PropertyValues) -> Props:
    """What to record: the values of the state, and what was declared but is no part of it."""
    fields = resource.State.model_fields
    beside = {name: value for name, value in declared.items() if name not in fields}
    return to_pulumi({**beside, **values}, ("id",))


def recorded_inputs(olds: PropertyValues) -> list[str]:
    """The inputs that an entry records as managed; none before an import."""
    return [name for name in olds.get(MANAGED, ()) if isinstance(name, str)]


def declared_lately(
    resource: AnyResource, recorded: Collection[str], values: PropertyValues, latest: PropertyValues
) -> tuple[list[str], Props]:
    """The inputs that a refresh compares, those ``recorded`` as managed and the ``latest`` ones, since an
    update that changed nothing recorded no outputs; and what was declared of them, where a name and what it
    was resolved to are the latest.
    """
    managed = sorted({*recorded, *(resource.Inputs.model_fields.keys() & latest.keys())})
    fixed = resource.Inputs.resolved_fields(latest)
    declared = {name: values.get(name, latest.get(name)) for name in managed}
    return managed, declared | {name: value for name, value in latest.items() if name in fixed}


def live_inputs(
    resource: AnyResource, now: PropertyValues, managed: Collection[str], last: PropertyValues
) -> Props:
    """The managed inputs as the values of the state have them now; what cannot be observed stays as it was,
    and so do a name and what it was resolved to.
    """
    fixed = resource.Inputs.resolved_fields(last)
    return {
        name: now[name] if now.get(name) is not None and name not in fixed else last.get(name)
        for name in managed
        if name in resource.Inputs.model_fields
    }


def resolved_names(
    request: Callable[[], Request],
    resource: AnyResource,
    values: PropertyValues,
    olds: PropertyValues,
) -> tuple[Props, dict[str, str]]:
    """See ``resolve_names.resolved``; ``olds``: the former inputs. An account that cannot be asked is a
    reason too: nothing can be planned for an object whose value is not known.
    """
    try:
        return resolved(request, resource, values, from_pulumi(olds)[0])
    except HostingError as error:
        return {}, {"": str(error)}


def on_order(server_id: object) -> frozenset[str]:
    """``server_id`` among what is not known, while only the order of that server is."""
    return frozenset({"server_id"} if str(server_id).startswith(ORDER_PREFIX) else ())
