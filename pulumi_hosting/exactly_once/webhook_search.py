"""Which webhook subscriptions of an account are a resource's: by the ownership tag behind their description.

The API has no idempotency key for them, so runs at the same moment, or a request of an interrupted run that
is processed late, may make a second one. The one with the lowest id stays.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import KEY_MEMORY_SECONDS
from pulumi_hosting.client.exceptions import HostingError, NotFound
from pulumi_hosting.exactly_once.ownership_tag import (
    is_tag_of,
    next_tag,
    ownership_tag,
    split_tag,
    takeovers,
)
from pulumi_hosting.session.errors import ResourceConflict
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import age

_TAKEOVER_AGE = timedelta(seconds=KEY_MEMORY_SECONDS)


def plain_url(url: str) -> str:
    """One spelling per address: host in lower case, no default port, no empty path."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    port = f":{parts.port}" if parts.port not in (None, 443) else ""
    return urlunsplit((parts.scheme.lower(), host + port, parts.path or "/", parts.query, ""))


def tag_of(found: m.Subscription) -> str | None:
    return split_tag(found.description)[1]


def new_tag(request: Request) -> str:
    """For a new subscription: another tag than that of one which is about to be replaced."""
    tags = map(tag_of, request.client.webhooks.list())
    old = [tag for tag in tags if tag and is_tag_of(tag, request.identity)]
    return next_tag(max(old, key=takeovers), request.identity) if old else ownership_tag(request.identity)


def find_tagged(request: Request, url: str) -> list[m.Subscription]:
    """What runs of this resource made and no state in this run has, the lowest id first.

    Raises ``ResourceConflict`` where it must not be taken over automatically: it does not deliver to ``url``,
    it is older than idempotency keys live, or ``strict`` is set without a scope.
    """
    found = [] if request.name_is_identity else list(filter(_is_own(request), request.client.webhooks.list()))
    if not found:
        return []
    found.sort(key=lambda one: one.id)
    first = found[0]
    since = request.service_now() - first.created_at if first.created_at else None
    if plain_url(first.url) != plain_url(url):
        why = f"it delivers to {first.url}, not to {url}"
    elif since is None or since > _TAKEOVER_AGE:
        why = "it is older than seven days, and another state may have it"
    elif request.strict and request.scope is None:
        why = "strict is set and hosting:scope is not, and it may be another backend's"
    else:
        return found
    when = f", made {age(since)} ago" if since is not None else ""
    raise ResourceConflict(
        f"webhook subscription {first.id}{when} carries this resource's ownership tag: {why}; nothing was "
        f"changed. Next: set adopt_id={first.id} to take it over, or give this resource another name",
        id=str(first.id),
    )


def doubles(listed: Iterable[m.Subscription], found: m.Subscription) -> list[m.Subscription]:
    """What requests of interrupted runs made after ``found``: the same tag to its count, the same address,
    and a higher id.
    """
    tag = tag_of(found)
    if tag is None:
        return []
    return [
        other
        for other in listed
        if other.id > found.id and tag_of(other) == tag and plain_url(other.url) == plain_url(found.url)
    ]


def delete_doubles(request: Request, found: Iterable[m.Subscription]) -> None:
    for double in found:
        try:
            request.client.webhooks.delete(double.id)
        except NotFound:
            continue
        except HostingError as error:
            request.warn(
                f"webhook subscription {double.id} is a second one of this resource and "
                f"could not be deleted: {error}"
            )
        else:
            request.info(f"webhook subscription {double.id} was a second one of this resource; it is deleted")


def keep_first(request: Request, url: str, made: m.Subscription) -> m.Subscription | None:
    """Of those that several runs made at the same moment each keeps the one with the lowest id, and deletes
    its own otherwise. The first one where it is not ``made``.

    Raises ``ResourceConflict`` where the next run takes over what is left.
    """
    is_own = _is_own(request)
    try:
        same = [
            one
            for one in request.client.webhooks.list()
            if plain_url(one.url) == plain_url(url) and (request.name_is_identity or is_own(one))
        ]
    except HostingError as error:  # it was made, and its secret is not shown again
        request.warn(
            f"webhook subscription {made.id} was made, and whether another run made one "
            f"too is not known: {error}"
        )
        return None
    first = min(same, key=lambda one: one.id, default=None)
    if first is None or first.id >= made.id:
        return None
    try:
        request.client.webhooks.delete(made.id)
    except NotFound:
        pass
    except HostingError as error:
        request.warn(
            f"webhook subscription {made.id} is a second one beside {first.id} and "
            f"could not be deleted: {error}"
        )
        return None
    at_once = (
        f"another run made webhook subscription {first.id} at the same moment, and only "
        "that run knows its secret"
    )
    if request.name_is_identity:
        request.warn(f"{at_once}; this run's own was deleted")
        return first
    raise ResourceConflict(
        f"{at_once}, or a request of an interrupted run was processed late; this run's own was deleted. "
        "Next: run pulumi up again; it takes over what is left, and makes a new secret",
        id=str(first.id),
    )


def remark_on_others(request: Request, url: str) -> None:
    """Warn of subscriptions of unknown origin that deliver to the same address."""
    for found in request.client.webhooks.list():
        if plain_url(found.url) == plain_url(url) and tag_of(found) is None:
            request.warn(
                f"subscription {found.id} delivers to its url already; every event that both want comes "
                f"twice. Next: set adopt_id to {found.id} to take it over, or delete it"
            )


def _is_own(request: Request) -> Callable[[m.Subscription], bool]:
    """Whether a subscription carries this resource's tag, and no state in this run has it."""
    known = request.owned | request.ownership.of_others(request.identity)
    return lambda one: is_tag_of(tag_of(one), request.identity) and str(one.id) not in known
