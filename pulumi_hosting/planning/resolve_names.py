"""Inputs that are given by a name: the tariff "VDS-1" in place of its id. A name is resolved once; what it
was resolved to is recorded, so that a later change of the catalog is no difference.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.planning.check import declared
from pulumi_hosting.resources.base import AnyResource, State, several
from pulumi_hosting.resources.powers import Named
from pulumi_hosting.session.request import Request


def resolved(
    request: Callable[[], Request], resource: AnyResource, raw: Mapping[str, Any], recorded: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values that the names in ``raw`` stand for, and field → reason for names that stand for none.

    - ``request``: called if the account must be asked.
    - ``recorded``: the names and their values as they were before. The same name keeps its value.

    Raises what a read raises.
    """
    found, failures = dict[str, Any](), dict[str, str]()
    if not isinstance(resource, Named):
        return found, failures
    for field, by in resource.Inputs.named_by().items():
        given, wrong = several(raw.get(by)), list[str]()
        known = dict(zip(several(recorded.get(by)), several(recorded.get(field)), strict=False))
        for name in given:
            try:
                known[name] = known[name] if name in known else resource.resolve(request(), field, name)
            except ValueError as error:
                wrong.append(str(error))
        values = [known[name] for name in given if name in known]
        if not given:
            continue
        if wrong:
            failures[by] = "; ".join(wrong)
        elif len({*values}) < len(values):
            failures[by] = f"{' and '.join(map(repr, given))} name one {field} twice: name each once"
        elif raw.get(field) not in (None, value := values if len(values) > 1 else values[0]):
            named = given if len(given) > 1 else given[0]
            failures[by] = f"{named!r} is {value}, and {field} is {raw[field]}: give one of the two"
        else:
            found[field] = value
    return found, failures


def with_resolved_names(request: Request, resource: AnyResource, inputs: Any, current: State | None) -> Any:
    """The inputs with the values that their names stand for. A name that the catalog has no more is no
    difference of an object that exists.
    """
    given = inputs.given()
    recorded = current.values() if current else {}
    names = resource.Inputs.named_by().values()
    # of several names that of the object is enough
    there = {by: recorded[by] for by in names if recorded.get(by) in several(given.get(by))}
    values, failures = resolved(lambda: request, resource, given | there, recorded)
    if failures and current is None:
        raise InvalidInput(failures, resource.called(given))
    for name, reason in failures.items():
        request.warn(f"{resource.called(given)}: {name} was not compared: {reason}")
    return declared(resource, {**given, **values}).inputs
