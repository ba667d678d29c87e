"""What a comparison says of a recorded object: what its change does, and what the account shows of it."""

from collections.abc import Mapping
from contextlib import suppress

from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.planning import paid_reads
from pulumi_hosting.planning.plan import Plan, deletes_double
from pulumi_hosting.provider import keeping_paid
from pulumi_hosting.provider.provider_session import ProviderSession
from pulumi_hosting.provider.replacements import Declaring
from pulumi_hosting.resources.base import AnyResource, State
from pulumi_hosting.resources.powers import Rebuildable, Remarked
from pulumi_hosting.session.request import Request


def tell(
    session: ProviderSession,
    request: Request,
    resource: AnyResource,
    state: State,
    planned: Plan,
    declared: Mapping[str, object],
) -> dict[str, str]:
    """Say it, and what the account shows of the object whatever the program declares. Without a key, or an
    answer, it shows nothing. Of an object that is gone, a change does nothing more. ``declared``: the
    inputs. Returns the properties that an update concerns though no input differs, as a comparison names
    them: ``status`` of an object that is gone or whose paid time is over, ``keepPaid`` where it asks for a
    renewal.
    """
    properties: dict[str, str] = {}
    is_gone, is_reachable = False, session.unreachable() is None
    with suppress(HostingError):
        if isinstance(resource, Remarked) and is_reachable:
            for line in resource.remarks(request, state):
                request.warn(line)
            is_gone = resource.is_gone(request, state)
    if is_reachable:
        paid = paid_reads.tell(request, resource, state, declared)
        if paid.what and paid.what.until:
            session.due[paid.what.key] = (paid.what.until, paid.what.label)
        if paid.ended or (is_gone and not planned.changes):
            # what is declared is meant to be alive
            properties["status"] = "UPDATE"
        is_kept = not planned.changes.replaces
        if is_kept and keeping_paid.show(session.budget, request, resource, state, declared):
            properties["keepPaid"] = "UPDATE"
    for line in () if is_gone else planned.remarks:
        request.info(line)
    for double in planned.doubles:
        request.warn(deletes_double(resource, double))
    return properties


def tell_replacement(session: ProviderSession, request: Request, declared: Declaring | None) -> None:
    """Say what replacing the object does, where an engine asks as for a new one after a comparison that
    replaces nothing: an option does (``replace_on_changes``), which engines keep from providers."""
    if declared is None or declared.state is None or not isinstance(declared.resource, Rebuildable):
        return
    if fields := declared.changed:
        declared.changed = frozenset()
        asked = request if session.unreachable() is None else None
        request.info(declared.resource.consequence(asked, declared.state, frozenset(), fields) or "")
