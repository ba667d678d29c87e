"""Which webhook subscriptions of an account are a resource's: by the ownership tag behind their description.

The API has no idempotency key for them, so runs at the same moment, or a request of an interrupted run that
is processed late, may make a second one. The one with the lowest id stays.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import HostingError, NotFound
from pulumi_hosting.client.results import matching
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.exactly_once.idempotency_keys import KEY_MEMORY
from pulumi_hosting.exactly_once.ownership_check import why_not_taken_over
from pulumi_hosting.exactly_once.ownership_tag import is_tag_of, next_tag, ownership_tag, split_tag, takeovers
from pulumi_hosting.session.errors import ResourceConflict
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import age, without_secrets


def plain_url(url: str) -> str:
    """One spelling per address: host in lower case, no default port, no empty path."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    port = f":{parts.port}" if parts.port not in (None, 443) else ""
    return urlunsplit((parts.scheme.lower(), host + port, parts.path or "/", parts.query, ""))


def subscriptions(request: Request, max_age: float = 60.0) -> list[m.Subscription]:
    """The subscriptions of the account, as of ``max_age`` seconds ago at most."""
    ask = request.client.webhooks.list
    return catalog_reads.listed(request, "list_webhooks", ask, max_age, "webhooks")


def tag_of(found: m.Subscription) -> str | None:
    return split_tag(found.description)[1]


def of_url(listed: Iterable[m.Subscription], url: str) -> list[m.Subscription]:
    """Those that deliver to the address, the lowest id first. Raises ``InvalidResponse`` if one that could
    not be read may be one."""
    wanted = plain_url(url)
    return sorted(matching(listed, lambda one: plain_url(one.url) == wanted), key=lambda one: one.id)


def new_tag(request: Request, listed: Iterable[m.Subscription]) -> str:
    """For a new subscription: another tag than that of one which is about to be replaced."""
    if request.name_is_identity:  # it has the url alone, and is changed in place
        return ownership_tag(request.identity)
    old = [tag for tag in map(tag_of, listed) if tag and is_tag_of(tag, request.identity)]
    return next_tag(max(old, key=takeovers), request.identity) if old else ownership_tag(request.identity)


def find_tagged(request: Request, url: str) -> list[m.Subscription]:
    """What runs of this resource made and no state in this run has, the lowest id first.

    Raises ``ResourceConflict`` if it must not be taken over automatically: it does not deliver to ``url``,
    it is older than idempotency keys live, or ``strict`` is set without a scope.
    """
    found = [] if request.name_is_identity else list(filter(_is_own(request), request.client.webhooks.list()))
    if not found:
        return []
    found.sort(key=lambda one: one.id)
    first = found[0]
    since = request.service_now() - first.created_at if first.created_at else None
    why = why_not_taken_over(request, timedelta.max if since is None else since)
    if plain_url(first.url) != plain_url(url):
        why = f"it delivers to {first.url}, not to {url}"
    if why is None:
        return found
    when = f", made {age(since)} ago" if since is not None else ""
    raise ResourceConflict(
        f"webhook subscription {first.id}{when} carries this resource's ownership tag: {why}; nothing was "
        f"changed. Next: set adopt_id={first.id} to take it over, or give this resource another name",
        id=str(first.id),
    )


def one_in_its_place(request: Request, listed: Iterable[m.Subscription]) -> m.Subscription | None:
    """The subscription that carries this resource's tag and that no state in this run has. Asked if that of
    a state is gone. None with a test key, which sees none."""
    if request.name_is_identity or request.client.is_test_key:
        return None
    is_own, held = _is_own(request), request.ownership.of(request.identity)
    return next((one for one in listed if is_own(one) and str(one.id) not in held), None)


def described(found: m.Subscription) -> str:
    """What is known of a subscription that carries this resource's tag and is in no state."""
    url = without_secrets(found.url)
    return f"webhook subscription {found.id} ({url}) carries this resource's ownership tag"


def doubles(
    request: Request, listed: Iterable[m.Subscription], found: m.Subscription
) -> list[m.Subscription]:
    """What requests of interrupted runs made after ``found``, for certain: this resource's tag to its count,
    the same address, a higher id, made within seven days of ``found``, and no receiver has accepted a
    delivery, so that nothing has its secret.

    None under ``strict`` without a scope: the tag may be another backend's.
    """
    if not is_tag_of(tag_of(found), request.identity) or (
        request.session.strict and request.session.scope is None
    ):
        return []
    later = [other for other in alike(listed, found) if _came_later(found, other)]
    return [other for other in later if not _is_in_use(request, other)]


