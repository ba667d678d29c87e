"""Inputs that are given by a name: the tariff "VDS-1" in place of its id. A name is resolved once; what it
was resolved to is recorded, so that a later change of the catalog is no difference.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.planning.check import declared
from pulumi_hosting.resources.base import AnyResource, State
from pulumi_hosting.resources.powers import Named
from pulumi_hosting.session.request import Request


def resolved(
    request: Callable[[], Request], resource: AnyResource, raw: Mapping[str, Any], recorded: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values that the names in ``raw`` stand for, and field → reason for names that stand for none.

    - ``request``: called if the account must be asked.
    - ``recorded``: the name and its value as they were before. The same name keeps its value.

    Raises what a read raises.
    """
    found, failures = dict[str, Any](), dict[str, str]()
    if not isinstance(resource, Named):
        return found, failures
    for field, by in resource.Inputs.named_by().items():
        name = raw.get(by)
        if not isinstance(name, str):
            continue
        if recorded.get(by) == name and recorded.get(field) is not None:
            value = recorded[field]
        else:
            try:
                value = resource.resolve(request(), field, name)
            except ValueError as error:
                failures[by] = str(error)
                continue
        if raw.get(field, value) != value:
            failures[by] = f"{name!r} is {value}, and {field} is {raw[field]}: give one of the two"
        else:
            found[field] = value
    return found, failures


def with_resolved_names(request: Request, resource: AnyResource, inputs: Any, current: State | None) -> Any:
    """The inputs with the values that their names stand for. A name that the catalog has no more is no
    difference of an object that exists.
    """
    given = inputs.given()
    recorded = current.values() if current else {}
    values, failures = resolved(lambda: request, resource, given, recorded)
    if failures and current is None:
        raise InvalidInput(failures, resource.called(given))
    for name, reason in failures.items():
        request.warn(f"{resource.called(given)}: {name} was not compared: {reason}")
    return declared(resource, {**given, **values}).inputs
