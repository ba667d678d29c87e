"""Between what an entry of the stack's state records and a resource's inputs and state."""

from collections.abc import Callable

from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.exactly_once.generation import ORDER_PREFIX
from pulumi_hosting.planning.diff import shown_inputs
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


def outputs_of(resource: AnyResource, state: State, declared: PropertyValues) -> Props:
    """What to record: the state, and what was declared but is no part of it."""
    fields = resource.State.model_fields
    beside = {name: value for name, value in declared.items() if name not in fields}
    return to_pulumi({**beside, **state.values()}, ("id",))


def managed_inputs(
    resource: AnyResource, state: State, olds: PropertyValues, inputs: PropertyValues
) -> list[str]:
    """The inputs that a refresh compares: those recorded as managed, and the latest ``inputs``, since an
    update that changed nothing recorded no outputs. For an import: every input that the state shows.
    """
    fields = resource.Inputs.model_fields
    managed = {name for name in olds.get(MANAGED, ()) if isinstance(name, str)}
    return sorted({*(managed or shown_inputs(resource, state)), *(fields.keys() & inputs.keys())})


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