def _is_in_use(request: Request, other: m.Subscription) -> bool:
    """Whether a receiver accepted what it delivered. The service keeps such deliveries for 14 days."""
    return any(request.client.webhooks.deliveries.list(other.id, status="delivered", limit=1))


def remark_on_doubles(request: Request, listed: Iterable[m.Subscription], found: m.Subscription) -> None:
    """Warn of subscriptions that have the tag and the address of ``found``."""
    others = alike(listed, found)
    certain = {double.id for double in doubles(request, others, found)}
    for other in others:
        if other.id in certain:
            request.warn(
                f"{second_one(other.id)} beside {found.id}: a request of an interrupted run was processed "
                f"late. Next: run {request.client.words.apply}, which deletes it"
            )
        else:
            request.warn(
                f"webhook subscriptions {found.id} and {other.id} carry the same ownership tag and deliver "
                "to the same url, so that every event comes twice; another state may have the second one, "
                f"so it stays. Next: delete {other.id} in the control panel if no other stack uses it"
            )


def second_one(id: object) -> str:
    return f"webhook subscription {id} is a second one of this resource"


def alike(listed: Iterable[m.Subscription], found: m.Subscription) -> list[m.Subscription]:
    """Others with the same tag, to its count, and the same address."""
    tag, url = tag_of(found), plain_url(found.url)
    return [
        other
        for other in listed
        if tag is not None and other.id != found.id and tag_of(other) == tag and plain_url(other.url) == url
    ]


def _came_later(found: m.Subscription, other: m.Subscription) -> bool:
    if found.created_at is None or other.created_at is None:
        return False
    return other.id > found.id and timedelta() <= other.created_at - found.created_at <= KEY_MEMORY


def delete_doubles(request: Request, found: Iterable[m.Subscription]) -> None:
    for double in found:
        what = second_one(double.id)
        if _is_deleted(request, double, what):
            request.info(f"{what}; it is deleted")


def _is_deleted(request: Request, surplus: m.Subscription, what: str) -> bool:
    """Delete one that is not needed, unless it is gone. ``what``: the beginning of the warning if that
    fails."""
    try:
        request.client.webhooks.delete(surplus.id)
    except NotFound:
        pass
    except HostingError as error:
        request.warn(f"{what} and could not be deleted: {error}")
        return False
    return True


def keep_first(request: Request, url: str, made: m.Subscription) -> m.Subscription | None:
    """Of those that several runs made at the same moment each keeps the one with the lowest id, and deletes
    its own otherwise. The first one if it is not ``made``.

    Raises ``ResourceConflict`` if the next run takes over what is left.
    """
    is_own = _is_own(request)
    try:
        listed = of_url(request.client.webhooks.list(), url)
        same = [one for one in listed if request.name_is_identity or is_own(one)]
    except HostingError as error:  # it was made, and its secret is not shown again
        request.warn(
            f"webhook subscription {made.id} was made, and whether another run made one "
            f"too is not known: {error}"
        )
        return None
    first = next(iter(same), made)
    if first.id >= made.id:
        return None
    if not _is_deleted(request, made, f"webhook subscription {made.id} is a second one beside {first.id}"):
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
        f"Next: run {request.client.words.apply} again; it takes over what is left, and makes a new secret",
        id=str(first.id),
    )


def remark_on_others(request: Request, listed: Iterable[m.Subscription], url: str) -> None:
    """Warn of subscriptions that deliver to the same address and are no resource's of this run."""
    for found in of_url(listed, url):
        tag = tag_of(found)
        if is_tag_of(tag, request.identity) or request.has_owner(str(found.id)):
            continue
        next_step = (
            f"set adopt_id to {found.id} to take it over, or delete it"
            if tag is None
            else "declare it in one place only, unless both are meant: another resource's tag is on it"
        )
        request.warn(
            f"subscription {found.id} delivers to its url already; every event that both want comes "
            f"twice. Next: {next_step}"
        )


def _is_own(request: Request) -> Callable[[m.Subscription], bool]:
    """Whether a subscription carries this resource's tag, and no state in this run has it."""
    return lambda one: is_tag_of(tag_of(one), request.identity) and not request.has_owner(str(one.id))
